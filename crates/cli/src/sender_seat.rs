//! The number by which a receiver knows a sender again, over the runs of one command.
//!
//! A sender that was killed leaves its number behind, one small file for each ticket, so that the same command takes
//! over from the dead connection at once, and learns what has arrived. The file is locked while a sender uses it: a
//! second one beside it is another sender, with a number of its own.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use fairpath_transfer::{Secret, SenderId};
use rustix::fs::FlockOperation;

use crate::{closed, state};

/// Numbers of senders that never came back are forgotten after this time: receivers do not wait for so long.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(31 * 24 * 3600);

/// The number of this sender, and the file that keeps it.
#[derive(Debug)]
pub(crate) struct Seat {
    id: SenderId,
    /// Locked until this is dropped; `None` where nothing can be kept.
    kept: Option<(PathBuf, File)>,
}

impl Seat {
    /// The number of the sender that used this ticket before, or a new one. Where no file can be written, or another
    /// sender uses it, the number is new and is not kept.
    pub(crate) fn take(secret: &Secret) -> io::Result<Self> {
        let kept = state::directory().map(|state| keep(&state.join("senders"), secret));
        match kept.and_then(Result::ok).flatten() {
            Some((id, path, file)) => Ok(Self { id, kept: Some((path, file)) }),
            None => Ok(Self { id: SenderId::generate()?, kept: None }),
        }
    }

    pub(crate) fn id(&self) -> SenderId {
        self.id
    }

    /// Nobody will come back under this number.
    pub(crate) fn forget(self) {
        if let Some((path, _locked)) = self.kept {
            let _ = fs::remove_file(path);
        }
    }
}

/// The kept number of this ticket's sender; `None` where another sender uses it.
fn keep(directory: &Path, secret: &Secret) -> io::Result<Option<(SenderId, PathBuf, File)>> {
    closed::create_directory(directory)?;
    forget_old(directory);
    let path = directory.join(secret.label());
    let mut file = closed::open_file(&path)?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(rustix::io::Errno::WOULDBLOCK) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    let mut content = Vec::new();
    file.read_to_end(&mut content)?;
    let id = match <[u8; 16]>::try_from(content) {
        Ok(id) => SenderId::from_bytes(id),
        // It is new, or its writer was killed.
        Err(_) => {
            let id = SenderId::generate()?;
            file.set_len(0)?;
            file.write_all(&id.to_bytes())?;
            id
        }
    };
    Ok(Some((id, path, file)))
}

/// Removes the numbers of senders that will not come back.
fn forget_old(directory: &Path) {
    let Ok(listed) = fs::read_dir(directory) else { return };
    for path in listed.flatten().map(|item| item.path()) {
        let modified = path.metadata().and_then(|metadata| metadata.modified());
        let age = modified.ok().and_then(|modified| SystemTime::now().duration_since(modified).ok());
        if age.is_some_and(|age| age > FORGOTTEN_AFTER) {
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: Secret = Secret::from_bytes([7; 16]);

    fn id(kept: Option<(SenderId, PathBuf, File)>) -> Option<SenderId> {
        kept.map(|(id, ..)| id)
    }

    #[test]
    fn a_sender_that_was_killed_has_the_same_number_again_and_one_beside_it_has_not() {
        let directory = tempfile::tempdir().unwrap();
        let keep = |secret: &Secret| keep(&directory.path().join("senders"), secret).unwrap();
        let first = keep(&SECRET);
        assert_eq!(id(keep(&SECRET)), None, "it is in use");
        let other = id(keep(&Secret::from_bytes([8; 16])));
        let first = id(first);
        assert!(first.is_some() && other.is_some() && first != other);
        assert_eq!(id(keep(&SECRET)), first);
        let (id_then, path, file) = keep(&SECRET).unwrap();
        Seat { id: id_then, kept: Some((path, file)) }.forget();
        assert_ne!(id(keep(&SECRET)), first, "a transfer that is complete is forgotten");
    }

    #[test]
    fn the_file_of_a_writer_that_was_killed_is_written_anew() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join(SECRET.label()), b"half").unwrap();
        let first = id(keep(directory.path(), &SECRET).unwrap());
        assert_eq!(id(keep(directory.path(), &SECRET).unwrap()), first);
    }

    #[cfg(unix)]
    #[test]
    fn others_cannot_read_the_number_nor_the_secret_out_of_its_name() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().unwrap();
        let below = directory.path().join("senders");
        let (_, path, _file) = keep(&below, &SECRET).unwrap().unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&below), mode(&path)), (0o700, 0o600));
        assert!(!path.to_string_lossy().contains("07070707"));
    }
}
