//! The manifest: what is to be sent, and the rules that its names must keep.
//!
//! Names are relative, with `/` between components. Both ends apply the same rules, so an honest
//! sender learns of a name that cannot travel before it connects, and a receiver never trusts one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Where a receiver keeps unfinished files, at the root of its directory. No manifest may name it.
pub(crate) const PARTIAL: &str = ".fairpath-partial";

/// How many characters of a refused name are shown; whoever sends it chooses its length.
const SHOWN_OF_A_NAME: usize = 300;

/// One thing to be sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Entry {
    /// A regular file.
    File {
        /// Relative, `/` between components.
        path: String,
        /// Its size in bytes.
        size: u64,
        /// When it was last modified: nanoseconds since 1970, negative before.
        mtime_ns: i64,
        /// Whether its owner may execute it.
        executable: bool,
    },
    /// A directory; needed for empty ones, allowed for all.
    Directory {
        /// Relative, `/` between components.
        path: String,
    },
}

impl Entry {
    /// The entry's name.
    pub fn path(&self) -> &str {
        match self {
            Self::File { path, .. } | Self::Directory { path } => path,
        }
    }

    /// Whether it is a regular file.
    pub fn is_file(&self) -> bool {
        matches!(self, Self::File { .. })
    }

    /// The entry's size; zero for a directory.
    pub fn size(&self) -> u64 {
        match self {
            Self::File { size, .. } => *size,
            Self::Directory { .. } => 0,
        }
    }
}

/// What a receiver accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most files and directories.
    pub entries: usize,
    /// The most bytes of all files together.
    pub bytes: u64,
    /// The most bytes of one component of a name.
    pub component_bytes: usize,
    /// The most bytes of a name.
    pub path_bytes: usize,
    /// The most bytes of all names together: what a list of files may hold in memory.
    pub names_bytes: usize,
    /// Whether names are taken of which a component begins with a dot.
    pub hidden: bool,
    /// Whether files stay executable.
    pub modes: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            entries: 1_000_000,
            bytes: 1 << 50,
            component_bytes: 255,
            path_bytes: 4096,
            names_bytes: 128 << 20,
            hidden: true,
            modes: true,
        }
    }
}

/// Why a manifest is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// The name would leave the directory or is otherwise unfit.
    #[error("the name {path:?} is refused: {fault}")]
    Name {
        /// The name as it came.
        path: String,
        /// What is wrong with it.
        fault: NameFault,
    },
    /// Two entries have one name.
    #[error("the name {0:?} occurs twice")]
    Duplicate(String),
    /// A file's name is also used as a directory.
    #[error("the name {0:?} is used both as a file and as a directory")]
    FileAndDirectory(String),
    /// Too many files.
    #[error("there are more than {0} files and directories")]
    TooMany(usize),
    /// The names are too long together.
    #[error("the names of all files and directories take more than {0} bytes together")]
    NamesTooLong(usize),
    /// Too much data.
    #[error("the files hold more than {0} bytes")]
    TooLarge(u64),
}

/// What is wrong with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum NameFault {
    /// It is empty.
    #[error("it is empty")]
    Empty,
    /// It begins with `/`.
    #[error("it is absolute, only names inside the directory are accepted")]
    Absolute,
    /// It contains `..`.
    #[error("it climbs out of the directory with \"..\"")]
    Parent,
    /// It contains `.` as a component.
    #[error("it contains the component \".\"")]
    Current,
    /// It contains `//` or ends with `/`.
    #[error("it contains an empty component")]
    EmptyComponent,
    /// It contains a NUL character.
    #[error("it contains a NUL character")]
    Nul,
    /// It contains a control character, or one that changes the direction of text: what is shown of it is
    /// not what it is.
    #[error("it contains a control character, or one that changes the direction of text")]
    Control,
    /// A component begins with a dot, and the receiver takes no such names.
    #[error("it is hidden, and hidden names are not taken")]
    Hidden,
    /// It contains a backslash, which separates components on some systems.
    #[error("it contains a backslash")]
    Backslash,
    /// It begins like a drive of some systems.
    #[error("it begins with a drive letter")]
    Drive,
    /// A component is too long.
    #[error("a component is longer than {0} bytes")]
    LongComponent(usize),
    /// The whole is too long.
    #[error("it is longer than {0} bytes")]
    Long(usize),
    /// It is the receiver's own directory for unfinished files.
    #[error("it is reserved for unfinished files")]
    Reserved,
}

/// Checks one name.
pub fn check_name(path: &str, limits: &Limits) -> Result<(), NameFault> {
    if path.is_empty() {
        return Err(NameFault::Empty);
    }
    if path.len() > limits.path_bytes {
        return Err(NameFault::Long(limits.path_bytes));
    }
    if path.starts_with('/') {
        return Err(NameFault::Absolute);
    }
    if path.contains('\0') {
        return Err(NameFault::Nul);
    }
    if path.contains(is_deceptive) {
        return Err(NameFault::Control);
    }
    if path.contains('\\') {
        return Err(NameFault::Backslash);
    }
    if matches!(path.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic()) {
        return Err(NameFault::Drive);
    }
    for component in path.split('/') {
        match component {
            "" => return Err(NameFault::EmptyComponent),
            "." => return Err(NameFault::Current),
            ".." => return Err(NameFault::Parent),
            long if long.len() > limits.component_bytes => {
                return Err(NameFault::LongComponent(limits.component_bytes));
            }
            _ => {}
        }
    }
    let first = path.split('/').next().unwrap_or_default();
    if first.eq_ignore_ascii_case(PARTIAL) {
        return Err(NameFault::Reserved);
    }
    if !limits.hidden && path.split('/').any(|component| component.starts_with('.')) {
        return Err(NameFault::Hidden);
    }
    Ok(())
}

/// Whether this character makes a name look like another one: control characters of ASCII and C1, the ends
/// of lines and paragraphs, and those that embed, override and isolate the
/// direction of text in Unicode.
pub(crate) fn is_deceptive(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{2028}' | '\u{2029}' | '\u{61c}' | '\u{200e}' | '\u{200f}'
            | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Entries whose names and sizes have been checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    entries: Vec<Entry>,
    bytes: u64,
}

/// A manifest in the making. Every entry is judged when it comes, so that a list that will be
/// refused is never held whole.
#[derive(Debug)]
pub(crate) struct ManifestBuilder {
    limits: Limits,
    entries: Vec<Entry>,
    bytes: u64,
    names_bytes: usize,
}

impl ManifestBuilder {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits, entries: Vec::new(), bytes: 0, names_bytes: 0 }
    }

    /// Takes an entry whose name and size are acceptable, and keeps the sums.
    pub(crate) fn push(&mut self, mut entry: Entry) -> Result<(), ManifestError> {
        let limits = &self.limits;
        if let Entry::File { executable, .. } = &mut entry {
            *executable &= limits.modes;
        }
        if self.entries.len() >= limits.entries {
            return Err(ManifestError::TooMany(limits.entries));
        }
        let path = entry.path();
        if let Err(fault) = check_name(path, limits) {
            return Err(ManifestError::Name { path: beginning(path), fault });
        }
        self.names_bytes += path.len();
        if self.names_bytes > limits.names_bytes {
            return Err(ManifestError::NamesTooLong(limits.names_bytes));
        }
        self.bytes = match self.bytes.checked_add(entry.size()) {
            Some(sum) if sum <= limits.bytes => sum,
            _ => return Err(ManifestError::TooLarge(limits.bytes)),
        };
        self.entries.push(entry);
        Ok(())
    }

    /// The manifest, unless names occur twice or a file is used as a directory.
    pub(crate) fn finish(self) -> Result<Manifest, ManifestError> {
        let mut is_file = BTreeMap::new();
        for entry in &self.entries {
            if is_file.insert(entry.path(), matches!(entry, Entry::File { .. })).is_some() {
                return Err(ManifestError::Duplicate(entry.path().to_owned()));
            }
        }
        for path in is_file.keys() {
            let parents = path.match_indices('/').map(|(at, _)| &path[..at]);
            for parent in parents {
                if is_file.get(parent) == Some(&true) {
                    return Err(ManifestError::FileAndDirectory(parent.to_owned()));
                }
            }
        }
        Ok(Manifest { entries: self.entries, bytes: self.bytes })
    }
}

/// As much of a refused name as a message can show.
fn beginning(path: &str) -> String {
    match path.char_indices().nth(SHOWN_OF_A_NAME) {
        Some((end, _)) => format!("{}…", &path[..end]),
        None => path.to_owned(),
    }
}

impl Manifest {
    /// Checks the entries: every name, no name twice, no file that is also a directory, and the sums.
    pub fn new(entries: Vec<Entry>, limits: &Limits) -> Result<Self, ManifestError> {
        let mut builder = ManifestBuilder::new(*limits);
        entries.into_iter().try_for_each(|entry| builder.push(entry))?;
        builder.finish()
    }

    /// A part of this one.
    pub(crate) fn with(&self, entries: Vec<Entry>) -> Self {
        let bytes = entries.iter().map(Entry::size).sum();
        Self { entries, bytes }
    }

    /// The entries; a file's number on the wire is its place here.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The sizes of all files.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many regular files there are.
    pub fn files(&self) -> u64 {
        self.entries.iter().filter(|entry| matches!(entry, Entry::File { .. })).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn file(path: &str, size: u64) -> Entry {
        Entry::File { path: path.to_owned(), size, mtime_ns: 0, executable: false }
    }

    fn refused(entries: Vec<Entry>) -> ManifestError {
        Manifest::new(entries, &Limits::default()).unwrap_err()
    }

    #[test]
    fn every_kind_of_traversal_is_refused_by_name() {
        for (path, fault) in [
            ("/etc/passwd", NameFault::Absolute),
            ("../x", NameFault::Parent),
            ("a/../../x", NameFault::Parent),
            ("a/..", NameFault::Parent),
            ("..", NameFault::Parent),
            ("./x", NameFault::Current),
            ("a//x", NameFault::EmptyComponent),
            ("a/", NameFault::EmptyComponent),
            ("", NameFault::Empty),
            ("a\0b", NameFault::Nul),
            ("new\nline", NameFault::Control),
            ("a\u{1b}[2J", NameFault::Control),
            ("a\u{9b}2J", NameFault::Control),
            ("cod.\u{202e}gpj", NameFault::Control),
            ("a\u{2066}b", NameFault::Control),
            ("..\\x", NameFault::Backslash),
            ("C:/x", NameFault::Drive),
            ("c:x", NameFault::Drive),
            (".fairpath-partial/x", NameFault::Reserved),
            (".Fairpath-Partial", NameFault::Reserved),
        ] {
            assert_eq!(refused(vec![file(path, 0)]), ManifestError::Name { path: path.to_owned(), fault });
        }
        let long = "a".repeat(256);
        assert!(refused(vec![file(&long, 0)]).to_string().contains("255"));
        let deep = "ab/".repeat(1400) + "x";
        assert!(refused(vec![file(&deep, 0)]).to_string().contains("4096"));
    }

    #[test]
    fn odd_but_harmless_names_are_accepted() {
        let names = ["a b", "日本語/ü", "...", "..a", "a..", ".hidden", "-rf", "ab:c", "~"];
        let entries = names.iter().map(|name| file(name, 1)).collect();
        assert_eq!(Manifest::new(entries, &Limits::default()).unwrap().bytes(), names.len() as u64);
    }

    #[test]
    fn what_a_refused_name_does_to_a_terminal_is_not_shown() {
        for path in ["a\u{1b}[2J", "a\u{9b}2J", "cod.\u{202e}gpj", "a\u{2066}b", "x\u{2028}y"] {
            let shown = refused(vec![file(path, 0)]).to_string();
            assert!(!shown.contains(is_deceptive) && shown.contains("\\u{"), "{shown:?}");
        }
    }

    #[test]
    fn hidden_names_and_modes_are_taken_only_where_they_are_wanted() {
        let limits = Limits { hidden: false, modes: false, ..Limits::default() };
        for path in [".ssh/authorized_keys", "a/.git/hooks/x", ".profile", "a/.b", "..."] {
            let fault = ManifestError::Name { path: path.to_owned(), fault: NameFault::Hidden };
            assert_eq!(Manifest::new(vec![file(path, 0)], &limits), Err(fault));
            assert!(Manifest::new(vec![file(path, 0)], &Limits::default()).is_ok());
        }
        let run = Entry::File { path: "a.b/run".into(), size: 1, mtime_ns: 0, executable: true };
        let taken = Manifest::new(vec![run.clone()], &limits).unwrap();
        assert!(matches!(taken.entries(), [Entry::File { executable: false, .. }]));
        assert_eq!(Manifest::new(vec![run.clone()], &Limits::default()).unwrap().entries(), [run]);
    }

    #[test]
    fn duplicates_and_conflicts_are_refused() {
        assert_eq!(refused(vec![file("a", 0), file("a", 0)]), ManifestError::Duplicate("a".into()));
        let both = vec![file("a/b", 0), file("a.b", 0), file("a", 0)];
        assert_eq!(refused(both), ManifestError::FileAndDirectory("a".into()));
        let directory = vec![Entry::Directory { path: "a".into() }, file("a/b", 0)];
        assert!(Manifest::new(directory, &Limits::default()).is_ok());
    }

    #[test]
    fn sums_and_counts_are_limited() {
        assert!(matches!(refused(vec![file("a", u64::MAX), file("b", 2)]), ManifestError::TooLarge(_)));
        let limits = Limits { entries: 1, ..Limits::default() };
        let two = vec![file("a", 0), file("b", 0)];
        assert_eq!(Manifest::new(two, &limits).unwrap_err(), ManifestError::TooMany(1));
    }

    #[test]
    fn a_list_is_refused_at_the_first_entry_that_cannot_be_taken() {
        let limits = Limits { names_bytes: 1000, ..Limits::default() };
        let mut builder = ManifestBuilder::new(limits);
        for number in 0..10 {
            builder.push(file(&format!("{number:0100}"), 0)).unwrap();
        }
        assert_eq!(builder.push(file("x", 0)), Err(ManifestError::NamesTooLong(1000)));

        let mut builder = ManifestBuilder::new(Limits::default());
        let Err(ManifestError::Name { path, fault }) = builder.push(file(&"x".repeat(1 << 20), 0)) else {
            panic!("a name of a megabyte was taken")
        };
        assert_eq!(fault, NameFault::Long(4096));
        assert!(path.len() < 1000, "what is kept of it is short");
        assert!(builder.entries.is_empty());
    }

    proptest! {
        #[test]
        fn an_accepted_name_stays_inside(path in "[a./\\\\:\0]{0,12}") {
            if check_name(&path, &Limits::default()).is_ok() {
                let components: Vec<_> = std::path::Path::new(&path).components().collect();
                let inside = components.iter().all(|part| matches!(part, std::path::Component::Normal(_)));
                prop_assert!(inside && !components.is_empty());
            }
        }

        #[test]
        fn arbitrary_names_never_panic(path in any::<String>()) {
            let _ = Manifest::new(vec![file(&path, 1)], &Limits::default());
        }
    }
}
