//! How large the crates are: lines of code, and constants, at a commit and now.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::source::{lines_before_tests, split};
use crate::{constants, repository};

/// The size of a crate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Lines without tests, comments and blank lines.
    pub lines: usize,
    /// Constants, with each field of a set of parameters.
    pub constants: usize,
}

/// The sizes of the crates, by name.
pub type Sizes = BTreeMap<String, Size>;

/// The sizes as they are now.
pub fn now() -> Sizes {
    let files = repository::crate_folders().into_iter().flat_map(|folder| repository::rust_files(&folder.join("src")));
    of_files(files.map(|file| (repository::relative(&file), repository::read(&file))))
}

/// The sizes at a commit.
///
/// # Errors
///
/// Where git does not know the commit.
pub fn of_commit(commit: &str) -> Result<Sizes, String> {
    let list = repository::git(&["ls-tree", "-r", "--name-only", commit, "--", "crates"])?;
    let files = list.lines().filter(|file| file.ends_with(".rs"));
    let texts = files.map(|file| Ok((file.to_owned(), repository::git(&["show", &format!("{commit}:{file}")])?)));
    Ok(of_files(texts.collect::<Result<Vec<_>, String>>()?.into_iter()))
}

fn of_files(files: impl Iterator<Item = (String, String)>) -> Sizes {
    let mut sizes = Sizes::new();
    for (file, text) in files.filter(|(file, _)| !constants::is_of_tests(file)) {
        let mut parts = file.split('/');
        let (Some("crates"), Some(name), Some("src")) = (parts.next(), parts.next(), parts.next()) else { continue };
        let size = sizes.entry(name.to_owned()).or_default();
        let code = split(&text).code;
        size.lines += code.lines().take(lines_before_tests(&text)).filter(|line| !line.trim().is_empty()).count();
        size.constants += constants::in_source(&text, &file).len();
    }
    sizes
}

/// The table in Markdown, with the crates that decide what leaves when apart from the others.
pub fn table(commit: &str, before: &Sizes, now: &Sizes) -> String {
    let mut text = format!(
        "| crate | lines at {commit} | lines now | constants at {commit} | constants now |\n|---|---|---|---|---|\n"
    );
    let names: Vec<&String> = before.keys().chain(now.keys().filter(|name| !before.contains_key(*name))).collect();
    let (decide, others): (Vec<&String>, Vec<&String>) =
        names.into_iter().partition(|name| constants::CRATES.contains(&name.as_str()));
    let sum = |sizes: &Sizes, of: &[&String]| {
        of.iter().filter_map(|name| sizes.get(*name)).fold(Size::default(), |sum, size| Size {
            lines: sum.lines + size.lines,
            constants: sum.constants + size.constants,
        })
    };
    let mut row = |name: &str, of: &[&String]| {
        let (before, now) = (sum(before, of), sum(now, of));
        let _ =
            writeln!(text, "| {name} | {} | {} | {} | {} |", before.lines, now.lines, before.constants, now.constants);
    };
    decide.iter().for_each(|name| row(&format!("`{name}`"), &[*name]));
    row("all of these", &decide);
    others.iter().for_each(|name| row(&format!("`{name}`"), &[*name]));
    row("all crates", &[decide.clone(), others.clone()].concat());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_blank_lines_and_tests_are_no_code() {
        let engine = "//! Head.\n\n/// Four.\nconst FOUR: u8 = 4;\n\nfn f() {} // one\n#[cfg(test)]\nmod tests {\n    fn g() {}\n}\n";
        let files = [
            ("crates/engine/src/lib.rs", engine),
            ("crates/engine/src/engine/tests.rs", engine),
            ("crates/engine/tests/all/main.rs", engine),
            ("crates/cli/src/main.rs", "fn main() {}\n"),
        ];
        let sizes = of_files(files.into_iter().map(|(file, text)| (file.to_owned(), text.to_owned())));
        assert_eq!(sizes["engine"], Size { lines: 2, constants: 1 });
        let text = table("abc", &Sizes::new(), &sizes);
        assert!(
            text.contains("| `engine` | 0 | 2 | 0 | 1 |\n| all of these | 0 | 2 | 0 | 1 |\n| `cli` | 0 | 1 | 0 | 0 |")
        );
        assert!(text.ends_with("| all crates | 0 | 3 | 0 | 1 |\n"), "{text}");
    }
}
