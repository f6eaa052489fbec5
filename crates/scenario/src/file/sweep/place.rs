//! Where parameters stand in a file, and their values in these places.

use std::borrow::Cow;
use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::ParameterValue;
use crate::error::SweepError;
use crate::file::reader::Fault;

/// The beginning of a parameter within a text; `}` ends it.
pub(super) const OPENING: &str = "${";

/// Limit on the bytes of all placed values: a file that is written out has no more.
const PLACED_BYTES_MAX: usize = 16 << 20;

/// A part of a text.
pub(super) enum Piece<'a> {
    Text(&'a str),
    Parameter(&'a str),
    /// A parameter that does not end.
    Open,
}

pub(super) fn pieces(text: &str) -> Vec<Piece<'_>> {
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

/// How many bytes values may still take.
pub(super) struct Room(usize);

impl Default for Room {
    fn default() -> Self {
        Self(PLACED_BYTES_MAX)
    }
}

/// The value of each parameter by its name.
pub(super) type Values<'t> = BTreeMap<&'t str, &'t ParameterValue>;

pub(super) fn place_in_table<'t>(table: &mut DeTable<'t>, values: &Values<'t>, room: &mut Room) -> Result<(), Fault> {
    table.iter_mut().try_for_each(|(_, value)| place(value, values, room))
}

/// Puts values in the place of parameters. The place of what is replaced stays that of the parameter.
fn place<'t>(value: &mut Spanned<DeValue<'t>>, values: &Values<'t>, room: &mut Room) -> Result<(), Fault> {
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
            room.0 = room.0.checked_sub(needed).ok_or_else(too_long)?;
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
