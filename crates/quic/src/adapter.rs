//! The engine as noq's congestion controllers: one engine per connection, one handle per path.
//!
//! noq asks a controller only for its path's window, and sends on the lowest path id that has room.
//! So the scheduler acts by refusal: [`Controller::window`] answers 0 for a path whose turn it is
//! not, while the metrics, which only the pacer reads, do not show it. A path is refused only
//! while another one surely can send (`Engine::may_send`), so the connection does not stall.
//!
//! noq asks for the window and the metrics of a path before every packet, and tells of every packet
//! that is sent or acknowledged. A lock for each of these is dear where nothing but the processor
//! limits the sender. So the answers, which change only with events, are kept where they are read
//! without the lock (`answers.rs`), the acknowledgements of one frame are handed over together, and
//! packets that change no answer are noted in a queue that every holder of the lock empties first.
//!
//! A path that noq would never come to, or that is refused while it has to say something for itself,
//! gets a turn (`turns.rs`).
//!
//! Everything here is sans-IO: no runtime, no sockets, no clock. The same adapter runs under
//! noq-proto in virtual time.
//!
//! noq builds a controller for each path it opens, without saying which; the paths of the engine
//! are therefore numbered in the order of building, and [`PathHandle::of`] tells which handle a
//! noq path carries. A clone (made on migration, and by noq's getter) is the same path; when the
//! last clone is dropped, the path is gone.

mod answers;
#[cfg(test)]
mod tests;
mod turns;

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use fairpath_engine::{Bitrate, Bytes, CongestionSignal, Engine, PathId, Timestamp};
use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};
use rtrb::{Consumer, Producer, RingBuffer};

use answers::{Answer, Answers, Changes};
use turns::{Looked, Turn};

/// Windows that are worth less than this are paced by the engine's rate, which noq keeps; above, noq
/// paces them by itself. It does that at 5/4 of a window for each round trip too, but loses what its
/// timers are late by, and a small window is then never full and never grows. At this rate there is
/// something to lose on the other side: a rate makes noq divide 128-bit numbers for each datagram.
const PACED_BY_NOQ: Bitrate = Bitrate::from_mbps(1_000);

/// A window of so many datagrams may leave at once [RFC9002 §7.7]. Pacing it costs the first round trip:
/// what is not full within one does not grow.
const BURST_DATAGRAMS: u64 = 10;

/// A window that noq does not pace.
const UNPACED: u64 = 1 << 32;

/// How many packets of a path may have left before the engine is told.
const UNHEARD_MAX: usize = 64;

/// The engine of one connection, shared by the handles of its paths and by the host.
#[derive(Clone, Debug)]
pub struct ConnectionEngine(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    shared: Mutex<Shared>,
    changes: Changes,
}

#[derive(Debug)]
struct Shared {
    engine: Engine,
    /// The host's time that is [`Timestamp::ZERO`]; the first time seen.
    epoch: Option<Instant>,
    /// The newest time seen: noq asks for the window without saying when.
    now: Timestamp,
    next_path: u32,
    paths: Vec<Known>,
    /// The path that sent last, where another one has waited for its turn too long.
    yielding: Option<PathId>,
}

/// What is known of a path beside what the engine knows.
#[derive(Debug)]
struct Known {
    path: PathId,
    /// What was sent and the engine was not told yet.
    unheard: Consumer<Departure>,
    turn: Turn,
}

/// A packet that left.
#[derive(Debug)]
struct Departure {
    at: Instant,
    number: u64,
    bytes: Bytes,
}

impl Shared {
    fn new(engine: Engine) -> Self {
        Self { engine, epoch: None, now: Timestamp::ZERO, next_path: 0, paths: Vec::new(), yielding: None }
    }

    fn at(&mut self, now: Instant) -> Timestamp {
        let epoch = *self.epoch.get_or_insert(now);
        let since = now.saturating_duration_since(epoch);
        let now = Timestamp::ZERO + since;
        self.now = self.now.max(now);
        now
    }

    /// Tells the engine what it has not heard. Whether answers changed by that.
    fn catch_up(&mut self) -> bool {
        let before = self.yielding;
        for at in 0..self.paths.len() {
            let (path, mut packets) = (self.paths[at].path, 0);
            while let Ok(Departure { at: left, number, bytes }) = self.paths[at].unheard.pop() {
                packets += 1;
                let left = self.at(left);
                self.engine.on_sent(path, number, bytes, left);
            }
            if packets > 0 {
                self.count_turns(path, packets);
            }
        }
        self.yielding != before
    }

    /// So many packets have left on `path`.
    fn count_turns(&mut self, path: PathId, packets: u32) {
        for known in &mut self.paths {
            if known.path == path {
                known.turn.is_used();
            } else if known.turn.has_waited(packets) {
                self.yielding = Some(path);
            }
        }
    }

    /// What noq may know of a path with datagrams of `mtu` bytes.
    fn answer(&mut self, path: PathId, mtu: u64) -> Answer {
        let Self { engine, now, paths, yielding, .. } = self;
        let has_turn = paths.iter().any(|known| known.path == path && known.turn.is_given());
        let cwnd = engine.window(path, *now).get();
        let (window, holds_for) = if !engine.is_usable(path) {
            // The policy has not said yet that noq may send data here; noq may know better, when the path
            // has just been validated. Challenges that were lost count as in flight for noq and would in
            // the end fill any window, and no answer could come: so what is overdue is added.
            (cwnd.saturating_add(engine.overdue(path, *now).get()), Bytes::ZERO)
        } else if has_turn {
            // One packet, whatever is in flight: on a path that is dead, or was, the window is full of
            // packets that nobody will answer.
            (u64::MAX / 2, Bytes::ZERO)
        } else if *yielding == Some(path) {
            (0, Bytes::ZERO)
        } else {
            engine.may_send(path, *now).map_or((0, Bytes::ZERO), |allowance| (cwnd, allowance))
        };
        let needs_rate = engine.needs_rate(path);
        let (paced_window, rate) = if cwnd <= BURST_DATAGRAMS * mtu && !needs_rate {
            (UNPACED, None)
        } else {
            let rate = engine.pacing_rate(path).filter(|rate| *rate < PACED_BY_NOQ || needs_rate);
            // For noq's pacer, to which every other value is work.
            (cwnd - cwnd % mtu, rate)
        };
        let paced_window = paced_window.max(mtu);
        let pacing_rate = rate.map(|rate| rate.as_bytes_per_second());
        // What nothing is in flight on may have been idle, and a rate after idleness changes.
        let holds = pacing_rate.is_none() || engine.in_flight(path) > Bytes::ZERO;
        let holds_for = if holds { holds_for.get() } else { 0 };
        Answer { window, paced_window, pacing_rate, holds_for }
    }
}

impl ConnectionEngine {
    /// Takes the engine into use for one connection.
    pub fn new(engine: Engine) -> Self {
        Self(Arc::new(Inner { shared: Mutex::new(Shared::new(engine)), changes: Changes::default() }))
    }

    /// What noq builds its controllers with. One factory serves one connection.
    pub fn factory(&self) -> Arc<dyn ControllerFactory + Send + Sync> {
        Arc::new(Factory(self.clone()))
    }

    /// Looks at or changes the engine at the host's time `now`. Must not call into the connection,
    /// which may be waiting for the engine.
    pub fn with<T>(&self, now: Instant, act: impl FnOnce(&mut Engine, Timestamp) -> T) -> T {
        let mut shared = self.change();
        let now = shared.at(now);
        act(&mut shared.engine, now)
    }

    /// How many paths noq has had, those that took the place of another for a new address included.
    pub fn paths_built(&self) -> u32 {
        self.lock_behind().next_path
    }

    /// Lets a path send one packet although it may not be its turn, or its window may be full: it has to
    /// give a sign of life.
    pub fn give_turn(&self, path: PathId) {
        let mut shared = self.change();
        shared.paths.iter_mut().filter(|known| known.path == path).for_each(|known| known.turn.give());
    }

    /// The engine, to be changed: what was answered before holds no more.
    fn change(&self) -> MutexGuard<'_, Shared> {
        let shared = self.lock();
        self.0.changes.add();
        shared
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        let mut shared = self.lock_behind();
        if shared.catch_up() {
            self.0.changes.add();
        }
        shared
    }

    /// The engine as it last heard.
    fn lock_behind(&self) -> MutexGuard<'_, Shared> {
        // The engine cannot fail half-way: what a panicking holder left is still whole.
        self.0.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Factory(ConnectionEngine);

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let mut shared = self.0.change();
        let at = shared.at(now);
        let path = PathId::new(shared.next_path);
        shared.next_path += 1;
        shared.engine.on_path_opened(path, Bytes::new(current_mtu.into()), at);
        // noq checks itself that a path is validated before it carries data. Until the host says
        // more, only the first path is one that others may be refused for.
        shared.engine.set_usable(path, path == PathId::new(0));
        let (sent, unheard) = RingBuffer::new(UNHEARD_MAX);
        let turn = Turn::default();
        let looked = turn.looked();
        shared.paths.push(Known { path, unheard, turn });
        drop(shared);
        let answers = Answers::default();
        let registration = Arc::new(Registration { connection: self.0.clone(), path, answers, looked });
        Box::new(PathHandle {
            registration,
            mtu: current_mtu.into(),
            acked: Vec::new(),
            newest: None,
            is_unused_clone: false,
            sent: Some(Mutex::new(sent)),
        })
    }
}

/// Keeps a path open in the engine.
#[derive(Debug)]
struct Registration {
    connection: ConnectionEngine,
    path: PathId,
    answers: Answers,
    looked: Looked,
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut shared = self.connection.change();
        let now = shared.now;
        shared.engine.on_path_closed(self.path, now);
        shared.paths.retain(|known| known.path != self.path);
        shared.yielding = None;
    }
}

/// The engine's view of one noq path: noq's congestion controller for it.
#[derive(Debug)]
pub struct PathHandle {
    registration: Arc<Registration>,
    mtu: u64,
    /// The packets of the acknowledgement that is being read, with the times of their sending.
    acked: Vec<(u64, Instant)>,
    /// The number of the newest packet; `None` before the first.
    newest: Option<u64>,
    /// Whether this is a clone that has not sent: noq takes one where the peer's address has changed.
    is_unused_clone: bool,
    /// What is sent and changes no answer; `None` for a clone, of which there may be several. In a lock
    /// that is never taken: noq wants handles that could be shared, and this end of a queue cannot be.
    sent: Option<Mutex<Producer<Departure>>>,
}

impl PathHandle {
    /// The engine's path that a controller taken from noq stands for; `None` for a controller of
    /// another kind.
    pub fn of(controller: Box<dyn Controller>) -> Option<PathId> {
        let handle = controller.into_any().downcast::<Self>().ok()?;
        Some(handle.registration.path)
    }

    /// Tells the engine of an event on this path. What noq will ask next is answered at once.
    fn tell(&mut self, now: Instant, event: impl FnOnce(&mut Engine, PathId, Timestamp)) {
        self.tell_all(now, |shared, path, now| event(&mut shared.engine, path, now));
    }

    /// The same for an event that is not the engine's alone.
    fn tell_all(&mut self, now: Instant, event: impl FnOnce(&mut Shared, PathId, Timestamp)) {
        let Registration { connection, path, answers, .. } = &*self.registration;
        let mut shared = connection.lock_behind();
        shared.yielding = None;
        shared.catch_up();
        connection.0.changes.add();
        let now = shared.at(now);
        event(&mut shared, *path, now);
        answers.set(shared.answer(*path, self.mtu), &connection.0.changes);
    }

    /// What noq may know of the path now.
    fn answer(&self) -> Answer {
        let Registration { connection, path, answers, .. } = &*self.registration;
        answers.get(&connection.0.changes).unwrap_or_else(|| {
            let mut shared = connection.lock();
            let answer = shared.answer(*path, self.mtu);
            answers.set(answer, &connection.0.changes);
            answer
        })
    }
}

impl Clone for PathHandle {
    fn clone(&self) -> Self {
        Self {
            registration: self.registration.clone(),
            mtu: self.mtu,
            acked: Vec::new(),
            newest: None,
            is_unused_clone: true,
            sent: None,
        }
    }
}

impl Controller for PathHandle {
    fn on_packet_sent(&mut self, now: Instant, bytes: u16, pn: u64) {
        // A larger packet than the path's is a probe for a larger one. noq does not report its
        // loss, so it is not counted.
        if u64::from(bytes) > self.mtu {
            return;
        }
        let bytes = Bytes::new(bytes.into());
        // The three spaces of a handshake number their packets from 0 each [RFC9000 §12.3], and noq does not
        // say when it gives one up. Of packets to a former address it tells no acknowledgements.
        let anew = self.newest.is_some_and(|newest| pn <= newest);
        self.newest = Some(pn);
        if anew || std::mem::take(&mut self.is_unused_clone) {
            self.tell(now, |engine, path, _| engine.on_all_discarded(path));
        }
        if self.answer().holds_for >= bytes.get()
            && let Some(Ok(sent)) = self.sent.as_mut().map(Mutex::get_mut)
            && sent.push(Departure { at: now, number: pn, bytes }).is_ok()
        {
            self.registration.answers.note_sent(bytes.get());
            return;
        }
        self.tell_all(now, |shared, path, now| {
            shared.engine.on_sent(path, pn, bytes, now);
            shared.count_turns(path, 1);
        });
    }

    fn on_ack(&mut self, _now: Instant, sent: Instant, _bytes: u64, pn: u64, _app_limited: bool, _rtt: &RttEstimator) {
        // `on_end_acks` follows, at the same time.
        self.acked.push((pn, sent));
    }

    fn on_end_acks(&mut self, now: Instant, _in_flight: u64, app_limited: bool, _largest: Option<u64>) {
        let refused = self.registration.answers.take_refused();
        let mut acked = std::mem::take(&mut self.acked);
        self.tell_all(now, |shared, path, now| {
            let acked: Vec<_> = acked.drain(..).map(|(number, sent)| (number, shared.at(sent))).collect();
            let engine = &mut shared.engine;
            if !app_limited && !refused {
                engine.on_fully_used(path, now);
            }
            for (number, sent) in acked {
                // Another packet may have had the same number, in another space.
                if engine.sent(path, number).is_some_and(|(at, _)| at == sent) {
                    engine.on_ack(path, number, now);
                }
            }
            // noq does not say how long the peer waited. Under load it answers every second packet.
            engine.on_ack_end(path, std::time::Duration::ZERO, now);
            if app_limited {
                engine.on_app_limited(path);
            }
        });
        self.acked = acked;
    }

    fn on_packet_lost(&mut self, lost_bytes: u16, pn: u64, now: Instant) {
        self.tell(now, |engine, path, now| {
            let is_meant = engine.sent(path, pn).is_some_and(|(_, bytes)| bytes == Bytes::new(lost_bytes.into()));
            match engine.is_usable(path) {
                _ if !is_meant => {}
                true => engine.on_lost(path, pn, now),
                // A challenge on a path that does not work yet: that says nothing of congestion.
                false => engine.on_discarded(path, pn),
            }
        });
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
        let before = now.saturating_duration_since(sent);
        self.tell(now, |engine, path, now| {
            if !engine.is_usable(path) {
                return;
            }
            let signal = if is_ecn { CongestionSignal::Ecn } else { CongestionSignal::Loss };
            engine.on_congestion(path, signal, now - before, is_persistent_congestion, now);
        });
    }

    fn on_spurious_congestion_event(&mut self) {
        let Registration { connection, path, .. } = &*self.registration;
        let mut shared = connection.change();
        let now = shared.now;
        shared.engine.on_spurious_congestion(*path, now);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.mtu = new_mtu.into();
        let Registration { connection, path, .. } = &*self.registration;
        connection.change().engine.on_max_datagram(*path, Bytes::new(new_mtu.into()));
    }

    fn window(&self) -> u64 {
        let window = self.answer().window;
        if window == 0 {
            self.registration.answers.note_refused();
        }
        window
    }

    fn metrics(&self) -> ControllerMetrics {
        // noq asks for these before it looks for something to send.
        self.registration.looked.note();
        let answer = self.answer();
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = answer.paced_window;
        metrics.pacing_rate = answer.pacing_rate;
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        let Registration { connection, path, .. } = &*self.registration;
        let shared = connection.lock();
        shared.engine.window(*path, shared.now).get()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
