//! Hybrid CUBIC: a short queue for as long as nobody else fills it, and coupled CUBIC where somebody does.
//!
//! # Source
//!
//! Ours. \[Copa2018\] and \[Nimbus2022\] have a mode for company and one for its absence, too, and other tests. A
//! sender is *elastic* that fills what others leave. Whether there is one is found by giving way: the group lets what
//! it has in flight fall below what the pipe holds, and looks whether the queue empties.
//!
//! # Symbols
//!
//! | symbol | here | unit |
//! |---|---|---|
//! | q | `Queue::level()`, the least of a quarter of a round trip above the least of all | s |
//! | noise | `Queue::noise`, the mean difference of successive levels | s |
//! | target, low | `Queue::target()`, `Queue::low()` | s |
//! | rate | `Path::rate`, the largest delivery rate of the last round trip | bytes/s |
//! | base | `Queue::base()`, the least round-trip time | s |
//!
//! # Deviations
//!
//! - None: nobody else has published it.

mod drain;
mod group;
mod path;
mod queue;
#[cfg(test)]
mod tests;

pub use self::path::STEP;
pub use self::queue::{LOW, TARGET};

use fairpath_core::{
    Ack, Bitrate, ByteCount, Congestion, CongestionSignal, GroupId, Groups, PathId, PathMap, Timestamp,
};

use self::group::{Group, Mode, Why};
use self::path::Path;
use super::{CoupledCubic, Cubic};
use crate::aimd::{Aimd, AimdConfig, UntilCoupled};
use crate::controller::{ControlState, Controller, Phase};

/// Round trips with too long a queue before a drain test begins.
const ABOVE_ROUNDS: f64 = 4.0;
/// Seconds without an empty queue after which it is drained once.
const REFRESH: f64 = 10.0;
/// Targets below which a queue needs no care while competing.
const SHORT: f64 = 3.0;
/// Targets above which a queue ends slow start.
const STARTED: f64 = 1.5;
/// Seconds since the last test or reduction before a falling queue makes a competing group test
/// again.
const SYMPATHY: f64 = 4.0;
/// Factor above the usual rate that shows that a competitor has left.
const LEFT: f64 = 1.35;

/// See the module.
#[derive(Clone, Debug)]
pub struct HybridCubic {
    inner: Aimd<UntilCoupled<Cubic, CoupledCubic>>,
    config: AimdConfig,
    paths: PathMap<Path>,
    groups: PathMap<Group>,
    partition: Option<Groups>,
}

/// Sums over the paths of a group.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    window: f64,
    rate: f64,
    /// When the last of them was drained, if all are.
    drained_at: Option<Timestamp>,
}

impl HybridCubic {
    /// A controller without paths.
    pub fn new(cubic: Cubic, config: AimdConfig) -> Self {
        let rule = UntilCoupled { alone: cubic, coupled: CoupledCubic { fast_convergence: cubic.fast_convergence } };
        Self { inner: Aimd::new(rule, config), config, paths: PathMap::new(), groups: PathMap::new(), partition: None }
    }

    fn key(&self, path: PathId) -> PathId {
        self.partition.as_ref().map_or(PathId::new(0), |groups| key(groups.of(path)))
    }

    /// Has the path do what its group does.
    fn follow(&mut self, id: PathId) {
        let inner = self.inner.window(id).as_f64();
        let Some(path) = self.paths.get_mut(id) else { return };
        let Some(group) = self.groups.get(path.key) else { return };
        if path.version != Some(group.version) {
            path.version = Some(group.version);
            if let Some((cwnd, ssthresh)) = path.enter(group.mode, inner) {
                self.inner.resume(id, cwnd, ssthresh);
            }
        }
        path.follow_cuts(group.cuts);
    }

    fn sums(&self, id: PathId, now: Timestamp) -> Sums {
        let Some(own) = self.paths.get(id) else { return Sums::default() };
        let mut sums = Sums { drained_at: Some(Timestamp::ZERO), ..Sums::default() };
        for (other, path) in self.paths.iter().filter(|(_, path)| path.key == own.key && path.srtt > 0.0) {
            sums.window += if path.is_free() { self.inner.window(other).as_f64() } else { path.cap };
            sums.rate += path.rate;
            let silent = now.since(path.heard_at).as_secs_f64() > 2.0 * path.srtt + 0.05;
            if !silent {
                let drained = if matches!(path.mode, Mode::Drain(_)) { path.drained_at() } else { None };
                sums.drained_at = sums.drained_at.zip(drained).map(|(one, other)| one.max(other));
            }
        }
        sums
    }

    fn on_start(&mut self, id: PathId, level: Option<f64>, now: Timestamp) {
        let goes_on = self.inner.state(id).is_some_and(|state| state.phase == Phase::SlowStart);
        let window = self.inner.window(id).as_f64();
        let Some(path) = self.paths.get_mut(id) else { return };
        let is_queued = level.is_some_and(|level| level > STARTED * path.queue.target());
        let Some(group) = self.groups.get_mut(path.key) else { return };
        if group.mode == Mode::Compete {
            // It is CUBIC, and its start as well.
            return if !goes_on {
                path.compete(group)
            };
        }
        if goes_on && !is_queued {
            return;
        }
        path.starting = false;
        path.mode = Mode::Delay;
        path.cap = window;
        if is_queued {
            path.cap = (window / 2.0).max(path.least);
            path.delay_cuts += 1;
            path.left_start(window, level.unwrap_or(0.0));
            group.cut_at = group.cut_at.max(now);
        }
        if group.mode != Mode::Delay {
            path.version = None;
        }
    }

    fn on_delay(&mut self, id: PathId, level: Option<f64>, ack: &Ack, round: bool, sums: &Sums) {
        let Some(path) = self.paths.get_mut(id) else { return };
        let Some(group) = self.groups.get_mut(path.key) else { return };
        let now = ack.now;
        if let Some(level) = level {
            if level > path.queue.target() {
                if group.above_since.is_none() {
                    group.above_since = Some(now);
                    group.cuts_above = 0;
                }
                if !path.was_above {
                    path.w_peak = path.cap;
                }
                path.was_above = true;
                path.empties = 0;
                if ack.sent_at > group.cut_at {
                    let (base, low) = (path.queue.pipe(), path.queue.low());
                    group.cuts += libm::log((base + low) / (base + level));
                    group.cut_at = now;
                    group.cuts_above += 1;
                    if let Some(window) = path.grows_after_start(level) {
                        path.started = None;
                        group.tested = now;
                        group.longest = level;
                        group.change(Mode::Compete);
                        path.compete(group);
                        let claim = path.claim(level).max(window);
                        self.inner.resume(id, claim, 1e12);
                        return;
                    }
                }
            } else {
                group.above_since = None;
                path.was_above = false;
                path.started = None;
            }
        }
        path.follow_cuts(group.cuts);
        if !round {
            return;
        }
        if group.above_since.is_none() && path.limited {
            path.grow(sums);
        }
        let above = group.above_since.map_or(0.0, |since| now.since(since).as_secs_f64());
        let is_long = path.queue.level() > 2.0 * path.queue.target();
        if above > ABOVE_ROUNDS * path.queue.pipe() && group.cuts_above > 1 && is_long {
            group.wait = path.queue.level();
            group.change(Mode::Drain(Why::Grew));
        } else if now.since(group.drained_at).as_secs_f64() > REFRESH.max(40.0 * path.srtt) && path.limited && !is_long
        {
            group.wait = path.queue.level();
            group.change(Mode::Drain(Why::Refresh));
        }
    }

    fn on_drain(&mut self, id: PathId, ack: &Ack, sums: &Sums) {
        let Some(path) = self.paths.get_mut(id) else { return };
        let Some(group) = self.groups.get_mut(path.key) else { return };
        let verdict = path.drain(ack, sums.drained_at, group);
        if let Some(is_empty) = verdict {
            group.conclude(is_empty, ack.now);
        }
    }

    fn on_compete(&mut self, id: PathId, level: Option<f64>, ack: &Ack, round: bool, sums: &Sums) {
        let Some(path) = self.paths.get_mut(id) else { return };
        let Some(group) = self.groups.get_mut(path.key) else { return };
        let now = ack.now;
        let mut falls = false;
        if let Some(level) = level {
            group.longest = group.longest.max(level);
            // Others look whether they are alone.
            let since = now.since(group.tested.max(group.reduced)).as_secs_f64();
            falls = path.fell(now, level)
                && level > path.queue.target()
                && since > SYMPATHY.max(4.0 * path.srtt).max(group.every / 4.0);
        }
        if falls {
            group.wait = path.highest();
            group.change(Mode::Drain(Why::Joined));
            return;
        }
        if !round || !path.limited {
            return;
        }
        let since = now.since(group.tested).as_secs_f64();
        let is_settled = since > (8.0 * path.srtt).max(2.0);
        let has_left = is_settled && since > group.every / 4.0 && sums.rate > LEFT * group.usual_rate;
        group.usual_rate += (sums.rate - group.usual_rate) / if is_settled { 16.0 } else { 2.0 };
        let (target, level) = (path.queue.target(), path.queue.level());
        if group.longest < SHORT * target {
            return;
        }
        let is_long = level > 2.0 * target;
        let is_full = is_long && level > 0.6 * group.longest;
        let is_due = since > group.every.max(10.0 * path.srtt);
        let is_empty = path.round_least < 0.3 * target && group.longest > 10.0 * target && since > 1.0;
        if is_full && is_due || is_long && has_left || is_empty {
            group.wait = path.queue.level();
            group.change(Mode::Drain(Why::Again));
        }
    }
}

fn key(group: GroupId) -> PathId {
    PathId::new(group.get())
}

impl Controller for HybridCubic {
    fn on_path_opened(&mut self, path: PathId, max_datagram: ByteCount, now: Timestamp) {
        self.inner.on_path_opened(path, max_datagram, now);
        if self.paths.contains(path) {
            return;
        }
        let key = self.key(path);
        // Knowledge of a group goes with the last path that anything is known of.
        if !self.paths.values().any(|other| other.key == key && other.is_heard()) {
            self.groups.insert(key, Group::new(now));
        }
        self.paths.insert(path, Path::new(key, max_datagram, &self.config, now));
    }

    fn on_path_closed(&mut self, id: PathId) {
        self.inner.on_path_closed(id);
        let Some(path) = self.paths.remove(id) else { return };
        if self.paths.values().all(|other| other.key != path.key) {
            self.groups.remove(path.key);
        }
    }

    fn on_max_datagram(&mut self, path: PathId, max_datagram: ByteCount) {
        self.inner.on_max_datagram(path, max_datagram);
        if let Some(path) = self.paths.get_mut(path) {
            path.set_datagram(max_datagram);
        }
    }

    fn hears_sent(&self) -> bool {
        false
    }

    fn on_ack(&mut self, id: PathId, ack: &Ack) {
        self.follow(id);
        let Some(path) = self.paths.get_mut(id) else { return };
        let is_free = path.is_free();
        self.inner.on_ack(id, &Ack { window_limited: ack.window_limited && is_free, ..*ack });
        let Some(rtt) = ack.rtt else { return };
        let (level, round) = path.measure(ack, &rtt);
        let sums = self.sums(id, ack.now);
        let Some(path) = self.paths.get(id) else { return };
        match path.mode {
            _ if path.starting => self.on_start(id, level, ack.now),
            Mode::Delay => self.on_delay(id, level, ack, round, &sums),
            Mode::Drain(_) => self.on_drain(id, ack, &sums),
            Mode::Compete => self.on_compete(id, level, ack, round, &sums),
        }
        self.follow(id);
        if round && let Some(path) = self.paths.get_mut(id) {
            path.begin_round();
        }
    }

    fn on_congestion(&mut self, id: PathId, event: &Congestion) {
        self.follow(id);
        let is_new = self.inner.starts_episode(id, event);
        if !self.inner.is_congestion(id, event) {
            return;
        }
        let Some(path) = self.paths.get_mut(id) else { return };
        let Some(group) = self.groups.get_mut(path.key) else { return };
        let mut undo = path.remembered(group);
        if event.persistent {
            let before = path.cap;
            if !path.is_free() {
                // The window that CUBIC last had is an old one: the path has gone by its own since.
                self.inner.resume(id, before, before);
            }
            path.starting = true;
            self.inner.give_way(id, event);
        } else if path.starting {
            self.inner.give_way(id, event);
            if is_new {
                self.end_start_by_loss(id, event.now);
            }
        } else if path.mode == Mode::Compete {
            group.reduced = event.now;
            self.inner.give_way(id, event);
        } else if path.mode == Mode::Delay && is_new {
            // The queue is full though ours is short.
            self.compete_after_loss(id, event);
        }
        let Some(path) = self.paths.get_mut(id) else { return };
        let Some(group) = self.groups.get(path.key) else { return };
        if event.signal == CongestionSignal::Ecn {
            // A mark does not turn out to be wrong, whatever is found of the losses beside it.
            path.undo = None;
        } else if is_new {
            undo.version = group.version;
            undo.is_reduced |= path.is_free();
            path.undo = Some(undo);
        }
    }

    fn on_spurious_congestion(&mut self, id: PathId, now: Timestamp) {
        let Some(path) = self.paths.get_mut(id) else { return };
        let Some(group) = self.groups.get_mut(path.key) else { return };
        let undo = path.undo.take();
        if let Some(undo) = &undo {
            path.restore(undo, group);
        }
        if undo.is_none_or(|undo| undo.is_reduced) {
            self.inner.on_spurious_congestion(id, now);
        }
    }

    fn on_groups(&mut self, groups: &Groups) {
        self.inner.on_groups(groups);
        self.partition = Some(groups.clone());
        self.regroup();
    }

    fn clamp(&mut self, path: PathId, window: ByteCount) {
        self.inner.clamp(path, window);
        if let Some(path) = self.paths.get_mut(path) {
            path.cap = path.cap.min(window.as_f64());
        }
    }

    fn penalise(&mut self, path: PathId) {
        self.inner.penalise(path);
        if let Some(path) = self.paths.get_mut(path) {
            path.cap /= 2.0;
        }
    }

    fn window(&self, id: PathId) -> ByteCount {
        match self.paths.get(id) {
            Some(path) if path.is_free() => self.inner.window(id),
            Some(path) => ByteCount::from_f64(path.cap.max(path.least)),
            None => ByteCount::ZERO,
        }
    }

    fn pacing_rate(&self, id: PathId) -> Option<Bitrate> {
        let path = self.paths.get(id)?;
        if path.is_free() { self.inner.pacing_rate(id) } else { path.pacing_rate(self.config.pacing_gain) }
    }

    fn served(&self, id: PathId) -> Option<Bitrate> {
        self.paths.get(id)?.served()
    }

    fn state(&self, id: PathId) -> Option<ControlState> {
        let state = self.inner.state(id)?;
        let path = self.paths.get(id)?;
        let delay_cuts = state.delay_cuts + path.delay_cuts;
        if path.is_free() {
            return Some(ControlState { delay_cuts, ..state });
        }
        let window = self.window(id);
        Some(ControlState { window, ssthresh: Some(window), phase: Phase::CongestionAvoidance, delay_cuts })
    }
}

impl HybridCubic {
    /// The first loss of a path ends its start: with a queue that is hardly longer than it should be, there is no room
    /// for keeping it short.
    fn end_start_by_loss(&mut self, id: PathId, now: Timestamp) {
        let window = self.inner.window(id).as_f64();
        let Some(path) = self.paths.get_mut(id) else { return };
        let Some(group) = self.groups.get_mut(path.key) else { return };
        if group.mode == Mode::Compete {
            return path.compete(group);
        }
        path.starting = false;
        path.mode = Mode::Delay;
        path.cap = window;
        if group.mode != Mode::Delay {
            path.version = None;
            self.follow(id);
        } else if path.queue.level() < SHORT * path.queue.target() {
            group.tested = now;
            group.change(Mode::Compete);
            path.compete(group);
        }
    }

    /// Gives way, and then takes what CUBIC would have had in its place.
    fn compete_after_loss(&mut self, id: PathId, event: &Congestion) {
        let Some(path) = self.paths.get_mut(id) else { return };
        let Some(group) = self.groups.get_mut(path.key) else { return };
        group.tested = event.now;
        group.longest = 0.0;
        group.usual_rate = path.rate;
        group.change(Mode::Compete);
        path.compete(group);
        let claim = path.claim(path.queue.level()).max(path.cap);
        let before = path.cap;
        self.inner.resume(id, before, before);
        self.inner.give_way(id, event);
        let left = self.inner.window(id).as_f64() / before.max(1.0);
        self.inner.expect(id, left * claim);
    }

    /// Forms the groups of the newest partition. One that is only a part of what it was knows what that knew.
    fn regroup(&mut self) {
        let Some(partition) = &self.partition else { return };
        let mut groups: PathMap<Group> = PathMap::new();
        let mut joined = Vec::new();
        for (id, path) in self.paths.iter().filter(|(_, path)| path.is_heard()) {
            joined.push((key(partition.of(id)), path.key));
        }
        joined.sort_unstable();
        joined.dedup();
        for (key, old) in &joined {
            let Some(old) = self.groups.get(*old) else { continue };
            let now = self.paths.values().map(|path| path.heard_at).max().unwrap_or(Timestamp::ZERO);
            groups.insert(*key, groups.get(*key).map_or(*old, |group| group.joined(*old, now)));
        }
        for (id, path) in self.paths.iter_mut() {
            path.key = key(partition.of(id));
            let is_joined = joined.iter().filter(|(key, _)| *key == path.key).count() > 1;
            path.cuts = if is_joined { 0.0 } else { path.cuts };
            // A path that nobody has heard of has nothing to say.
            if !groups.contains(path.key) {
                groups.insert(path.key, Group::new(path.heard_at));
            }
        }
        self.groups = groups;
    }
}
