//! Counts that only ever fall: how many faults of English each part of the tree still has.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::english::{self, Fault, Finding};
use crate::repository;

/// How many faults a part of the tree has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Sentences that are too long.
    pub long: usize,
    /// Lines of comments that begin with a relative word.
    pub relative: usize,
}

/// Where the recorded counts lie.
pub fn file() -> PathBuf {
    repository::root().join("crates/house/english.toml")
}

/// The parts of the tree by name, with the faults of each file: one part for each crate, and one for documents.
pub fn findings() -> BTreeMap<String, Vec<(PathBuf, Finding)>> {
    let mut parts: BTreeMap<String, Vec<(PathBuf, Finding)>> = BTreeMap::new();
    for folder in repository::crate_folders() {
        let part = parts.entry(repository::relative(&folder)).or_default();
        for file in repository::rust_files(&folder) {
            let found = english::in_source(&repository::read(&file));
            part.extend(found.into_iter().map(|finding| (file.clone(), finding)));
        }
    }
    let documents = parts.entry("documents".to_owned()).or_default();
    // Pages of evidence are made of comments that are counted where they stand.
    let written =
        repository::documents().into_iter().filter(|file| !repository::relative(file).starts_with("docs/evidence/"));
    for file in written {
        let found = english::in_markdown(&repository::read(&file));
        documents.extend(found.into_iter().map(|finding| (file.clone(), finding)));
    }
    parts
}

/// The counts of [`findings`].
pub fn counts() -> BTreeMap<String, Count> {
    let count = |found: &[(PathBuf, Finding)]| {
        let of = |fault| found.iter().filter(|(_, finding)| finding.fault == fault).count();
        Count { long: of(Fault::Long), relative: of(Fault::Relative) }
    };
    findings().into_iter().map(|(part, found)| (part, count(&found))).collect()
}

/// The recorded counts. A part that is not recorded may have none.
pub fn recorded() -> BTreeMap<String, Count> {
    let table: toml::Table = repository::read(&file()).parse().expect("english.toml is TOML");
    let number = |value: &toml::Value, key| {
        value.get(key).and_then(toml::Value::as_integer).and_then(|n| usize::try_from(n).ok()).unwrap_or(0)
    };
    let count = |value: &toml::Value| Count { long: number(value, "long"), relative: number(value, "relative") };
    table.iter().map(|(part, value)| (part.clone(), count(value))).collect()
}

/// The text of `english.toml` with these counts.
pub fn to_toml(counts: &BTreeMap<String, Count>) -> String {
    let head = "# Faults of English that are left: sentences that are too long, and lines of comments that begin with a\n\
                # relative word. The numbers only fall. `cargo run -p fairpath-house -- english` lists the places,\n\
                # `… english --record` writes smaller numbers down.\n\n";
    let line = |(part, count): (&String, &Count)| {
        format!("\"{part}\" = {{ long = {}, relative = {} }}\n", count.long, count.relative)
    };
    let left = counts.iter().filter(|(_, count)| **count != Count::default());
    head.to_owned() + &left.map(line).collect::<String>()
}
