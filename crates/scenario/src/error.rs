//! What can be wrong with a scenario file, and where.

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
    /// What is wrong.
    pub problem: Box<Problem>,
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, column, key, problem } = self;
        let colon = if key.is_empty() { "" } else { ": " };
        write!(f, "{file}:{line}:{column}: {key}{colon}{problem}")
    }
}

impl core::error::Error for ScenarioError {}

/// What is wrong with the value of a key, or with the key.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Problem {
    /// The file is not TOML.
    #[error("this is not TOML: {message}")]
    Syntax {
        /// What the parser of TOML says.
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
        /// What it should be, with an example.
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
        /// What would be right.
        allowed: String,
    },
    /// A name is none of the known ones.
    #[error("there is no {what} {name:?}{}{}", hint(nearest), list(known))]
    UnknownName {
        /// What it should name.
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
        /// What it names.
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
        /// What there is.
        found: String,
    },
    /// Two quantities are in the wrong order.
    #[error("{value} is not {relation} {other} = {limit}")]
    Order {
        /// The value.
        value: String,
        /// What it should be.
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
    /// A file that is named cannot be read or makes no sense.
    #[error("{path:?}: {message}")]
    File {
        /// The path, as it is written.
        path: String,
        /// What is wrong with it.
        message: String,
    },
    /// The value makes no sense, for another reason.
    #[error("{reason}")]
    Senseless {
        /// The reason, with the value and what would be right.
        reason: String,
    },
}

fn list(known: &[String]) -> String {
    if known.is_empty() { String::new() } else { format!("; known are {}", known.join(", ")) }
}
