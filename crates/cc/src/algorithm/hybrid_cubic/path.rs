//! One path of a group.

use fairpath_core::{Ack, Bitrate, ByteCount, PathId, Rtt, Timestamp, WindowedMax};

use super::Sums;
use super::drain::{Drain, LEFT, Wait};
use super::group::{Group, Mode, Why};
use super::queue::Queue;
use crate::aimd::AimdConfig;
use crate::rounds::Rounds;

/// Growth of a queue from one round trip to the next that shows the start of another flow.
const GROWS: f64 = 1.3;
/// Share of its recent maximum below which a queue falls.
const FALLS: f64 = 0.8;
/// The share of the pipe left in flight by a drain that only measures the least wait.
const REFRESH: f64 = 0.5;
/// Round trips without a queue after which windows grow by `FASTER` in each.
const EMPTY_ROUNDS: u32 = 4;
const FASTER: f64 = 0.25;
/// A window whose queue is short grows in a round trip by this times the root of its group's window in packets, and by
/// one packet at least.
pub const STEP: f64 = 0.25;
/// How long the largest rate is remembered.
const MEMORY: core::time::Duration = core::time::Duration::from_secs(10);

#[derive(Clone, Debug)]
pub(super) struct Path {
    pub(super) key: PathId,
    datagram: f64,
    min_datagrams: f64,
    pub(super) least: f64,
    /// In its slow start.
    pub(super) starting: bool,
    pub(super) mode: Mode,
    pub(super) version: Option<u64>,
    pub(super) cuts: f64,
    /// The window while it is not CUBIC's.
    pub(super) cap: f64,
    pub(super) queue: Queue,
    rounds: Rounds,
    pub(super) round_least: f64,
    pub(super) limited: bool,
    /// Whether as much was on its way in this round trip as a test would leave of the window.
    ///
    /// An application that sends less does not say what the path carries.
    filled: bool,
    /// That of the last round trip, in bytes per second.
    pub(super) rate: f64,
    best: WindowedMax<f64>,
    /// The same where packets waited for all of a round trip, and nobody else filled the queue; else 0.
    served: WindowedMax<f64>,
    pub(super) srtt: f64,
    pub(super) heard_at: Timestamp,
    pub(super) empties: u32,
    pub(super) was_above: bool,
    /// The window where the queue began to grow.
    pub(super) w_peak: f64,
    /// The window at the end of the start, while the queue has not been short since; the wait at the last cut, and how
    /// often it has grown from one to the next.
    pub(super) started: Option<f64>,
    cut_level: f64,
    grew: u32,
    pub(super) delay_cuts: u64,
    drain: Option<Drain>,
    /// Its state before losses changed it.
    pub(super) undo: Option<Undo>,
    /// When the round trip began, and what has arrived in it.
    began: Timestamp,
    bytes: f64,
    /// The highest wait of late.
    high: Option<(Timestamp, f64)>,
}

/// The state of a path and its group before losses that may turn out to be none.
#[derive(Clone, Debug)]
pub(super) struct Undo {
    group: Group,
    /// The version of the group after them.
    pub(super) version: u64,
    /// Whether CUBIC has given way to them.
    pub(super) is_reduced: bool,
    starting: bool,
    mode: Mode,
    cap: f64,
    own_version: Option<u64>,
}

impl Path {
    pub(super) fn new(key: PathId, max_datagram: ByteCount, config: &AimdConfig, now: Timestamp) -> Self {
        let mut path = Self {
            key,
            datagram: 1.0,
            min_datagrams: f64::from(config.min_window_datagrams.max(1)),
            least: 1.0,
            starting: true,
            mode: Mode::Delay,
            version: None,
            cuts: 0.0,
            cap: f64::MAX / 4.0,
            queue: Queue::default(),
            rounds: Rounds::default(),
            round_least: f64::MAX,
            limited: false,
            filled: false,
            rate: 0.0,
            best: WindowedMax::new(MEMORY),
            served: WindowedMax::new(MEMORY),
            srtt: 0.0,
            heard_at: now,
            empties: 0,
            was_above: false,
            w_peak: 0.0,
            started: None,
            cut_level: 0.0,
            grew: 0,
            delay_cuts: 0,
            drain: None,
            undo: None,
            began: now,
            high: None,
            bytes: 0.0,
        };
        path.set_datagram(max_datagram);
        path
    }

    pub(super) fn set_datagram(&mut self, max_datagram: ByteCount) {
        self.datagram = max_datagram.max(ByteCount::new(1)).as_f64();
        self.least = self.min_datagrams * self.datagram;
    }

    /// Whether anything is known of it: a round-trip time, or a loss that ended its start.
    pub(super) fn is_heard(&self) -> bool {
        self.srtt > 0.0 || !self.starting
    }

    /// Whether the window is CUBIC's.
    pub(super) fn is_free(&self) -> bool {
        self.starting || self.mode == Mode::Compete
    }

    /// Is CUBIC from now on, as its group is.
    pub(super) fn compete(&mut self, group: &Group) {
        (self.starting, self.mode, self.version) = (false, Mode::Compete, Some(group.version));
    }

    /// Takes an acknowledgement; gives the wait where one is known anew, and whether a round trip ends.
    pub(super) fn measure(&mut self, ack: &Ack, rtt: &Rtt) -> (Option<f64>, bool) {
        self.srtt = rtt.smoothed.as_secs_f64().max(1e-6);
        self.heard_at = ack.now;
        let level = self.queue.on_sample(ack.now, rtt);
        self.round_least = self.round_least.min(rtt.latest.as_secs_f64() - self.queue.base());
        self.limited |= ack.window_limited;
        self.filled |= ack.in_flight.as_f64() > LEFT * self.cap;
        self.bytes += ack.bytes.as_f64();
        let round = self.rounds.end_with(ack);
        let took = ack.now.since(self.began).as_secs_f64();
        if round && took > 0.0 {
            if self.limited || self.bytes / took > self.rate {
                self.rate = self.bytes / took;
            }
            if !matches!(self.mode, Mode::Drain(_)) {
                self.best.update(ack.now, self.rate);
            }
            let is_served = self.mode == Mode::Delay && self.filled && self.round_least > self.queue.low();
            self.served.update(ack.now, if is_served { self.bytes / took } else { 0.0 });
        }
        if round {
            self.began = ack.now;
            self.bytes = 0.0;
        }
        (level, round)
    }

    pub(super) fn begin_round(&mut self) {
        self.round_least = f64::MAX;
        (self.limited, self.filled) = (false, false);
    }

    pub(super) fn left_start(&mut self, window: f64, level: f64) {
        (self.started, self.cut_level, self.grew) = (Some(window), level, 0);
    }

    /// The wait grows from one round trip to the next though the start has ended: the window at its end.
    pub(super) fn grows_after_start(&mut self, level: f64) -> Option<f64> {
        let is_more = level > GROWS * self.cut_level && level > 2.0 * self.queue.target();
        self.cut_level = level;
        self.grew = if is_more { self.grew + 1 } else { 0 };
        self.started.filter(|_| self.grew >= 2)
    }

    /// Takes a wait; says whether it is much shorter than it was within two round trips.
    pub(super) fn fell(&mut self, now: Timestamp, level: f64) -> bool {
        let span = core::time::Duration::from_secs_f64(2.0 * self.srtt);
        if self.high.is_none_or(|(at, high)| level >= high || now.since(at) > span) {
            self.high = Some((now, level));
        }
        level < FALLS * self.highest()
    }

    pub(super) fn highest(&self) -> f64 {
        self.high.map_or(0.0, |(_, high)| high)
    }

    pub(super) fn follow_cuts(&mut self, cuts: f64) {
        if self.cuts != cuts {
            if !self.starting && self.mode == Mode::Delay {
                self.delay_cuts += u64::from(cuts < self.cuts);
                self.cap = (self.cap * libm::exp(cuts - self.cuts)).max(self.least);
            }
            self.cuts = cuts;
        }
    }

    /// A round trip without a queue, or with one that is short.
    pub(super) fn grow(&mut self, sums: &Sums) {
        let is_empty = self.round_least < self.queue.low() + 0.002;
        let best = self.best.get().unwrap_or(0.0);
        let packets = (sums.window / self.datagram).max(1.0);
        let step =
            (STEP * libm::sqrt(packets)).max(1.0) * self.datagram * (self.cap / sums.window.max(self.cap)).min(1.0);
        self.empties = if is_empty { self.empties + 1 } else { 0 };
        let grown = if is_empty && self.cap < 0.9 * best * self.queue.pipe() {
            (2.0 * self.cap).min(best * self.queue.pipe())
        } else if self.empties >= EMPTY_ROUNDS {
            (1.0 + FASTER) * self.cap
        } else {
            self.cap + step
        };
        let used = 2.0 * (self.rate * (self.queue.pipe() + self.queue.low())).max(4.0 * self.datagram);
        self.cap = grown.min(used.max(self.cap)).max(self.least);
    }

    /// Its group is in another mode. The window and threshold that CUBIC goes on from, where it does.
    pub(super) fn enter(&mut self, mode: Mode, inner: f64) -> Option<(f64, f64)> {
        let before = core::mem::replace(&mut self.mode, mode);
        if self.starting && !matches!(mode, Mode::Drain(_)) {
            return None;
        }
        let drain = if matches!(mode, Mode::Drain(_)) { None } else { self.drain.take() };
        match mode {
            Mode::Delay => {
                if let Some(drain) = drain {
                    self.cap = (drain.rate * (self.queue.pipe() + self.queue.low())).max(self.least);
                    self.empties = 0;
                    self.was_above = false;
                } else if before == Mode::Compete {
                    self.cap = inner;
                }
                None
            }
            Mode::Drain(_) => {
                let window = if self.starting || before == Mode::Compete { inner } else { self.cap };
                self.starting = false;
                let part = if mode == Mode::Drain(Why::Refresh) { REFRESH } else { LEFT };
                let drain = Drain::new(window, self.rate, self.queue.pipe(), self.least, part);
                self.delay_cuts += u64::from(drain.window < window);
                self.cap = drain.window;
                self.drain = Some(drain);
                None
            }
            Mode::Compete => match (before, drain) {
                (Mode::Drain(Why::Again | Why::Joined), _) | (Mode::Compete, _) => None,
                (_, Some(drain)) => {
                    let claim = self.claim(drain.shortest).max(drain.before);
                    Some((claim, claim))
                }
                _ => {
                    let claim = self.claim(self.queue.level()).max(self.cap);
                    Some((claim, claim))
                }
            },
        }
    }

    /// The window that CUBIC would have had in its place, at this wait: the rate of before the queue grew.
    pub(super) fn claim(&self, wait: f64) -> f64 {
        (self.best.get().unwrap_or(0.0) * (self.queue.pipe() + wait)).max(self.w_peak)
    }

    /// When the path was drained, if it is.
    pub(super) fn drained_at(&self) -> Option<Timestamp> {
        self.drain.as_ref().and_then(|drain| drain.done_at)
    }

    /// Takes an acknowledgement while the queue is drained; says whether it is empty, where that is known.
    pub(super) fn drain(&mut self, ack: &Ack, all_at: Option<Timestamp>, group: &Group) -> Option<bool> {
        let (base, low) = (self.queue.base(), self.queue.low());
        let latest = ack.rtt?.latest.as_secs_f64() - base;
        let (datagram, least) = (self.datagram, self.least);
        let drain = self.drain.as_mut()?;
        let left = ack.in_flight.saturating_sub(ack.bytes).as_f64();
        drain.follow(ack.now, left, datagram);
        let wait = Wait { pipe: self.queue.pipe(), low, latest, before: group.wait };
        let verdict = drain.judge(ack, all_at?, wait, group.mode == Mode::Drain(Why::Grew), least);
        self.cap = drain.window;
        verdict
    }

    /// Keeps what losses are about to change.
    pub(super) fn remembered(&self, group: &Group) -> Undo {
        let Self { starting, mode, cap, version, .. } = *self;
        Undo {
            group: *group,
            version: group.version,
            is_reduced: self.is_free(),
            starting,
            mode,
            cap,
            own_version: version,
        }
    }

    /// The losses were none, and nothing has happened to the group since.
    pub(super) fn restore(&mut self, undo: &Undo, group: &mut Group) {
        if group.version == undo.version {
            *group = undo.group;
            (self.starting, self.mode, self.cap, self.version) = (undo.starting, undo.mode, undo.cap, undo.own_version);
        }
    }

    /// The rate that its bottleneck carries, where that was seen and is its own.
    ///
    /// Bursts of others make packets wait for a round trip that leaves little: what has passed at other times passes again.
    pub(super) fn served(&self) -> Option<Bitrate> {
        let is_own = matches!(self.mode, Mode::Delay | Mode::Drain(Why::Grew | Why::Refresh));
        let rate = self.served.get().filter(|rate| is_own && *rate > 0.0)?;
        let rate = rate.max(self.best.get().unwrap_or(0.0));
        Some(Bitrate::from_bps((8.0 * rate).min(1e15) as u64))
    }

    pub(super) fn pacing_rate(&self, gain: f64) -> Option<Bitrate> {
        let time = self.queue.pipe().max(1e-6);
        (self.srtt > 0.0).then(|| Bitrate::from_bps((8.0 * gain * self.cap.max(self.least) / time).min(1e15) as u64))
    }
}
