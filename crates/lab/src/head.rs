//! The description in the head of an experiment's file, from which every other text is made.

use serde::{Deserialize, Serialize};

/// A value that an experiment uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parameter {
    /// The name of the quantity.
    pub name: String,
    /// The value, with its unit.
    pub value: String,
    /// Where it is from: the paper, or assumed.
    pub from: String,
}

/// The description in the head of an experiment's file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    /// Its title.
    pub title: String,
    /// The claim of the paper.
    pub claim: String,
    /// The network as a drawing.
    pub topology: String,
    /// The values used.
    pub parameters: Vec<Parameter>,
    /// The differences from the paper's method.
    pub deviations: Vec<String>,
}

impl Description {
    /// Reads the `//!` lines that `source` begins with.
    pub(crate) fn read(source: &str) -> Self {
        let head = source.lines().map_while(|line| line.strip_prefix("//!"));
        let mut sections = vec![(String::new(), Vec::new())];
        for line in head.map(|line| line.strip_prefix(' ').unwrap_or(line)) {
            match line.strip_prefix("# ") {
                Some(name) => sections.push((name.trim().to_owned(), Vec::new())),
                None => sections.last_mut().expect("one is there from the beginning").1.push(line),
            }
        }
        let mut description = Self::default();
        for (name, lines) in &sections {
            match name.as_str() {
                "" => description.title = paragraph(lines).trim_end_matches('.').to_owned(),
                "Claim" => description.claim = paragraph(lines),
                "Topology" => description.topology = drawing(lines),
                "Parameters" => description.parameters = parameters(lines),
                "Deviations" => description.deviations = list(lines),
                _ => {}
            }
        }
        description
    }
}

/// The first paragraph on one line.
fn paragraph(lines: &[&str]) -> String {
    let text = lines.iter().skip_while(|line| line.trim().is_empty()).take_while(|line| !line.trim().is_empty());
    text.map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}

/// The lines without the fences around the drawing and without empty lines at either end.
fn drawing(lines: &[&str]) -> String {
    let lines: Vec<&str> = lines.iter().copied().filter(|line| !line.starts_with("```")).collect();
    lines.join("\n").trim_matches('\n').trim_end().to_owned()
}

/// The rows of the table but its heading.
fn parameters(lines: &[&str]) -> Vec<Parameter> {
    let rows = lines.iter().filter_map(|line| line.trim().strip_prefix('|')?.strip_suffix('|'));
    let rows = rows.map(|row| row.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>()).skip(2);
    rows.filter_map(|row| {
        let [name, value, from] = <[String; 3]>::try_from(row).ok()?;
        Some(Parameter { name, value, from })
    })
    .collect()
}

/// The entries of the list, or the paragraph where there is none.
fn list(lines: &[&str]) -> Vec<String> {
    let mut entries: Vec<String> = Vec::new();
    for line in lines {
        match (line.strip_prefix("- "), entries.last_mut()) {
            (Some(begin), _) => entries.push(begin.trim().to_owned()),
            (None, Some(last)) if !line.trim().is_empty() => *last = format!("{last} {}", line.trim()),
            (None, _) => {}
        }
    }
    if entries.is_empty() { vec![paragraph(lines)] } else { entries }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_of_a_file_is_taken_apart() {
        let source = "//! Table I: rates.\n//!\n//! # Claim\n//!\n//! Two lines\n//! of a claim.\n//!\n//! # Topology\n//!\n\
            //! ```text\n//!  a ── b\n//! ```\n//!\n//! # Parameters\n//!\n//! | parameter | value | from |\n//! |---|---|---|\n\
            //! | rate | 10 Mbit/s | paper |\n//!\n//! # Deviations\n//!\n//! - One\n//!   thing.\n//! - Another.\n\nuse x;\n";
        let description = Description::read(source);
        assert_eq!(description.title, "Table I: rates");
        assert_eq!(description.claim, "Two lines of a claim.");
        assert_eq!(description.topology, " a ── b");
        let rate = Parameter { name: "rate".into(), value: "10 Mbit/s".into(), from: "paper".into() };
        assert_eq!(description.parameters, [rate]);
        assert_eq!(description.deviations, ["One thing.", "Another."]);
    }

    #[test]
    fn deviations_may_be_a_sentence() {
        assert_eq!(Description::read("//! # Deviations\n//!\n//! None.\n").deviations, ["None."]);
    }
}
