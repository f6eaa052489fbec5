//! The corpora: a folder for each target, with its seeds and with what fuzzers have found.

use std::io;
use std::path::{Path, PathBuf};

use crate::target::Target;

/// The folders with inputs of a target, as seen from the repository's; its corpus first.
pub fn folders_of(target: &Target) -> Vec<PathBuf> {
    core::iter::once(Path::new("crates/fuzz/corpus").join(target.name))
        .chain(target.also.iter().map(PathBuf::from))
        .collect()
}

/// The same, wherever the program runs.
pub fn folders(target: &Target) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    folders_of(target).iter().map(|folder| root.join(folder)).collect()
}

/// Where the corpus of a target is.
pub fn folder(target: &Target) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target.name)
}

/// The files in these folders and their contents, in order of their names.
pub fn read(folders: &[PathBuf]) -> io::Result<Vec<(PathBuf, Vec<u8>)>> {
    let mut found = Vec::new();
    for folder in folders {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_file() {
                found.push((path.clone(), std::fs::read(path)?));
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Where a seed of a target is, or should be.
pub fn seed_file(target: &Target, name: &str) -> PathBuf {
    folder(target).join(format!("seed-{name}"))
}
