//! Manifests: the entries of a message, judged as a receiver judges them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path};

use fairpath_transfer::{Attribute, Entry, Kind, Limits, Manifest, Name, PERMISSIONS, fuzzing};

use super::{Seed, Target};
use crate::memory::{self, BUFFERS};
use crate::said;

pub(crate) static TARGET: Target = Target {
    name: "manifest",
    about: "manifests: names, sizes and sums as a receiver judges them",
    check,
    seeds,
    words: &["..", "./", "/", "\\", "c:", ".fairpath-partial", "\u{202e}", "\u{0}"],
    also: &[],
};

/// As for messages, and an index by names beside the list.
const MEMORY: usize = 256;

fn check(input: &[u8]) {
    let narrow = Limits {
        entries: 20,
        bytes: 1 << 30,
        component_bytes: 10,
        path_bytes: 30,
        names_bytes: 100,
        hidden: false,
        modes: false,
        archive: false,
    };
    for limits in [Limits::default(), narrow] {
        memory::within(input, BUFFERS, MEMORY, || {
            if let Some(entries) = fuzzing::entries(input) {
                judge(entries, &limits);
            }
        });
    }
}

fn judge(entries: Vec<Entry>, limits: &Limits) {
    let offered = entries.len();
    match Manifest::new(entries, limits) {
        Ok(manifest) => {
            assert_eq!(manifest.entries().len(), offered);
            holds(&manifest, limits);
            let frame = fuzzing::entries_frame(manifest.entries().to_vec());
            let again = fuzzing::entries(&frame).map(|entries| Manifest::new(entries, limits));
            assert_eq!(again, Some(Ok(manifest)), "what is written is read as the same");
        }
        Err(error) => {
            // The longest names that are quoted have 4096 bytes, and a byte takes 10 characters at most.
            said::words(&error, 45_000);
        }
    }
}

/// Asserts the invariants on which the users of a manifest rely.
fn holds(manifest: &Manifest, limits: &Limits) {
    let entries = manifest.entries();
    assert!(entries.len() <= limits.entries);
    let sum = entries.iter().try_fold(0_u64, |sum, entry| sum.checked_add(entry.size()));
    assert_eq!(sum, Some(manifest.bytes()));
    assert!(manifest.bytes() <= limits.bytes);
    assert!(
        entries.iter().map(|entry| entry.path.len() + target_of(entry).map_or(0, Name::len)).sum::<usize>()
            <= limits.names_bytes
    );
    assert_eq!(entries.iter().filter(|entry| entry.is_file()).count() as u64, manifest.files());
    let directories = |entry: &&Entry| !matches!(entry.kind, Kind::Directory);
    let leaves: BTreeSet<&[u8]> = entries.iter().filter(directories).map(|entry| entry.path.as_bytes()).collect();
    let is_file = |entry: &&Entry| matches!(entry.kind, Kind::File { .. });
    let files: BTreeSet<&Name> = entries.iter().filter(is_file).map(|entry| &entry.path).collect();
    let mut names = BTreeMap::new();
    for entry in entries {
        if let Kind::HardLink { to } = &entry.kind {
            assert!(files.contains(to), "{to:?} is no file that is sent");
        }
        let is_users = entry.attributes.iter().all(|one| one.name.as_bytes().starts_with(b"user."));
        assert!(is_users && (limits.archive || entry.attributes.is_empty()), "{:?}", entry.attributes);
        let path = entry.path.as_path();
        assert!(!entry.path.is_empty() && entry.path.len() <= limits.path_bytes);
        assert!(path.components().all(|part| matches!(part, Component::Normal(_))), "{path:?} leaves the directory");
        assert!(!path.starts_with(".fairpath-partial"), "{path:?} is the receiver's own");
        assert!(!entry.path.to_string().contains(char::is_control), "{path:?} controls a terminal");
        let text = entry.path.as_bytes().utf8_chunks().all(|chunk| !chunk.valid().contains(char::is_control));
        assert!(text, "{path:?} controls a terminal");
        assert_eq!(entry.mode & !PERMISSIONS, 0, "{path:?} runs as somebody else");
        if let Some(target) = target_of(entry) {
            stays_inside(path, target.as_path());
        }
        let is_hidden = path.components().any(|part| part.as_os_str().as_encoded_bytes().starts_with(b"."));
        assert!(limits.hidden || !is_hidden, "{path:?} is hidden");
        assert!(limits.modes || !entry.is_file() || entry.mode & 0o7111 == 0, "{path:?} is executable");
        assert!(names.insert(entry.path.as_bytes(), ()).is_none(), "{path:?} is there twice");
        for parent in path.ancestors().skip(1) {
            let bytes = parent.as_os_str().as_encoded_bytes();
            assert!(!leaves.contains(bytes), "{parent:?} is a directory and something else");
        }
    }
}

fn target_of(entry: &Entry) -> Option<&Name> {
    match &entry.kind {
        Kind::Link { target } => Some(target),
        _ => None,
    }
}

/// A link climbs to the first component of its name at most, and only at the beginning.
fn stays_inside(path: &Path, target: &Path) {
    let mut depth = path.components().count() - 1;
    for component in target.components() {
        match component {
            Component::ParentDir => depth -= 1,
            Component::Normal(_) => depth = usize::MAX,
            Component::CurDir => {}
            _ => panic!("{path:?} leads to {target:?}"),
        }
        assert!(depth >= 1, "{path:?} leads to {target:?}");
    }
}

fn seeds() -> Vec<Seed> {
    let file = |path: &str, size| Entry { mode: 0o7755, mtime_ns: 1_700_000_000_000, ..Entry::file(path, size) };
    let directory = |path: &str| Entry::directory(path);
    let with = |name: &str, entry: Entry| {
        let attributes = vec![Attribute { name: name.into(), value: Name::new(b"\0\xff") }];
        Entry { attributes, ..entry }
    };
    let seed = |name: &str, entries: Vec<Entry>| Seed::new(name, fuzzing::entries_frame(entries));
    vec![
        seed("tree", vec![directory("a"), file("a/b", 3), file("a/c d/ü", 1 << 40), file(".hidden/x", 0)]),
        seed("file_and_directory", vec![file("a/b", 0), file("a", 0)]),
        seed("twice", vec![file("a", 0), file("a", 0)]),
        seed("too_large", vec![file("a", u64::MAX), file("b", 2)]),
        seed("parent", vec![file("a/../../x", 1)]),
        seed("absolute", vec![file("/etc/passwd", 1)]),
        seed("drive", vec![file("c:x", 1), file("a\\b", 1)]),
        seed("no_text", vec![Entry::file(&b"d/\xff\xfe"[..], 1)]),
        seed("links", vec![directory("d"), Entry::link("d/e/l", "../x/y"), Entry::link("d/m", "e")]),
        seed("link_out", vec![Entry::link("d/l", "x/../../y")]),
        seed("below_a_link", vec![Entry::link("d/l", "x"), file("d/l/y", 1)]),
        seed("stream", vec![Entry::stream("stdin")]),
        seed("hard_links", vec![directory("d"), file("d/a", 3), Entry::hard_link("d/b", "d/a")]),
        seed("hard_link_out", vec![Entry::hard_link("d/b", "/etc/passwd")]),
        seed("attributes", vec![with("user.x", file("a", 3)), with("user.y", directory("d"))]),
        seed("attribute_of_the_system", vec![with("security.capability", file("a", 3))]),
        seed("reserved", vec![file(".Fairpath-Partial/x", 1)]),
        seed("direction", vec![file("cod.\u{202e}gpj", 1)]),
        seed("many", (0..25).map(|at| file(&at.to_string(), at)).collect()),
    ]
}
