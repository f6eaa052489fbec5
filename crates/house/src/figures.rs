//! Figures of performance in documents that have no evidence behind them.
//!
//! A figure of performance is a number with a unit, a share such as `0.93 of`, or a mean with its interval. It stands in
//! a sentence that tells a result, with one of the words in `RESULTS` such as *carries* or *took*. A number in a sentence
//! without such a word is a setting, a bound or an example. What stands in code, in backquotes, in pages that are made
//! by a program (`docs/evidence`, `docs/reference`) and in the guide's samples of output is not looked at.
//!
//! Evidence is a link to a page of `docs/evidence` in the same paragraph, table or item of a list, or the command that
//! measures it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::LazyLock;

use regex::Regex;

use crate::repository;

/// Words of a sentence that tells a result.
const RESULTS: &[&str] = &[
    "average",
    "better",
    "carried",
    "carries",
    "carry",
    "costs",
    "cost",
    "faster",
    "found",
    "gain",
    "gained",
    "gains",
    "goodput",
    "had",
    "has",
    "have",
    "in place of",
    "instead of",
    "keep",
    "keeps",
    "kept",
    "leaves",
    "loses",
    "lost",
    "lower",
    "mean",
    "measured",
    "median",
    "reached",
    "reaches",
    "slower",
    "sooner",
    "took",
    "take",
    "takes",
    "was",
    "were",
];

/// Beginnings of commands that measure.
const COMMANDS: &[&str] = &["`fairpath lab run", "`cargo bench", "`cargo test", "`make "];

static FIGURE: LazyLock<Regex> = LazyLock::new(|| {
    let units = "[GMk]?bit/s|packets/s|[GMk]B|ms|µs|ns|s|min|dB|%|times";
    let text = format!(r"\d(?: (?:{units})\b| %|%)|\b\d+\.\d+ (?:of|to \d+\.\d+ of)\b|\d ± \d");
    Regex::new(&text).expect("a constant")
});

static RESULT: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(&format!(r"(?i)\b(?:{})\b", RESULTS.join("|"))).expect("constant words"));

static QUOTED: LazyLock<Regex> = LazyLock::new(|| Regex::new("`[^`]*`").expect("a constant"));

/// A figure without evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The line of its paragraph, counted from 1.
    pub line: usize,
    /// The sentence.
    pub text: String,
}

/// The sentences of a document that tell a result in figures without evidence.
pub fn in_markdown(text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    for (line, paragraph) in paragraphs(text) {
        if paragraph.contains("evidence/") || COMMANDS.iter().any(|command| paragraph.contains(command)) {
            continue;
        }
        let prose = QUOTED.replace_all(&paragraph, "code");
        let sentences = prose.split_inclusive(". ").map(str::trim);
        let told = sentences.filter(|sentence| FIGURE.is_match(sentence) && RESULT.is_match(sentence));
        found.extend(told.map(|sentence| Finding { line, text: sentence.chars().take(90).collect() }));
    }
    found
}

/// Paragraphs, items of lists and rows of tables, each with its first line; code is left out. A table belongs to the
/// paragraph before it, so its rows have the evidence that is named there.
fn paragraphs(text: &str) -> Vec<(usize, String)> {
    let (mut all, mut is_code, mut begins): (Vec<(usize, String)>, _, _) = (Vec::new(), false, true);
    let mut before_table = String::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.starts_with("```") {
            is_code = !is_code;
            begins = true;
        } else if is_code || line.starts_with(['#', '<']) || line.is_empty() {
            begins = true;
        } else if line.starts_with('|') {
            if !begins || !line.starts_with("|---") {
                before_table = all
                    .last()
                    .map(|(_, text)| text.clone())
                    .filter(|text| !text.starts_with('|'))
                    .unwrap_or(before_table);
            }
            let evidence = if has_evidence(&before_table) { " evidence/" } else { "" };
            all.push((at + 1, format!("{line}{evidence}")));
            begins = true;
        } else if begins || line.starts_with("- ") {
            all.push((at + 1, line.to_owned()));
            begins = false;
        } else if let Some((_, last)) = all.last_mut() {
            last.push(' ');
            last.push_str(line);
        }
    }
    all
}

fn has_evidence(paragraph: &str) -> bool {
    paragraph.contains("evidence/") || COMMANDS.iter().any(|command| paragraph.contains(command))
}

/// The documents with figures that have no evidence.
pub fn findings() -> BTreeMap<String, Vec<Finding>> {
    let generated = ["docs/evidence/", "docs/reference/"];
    let documents = repository::documents().into_iter().map(|path| (repository::relative(&path), path));
    let written = documents.filter(|(name, _)| !generated.iter().any(|folder| name.starts_with(folder)));
    let found = written.map(|(name, path)| (name, in_markdown(&repository::read(&path))));
    found.filter(|(_, found)| !found.is_empty()).collect()
}

/// Where the recorded counts lie.
pub fn file() -> PathBuf {
    repository::root().join("crates/house/figures.toml")
}

/// The recorded counts. A document that is not recorded may have none.
pub fn recorded() -> BTreeMap<String, usize> {
    let table: toml::Table = repository::read(&file()).parse().expect("figures.toml is TOML");
    let count = |value: &toml::Value| value.as_integer().and_then(|count| usize::try_from(count).ok()).unwrap_or(0);
    table.iter().map(|(name, value)| (name.clone(), count(value))).collect()
}

/// The text of `figures.toml` for these findings.
pub fn to_toml(findings: &BTreeMap<String, Vec<Finding>>) -> String {
    let head = "# Figures of performance without evidence that are left in each document. The numbers only fall.\n\
                # `cargo run -p fairpath-house -- figures` lists the sentences, `… figures --record` writes smaller\n\
                # numbers down. The head of crates/house/src/figures.rs says what counts as such a figure.\n\n";
    let line = |(name, found): (&String, &Vec<Finding>)| format!("\"{name}\" = {}\n", found.len());
    head.to_owned() + &findings.iter().map(line).collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        in_markdown(text).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn a_result_in_figures_is_found_and_settings_are_not() {
        let results =
            ["It carries 40 Mbit/s.", "Two paths took 3.5 s.", "They have 0.93 of the sum.", "It has 8 ± 2 packets."];
        for text in results {
            assert_eq!(lines(text), [1], "{text}");
        }
        let settings = [
            "The deadline is 300 ms.",
            "At most 20 Mbit/s leave.",
            "It is tried every 30 s.",
            "Version 1.2 has it.",
            "Give `--limit 20Mbit/s`, as it has `5 ms`.",
        ];
        for text in settings {
            assert_eq!(lines(text), [0; 0], "{text}");
        }
    }

    #[test]
    fn a_link_to_evidence_or_the_command_stands_for_its_paragraph_and_the_table_below() {
        assert_eq!(lines("It carries 40 Mbit/s ([here](evidence/a/README.md)).\n\nIt took 2 s.\n"), [3]);
        assert_eq!(
            lines("By `fairpath lab run olia` it took 2 s.\n\n| what | has |\n|---|---|\n| it took | 3 s |\n"),
            [0; 0]
        );
        assert_eq!(lines("In a table.\n\n| what | x |\n|---|---|\n| it took | 3 s |\n"), [5]);
        assert_eq!(lines("```\nit took 3 s\n```\n- One.\n- It took 3 s.\n"), [5]);
    }
}
