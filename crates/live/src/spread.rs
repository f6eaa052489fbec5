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
//! - The rate of a TCP is that without timeouts, which a stream has none of: with them a path that loses a tenth would
//!   carry two fifths. And it is that of the sawtooth, not the paper's formula, which says 15 % more.
//! - The share for probing is made of copies: a path that is worse than others is measured with packets that others carry
//!   too, so that being measured costs bandwidth and no packet.
//! - A stream mostly sends less than it may. Then the paths with the best chance carry all of it, in proportion to their
//!   rates where chances are about the same: who lost a path would else lose all that was on its way.

use core::time::Duration;
use std::collections::BTreeMap;

use fairpath_core::{Bitrate, GroupId, Groups, PathId, Timestamp};
use fairpath_rate::{PROBING, PacketRate, Region, without_timeouts};

use crate::facts::PathFacts;
use crate::lane::{Lane, Rank, SERVES, allowed};
use crate::sharing::Sharing;
use crate::waiting::Waiting;

/// Of two paths that differ by less in what comes in time, neither is better: so much is noise in a hundred packets.
const ALIKE: f64 = 0.02;

/// A path that takes longer than the quickest by this part of the deadline is worse than one that is alike else: what is
/// lost on it is seldom in time when it was sent again, and all wait for what it carries.
const SLOWER: u32 = 4;

/// However long the deadline is, a path that takes so much longer than the quickest is slow: who asks for a long one
/// wants nothing lost, and not all as late as the slowest path is. Where the quickest loses so many that they keep back
/// what follows, more makes a path slow: it is to carry what would not come in time there.
const SLOW: Duration = Duration::from_millis(35);
const SLOW_BESIDE_LOSSES: Duration = Duration::from_millis(50);

/// A packet waits for a path that brings more for this part of its deadline, and then takes another.
const WAITS: u32 = 8;

/// Where a larger share is late no encoder is to count on a path, and the less on it the more is.
const LATE_MAX: f64 = 0.25;

/// A path that carries nothing carries a copy that often, while anything is sent.
const PROBE_EVERY: Duration = Duration::from_millis(300);

/// The same of a path that costs more than others: what measures it costs, and says in a few seconds what it is worth.
const DEAR_PROBE_EVERY: Duration = Duration::from_secs(1);

/// The friendly rates of a group go to the paths that cost least: those of others count by so much less.
const DEAR_VALUE: f64 = 1e-3;

/// What a path may always carry in a round trip, in packets: the initial window [RFC9002 §7.2].
const INITIAL: f64 = 10.0;

/// The least share of what is sent again that is taken to be missing once more: losses come in bursts and outages.
const LOST_AGAIN: f64 = 0.05;

/// All paths.
#[derive(Debug, Default)]
pub(crate) struct Spread {
    pub(crate) lanes: BTreeMap<PathId, Lane>,
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
        let passed = self.solved_at.map_or(Duration::ZERO, |at| now.since(at));
        self.solved_at = Some(now);
        for one in facts {
            let lane = self.lanes.entry(one.path).or_insert_with(|| Lane::new(*one, now));
            lane.fill(now);
            lane.look(*one, now);
            lane.late = lane.track.late(deadline);
            lane.value = 1.0 - lane.missing(deadline);
            lane.group = self.sharing.tells_groups_apart().then(|| groups.of(one.path));
        }
        let fell_silent = self.judge_silence(now);
        self.set_tiers(deadline);
        self.set_rates(passed);
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

    /// A packet of the path was acknowledged.
    pub(crate) fn on_acked(&mut self, path: PathId, now: Timestamp) {
        let Some(lane) = self.lanes.get_mut(&path) else { return };
        lane.track.on_acked(now);
        lane.loss_intervals.on_received();
    }

    /// A packet of the path that left at `sent_at` was lost.
    pub(crate) fn on_lost(&mut self, path: PathId, sent_at: Timestamp, now: Timestamp) {
        let Some(lane) = self.lanes.get_mut(&path) else { return };
        lane.track.on_lost(now);
        lane.loss_intervals.on_lost(sent_at, lane.rtt());
    }

    /// A packet of the path that left at `sent_at` and was taken for lost has arrived: others had overtaken it.
    pub(crate) fn on_late(&mut self, path: PathId, sent_at: Timestamp, now: Timestamp) {
        let Some(lane) = self.lanes.get_mut(&path) else { return };
        lane.track.on_late(now);
        lane.loss_intervals.on_late(sent_at);
    }

    /// The friendly rates that bring the most in time, group by group: paths of different groups share no bottleneck.
    fn set_rates(&mut self, passed: Duration) {
        let price = self.price();
        let apart = self.sharing.tells_groups_apart();
        let mut members: BTreeMap<Option<GroupId>, Vec<&mut Lane>> = BTreeMap::new();
        for lane in self.lanes.values_mut() {
            match lane.facts.usable {
                true => members.entry(lane.group).or_default().push(lane),
                false => lane.rate = 0.0,
            }
        }
        for members in members.values_mut() {
            let packet = |lane: &Lane| lane.facts.max_datagram.as_f64().max(1.0);
            let allowed: Vec<PacketRate> = members.iter().map(|lane| PacketRate::new(allowed(&lane.facts))).collect();
            let together: f64 = allowed.iter().map(|rate| rate.per_second()).sum();
            // Who has lost nothing takes nothing from others, and may use all that windows let out.
            let loses = members.iter().any(|lane| lane.loss_intervals.rate() > 0.0);
            let tcp = |(lane, allowed): (&&mut Lane, &PacketRate)| {
                let equation = without_timeouts(lane.rtt(), lane.loss_intervals.rate()).per_second() * packet(lane);
                // A window is that of a TCP on the path alone.
                let window = if apart && !loses { together } else { allowed.per_second() };
                PacketRate::new(equation.min(window))
            };
            let tcp: Vec<PacketRate> = members.iter().zip(&allowed).map(tcp).collect();
            // Windows and round trips are finite, so rates are.
            let Ok(region) = Region::new(&tcp) else { continue };
            let value = |lane: &Lane| match lane.is_silent {
                true => 0.0,
                false if price.is_some_and(|price| lane.facts.terms.price() > price) => DEAR_VALUE * lane.value,
                // Where values are about the same, rates that went to and fro with them would fill no window.
                false => 1.0 - ALIKE * libm::floor((1.0 - lane.value) / ALIKE),
            };
            let values: Vec<f64> = members.iter().map(|lane| value(lane)).collect();
            let rtts: Vec<Duration> = members.iter().map(|lane| lane.rtt().max(Duration::from_millis(1))).collect();
            let rates = self.sharing.rates(&region, &values, &allowed, &rtts);
            for (lane, rate) in members.iter_mut().zip(rates) {
                // No more than twice as much in a round trip.
                let rtt = lane.rtt().max(Duration::from_millis(1)).as_secs_f64();
                let grown = lane.rate.max(INITIAL * packet(lane) / rtt) * libm::exp2(passed.as_secs_f64() / rtt);
                lane.rate = rate.per_second().min(grown);
            }
        }
    }

    fn set_tiers(&mut self, deadline: Duration) {
        // Where all cost the same, what one brings in time is all that counts.
        let mut prices = self.lanes.values().map(|lane| lane.facts.terms.price());
        let first = prices.next();
        let is_choice = prices.any(|price| Some(price) != first);
        let best = self.best_value(|_| true);
        let prefers = self.sharing.prefers_better_paths();
        let tiers = self.tiers(deadline);
        for (lane, tier) in self.lanes.values_mut().zip(tiers) {
            lane.fails = is_choice && lane.value < SERVES * best;
            lane.tier = if prefers { tier } else { 0 };
        }
    }

    /// The largest share in time of the open paths that count.
    fn best_value(&self, counts: impl Fn(&Lane) -> bool) -> f64 {
        let counted = self.lanes.values().filter(|lane| lane.is_open() && counts(lane));
        counted.map(|lane| lane.value).fold(0.0, f64::max)
    }

    /// How far from the best each path is. Of paths that are as quick the one that brings more is better. The few that
    /// are lost on a quick one come again about when a slow one would have brought them, and nothing else is late: for
    /// the slow one speaks only what misses its deadline all the same.
    fn tiers(&self, deadline: Duration) -> Vec<u32> {
        let open = || self.lanes.values().filter(|lane| lane.is_open());
        // As a rule: what varies much is late now and then, and its value says so.
        let quickest = open().min_by_key(|lane| lane.mostly_takes());
        let takes = quickest.map(Lane::mostly_takes).unwrap_or_default();
        let by = if quickest.is_some_and(|lane| lane.track.keeps_back()) { SLOW_BESIDE_LOSSES } else { SLOW };
        let slow = takes + by.min(deadline / SLOWER);
        let is_slow = |lane: &Lane| lane.mostly_takes() > slow;
        // What is lost comes again. Where there is time for that twice, it is left for who is there before.
        let is_before =
            |other: &Lane, lane: &Lane| !core::ptr::eq(other, lane) && other.mostly_takes() < again(lane, takes);
        let is_left = |lane: &Lane| {
            let has_time = 2 * again(lane, takes) <= deadline;
            lane.track.keeps_back() && (!has_time || open().any(|other| is_before(other, lane)))
        };
        let is_sound = |lane: &Lane| !is_slow(lane) && !is_left(lane);
        let (best, best_sound) = (self.best_value(|_| true), self.best_value(is_sound));
        let unmended = |lane: &Lane| self.unmended(lane, deadline);
        let least_unmended = open().map(unmended).fold(1.0, f64::min);
        let steps = |difference: f64| (difference.max(0.0) / ALIKE) as u32;
        let tier = |lane: &Lane| match is_sound(lane) {
            true => steps(best_sound - lane.value) + 2 * steps(unmended(lane) - least_unmended),
            false => steps(best - lane.value) + u32::from(is_slow(lane)),
        };
        self.lanes.values().map(tier).collect()
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
        let left = packet.deadline.saturating_sub(packet.waited);
        // What would be late on the best is worth nothing there.
        let is_late = |lane: &Lane| lane.takes() > left;
        let ranked = open().map(|(_, lane)| (is_late(lane), lane.rank(), lane.facts.terms.price()));
        let (all_late, best, price) = ranked.min()?;
        // It is not moved, nor is what it costs paid, for what leaves somewhat early.
        let takes_any = packet.held >= packet.deadline / WAITS;
        let is_paid = |lane: &Lane| takes_any || lane.facts.terms.price() <= price;
        let soonest = self.soonest(best, packet);
        let is_soon = |lane: &Lane| lane.takes() <= soonest || left <= lane.takes() + packet.deadline / (2 * WAITS);
        let takes_last = packet.is_long();
        let is_in_time = |lane: &Lane| lane.takes() <= left || (takes_last && lane.mostly_takes() <= left);
        let is_crowded = self.is_crowded(packet, left);
        let quickest = open().map(|(_, lane)| lane.mostly_takes()).min().unwrap_or_default();
        // A burst of losses may be over, and it waits for long already.
        let is_mendable = |lane: &Lane| packet.is_held_for_long() && 2 * again(lane, quickest) <= left;
        let fits = |lane: &Lane| {
            let may_take = takes_any && (is_crowded || !lane.is_lossy() || is_mendable(lane)) && is_paid(lane);
            let is_best = lane.rank() == best && is_late(lane) == all_late;
            is_best || (may_take && is_soon(lane) && is_in_time(lane))
        };
        let free = open().filter(|(path, lane)| fits(lane) && lane.credit > 0.0 && may_send(**path));
        let chosen = free.min_by(|(_, a), (_, b)| a.rank().cmp(&b.rank()).then(a.turn.total_cmp(&b.turn)));
        chosen.map(|(path, _)| *path)
    }

    /// In what time a packet is there at the latest that waits for the best paths, as far as can be said: what waits with
    /// it leaves as fast as they let it, or it has waited for longer already.
    fn soonest(&self, best: Rank, packet: Waiting) -> Duration {
        let lanes = || self.lanes.values().filter(|lane| lane.is_open() && lane.rank() == best);
        let rate: f64 = lanes().map(Lane::lasting).sum();
        let drained = Duration::try_from_secs_f64(packet.behind as f64 / rate).unwrap_or(Duration::MAX);
        let takes = lanes().map(Lane::takes).min().unwrap_or_default();
        drained.max(packet.held).saturating_add(takes)
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
        let price = self.lanes.get(&other).map(|other| other.facts.terms.price());
        path != other && price.is_none_or(|price| lane.facts.terms.price() <= price)
    }

    /// Whether there is a path for copies of what left on this one.
    pub(crate) fn has_beside(&self, other: PathId) -> bool {
        self.lanes.iter().any(|(path, lane)| lane.is_open() && self.is_beside(Some(other), *path, lane))
    }

    /// What the paths cost that carry the stream; `None` where none does.
    fn price(&self) -> Option<(bool, u32)> {
        let open = self.lanes.values().filter(|lane| lane.is_open());
        open.map(|lane| (lane.rank(), lane.facts.terms.price())).min().map(|(_, price)| price)
    }

    /// A path that is to carry a copy of so many bytes that go on `chosen`; or, of what leaves on none, a silent path, if
    /// any.
    pub(crate) fn probed(
        &mut self,
        chosen: Option<PathId>,
        bytes: usize,
        may_send: impl Fn(PathId) -> bool,
        now: Timestamp,
    ) -> Option<PathId> {
        let bytes = bytes as f64;
        let cost = self.price().map_or(0, |(_, cost)| cost);
        let is_dear = |lane: &Lane| lane.facts.terms.cost > cost;
        let measured = |lane: &Lane| lane.facts.usable && !is_dear(lane);
        for (_, lane) in self.lanes.iter_mut().filter(|(path, lane)| Some(**path) != chosen && measured(lane)) {
            lane.owes = (lane.owes + PROBING * bytes).min(2.0 * bytes);
        }
        let is_other = |path: &PathId, lane: &Lane| chosen.map_or(lane.is_silent, |chosen| *path != chosen);
        let is_due = |lane: &Lane| match is_dear(lane) {
            true => now.since(lane.carried_at) >= DEAR_PROBE_EVERY,
            false => lane.owes >= bytes || now.since(lane.carried_at) >= PROBE_EVERY,
        };
        let mut others =
            self.lanes.iter().filter(|(path, lane)| is_other(path, lane) && lane.facts.usable && is_due(lane));
        others.find(|(path, _)| may_send(**path)).map(|(path, _)| *path)
    }

    /// A silent path for what no other takes, or brings within `left`: it may work again, and is asked so.
    pub(crate) fn last_resort(&self, left: Duration, may_send: impl Fn(PathId) -> bool) -> Option<PathId> {
        let price = self.price();
        let silent = self.lanes.iter().filter(|(_, lane)| lane.facts.usable && lane.is_silent);
        let in_time = silent.filter(|(path, lane)| lane.mostly_takes() <= left && may_send(**path));
        // It costs no more than those that are heard.
        let mut paid = in_time.filter(|(_, lane)| price.is_none_or(|price| lane.facts.terms.price() <= price));
        paid.next().map(|(path, _)| *path)
    }

    /// So many bytes leave on the path; new data where they are not there twice.
    pub(crate) fn on_leaving(&mut self, path: PathId, bytes: usize, is_new: bool, now: Timestamp) {
        let Some(lane) = self.lanes.get_mut(&path) else { return };
        let bytes = bytes as f64;
        // What measures a path, or is its last resort, leaves without credit.
        lane.credit = (lane.credit - bytes).max(-lane.burst() - bytes);
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

    /// What share of what was sent of late is expected to be missing at its deadline though it is sent again.
    pub(crate) fn missing(&self, deadline: Duration) -> f64 {
        let weight = |lane: &Lane| if lane.carried > 0.0 { lane.carried } else { 0.0 };
        let all: f64 = self.lanes.values().map(weight).sum();
        let missing = |lane: &Lane| self.unmended(lane, deadline);
        match all > 0.0 {
            true => self.lanes.values().map(|lane| weight(lane) * missing(lane)).sum::<f64>() / all,
            false => self.lanes.values().filter(|lane| lane.is_open()).map(missing).fold(1.0, f64::min),
        }
    }

    /// What share of what leaves on a path is missing at its deadline: it is lost or late, and each time that this is
    /// found it is sent again, on the path that is best for what is left of the deadline.
    fn unmended(&self, lane: &Lane, deadline: Duration) -> f64 {
        let again = |left: Duration| {
            let open = self.lanes.values().filter(|lane| lane.is_open());
            open.map(|lane| lane.missing(left)).fold(1.0, f64::min).max(LOST_AGAIN)
        };
        // A path that lost something a while ago does so again.
        let (mut missing, mut left) = (lane.missing(deadline).max(lane.loss_intervals.rate()), deadline);
        while left > lane.patience() {
            left -= lane.patience();
            missing *= again(left);
        }
        missing
    }

    /// What of all that the paths may send comes in time. Those that cost more than others are left out: an encoder that
    /// did as it is told would always use them. Those on which packets are late count less: what is lost is sent again,
    /// and of what is late nothing is heard in time.
    pub(crate) fn whole(&self) -> Bitrate {
        let price = self.price();
        let open = || self.lanes.values().filter(|lane| lane.is_open() && Some(lane.facts.terms.price()) <= price);
        let best = self.lanes.values().filter(|lane| lane.is_open()).map(Lane::rank).min();
        let carries: f64 = open().filter(|lane| Some(lane.rank()) == best).map(Lane::lasting).sum();
        // What is worse than the best carries copies of a share of it, to be measured.
        let copies = |lane: &Lane| if Some(lane.rank()) == best { 0.0 } else { PROBING * carries };
        let room = |lane: &Lane| (lane.lasting() - copies(lane)).max(0.0);
        let brings = |lane: &Lane| room(lane) * lane.value * (1.0 - lane.late / LATE_MAX).max(0.0);
        // Of a path on which all was late it is to be known when it no longer is.
        let probes = |lane: &Lane| lane.facts.max_datagram.as_f64() / PROBE_EVERY.as_secs_f64();
        let add = |(sum, least): (f64, f64), lane: &Lane| (sum + brings(lane), least.max(probes(lane)));
        let (sum, least) = open().fold((0.0, 0.0), add);
        Bitrate::from_bps((8.0 * sum.max(least)) as u64)
    }

    /// How long half of the packets take on the quickest way that there is; nothing where that is not known, or nothing
    /// has measured it of late, so that it gets known.
    pub(crate) fn quickest(&self, now: Timestamp) -> Option<Duration> {
        let is_measured = |lane: &Lane| lane.is_known() && now.since(lane.carried_at) < PROBE_EVERY;
        let open = self.lanes.values().filter(|lane| lane.is_open());
        open.map(|lane| if is_measured(lane) { lane.mostly_takes() } else { Duration::ZERO }).min()
    }

    /// The shortest round trip that there was.
    pub(crate) fn least_rtt(&self) -> Option<Duration> {
        self.lanes.values().filter_map(|lane| lane.facts.least_rtt).min()
    }
}

/// When what is lost on a path is there that is sent again on the quickest one.
fn again(lane: &Lane, quickest: Duration) -> Duration {
    lane.mostly_takes() + lane.patience() + quickest
}

#[cfg(test)]
mod tests {
    use fairpath_core::ByteCount;

    use super::*;
    use crate::facts::PathTerms;
    use crate::wire::PathReport;

    const PATHS: [PathId; 2] = [PathId::new(0), PathId::new(1)];

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// Two paths, by what the peer reports of their delays in ms, 120 times in three seconds.
    fn reported(mean: impl Fn(PathId, u32) -> u32) -> (Spread, Timestamp) {
        let facts = PATHS.map(|path| PathFacts {
            path,
            usable: true,
            rtt: Some(ms(40)),
            least_rtt: Some(ms(40)),
            window: ByteCount::new(200_000),
            served: None,
            max_datagram: ByteCount::new(1_200),
            terms: PathTerms::default(),
        });
        let groups = Groups::singletons(PATHS);
        let (mut spread, mut now) = (Spread::default(), Timestamp::ZERO);
        spread.solve(&facts, &groups, ms(300), now);
        for report in 0..120 {
            now = now + ms(25);
            for (path, lane) in &mut spread.lanes {
                let mean = 1_000 * mean(*path, report);
                lane.track.on_report(&PathReport { path: 0, newest: 1, mean, deviation: 5_000 }, now, now);
            }
        }
        spread.solve(&facts, &groups, ms(300), now);
        (spread, now)
    }

    /// The queue of the first was full for two seconds and has been empty for one.
    fn after_a_full_queue() -> (Spread, Timestamp) {
        reported(|path, report| if path == PATHS[0] && report < 80 { 220 } else { 20 })
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

    #[test]
    fn what_waits_for_long_takes_a_path_that_lost_a_burst_where_there_is_time_to_mend_it() {
        let choose = |deadline: u64, waited: u64, held: u64| {
            let (mut spread, now) = reported(|path, _| if path == PATHS[0] { 20 } else { 60 });
            let track = &mut spread.lanes.get_mut(&PATHS[0]).expect("it is there").track;
            (0..7).for_each(|_| track.on_lost(now));
            let facts = spread.lanes.values().map(|lane| lane.facts).collect::<Vec<_>>();
            spread.solve(&facts, &Groups::singletons(PATHS), ms(deadline), now);
            let packet = Waiting { waited: ms(waited), held: ms(held), deadline: ms(deadline), behind: 1_200 };
            spread.choose(packet, None, |path| path == PATHS[0], now)
        };
        // Sent again twice it takes 2 · (20 + 85 + 20) ms.
        let takes = [124, 125, 749, 751].map(|waited| choose(1_000, waited, waited).is_some());
        assert_eq!(takes, [false, true, true, false]);
        assert_eq!(choose(1_000, 500, 50), None, "it was lost just now");
        assert_eq!(choose(300, 100, 100), None, "there is no time for that");
    }

    #[test]
    fn what_the_best_path_brings_too_late_takes_one_that_may_lose_it() {
        let (mut spread, now) = reported(|path, _| if path == PATHS[0] { 20 } else { 150 });
        let track = &mut spread.lanes.get_mut(&PATHS[0]).expect("it is there").track;
        (0..7).for_each(|_| track.on_lost(now));
        let facts = spread.lanes.values().map(|lane| lane.facts).collect::<Vec<_>>();
        spread.solve(&facts, &Groups::singletons(PATHS), ms(200), now);
        // Most take 160 ms on the second one.
        let mut choose = |waited: u64, is_full: bool| {
            let packet = Waiting { waited: ms(waited), held: ms(waited), deadline: ms(200), behind: 1_200 };
            spread.choose(packet, None, |path| path == PATHS[1] || !is_full, now)
        };
        assert_eq!([10, 39, 41, 160].map(|waited| choose(waited, false)), [1, 1, 0, 0].map(|at| Some(PATHS[at])));
        assert_eq!(choose(60, true), None, "it may still get room");
        assert_eq!(choose(175, true), Some(PATHS[1]), "late on both");
    }

    #[test]
    fn losses_of_a_quick_path_are_no_reason_for_a_slow_one_where_they_are_mended_in_time() {
        // Of each six one is lost, all in one moment or so far apart, after 160 that came.
        let best = |deadline: u64, lost: u64, apart: u64, means: [u32; 2]| {
            let (mut spread, mut now) = reported(|path, _| means[path.get() as usize]);
            let track = &mut spread.lanes.get_mut(&PATHS[0]).expect("it is there").track;
            (0..160).for_each(|_| track.on_acked(now));
            now = now + ms(200);
            for _ in 0..lost {
                (0..5).for_each(|_| track.on_acked(now));
                track.on_lost(now);
                now = now + ms(apart);
            }
            let facts = spread.lanes.values().map(|lane| lane.facts).collect::<Vec<_>>();
            spread.solve(&facts, &Groups::singletons(PATHS), ms(deadline), now);
            spread.lanes.iter().min_by_key(|(_, lane)| lane.rank()).map(|(path, _)| *path)
        };
        assert_eq!(best(300, 4, 0, [20, 150]), Some(PATHS[0]), "sent again they come before the other's");
        assert_eq!(best(300, 15, 100, [20, 100]), Some(PATHS[1]), "they keep back what follows most of the time");
        // An answer is missed after 85 ms: sent again they are there after 125.
        assert_eq!(best(300, 15, 100, [20, 150]), Some(PATHS[0]), "and no longer than the other takes");
        assert_eq!(best(200, 15, 100, [20, 150]), Some(PATHS[1]), "there is no time for it twice");
        assert_eq!(best(80, 4, 0, [20, 60]), Some(PATHS[1]), "an answer is missed after 85 ms at the soonest");
        assert_eq!(best(200, 0, 0, [180, 100]), Some(PATHS[1]), "what is late is not sent again");
    }

    #[test]
    fn a_path_is_slow_however_long_the_deadline_is() {
        let tiers = |means: [u32; 2]| {
            let (mut spread, now) = reported(|path, _| means[path.get() as usize]);
            let facts = spread.lanes.values().map(|lane| lane.facts).collect::<Vec<_>>();
            spread.solve(&facts, &Groups::singletons(PATHS), ms(5_000), now);
            PATHS.map(|path| spread.lanes[&path].tier)
        };
        assert_eq!(tiers([20, 100]), [0, 1]);
        assert_eq!(tiers([20, 60]), [0, 1], "what is lost there and sent again comes later than by the first");
        assert_eq!(tiers([20, 40]), [0, 0], "both carry their part");
    }

    #[test]
    fn a_packet_waits_for_a_quick_path_that_has_no_room_for_a_moment_and_takes_a_slow_one_that_is_as_soon() {
        let (mut spread, now) = reported(|path, _| if path == PATHS[0] { 20 } else { 200 });
        assert!(spread.lanes[&PATHS[1]].rank() > spread.lanes[&PATHS[0]].rank(), "both bring all, and one is slow");
        let mut choose = |waited: u64, held: u64, behind: usize| {
            let packet = Waiting { waited: ms(waited), held: ms(held), deadline: ms(300), behind };
            spread.choose(packet, None, |path| path == PATHS[1], now)
        };
        assert_eq!(choose(50, 50, 1_200), None, "on the slow one it would come 180 ms later");
        // 1 MB leave in 200 ms on the quick one.
        assert_eq!(choose(50, 50, 1_000_000), Some(PATHS[1]));
        assert_eq!(choose(75, 75, 1_200), Some(PATHS[1]), "a moment later it would be too late there");
        assert_eq!(choose(75, 20, 1_200), None, "it was lost on the quick one just now");
    }
}
