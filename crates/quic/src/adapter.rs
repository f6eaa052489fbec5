//! The engine as noq's congestion controllers: one engine per connection, one handle per path.
//!
//! noq asks a controller only for its path's window, and sends on the lowest path id that has room.
//! So the scheduler acts by refusal: [`Controller::window`] answers 0 for a path whose turn it is
//! not, while the metrics, which the pacer reads, keep the true window. A path is refused only
//! while another one surely can send (`Engine::may_send`), so the connection does not stall.
//!
//! Everything here is sans-IO: no runtime, no sockets, no clock. The same adapter runs under
//! noq-proto in virtual time.
//!
//! noq builds a controller for each path it opens, without saying which; the paths of the engine
//! are therefore numbered in the order of building, and [`PathHandle::of`] tells which handle a
//! noq path carries. A clone (made on migration, and by noq's getter) is the same path; when the
//! last clone is dropped, the path is gone.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use fairpath_engine::{Bytes, CongestionSignal, Engine, PathId, Timestamp};
use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};

/// The engine of one connection, shared by the handles of its paths and by the host.
#[derive(Clone, Debug)]
pub struct ConnectionEngine(Arc<Mutex<Shared>>);

#[derive(Debug)]
struct Shared {
    engine: Engine,
    /// The host's time that is [`Timestamp::ZERO`]; the first time seen.
    epoch: Option<Instant>,
    /// The newest time seen: noq asks for the window without saying when.
    now: Timestamp,
    next_path: u32,
}

impl Shared {
    fn at(&mut self, now: Instant) -> Timestamp {
        let epoch = *self.epoch.get_or_insert(now);
        let since = now.saturating_duration_since(epoch);
        let now = Timestamp::ZERO + since;
        self.now = self.now.max(now);
        now
    }
}

impl ConnectionEngine {
    /// Takes the engine into use for one connection.
    pub fn new(engine: Engine) -> Self {
        Self(Arc::new(Mutex::new(Shared { engine, epoch: None, now: Timestamp::ZERO, next_path: 0 })))
    }

    /// What noq builds its controllers with. One factory serves one connection.
    pub fn factory(&self) -> Arc<dyn ControllerFactory + Send + Sync> {
        Arc::new(Factory(self.clone()))
    }

    /// Looks at or changes the engine at the host's time `now`. Must not call into the connection,
    /// which may be waiting for the engine.
    pub fn with<T>(&self, now: Instant, act: impl FnOnce(&mut Engine, Timestamp) -> T) -> T {
        let mut shared = self.lock();
        let now = shared.at(now);
        act(&mut shared.engine, now)
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        // The engine cannot fail half-way: what a panicking holder left is still whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Factory(ConnectionEngine);

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let mut shared = self.0.lock();
        let at = shared.at(now);
        let path = PathId::new(shared.next_path);
        shared.next_path += 1;
        shared.engine.on_path_opened(path, Bytes::new(current_mtu.into()), at);
        // noq checks itself that a path is validated before it carries data. Until the host says
        // more, only the first path is one that others may be refused for.
        shared.engine.set_usable(path, path == PathId::new(0));
        drop(shared);
        let registration = Arc::new(Registration { connection: self.0.clone(), path });
        Box::new(PathHandle { registration, mtu: current_mtu.into() })
    }
}

/// Keeps a path open in the engine.
#[derive(Debug)]
struct Registration {
    connection: ConnectionEngine,
    path: PathId,
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut shared = self.connection.lock();
        let now = shared.now;
        shared.engine.on_path_closed(self.path, now);
    }
}

/// The engine's view of one noq path: noq's congestion controller for it.
#[derive(Clone, Debug)]
pub struct PathHandle {
    registration: Arc<Registration>,
    mtu: u64,
}

impl PathHandle {
    /// The engine's path that a controller taken from noq stands for; `None` for a controller of
    /// another kind.
    pub fn of(controller: Box<dyn Controller>) -> Option<PathId> {
        let handle = controller.into_any().downcast::<Self>().ok()?;
        Some(handle.registration.path)
    }

    fn path(&self) -> PathId {
        self.registration.path
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.registration.connection.lock()
    }
}

impl Controller for PathHandle {
    fn on_packet_sent(&mut self, now: Instant, bytes: u16, pn: u64) {
        // A larger packet than the path's is a probe for a larger one. noq does not report its
        // loss, so it is not counted.
        if u64::from(bytes) <= self.mtu {
            let mut shared = self.shared();
            let now = shared.at(now);
            shared.engine.on_sent(self.path(), pn, Bytes::new(bytes.into()), now);
        }
    }

    fn on_ack(&mut self, now: Instant, _sent: Instant, _bytes: u64, pn: u64, _app_limited: bool, _rtt: &RttEstimator) {
        let mut shared = self.shared();
        let now = shared.at(now);
        shared.engine.on_ack(self.path(), pn, now);
    }

    fn on_end_acks(&mut self, now: Instant, _in_flight: u64, app_limited: bool, _largest: Option<u64>) {
        let mut shared = self.shared();
        let now = shared.at(now);
        // noq does not say how long the peer waited. Under load it answers every second packet.
        shared.engine.on_ack_end(self.path(), std::time::Duration::ZERO, now);
        if app_limited {
            shared.engine.on_app_limited(self.path());
        }
    }

    fn on_packet_lost(&mut self, _lost_bytes: u16, pn: u64, now: Instant) {
        let mut shared = self.shared();
        let now = shared.at(now);
        shared.engine.on_lost(self.path(), pn, now);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        is_ecn: bool,
        _lost_bytes: u64,
        _largest_lost_pn: u64,
    ) {
        let mut shared = self.shared();
        let now = shared.at(now);
        let sent_at = shared.at(sent);
        let signal = if is_ecn { CongestionSignal::Ecn } else { CongestionSignal::Loss };
        shared.engine.on_congestion(self.path(), signal, sent_at, is_persistent_congestion, now);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.mtu = new_mtu.into();
        self.shared().engine.on_max_datagram(self.path(), Bytes::new(new_mtu.into()));
    }

    fn window(&self) -> u64 {
        let mut shared = self.shared();
        let now = shared.now;
        if !shared.engine.is_usable(self.path()) {
            // noq sends no data here, only challenges that validate the path. Those that were lost
            // count as in flight and would in the end fill any window, and no answer could come.
            u64::MAX / 2
        } else if shared.engine.may_send(self.path(), now) {
            shared.engine.window(self.path(), now).get()
        } else {
            0
        }
    }

    fn metrics(&self) -> ControllerMetrics {
        let shared = self.shared();
        let mut metrics = ControllerMetrics::default();
        // The pacer must never see 0.
        metrics.congestion_window = shared.engine.window(self.path(), shared.now).get().max(self.mtu);
        // What noq would do by itself costs it less than a rate.
        if shared.engine.needs_rate(self.path()) {
            metrics.pacing_rate = shared.engine.pacing_rate(self.path()).map(|rate| rate.as_bytes_per_second());
        }
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        let shared = self.shared();
        shared.engine.window(self.path(), shared.now).get()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
