//! A file with its parameters: what is read of them, and what is refused.

use std::collections::BTreeSet;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::place::{OPENING, Piece, Room, Values, pieces, place_in_table};
use super::{Parameter, ParameterValue, points, said, values};
use crate::error::{Problem, SweepError};
use crate::file::reader::{Fault, cut, found, quoted};
use crate::nearest::nearest;

/// The key of the parameters.
const KEY: &str = "sweep";

/// No file has more combinations of values.
const POINTS_MAX: usize = 10_000;

/// Limit on the bytes of all combinations, which are read before the first is run. This takes some
/// seconds.
const READ_BYTES_MAX: usize = 1 << 30;

/// A file as it was parsed, without its parameters, and these.
pub(in crate::file) struct Template<'t> {
    root: DeTable<'t>,
    /// Where the parameters stand.
    at: usize,
    parameters: Vec<Parameter>,
}

impl<'t> Template<'t> {
    /// Parses a file, and checks its parameters. Those named in `fixed` have the value that stands there.
    pub(in crate::file) fn parse(text: &'t str, fixed: &[(String, String)]) -> Result<Self, Fault> {
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

    /// The same file again, of which the parameters are known.
    pub(super) fn again(text: &'t str, parameters: Vec<Parameter>) -> Result<Self, Fault> {
        Ok(Self { root: parse(text)?.0, at: 0, parameters })
    }

    pub(super) fn parameters(self) -> Vec<Parameter> {
        self.parameters
    }

    pub(super) fn points(&self) -> usize {
        points(&self.parameters).unwrap_or(usize::MAX)
    }

    /// Itself, where there is one combination of values.
    pub(in crate::file) fn only_one(self) -> Result<Self, Fault> {
        let points = self.points();
        if points == 1 {
            return Ok(self);
        }
        let several = self.parameters.iter().filter(|parameter| parameter.values.len() > 1);
        let names = several.map(|parameter| parameter.name.clone()).collect();
        Err(Fault::new(self.at, KEY, SweepError::Several { points, names }))
    }

    pub(in crate::file) fn said(&self, point: usize) -> String {
        said(&self.parameters, point)
    }

    /// The file with the values of this combination in their places.
    pub(in crate::file) fn at(&self, point: usize) -> Result<DeTable<'_>, Fault> {
        let names = self.parameters.iter().map(|parameter| parameter.name.as_str());
        let values: Values = names.zip(values(&self.parameters, point)).collect();
        let mut root: DeTable<'_> = self.root.clone();
        place_in_table(&mut root, &values, &mut Room::default())?;
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

/// A visitor of a text, its place and the keys that lead to it.
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

        /// The value in a place is what a person would have written there.
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
