//! Files of the state directory: small texts, written as a whole and closed to others.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

/// The most that is read of a file, in bytes.
const FILE_MAX: u64 = 1 << 20;

/// A file that could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("cannot read or write {path}: {source}", path = .path.display())]
pub struct StoreError {
    path: PathBuf,
    source: io::Error,
}

/// A directory of state, which only its owner can read.
#[derive(Clone, Debug)]
pub(crate) struct Store(PathBuf);

impl Store {
    /// The directory, which is made where it does not exist.
    pub(crate) fn open(directory: &Path) -> Result<Self, StoreError> {
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
        made.map_err(|source| StoreError { path: directory.to_owned(), source })?;
        Ok(Self(directory.to_owned()))
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.0
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The content of a file; `None` where there is none.
    pub(crate) fn read(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let path = self.path(name);
        let mut content = Vec::new();
        let read = File::open(&path).and_then(|file| file.take(FILE_MAX).read_to_end(&mut content));
        match read {
            Ok(_) => Ok(Some(content)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(StoreError { path, source }),
        }
    }

    /// The text of a file; empty where there is none.
    pub(crate) fn text(&self, name: &str) -> Result<String, StoreError> {
        Ok(String::from_utf8_lossy(&self.read(name)?.unwrap_or_default()).into_owned())
    }

    /// Replaces a file as a whole: readers see the old content or the new one.
    pub(crate) fn write(&self, name: &str, content: &[u8]) -> Result<(), StoreError> {
        let (path, new) = (self.path(name), self.path(&format!(".{name}.{}", std::process::id())));
        let write = || {
            let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
            file.write_all(content)?;
            file.sync_all()?;
            fs::rename(&new, &path)
        };
        write().map_err(|source| {
            // The old content stands; nothing is left to be done where this fails, too.
            let _ = fs::remove_file(&new);
            StoreError { path: path.clone(), source }
        })
    }

    /// Finds out whether files can be written here, by one of so many bytes that is taken away again.
    pub(crate) fn try_out(&self, bytes: usize) -> Result<(), StoreError> {
        let name = "try";
        self.write(name, &vec![0; bytes])?;
        let path = self.path(name);
        fs::remove_file(&path).map_err(|source| StoreError { path, source })
    }

    /// Keeps other processes from changing files while `change` does. They can be read all the while.
    pub(crate) fn locked<T, E: From<StoreError>>(&self, change: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let path = self.path("lock");
        let lock = || -> io::Result<File> {
            let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path)?;
            flock(&file, FlockOperation::LockExclusive)?;
            Ok(file)
        };
        let _lock = lock().map_err(|source| StoreError { path: path.clone(), source })?;
        change()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn what_is_written_is_read_again_and_is_closed_to_others() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("a/b")).unwrap();
        assert_eq!(store.read("x").unwrap(), None);
        store.locked(|| store.write("x", b"1")).unwrap();
        store.locked(|| store.write("x", b"2")).unwrap();
        assert_eq!(store.text("x").unwrap(), "2");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&store.path("x")), 0o600);
        assert_eq!(mode(&folder.path().join("a/b")), 0o700);
    }

    #[test]
    fn an_error_names_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        fs::create_dir(store.path("x")).unwrap();
        let error = store.write("x", b"1").unwrap_err().to_string();
        assert!(error.contains("/x: "), "{error}");
    }
}
