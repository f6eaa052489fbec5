//! Where things lie.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder with the workspace's `Cargo.toml`.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace is two folders up")
}

/// The text of a file.
pub fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The folders of the crates, in order.
pub fn crate_folders() -> Vec<PathBuf> {
    let mut folders = entries(&root().join("crates"));
    folders.retain(|folder| folder.join("Cargo.toml").is_file());
    folders
}

/// The Rust files under `folder`, in order; none where there is no such folder.
pub fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in entries(folder) {
        if entry.is_dir() {
            // Sources may lie in a folder of that name, too; cargo's is beside a manifest.
            let is_built = entry.ends_with("target") && folder.join("Cargo.toml").is_file();
            if !is_built {
                files.extend(rust_files(&entry));
            }
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            files.push(entry);
        }
    }
    files
}

/// The documents in Markdown: those at the root, and all under `docs`, in order.
pub fn documents() -> Vec<PathBuf> {
    let mut files = entries(&root());
    files.retain(|path| path.is_file());
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        let (inside, found): (Vec<_>, Vec<_>) = entries(&folder).into_iter().partition(|path| path.is_dir());
        folders.extend(inside);
        files.extend(found);
    }
    files.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    files.sort();
    files
}

/// `path` as seen from the root, with forward slashes.
pub fn relative(path: &Path) -> String {
    let path = path.strip_prefix(root()).unwrap_or(path);
    path.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}

/// The entries of a folder, in order; none where there is no such folder.
pub fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut entries: Vec<PathBuf> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    entries.sort();
    entries
}

/// The answer of git.
///
/// # Errors
///
/// The message of git where it fails.
pub fn git(arguments: &[&str]) -> Result<String, String> {
    let output = Command::new("git").current_dir(root()).args(arguments).output();
    let output = output.map_err(|error| format!("git: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_in_a_folder_called_target_are_found() {
        let files: Vec<String> = rust_files(&root().join("crates/fuzz")).iter().map(|path| relative(path)).collect();
        assert!(files.iter().any(|file| file.starts_with("crates/fuzz/src/target/")), "{files:?}");
    }
}
