//! The socket on which encoders are told what they may send.

use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::os::unix::net::UnixStream as Probe;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use fairpath_quic::flows::{DEADLINE_MAX, DEADLINE_MIN, Status};
use serde::Deserialize;
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

/// How many programs may listen at a time.
const LISTENERS_MAX: usize = 16;

/// No line that is read is longer, in bytes.
const LINE_MAX: u64 = 1_000;

/// The dialogue with encoders: they hear of budgets, and ask for deadlines.
#[derive(Debug)]
pub(super) struct Control {
    said: watch::Sender<String>,
    asked: mpsc::Receiver<Duration>,
    _socket: Option<Bound>,
    _task: JoinSet<()>,
}

/// A socket of ours, which goes with us; but not what somebody else has put in its place.
#[derive(Debug)]
struct Bound {
    path: PathBuf,
    file: Option<FileId>,
}

/// Device and inode.
type FileId = (u64, u64);

fn file_at(path: &Path) -> Option<FileId> {
    std::fs::symlink_metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

impl Drop for Bound {
    fn drop(&mut self) {
        if self.file.is_some() && self.file == file_at(&self.path) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// A request of a program.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wish {
    deadline_ms: u64,
}

impl Control {
    /// Nobody listens.
    pub(super) fn none() -> Self {
        // Nothing ever comes: the channel of wishes stays open with its sender in no task.
        let (said, _) = watch::channel(String::new());
        let (_, asked) = mpsc::channel(1);
        Self { said, asked, _socket: None, _task: JoinSet::new() }
    }

    /// A Unix socket at `path`.
    pub(super) fn at(path: &Path) -> anyhow::Result<Self> {
        let shown = path.display();
        let listener = match UnixListener::bind(path) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                // Connections to a file that is no socket are refused, too, and so is one through a link to such a file.
                let kind = std::fs::symlink_metadata(path).with_context(|| format!("cannot look at {shown}"))?;
                if !kind.file_type().is_socket() {
                    bail!("{shown} exists, and is no socket: give another --budget");
                }
                match Probe::connect(path) {
                    // A socket left behind by a program that was killed.
                    Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                    Ok(_) => bail!("another program tells budgets on {shown}: give another --budget"),
                    Err(error) => bail!("cannot tell whether a program tells budgets on {shown}: {error}"),
                }
                std::fs::remove_file(path).with_context(|| format!("cannot replace {shown}"))?;
                UnixListener::bind(path)
            }
            bound => bound,
        };
        let listener = listener.with_context(|| format!("cannot make the socket {shown}"))?;
        let socket = Some(Bound { path: path.to_owned(), file: file_at(path) });
        let (said, heard) = watch::channel(String::new());
        let (ask, asked) = mpsc::channel(16);
        let mut task = JoinSet::new();
        task.spawn(serve(listener, heard, ask));
        Ok(Self { said, asked, _socket: socket, _task: task })
    }

    /// Tells all who listen.
    pub(super) fn tell(&self, status: &Status) {
        let paths: Vec<_> = status.paths.iter().map(|path| path.rate.as_bps()).collect();
        let line = json!({
            "budget_bps": status.budget.as_bps(),
            "budget_variation": status.budget_variation,
            "deadline_ms": status.deadline.as_millis() as u64,
            "beside_share": status.beside,
            "path_rates_bps": paths,
        });
        self.said.send_replace(format!("{line}\n"));
    }

    /// The next deadline that somebody asks for, if anybody ever does.
    pub(super) async fn asked(control: &mut Option<Self>) -> Duration {
        if let Some(control) = control
            && let Some(deadline) = control.asked.recv().await
        {
            return deadline;
        }
        std::future::pending().await
    }
}

async fn serve(listener: UnixListener, said: watch::Receiver<String>, ask: mpsc::Sender<Duration>) {
    let mut listeners = JoinSet::new();
    loop {
        tokio::select! {
            Ok((stream, _)) = listener.accept(), if listeners.len() < LISTENERS_MAX => {
                listeners.spawn(converse(stream, said.clone(), ask.clone()));
            }
            Some(_) = listeners.join_next() => {}
            else => return,
        }
    }
}

/// Tells one program, and hears it, until it leaves.
async fn converse(stream: UnixStream, mut said: watch::Receiver<String>, ask: mpsc::Sender<Duration>) {
    let (read, mut write) = stream.into_split();
    let hear = async {
        let mut lines = BufReader::new(read);
        let mut line = String::new();
        while (&mut lines).take(LINE_MAX).read_line(&mut line).await.is_ok_and(|length| length > 0) {
            // A malformed line is ignored: every line to the program names the deadline in force.
            if let Ok(deadline) = wish(&line) {
                let _ = ask.send(deadline).await;
            }
            line.clear();
        }
        // A program that only listens may close its side.
        std::future::pending::<()>().await;
    };
    let tell = async {
        loop {
            let line = said.borrow_and_update().clone();
            if write.write_all(line.as_bytes()).await.is_err() || said.changed().await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = hear => {}
        () = tell => {}
    }
}

fn wish(line: &str) -> Result<Duration, String> {
    let Wish { deadline_ms } = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let deadline = Duration::from_millis(deadline_ms);
    let can_be = (DEADLINE_MIN..=DEADLINE_MAX).contains(&deadline);
    can_be.then_some(deadline).ok_or_else(|| format!("a deadline of {deadline_ms} ms cannot be"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Linux refuses a connection to a file that is no socket as it does one to a socket that nobody listens at.
    #[tokio::test]
    async fn only_a_socket_that_nobody_listens_at_is_replaced() {
        let folder = std::env::temp_dir().join(format!("fairpath-control-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let [file, link, socket] = ["file", "link", "socket"].map(|name| folder.join(name));
        std::fs::write(&file, "words").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        for path in [&file, &link, &folder] {
            let refused = Control::at(path).unwrap_err().to_string();
            assert!(refused.contains("exists, and is no socket: give another --budget"), "{refused}");
        }
        assert_eq!(std::fs::read_to_string(&link).unwrap(), "words", "nothing of it is gone");
        drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
        let control = Control::at(&socket).unwrap();
        let refused = Control::at(&socket).unwrap_err().to_string();
        assert!(refused.contains("another program tells budgets"), "{refused}");
        drop(control);
        assert!(!socket.exists());
        let control = Control::at(&socket).unwrap();
        std::fs::remove_file(&socket).unwrap();
        std::fs::write(&socket, "of somebody else").unwrap();
        drop(control);
        assert_eq!(std::fs::read_to_string(&socket).unwrap(), "of somebody else");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_wish_is_a_deadline_that_can_be() {
        assert_eq!(wish("{\"deadline_ms\": 500}\n"), Ok(Duration::from_millis(500)));
        for wrong in ["", "500", "{}", "{\"deadline_ms\": 1}", "{\"deadline_ms\": -5}", "{\"deadline\": 500}"] {
            assert!(wish(wrong).is_err(), "{wrong}");
        }
    }
}
