//! The control socket: whoever may use it asks there how an end is doing, and changes what its paths carry.
//!
//! It speaks lines of JSON. To `{"ask":"list"}` it answers with a [`Snapshot`], to the other [`Request`]s with
//! `{"done":"…"}`, and to what cannot be done with `{"error":"…"}`. Only the user who runs the end may open it.

mod request;

use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fairpath::{Bitrate, PathControl, Scheduler};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

pub use self::request::{Answer, Request};
use self::request::{COST_MAX, NO_CAP};
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

/// How long a change may take until a look at the paths shows it.
const LOOKED: Duration = Duration::from_millis(1_500);

/// The time between two looks for a change.
const LOOK: Duration = Duration::from_millis(20);

/// An end as its control socket knows it.
pub struct Controlled {
    now: Box<dyn Fn() -> Snapshot + Send + Sync>,
    control: PathControl,
    scheduler: Scheduler,
}

impl std::fmt::Debug for Controlled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Controlled").field("control", &self.control).finish_non_exhaustive()
    }
}

impl Controlled {
    /// An end of which `now` makes snapshots. `control` changes its paths, and `scheduler` chooses among them.
    pub fn new(now: impl Fn() -> Snapshot + Send + Sync + 'static, control: PathControl, scheduler: Scheduler) -> Self {
        Self { now: Box::new(now), control, scheduler }
    }

    fn snapshot(&self) -> Snapshot {
        let mut snapshot = Snapshot { preferred: self.control.preferred(), ..(self.now)() };
        let is_parked = |of: &str| self.control.changed(of).backup == Some(true);
        for path in snapshot.peers.iter_mut().flat_map(|peer| &mut peer.paths) {
            path.is_parked =
                path.is_backup && (is_parked(&path.interface) || path.local.as_deref().is_some_and(is_parked));
        }
        snapshot
    }

    /// Waits until the paths are shown as a change has made them. Where the peer wants something else, or a path has just gone,
    /// that is never so: then a while has to do.
    async fn shown(&self, request: &Request) {
        let until = Instant::now() + LOOKED;
        while !self.shows(request) && Instant::now() < until {
            sleep(LOOK).await;
        }
    }

    fn shows(&self, request: &Request) -> bool {
        let snapshot = self.snapshot();
        let paths = snapshot.peers.iter().flat_map(|peer| &peer.paths).filter(|path| path.is_open);
        let all = |of: &str, is_so: &dyn Fn(&PathNow) -> bool| paths.filter(|path| path.begins_at(of)).all(is_so);
        match request {
            Request::Cap { path, rate } => {
                let cap = cap(rate).ok().flatten().map(Bitrate::as_bps);
                all(path, &|path| path.cap_bps == cap)
            }
            Request::Cost { path, cost } => {
                // A path that goes first costs nothing, and all others one more.
                let extra = |path: &PathNow| snapshot.preferred.as_deref().map(|first| path.begins_at(first));
                all(path, &|path| match extra(path) {
                    None => path.cost == *cost,
                    Some(is_first) => is_first || path.cost == cost + 1,
                })
            }
            Request::Park { path } => all(path, &|path| path.is_backup),
            Request::Unpark { path } => all(path, &|path| !path.is_backup),
            Request::List | Request::Prefer { .. } => true,
        }
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
        let scheduler = self.scheduler;
        if scheduler.goes_by_costs() {
            return Ok(());
        }
        let others = Scheduler::ALL.iter().filter(|one| one.goes_by_costs()).map(|one| one.name());
        let others = others.collect::<Vec<_>>().join(" or ");
        Err(format!("{what} has no effect on an end with --scheduler {scheduler}; it has with {others}"))
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
        let mut answer = match Request::parse(&line) {
            Ok(Request::List) => serde_json::to_vec(&controlled.snapshot())?,
            Ok(request) => {
                let done = controlled.change(&request);
                if done.is_ok() {
                    controlled.shown(&request).await;
                }
                serde_json::to_vec(&done.map_or_else(Answer::Error, Answer::Done))?
            }
            Err(why) => serde_json::to_vec(&Answer::Error(why))?,
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

    /// How long a path is shown as it was.
    const LATE: Duration = Duration::from_millis(100);

    /// A proxy with an open path from each of these interfaces, which are looked at now and then.
    fn controlled(interfaces: &[&str], control: &PathControl, scheduler: Scheduler) -> Controlled {
        let (interfaces, changes) =
            (interfaces.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>(), control.clone());
        let look = move || interfaces.iter().map(|name| path(name, &changes)).collect::<Vec<_>>();
        let looked = std::sync::Mutex::new((Instant::now(), look()));
        let now = move || {
            let mut looked = looked.lock().unwrap();
            if looked.0.elapsed() >= LATE {
                *looked = (Instant::now(), look());
            }
            let peer = Peer { name: "far end".into(), state: "connected".into(), paths: looked.1.clone() };
            Ledger::default().snapshot(End::Proxy, vec![peer])
        };
        Controlled::new(now, control.clone(), scheduler)
    }

    fn path(name: &str, changes: &PathControl) -> PathNow {
        let changed = changes.changed(name);
        PathNow {
            name: name.to_owned(),
            interface: name.to_owned(),
            is_open: true,
            state: path_words(PathState::Open, None, &[]),
            is_backup: changed.backup.unwrap_or(name == "spare0"),
            cost: changed.cost.unwrap_or(0),
            cap_bps: changed.cap.flatten().map(Bitrate::as_bps),
            ..PathNow::default()
        }
    }

    #[tokio::test]
    async fn who_lists_the_paths_after_a_change_sees_it_and_a_backup_is_not_parked_for_that() {
        let folder = tempfile::tempdir().unwrap();
        let paths = PathControl::new();
        let _socket = Control::open(folder.path(), controlled(&["up0", "spare0"], &paths, Scheduler::Arrival)).unwrap();
        let listed = async || snapshot(folder.path()).await.unwrap().peers.remove(0).paths;
        let of = |path: &PathNow| (path.cap_bps, path.cost, path.is_backup, path.is_parked);
        let before = listed().await;
        assert_eq!([of(&before[0]), of(&before[1])], [(None, 0, false, false), (None, 0, true, false)]);
        let path = || "up0".to_owned();
        for request in [
            Request::Cap { path: path(), rate: "5Mbit/s".into() },
            Request::Cost { path: path(), cost: 2 },
            Request::Park { path: path() },
        ] {
            change(folder.path(), &request).await.unwrap();
        }
        assert_eq!(of(&listed().await[0]), (Some(5_000_000), 2, true, true));
        change(folder.path(), &Request::Unpark { path: path() }).await.unwrap();
        assert_eq!(of(&listed().await[0]), (Some(5_000_000), 2, false, false));
    }

    #[tokio::test]
    async fn a_snapshot_is_given_to_the_owner_only_and_nonsense_is_answered() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        assert_eq!(snapshot(folder.path()).await.unwrap_err().kind(), io::ErrorKind::NotFound);
        let open = || Control::open(folder.path(), controlled(&[], &PathControl::new(), Scheduler::Arrival)).unwrap();
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
        let _socket = Control::open(folder.path(), controlled(&["up0", "up1"], &paths, Scheduler::Arrival)).unwrap();
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
        let refused =
            controlled(&["up0"], &control, Scheduler::MinRtt).change(&Request::Prefer { path: Some("up0".into()) });
        assert!(refused.unwrap_err().contains("with --scheduler min_rtt; it has with priority or arrival or deadline"));
        let words =
            controlled(&["up0"], &control, Scheduler::MinRtt).change(&Request::Park { path: "up0".into() }).unwrap();
        assert_eq!(words, "up0: parked, and used all the same: no other path works");
    }
}
