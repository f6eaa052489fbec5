//! What the sender's user named, turned into a manifest.

use std::fs::{File, FileType, Metadata};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use std::{fmt, fs};

use crate::error::SendError;
use crate::manifest::{Entry, Limits, Manifest, ManifestError};

/// Something that is not sent, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// Where it is.
    pub path: PathBuf,
    /// What it is.
    pub reason: &'static str,
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not sent: {} is {}", self.path.display(), self.reason)
    }
}

/// What is to be sent: files that could be opened, directories, and what was left out.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    pub(crate) manifest: Manifest,
    // Where each entry of the manifest lies.
    pub(crate) sources: Vec<PathBuf>,
    skipped: Vec<Skipped>,
}

impl Selection {
    /// Walks the named files and directories. Each keeps its last component as its name; inside a
    /// directory, symbolic links and special files are skipped, never followed. Every file is opened
    /// once, so that one that cannot be read is known before anything is sent.
    ///
    /// This reads file systems: call it where blocking is allowed.
    pub fn collect(paths: &[PathBuf]) -> Result<Self, SendError> {
        if paths.is_empty() {
            return Err(SendError::Nothing);
        }
        let mut walk = Walk::default();
        for path in paths {
            let metadata = fs::metadata(path).map_err(|error| SendError::io(path, error))?;
            if !metadata.is_file() && !metadata.is_dir() {
                return Err(SendError::Special(path.clone()));
            }
            let name = name_of(path)?;
            walk.add(path.clone(), name, &metadata)?;
        }
        let manifest = Manifest::new(walk.entries, &walk.limits)?;
        Ok(Self { manifest, sources: walk.sources, skipped: walk.skipped })
    }

    /// The manifest as the receiver will see it.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// What is not sent.
    pub fn skipped(&self) -> &[Skipped] {
        &self.skipped
    }
}

/// The last component; of `.` and `..` that of the directory that they mean.
fn name_of(path: &Path) -> Result<String, SendError> {
    let canonical;
    let name = match path.file_name() {
        Some(name) => name,
        None => {
            canonical = fs::canonicalize(path).map_err(|error| SendError::io(path, error))?;
            canonical.file_name().ok_or_else(|| SendError::Special(path.to_owned()))?
        }
    };
    name.to_str().map(str::to_owned).ok_or_else(|| SendError::NotUtf8(path.to_owned()))
}

#[derive(Default)]
struct Walk {
    limits: Limits,
    entries: Vec<Entry>,
    sources: Vec<PathBuf>,
    skipped: Vec<Skipped>,
}

impl Walk {
    fn add(&mut self, source: PathBuf, name: String, metadata: &Metadata) -> Result<(), SendError> {
        // One stack instead of recursion: directories may be nested deeply.
        let mut stack = vec![(source, name, metadata.clone())];
        while let Some((source, name, metadata)) = stack.pop() {
            if self.entries.len() >= self.limits.entries {
                return Err(ManifestError::TooMany(self.limits.entries).into());
            }
            if metadata.is_dir() {
                let mut inside = self.list(&source, &name)?;
                self.push(source, Entry::Directory { path: name });
                inside.reverse();
                stack.append(&mut inside);
            } else {
                let file = File::open(&source).map_err(|error| SendError::io(&source, error))?;
                // What was opened counts, not what the name led to a moment ago.
                let metadata = file.metadata().map_err(|error| SendError::io(&source, error))?;
                self.push(source, file_entry(name, &metadata));
            }
        }
        Ok(())
    }

    fn push(&mut self, source: PathBuf, entry: Entry) {
        self.sources.push(source);
        self.entries.push(entry);
    }

    /// The files and directories in a directory, in the order of their names.
    fn list(&mut self, directory: &Path, name: &str) -> Result<Vec<(PathBuf, String, Metadata)>, SendError> {
        let failed = |error| SendError::io(directory, error);
        let mut inside = Vec::new();
        for item in fs::read_dir(directory).map_err(failed)? {
            let item = item.map_err(failed)?;
            let path = item.path();
            if let Some(reason) = left_out(item.file_type().map_err(failed)?) {
                self.skipped.push(Skipped { path, reason });
                continue;
            }
            let last = item.file_name().into_string().map_err(|_| SendError::NotUtf8(path.clone()))?;
            let metadata = item.metadata().map_err(|error| SendError::io(&path, error))?;
            inside.push((path, format!("{name}/{last}"), metadata));
        }
        inside.sort_by(|a, b| a.1.cmp(&b.1));
        self.skipped.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(inside)
    }
}

fn left_out(kind: FileType) -> Option<&'static str> {
    match kind {
        kind if kind.is_symlink() => Some("a symbolic link"),
        kind if kind.is_file() || kind.is_dir() => None,
        _ => Some("a special file"),
    }
}

pub(crate) fn file_entry(path: String, metadata: &Metadata) -> Entry {
    use std::os::unix::fs::PermissionsExt;
    let mtime_ns = metadata.modified().map_or(0, nanoseconds);
    Entry::File { path, size: metadata.len(), mtime_ns, executable: metadata.permissions().mode() & 0o100 != 0 }
}

fn nanoseconds(time: SystemTime) -> i64 {
    let number = |distance: std::time::Duration| i64::try_from(distance.as_nanos()).unwrap_or(i64::MAX);
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => number(after),
        Err(before) => -number(before.duration()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_left_out_and_said_so() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("d");
        fs::create_dir_all(root.join("empty")).unwrap();
        fs::write(root.join("f"), "x").unwrap();
        std::os::unix::fs::symlink("/etc", root.join("link")).unwrap();
        let selection = Selection::collect(std::slice::from_ref(&root)).unwrap();
        let names: Vec<_> = selection.manifest().entries().iter().map(Entry::path).collect();
        assert_eq!(names, ["d", "d/empty", "d/f"]);
        let said = selection.skipped()[0].to_string();
        assert!(said.ends_with("d/link is a symbolic link"), "{said}");
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = Selection::collect(&[PathBuf::from("/nowhere/x")]).unwrap_err();
        assert_eq!(error.to_string(), "no such file: /nowhere/x");
    }

    #[test]
    fn a_file_that_may_not_be_read_is_named_before_anything_is_sent() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("secret");
        fs::write(&path, "x").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
        if File::open(&path).is_ok() {
            println!("skipped: this user may read everything");
            return;
        }
        let error = Selection::collect(&[directory.path().to_owned()]).unwrap_err();
        assert!(matches!(error, SendError::PermissionDenied(denied) if denied == path));
    }

    #[test]
    fn two_files_of_one_name_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        for parent in ["a", "b"] {
            fs::create_dir(directory.path().join(parent)).unwrap();
            fs::write(directory.path().join(parent).join("x"), "").unwrap();
        }
        let paths = ["a/x", "b/x"].map(|name| directory.path().join(name));
        assert!(matches!(Selection::collect(&paths), Err(SendError::Manifest(ManifestError::Duplicate(_)))));
    }
}
