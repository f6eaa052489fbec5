//! Over which path the next packet goes.
//!
//! Each path may send what the optimum gives it. Paths that bring about as much in time share in proportion to these
//! rates; one that brings less carries what the better ones have no room for, and copies otherwise. So does one that
//! costs more, or is for emergencies, as long as those that cost less bring about as much in time.
//!
//! # Source
//!
//! [Pluntke2011 §3] for the optimum and for a share that is used for probing, [RFC5348 §3.1] for the rate of a TCP.
//!
//! # Deviations
//!
//! - The share for probing is made of copies: a path that is worse than others is measured with packets that others carry
//!   too, so that being measured costs bandwidth and no packet.
//! - A stream mostly sends less than it may. Then the paths with the best chance carry all of it, in proportion to their
//!   rates where chances are about the same: who lost a path would else lose all that was on its way.

use core::time::Duration;
use std::collections::BTreeMap;

use fairpath_core::{Bitrate, Bytes, GroupId, Groups, PathId, Timestamp};
use fairpath_rate::{Bound, Delays, PROBING, PacketRate, Region, simple};

use crate::sharing::Sharing;
use crate::terms::PathTerms;
use crate::track::Track;

/// How much above what congestion control allows a path is paced, so that its window, and not this, is the limit
/// [RFC9002 §7.7].
const ABOVE_WINDOW: f64 = 1.25;

/// Of two paths that differ by less in what comes in time, neither is better: so much is noise in a hundred packets.
const ALIKE: f64 = 0.02;

/// A packet waits for a path that brings more for this part of its deadline, and then takes another.
const WAITS: u32 = 8;

/// After this part of its deadline it takes any path of which half comes in time: it would be dropped else.
const WAITS_AT_MOST: u32 = 4;

/// How much may leave at once on a path, beside two packets: what its rate is in this time.
const BURST: Duration = Duration::from_millis(5);

/// A path that carries nothing carries a copy that often, while anything is sent.
const PROBE_EVERY: Duration = Duration::from_millis(100);

/// The same of a path that costs more than others: what measures it costs, and says in a few seconds what it is worth.
const DEAR_PROBE_EVERY: Duration = Duration::from_secs(1);

/// A path whose share in time is less than this part of the best one's does not serve, whatever it costs: about as much
/// repair again would be needed as it lacks, and a burst is more than that.
const SERVES: f64 = 0.9;

/// The friendly rates of a group go to the paths that cost least: those of others count by so much less.
const DEAR_VALUE: f64 = 1e-3;

/// What a path may always carry in a round trip, in packets: the initial window [RFC9002 §7.2].
const INITIAL: f64 = 10.0;

/// What rates are taken to be before a path has measured a round trip.
const FIRST_RTT: Duration = Duration::from_millis(100);

/// How long the peer may keep back an acknowledgement [RFC9000 §18.2].
const ACKNOWLEDGED: Duration = Duration::from_millis(25);

/// The least that answers are taken to vary by: what timers of hosts and the other packets of a picture do.
const VARIES: Duration = Duration::from_millis(5);

/// What the host knows of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathFacts {
    /// The path.
    pub path: PathId,
    /// Whether it may carry data.
    pub usable: bool,
    /// The smoothed round-trip time, once there is one.
    pub rtt: Option<Duration>,
    /// The shortest there was.
    pub least_rtt: Option<Duration>,
    /// What congestion control lets be in flight.
    pub window: Bytes,
    /// The size of its packets.
    pub max_datagram: Bytes,
}

/// A path as a sender has it.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) facts: PathFacts,
    pub(crate) track: Track,
    /// What it may send, in bytes in a second.
    pub(crate) rate: f64,
    /// The share of its packets that come in time.
    pub(crate) value: f64,
    pub(crate) delays: Option<Delays>,
    pub(crate) is_silent: bool,
    /// By how much its delays vary as a rule.
    varies: Duration,
    /// Whether answers take longer than all but a few do.
    pub(crate) is_overdue: bool,
    terms: PathTerms,
    /// Whether it brings too little in time, however little it costs.
    fails: bool,
    /// How far from the best it is, in steps of [`ALIKE`].
    tier: u32,
    /// What may leave now, in bytes; below zero where the last packet was larger than what was left.
    credit: f64,
    filled_at: Timestamp,
    /// The time of fair queueing at which its next packet leaves.
    turn: f64,
    /// What it is to carry of copies, in bytes.
    owes: f64,
    carried_at: Timestamp,
    /// How much of new data it carried since the rates were set.
    pub(crate) carried: f64,
}

impl Lane {
    fn new(facts: PathFacts, now: Timestamp) -> Self {
        Self {
            facts,
            track: Track::default(),
            rate: allowed(&facts, &PathTerms::default()),
            value: 1.0,
            delays: None,
            is_silent: false,
            varies: Duration::ZERO,
            is_overdue: false,
            terms: PathTerms::default(),
            fails: false,
            tier: 0,
            credit: 0.0,
            filled_at: now,
            turn: 0.0,
            owes: 0.0,
            carried_at: now,
            carried: 0.0,
        }
    }

    pub(crate) fn rtt(&self) -> Duration {
        self.facts.rtt.unwrap_or(FIRST_RTT)
    }

    fn burst(&self) -> f64 {
        2.0 * self.facts.max_datagram.as_f64() + self.rate * BURST.as_secs_f64()
    }

    fn fill(&mut self, now: Timestamp) {
        let passed = now.since(self.filled_at).as_secs_f64();
        self.filled_at = now;
        self.credit = (self.credit + self.rate * passed).min(self.burst());
    }

    /// An answer that takes longer has been lost, or what it answers is late: all but one in a thousand come by then, and
    /// so a probe timeout counts them, too [RFC9002 §6.2.1].
    pub(crate) fn patience(&self) -> Duration {
        self.rtt() + ACKNOWLEDGED + 4 * self.varies.max(VARIES)
    }

    /// How long a packet takes that leaves now, with what most take more.
    pub(crate) fn takes(&self) -> Duration {
        let of = |delays: Delays| delays.mean + 2 * delays.deviation;
        self.delays.map_or(self.rtt() / 2, of)
    }
}

/// What congestion control lets leave in a second, and what was said of the path, in bytes.
fn allowed(facts: &PathFacts, terms: &PathTerms) -> f64 {
    let rtt = facts.rtt.unwrap_or(FIRST_RTT).max(Duration::from_millis(1));
    let cap = terms.cap.map_or(f64::INFINITY, |cap| cap.as_bps() as f64 / 8.0);
    (ABOVE_WINDOW * facts.window.as_f64() / rtt.as_secs_f64()).min(cap)
}

/// All paths.
#[derive(Debug, Default)]
pub(crate) struct Spread {
    pub(crate) lanes: BTreeMap<PathId, Lane>,
    /// What was said of paths, those that are not there yet included.
    pub(crate) terms: BTreeMap<PathId, PathTerms>,
    sharing: Sharing,
    solved_at: Option<Timestamp>,
    /// The time of fair queueing.
    turn: f64,
}

impl Spread {
    pub(crate) fn new(sharing: Sharing) -> Self {
        Self { sharing, ..Self::default() }
    }

    /// What the host knows of its paths now: rates are set anew. Paths that are not named are gone.
    pub(crate) fn solve(
        &mut self,
        facts: &[PathFacts],
        groups: &Groups,
        deadline: Duration,
        now: Timestamp,
    ) -> Vec<PathId> {
        let is_there = |path: &PathId| facts.iter().any(|one| one.path == *path);
        self.lanes.retain(|path, _| is_there(path));
        self.terms.retain(|path, _| is_there(path));
        let passed = self.solved_at.map_or(Duration::ZERO, |at| now.since(at));
        self.solved_at = Some(now);
        for one in facts {
            let lane = self.lanes.entry(one.path).or_insert_with(|| Lane::new(*one, now));
            lane.fill(now);
            lane.facts = *one;
            lane.terms = self.terms.get(&one.path).copied().unwrap_or_default();
            (lane.delays, lane.varies) = (lane.track.delays(now), lane.track.usual_deviation());
            let late = lane.delays.map_or(0.0, |delays| Bound::Cantelli.late(0, &delays, deadline));
            lane.value = (1.0 - lane.track.loss()) * (1.0 - late);
        }
        let fell_silent = self.judge_silence(now);
        self.set_tiers();
        self.set_rates(groups, passed);
        fell_silent
    }

    /// Which paths fell silent. Where all are it is the reports that do not come.
    pub(crate) fn judge_silence(&mut self, now: Timestamp) -> Vec<PathId> {
        let is_silent = |lane: &Lane| lane.track.was_heard() && lane.track.is_silent(lane.rtt(), now);
        let says_nothing = self.lanes.values().filter(|lane| lane.facts.usable).all(is_silent);
        let mut fell_silent = Vec::new();
        for (path, lane) in &mut self.lanes {
            let falls_silent = !says_nothing && is_silent(lane);
            let was_silent = core::mem::replace(&mut lane.is_silent, falls_silent);
            if falls_silent && !was_silent {
                fell_silent.push(*path);
            }
        }
        fell_silent
    }

    /// The friendly rates that bring the most in time, group by group: paths of different groups share no bottleneck.
    fn set_rates(&mut self, groups: &Groups, passed: Duration) {
        let price = self.price();
        let apart = self.sharing.tells_groups_apart();
        let mut members: BTreeMap<Option<GroupId>, Vec<&mut Lane>> = BTreeMap::new();
        for (path, lane) in &mut self.lanes {
            match lane.facts.usable {
                true => members.entry(apart.then(|| groups.of(*path))).or_default().push(lane),
                false => lane.rate = 0.0,
            }
        }
        for members in members.values_mut() {
            let packet = |lane: &Lane| lane.facts.max_datagram.as_f64().max(1.0);
            let tcp = |lane: &Lane| {
                let equation = simple(lane.rtt(), lane.track.loss_events()).per_second() * packet(lane);
                PacketRate::new(equation.min(allowed(&lane.facts, &lane.terms)))
            };
            let tcp: Vec<PacketRate> = members.iter().map(|lane| tcp(lane)).collect();
            // Windows and round trips are finite, so rates are.
            let Ok(region) = Region::new(&tcp) else { continue };
            let value = |lane: &Lane| match lane.is_silent {
                true => 0.0,
                false if price.is_some_and(|price| lane.terms.price() > price) => DEAR_VALUE * lane.value,
                false => lane.value,
            };
            let values: Vec<f64> = members.iter().map(|lane| value(lane)).collect();
            let rtts: Vec<Duration> = members.iter().map(|lane| lane.rtt().max(Duration::from_millis(1))).collect();
            let rates = self.sharing.rates(&region, &values, &rtts);
            for (lane, rate) in members.iter_mut().zip(rates) {
                // No more than twice as much in a round trip.
                let rtt = lane.rtt().max(Duration::from_millis(1)).as_secs_f64();
                let grown = lane.rate.max(INITIAL * packet(lane) / rtt) * libm::exp2(passed.as_secs_f64() / rtt);
                lane.rate = rate.per_second().min(grown);
            }
        }
    }

    fn set_tiers(&mut self) {
        let best = self.lanes.values().filter(|lane| lane.is_open()).map(|lane| lane.value).fold(0.0, f64::max);
        // Where all cost the same, what one brings in time is all that counts.
        let mut prices = self.lanes.values().map(|lane| lane.terms.price());
        let first = prices.next();
        let is_choice = prices.any(|price| Some(price) != first);
        let prefers = self.sharing.prefers_better_paths();
        for lane in self.lanes.values_mut() {
            lane.fails = is_choice && lane.value < SERVES * best;
            lane.tier = if prefers { ((best - lane.value).max(0.0) / ALIKE) as u32 } else { 0 };
        }
    }

    /// The path for so many bytes that were queued `waited` ago and may take `deadline`; not on `except`.
    pub(crate) fn choose(
        &mut self,
        packet: Waiting,
        except: Option<PathId>,
        may_send: impl Fn(PathId) -> bool,
        now: Timestamp,
    ) -> Option<PathId> {
        self.lanes.values_mut().for_each(|lane| lane.fill(now));
        let open = || self.lanes.iter().filter(|(path, lane)| lane.is_open() && self.is_beside(except, **path, lane));
        let (best, price) = open().map(|(_, lane)| (lane.rank(), lane.terms.price())).min()?;
        let takes_any = packet.waited >= packet.deadline / WAITS;
        let left = packet.deadline.saturating_sub(packet.waited);
        // What it costs is paid only for what no other path had room for, and not for what leaves somewhat early.
        let may_cost = packet.held >= packet.deadline / WAITS;
        let is_paid = |lane: &Lane| may_cost || lane.terms.price() <= price;
        let takes_last = packet.waited >= packet.deadline / WAITS_AT_MOST;
        let is_in_time = |lane: &Lane| lane.takes() <= left || (takes_last && lane.mostly_takes() <= left);
        let is_crowded = self.is_crowded(packet, left);
        let fits = |lane: &Lane| {
            let may_take = takes_any && (is_crowded || !lane.is_lossy()) && is_paid(lane);
            lane.rank() == best || (may_take && is_in_time(lane))
        };
        let free = open().filter(|(path, lane)| fits(lane) && lane.credit > 0.0 && may_send(**path));
        let chosen = free.min_by(|(_, a), (_, b)| a.rank().cmp(&b.rank()).then(a.turn.total_cmp(&b.turn)));
        chosen.map(|(path, _)| *path)
    }

    /// Whether the paths that lose little cannot carry the packet in time, or not what waits behind it: what leaves on
    /// others mostly has to leave again.
    fn is_crowded(&self, packet: Waiting, left: Duration) -> bool {
        let sound = || self.lanes.values().filter(|lane| lane.is_open() && !lane.is_lossy());
        let Some(takes) = sound().map(Lane::takes).min() else { return true };
        let rate: f64 = sound().map(Lane::lasting).sum();
        let drained = Duration::try_from_secs_f64(packet.behind as f64 / rate).unwrap_or(Duration::MAX);
        drained.saturating_add(takes) > packet.deadline || takes + packet.deadline / WAITS > left
    }

    /// Whether a copy of what left on `other` may go on the path: it is not worth what a dearer one costs.
    fn is_beside(&self, other: Option<PathId>, path: PathId, lane: &Lane) -> bool {
        let Some(other) = other else { return true };
        let price = self.lanes.get(&other).map(|other| other.terms.price());
        path != other && price.is_none_or(|price| lane.terms.price() <= price)
    }

    /// Whether there is a path for copies of what left on this one.
    pub(crate) fn has_beside(&self, other: PathId) -> bool {
        self.lanes.iter().any(|(path, lane)| lane.is_open() && self.is_beside(Some(other), *path, lane))
    }

    /// What the paths cost that carry the stream; `None` where none does.
    fn price(&self) -> Option<(bool, u32)> {
        let open = self.lanes.values().filter(|lane| lane.is_open());
        open.map(|lane| (lane.rank(), lane.terms.price())).min().map(|(_, price)| price)
    }

    /// A path that is to carry a copy of so many bytes that go on `chosen`, if any.
    pub(crate) fn probed(
        &mut self,
        chosen: PathId,
        bytes: usize,
        may_send: impl Fn(PathId) -> bool,
        now: Timestamp,
    ) -> Option<PathId> {
        let bytes = bytes as f64;
        let cost = self.price().map_or(0, |(_, cost)| cost);
        let is_dear = |lane: &Lane| lane.terms.cost > cost;
        let measured = |lane: &Lane| lane.facts.usable && !is_dear(lane);
        for (_, lane) in self.lanes.iter_mut().filter(|(path, lane)| **path != chosen && measured(lane)) {
            lane.owes = (lane.owes + PROBING * bytes).min(2.0 * bytes);
        }
        let is_due = |lane: &Lane| match is_dear(lane) {
            true => now.since(lane.carried_at) >= DEAR_PROBE_EVERY,
            false => lane.owes >= bytes || now.since(lane.carried_at) >= PROBE_EVERY,
        };
        let mut others = self.lanes.iter().filter(|(path, lane)| **path != chosen && lane.facts.usable && is_due(lane));
        others.find(|(path, _)| may_send(**path)).map(|(path, _)| *path)
    }

    /// So many bytes leave on the path; new data where they are not there twice.
    pub(crate) fn on_leaving(&mut self, path: PathId, bytes: usize, is_new: bool, now: Timestamp) {
        let Some(lane) = self.lanes.get_mut(&path) else { return };
        let bytes = bytes as f64;
        lane.credit -= bytes;
        lane.carried_at = now;
        // What it carries anyhow says what a copy would.
        lane.owes = (lane.owes - bytes).max(0.0);
        if is_new {
            lane.carried += bytes;
            lane.turn = lane.turn.max(self.turn) + bytes / lane.rate.max(1.0);
            let least =
                self.lanes.values().filter(|lane| lane.is_open()).map(|lane| lane.turn).fold(f64::INFINITY, f64::min);
            self.turn = if least.is_finite() { least } else { self.turn };
        }
    }

    /// When a path that has no credit has some again.
    pub(crate) fn next_credit(&self) -> Option<Timestamp> {
        let open = self.lanes.values().filter(|lane| lane.is_open() && lane.credit <= 0.0 && lane.rate > 0.0);
        let at =
            |lane: &Lane| lane.filled_at + Duration::from_secs_f64((-lane.credit / lane.rate).clamp(0.0, 1.0) + 1e-6);
        open.map(at).min()
    }

    /// What share of what was sent of late is expected to be missing.
    pub(crate) fn missing(&self) -> f64 {
        let weight = |lane: &Lane| if lane.carried > 0.0 { lane.carried } else { 0.0 };
        let all: f64 = self.lanes.values().map(weight).sum();
        let missing: f64 = self.lanes.values().map(|lane| weight(lane) * (1.0 - lane.value)).sum();
        match all > 0.0 {
            true => missing / all,
            false => self.lanes.values().filter(|lane| lane.is_open()).map(|lane| 1.0 - lane.value).fold(1.0, f64::min),
        }
    }

    /// What of all that the paths may send comes in time. Those that cost more than others are left out: an encoder that
    /// did as it is told would always use them.
    pub(crate) fn whole(&self) -> Bitrate {
        let price = self.price();
        let open = self.lanes.values().filter(|lane| lane.is_open() && Some(lane.terms.price()) <= price);
        let bytes: f64 = open.map(|lane| lane.lasting() * lane.value).sum();
        Bitrate::from_bps((8.0 * bytes) as u64)
    }

    /// How long most take on the quickest way that there is.
    pub(crate) fn quickest(&self) -> Option<Duration> {
        let open = self.lanes.values().filter(|lane| lane.is_open());
        open.map(Lane::takes).min()
    }

    /// The shortest round trip that there was.
    pub(crate) fn least_rtt(&self) -> Option<Duration> {
        self.lanes.values().filter_map(|lane| lane.facts.least_rtt).min()
    }
}

impl Lane {
    /// How long about half of the packets take at most that leave now.
    fn mostly_takes(&self) -> Duration {
        self.delays.map_or(self.rtt() / 2, |delays| delays.mean)
    }

    /// What leaves on it in the long run, in bytes in a second: it is paced above what its window lets out.
    fn lasting(&self) -> f64 {
        self.rate.min(allowed(&self.facts, &PathTerms::default()) / ABOVE_WINDOW)
    }

    /// Whether it loses so much that what leaves on it needs as much again, or may: nothing is heard of what left.
    fn is_lossy(&self) -> bool {
        self.is_overdue || 1.0 - self.track.loss() < SERVES
    }

    /// Whether new data may go on it.
    pub(crate) fn is_open(&self) -> bool {
        self.facts.usable && !self.is_silent
    }

    /// Of two paths with room, the one with the lower rank is taken.
    fn rank(&self) -> (bool, (bool, u32), bool, u32) {
        (self.fails, self.terms.price(), self.is_overdue, self.tier)
    }
}

/// A packet that waits for a path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub(crate) waited: Duration,
    /// For how long it could have left.
    pub(crate) held: Duration,
    pub(crate) deadline: Duration,
    /// What waits together with it, in bytes.
    pub(crate) behind: usize,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::PathReport;

    const PATHS: [PathId; 2] = [PathId::new(0), PathId::new(1)];

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// Two paths; the queue of the first was full for two seconds and has been empty for one.
    fn after_a_full_queue() -> (Spread, Timestamp) {
        let facts = PATHS.map(|path| PathFacts {
            path,
            usable: true,
            rtt: Some(ms(40)),
            least_rtt: Some(ms(40)),
            window: Bytes::new(200_000),
            max_datagram: Bytes::new(1_200),
        });
        let groups = Groups::singletons(PATHS);
        let (mut spread, mut now) = (Spread::default(), Timestamp::ZERO);
        spread.solve(&facts, &groups, ms(300), now);
        for report in 0..120 {
            now = now + ms(25);
            for (path, lane) in &mut spread.lanes {
                let mean = if *path == PATHS[0] && report < 80 { 220_000 } else { 20_000 };
                let report = PathReport { path: 0, newest: 1, mean, deviation: 5_000 };
                lane.track.on_report(&report, now, now);
            }
        }
        spread.solve(&facts, &groups, ms(300), now);
        (spread, now)
    }

    #[test]
    fn what_the_best_path_has_no_room_for_leaves_on_a_worse_one_before_it_is_dropped() {
        let (mut spread, now) = after_a_full_queue();
        let mut choose = |waited: u64, is_full: bool| {
            let packet = Waiting { waited: ms(waited), held: ms(waited), deadline: ms(300), behind: 1_200 };
            spread.choose(packet, None, |path| path == PATHS[0] || !is_full, now)
        };
        assert_eq!(choose(100, false), Some(PATHS[1]), "the best has room");
        assert_eq!(choose(20, true), None, "it is waited for");
        // Most took up to 345 ms there, 153 + 2 · 96; half of them take less than 153.
        assert_eq!(choose(100, true), Some(PATHS[0]), "it would be dropped otherwise");
        assert_eq!(choose(200, true), None, "it would be late");
    }
}
