//! The parameters of a scenario file, and the values that they take.
//!
//! The values are put into the tree of the file before it is read, where `${…}` stands. So every key
//! can have a parameter, the reader knows nothing of them, and what it finds wrong keeps its place.

mod place;
mod template;

use core::fmt;
use std::borrow::Cow;

use toml::Spanned;
use toml::de::DeValue;

use super::ScenarioFile;
use super::reader::found;
use super::source::Source;
use crate::error::ScenarioError;

pub(super) use template::Template;

/// A value of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParameterValue {
    /// A text.
    Text(String),
    /// A number as it is written; whole ones in the decimal system.
    Number(String),
    /// A flag.
    Flag(bool),
}

impl ParameterValue {
    fn read(value: &DeValue) -> Option<Self> {
        Some(match value {
            DeValue::String(text) => Self::Text(text.clone().into_owned()),
            DeValue::Integer(number) => {
                let decimal = i128::from_str_radix(number.as_str(), number.radix());
                Self::Number(decimal.map_or_else(|_| number.to_string(), |number| number.to_string()))
            }
            DeValue::Float(number) => Self::Number(number.as_str().to_owned()),
            DeValue::Boolean(flag) => Self::Flag(*flag),
            DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => return None,
        })
    }

    /// A value that is given outside of the file, where texts need no quotes.
    fn given(text: &str) -> Self {
        let parsed = DeValue::parse(text).ok().and_then(|value| Self::read(value.get_ref()));
        parsed.unwrap_or_else(|| Self::Text(text.to_owned()))
    }

    /// The value as it stands within a text: a text without quotes.
    pub fn plain(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) | Self::Number(text) => text.into(),
            Self::Flag(flag) => flag.to_string().into(),
        }
    }

    /// The number, where it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Number(text) => text.parse().ok().filter(|number: &f64| number.is_finite()),
            Self::Text(_) | Self::Flag(_) => None,
        }
    }

    fn toml(&self) -> DeValue<'_> {
        match self {
            Self::Text(text) => DeValue::String(text.into()),
            Self::Number(text) => {
                DeValue::parse(text).map_or_else(|_| DeValue::String(text.into()), Spanned::into_inner)
            }
            Self::Flag(flag) => DeValue::Boolean(*flag),
        }
    }
}

/// As in a scenario file, but a long text is cut.
impl fmt::Display for ParameterValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&found(&self.toml()))
    }
}

/// A scenario file whose parameters may have several values: a scenario for each combination.
///
/// ```
/// use fairpath_scenario::Sweep;
///
/// let text = r#"
///     duration = "10s"
///     link = [{ from = "a", to = "b", rate = "${rate}Mbit/s", delay = "${delay}" }]
///     flow = [{ name = "bulk", from = "a", to = "b" }]
///     sweep = { rate = [10, 20], delay = ["5ms", "50ms"] }
/// "#;
/// let no_files = |_: &str| Err("no files can be read here".to_owned());
/// let sweep = Sweep::parse_with(text, "my.toml", &[], &no_files)?;
/// assert_eq!(sweep.points(), 4);
/// let said: Vec<String> = sweep.values(2).iter().map(|value| value.to_string()).collect();
/// assert_eq!(said, ["20", "\"5ms\""]);
/// let scenario = sweep.file(2, &no_files)?.expand(None)?;
/// assert_eq!(scenario.links[0].config.delay.as_millis(), 5);
/// # Ok::<(), fairpath_scenario::ScenarioError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Sweep {
    source: Source,
    parameters: Vec<Parameter>,
}

impl Sweep {
    /// Reads a scenario file, with every combination of the values of its parameters. `fixed` has names
    /// of parameters with the one value that each is to have, in place of those of the file: as in
    /// TOML, or a text without quotes. `read` gives the text of a file that it names, or says why it
    /// cannot.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong with it, with its place, and where it depends on them the values.
    pub fn parse_with(
        text: &str,
        file: &str,
        fixed: &[(String, String)],
        read: &dyn Fn(&str) -> Result<String, String>,
    ) -> Result<Self, ScenarioError> {
        let source = Source::new(file, text);
        let template = Template::parse(text, fixed).map_err(|fault| source.error(fault))?;
        for point in 0..template.points() {
            ScenarioFile::read_point(&template, point, &source, read)?;
        }
        Ok(Self { source, parameters: template.parameters() })
    }

    /// The parameters by name, in the order of the file, and the values of each.
    pub fn parameters(&self) -> impl ExactSizeIterator<Item = (&str, &[ParameterValue])> {
        self.parameters.iter().map(|parameter| (parameter.name.as_str(), parameter.values.as_slice()))
    }

    /// How many combinations of values there are; one where there are no parameters.
    pub fn points(&self) -> usize {
        points(&self.parameters).unwrap_or(usize::MAX)
    }

    /// The value of each parameter in the combination `point`, which counts from 0 in the order of the
    /// file: the last parameter changes first.
    pub fn values(&self, point: usize) -> Vec<&ParameterValue> {
        values(&self.parameters, point)
    }

    /// The same, for people, as in `load = 2, rtt = "20ms"`; empty where there are no parameters.
    pub fn said(&self, point: usize) -> String {
        said(&self.parameters, point)
    }

    /// The file with the values of the combination `point`. Only the values are kept of a sweep, so the
    /// text is read again.
    ///
    /// # Errors
    ///
    /// None, unless `read` gives another text than before.
    pub fn file(
        &self,
        point: usize,
        read: &dyn Fn(&str) -> Result<String, String>,
    ) -> Result<ScenarioFile, ScenarioError> {
        let template = Template::again(self.source.text(), self.parameters.clone());
        let template = template.map_err(|fault| self.source.error(fault))?;
        ScenarioFile::read_point(&template, point, &self.source, read)
    }
}

#[derive(Clone, Debug)]
struct Parameter {
    name: String,
    at: usize,
    values: Vec<ParameterValue>,
}

fn points(parameters: &[Parameter]) -> Option<usize> {
    parameters.iter().try_fold(1_usize, |points, parameter| points.checked_mul(parameter.values.len()))
}

fn values(parameters: &[Parameter], point: usize) -> Vec<&ParameterValue> {
    let mut rest = point;
    let mut values: Vec<&ParameterValue> = Vec::new();
    for Parameter { values: all, .. } in parameters.iter().rev() {
        values.push(&all[rest % all.len()]);
        rest /= all.len();
    }
    values.reverse();
    values
}

fn said(parameters: &[Parameter], point: usize) -> String {
    let values = parameters.iter().zip(values(parameters, point));
    values.map(|(parameter, value)| format!("{} = {value}", parameter.name)).collect::<Vec<_>>().join(", ")
}
