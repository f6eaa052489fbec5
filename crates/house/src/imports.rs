//! Circles of imports among the files of a crate.
//!
//! A file and the folder of its name are one: they are its head and its parts, and may name each other. What
//! counts is which of the files side by side in a folder names something of which, itself or in its parts, and
//! through whichever re-export.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::source;

/// The path of a module below the root of its crate; empty for the root.
pub type Module = Vec<String>;

/// The modules of a crate, by their paths, with their sources. What is only there for tests is left out.
#[derive(Debug, Default)]
pub struct Modules(BTreeMap<Module, File>);

/// The names in a file.
#[derive(Debug, Default)]
struct File {
    /// The names that `use` gives to what, `*` left out.
    names: BTreeMap<String, Module>,
    /// The modules that are used whole.
    globs: Vec<Module>,
    /// Every path into the crate.
    paths: Vec<Module>,
}

/// For each folder: who names what of whom.
type Edges = BTreeMap<Module, BTreeMap<String, BTreeMap<String, String>>>;

impl Modules {
    /// Reads these files, given by their paths below `src`, with forward slashes, and their texts.
    pub fn new(files: &[(String, String)]) -> Self {
        let texts: BTreeMap<Module, &String> = files.iter().map(|(path, text)| (module_of(path), text)).collect();
        let mut tests = BTreeSet::new();
        for (module, text) in &texts {
            tests.extend(test_modules(text).into_iter().map(|name| [module.clone(), vec![name]].concat()));
        }
        let is_test = |module: &Module| (1..=module.len()).any(|length| tests.contains(&module[..length]));
        let known: BTreeSet<&Module> = texts.keys().filter(|module| !is_test(module)).collect();
        let read = |module: &&Module| ((*module).clone(), File::read(module, texts[*module], &known));
        Self(known.iter().map(read).collect())
    }

    /// Every circle, as a line for people: one for each folder in which there is any.
    pub fn circles(&self) -> Vec<String> {
        self.edges().iter().filter_map(|(folder, edges)| circle(folder, edges)).collect()
    }

    /// Each module with those that it names, through whichever re-export.
    pub fn named_by(&self) -> BTreeMap<&Module, Vec<Module>> {
        let named = |file: &File| file.paths.iter().map(|path| self.resolved(path, 0)).collect();
        self.0.iter().map(|(module, file)| (module, named(file))).collect()
    }

    fn edges(&self) -> Edges {
        let mut edges = Edges::new();
        for (from, file) in &self.0 {
            for path in &file.paths {
                let to = self.resolved(path, 0);
                let common = from.iter().zip(&to).take_while(|(one, other)| one == other).count();
                if common < from.len() && common < to.len() {
                    let of_folder = edges.entry(from[..common].to_vec()).or_default();
                    let why = format!("{} names {}", shown(from), shown(path));
                    of_folder.entry(from[common].clone()).or_default().entry(to[common].clone()).or_insert(why);
                }
            }
        }
        edges
    }

    /// The module where what the path names is written.
    fn resolved(&self, path: &[String], depth: usize) -> Module {
        let length = (0..=path.len()).rev().find(|length| self.0.contains_key(&path[..*length])).unwrap_or(0);
        let (module, rest) = path.split_at(length);
        // No re-export leads through more than a few.
        let (Some(file), Some(name), true) = (self.0.get(module), rest.first(), depth < 8) else {
            return module.to_vec();
        };
        let on = |start: &Module| self.resolved(&[start, &rest[1..]].concat(), depth + 1);
        if let Some(target) = file.names.get(name) {
            return on(target);
        }
        let has_name = |glob: &&Module| self.0.get(*glob).is_some_and(|file| file.names.contains_key(name));
        match file.globs.iter().find(has_name) {
            Some(glob) => self.resolved(&[glob, rest].concat(), depth + 1),
            None => module.to_vec(),
        }
    }
}

impl File {
    fn read(module: &Module, text: &str, known: &BTreeSet<&Module>) -> Self {
        let code = source::split(text).code;
        let before: Vec<&str> = code.lines().take(source::lines_before_tests(text)).collect();
        let before = before.join("\n");
        let tokens = tokens(&before);
        let mut file = Self::default();
        let mut at = 0;
        while at < tokens.len() {
            if tokens[at] == "use" && tokens.get(at + 1) != Some(&"<") {
                let end = tokens[at..].iter().position(|token| *token == ";").map_or(tokens.len(), |end| at + end);
                file.take_use(module, &tokens[at + 1..end], known);
                at = end;
            } else {
                let path = path_at(&tokens, at);
                if path.len() > 1
                    && let Some(path) = absolute(module, &path, known)
                {
                    file.paths.push(path);
                }
                at += (2 * path.len()).saturating_sub(1).max(1);
            }
        }
        file
    }

    fn take_use(&mut self, module: &Module, tokens: &[&str], known: &BTreeSet<&Module>) {
        for (path, name) in leaves(tokens) {
            let Some(mut path) = absolute(module, &path, known) else { continue };
            if path.last().is_some_and(|last| last == "self") {
                path.pop();
            }
            if path.last().is_some_and(|last| last == "*") {
                path.pop();
                self.globs.push(path.clone());
            } else if let Some(name) = name.map(str::to_owned).or_else(|| path.last().cloned()) {
                self.names.insert(name, path.clone());
            }
            self.paths.push(path);
        }
    }
}

/// `a/b.rs`, `a/b/mod.rs` → `a::b`.
pub fn module_of(path: &str) -> Module {
    let mut module: Module = path.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if module.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
        module.pop();
    }
    module
}

fn shown(module: &[String]) -> String {
    ["crate"].into_iter().chain(module.iter().map(String::as_str)).collect::<Vec<_>>().join("::")
}

/// The modules that a file declares for tests only.
fn test_modules(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let declared = lines.windows(2).filter(|pair| pair[0].starts_with("#[cfg(test)]"));
    declared.filter_map(|pair| Some(pair[1].split_once("mod ")?.1.trim_end_matches(';').to_owned())).collect()
}

/// Words, `::` and single characters.
fn tokens(code: &str) -> Vec<&str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let (mut tokens, mut rest) = (Vec::new(), code.trim_start());
    while let Some(first) = rest.chars().next() {
        let length = match rest.find(|c| !is_word(c)) {
            _ if rest.starts_with("::") => 2,
            Some(0) => first.len_utf8(),
            Some(length) => length,
            None => rest.len(),
        };
        tokens.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    tokens
}

/// The words of the path that begins at a token; none inside of another path.
fn path_at<'a>(tokens: &[&'a str], at: usize) -> Vec<&'a str> {
    let is_word = |token: &str| token.starts_with(|c: char| c.is_alphabetic() || c == '_');
    if at > 0 && tokens[at - 1] == "::" {
        return Vec::new();
    }
    let mut path = Vec::new();
    for pair in tokens[at..].chunks(2) {
        if !is_word(pair[0]) {
            break;
        }
        path.push(pair[0]);
        if pair.get(1) != Some(&"::") {
            break;
        }
    }
    path
}

/// A path below the root of the crate; `None` where it leads elsewhere.
fn absolute(module: &[String], path: &[&str], known: &BTreeSet<&Module>) -> Option<Module> {
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Module>();
    match path[0] {
        "crate" => Some(owned(&path[1..])),
        "self" => Some([module, &owned(&path[1..])].concat()),
        "super" => {
            let up = path.iter().take_while(|word| **word == "super").count();
            Some([&module[..module.len().checked_sub(up)?], &owned(&path[up..])].concat())
        }
        first => {
            let child = [module, &[first.to_owned()]].concat();
            known.contains(&child).then(|| [module, &owned(path)].concat())
        }
    }
}

/// The names of a `use`, each with the name that it gets where that is another than its last.
fn leaves<'a>(tokens: &[&'a str]) -> Vec<(Vec<&'a str>, Option<&'a str>)> {
    let mut leaves = Vec::new();
    let mut open: Vec<Vec<&str>> = vec![Vec::new()];
    let (mut path, mut name): (Vec<&str>, Option<&str>) = (Vec::new(), None);
    let mut at = 0;
    while at <= tokens.len() {
        match tokens.get(at).copied() {
            Some("{") => open.push(std::mem::take(&mut path)),
            Some(",") | Some("}") | None => {
                if !path.is_empty() {
                    leaves.push(([open.concat(), std::mem::take(&mut path)].concat(), name.take()));
                }
                if tokens.get(at) == Some(&"}") {
                    open.pop();
                }
            }
            Some("as") => {
                name = tokens.get(at + 1).copied();
                at += 1;
            }
            Some("::") => {}
            Some(word) => path.push(word),
        }
        at += 1;
    }
    leaves
}

/// The shortest circle in a folder, if there is any.
fn circle(folder: &[String], edges: &BTreeMap<String, BTreeMap<String, String>>) -> Option<String> {
    let shortest = edges.keys().filter_map(|start| way_back(start, edges)).min_by_key(Vec::len)?;
    let steps = shortest.windows(2).map(|pair| edges[&pair[0]][&pair[1]].as_str());
    Some(format!("{} in {}: {}", shortest.join(" → "), shown(folder), steps.collect::<Vec<_>>().join("; ")))
}

/// The shortest way from a file to itself.
fn way_back(start: &str, edges: &BTreeMap<String, BTreeMap<String, String>>) -> Option<Vec<String>> {
    let mut ways = VecDeque::from([vec![start.to_owned()]]);
    let mut seen = BTreeSet::new();
    while let Some(way) = ways.pop_front() {
        for next in edges.get(way.last()?).into_iter().flat_map(BTreeMap::keys) {
            let longer = [way.as_slice(), std::slice::from_ref(next)].concat();
            if next == start {
                return Some(longer);
            }
            if seen.insert(next) {
                ways.push_back(longer);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circles(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<_> = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        Modules::new(&files).circles()
    }

    #[test]
    fn two_files_that_name_each_other_are_a_circle() {
        let found = circles(&[
            ("lib.rs", "mod a;\nmod b;\n"),
            ("a.rs", "use crate::b::{self, Thing as Other};\n"),
            ("b.rs", "fn f() -> super::a::Word { loop {} }\n"),
        ]);
        assert_eq!(found, ["a → b → a in crate: crate::a names crate::b; crate::b names crate::a::Word"]);
    }

    #[test]
    fn re_exports_are_seen_through() {
        let found = circles(&[
            ("lib.rs", "mod a;\nmod b;\nmod c;\npub use b::Thing;\npub use c::*;\n"),
            ("a.rs", "use crate::{Thing, Deep};\n"),
            ("b.rs", "use std::fmt;\n"),
            ("c/mod.rs", "mod deep;\npub use deep::Deep;\n"),
            ("c/deep.rs", "use crate::a::X;\n"),
        ]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("a → c → a"), "{found:?}");
    }

    #[test]
    fn a_file_and_its_parts_and_tests_and_comments_make_none() {
        let found = circles(&[
            ("lib.rs", "mod a;\nmod b;\n#[cfg(test)]\nmod testing;\n"),
            ("a.rs", "mod part;\nuse part::Part;\nuse crate::b::B;\n"),
            ("a/part.rs", "use super::A;\nuse crate::b::B;\n"),
            ("b.rs", "// use crate::a::A;\n#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}\n"),
            ("testing.rs", "use crate::a::A;\nuse crate::b::B;\n"),
        ]);
        assert_eq!(found, [""; 0]);
    }

    #[test]
    fn parts_side_by_side_may_not_name_each_other_either() {
        let found = circles(&[
            ("main.rs", "mod a;\n"),
            ("a/mod.rs", "mod one;\nmod two;\n"),
            ("a/one.rs", "use super::two::T;\n"),
            ("a/two.rs", "use crate::a::one::O;\n"),
        ]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("in crate::a:"), "{found:?}");
    }
}
