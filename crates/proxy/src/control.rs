//! The control socket: whoever may use it asks there how an end is doing, and changes what its paths carry.
//!
//! It speaks lines of JSON. To `{"ask":"list"}` it answers with a [`Snapshot`], to the other [`Request`]s with
//! `{"done":"…"}`, and to what cannot be done with `{"error":"…"}`. Only the user who runs the end may open it.

use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fairpath::{Bitrate, PathControl};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::snapshot::{PathNow, Snapshot};

/// The name of the socket in the state directory.
const NAME: &str = "control";

/// The programs that ask at once.
const ASKING_MAX: usize = 16;

/// The longest request, in bytes, and the longest answer.
const REQUEST_MAX: u64 = 1_000;
const ANSWER_MAX: u64 = 16 << 20;

/// How long an answer may take.
const ANSWERED: Duration = Duration::from_secs(5);

/// The largest cost, as where ends are begun.
const COST_MAX: u32 = 1_000;

/// The word for the absence of a cap.
const NO_CAP: &str = "none";

/// The scheduler of the connections of both ends of a proxy: the library's default.
pub(crate) const SCHEDULER: &str = "arrival";

/// The schedulers that go by costs.
const BY_COST: [&str; 3] = ["arrival", "priority", "deadline"];

/// A request. Paths are named by the interface or the address where they begin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "lowercase", deny_unknown_fields)]
pub enum Request {
    /// How the end is doing.
    #[serde(alias = "snapshot")]
    List,
    /// No more is sent on the path in a second, each way.
    Cap {
        /// The path.
        path: String,
        /// Such as `5Mbit/s`, or `none`.
        rate: String,
    },
    /// The path carries only what those have no room for that cost less.
    Cost {
        /// The path.
        path: String,
        /// From 0 to 1000.
        cost: u32,
    },
    /// The path carries nothing while another works.
    Park {
        /// The path.
        path: String,
    },
    /// The path is used again.
    Unpark {
        /// The path.
        path: String,
    },
    /// Data goes first over the path, and over others what it has no room for.
    Prefer {
        /// The path; `None`: no path goes first.
        path: Option<String>,
    },
}

/// The answer to a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// The terms that hold now, in words.
    Done(String),
    /// Why nothing was changed, in words.
    Error(String),
}

/// An end as its control socket knows it.
pub struct Controlled {
    now: Box<dyn Fn() -> Snapshot + Send + Sync>,
    control: PathControl,
    scheduler: String,
}

impl std::fmt::Debug for Controlled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Controlled").field("control", &self.control).finish_non_exhaustive()
    }
}

impl Controlled {
    /// An end of which `now` makes snapshots. `control` changes its paths, and `scheduler` chooses among them.
    pub fn new(
        now: impl Fn() -> Snapshot + Send + Sync + 'static,
        control: PathControl,
        scheduler: impl Into<String>,
    ) -> Self {
        Self { now: Box::new(now), control, scheduler: scheduler.into() }
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot { preferred: self.control.preferred(), ..(self.now)() }
    }

    /// Does what is asked, and says what holds now.
    fn change(&self, request: &Request) -> Result<String, String> {
        let snapshot = self.snapshot();
        let paths: Vec<&PathNow> = snapshot.peers.iter().flat_map(|peer| &peer.paths).collect();
        let known = |path: &String| is_known(path, &paths);
        match request {
            Request::List => Err("a list is no change".into()),
            Request::Cap { path, rate } => {
                known(path)?;
                let cap = cap(rate)?;
                self.control.cap(path, cap);
                Ok(cap.map_or(format!("{path}: no cap"), |cap| format!("{path}: {cap} at most, each way")))
            }
            Request::Cost { path, cost } => {
                known(path)?;
                self.goes_by_costs("cost")?;
                if *cost > COST_MAX {
                    return Err(format!("cost: {cost} is no whole number from 0 to {COST_MAX}"));
                }
                self.control.cost(path, *cost);
                Ok(format!("{path}: cost {cost}"))
            }
            Request::Park { path } => {
                known(path)?;
                self.control.park(path, true);
                let works = |other: &&&PathNow| other.is_open && other.reason.is_none() && !other.begins_at(path);
                Ok(match paths.iter().any(|other| works(&other)) {
                    true => format!("{path}: parked, it carries nothing while another path works"),
                    false => format!("{path}: parked, and used all the same: no other path works"),
                })
            }
            Request::Unpark { path } => {
                known(path)?;
                self.control.park(path, false);
                Ok(format!("{path}: not parked any more"))
            }
            Request::Prefer { path: None } => {
                self.control.prefer(None);
                Ok("no path goes first".into())
            }
            Request::Prefer { path: Some(path) } => {
                known(path)?;
                self.goes_by_costs("prefer")?;
                self.control.prefer(Some(path));
                Ok(format!("{path} goes first, and others carry what it has no room for"))
            }
        }
    }

    fn goes_by_costs(&self, what: &str) -> Result<(), String> {
        let scheduler = &self.scheduler;
        match BY_COST.contains(&scheduler.as_str()) {
            true => Ok(()),
            false => Err(format!(
                "{what} has no effect on an end with --scheduler {scheduler}; it has with arrival, the default, and priority"
            )),
        }
    }
}

fn cap(rate: &str) -> Result<Option<Bitrate>, String> {
    if rate == NO_CAP {
        return Ok(None);
    }
    let cap = fairpath_scenario::units::rate(rate).map_err(|error| format!("cap: {error}, or {NO_CAP}"))?;
    match cap == Bitrate::ZERO {
        true => Err(format!("a cap of {rate:?} lets nothing through; park the path")),
        false => Ok(Some(cap)),
    }
}

/// Refuses names that nothing here has.
fn is_known(path: &str, paths: &[&PathNow]) -> Result<(), String> {
    let here = fairpath::interfaces().unwrap_or_default();
    let is_here = here.iter().any(|one| one.name == path || one.address.to_string() == path);
    if is_here || paths.iter().any(|one| one.begins_at(path)) {
        return Ok(());
    }
    let mut names: Vec<String> = paths.iter().map(|one| one.interface.clone()).collect();
    if names.is_empty() {
        names.extend(here.into_iter().map(|one| one.name));
    }
    names.sort_unstable();
    names.dedup();
    Err(format!("no interface or address '{path}' on this machine; there are {}", names.join(", ")))
}

/// The socket of an end, which goes with it.
#[derive(Debug)]
pub struct Control {
    path: PathBuf,
    /// Its device and inode.
    file: Option<(u64, u64)>,
    _task: JoinSet<()>,
}

impl Control {
    /// Opens the socket in the directory of the end.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn open(directory: &Path, controlled: Controlled) -> io::Result<Self> {
        let path = directory.join(NAME);
        // One that answers belongs to another process, which the new one replaces: its own goes on where it is connected.
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(&path)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
        let mut task = JoinSet::new();
        task.spawn(serve(listener, Arc::new(controlled)));
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

async fn serve(listener: UnixListener, controlled: Arc<Controlled>) {
    let places = Arc::new(Semaphore::new(ASKING_MAX));
    loop {
        let place = places.clone().acquire_owned().await;
        match listener.accept().await {
            Ok((stream, _)) => {
                let controlled = controlled.clone();
                tokio::spawn(async move {
                    let _ = answer(stream, &controlled).await;
                    drop(place);
                });
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

/// Answers a program until it leaves.
async fn answer(mut stream: UnixStream, controlled: &Controlled) -> io::Result<()> {
    let (read, mut write) = stream.split();
    let mut read = BufReader::new(read);
    loop {
        let mut line = Vec::new();
        (&mut read).take(REQUEST_MAX).read_until(b'\n', &mut line).await?;
        if line.is_empty() {
            return Ok(());
        }
        let mut answer = match serde_json::from_slice(&line) {
            Ok(Request::List) => serde_json::to_vec(&controlled.snapshot())?,
            Ok(request) => serde_json::to_vec(&controlled.change(&request).map_or_else(Answer::Error, Answer::Done))?,
            Err(error) => serde_json::to_vec(&Answer::Error(error.to_string()))?,
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
    ask(directory, &Request::List).await
}

/// Asks for a change at the end that runs with a state directory.
///
/// # Errors
///
/// As those of [`snapshot`].
pub async fn change(directory: &Path, request: &Request) -> io::Result<Answer> {
    ask(directory, request).await
}

async fn ask<T: serde::de::DeserializeOwned>(directory: &Path, request: &Request) -> io::Result<T> {
    let asked = async {
        let mut stream = UnixStream::connect(directory.join(NAME)).await?;
        let mut request = serde_json::to_vec(request)?;
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
    use fairpath::PathState;

    use super::*;
    use crate::snapshot::{End, Ledger, Peer, path_words};

    /// A proxy with an open path from each of these interfaces.
    fn controlled(interfaces: &[&str], control: &PathControl, scheduler: &str) -> Controlled {
        let path = |name: &&str| PathNow {
            name: (*name).to_owned(),
            interface: (*name).to_owned(),
            is_open: true,
            state: path_words(PathState::Open, None, &[]),
            ..PathNow::default()
        };
        let paths: Vec<PathNow> = interfaces.iter().map(path).collect();
        let now = move || {
            let peer = Peer { name: "far end".into(), state: "connected".into(), paths: paths.clone() };
            Ledger::default().snapshot(End::Proxy, vec![peer])
        };
        Controlled::new(now, control.clone(), scheduler)
    }

    #[tokio::test]
    async fn a_snapshot_is_given_to_the_owner_only_and_nonsense_is_answered() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        assert_eq!(snapshot(folder.path()).await.unwrap_err().kind(), io::ErrorKind::NotFound);
        let open = || Control::open(folder.path(), controlled(&[], &PathControl::new(), "arrival")).unwrap();
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

    #[tokio::test]
    async fn what_is_asked_for_is_done_and_said_and_what_cannot_be_is_told_with_what_would_be_right() {
        let folder = tempfile::tempdir().unwrap();
        let paths = PathControl::new();
        let _socket = Control::open(folder.path(), controlled(&["up0", "up1"], &paths, "arrival")).unwrap();
        let ask = async |line: &str| {
            let request: Request = serde_json::from_str(line).unwrap();
            change(folder.path(), &request).await.unwrap()
        };
        for (line, words) in [
            (r#"{"ask":"cap","path":"up0","rate":"5Mbit/s"}"#, "up0: 5.0 Mbit/s at most, each way"),
            (r#"{"ask":"cap","path":"up0","rate":"none"}"#, "up0: no cap"),
            (r#"{"ask":"cost","path":"up1","cost":3}"#, "up1: cost 3"),
            (r#"{"ask":"park","path":"up1"}"#, "up1: parked, it carries nothing while another path works"),
            (r#"{"ask":"unpark","path":"up1"}"#, "up1: not parked any more"),
            (r#"{"ask":"prefer","path":"up1"}"#, "up1 goes first, and others carry what it has no room for"),
        ] {
            assert_eq!(ask(line).await, Answer::Done(words.into()), "{line}");
        }
        let now = (paths.changed("up0"), paths.changed("up1"), paths.preferred());
        assert_eq!(
            (now.0.cap, now.1.cost, now.1.backup, now.2.as_deref()),
            (Some(None), Some(3), Some(false), Some("up1"))
        );
        assert_eq!(snapshot(folder.path()).await.unwrap().preferred.as_deref(), Some("up1"));
        for (line, words) in [
            (r#"{"ask":"park","path":"up7"}"#, "no interface or address 'up7' on this machine; there are up0, up1"),
            (r#"{"ask":"cap","path":"up0","rate":"5"}"#, "cap: \"5\" has no unit"),
            (r#"{"ask":"cap","path":"up0","rate":"0Mbit/s"}"#, "lets nothing through; park the path"),
            (r#"{"ask":"cost","path":"up0","cost":1001}"#, "cost: 1001 is no whole number from 0 to 1000"),
        ] {
            let Answer::Error(error) = ask(line).await else { panic!("{line} is done") };
            assert!(error.contains(words), "{line}: {error}");
        }
        assert_eq!(ask(r#"{"ask":"prefer","path":null}"#).await, Answer::Done("no path goes first".into()));
    }

    #[test]
    fn what_has_no_effect_is_refused_and_the_last_path_is_told_to_go_on() {
        let control = PathControl::new();
        let refused = controlled(&["up0"], &control, "min_rtt").change(&Request::Prefer { path: Some("up0".into()) });
        assert!(refused.unwrap_err().contains("prefer has no effect on an end with --scheduler min_rtt"));
        let words = controlled(&["up0"], &control, "min_rtt").change(&Request::Park { path: "up0".into() }).unwrap();
        assert_eq!(words, "up0: parked, and used all the same: no other path works");
    }
}
