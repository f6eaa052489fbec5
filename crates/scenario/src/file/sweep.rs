//! The parameters of a scenario file, and the values that they take.
//!
//! The values are put into the tree of the file before it is read, where `${…}` stands. So every key
//! can have a parameter, the reader knows nothing of them, and what it finds wrong keeps its place.

use core::fmt;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::ScenarioFile;
use super::reader::{Fault, cut, found, quoted};
use super::source::Source;
use crate::error::{Problem, ScenarioError, SweepError};
use crate::nearest::nearest;

/// The key of the parameters.
const KEY: &str = "sweep";

/// What begins a parameter within a text; `}` ends it.
const OPENING: &str = "${";

/// No file has more combinations of values.
const POINTS_MAX: usize = 10_000;

/// All combinations are read before the first is run: so many bytes, which takes some seconds.
const READ_BYTES_MAX: usize = 1 << 30;

/// Values in their places take at most so many bytes: a file that is written out has no more.
const PLACED_BYTES_MAX: usize = 16 << 20;

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
        let parameters = template.parameters;
        Ok(Self { source, parameters })
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
        let root = parse(self.source.text()).map_err(|fault| self.source.error(fault))?.0;
        let template = Template { root, at: 0, parameters: self.parameters.clone() };
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

/// A file as it was parsed, without its parameters, and these.
pub(super) struct Template<'t> {
    root: DeTable<'t>,
    /// Where the parameters stand.
    at: usize,
    parameters: Vec<Parameter>,
}

impl<'t> Template<'t> {
    /// Parses a file, and checks its parameters. Those named in `fixed` have the value that stands there.
    pub(super) fn parse(text: &'t str, fixed: &[(String, String)]) -> Result<Self, Fault> {
        let (root, sweep) = parse(text)?;
        let at = sweep.as_ref().map_or(0, |sweep| sweep.span().start);
        let mut parameters = sweep.map_or(Ok(Vec::new()), |sweep| read_parameters(&sweep))?;
        check_uses(&root, &parameters)?;
        fix(&mut parameters, fixed).map_err(|error| Fault::new(at, KEY, error))?;
        let (points, most) = (points(&parameters), (READ_BYTES_MAX / text.len().max(1)).clamp(1, POINTS_MAX));
        if points.is_none_or(|points| points > most) {
            return Err(Fault::new(at, KEY, SweepError::TooMany { points, most }));
        }
        Ok(Self { root, at, parameters })
    }

    fn points(&self) -> usize {
        points(&self.parameters).unwrap_or(usize::MAX)
    }

    /// Itself, where there is one combination of values.
    pub(super) fn only_one(self) -> Result<Self, Fault> {
        let points = self.points();
        if points == 1 {
            return Ok(self);
        }
        let several = self.parameters.iter().filter(|parameter| parameter.values.len() > 1);
        let names = several.map(|parameter| parameter.name.clone()).collect();
        Err(Fault::new(self.at, KEY, SweepError::Several { points, names }))
    }

    pub(super) fn said(&self, point: usize) -> String {
        said(&self.parameters, point)
    }

    /// The file with the values of this combination in their places.
    pub(super) fn at(&self, point: usize) -> Result<DeTable<'_>, Fault> {
        let names = self.parameters.iter().map(|parameter| parameter.name.as_str());
        let values: Values = names.zip(values(&self.parameters, point)).collect();
        let mut root: DeTable<'_> = self.root.clone();
        let mut room = PLACED_BYTES_MAX;
        place_in_table(&mut root, &values, &mut room)?;
        Ok(root)
    }
}

/// The tree of a file without its parameters, and these.
fn parse(text: &str) -> Result<(DeTable<'_>, Option<Spanned<DeValue<'_>>>), Fault> {
    let parsed = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        Fault::new(at, "", Problem::Syntax { message: error.message().to_owned() })
    })?;
    let mut root = parsed.into_inner();
    let sweep = root.remove(KEY);
    Ok((root, sweep))
}

fn read_parameters(sweep: &Spanned<DeValue>) -> Result<Vec<Parameter>, Fault> {
    let wrong = |at, key: &str, value: &DeValue, expected: &str| {
        Fault::new(at, key, Problem::WrongKind { found: found(value), expected: expected.to_owned() })
    };
    let DeValue::Table(table) = sweep.get_ref() else {
        let expected = "a table of parameters, like { load = [1, 2, 4] }";
        return Err(wrong(sweep.span().start, KEY, sweep.get_ref(), expected));
    };
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    let mut parameters = Vec::new();
    for (key, given) in entries {
        let (name, at) = (key.get_ref().clone().into_owned(), key.span().start);
        let path = format!("{KEY}.{name}");
        if !is_name(&name) {
            return Err(Fault::new(at, KEY, SweepError::BadName { name: cut(&name) }));
        }
        let list: &[Spanned<DeValue>] =
            if let DeValue::Array(list) = given.get_ref() { list } else { core::slice::from_ref(given) };
        if list.is_empty() {
            return Err(Fault::new(given.span().start, path, SweepError::NoValue));
        }
        if list.len() > POINTS_MAX {
            let error = SweepError::TooMany { points: Some(list.len()), most: POINTS_MAX };
            return Err(Fault::new(given.span().start, path, error));
        }
        let mut values: Vec<ParameterValue> = Vec::new();
        for element in list {
            let at = element.span().start;
            let value = ParameterValue::read(element.get_ref());
            let value = value.ok_or_else(|| wrong(at, &path, element.get_ref(), "a text, a number, true or false"))?;
            check_value(&value, &values).map_err(|error| Fault::new(at, &*path, error))?;
            values.push(value);
        }
        parameters.push(Parameter { name, at, values });
    }
    Ok(parameters)
}

fn is_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.chars().all(|one| one.is_ascii_alphanumeric() || one == '_' || one == '-')
}

fn check_value(value: &ParameterValue, before: &[ParameterValue]) -> Result<(), SweepError> {
    if value.plain().contains(OPENING) {
        return Err(SweepError::Nested { value: value.to_string() });
    }
    if before.contains(value) { Err(SweepError::Twice { value: value.to_string() }) } else { Ok(()) }
}

fn fix(parameters: &mut [Parameter], fixed: &[(String, String)]) -> Result<(), SweepError> {
    let mut seen = BTreeSet::new();
    for (name, text) in fixed {
        if !seen.insert(name) {
            return Err(SweepError::SetTwice { name: name.clone() });
        }
        let at = parameters.iter().position(|parameter| parameter.name == *name);
        let at = at.ok_or_else(|| unknown(name, parameters))?;
        // Where the file has texts only, 5 and true are texts too.
        let texts = parameters[at].values.iter().all(|value| matches!(value, ParameterValue::Text(_)));
        let value = if texts { ParameterValue::Text(text.clone()) } else { ParameterValue::given(text) };
        check_value(&value, &[])?;
        parameters[at].values = vec![value];
    }
    Ok(())
}

fn unknown(name: &str, parameters: &[Parameter]) -> SweepError {
    let known: Vec<String> = parameters.iter().map(|parameter| parameter.name.clone()).collect();
    SweepError::Unknown { name: cut(name), nearest: nearest(name, known.iter().map(String::as_str)), known }
}

/// A part of a text.
enum Piece<'a> {
    Text(&'a str),
    Parameter(&'a str),
    /// A parameter that does not end.
    Open,
}

fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(OPENING) {
        if !before.is_empty() {
            pieces.push(Piece::Text(before));
        }
        let Some((name, behind)) = after.split_once('}') else {
            pieces.push(Piece::Open);
            return pieces;
        };
        pieces.push(Piece::Parameter(name));
        rest = behind;
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest));
    }
    pieces
}

/// Refuses what is no parameter, and a parameter that stands nowhere. Told is what comes first in the
/// file, and not in the order of the tree.
fn check_uses(root: &DeTable, parameters: &[Parameter]) -> Result<(), Fault> {
    let mut used = BTreeSet::new();
    let mut first: Option<Fault> = None;
    each_text(root, &mut Vec::new(), &mut |text, at, path| {
        for piece in pieces(text) {
            let error = match piece {
                Piece::Text(_) => continue,
                Piece::Parameter(name) => match parameters.iter().position(|parameter| parameter.name == name) {
                    Some(known) => {
                        used.insert(known);
                        continue;
                    }
                    None => unknown(name, parameters),
                },
                Piece::Open => SweepError::NotClosed { text: quoted(text) },
            };
            if first.as_ref().is_none_or(|first| at < first.at) {
                first = Some(Fault::new(at, path.join("."), error));
            }
        }
    });
    if let Some(fault) = first {
        return Err(fault);
    }
    match parameters.iter().enumerate().find(|(at, _)| !used.contains(at)) {
        None => Ok(()),
        Some((_, Parameter { name, at, .. })) => {
            Err(Fault::new(*at, format!("{KEY}.{name}"), SweepError::Unused { name: name.clone() }))
        }
    }
}

/// What is done with a text, its place and the keys that lead to it.
type Visit<'v> = dyn FnMut(&str, usize, &[&str]) + 'v;

fn each_text<'a>(table: &'a DeTable, path: &mut Vec<&'a str>, visit: &mut Visit) {
    fn inside<'a>(value: &'a Spanned<DeValue>, path: &mut Vec<&'a str>, visit: &mut Visit) {
        match value.get_ref() {
            DeValue::String(text) => visit(text, value.span().start, path),
            DeValue::Array(list) => list.iter().for_each(|element| inside(element, path, visit)),
            DeValue::Table(table) => each_text(table, path, visit),
            _ => {}
        }
    }
    for (key, value) in table {
        path.push(key.get_ref());
        inside(value, path, visit);
        path.pop();
    }
}

type Values<'t> = BTreeMap<&'t str, &'t ParameterValue>;

fn place_in_table<'t>(table: &mut DeTable<'t>, values: &Values<'t>, room: &mut usize) -> Result<(), Fault> {
    table.iter_mut().try_for_each(|(_, value)| place(value, values, room))
}

/// Puts values in the place of parameters; `room` is how many bytes they may still take. The place of
/// what is replaced stays that of the parameter.
fn place<'t>(value: &mut Spanned<DeValue<'t>>, values: &Values<'t>, room: &mut usize) -> Result<(), Fault> {
    let at = value.span().start;
    match value.get_mut() {
        DeValue::String(text) if text.contains(OPENING) => {
            let pieces = pieces(text);
            let length = |piece: &Piece| match piece {
                Piece::Parameter(name) => values.get(name).map_or(0, |value| value.plain().len()),
                Piece::Text(_) | Piece::Open => 0,
            };
            let needed = pieces.iter().map(length).fold(0, usize::saturating_add);
            let too_long = || Fault::new(at, "", SweepError::TooLong { most: PLACED_BYTES_MAX });
            *room = room.checked_sub(needed).ok_or_else(too_long)?;
            let placed = placed(&pieces, values);
            *value.get_mut() = placed;
            Ok(())
        }
        DeValue::Array(list) => list.iter_mut().try_for_each(|element| place(element, values, room)),
        DeValue::Table(table) => place_in_table(table, values, room),
        _ => Ok(()),
    }
}

/// A parameter alone is its value; with something else around it the whole is a text.
fn placed<'t>(pieces: &[Piece], values: &Values<'t>) -> DeValue<'t> {
    if let [Piece::Parameter(name)] = pieces
        && let Some(value) = values.get(name)
    {
        return value.toml();
    }
    let mut whole = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(text) => whole += text,
            Piece::Parameter(name) => whole += &values.get(name).map_or(Cow::Borrowed(""), |value| value.plain()),
            Piece::Open => {}
        }
    }
    DeValue::String(whole.into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A value of TOML, written out, without a parameter in it.
    fn any_value() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            "[ -~]{0,12}"
                .prop_filter("no parameter", |text| !text.contains(OPENING))
                .prop_map(|text| format!("{text:?}")),
            any::<i64>().prop_map(|number| number.to_string()),
            any::<u32>().prop_map(|number| format!("0x{number:x}")),
            (-1e6..1e6).prop_map(|number: f64| format!("{number:.3}")),
            any::<bool>().prop_map(|flag| flag.to_string()),
            Just("1979-05-27".to_owned()),
        ];
        leaf.prop_recursive(3, 20, 4, |inner| {
            let list =
                proptest::collection::vec(inner.clone(), 0..4).prop_map(|values| format!("[{}]", values.join(", ")));
            let table = proptest::collection::vec(inner, 0..4).prop_map(|values| {
                let entries = values.iter().enumerate().map(|(at, value)| format!("k{at} = {value}"));
                format!("{{ {} }}", entries.collect::<Vec<_>>().join(", "))
            });
            prop_oneof![list, table]
        })
    }

    proptest! {
        /// Neither a value nor a place.
        #[test]
        fn a_file_without_parameters_is_read_as_it_stands(values in proptest::collection::vec(any_value(), 0..6)) {
            let lines = values.iter().enumerate().map(|(at, value)| format!("key{at} = {value}\n"));
            let text: String = lines.collect();
            let (root, _) = parse(&text).unwrap();
            let template = Template::parse(&text, &[]).unwrap();
            prop_assert_eq!(template.points(), 1);
            prop_assert_eq!(format!("{:?}", template.at(0).unwrap()), format!("{root:?}"));
        }

        /// What stands in a place is what a person would have written there.
        #[test]
        fn a_parameter_alone_is_its_value(value in any_value().prop_filter("one value", |text| !text.starts_with(['[', '{', '1']))) {
            let swept = format!("key = \"${{p}}\"\nsweep = {{ p = {value} }}");
            let template = Template::parse(&swept, &[]).unwrap();
            let placed = template.at(0).unwrap();
            let written = format!("key = {value}");
            let (written, _) = parse(&written).unwrap();
            let shown = |root: &DeTable| found(root["key"].get_ref());
            // Another way to write the same number.
            let number = |text: String| text.strip_prefix("0x").map_or(text.clone(), |hex| i64::from_str_radix(hex, 16).unwrap().to_string());
            prop_assert_eq!(shown(&placed), number(shown(&written)));
            prop_assert!(placed["key"].get_ref().same_type(written["key"].get_ref()));
        }
    }
}
