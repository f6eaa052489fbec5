//! The text of a scenario file, for saying where something stands in it.

use std::sync::Arc;

use super::reader::Fault;
use crate::error::ScenarioError;

/// A file by its name and its text.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    name: String,
    /// Shared by all points of a sweep.
    text: Arc<str>,
    /// With which values of its parameters it is read, for messages.
    with: String,
}

impl Source {
    pub(crate) fn new(name: &str, text: &str) -> Self {
        Self { name: name.to_owned(), text: text.into(), with: String::new() }
    }

    /// The same file, read with these values of its parameters.
    pub(crate) fn with(&self, with: String) -> Self {
        Self { with, ..self.clone() }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The line of the byte at `offset`, from 1.
    pub(crate) fn line(&self, offset: usize) -> usize {
        self.before(offset).matches('\n').count() + 1
    }

    pub(crate) fn error(&self, fault: Fault) -> ScenarioError {
        let before = self.before(fault.at);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        ScenarioError {
            file: self.name.clone(),
            line: self.line(fault.at),
            column: before[line_start..].chars().count() + 1,
            key: fault.key,
            problem: fault.problem,
            with: self.with.clone(),
        }
    }

    fn before(&self, offset: usize) -> &str {
        let end = (0..=offset.min(self.text.len())).rev().find(|end| self.text.is_char_boundary(*end));
        &self.text[..end.unwrap_or(0)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Problem;

    #[test]
    fn places_are_counted_in_lines_and_characters_from_one() {
        let source = Source::new("x.toml", "a = 1\nö = \"µ\" # z");
        let place = |offset| {
            let error = source.error(Fault::new(offset, "", Problem::Syntax { message: String::new() }));
            (error.line, error.column)
        };
        assert_eq!(place(0), (1, 1));
        assert_eq!(place(5), (1, 6), "the newline belongs to its line");
        assert_eq!(place(6), (2, 1));
        // ö has two bytes.
        assert_eq!(place(8), (2, 2));
        assert_eq!(place(7), (2, 1), "inside of a character is before it");
        assert_eq!(place(1_000), (2, 12));
    }
}
