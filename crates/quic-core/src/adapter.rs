//! The engine as noq's congestion controllers: one engine per connection, one handle per path.
//!
//! noq asks a controller only for its path's window, and sends on the lowest path id that has room. So a
//! path is chosen by [`ConnectionEngine::open_gate`]: the window of the path that the engine picked is open,
//! those of the others are shut, and the next packet with data leaves on the one. What the stack does not hold
//! against a window, such as acknowledgements, probes and challenges, passes every gate.
//!
//! Pacing is the engine's: a path that may not send yet is not picked. So noq is shown a window that its own
//! pacer never holds back.
//!
//! The fate of each packet is kept for the host ([`ConnectionEngine::take_fates`]), which knows what it
//! carried.
//!
//! noq builds a controller for each path it opens, without saying which; the paths of the engine
//! are therefore numbered in the order of building, and [`PathHandle::of`] tells which handle a
//! noq path carries. A clone (made on migration, and by noq's getter) is the same path; when the
//! last clone is dropped, the path is gone.
//!
//! The lock is there because noq wants controllers that could be moved between threads. Nobody ever waits
//! for it: the connection that owns the controllers owns the engine too.

mod alone;
mod losses;
#[cfg(test)]
mod tests;

use std::any::Any;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use web_time::{Duration, Instant};

use fairpath_engine::{ByteCount, CongestionSignal, Engine, PathId, PathMap, PathUse, Timestamp};
use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};

pub use alone::Controllers;
use losses::Losses;
pub(crate) use losses::{GIVEN_UP_AFTER, GIVEN_UP_BEHIND};

/// A window that noq's pacer never holds back.
const UNPACED: u64 = 1 << 32;

/// A window that always has room for what the engine let through.
const OPEN: u64 = u64::MAX / 2;

/// The fate of a packet, or of all packets of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The packet of this number was acknowledged.
    Acked(PathId, u64),
    /// It was lost.
    Lost(PathId, u64),
    /// Nothing more will be heard of what is in flight on the path.
    Discarded(PathId),
}

/// A packet that left, whose fate will be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Left {
    /// On which path.
    pub(crate) path: PathId,
    /// Its number there.
    pub(crate) number: u64,
    /// Its size, in bytes of UDP payload.
    pub(crate) bytes: u16,
}

/// The paths that may carry the next packet with data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Gate {
    /// None.
    #[default]
    Shut,
    /// This one.
    Only(PathId),
    /// All that the engine holds usable, each within its window.
    Any,
}

impl Gate {
    /// Paths are numbered from 0 on: no connection has as many as to reach these.
    const SHUT: u32 = u32::MAX;
    const ANY: u32 = u32::MAX - 1;

    fn as_number(self) -> u32 {
        match self {
            Self::Shut => Self::SHUT,
            Self::Any => Self::ANY,
            Self::Only(path) => path.get(),
        }
    }

    fn from_number(number: u32) -> Self {
        match number {
            Self::SHUT => Self::Shut,
            Self::ANY => Self::Any,
            path => Self::Only(PathId::new(path)),
        }
    }
}

/// The engine of one connection, shared by the handles of its paths and by the host.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionEngine(Arc<Guarded>);

#[derive(Debug)]
struct Guarded {
    /// As [`Gate::as_number`] says. Beside the lock, since noq asks with every packet.
    gate: AtomicU32,
    shared: Mutex<Shared>,
}

#[derive(Debug)]
struct Shared {
    engine: Engine,
    /// The host's time that is [`Timestamp::ZERO`]; the first time seen.
    epoch: Option<Instant>,
    /// The newest time seen: noq asks for the window without saying when.
    now: Timestamp,
    /// The last time that was asked for: it is the same for all packets of a train.
    last: Option<(Instant, Timestamp)>,
    next_path: u32,
    /// How often something changed of which noq may have more to say: it built a controller, or found that larger
    /// packets pass.
    changes: u32,
    /// The packets that left since the host asked.
    left: Vec<Left>,
    /// How many of them the engine was told of.
    told: usize,
    /// When the others left.
    left_at: Timestamp,
    fates: Vec<Fate>,
    /// Whether losses are found here, before noq finds them.
    finds_losses: bool,
    /// Whether a packet of data leaves on the path that it was made for and on no other, not even one that noq may know
    /// better than the policy. noq asks for no window where it sends challenges alone.
    pins_data: bool,
    /// Whether there is no host beside noq: noq chooses the paths, and nobody asks what became of packets.
    is_alone: bool,
    losses: PathMap<Losses>,
    /// The packets just found lost, and whether each counts as congestion. Kept to reuse its memory.
    lost: Vec<(u64, bool)>,
}

impl Shared {
    fn at(&mut self, time: Instant) -> Timestamp {
        if let Some((known, at)) = self.last
            && known == time
        {
            return at;
        }
        let epoch = *self.epoch.get_or_insert(time);
        let at = Timestamp::ZERO + time.saturating_duration_since(epoch);
        self.now = self.now.max(at);
        self.last = Some((time, at));
        at
    }

    /// A packet left. The engine is told of it with those that follow at once: that is cheaper, and until something
    /// else happens on the path nobody asks for what it would change.
    fn on_left(&mut self, left: Left, at: Timestamp) {
        if self.left_at != at {
            self.tell_left();
            self.left_at = at;
        }
        self.left.push(left);
    }

    /// Tells the engine what left, train by train.
    fn tell_left(&mut self) {
        for train in self.left[self.told..].chunk_by(|one, next| one.path == next.path) {
            let packets = train.iter().map(|left| (left.number, ByteCount::new(left.bytes.into())));
            self.engine.on_train_sent(train[0].path, packets, self.left_at);
        }
        self.told = self.left.len();
        if self.is_alone {
            self.forget();
        }
    }

    /// The window that noq sees on a path whose gate is not open.
    fn window(&mut self, path: PathId, gate: Gate) -> u64 {
        let is_usable = self.engine.is_usable(path);
        if gate != Gate::Any && is_usable || self.pins_data && matches!(gate, Gate::Only(_)) {
            return 0;
        }
        self.tell_left();
        // The policy has not said yet that noq may send data here. Challenges that were lost count as in flight for noq
        // and would in the end fill any window, and no answer could come: so what is overdue is added.
        let verdict = self.engine.verdict(path, self.now);
        verdict.window.saturating_add(verdict.overdue).get()
    }
}

impl ConnectionEngine {
    /// Takes the engine into use for one connection.
    pub(crate) fn new(engine: Engine) -> Self {
        let shared = Shared {
            engine: engine.with_bursts(),
            epoch: None,
            now: Timestamp::ZERO,
            last: None,
            next_path: 0,
            changes: 0,
            left: Vec::new(),
            told: 0,
            left_at: Timestamp::ZERO,
            fates: Vec::new(),
            finds_losses: false,
            pins_data: false,
            is_alone: false,
            losses: PathMap::new(),
            lost: Vec::new(),
        };
        Self(Arc::new(Guarded { gate: Gate::default().as_number().into(), shared: Mutex::new(shared) }))
    }

    /// The factory with which noq builds its controllers. One factory serves one connection.
    pub(crate) fn factory(&self) -> Arc<dyn ControllerFactory + Send + Sync> {
        Arc::new(Factory(self.clone()))
    }

    /// Looks at or changes the engine at the host's time `now`. Must not call into the connection, which
    /// would ask the engine.
    pub(crate) fn with<T>(&self, now: Instant, act: impl FnOnce(&mut Engine, Timestamp) -> T) -> T {
        let mut shared = self.lock();
        shared.tell_left();
        let now = shared.at(now);
        act(&mut shared.engine, now)
    }

    /// The engine's timestamp for the host's time `now`.
    pub(crate) fn at(&self, now: Instant) -> Timestamp {
        self.lock().at(now)
    }

    /// The host's time that the engine calls `at`.
    pub(crate) fn instant(&self, at: Timestamp) -> Option<Instant> {
        let epoch = self.lock().epoch?;
        Some(epoch + at.since(Timestamp::ZERO))
    }

    /// The smoothed round-trip time of a path; `None` before the first sample.
    pub(crate) fn smoothed_rtt(&self, path: PathId) -> Option<Duration> {
        self.lock().engine.rtt(path).map(|rtt| rtt.smoothed)
    }

    /// The size of the path's packets, in bytes; `None` where it is not open.
    pub(crate) fn max_datagram(&self, path: PathId) -> Option<u64> {
        self.lock().engine.max_datagram(path).map(ByteCount::get)
    }

    /// Whether a path is one that may be picked: the policy knows it, and sees when it falls silent.
    pub(crate) fn is_usable(&self, path: PathId) -> bool {
        self.lock().engine.is_usable(path)
    }

    /// How many paths noq has had, those that took the place of another for a new address included.
    pub(crate) fn paths_built(&self) -> u32 {
        self.lock().next_path
    }

    /// A number that is another one where noq may have more to say than what came is answered by.
    pub(crate) fn changes(&self) -> u32 {
        self.lock().changes
    }

    /// The handshake is over. Where noq was told to be patient, losses are found here from now on.
    pub(crate) fn find_losses(&self, is_patient: bool) {
        self.lock().finds_losses = is_patient;
    }

    /// From now on data leaves on the paths that it is made for only, or wherever noq likes.
    pub(crate) fn pin_data(&self, is_pinned: bool) {
        self.lock().pins_data = is_pinned;
    }

    /// When [`ConnectionEngine::give_up_late`] is to be called.
    pub(crate) fn loss_due(&self) -> Option<Instant> {
        let shared = self.lock();
        Some(shared.epoch? + shared.loss_due()?.since(Timestamp::ZERO))
    }

    /// Takes for lost what is late by now.
    pub(crate) fn give_up_late(&self, now: Instant) {
        let mut shared = self.lock();
        shared.tell_left();
        let now = shared.at(now);
        shared.find_all_lost(now);
    }

    /// When a path is to be asked for an answer, as the stack does not, and which: [`ConnectionEngine::note_probe`].
    pub(crate) fn probe_due(&self) -> Option<(Instant, PathId)> {
        let shared = self.lock();
        let (at, path) = shared.probe_due()?;
        Some((shared.epoch? + at.since(Timestamp::ZERO), path))
    }

    /// The path is being asked.
    pub(crate) fn note_probe(&self, path: PathId) {
        self.lock().note_probe(path);
    }

    /// Says which path may carry the next packet.
    pub(crate) fn open_gate(&self, gate: Gate) {
        self.0.gate.store(gate.as_number(), Ordering::Relaxed);
    }

    fn gate(&self) -> Gate {
        Gate::from_number(self.0.gate.load(Ordering::Relaxed))
    }

    /// The packets that left since this was last asked, in order.
    pub(crate) fn take_left(&self, into: &mut Vec<Left>) {
        into.clear();
        let mut shared = self.lock();
        shared.tell_left();
        shared.told = 0;
        std::mem::swap(into, &mut shared.left);
    }

    /// Takes the packets' fates since the last call, in order.
    pub(crate) fn take_fates(&self, into: &mut Vec<Fate>) {
        std::mem::swap(into, &mut self.lock().fates);
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        // The engine cannot fail half-way: what a panicking holder left is still whole.
        self.0.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Factory(ConnectionEngine);

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let mut shared = self.0.lock();
        shared.tell_left();
        let at = shared.at(now);
        let path = PathId::new(shared.next_path);
        shared.next_path += 1;
        shared.changes += 1;
        shared.engine.on_path_opened(path, ByteCount::new(current_mtu.into()), at);
        shared.losses.insert(path, Losses::default());
        // noq checks itself that a path is validated before it carries data; until the host says more, only
        // the path of the handshake is one that is picked.
        if path == PathId::new(0) || shared.is_alone {
            shared.engine.set_use(path, PathUse::Open);
        }
        drop(shared);
        let registration = Arc::new(Registration { engine: self.0.clone(), path });
        let mtu = current_mtu.into();
        Box::new(PathHandle::new(registration, mtu, false))
    }
}

/// Keeps a path open in the engine.
#[derive(Debug)]
struct Registration {
    engine: ConnectionEngine,
    path: PathId,
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut shared = self.engine.lock();
        shared.tell_left();
        let now = shared.now;
        shared.engine.on_path_closed(self.path, now);
        shared.losses.remove(self.path);
        shared.fates.push(Fate::Discarded(self.path));
    }
}

/// The engine's view of one noq path: noq's congestion controller for it.
#[derive(Debug)]
pub(crate) struct PathHandle {
    registration: Arc<Registration>,
    mtu: u64,
    /// The packets of the acknowledgement that is being read, with the times of their sending.
    acked: Vec<(u64, Instant)>,
    /// The same, in the engine's time, of those that are the path's own.
    acked_at: Vec<(u64, Timestamp)>,
    /// The number of the newest packet; `None` before the first.
    newest: Option<u64>,
    /// Whether this is a clone that has not sent: noq takes one where the peer's address has changed.
    is_unused_clone: bool,
    /// The newest packet that left while the path was not usable: it asked whether the path works, and that it
    /// was lost says nothing of congestion.
    newest_question: Option<u64>,
    /// Whether the path has sent nothing since it became usable: the first packet answers the peer's question.
    is_to_answer: bool,
    /// Whether a packet was counted as lost since the last congestion event.
    is_losing: bool,
    /// Whether one was that had been taken for lost before.
    is_losing_known: bool,
}

impl PathHandle {
    fn new(registration: Arc<Registration>, mtu: u64, is_unused_clone: bool) -> Self {
        Self {
            registration,
            mtu,
            acked: Vec::new(),
            acked_at: Vec::new(),
            newest: None,
            is_unused_clone,
            newest_question: None,
            is_to_answer: false,
            is_losing: false,
            is_losing_known: false,
        }
    }

    /// The engine's path that a controller taken from noq stands for; `None` for a controller of
    /// another kind.
    pub(crate) fn of(controller: Box<dyn Controller>) -> Option<PathId> {
        let handle = controller.into_any().downcast::<Self>().ok()?;
        Some(handle.registration.path)
    }

    fn tell<T>(&self, event: impl FnOnce(&mut Shared, PathId) -> T) -> T {
        let mut shared = self.registration.engine.lock();
        shared.tell_left();
        event(&mut shared, self.registration.path)
    }
}

impl Clone for PathHandle {
    fn clone(&self) -> Self {
        Self::new(self.registration.clone(), self.mtu, true)
    }
}

impl Controller for PathHandle {
    fn on_packet_sent(&mut self, now: Instant, bytes: u16, pn: u64) {
        // A larger packet than the path's is a probe for a larger one. noq does not report its
        // loss, so it is not counted.
        if u64::from(bytes) > self.mtu {
            return;
        }
        // The three spaces of a handshake number their packets from 0 each [RFC9000 §12.3], and noq does not
        // say when it gives one up. Of packets to a former address it tells no acknowledgements.
        let anew = self.newest.is_some_and(|newest| pn <= newest);
        self.newest = Some(pn);
        let anew = anew || std::mem::take(&mut self.is_unused_clone);
        let path = self.registration.path;
        {
            let mut shared = self.registration.engine.lock();
            let at = shared.at(now);
            if anew {
                shared.tell_left();
                shared.engine.on_all_discarded(path);
                shared.unwatch(path);
                shared.fates.push(Fate::Discarded(path));
            }
            shared.on_left(Left { path, number: pn, bytes }, at);
            let is_usable = shared.engine.is_usable(path);
            let is_answer = std::mem::replace(&mut self.is_to_answer, !is_usable) && !anew;
            if anew || !is_usable || is_answer {
                self.newest_question = (is_answer || !is_usable).then_some(pn);
            }
            shared.watch(path, pn, self.newest_question, at);
        }
    }

    fn on_ack(&mut self, _now: Instant, sent: Instant, _bytes: u64, pn: u64, _app_limited: bool, _rtt: &RttEstimator) {
        // `on_end_acks` follows, at the same time.
        self.acked.push((pn, sent));
    }

    fn on_cwnd_limited(&mut self) {
        self.tell(Shared::on_cwnd_limited);
    }

    fn on_end_acks(&mut self, now: Instant, _in_flight: u64, app_limited: bool, _largest: Option<u64>) {
        let (mut acked, newest_question) = (std::mem::take(&mut self.acked), self.newest_question);
        let mut acked_at = std::mem::take(&mut self.acked_at);
        self.tell(|shared, path| {
            let now = shared.at(now);
            for (number, sent) in acked.drain(..) {
                let sent = shared.at(sent);
                // Another packet may have had the same number, in another space.
                if shared.engine.sent(path, number).is_none_or(|(at, _)| at == sent) {
                    // Packets sent while a path is validated are acknowledged on the path itself, later ones on
                    // another. The delay would seem to grow by the difference, and that would end slow start.
                    match newest_question.is_some_and(|newest| number <= newest) && shared.engine.rtt(path).is_none() {
                        true => shared.engine.on_discarded(path, number),
                        false => shared.engine.on_ack(path, number, now),
                    }
                    shared.fates.push(Fate::Acked(path, number));
                    acked_at.push((number, sent));
                }
            }
            shared.note_acked(path, &acked_at, now);
            // noq does not say how long the peer waited. Under load it answers every second packet.
            shared.engine.on_ack_end(path, Duration::ZERO, now);
            shared.find_lost(path, now);
            shared.on_app_limited(path, app_limited);
        });
        acked_at.clear();
        (self.acked, self.acked_at) = (acked, acked_at);
    }

    fn on_packet_lost(&mut self, lost_bytes: u16, pn: u64, now: Instant) {
        let is_question = self.newest_question.is_some_and(|newest| pn <= newest);
        let (is_counted, is_known) = self.tell(|shared, path| {
            let now = shared.at(now);
            let sent = shared.engine.sent(path, pn);
            if sent.is_some_and(|(_, bytes)| bytes != ByteCount::new(lost_bytes.into())) {
                return (false, false);
            }
            if shared.note_given_up(path, pn, sent.map(|(at, _)| at)) {
                return (false, true);
            }
            shared.fates.push(Fate::Lost(path, pn));
            let is_counted = sent.is_some() && !is_question && shared.engine.is_usable(path);
            match is_counted {
                true => shared.engine.on_lost(path, pn, now),
                false => shared.engine.on_discarded(path, pn),
            }
            (is_counted, false)
        });
        self.is_losing |= is_counted;
        self.is_losing_known |= is_known;
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
        // For losses already reported, only persistent congestion is news.
        let is_known = std::mem::take(&mut self.is_losing_known) && is_persistent_congestion;
        let is_losing = std::mem::take(&mut self.is_losing) || is_known;
        self.tell(|shared, path| {
            let now = shared.at(now);
            if (is_ecn || is_losing) && shared.engine.is_usable(path) {
                let signal = if is_ecn { CongestionSignal::Ecn } else { CongestionSignal::Loss };
                shared.engine.on_congestion(path, signal, now - before, is_persistent_congestion, now);
            }
        });
    }

    fn on_spurious_congestion_event(&mut self) {
        self.tell(|shared, path| shared.engine.on_spurious_congestion(path, shared.now));
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.mtu = new_mtu.into();
        self.tell(|shared, path| {
            shared.changes += 1;
            shared.engine.on_max_datagram(path, ByteCount::new(new_mtu.into()));
        });
    }

    fn window(&self) -> u64 {
        match self.registration.engine.gate() {
            Gate::Only(path) if path == self.registration.path => OPEN,
            gate => self.registration.engine.lock().window(self.registration.path, gate),
        }
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = UNPACED;
        self.tell(|shared, path| shared.show(path, &mut metrics));
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        self.tell(|shared, path| shared.engine.verdict(path, shared.now).window.get())
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
