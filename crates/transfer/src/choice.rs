//! Wishes of the sender's user about the content of directories.

use std::{os::unix::ffi::OsStrExt, path::Path};

use gix_glob::{Pattern, pattern::Case, wildmatch::Mode};

use crate::name::Name;

/// How symbolic links inside directories are treated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Links {
    /// They are left out.
    Skip,
    /// They are sent as links where they stay inside what is sent; others are left out and named.
    #[default]
    Keep,
    /// Their targets are sent in their place.
    Follow,
}

/// Selects among the content of the named directories.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Symbolic links inside directories.
    pub links: Links,
    /// The names that are wanted.
    pub filter: Filter,
    /// Whether hard links travel as such, and extended attributes.
    pub archive: bool,
    /// Whether standard input is sent, too.
    pub input: bool,
    /// Another name for what is sent, which is one thing then.
    pub name: Option<Name>,
}

/// Patterns of names inside the named directories, by the rules of `.gitignore`. The last one that matches decides.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    rules: Vec<(Pattern, Wish)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    LeaveOut,
    Keep,
}

/// A pattern that cannot be meant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the pattern {pattern:?} cannot be used: {fault}")]
pub struct PatternError {
    /// The pattern.
    pub pattern: String,
    /// Its fault.
    pub fault: String,
}

impl Filter {
    /// Leaves out the names that match a pattern of `exclude` and none of `include`.
    ///
    /// # Errors
    ///
    /// The first pattern that cannot be meant.
    pub fn new(exclude: &[String], include: &[String]) -> Result<Self, PatternError> {
        let wishes = exclude.iter().map(|text| (text, Wish::LeaveOut));
        let wishes = wishes.chain(include.iter().map(|text| (text, Wish::Keep)));
        let rules = wishes.map(|(text, wish)| Ok((parsed(text)?, wish)));
        Ok(Self { rules: rules.collect::<Result<_, _>>()? })
    }

    /// Whether a name below a named directory is not wanted. The directories above it are.
    pub(crate) fn leaves_out(&self, below: &Path, is_directory: bool) -> bool {
        let name = below.as_os_str().as_bytes();
        let base = name.iter().rposition(|&byte| byte == b'/').map(|slash| slash + 1);
        let matches = |(pattern, _): &&(Pattern, Wish)| {
            let mode = Mode::NO_MATCH_SLASH_LITERAL;
            pattern.matches_repo_relative_path(name.into(), base, Some(is_directory), Case::Sensitive, mode)
        };
        self.rules.iter().rev().find(matches).is_some_and(|&(_, wish)| wish == Wish::LeaveOut)
    }
}

fn parsed(text: &str) -> Result<Pattern, PatternError> {
    let refused = |fault: String| PatternError { pattern: text.to_owned(), fault };
    if text.starts_with(['#', '!']) {
        return Err(refused(format!("`#` and `!` have a meaning at its beginning; write \\{text} for a name")));
    }
    if let Some(fault) = mistake_in(text) {
        return Err(refused(fault.into()));
    }
    Pattern::from_bytes(text.as_bytes()).ok_or_else(|| refused("it is empty".into()))
}

/// Git takes these for names; in a command they are mistakes.
fn mistake_in(text: &str) -> Option<&'static str> {
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'\\' if rest.next().is_none() => return Some("nothing follows its last backslash"),
            b'[' if !ends_class(&mut rest) => return Some("its bracket is unclosed"),
            _ => {}
        }
    }
    None
}

/// Whether a bracket ends that has just begun. A `]` that comes first in it is a member.
fn ends_class(rest: &mut std::str::Bytes<'_>) -> bool {
    let mut is_first = true;
    while let Some(byte) = rest.next() {
        match byte {
            b'!' | b'^' if is_first => continue,
            b']' if !is_first => return true,
            b'\\' => _ = rest.next(),
            _ => {}
        }
        is_first = false;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(exclude: &[&str], include: &[&str]) -> Result<Filter, PatternError> {
        let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        Filter::new(&owned(exclude), &owned(include))
    }

    #[test]
    fn patterns_follow_the_rules_of_gitignore() {
        let filter = filter(&["*.o", "/build/", "a/**/x", "tmp/", "x[]a][0-9]", "{a,b}", "\\#*"], &["keep.o"]).unwrap();
        for (name, is_directory, is_left_out) in [
            ("a.o", false, true),
            ("deep/b.o", false, true),
            ("deep/keep.o", false, false),
            ("build", true, true),
            ("build", false, false),
            ("deep/build", true, false),
            ("a/b/c/x", false, true),
            ("deep/tmp", true, true),
            ("a.c", false, false),
            ("x]1", false, true),
            ("deep/x[1", false, false),
            ("{a,b}", false, true),
            ("a", false, false),
            ("#note", false, true),
        ] {
            assert_eq!(filter.leaves_out(Path::new(name), is_directory), is_left_out, "{name}");
        }
        assert!(!Filter::default().leaves_out(Path::new("x"), false));
    }

    #[test]
    fn a_pattern_that_cannot_be_meant_is_named() {
        for (pattern, fault) in [
            ("a[", "unclosed"),
            ("[!]", "unclosed"),
            ("a\\", "backslash"),
            ("", "empty"),
            (" ", "empty"),
            ("#x", "write \\#x"),
            ("!x", "write \\!x"),
        ] {
            let error = filter(&["fine", pattern], &[]).unwrap_err();
            assert!(error.pattern == pattern && error.fault.contains(fault), "{error}");
        }
    }
}
