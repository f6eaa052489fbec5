//! The surface of the library names no type of the crates below it: they may change where it does not.

use std::path::Path;

/// Heads that may: units, changed terms, the account of a quota that the sockets count on, and bounds of live packets.
const ALLOWED: &[&str] = &[
    "pub use fairpath_engine::{Bitrate, ByteCount as Amount, TermsChange};",
    "pub use fairpath_quic::{Allowance, PathControl};",
    "pub use flows::{DEADLINE_MAX",
];

/// The module that is there with a feature, for the programs of this workspace alone.
const INTERNAL: &str = "internal.rs";

/// The types of others that those which are taken from below may name.
const PLAIN: &[&str] = &[
    "Add",
    "AddAssign",
    "Default",
    "Display",
    "Div",
    "Duration",
    "From",
    "FromStr",
    "Into",
    "Iterator",
    "Item",
    "Mul",
    "Option",
    "Output",
    "Result",
    "Self",
    "String",
    "Sub",
    "SubAssign",
    "Sum",
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
        if !["pub ", "impl ", "impl<", "type "].iter().any(|word| line.starts_with(word)) {
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

/// The types that the surface takes from the crates below as they are.
fn taken(source: &str) -> Vec<&str> {
    let uses = source.lines().filter(|line| line.starts_with("pub use fairpath_"));
    let items = uses.flat_map(|line| line.split(['{', ',', '}', ';']));
    let names = items.filter_map(|item| item.split(" as ").next()?.trim().split(':').next_back());
    let is_type = |name: &&str| name.starts_with(char::is_uppercase) && name.contains(char::is_lowercase);
    names.filter(is_type).collect()
}

/// The heads of a type and of all that is implemented for it, out of the source that defines it.
fn heads_of(name: &str, source: &str) -> Vec<String> {
    let is_of = |item: &&str| {
        let Some(head) = item.lines().find(|line| line.starts_with("pub ") || line.starts_with("impl")) else {
            return false;
        };
        let of = head.rsplit_once(" for ").map_or(head, |(_, of)| of);
        let word = of.split(|letter: char| !letter.is_alphanumeric()).find(|word| word.starts_with(char::is_uppercase));
        word == Some(name)
    };
    source
        .split("\n\n")
        .fold(Vec::<String>::new(), |mut items, part| {
            // Indented lines, and the end of a block, belong to the item before.
            match items.last_mut().filter(|_| part.starts_with([' ', '}'])) {
                Some(item) => *item += &format!("\n{part}"),
                None => items.push(part.to_owned()),
            }
            items
        })
        .iter()
        .map(String::as_str)
        .filter(is_of)
        .flat_map(heads)
        .collect()
}

/// The source below the other crates of the workspace that defines a type; `None` outside of the workspace.
fn definition(name: &str) -> Option<String> {
    fn sources(folder: &Path) -> Vec<std::path::PathBuf> {
        let entries = folder.read_dir().into_iter().flatten().map(|entry| entry.unwrap().path());
        entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
    }
    let crates = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let folders = ["core", "engine", "quic", "quic-core"].map(|name| crates.join(name).join("src"));
    let texts = folders.iter().flat_map(|folder| sources(folder)).filter_map(|path| std::fs::read_to_string(path).ok());
    texts
        .into_iter()
        .find(|text| text.contains(&format!("pub struct {name}")) || text.contains(&format!("pub enum {name}")))
}

#[test]
fn no_public_signature_names_a_type_of_the_crates_below() {
    let mut count = 0;
    for file in Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src")).read_dir().unwrap() {
        let file = file.unwrap();
        if file.file_name() == INTERNAL {
            continue;
        }
        let source = std::fs::read_to_string(file.path()).unwrap();
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

#[test]
fn what_is_taken_from_the_crates_below_names_no_others_of_their_types() {
    let source = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/src/lib.rs")).unwrap();
    let taken = taken(&source);
    assert_eq!(taken, ["Bitrate", "ByteCount", "TermsChange", "Allowance", "PathControl"]);
    let is_known = |name: &str| PLAIN.contains(&name) || taken.contains(&name);
    let unknown = |head: &str| {
        let words = head.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
        let mut types = words.filter(|word| word.starts_with(char::is_uppercase) && word.contains(char::is_lowercase));
        types.find(|name| !is_known(name)).map(str::to_owned)
    };
    for name in &taken {
        let Some(source) = definition(name) else {
            println!("skipped: the crates below are not beside this one");
            return;
        };
        let heads = heads_of(name, &source);
        assert!(heads.len() > 3, "{name}: {heads:?}");
        for head in heads {
            assert_eq!(unknown(&head), None, "{name}: {head}");
        }
    }
    // The check itself.
    let bad = "/// A.\n#[derive(Debug)]\npub struct Near(Far);\n\nimpl Near {\n    /// B.\n    pub fn far(&self) -> &Far {\n        &self.0\n    }\n\n    \
               pub fn count(&self) -> u8 {\n        1\n    }\n}\n\nimpl From<Near> for Far {\n}";
    let heads = heads_of("Near", bad);
    assert_eq!(heads, ["pub struct Near", "impl Near {", "pub fn far(&self) -> &Far {", "pub fn count(&self) -> u8 {"]);
    let found: Vec<_> = heads.iter().map(|head| unknown(head)).collect();
    let named = |name: &str| Some(name.to_owned());
    assert_eq!(found, [named("Near"), named("Near"), named("Far"), None]);
}
