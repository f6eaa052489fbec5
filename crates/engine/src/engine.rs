//! The engine of one connection: its events and queries.
//!
//! `verdict` has what a path may do, `choice` the path for the next packet, `views` the scheduler's
//! view of the paths. `snapshot` has the view of recorders, `delays` selects the delays for the
//! detector, `live` has the differences for live streams.

mod choice;
mod delays;
mod live;
mod snapshot;
#[cfg(test)]
mod tests;
mod verdict;
mod views;

use core::time::Duration;

use fairpath_cc::Controller;
use fairpath_core::{
    Ack, Bitrate, ByteCount, Congestion, CongestionSignal, Groups, Lost, LostPacket, PathId, Rtt, Sent, Timestamp,
};
use fairpath_sbd::{Detector, PairVerdict};
use fairpath_sched::{PathView, Scheduler, Terms};

pub use snapshot::PathSnapshot;
pub use verdict::SendState;

use crate::control::Control;
use crate::dips::{self, Candidate, Dips};
use crate::health_parameters::HealthParameters;
use crate::limit::Limit;
use crate::named_terms::{NamedTerms, TermsChanges};
use crate::pacer::BURST_DATAGRAMS;
use crate::path::{Path, PathUse};
use crate::paths::Paths;
use crate::sent_packets::SentPacket;
use crate::without::Without;

/// Detection, congestion control and scheduling of one connection.
///
/// Events for a path that is not open are ignored. `now` must not go backwards; if it does, the
/// time in between counts as zero.
#[derive(Debug)]
pub struct Engine {
    controller: Control,
    detector: Box<dyn Detector>,
    scheduler: Box<dyn Scheduler>,
    paths: Paths,
    groups: Groups,
    views: Vec<PathView>,
    paces: bool,
    /// How many datagrams may leave a path at once, whatever its rate.
    burst_datagrams: u64,
    /// Dips, if the detector can be helped by them.
    dips: Option<Dips>,
    /// The configured terms of paths, by interface or address.
    said: Vec<NamedTerms>,
    /// Changes of the terms since, once there are any.
    changes: Option<TermsChanges>,
    /// Whether the rate of any path may be capped.
    has_caps: bool,
    /// The limit of all paths together.
    limit: Option<Limit>,
    /// When a one-way delay was last reported.
    one_way_at: Option<Timestamp>,
    /// Whether the detector uses delays.
    observes: bool,
    /// Whether a live stream is sent.
    is_live: bool,
    /// When windows last held back a transfer beside the live stream; `None`: not recently.
    transfer_at: Option<Timestamp>,
    /// Whether the controller uses delivery rates.
    reads_rates: bool,
    without: Without,
    health: HealthParameters,
}

impl Engine {
    /// An engine of these three parts, without paths.
    pub fn new(controller: Box<dyn Controller>, detector: Box<dyn Detector>, scheduler: Box<dyn Scheduler>) -> Self {
        Self {
            observes: detector.observes(),
            is_live: false,
            transfer_at: None,
            reads_rates: controller.reads_rates(),
            controller: Control::new(controller),
            detector,
            scheduler,
            paths: Paths::default(),
            groups: Groups::default(),
            views: Vec::new(),
            paces: true,
            burst_datagrams: 0,
            dips: None,
            said: Vec::new(),
            changes: None,
            has_caps: false,
            limit: None,
            one_way_at: None,
            without: Without::default(),
            health: HealthParameters::default(),
        }
    }

    /// Adds dips, while the detector is not sure that all paths are separate. Not for rate-based
    /// congestion control, which would measure the dips.
    pub fn with_dips(self) -> Self {
        Self { dips: Some(Dips::default()), ..self }
    }

    /// Adds the user's terms for paths: see [`Engine::name_path`].
    pub fn with_terms(self, said: Vec<NamedTerms>) -> Self {
        Self { said, ..self }
    }

    /// Limits the rate of all paths together.
    pub fn with_limit(self, rate: Bitrate) -> Self {
        Self { limit: Some(Limit::new(rate)), ..self }
    }

    /// Disables these mechanisms.
    pub fn but_for(self, without: Without) -> Self {
        Self { without, ..self }
    }

    /// The disabled mechanisms, also those of the host.
    pub fn without(&self) -> Without {
        self.without
    }

    /// Sets the parameters by which the host judges the health of paths.
    pub fn with_health(self, health: HealthParameters) -> Self {
        Self { health, ..self }
    }

    /// The parameters by which the host judges the health of paths.
    pub fn health(&self) -> &HealthParameters {
        &self.health
    }

    /// The rate limit of all paths together; `None`: no limit.
    pub fn limit(&self) -> Option<Bitrate> {
        self.limit.as_ref().map(Limit::rate)
    }

    /// Disables pacing. Published models of window-based control do not pace; rate-based control needs it.
    pub fn unpaced(self) -> Self {
        Self { paces: false, ..self }
    }

    /// Allows bursts of ten datagrams on each path opened from now on, at any rate [RFC9002 §7.7].
    /// Hosts in real time, whose timers may be late, and models of them need this.
    ///
    /// Without bursts each packet of an application below the pacing rate would seem to use all it may, since
    /// none could follow it at once.
    pub fn with_bursts(self) -> Self {
        Self { burst_datagrams: BURST_DATAGRAMS, ..self }
    }

    /// A path was opened; its datagrams carry up to `max_datagram`. It is not used before
    /// [`Engine::set_use`].
    pub fn on_path_opened(&mut self, path: PathId, max_datagram: ByteCount, now: Timestamp) {
        self.paths.insert(path, Path::new(max_datagram, self.burst_datagrams, now));
        self.controller.on_path_opened(path, max_datagram, now);
        self.detector.on_path_opened(path, now);
        self.poll(now);
    }

    /// A path is gone for good.
    pub fn on_path_closed(&mut self, path: PathId, now: Timestamp) {
        if self.paths.remove(path).is_some() {
            self.controller.on_path_closed(path);
            self.scheduler.on_path_closed(path);
            self.detector.on_path_closed(path, now);
            self.poll(now);
        }
    }

    /// Sets the host's use of the path: open once it is validated, shut when it is being closed.
    pub fn set_use(&mut self, path: PathId, path_use: PathUse) {
        if let Some(state) = self.paths.get_mut(path) {
            state.host_use = path_use;
        }
    }

    /// Whether the path can carry data: by the host's word, and by the quota.
    pub fn is_usable(&self, path: PathId) -> bool {
        self.paths.get(path).is_some_and(Path::is_usable)
    }

    /// Whether the path is a backup, by the host's word or by the terms.
    pub fn is_backup(&self, path: PathId) -> bool {
        self.paths.get(path).is_some_and(Path::is_backup)
    }

    /// Sets this end's terms for the path.
    pub fn set_terms(&mut self, path: PathId, terms: Terms) {
        if let Some(state) = self.paths.get_mut(path) {
            state.own_terms = terms;
            self.has_caps |= terms.cap.is_some();
        }
    }

    /// Sets the peer's terms for the path: its cost, its cap, and whether it is a backup. They only
    /// restrict this end further.
    pub fn set_peer_terms(&mut self, path: PathId, terms: Terms) {
        if let Some(state) = self.paths.get_mut(path) {
            state.peer_terms = terms;
            self.has_caps |= terms.cap.is_some();
        }
    }

    /// Gives the path the host's names of its beginning, such as an interface and its address. The
    /// terms that were set for one of these names then apply to it.
    pub fn name_path(&mut self, path: PathId, names: &[&str]) {
        let said = self.said.iter().find(|said| names.contains(&said.of.as_str())).map(|said| said.terms);
        let terms = match &self.changes {
            Some(changes) => Some(changes.apply(names, said.unwrap_or_default())),
            None => said,
        };
        let Some(terms) = terms else { return };
        // A path that is named again has already used a part of its quota.
        let left = self.paths.get(path).and_then(|state| state.own_terms.quota);
        self.set_terms(path, Terms { quota: left.or(terms.quota), ..terms });
    }

    /// Applies all changes that the user has made so far to paths named from now on. The host names
    /// its existing paths again.
    pub fn change_terms(&mut self, changes: TermsChanges) {
        self.changes = Some(changes);
    }

    /// The terms of the path, this end's and the peer's together.
    pub fn terms(&self, path: PathId) -> Option<Terms> {
        Some(self.paths.get(path)?.terms())
    }

    /// This end's terms for the path; `None` if no path has any.
    pub fn own_terms(&self, path: PathId) -> Option<Terms> {
        let is_said = !self.said.is_empty() || self.changes.is_some();
        self.paths.get(path).filter(|_| is_said).map(|state| state.own_terms)
    }

    /// The sending rate of the path; `None`: its window only. A cap applies even without pacing.
    fn pacing_rate(&self, path: PathId, state: &Path) -> Option<Bitrate> {
        let own = if self.paces { self.controller.pacing_rate(path) } else { None };
        match (own, state.terms().cap) {
            (Some(own), Some(cap)) => Some(own.min(cap)),
            (own, cap) => own.or(cap),
        }
    }

    /// A path has room, and a window or a buffer of the connection holds back new data.
    pub fn on_window_blocked(&mut self, now: Timestamp) {
        self.scheduler.on_window_blocked(now);
        for (_, state) in self.paths.iter_mut() {
            state.rate.on_blocked(state.in_flight());
        }
    }

    /// The size of the path's datagrams changed.
    pub fn on_max_datagram(&mut self, path: PathId, max_datagram: ByteCount) {
        if let Some(state) = self.paths.get_mut(path) {
            state.max_datagram = max_datagram;
            self.controller.on_max_datagram(path, max_datagram);
        }
    }

    /// The size of the path's datagrams; `None` for a path that is not open.
    pub fn max_datagram(&self, path: PathId) -> Option<ByteCount> {
        Some(self.paths.get(path)?.max_datagram)
    }

    /// The packet `number`, which elicits an acknowledgement, left on the path.
    #[inline]
    pub fn on_sent(&mut self, path: PathId, number: u64, bytes: ByteCount, now: Timestamp) {
        let Some(state) = self.paths.get_mut(path) else { return };
        let sent_state = state.rate.on_sent(now, state.in_flight());
        state.packets.insert(number, SentPacket::new(bytes, sent_state));
        self.note_sent(path, bytes, now);
    }

    /// A train of packets, by number and size, left on the path at `now`: as [`Engine::on_sent`] for each.
    /// The controller is asked once, as only the first packet, after an idle period, changes its answer.
    pub fn on_train_sent(&mut self, path: PathId, packets: impl IntoIterator<Item = (u64, ByteCount)>, now: Timestamp) {
        let mut packets = packets.into_iter();
        let Some((number, bytes)) = packets.next() else { return };
        self.on_sent(path, number, bytes, now);
        let allowed = self.allowed(path, now);
        for (number, bytes) in packets {
            let Some(state) = self.paths.get_mut(path) else { return };
            let sent_state = state.rate.on_sent(now, state.in_flight());
            state.packets.insert(number, SentPacket::new(bytes, sent_state));
            self.note_within(path, bytes, allowed, now);
        }
    }

    /// A packet left whose bytes already count as in flight.
    #[inline]
    fn note_sent(&mut self, path: PathId, bytes: ByteCount, now: Timestamp) {
        self.note_within(path, bytes, self.allowed(path, now), now);
    }

    /// The window of the path and its rate.
    #[inline]
    fn allowed(&self, path: PathId, now: Timestamp) -> Allowed {
        let window = self.controller.window(path);
        let state = self.paths.get(path);
        Allowed {
            window,
            less_dip: state.map_or(window, |state| less_dip(&self.dips, path, window, state.max_datagram, now)),
            pacing: state.and_then(|state| self.pacing_rate(path, state)),
        }
    }

    #[inline]
    fn note_within(&mut self, path: PathId, bytes: ByteCount, allowed: Allowed, now: Timestamp) {
        let Some(state) = self.paths.get_mut(path) else { return };
        let in_flight = state.in_flight();
        let is_alone = in_flight <= bytes;
        if let Some(rate) = allowed.pacing {
            state.pacer.on_sent(now, bytes, rate);
        }
        if let Some(limit) = &mut self.limit {
            limit.on_sent(now, bytes);
        }
        let next = in_flight + state.max_datagram;
        let is_all_used = next > allowed.less_dip || !state.pacer.may_send(now);
        state.on_filled(next > allowed.window, is_all_used, now);
        state.usage.steadiness.on_sent(bytes, now);
        state.answers.on_sent(is_alone, now);
        state.take_of_quota(bytes);
        self.controller.on_sent(path, &Sent { now, bytes, in_flight });
        self.scheduler.on_sent(path, bytes);
    }

    /// The host found that the window or its pacing limits the path, not a lack of data or another
    /// path. The window counts as the limit, though pacing may keep it from being full [RFC9002
    /// §7.8].
    ///
    /// It does not if less than half of the window is in flight. Pacing never leaves so much
    /// unused, but a saturated processor looks the same to the host.
    pub fn on_fully_used(&mut self, path: PathId, now: Timestamp) {
        let window = self.controller.window(path);
        if let Some(state) = self.paths.get_mut(path)
            && state.in_flight() * 2 >= window
        {
            state.on_filled(true, false, now);
        }
    }

    /// The host has more to send than the paths took: the windows and their pacing are the limit.
    pub fn on_held_back(&mut self, now: Timestamp) {
        let Self { paths, controller, limit, .. } = self;
        if let Some(limit) = limit {
            limit.set_waited_for(true);
        }
        for (id, state) in paths.iter_mut().filter(|(_, state)| state.is_usable()) {
            if state.in_flight() * 2 >= controller.window(id) {
                state.on_filled(true, false, now);
            }
            state.pacer.set_waited_for(true);
        }
    }

    /// The packet `number` was acknowledged. After the last packet of an acknowledgement the host
    /// calls [`Engine::on_ack_end`] with the same time; windows change only then.
    #[inline]
    pub fn on_ack(&mut self, path: PathId, number: u64, now: Timestamp) {
        let Some(state) = self.paths.get_mut(path) else { return };
        let in_flight = state.in_flight();
        let starved = state.newest_acked.is_none() && {
            let oldest = state.oldest();
            state.answers.on_ack_begin(oldest, &state.rtt, now);
            let window = less_dip(&self.dips, path, self.controller.window(path), state.max_datagram, now);
            state.judge_use(now, window)
        };
        if starved {
            state.rate.on_app_limited(in_flight);
        }
        let Some(packet) = state.packets.take(number) else { return };
        let (sent_at, bytes) = (packet.at(), packet.bytes());
        let is_bygone = self.paths.is_bygone(path, sent_at, now);
        let Some(state) = self.paths.get_mut(path) else { return };
        state.answers.on_acked(sent_at, is_bygone, now);
        if state.newest_acked.is_none_or(|(newest, _)| number > newest) {
            (state.newest_acked, state.is_newest_bygone) = (Some((number, sent_at)), is_bygone);
        }
        let window_limited = state.usage.window_was_full(sent_at);
        let rate = if self.reads_rates {
            state.rate.on_ack(now, bytes, &packet.state)
        } else {
            state.rate.on_ack_unread(now, bytes, &packet.state);
            None
        };
        state.acked.push(Ack { now, sent_at, bytes, in_flight, window_limited, rtt: None, rate });
    }

    /// An acknowledgement has been read completely. `ack_delay` is the peer's reported delay; zero
    /// if the host does not know it. Only the newest packet gives a sample [RFC9002 §5.1], and the
    /// controller hears of all packets with that sample known [RFC9002 §A.7].
    #[inline]
    pub fn on_ack_end(&mut self, path: PathId, ack_delay: Duration, now: Timestamp) {
        let Some(state) = self.paths.get_mut(path) else { return };
        let Some((number, sent_at)) = state.newest_acked.take() else { return };
        if state.largest_acked.is_none_or(|largest| number > largest) {
            state.largest_acked = Some(number);
            if !state.is_newest_bygone {
                self.on_round_trip(path, now.since(sent_at), ack_delay, now);
            }
        }
        let Some(state) = self.paths.get_mut(path) else { return };
        if state.packets.has_below(number) && state.largest_acked == Some(number) {
            // By now a host has found its losses [RFC9002 §6.1.2]. It will not report the remaining
            // packets, such as those sent to another address of the peer.
            state.forget_stale(number, now);
        }
        let rtt = state.rtt.get();
        let mut bytes = ByteCount::ZERO;
        for ack in &mut state.acked {
            bytes += ack.bytes;
            ack.rtt = rtt;
            self.controller.on_ack(path, ack);
        }
        state.acked.clear();
        self.controller.on_ack_end(path, now);
        if self.scheduler.hears_acks()
            && let Some(state) = self.paths.get(path)
        {
            let view = self.view_of(path, state, now);
            self.scheduler.on_ack(&view, bytes, now);
        }
        self.poll(now);
    }

    /// Whether the scheduler uses [`Engine::on_arrived`].
    pub fn hears_order(&self) -> bool {
        self.scheduler.hears_order()
    }

    /// Data that went on `path` has arrived. `was_awaited`: all data before it had arrived already.
    pub fn on_arrived(&mut self, path: PathId, was_awaited: bool) {
        self.scheduler.on_arrived(path, was_awaited);
    }

    /// The packet `number` was lost. After the last loss found at this moment the host calls
    /// [`Engine::on_congestion`].
    pub fn on_lost(&mut self, path: PathId, number: u64, now: Timestamp) {
        let Some(state) = self.paths.get_mut(path) else { return };
        let in_flight = state.in_flight();
        let Some(packet) = state.packets.take(number) else { return };
        let (_, lost) = state.losing.get_or_insert((in_flight, ByteCount::ZERO));
        let bytes = packet.bytes();
        *lost += bytes;
        state.lost += bytes;
        let sample = state.rate.on_lost(bytes, &packet.state);
        self.controller.on_lost(path, &LostPacket { now, sent_at: packet.at(), number, bytes, sample });
        self.detector.on_loss(path, &Lost { now, bytes });
        self.scheduler.on_lost(path, bytes, now);
    }

    /// The network signalled congestion; the newest affected packet was sent at `sent_at`.
    pub fn on_congestion(
        &mut self,
        path: PathId,
        signal: CongestionSignal,
        sent_at: Timestamp,
        persistent: bool,
        now: Timestamp,
    ) {
        let Some(state) = self.paths.get_mut(path) else { return };
        let (in_flight, lost) = state.losing.take().unwrap_or((state.in_flight(), ByteCount::ZERO));
        self.controller.on_congestion(path, &Congestion { now, sent_at, signal, lost, in_flight, persistent });
    }

    /// The last [`Engine::on_congestion`] of the path was spurious: its packets, as far as they are
    /// remembered, were all acknowledged after all. The reduction is undone.
    pub fn on_spurious_congestion(&mut self, path: PathId, now: Timestamp) {
        if self.paths.contains(path) {
            self.controller.on_spurious_congestion(path, now);
        }
    }

    /// The packet `number` will not be accounted for, for a reason that tells nothing of the
    /// network.
    pub fn on_discarded(&mut self, path: PathId, number: u64) {
        if let Some(state) = self.paths.get_mut(path) {
            state.packets.take(number);
        }
    }

    /// No packet in flight on the path will be accounted for: its packet numbers begin anew, or it
    /// leads elsewhere.
    pub fn on_all_discarded(&mut self, path: PathId) {
        if let Some(state) = self.paths.get_mut(path) {
            state.forget_in_flight();
            state.newest_acked = None;
            state.largest_acked = None;
        }
    }

    /// The application had nothing more to send although the path could.
    pub fn on_app_limited(&mut self, path: PathId) {
        if let Some(state) = self.paths.get_mut(path) {
            state.rate.on_app_limited(state.in_flight());
            state.pacer.set_waited_for(false);
        }
        if let Some(limit) = &mut self.limit {
            limit.set_waited_for(false);
        }
    }

    /// Lowers the window of a path to `window`, if it is larger: for hosts that have a rule of
    /// their own beside congestion control.
    pub fn clamp(&mut self, path: PathId, window: ByteCount) {
        self.controller.clamp(path, window);
    }

    /// The path holds up the others: its window is halved.
    pub fn penalise(&mut self, path: PathId) {
        self.controller.penalise(path);
    }

    /// Lets the detector decide. Hosts also call it when time passes without packets.
    #[inline]
    pub fn poll(&mut self, now: Timestamp) {
        if let Some(found) = self.detector.poll(now) {
            self.groups = found;
            self.couple();
        }
        self.forget_transfer(now);
        if self.dips.is_some() {
            self.dip(now);
        }
    }

    /// Begins a dip if one is due.
    fn dip(&mut self, now: Timestamp) {
        let Self { dips: Some(dips), detector, paths, .. } = self else { return };
        let begun = dips.update(now, || {
            let in_doubt = detector.verdicts().iter().any(|pair| pair.confidence > dips::SURELY_SEPARATE);
            let is_heard = |path: &Path| now.since(path.told_at) <= dips::HEARD;
            let usable = paths.iter().filter(|(_, path)| in_doubt && path.is_usable() && is_heard(path));
            usable.map(|(id, path)| Candidate::new(id, path.rtt.get())).collect()
        });
        if let Some(dip) = begun {
            self.paths.mark_all();
            self.detector.on_dip(dip.path, dip.from, dip.until);
        }
    }

    /// The evidence for the current groups, pair by pair; empty if nothing is detected.
    pub fn pair_verdicts(&self) -> Vec<PairVerdict> {
        self.detector.verdicts()
    }

    /// The window of a path, reduced by a dip.
    fn window_of(&self, path: PathId, state: &Path, now: Timestamp) -> ByteCount {
        less_dip(&self.dips, path, self.controller.window(path), state.max_datagram, now)
    }

    /// The time of sending and the size of packet `number`, while it is in flight.
    pub fn sent(&self, path: PathId, number: u64) -> Option<(Timestamp, ByteCount)> {
        let packet = self.paths.get(path)?.packets.get(number)?;
        Some((packet.at(), packet.bytes()))
    }

    /// The round-trip times of the path; `None` before the first sample.
    pub fn rtt(&self, path: PathId) -> Option<Rtt> {
        self.paths.get(path)?.rtt.get()
    }

    /// The current groups of paths.
    pub fn groups(&self) -> &Groups {
        &self.groups
    }
}

/// The limits of a path at one moment.
#[derive(Clone, Copy, Debug)]
struct Allowed {
    window: ByteCount,
    /// The window, reduced by a dip.
    less_dip: ByteCount,
    pacing: Option<Bitrate>,
}

/// The window of a path, reduced by a dip.
fn less_dip(
    dips: &Option<Dips>,
    path: PathId,
    window: ByteCount,
    max_datagram: ByteCount,
    now: Timestamp,
) -> ByteCount {
    dips.as_ref().map_or(window, |dips| dips.cap(path, window, max_datagram, now))
}
