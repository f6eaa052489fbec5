//! The manifest: what is to be sent, and the rules that its names must keep.
//!
//! Names are relative, with `/` between components. Both ends apply the same rules, so an honest
//! sender learns of a name that cannot travel before it connects, and a receiver never trusts one.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::attributes;
use crate::entry::{Entry, Kind, PERMISSIONS, stays_inside};
use crate::name::Name;
use crate::words::is_deceptive;

/// Where a receiver keeps unfinished files, at the root of its directory. No manifest may name it.
pub(crate) const PARTIAL: &str = ".fairpath-partial";

/// How many bytes of a refused name are shown; whoever sends it chooses its length.
const SHOWN_OF_A_NAME: usize = 300;

/// The longest target of a symbolic link, in bytes: as long as systems take them.
const TARGET_MAX: usize = 4095;

/// The limits of a receiver.
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
    /// Whether permissions are taken as they are at the sender; otherwise files are not executable.
    pub modes: bool,
    /// Whether the times of directories and extended attributes are taken.
    pub archive: bool,
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
            archive: true,
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
        /// The name as it came, or its beginning.
        path: Name,
        /// The fault.
        fault: NameFault,
    },
    /// Two entries have one name.
    #[error("the name {0:?} occurs twice")]
    Duplicate(Name),
    /// A file's name is also used as a directory.
    #[error("the name {0:?} is used both as a file and as a directory")]
    FileAndDirectory(Name),
    /// A symbolic link that could lead elsewhere.
    #[error("the symbolic link {path:?} is refused: {target:?} may lead out of what is sent")]
    Link {
        /// The link, or the beginning of its name.
        path: Name,
        /// Where it leads, or the beginning of that.
        target: Name,
    },
    /// Another name of a file that is not sent.
    #[error("the hard link {path:?} is refused: {to:?}, whose other name it is, is no file that is sent")]
    HardLink {
        /// The link.
        path: Name,
        /// The file.
        to: Name,
    },
    /// Extended attributes that are none of users, or too large.
    #[error("the extended attributes of {0:?} are refused: only `user.*` is taken, 64 kB of it at most")]
    Attributes(Name),
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

/// The fault of a name.
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
pub fn check_name(path: &Name, limits: &Limits) -> Result<(), NameFault> {
    let bytes = path.as_bytes();
    if bytes.is_empty() {
        return Err(NameFault::Empty);
    }
    if bytes.len() > limits.path_bytes {
        return Err(NameFault::Long(limits.path_bytes));
    }
    if bytes[0] == b'/' {
        return Err(NameFault::Absolute);
    }
    if bytes.contains(&0) {
        return Err(NameFault::Nul);
    }
    if deceives(bytes) {
        return Err(NameFault::Control);
    }
    for component in path.components() {
        match component {
            b"" => return Err(NameFault::EmptyComponent),
            b"." => return Err(NameFault::Current),
            b".." => return Err(NameFault::Parent),
            long if long.len() > limits.component_bytes => {
                return Err(NameFault::LongComponent(limits.component_bytes));
            }
            _ => {}
        }
    }
    let first = path.components().next().unwrap_or_default();
    if first.eq_ignore_ascii_case(PARTIAL.as_bytes()) {
        return Err(NameFault::Reserved);
    }
    if !limits.hidden && path.components().any(|component| component.starts_with(b".")) {
        return Err(NameFault::Hidden);
    }
    Ok(())
}

/// Whether a symbolic link may be sent and made.
pub(crate) fn may_link(path: &Name, target: &Name) -> bool {
    let bytes = target.as_bytes();
    bytes.len() <= TARGET_MAX && !bytes.contains(&0) && !deceives(bytes) && stays_inside(path, target)
}

/// Whether what is text in it is not what it looks like.
fn deceives(bytes: &[u8]) -> bool {
    bytes.utf8_chunks().any(|chunk| chunk.valid().contains(is_deceptive))
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
    /// How many names of what is not sent were told.
    unsent: usize,
}

impl ManifestBuilder {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits, entries: Vec::new(), bytes: 0, names_bytes: 0, unsent: 0 }
    }

    /// Takes an entry whose name and size are acceptable, and keeps the sums.
    pub(crate) fn push(&mut self, mut entry: Entry) -> Result<(), ManifestError> {
        let limits = &self.limits;
        entry.mode &= match (&entry.kind, limits.modes) {
            (_, true) => PERMISSIONS,
            (Kind::Directory, false) => 0o777,
            (_, false) => 0o666,
        };
        if self.entries.len() + self.unsent >= limits.entries {
            return Err(ManifestError::TooMany(limits.entries));
        }
        let path = &entry.path;
        if let Err(fault) = check_name(path, limits) {
            return Err(ManifestError::Name { path: beginning(path), fault });
        }
        if let Kind::Link { target } = &entry.kind
            && !may_link(path, target)
        {
            return Err(ManifestError::Link { path: beginning(path), target: beginning(target) });
        }
        if !limits.archive {
            entry.attributes = Vec::new();
        }
        if !attributes::may_travel(&entry.attributes) {
            return Err(ManifestError::Attributes(beginning(path)));
        }
        self.names_bytes += entry.names_bytes();
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

    /// Takes note of a name that is told and not sent: it is held, too.
    pub(crate) fn count_name(&mut self, name: &Name) -> Result<(), ManifestError> {
        let limits = &self.limits;
        self.unsent += 1;
        if self.entries.len() + self.unsent > limits.entries {
            return Err(ManifestError::TooMany(limits.entries));
        }
        self.names_bytes += name.len();
        if self.names_bytes > limits.names_bytes {
            return Err(ManifestError::NamesTooLong(limits.names_bytes));
        }
        Ok(())
    }

    /// The manifest, unless names occur twice or a file is used as a directory.
    pub(crate) fn finish(self) -> Result<Manifest, ManifestError> {
        let mut is_directory = BTreeMap::new();
        for entry in &self.entries {
            if is_directory.insert(entry.path.as_bytes(), entry.is_directory()).is_some() {
                return Err(ManifestError::Duplicate(entry.path.clone()));
            }
        }
        let is_file = |entry: &&Entry| matches!(entry.kind, Kind::File { .. });
        let files: BTreeSet<_> = self.entries.iter().filter(is_file).map(|entry| &entry.path).collect();
        for entry in &self.entries {
            if let Kind::HardLink { to } = &entry.kind
                && !files.contains(to)
            {
                return Err(ManifestError::HardLink { path: entry.path.clone(), to: beginning(to) });
            }
        }
        for entry in &self.entries {
            if let Some(parent) = entry.path.parents().find(|parent| is_directory.get(parent) == Some(&false)) {
                return Err(ManifestError::FileAndDirectory(Name::new(parent)));
            }
        }
        Ok(Manifest { entries: self.entries, bytes: self.bytes })
    }
}

/// As much of a refused name as a message can show.
fn beginning(name: &Name) -> Name {
    let bytes = name.as_bytes();
    match bytes.len() {
        0..=SHOWN_OF_A_NAME => name.clone(),
        _ => Name::new([&bytes[..SHOWN_OF_A_NAME], "…".as_bytes()].concat()),
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
        self.entries.iter().filter(|entry| entry.is_file()).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::attributes::Attribute;

    fn file(path: &str, size: u64) -> Entry {
        Entry::file(path, size)
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
            (".fairpath-partial/x", NameFault::Reserved),
            (".Fairpath-Partial", NameFault::Reserved),
        ] {
            assert_eq!(refused(vec![file(path, 0)]), ManifestError::Name { path: path.into(), fault });
        }
        let long = "a".repeat(256);
        assert!(refused(vec![file(&long, 0)]).to_string().contains("255"));
        let deep = "ab/".repeat(1400) + "x";
        assert!(refused(vec![file(&deep, 0)]).to_string().contains("4096"));
    }

    #[test]
    fn odd_but_harmless_names_are_accepted() {
        let names =
            ["a b", "日本語/ü", "...", "..a", "a..", ".hidden", "-rf", "ab:c", "c:x", "~", "back\\slash", "..\\x"];
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
            let fault = ManifestError::Name { path: path.into(), fault: NameFault::Hidden };
            assert_eq!(Manifest::new(vec![file(path, 0)], &limits), Err(fault));
            assert!(Manifest::new(vec![file(path, 0)], &Limits::default()).is_ok());
        }
        let run = Entry { mode: 0o7755, ..Entry::file("a.b/run", 1) };
        let modes = |limits| Manifest::new(vec![run.clone()], limits).unwrap().entries()[0].mode;
        assert_eq!((modes(&limits), modes(&Limits::default())), (0o644, 0o1755), "never as somebody else");
    }

    #[test]
    fn bytes_that_are_no_text_are_a_name_like_any_other() {
        let names = [&b"caf\xe9"[..], b"d/\xff\xfe", b"\xc3/x"];
        let entries: Vec<_> = names.iter().map(|name| Entry::file(*name, 1)).collect();
        assert_eq!(Manifest::new(entries.clone(), &Limits::default()).unwrap().entries(), entries);
        let refused = refused(vec![Entry::file(&b"\xff\x1b[2J"[..], 0)]);
        assert_eq!(
            refused.to_string(),
            "the name \"\\xff\\u{1b}[2J\" is refused: it contains a control character, \
                                         or one that changes the direction of text"
        );
    }

    #[test]
    fn links_that_may_lead_out_of_what_is_sent_are_refused() {
        for target in ["/etc/passwd", "../x", "a/../../x", "", "x\0", "x\u{202e}", &"x".repeat(5000)] {
            let error = refused(vec![Entry::link("d/l", target)]);
            assert!(matches!(error, ManifestError::Link { .. }), "{error}");
        }
        assert!(Manifest::new(vec![Entry::link("d/l", "e/x"), Entry::link("d/e/m", "..")], &Limits::default()).is_ok());
        let below = vec![Entry::link("d/l", "e"), file("d/l/x", 1)];
        assert_eq!(refused(below), ManifestError::FileAndDirectory("d/l".into()));
    }

    #[test]
    fn a_hard_link_is_another_name_of_a_file_that_is_sent() {
        let to = |to: &str| {
            vec![file("d/a", 1), Entry::directory("d/e"), Entry::link("d/s", "a"), Entry::hard_link("d/b", to)]
        };
        assert!(Manifest::new(to("d/a"), &Limits::default()).is_ok());
        for other in ["/etc/passwd", "d/e", "d/s", "d/b", "d/x", ""] {
            assert!(matches!(refused(to(other)), ManifestError::HardLink { .. }), "{other}");
        }
    }

    #[test]
    fn attributes_are_taken_only_where_they_are_wanted() {
        let of = |name: &str| {
            let attribute = Attribute { name: name.into(), value: Name::new(b"x") };
            vec![Entry { attributes: vec![attribute], ..file("a", 1) }]
        };
        assert_eq!(refused(of("security.capability")), ManifestError::Attributes("a".into()));
        let count = |limits| Manifest::new(of("user.x"), &limits).unwrap().entries()[0].attributes.len();
        assert_eq!((count(Limits::default()), count(Limits { archive: false, ..Limits::default() })), (1, 0));
    }

    #[test]
    fn duplicates_and_conflicts_are_refused() {
        assert_eq!(refused(vec![file("a", 0), file("a", 0)]), ManifestError::Duplicate("a".into()));
        let both = vec![file("a/b", 0), file("a.b", 0), file("a", 0)];
        assert_eq!(refused(both), ManifestError::FileAndDirectory("a".into()));
        let directory = vec![Entry::directory("a"), file("a/b", 0)];
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
            let path = Name::from(path);
            if check_name(&path, &Limits::default()).is_ok() {
                let components: Vec<_> = path.as_path().components().collect();
                let inside = components.iter().all(|part| matches!(part, std::path::Component::Normal(_)));
                prop_assert!(inside && !components.is_empty());
            }
        }

        #[test]
        fn an_accepted_link_stays_inside(path in "d(/[ab]){1,3}", target in "[ab./]{0,9}") {
            let (path, target) = (Name::from(path), Name::from(target));
            if may_link(&path, &target) {
                let mut depth = path.components().count() as i64 - 1;
                for component in target.as_path().components() {
                    depth += if component == std::path::Component::ParentDir { -1 } else { 1 };
                    prop_assert!(depth >= 1, "{path} -> {target}");
                }
            }
        }

        #[test]
        fn arbitrary_names_never_panic(path in any::<Vec<u8>>(), target in any::<Vec<u8>>()) {
            let _ = Manifest::new(vec![Entry::file(&path[..], 1)], &Limits::default());
            let _ = Manifest::new(vec![Entry::link(&path[..], &target[..])], &Limits::default());
        }
    }
}
