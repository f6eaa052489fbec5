//! What goes to standard output: tables for people, lines for programs.

use std::io::Write as _;

use anyhow::Context as _;
use fairpath_core::printable;

/// No line of a message is longer, in characters: paths and several addresses fit in.
const LINE_CHARS_MAX: usize = 2000;

/// No message has more lines.
const LINES_MAX: usize = 100;

/// A message as it may be shown. It may quote names and contents of files, and what a peer says: these
/// must neither flood the screen nor control it.
pub(crate) fn safe(message: &str) -> String {
    let mut lines = message.split('\n').map(|line| printable(line, LINE_CHARS_MAX));
    let mut shown: Vec<String> = lines.by_ref().take(LINES_MAX).collect();
    let left_out = lines.count();
    if left_out > 0 {
        shown.push(format!("… and {left_out} more lines"));
    }
    shown.join("\n")
}

/// A line on standard output, where somebody may have stopped reading.
pub(crate) fn print_line(line: &str) -> anyhow::Result<()> {
    writeln!(std::io::stdout(), "{line}").context("cannot write to standard output")
}

/// A table with a line of headings; columns are as wide as their widest cell, and those whose cells
/// begin with a digit or a dash stand to the right.
pub(crate) fn table(headings: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([headings[column].chars().count()]).max().unwrap_or(0)
    };
    let numeric = |column: usize| {
        !rows.is_empty() && rows.iter().all(|row| row[column].starts_with(|c: char| c.is_ascii_digit() || c == '-'))
    };
    let line = |cells: Vec<&str>| {
        let mut line = String::new();
        for (column, cell) in cells.iter().enumerate() {
            let width = width(column);
            match numeric(column) {
                true => line.push_str(&format!("{cell:>width$}  ")),
                false => line.push_str(&format!("{cell:<width$}  ")),
            }
        }
        line.trim_end().to_owned() + "\n"
    };
    let mut text = line(headings.to_vec());
    for row in rows {
        text += &line(row.iter().map(String::as_str).collect());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_neither_endless_nor_does_it_control_the_terminal() {
        assert_eq!(safe("first line\nµs: \u{1b}[2J"), "first line\nµs: \\u{1b}[2J");
        assert!(safe(&"x".repeat(4_000_000)).len() < 3_000);
        assert!(safe(&"\n".repeat(4_000_000)).len() < 3_000);
    }

    #[test]
    fn numbers_stand_to_the_right_and_words_to_the_left() {
        let rows = [vec!["lia".into(), "9.5".into()], vec!["uncoupled".into(), "18.25".into()]];
        assert_eq!(table(&["mode", "rate"], &rows), "mode        rate\nlia          9.5\nuncoupled  18.25\n");
    }
}
