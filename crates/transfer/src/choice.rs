//! Wishes of the sender's user about the content of directories.

use std::path::Path;

use ignore::gitignore::{Gitignore, GitignoreBuilder};

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

/// Patterns of names inside the named directories, by the rules of `.gitignore`.
#[derive(Clone, Debug)]
pub struct Filter(Gitignore);

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
        // The last pattern that matches decides.
        let included = include.iter().map(|pattern| (pattern, format!("!{pattern}")));
        let mut builder = GitignoreBuilder::new("");
        // Git takes such a bracket for itself; in a command it is a mistake.
        builder.allow_unclosed_class(false);
        for (pattern, line) in exclude.iter().map(|pattern| (pattern, pattern.clone())).chain(included) {
            let refused = |fault: String| PatternError { pattern: pattern.clone(), fault };
            if pattern.trim().is_empty() {
                return Err(refused("it is empty".into()));
            }
            if pattern.starts_with(['#', '!']) {
                return Err(refused(format!(
                    "`#` and `!` have a meaning at its beginning; write \\{pattern} for a name"
                )));
            }
            builder.add_line(None, &line).map_err(|error| refused(fault_of(&error)))?;
        }
        let filter = builder.build();
        filter.map(Self).map_err(|error| PatternError { pattern: String::new(), fault: fault_of(&error) })
    }

    /// Whether a name below a named directory is not wanted. The directories above it are.
    pub(crate) fn leaves_out(&self, below: &Path, is_directory: bool) -> bool {
        self.0.matched(below, is_directory).is_ignore()
    }
}

/// Everything is wanted.
impl Default for Filter {
    fn default() -> Self {
        Self(Gitignore::empty())
    }
}

fn fault_of(error: &ignore::Error) -> String {
    match error {
        ignore::Error::Glob { err, .. } => err.clone(),
        other => other.to_string(),
    }
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
        let filter = filter(&["*.o", "/build/", "a/**/x", "tmp/"], &["keep.o"]).unwrap();
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
        ] {
            assert_eq!(filter.leaves_out(Path::new(name), is_directory), is_left_out, "{name}");
        }
        assert!(!Filter::default().leaves_out(Path::new("x"), false));
    }

    #[test]
    fn a_pattern_that_cannot_be_meant_is_named() {
        for (pattern, fault) in [("a[", "unclosed"), ("", "empty"), ("#x", "write \\#x"), ("!x", "write \\!x")] {
            let error = filter(&["fine", pattern], &[]).unwrap_err();
            assert!(error.pattern == pattern && error.fault.contains(fault), "{error}");
        }
    }
}
