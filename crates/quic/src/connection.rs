//! A connection over several paths, as the application has it.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, PoisonError, Weak};
use std::time::{Duration, Instant};

use fairpath_engine::{Bitrate, Bytes, PairVerdict, PathSnapshot, Timestamp};
use tokio::sync::{broadcast, mpsc, oneshot};

use crate::accept::Place;
use crate::adapter::ConnectionEngine;
use crate::one_way;
use crate::pairs::Tried;
use crate::path_manager::{self, Published, Role};
use crate::socket::{Binding, Sockets};
use crate::transport::trust;

pub use crate::path_manager::PathNotice;

/// How a path is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathState {
    /// Being validated.
    Opening,
    /// Carrying data.
    Open,
    /// No answer for a while; no new data is sent on it as long as another path works.
    Suspected,
    /// Closed; it will be tried again.
    Closed,
}

impl std::fmt::Display for PathState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Opening => "opening",
            Self::Open => "open",
            Self::Suspected => "suspected",
            Self::Closed => "closed",
        })
    }
}

/// What became of one interface pair, over all the times its path was opened.
#[derive(Clone, Debug)]
pub struct PathReport {
    /// The interface here.
    pub interface: String,
    /// The address here.
    pub local: Option<IpAddr>,
    /// The peer's address.
    pub remote: SocketAddr,
    /// How the path is tied to its interface; `None` once the interface is gone.
    pub binding: Option<Binding>,
    /// How it is doing.
    pub state: PathState,
    /// How often it was opened.
    pub opened: u32,
    /// What we sent and the peer acknowledged.
    pub acked: Bytes,
    /// What we sent and was lost.
    pub lost: Bytes,
    /// What we received, in UDP payloads.
    pub received: Bytes,
    /// How fast data is being acknowledged, over the last half second or so.
    pub send_rate: Bitrate,
    /// How fast data is coming in, over the last half second or so.
    pub receive_rate: Bitrate,
    /// What the engine knows; `None` while the path is closed.
    pub snapshot: Option<PathSnapshot>,
}

impl PathReport {
    /// The smoothed round-trip time.
    pub fn smoothed_rtt(&self) -> Option<Duration> {
        self.snapshot.and_then(|path| path.rtt).map(|rtt| rtt.smoothed)
    }
}

/// A connection whose paths are opened, watched and reopened behind the scenes.
#[derive(Debug)]
pub struct Connection {
    quic: noq::Connection,
    engine: ConnectionEngine,
    published: Published,
    notices: broadcast::Sender<PathNotice>,
    measure: mpsc::Sender<oneshot::Sender<()>>,
    manager: tokio::task::JoinHandle<()>,
    delays: tokio::task::JoinHandle<()>,
    /// The endpoint that this connection has for itself.
    endpoint: Option<noq::Endpoint>,
    /// The place of an accepted connection, as long as it is open.
    place: Weak<Place>,
}

/// How long the end of a connection is repeated to a peer that does not confirm it. Three probe timeouts
/// pass in it on any link of this earth, and that is how long QUIC repeats it [RFC9000 §10.2].
pub(crate) const FAREWELL: Duration = Duration::from_secs(2);

impl Connection {
    pub(crate) fn new(quic: noq::Connection, engine: ConnectionEngine, sockets: Sockets, role: Role) -> Self {
        let published = Published::default();
        let (notices, _) = broadcast::channel(256);
        let delays = one_way::spawn(&quic, &engine, &sockets, &published.paths);
        let (measure, asked) = mpsc::channel(1);
        let manager = path_manager::spawn(&quic, &engine, sockets, role, published.clone(), notices.clone(), asked);
        Self { quic, engine, published, notices, measure, manager, delays, endpoint: None, place: Weak::new() }
    }

    /// With the endpoint that has no other connection.
    pub(crate) fn with_endpoint(mut self, endpoint: noq::Endpoint) -> Self {
        self.endpoint = Some(endpoint);
        self
    }

    pub(crate) fn with_place(mut self, place: &Arc<Place>) -> Self {
        self.place = Arc::downgrade(place);
        self
    }

    /// The peer has proved itself: it is no guest any more, which may hold little and has to leave for
    /// others (`ListenConfig::knock`). Does nothing on a connection that is none.
    pub fn welcome(&self) {
        if self.place.upgrade().is_some_and(|place| place.welcome()) {
            trust(&self.quic);
        }
    }

    /// The QUIC connection: its streams are the application's.
    pub fn quic(&self) -> &noq::Connection {
        &self.quic
    }

    /// Every interface pair that has carried a path, in the order of first use, as it was when the paths
    /// were last looked at: up to a twentieth of a second ago.
    pub fn paths(&self) -> Vec<PathReport> {
        self.published.paths.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What was tried to reach the peer, and what came of it, in the order of the interfaces. Empty at the
    /// end that was connected to. Pairs that nobody had a reason to try are not in it.
    pub fn tried(&self) -> Vec<Tried> {
        self.published.tried.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The same, as it is at this moment. A small transfer begins and ends between two looks.
    pub async fn paths_now(&self) -> Vec<PathReport> {
        let (answer, answered) = oneshot::channel();
        // Where the connection is closed, the last look was at its end.
        if self.measure.send(answer).await.is_ok() {
            let _ = answered.await;
        }
        self.paths()
    }

    /// What happens to the paths from now on.
    pub fn notices(&self) -> broadcast::Receiver<PathNotice> {
        self.notices.subscribe()
    }

    /// The engine's view of its paths, for a recorder, with the engine's time.
    pub fn snapshots(&self) -> (Timestamp, Vec<PathSnapshot>) {
        self.engine.with(Instant::now(), |engine, now| (now, engine.snapshots(now).collect()))
    }

    /// What speaks for the groups in which the paths are coupled, pair by pair; empty where the
    /// coupling is fixed. The times are the engine's.
    pub fn verdicts(&self) -> Vec<PairVerdict> {
        self.engine.with(Instant::now(), |engine, _| engine.verdicts())
    }

    /// Waits until `count` paths are open, at most for `patience`. False where that time ran out.
    pub async fn paths_open(&self, count: usize, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        while Instant::now() < deadline {
            if self.paths().iter().filter(|path| path.state == PathState::Open).count() >= count {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        false
    }

    /// Ends the connection and tells the peer `code` and `reason`.
    pub fn close(&self, code: u32, reason: &str) {
        self.quic.close(code.into(), reason.as_bytes());
    }

    /// As [`Connection::close`], and waits until the peer has confirmed it, at most two seconds. Meanwhile
    /// whatever the peer sends is answered with the end, so that one lost packet does not hide it. Only the
    /// end that connected waits; the other has [`Listener::close`](crate::Listener::close).
    pub async fn end(&self, code: u32, reason: &str) {
        self.close(code, reason);
        if let Some(endpoint) = &self.endpoint {
            let _ = tokio::time::timeout(FAREWELL, endpoint.wait_all_draining()).await;
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.manager.abort();
        self.delays.abort();
    }
}
