//! What goes to standard output: tables for people, lines for programs.

use std::io::Write as _;

use anyhow::Context as _;

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
    fn numbers_stand_to_the_right_and_words_to_the_left() {
        let rows = [vec!["lia".into(), "9.5".into()], vec!["uncoupled".into(), "18.25".into()]];
        assert_eq!(table(&["mode", "rate"], &rows), "mode        rate\nlia          9.5\nuncoupled  18.25\n");
    }
}
