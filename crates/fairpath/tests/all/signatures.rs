//! The surface of the library names no type of the crates below it: they may change where it does not.

use std::path::Path;

/// Heads that may: units, changed terms, the account of a quota that the sockets count on, bounds of live packets, and a
/// hidden function for the program of this workspace.
const ALLOWED: &[&str] = &[
    "pub use fairpath_engine::{Bitrate, ByteCount as Amount, TermsChange};",
    "pub use fairpath_quic::{Allowance, PathControl};",
    "pub use flows::{DEADLINE_MAX",
    "pub fn paths(reports: Vec<PathReport>)",
];

/// The types that a source takes from the crates below.
fn foreign(source: &str) -> Vec<&str> {
    let uses = source.lines().filter(|line| line.starts_with("use quic::") || line.starts_with("use fairpath_quic::"));
    let items = uses.flat_map(|line| line.split(['{', ',', '}', ';']));
    let names = items.filter_map(|item| item.rsplit([' ', ':']).next());
    names.filter(|name| name.starts_with(char::is_uppercase)).collect()
}

/// The heads of all that is public, and of what is implemented, each in one line.
fn heads(source: &str) -> Vec<String> {
    let mut heads = Vec::new();
    let mut lines = source.split("#[cfg(test)]").next().unwrap_or_default().lines().map(str::trim);
    while let Some(line) = lines.next() {
        if !["pub ", "impl ", "impl<"].iter().any(|word| line.starts_with(word)) {
            continue;
        }
        let mut head = line.to_owned();
        // The fields of a struct and the parameters of a function end alike.
        let is_whole = |head: &str| head.ends_with([';', '{', '}']) || (head.ends_with(',') && !head.contains("fn "));
        while !is_whole(&head) {
            head += lines.next().expect("an item ends");
        }
        // The fields of tuples are private where they do not say otherwise.
        if let Some(fields) = head.find('(').filter(|_| head.starts_with("pub struct ") && !head.contains("(pub ")) {
            head.truncate(fields);
        }
        // A value says nothing of types.
        let signature = head.split_once(" = ").filter(|_| head.starts_with("pub const ")).map(|(of, _)| of.to_owned());
        heads.push(signature.unwrap_or(head));
    }
    heads
}

fn is_foreign(head: &str, foreign: &[&str]) -> bool {
    let is_allowed = ALLOWED.iter().any(|allowed| head.starts_with(allowed));
    let names = || head.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    !is_allowed && (head.contains("quic::") || names().any(|name| name.starts_with("noq") || foreign.contains(&name)))
}

#[test]
fn no_public_signature_names_a_type_of_the_crates_below() {
    let mut count = 0;
    for file in Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src")).read_dir().unwrap() {
        let source = std::fs::read_to_string(file.unwrap().path()).unwrap();
        let foreign = foreign(&source);
        for head in heads(&source) {
            count += 1;
            assert!(!is_foreign(&head, &foreign), "{head}");
        }
    }
    assert!(count > 150, "{count} heads were seen");
    // The check itself.
    let bad =
        "use quic::Dialer;\npub fn a(\n    b: Dialer,\n) -> C {\nimpl From<quic::D> for E {\npub struct F(quic::G);";
    let found: Vec<bool> = heads(bad).iter().map(|head| is_foreign(head, &foreign(bad))).collect();
    assert_eq!(found, [true, true, false]);
}
