//! The constants of the algorithms: their values, where they come from, and which row or table shows what they do.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::citation;
use crate::default_path;
use crate::repository;
use crate::source::{Comment, lines_before_tests};

/// The crates whose constants decide what leaves when, on which path.
pub const CRATES: &[&str] = &["core", "cc", "engine", "sched", "sbd", "live", "rate"];

/// Files outside of these whose constants do so, too.
const FILES: &[&str] =
    &["crates/proxy/src/packets/order.rs", "crates/quic/src/pauses.rs", "crates/transfer/src/resumption.rs"];

/// The files whose constants belong to one mechanism of an ablation: of `fairpath lab run default/ablation`, or of that
/// over the real stack, a bench of `fairpath-faults`.
const MECHANISMS: &[(&str, &str)] = &[
    ("crates/cc/src/aimd/losses/rate", "trials for policers"),
    ("crates/cc/src/aimd/losses", "losses by queue"),
    ("crates/cc/src/slow_start/hystart_plus_plus", "HyStart++"),
    ("crates/engine/src/dips", "dips"),
    ("crates/engine/src/health/steadiness", "doubts"),
    ("crates/engine/src/pacer", "pacing"),
    ("crates/engine/src/steady", "steady rates"),
    ("crates/sbd/src/algorithm/concordance", "coupling"),
    ("crates/sched/src/algorithm/arrival", "arrival"),
];

/// The files whose constants a table halves and doubles one by one: how the table is called, and the file that names its
/// rows.
pub const HALVED_AND_DOUBLED: &[(&str, &str, &str)] = &[
    ("crates/sched/src/algorithm/deadline", "default/deadline", "crates/lab/src/papers/default/deadline.rs"),
    ("crates/engine/src/health_parameters", "health", "crates/faults/benches/tables/health.rs"),
    ("crates/live/src/budget/parameters", "default/budget", "crates/lab/src/papers/default/budget.rs"),
    ("crates/live/src/parameters", "default/live", "crates/lab/src/papers/default/live.rs"),
    ("crates/sbd/src/algorithm/concordance/order/parameters", "short queues", "crates/faults/tests/all/busy.rs"),
    ("crates/sched/src/losses", "default/deadline", "crates/lab/src/papers/default/deadline.rs"),
    ("crates/proxy/src/packets/order", "packet_order", "crates/proxy/src/packets/order/sensitivity.rs"),
    ("crates/quic/src/pauses", "pauses", "crates/faults/tests/all/pauses.rs"),
    ("crates/transfer/src/resumption", "pauses", "crates/faults/tests/all/pauses.rs"),
];

/// A constant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constant {
    /// Its name.
    pub name: String,
    /// Its value as it stands in the source.
    pub value: String,
    /// The file, seen from the root.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The first sentence of its comment.
    pub meaning: String,
    /// The keys of the sources that its comment cites.
    pub sources: Vec<String>,
    /// The mechanism of the ablation that it belongs to, or the table that halves and doubles it.
    pub mechanism: Option<&'static str>,
    /// The kind of constant that is no policy: a bound, a format or a definition.
    pub kind: Option<String>,
    /// Whether only algorithms use it that are not of the default, so that people choose it by name.
    pub by_name: bool,
}

impl Constant {
    /// Whether it is policy that neither a source nor a row of the ablation stands behind.
    pub fn is_bare(&self) -> bool {
        self.is_ours() && self.kind.is_none()
    }

    /// Whether the default has it, and it is bare.
    pub fn is_bare_by_default(&self) -> bool {
        self.is_bare() && !self.by_name
    }

    /// Whether neither a source nor a row stands behind it.
    pub fn is_ours(&self) -> bool {
        self.sources.is_empty() && self.mechanism.is_none()
    }

    fn origin(&self) -> String {
        match &self.kind {
            _ if !self.sources.is_empty() => self.sources.join(", "),
            Some(kind) => format!("a {kind}"),
            None => "ours".to_owned(),
        }
    }
}

/// The constants that are no policy, of `kinds.toml`: file, name and kind.
pub fn kinds() -> Vec<(String, String, String)> {
    let text = repository::read(&repository::root().join("crates/house/kinds.toml"));
    let table: BTreeMap<String, BTreeMap<String, Vec<String>>> = toml::from_str(&text).expect("kinds.toml is TOML");
    let named = |(kind, files): (String, BTreeMap<String, Vec<String>>)| {
        let of_file = move |(file, names): (String, Vec<String>)| {
            let kind = kind.clone();
            names.into_iter().map(move |name| (file.clone(), name, kind.clone()))
        };
        files.into_iter().flat_map(of_file)
    };
    table.into_iter().flat_map(named).collect()
}

/// All constants, crate by crate.
pub fn constants() -> BTreeMap<String, Vec<Constant>> {
    let in_file = |file: &Path| in_source(&repository::read(file), &repository::relative(file));
    let root = repository::root();
    let mut found = BTreeMap::new();
    for name in CRATES {
        let folder = root.join("crates").join(name);
        let files = repository::rust_files(&folder.join("src"));
        let files = files.iter().filter(|file| !is_of_tests(&repository::relative(file)));
        let part = repository::relative(&folder);
        let by_name = by_name(&part, files.clone());
        let of_file = |file: &PathBuf| {
            let by_name = by_name.contains(&repository::relative(file));
            in_file(file).into_iter().map(move |one| Constant { by_name, ..one })
        };
        found.insert(part, files.flat_map(of_file).collect());
    }
    for file in FILES {
        let (part, _) = file.split_once("/src/").expect("it is a source file of a crate");
        found.entry(part.to_owned()).or_insert_with(Vec::new).extend(in_file(&root.join(file)));
    }
    for (file, name, kind) in kinds() {
        let named = found.values_mut().flatten().filter(|one| one.file == file && one.name == name);
        named.for_each(|one| one.kind = Some(kind.clone()));
    }
    found
}

/// Those of a crate's files that only algorithms use which are chosen by name.
fn by_name<'a>(part: &str, files: impl Iterator<Item = &'a PathBuf>) -> BTreeSet<String> {
    let start = format!("{part}/src/");
    let text = |file: &PathBuf| (repository::relative(file).replace(&start, ""), repository::read(file));
    let found = default_path::by_name_alone(&files.map(text).collect::<Vec<_>>());
    found.into_iter().map(|file| start.clone() + &file).collect()
}

/// Whether a source file is there for tests alone.
pub fn is_of_tests(file: &str) -> bool {
    let is_named = |name: &str| matches!(name, "tests" | "tests.rs" | "testing.rs" | "contract.rs");
    file.split('/').skip(3).any(is_named)
}

/// The names of the mechanisms that the ablation knows and this list names.
pub fn mechanisms() -> impl Iterator<Item = (&'static str, &'static str)> {
    MECHANISMS.iter().copied()
}

/// How many constants of each crate are bare: those of the default, and those of the algorithms chosen by name.
pub fn bare() -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for (part, found) in constants() {
        for one in found.iter().filter(|one| one.by_name) {
            *counts.entry(format!("{part}, chosen by name")).or_default() += usize::from(one.is_bare());
        }
        counts.insert(part, found.iter().filter(|one| one.is_bare_by_default()).count());
    }
    counts
}

/// Where the recorded counts lie.
pub fn file() -> PathBuf {
    repository::root().join("crates/house/constants.toml")
}

/// The recorded counts.
pub fn recorded() -> BTreeMap<String, usize> {
    let table: toml::Table = repository::read(&file()).parse().expect("constants.toml is TOML");
    let number = |value: &toml::Value| value.as_integer().and_then(|number| usize::try_from(number).ok()).unwrap_or(0);
    table.iter().map(|(part, value)| (part.clone(), number(value))).collect()
}

/// The text of `constants.toml` with these counts.
pub fn to_toml(counts: &BTreeMap<String, usize>) -> String {
    let head = "# Constants without a source and without a row of the ablation. The numbers only fall.\n\
                # `cargo run -p fairpath-house -- constants` lists all, `… constants --record` writes smaller numbers down.\n\n";
    head.to_owned() + &counts.iter().map(|(part, count)| format!("\"{part}\" = {count}\n")).collect::<String>()
}

/// `docs/reference/constants.md`: all of them. Lines are left out, so that it changes only where a constant does.
pub fn page() -> String {
    let head = "# Constants\n\nThe numbers on the way from an acknowledgement to the next packet, and those of connections that are made again. A source names an \
                entry of `references.toml`; a constant without one is ours, or no policy: a bound of memory or work, a \
                format of what travels, a definition (`crates/house/kinds.toml`). The last column names the mechanism that it \
                belongs to, whose row of an [ablation](../evidence/default/ablation/README.md) shows what it brings, or the table that \
                halves and doubles it. People who choose nothing meet no constant that is chosen by name: only algorithms \
                use it that are not of the default.\n\n\
                `cargo run -p fairpath-house -- constants` prints this page, and a test keeps it whole \
                (`UPDATE_DOCS=1 cargo test -p fairpath-house constants` writes it).\n";
    let section = |(part, found): (&String, &Vec<Constant>)| {
        let head = format!(
            "\n## {part}\n\n| constant | value | meaning | file | source | mechanism |\n|---|---|---|---|---|---|\n"
        );
        head + &found.iter().map(|one| row(one, part)).collect::<String>()
    };
    let all = constants();
    head.to_owned() + &summary(&all) + &all.iter().map(section).collect::<String>()
}

/// How many constants of each crate have a source, a row, a kind, and none of these.
fn summary(all: &BTreeMap<String, Vec<Constant>>) -> String {
    let row = |name: &str, found: &[&Constant]| {
        let count = |is_so: &dyn Fn(&Constant) -> bool| found.iter().filter(|one| is_so(one)).count();
        let sources = count(&|one| !one.sources.is_empty());
        let rows = count(&|one| one.sources.is_empty() && one.mechanism.is_some());
        let kinds = count(&|one| one.is_ours() && one.kind.is_some());
        let by_name = count(&|one| one.is_bare() && one.by_name);
        let bare = count(&Constant::is_bare_by_default);
        format!("| {name} | {} | {sources} | {rows} | {kinds} | {by_name} | {bare} |\n", found.len())
    };
    let head = "\n| crate | constants | with a source | with a row | no policy | ours, chosen by name | ours, without a row |\n\
                |---|---|---|---|---|---|---|\n";
    let rows = all.iter().map(|(part, found)| row(part, &found.iter().collect::<Vec<_>>()));
    head.to_owned() + &rows.collect::<String>() + &row("all", &all.values().flatten().collect::<Vec<_>>())
}

fn row(one: &Constant, part: &str) -> String {
    let file = one.file.trim_start_matches(part).trim_start_matches("/src/");
    let [value, meaning] = [&one.value, &one.meaning].map(|text| text.replace('|', "\\|"));
    format!(
        "| `{}` | `{value}` | {meaning} | `{file}` | {} | {} |\n",
        one.name,
        one.origin(),
        one.mechanism.unwrap_or(if one.by_name { "chosen by name" } else { "" })
    )
}

/// The constants of a source file, but for its tests, which stand last, and for names and texts.
pub fn in_source(source: &str, file: &str) -> Vec<Constant> {
    let varied = HALVED_AND_DOUBLED.iter().map(|(start, table, _)| (*start, *table));
    let mechanism = varied.chain(MECHANISMS.iter().copied()).find(|(start, _)| file.starts_with(start));
    let mechanism = mechanism.map(|(_, name)| name);
    let lines: Vec<&str> = source.lines().take(lines_before_tests(source)).collect();
    let mut found = Vec::new();
    let mut comment: Option<Comment> = None;
    for (at, line) in lines.iter().map(|line| line.trim()).enumerate() {
        if let Some(text) = line.strip_prefix("//") {
            let comment = comment.get_or_insert(Comment { line: at + 1, text: String::new() });
            comment.text.push_str(text.trim_start_matches(['/', '!']));
            comment.text.push('\n');
            continue;
        }
        let whole = || {
            let length = lines[at..].iter().position(|line| line.ends_with(';')).unwrap_or(0);
            lines[at..=at + length].iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
        };
        if let Some((name, value)) = is_constant(line).then(whole).as_deref().and_then(declared) {
            let sources: Vec<String> = comment.iter().flat_map(citation::find).map(|citation| citation.key).collect();
            let meaning = comment.as_ref().map_or_else(String::new, |comment| first_sentence(&comment.text));
            let constant = Constant {
                name,
                value,
                file: file.to_owned(),
                line: at + 1,
                meaning,
                sources,
                mechanism,
                kind: None,
                by_name: false,
            };
            match fields(&constant, &lines) {
                Some(fields) => found.extend(fields),
                None => found.push(constant),
            }
        }
        if !line.starts_with("#[") {
            comment = None;
        }
    }
    found
}

/// Links between items mean nothing outside of the source.
fn first_sentence(comment: &str) -> String {
    let text = comment.split_whitespace().collect::<Vec<_>>().join(" ");
    let end = text.find(". ").map_or(text.len(), |at| at + 1);
    text[..end].replace("[`", "`").replace("`]", "`")
}

fn is_constant(line: &str) -> bool {
    let line = line.strip_prefix("pub").unwrap_or(line);
    let line = match line.strip_prefix('(') {
        Some(rest) => rest.split_once(')').map_or(rest, |(_, rest)| rest),
        None => line,
    };
    let name = line.trim_start().strip_prefix("const ");
    name.is_some_and(|name| name.starts_with(|c: char| c.is_ascii_uppercase()))
}

/// The name and the value of a declaration; `None` where it is a name or a text, or has no value.
fn declared(whole: &str) -> Option<(String, String)> {
    let (_, rest) = whole.split_once("const ")?;
    let (name, rest) = rest.split_once(": ")?;
    let (kind, value) = rest.split_once(" = ")?;
    (!kind.contains("str")).then(|| (name.to_owned(), value.trim_end_matches(';').to_owned()))
}

/// The constants that make up one of type `Self`, but for those that are declared elsewhere.
fn fields(whole: &Constant, lines: &[&str]) -> Option<Vec<Constant>> {
    let inner = whole.value.strip_prefix("Self {")?.strip_suffix('}')?;
    let fields = inner.split(", ").filter_map(|field| field.trim_matches([' ', ',']).split_once(": "));
    let is_here = |(_, value): &(&str, &str)| !value.contains("::DEFAULT");
    let constant = |(field, value): (&str, &str)| Constant {
        name: format!("{}.{field}", whole.name),
        value: value.to_owned(),
        meaning: meaning_of(field, lines),
        ..whole.clone()
    };
    Some(fields.filter(is_here).map(constant).collect())
}

/// The first sentence of a field's comment.
fn meaning_of(field: &str, lines: &[&str]) -> String {
    let is_declared = |line: &str| line.trim().trim_start_matches("pub ").starts_with(&format!("{field}: "));
    let comment =
        |at: usize| lines[..at].iter().rev().map_while(|line| line.trim().strip_prefix("///")).collect::<Vec<_>>();
    let declared = (0..lines.len()).filter(|at| is_declared(lines[*at]));
    let said = declared.map(comment).find(|comment| !comment.is_empty()).unwrap_or_default();
    first_sentence(&said.into_iter().rev().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_has_its_value_its_source_and_its_mechanism() {
        let source = "/// Twice [RFC9002 §7.2].\n#[allow(x)]\npub(crate) const TWICE: u32 = 2;\n\nconst NAMES: &[&str] = &[];\n\
                      impl A {\n    /// Ours.\n    const LONG: Duration =\n        Duration::from_secs(1);\n}\nconst fn f() {}\n\
                      #[cfg(test)]\nmod tests {\n    const THREE: u32 = 3;\n}\n";
        let found = in_source(source, "crates/engine/src/dips.rs");
        let seen: Vec<_> = found.iter().map(|one| (&*one.name, &*one.value, one.line, one.sources.len())).collect();
        assert_eq!(seen, [("TWICE", "2", 3, 1), ("LONG", "Duration::from_secs(1)", 8, 0)]);
        assert_eq!(found[0].meaning, "Twice [RFC9002 §7.2].");
        assert!(found.iter().all(|one| one.mechanism == Some("dips") && !one.is_bare()));
        assert!(in_source(source, "crates/engine/src/limit.rs")[1].is_bare());
    }

    #[test]
    fn parameters_are_as_many_constants_as_they_have_values() {
        let source = "struct A {\n    /// So many.\n    parts: u8,\n}\nimpl A {\n    const DEFAULT: Self = Self {\n        parts: 4,\n        slow: Duration::from_millis(35),\n        \
                      losses: B::DEFAULT,\n    };\n}\nimpl B {\n    const DEFAULT: Self = Self { least: 0.5 };\n}\n";
        let found = in_source(source, "crates/sched/src/losses.rs");
        let seen: Vec<_> = found.iter().map(|one| (&*one.name, &*one.value, one.line)).collect();
        let expected =
            [("DEFAULT.parts", "4", 6), ("DEFAULT.slow", "Duration::from_millis(35)", 6), ("DEFAULT.least", "0.5", 13)];
        assert_eq!((seen, &*found[0].meaning), (expected.to_vec(), "So many."));
        assert!(found.iter().all(|one| one.mechanism == Some("default/deadline")));
    }
}
