//! The ends that run on this machine: where their control sockets are, and that of an end of files or live flows.
//!
//! `proxy` and `serve` have theirs in their state directories. The others have a directory each in `running`, named by
//! what the end is and its process, which goes with it.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::anyhow;
use fairpath::PathControl;
use fairpath_proxy::{Control, Controlled, End, Peer, Snapshot, snapshot};
use fairpath_quic::PathReport;

use crate::error::UsageError;

/// Paths that were shown so long ago are gone with their connection.
const SHOWN: Duration = Duration::from_secs(2);

/// The paths at a time.
type Shown = (Instant, Vec<PathReport>);

/// The control of the paths of this run, and its socket, where there is one.
#[derive(Debug, Default)]
pub(crate) struct Running {
    pub(crate) control: PathControl,
    shown: Arc<Mutex<Option<Shown>>>,
    socket: Option<(Control, PathBuf)>,
}

impl Running {
    /// Opens the socket of an end called so, whose peer is called `peer` and whose `scheduler` chooses paths. Where there is
    /// no place for one, the end runs without.
    pub(crate) fn listen(&mut self, end: End, name: &str, peer: &'static str, scheduler: &str) {
        let Some(all) = directory() else { return };
        sweep(&all);
        let own = all.join(format!("{name}-{}", std::process::id()));
        let shown = self.shown.clone();
        let now = move || {
            let shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
            let paths = shown.as_ref().filter(|(at, _)| at.elapsed() < SHOWN).map(|(_, paths)| paths.clone());
            let state = if paths.is_some() { "connected" } else { "not connected" };
            let paths = fairpath::internal::paths(paths.unwrap_or_default());
            Snapshot::of_paths(end, vec![Peer::with_paths(peer.to_owned(), state, &paths)])
        };
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(&own);
        let controlled = Controlled::new(now, self.control.clone(), scheduler.parse().unwrap_or_default());
        match made.and_then(|()| Control::open(&own, controlled)) {
            Ok(control) => self.socket = Some((control, own)),
            Err(error) => tracing::warn!(%error, directory = %own.display(), "no control socket"),
        }
    }

    /// The paths as they are now.
    pub(crate) fn show(&self, paths: &[PathReport]) {
        if self.socket.is_some() {
            *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), paths.to_vec()));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some((control, own)) = self.socket.take() {
            drop(control);
            let _ = fs::remove_dir(own);
        }
    }
}

fn directory() -> Option<PathBuf> {
    Some(crate::state::directory()?.join("running"))
}

/// Takes away what ends have left that were killed.
fn sweep(all: &Path) {
    for own in fs::read_dir(all).into_iter().flatten().flatten().map(|entry| entry.path()) {
        let refused =
            UnixStream::connect(own.join("control")).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused);
        if refused {
            let _ = fs::remove_file(own.join("control"));
            let _ = fs::remove_dir(own);
        }
    }
}

/// The end that is meant, of those that run here.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct EndArgs {
    /// The end that is meant, such as proxy, serve or send, or send-4711 where several send
    #[arg(long, value_name = "END", global = true)]
    pub(crate) end: Option<String>,
    /// The state directory of the proxy or the far end that is meant
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) state: Option<PathBuf>,
}

impl EndArgs {
    /// The directory of the only end that runs here and is meant.
    pub(crate) async fn only(&self) -> anyhow::Result<PathBuf> {
        let mut meant = self.meant().await?;
        match meant.len() {
            0 => Err(self.none()),
            1 => Ok(meant.swap_remove(0).1),
            _ => {
                let names: Vec<String> = meant.into_iter().map(|(name, _)| name).collect();
                let first = &names[0];
                Err(UsageError(format!("{} run here: say which is meant, as in --end {first}", names.join(", ")))
                    .into())
            }
        }
    }

    /// The directory of the first of them.
    pub(crate) async fn first(&self) -> anyhow::Result<PathBuf> {
        self.meant().await?.into_iter().next().map(|(_, directory)| directory).ok_or_else(|| self.none())
    }

    fn none(&self) -> anyhow::Error {
        match &self.end {
            Some(end) => anyhow!(
                "no end called '{end}' runs here for this user: start it, or name its state directory with --state"
            ),
            None => anyhow!(
                "none of `fairpath proxy`, `serve`, `send`, `recv` and `stream` runs here for this user: start one, or name \
                 its state directory with --state"
            ),
        }
    }

    /// The ends that run here and may be meant, by name.
    async fn meant(&self) -> anyhow::Result<Vec<(String, PathBuf)>> {
        if let Some(directory) = &self.state {
            return Ok(vec![("the end".into(), directory.clone())]);
        }
        let own = crate::state::directory().ok_or_else(|| {
            UsageError("neither HOME nor XDG_STATE_HOME names a place for the state: give one with --state".to_owned())
        })?;
        let mut all = ["proxy", "serve"].map(|name| (name.to_owned(), own.join(name))).to_vec();
        let mut others: Vec<_> = fs::read_dir(own.join("running")).into_iter().flatten().flatten().collect();
        others.sort_by_key(fs::DirEntry::file_name);
        all.extend(others.iter().map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path())));
        let is_meant = |name: &str| match &self.end {
            Some(end) => name == end || name.rsplit_once('-').is_some_and(|(kind, _)| kind == end),
            None => true,
        };
        all.retain(|(name, _)| is_meant(name));
        let mut meant = Vec::new();
        for (name, directory) in all {
            if snapshot(&directory).await.is_ok() {
                meant.push((name, directory));
            }
        }
        Ok(meant)
    }
}
