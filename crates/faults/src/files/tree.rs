//! Files: drawn from a seed, written for the sender, and compared with what the receiver has.
//!
//! They lie in the memory file system of this machine where it has one. So the product's own calls are tried, and
//! nothing of them depends on the clock: times of change are drawn too.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use rand::{Rng as _, RngCore as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

/// Where the receiver keeps what is not whole.
const PARTIAL: &str = ".fairpath-partial";

/// Names that have met trouble elsewhere: spaces, quotes, other scripts, one of two forms of the same letter, and
/// nearly the longest that file systems take.
const NAMES: [&str; 8] = ["a", "b c", " x", "it's", "grüße", "e\u{301}", "日本語", "-rf"];

/// Sizes at which something changes: nothing, what fits into a parcel, what fits into a record.
const SIZES: [u64; 9] = [0, 1, 16_383, 16_384, 16_385, 65_535, 65_536, 65_537, 131_072];

/// A node of the tree, at one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Node {
    /// A directory.
    Directory,
    /// A file.
    File {
        /// Its content.
        content: Vec<u8>,
        /// When it was changed, in seconds since 1970.
        modified: u64,
        /// Whether its owner may execute it.
        executable: bool,
    },
}

/// Directories and files by their names, a directory before what is in it. Of a file that was written to there are
/// several versions, the last of which stands there.
pub(super) type Tree = BTreeMap<String, Vec<Node>>;

/// The size of a file that travels in pieces, in bytes.
fn large(luck: &mut ChaCha8Rng, most: u64) -> u64 {
    luck.random_range(most / 4..=most)
}

/// A tree of about `bytes` in one of several kinds, below one directory.
pub(super) fn draw(seed: u64, bytes: u64) -> Tree {
    let mut luck = ChaCha8Rng::seed_from_u64(seed);
    let mut tree = Tree::new();
    let mut name = format!("files {}", NAMES[luck.random_range(0..NAMES.len())]);
    tree.insert(name.clone(), vec![Node::Directory]);
    let root = name.clone();
    let kind = luck.random_range(0..4);
    let (smalls, larges) = match kind {
        0 => (0, 1),
        1 => (luck.random_range(50..300), 0),
        2 => (luck.random_range(1..10), luck.random_range(2..5)),
        _ => (luck.random_range(20..80), luck.random_range(1..4)),
    };
    for number in 0..smalls {
        // Some go a level down or back to the root.
        if luck.random_bool(0.1) {
            name = if luck.random() { root.clone() } else { format!("{name}/{}", NAMES[number % NAMES.len()]) };
            tree.insert(name.clone(), vec![Node::Directory]);
        }
        let size =
            if luck.random_bool(0.3) { SIZES[luck.random_range(0..SIZES.len())] } else { luck.random_range(0..4_000) };
        tree.insert(format!("{name}/{number}"), vec![file(&mut luck, size)]);
    }
    for number in 0..larges {
        let size = large(&mut luck, bytes / larges);
        tree.insert(format!("{root}/large {number}"), vec![file(&mut luck, size)]);
    }
    for number in 0..luck.random_range(0..3) {
        tree.insert(format!("{root}/empty {number}"), vec![Node::Directory]);
    }
    tree
}

fn file(luck: &mut ChaCha8Rng, size: u64) -> Node {
    let mut content = vec![0; size as usize];
    luck.fill_bytes(&mut content);
    Node::File { content, modified: luck.random_range(0..2_000_000_000), executable: luck.random_bool(0.1) }
}

/// The size of all files together, in bytes.
pub(super) fn bytes(tree: &Tree) -> u64 {
    let size = |node: &Node| if let Node::File { content, .. } = node { content.len() as u64 } else { 0 };
    tree.values().flatten().map(size).sum()
}

/// Writes all of it below a directory.
pub(super) fn write(tree: &Tree, below: &Path) -> io::Result<()> {
    for (name, versions) in tree {
        if let Some(last) = versions.last() {
            write_node(last, &below.join(name))?;
        }
    }
    Ok(())
}

fn write_node(node: &Node, path: &Path) -> io::Result<()> {
    let Node::File { content, modified, executable } = node else { return fs::create_dir_all(path) };
    fs::write(path, content)?;
    let mode = if *executable { 0o755 } else { 0o644 };
    fs::set_permissions(path, PermissionsExt::from_mode(mode))?;
    let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(*modified);
    fs::File::options().write(true).open(path)?.set_modified(modified)
}

/// Writes to a file: what is in it changes a second later, and maybe how long it is.
pub(super) fn rewrite(tree: &mut Tree, number: usize, below: &Path, luck: &mut ChaCha8Rng) -> io::Result<()> {
    let is_file = |versions: &Vec<Node>| matches!(versions.last(), Some(Node::File { .. }));
    let count = tree.values().filter(|versions| is_file(versions)).count();
    let mut files = tree.iter_mut().filter(|(_, versions)| is_file(versions));
    let Some((name, versions)) = files.nth(number % count.max(1)) else { return Ok(()) };
    let Some(Node::File { mut content, modified, executable }) = versions.last().cloned() else { return Ok(()) };
    match luck.random_range(0..3) {
        0 => content.push(luck.random()),
        1 => content.truncate(content.len() / 2),
        _ => content.iter_mut().take(100).for_each(|byte| *byte = !*byte),
    }
    let node = Node::File { content, modified: modified + 1, executable };
    write_node(&node, &below.join(name))?;
    versions.push(node);
    Ok(())
}

/// A failing disk changes one byte of each page of a file.
const PAGE: usize = 4096;

/// Changes a byte of each page of what the receiver has of a file that is not whole, if there is one.
pub(super) fn spoil(below: &Path, number: usize) -> io::Result<()> {
    let listed = match fs::read_dir(below.join(PARTIAL)) {
        Ok(listed) => listed.collect::<io::Result<Vec<_>>>()?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let mut parts: Vec<_> = listed.iter().map(fs::DirEntry::path).collect();
    parts.retain(|path| path.extension().is_some_and(|kind| kind == "part"));
    parts.sort();
    let Some(path) = parts.get(number % parts.len().max(1)) else { return Ok(()) };
    let mut content = fs::read(path)?;
    content.iter_mut().step_by(PAGE).for_each(|byte| *byte = !*byte);
    fs::write(path, content)
}

fn read_node(path: &Path) -> io::Result<Node> {
    let metadata = fs::symlink_metadata(path)?;
    if metadata.is_dir() {
        return Ok(Node::Directory);
    }
    let modified = metadata.modified()?.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
    let executable = metadata.permissions().mode() & 0o100 != 0;
    Ok(Node::File { content: fs::read(path)?, modified, executable })
}

/// The names below a directory, but for those of what is not whole.
fn names(below: &Path) -> io::Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    let mut left = vec![String::new()];
    while let Some(directory) = left.pop() {
        for item in fs::read_dir(below.join(&directory))? {
            let item = item?;
            let last = item.file_name().to_string_lossy().into_owned();
            let name = if directory.is_empty() { last } else { format!("{directory}/{last}") };
            if name == PARTIAL {
                continue;
            }
            if item.file_type()?.is_dir() {
                left.push(name.clone());
            }
            found.insert(name);
        }
    }
    Ok(found)
}

/// Looks at what the receiver has.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// The files that were seen whole; nothing writes to them any more.
    whole: BTreeSet<String>,
}

impl Watch {
    /// A file under its final name that differs from the one sent, if there is one.
    pub(super) fn unwhole(&mut self, expected: &Tree, below: &Path) -> Option<String> {
        let found = match names(below) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => return Some(error.to_string()),
        };
        for name in found {
            if self.whole.contains(&name) {
                continue;
            }
            let Some(versions) = expected.get(&name) else { return Some(format!("{name:?} was never sent")) };
            let found = match read_node(&below.join(&name)) {
                Ok(found) => found,
                Err(error) => return Some(format!("{name:?}: {error}")),
            };
            if !versions.contains(&found) {
                return Some(format!("{name:?} stands there and is not whole: {}", unlike(&found, versions)));
            }
            self.whole.insert(name);
        }
        None
    }
}

/// In what it differs.
fn unlike(found: &Node, versions: &[Node]) -> String {
    let words = |node: &Node| match node {
        Node::Directory => "a directory".to_owned(),
        Node::File { content, modified, executable } => {
            let digest = &blake3::hash(content).to_hex()[..8];
            format!("{} B with digest {digest}, of {modified}, executable: {executable}", content.len())
        }
    };
    format!("{} in place of {}", words(found), versions.iter().map(words).collect::<Vec<_>>().join(" or "))
}

/// A difference between the expected and the received tree at the end, if there is one; the names
/// in `left_out` were not sent.
pub(super) fn difference(expected: &Tree, left_out: &BTreeSet<String>, below: &Path) -> Option<String> {
    if let Some(wrong) = Watch::default().unwhole(expected, below) {
        return Some(wrong);
    }
    let found = names(below).unwrap_or_default();
    let missing = expected.keys().find(|name| !found.contains(*name) && !left_out.contains(*name));
    if let Some(missing) = missing {
        return Some(format!("{missing:?} is missing"));
    }
    below.join(PARTIAL).exists().then(|| format!("{PARTIAL} is still there"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree of a few files, and a directory in which all of them are.
    fn received() -> (Tree, tempfile::TempDir) {
        let (tree, disk) = (draw(7, 100_000), tempfile::tempdir().expect("a directory"));
        write(&tree, disk.path()).expect("written");
        (tree, disk)
    }

    /// The difference found after a change to the received tree, with nothing left out.
    fn after(change: impl FnOnce(&Path)) -> Option<String> {
        let (tree, disk) = received();
        let file = tree.iter().find(|(_, node)| matches!(&node[0], Node::File { content, .. } if content.len() > 1));
        let path = disk.path().join(file.expect("a file").0);
        change(&path);
        difference(&tree, &BTreeSet::new(), disk.path())
    }

    #[test]
    fn what_is_not_as_it_was_sent_is_found() {
        assert_eq!(after(|_| {}), None);
        let said = |change: fn(&Path)| after(change).expect("it is found");
        assert!(said(|path| fs::remove_file(path).expect("removed")).contains("is missing"));
        assert!(said(|path| fs::write(path, "x").expect("written")).contains("is not whole"));
        let set_now = |path: &Path| fs::File::options().write(true).open(path)?.set_modified(SystemTime::UNIX_EPOCH);
        assert!(after(|path| set_now(path).expect("set")).expect("it is found").contains("is not whole"));
        assert!(said(|path| fs::write(path.with_file_name("more"), "").expect("written")).contains("never sent"));
    }

    #[test]
    fn what_is_not_whole_yet_is_no_fault_beside_the_files_and_one_at_the_end() {
        let (tree, disk) = received();
        fs::create_dir(disk.path().join(PARTIAL)).expect("made");
        assert_eq!(Watch::default().unwhole(&tree, disk.path()), None);
        assert!(difference(&tree, &BTreeSet::new(), disk.path()).expect("it is found").contains("still there"));
    }

    #[test]
    fn either_version_of_a_file_that_was_written_to_is_whole_and_no_other() {
        let (mut tree, disk) = received();
        let before = tree.clone();
        for number in 0..20 {
            rewrite(&mut tree, number, disk.path(), &mut ChaCha8Rng::seed_from_u64(number as u64)).expect("written");
        }
        assert!(Watch::default().unwhole(&before, disk.path()).is_some());
        assert_eq!(Watch::default().unwhole(&tree, disk.path()), None);
        write(&before, disk.path()).expect("written");
        assert_eq!(Watch::default().unwhole(&tree, disk.path()), None);
    }
}
