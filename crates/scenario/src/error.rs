//! Errors in a scenario file, and where they stand.

use core::fmt;

use crate::nearest::hint;
use crate::route::RouteError;
use crate::topology::TopologyError;
use crate::units::UnitError;

/// A scenario file that cannot be meant. The fault is the file's, at the place named.
///
/// ```
/// use fairpath_scenario::ScenarioFile;
///
/// let text = "duration = \"10s\"\n[[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"30Mbit/s\"\ndealy = \"5ms\"\n";
/// let error = ScenarioFile::parse(text, "my.toml").unwrap_err();
/// assert!(error.to_string().starts_with("my.toml:6:1: link.dealy: no such key (is \"delay\" meant?)"), "{error}");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ScenarioError {
    /// The name of the file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The key with those of the tables around it, as in `link.queue`. Empty where the file as a
    /// whole is meant.
    pub key: String,
    /// The problem.
    pub problem: Box<Problem>,
    /// With which values of the parameters, as in `load = 2`. Empty where there are none, or the file
    /// is wrong whatever they are.
    pub with: String,
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, column, key, problem, with } = self;
        let colon = if key.is_empty() { "" } else { ": " };
        write!(f, "{file}:{line}:{column}: {key}{colon}{problem}")?;
        if with.is_empty() { Ok(()) } else { write!(f, " (with {with})") }
    }
}

impl core::error::Error for ScenarioError {}

/// The fault of a key or its value.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Problem {
    /// The file is not TOML.
    #[error("this is not TOML: {message}")]
    Syntax {
        /// The words of the TOML parser.
        message: String,
    },
    /// The key is not one of its table.
    #[error("no such key{}; the keys here are {}", hint(nearest), known.join(", "))]
    UnknownKey {
        /// The most similar key that there is.
        nearest: Option<String>,
        /// The keys there are.
        known: Vec<&'static str>,
    },
    /// A key that is needed is not there.
    #[error("{missing} is missing; write it like {missing} = {example}")]
    Missing {
        /// The key.
        missing: &'static str,
        /// How a value of it looks.
        example: &'static str,
    },
    /// The value is of the wrong kind.
    #[error("{found} is not {expected}")]
    WrongKind {
        /// The value.
        found: String,
        /// The expected value, with an example.
        expected: String,
    },
    /// The value is not the quantity that it should be.
    #[error(transparent)]
    Unit(#[from] UnitError),
    /// The value is too small or too large.
    #[error("{value} is out of range; it must be {allowed}")]
    OutOfRange {
        /// The value.
        value: String,
        /// The values that would be right.
        allowed: String,
    },
    /// A name is none of the known ones.
    #[error("there is no {what} {name:?}{}{}", hint(nearest), list(known))]
    UnknownName {
        /// The kind of thing that it should name.
        what: &'static str,
        /// The name.
        name: String,
        /// The most similar name that there is.
        nearest: Option<String>,
        /// The names there are; none where they are too many to list.
        known: Vec<String>,
    },
    /// A name is empty or has characters that cannot be printed.
    #[error("{name:?} is no name; it must have at least one character, and none that cannot be printed")]
    BadName {
        /// The name.
        name: String,
    },
    /// A name is given twice.
    #[error("the {what} {name:?} is there already, in line {line}; give each a name of its own")]
    Duplicate {
        /// The kind of thing that it names.
        what: &'static str,
        /// The name.
        name: String,
        /// The line where it is given first.
        line: usize,
    },
    /// Two keys exclude each other.
    #[error("it does not go together with {other}; give one of the two")]
    Excludes {
        /// The other key.
        other: &'static str,
    },
    /// A key needs another.
    #[error("it means nothing {without}")]
    Meaningless {
        /// Without what, or where.
        without: String,
    },
    /// A table must have one key, and has none or several.
    #[error("exactly one of {} is needed here, not {found}", known.join(", "))]
    ExactlyOne {
        /// The keys there are.
        known: Vec<&'static str>,
        /// The value that was found.
        found: String,
    },
    /// Two quantities are in the wrong order.
    #[error("{value} is not {relation} {other} = {limit}")]
    Order {
        /// The value.
        value: String,
        /// The relation that should hold.
        relation: &'static str,
        /// The key that limits it.
        other: &'static str,
        /// The value of that key.
        limit: String,
    },
    /// There is no such way through the network.
    #[error(transparent)]
    Route(#[from] RouteError),
    /// There cannot be such a link.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// The parameters of the file cannot be meant.
    #[error(transparent)]
    Sweep(#[from] SweepError),
    /// A file that is named cannot be read or makes no sense.
    #[error("{path:?}: {message}")]
    File {
        /// The path, as it is written.
        path: String,
        /// The reason.
        message: String,
    },
    /// The value makes no sense, for another reason.
    #[error("{reason}")]
    Senseless {
        /// The reason, with the value and what would be right.
        reason: String,
    },
}

/// The fault of a file's parameters, of their values, or of where they are used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SweepError {
    /// A parameter is used or fixed that the file does not have.
    #[error("there is no parameter {name:?}{}{}", hint(nearest), known_parameters(known))]
    Unknown {
        /// The name.
        name: String,
        /// The most similar name that there is.
        nearest: Option<String>,
        /// The parameters there are.
        known: Vec<String>,
    },
    /// The beginning of a parameter without its end.
    #[error("\"${{\" in {text} is never closed; write a parameter like \"${{load}}\"")]
    NotClosed {
        /// The text.
        text: String,
    },
    /// A parameter is used nowhere.
    #[error("nothing uses this parameter; write \"${{{name}}}\" where its values should stand, or leave it out")]
    Unused {
        /// The parameter.
        name: String,
    },
    /// A parameter cannot be called so.
    #[error(
        "{name:?} is no name of a parameter; write one like load, of letters, digits, - and _, with a letter first"
    )]
    BadName {
        /// The name.
        name: String,
    },
    /// There is no value.
    #[error("the list is empty; give at least one value, like [1, 2, 4]")]
    NoValue,
    /// A value is given twice.
    #[error("the value {value} is there already; give each value once")]
    Twice {
        /// The value.
        value: String,
    },
    /// A parameter is fixed twice.
    #[error("the parameter {name:?} is set twice; set it once")]
    SetTwice {
        /// The parameter.
        name: String,
    },
    /// A value has a parameter in it.
    #[error("{value} has \"${{\" in it, and the values of parameters cannot have parameters; write it out")]
    Nested {
        /// The value.
        value: String,
    },
    /// There are too many combinations.
    #[error("there are {}; at most {most} fit, so give fewer values", combinations(points))]
    TooMany {
        /// How many; `None` where they cannot be counted.
        points: Option<usize>,
        /// How many a file of this length may have.
        most: usize,
    },
    /// With its values the file is too long.
    #[error("with the values in their places the file has more than {most} bytes; give shorter ones")]
    TooLong {
        /// How many bytes values may take.
        most: usize,
    },
    /// One scenario is wanted, and there are several.
    #[error(
        "the file describes {points} scenarios, one for each combination of {}, and one is wanted here; \
         choose a value for each",
        names.join(", ")
    )]
    Several {
        /// How many there are.
        points: usize,
        /// The parameters with several values.
        names: Vec<String>,
    },
}

fn known_parameters(known: &[String]) -> String {
    if known.is_empty() { "; the file has no [sweep] that names parameters".to_owned() } else { list(known) }
}

fn combinations(points: &Option<usize>) -> String {
    points.map_or("more combinations of values than can be counted".to_owned(), |points| {
        format!("{points} combinations of values")
    })
}

fn list(known: &[String]) -> String {
    if known.is_empty() { String::new() } else { format!("; known are {}", known.join(", ")) }
}
