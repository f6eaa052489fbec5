//! The control socket: whoever may read the state directory asks there how an end is doing.
//!
//! It speaks lines of JSON: to `{"ask":"snapshot"}` it answers with a [`Snapshot`], to all else with `{"error":"…"}`.

use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::snapshot::Snapshot;

/// The name of the socket in the state directory.
const NAME: &str = "control";

/// The programs that ask at once.
const ASKING_MAX: usize = 16;

/// The longest request, in bytes, and the longest answer.
const REQUEST_MAX: u64 = 1_000;
const ANSWER_MAX: u64 = 16 << 20;

/// How long an answer may take.
const ANSWERED: Duration = Duration::from_secs(5);

/// A request.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "lowercase", deny_unknown_fields)]
enum Request {
    Snapshot,
}

/// The socket of an end, which goes with it.
#[derive(Debug)]
pub(crate) struct Control {
    path: PathBuf,
    /// Its device and inode.
    file: Option<(u64, u64)>,
    _task: JoinSet<()>,
}

impl Control {
    /// Opens the socket in the state directory. `now` makes snapshots.
    pub(crate) fn open(directory: &Path, now: impl Fn() -> Snapshot + Send + Sync + 'static) -> io::Result<Self> {
        let path = directory.join(NAME);
        // One that answers belongs to another process, which the new one replaces: its own goes on where it is connected.
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(&path)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
        let mut task = JoinSet::new();
        task.spawn(serve(listener, Arc::new(now)));
        Ok(Self { file: file_at(&path), path, _task: task })
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        // A socket that another process has put in its place stays.
        if self.file == file_at(&self.path) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn file_at(path: &Path) -> Option<(u64, u64)> {
    std::fs::symlink_metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

async fn serve(listener: UnixListener, now: Arc<dyn Fn() -> Snapshot + Send + Sync>) {
    let places = Arc::new(Semaphore::new(ASKING_MAX));
    loop {
        let place = places.clone().acquire_owned().await;
        match listener.accept().await {
            Ok((stream, _)) => {
                let now = now.clone();
                tokio::spawn(async move {
                    let _ = answer(stream, &*now).await;
                    drop(place);
                });
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

/// Answers a program until it leaves.
async fn answer(mut stream: UnixStream, now: &(dyn Fn() -> Snapshot + Send + Sync)) -> io::Result<()> {
    let (read, mut write) = stream.split();
    let mut read = BufReader::new(read);
    loop {
        let mut line = Vec::new();
        (&mut read).take(REQUEST_MAX).read_until(b'\n', &mut line).await?;
        if line.is_empty() {
            return Ok(());
        }
        let mut answer = match serde_json::from_slice(&line) {
            Ok(Request::Snapshot) => serde_json::to_vec(&now())?,
            Err(error) => serde_json::to_vec(&serde_json::json!({ "error": error.to_string() }))?,
        };
        answer.push(b'\n');
        timeout(ANSWERED, write.write_all(&answer)).await??;
    }
}

/// Asks the end that runs with a state directory how it is doing.
///
/// # Errors
///
/// [`io::ErrorKind::NotFound`] or [`io::ErrorKind::ConnectionRefused`] where none runs.
pub async fn snapshot(directory: &Path) -> io::Result<Snapshot> {
    let asked = async {
        let mut stream = UnixStream::connect(directory.join(NAME)).await?;
        let mut request = serde_json::to_vec(&Request::Snapshot)?;
        request.push(b'\n');
        stream.write_all(&request).await?;
        let mut line = Vec::new();
        BufReader::new(stream).take(ANSWER_MAX).read_until(b'\n', &mut line).await?;
        Ok(serde_json::from_slice(&line)?)
    };
    timeout(ANSWERED, asked).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::{End, Ledger};

    #[tokio::test]
    async fn a_snapshot_is_given_to_the_owner_only_and_nonsense_is_answered() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        assert_eq!(snapshot(folder.path()).await.unwrap_err().kind(), io::ErrorKind::NotFound);
        let open = || Control::open(folder.path(), || Ledger::default().snapshot(End::Proxy, Vec::new())).unwrap();
        // A socket that a killed process left is replaced.
        std::mem::forget(open());
        let control = open();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(snapshot(folder.path()).await.unwrap().end, End::Proxy);
        let mut stream = UnixStream::connect(&path).await.unwrap();
        stream.write_all(b"{\"ask\":\"everything\"}\n").await.unwrap();
        let mut line = String::new();
        BufReader::new(&mut stream).read_line(&mut line).await.unwrap();
        assert!(line.starts_with("{\"error\":") && line.contains("everything"), "{line}");
        // A request that never ends is not kept.
        let _ = stream.write_all(&[b'x'; 5_000]).await;
        let mut line = String::new();
        BufReader::new(&mut stream).read_line(&mut line).await.unwrap();
        assert!(line.starts_with("{\"error\":"), "{line}");
        drop(control);
        assert!(!path.exists());
    }
}
