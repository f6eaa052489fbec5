//! How much each path may carry of a stream, and over which one the next packet goes.
//!
//! Each path may send what the optimum gives it. Which of those with something left carries the next packet is the choice
//! of the scheduler `deadline`. A path that carries nothing otherwise carries copies, which measure it.
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
//! - A stream mostly sends less than it may. Then the paths with the best chance carry all of it.

use core::time::Duration;
use std::collections::BTreeMap;

use fairpath_core::{Bitrate, ByteCount, GroupId, Groups, PathId, Timestamp};
use fairpath_engine::{ConnectionView, Deadline, DeadlineParameters, Due, Liveness, PathView, Scheduler as _};
use fairpath_rate::{PacketRate, Region, without_timeouts};

use crate::facts::PathFacts;
use crate::lane::{Lane, allowed};
use crate::parameters::LiveParameters;
use crate::sharing::Sharing;

/// The value of paths of higher cost, so that the friendly rates of a group go to its cheapest
/// paths.
const DEAR_VALUE: f64 = 1e-3;

/// The packets that a path may always carry in a round trip: the initial window [RFC9002 §7.2].
const INITIAL: f64 = 10.0;

/// All paths.
#[derive(Debug, Default)]
pub(crate) struct Spread {
    pub(crate) lanes: BTreeMap<PathId, Lane>,
    pub(crate) scheduler: Deadline,
    pub(crate) parameters: LiveParameters,
    /// Differences in timeliness that rates ignore, as the scheduler does. Otherwise rates would
    /// oscillate, and fill no window.
    alike: f64,
    sharing: Sharing,
    solved_at: Option<Timestamp>,
}

impl Spread {
    pub(crate) fn new(sharing: Sharing, parameters: DeadlineParameters) -> Self {
        let prefers = sharing.prefers_better_paths();
        let scheduler = if prefers { Deadline::new(parameters) } else { Deadline::indifferent() };
        Self { sharing, scheduler, alike: parameters.alike, ..Self::default() }
    }

    /// Takes the host's current facts and computes the rates anew. Paths without facts are gone.
    pub(crate) fn solve(&mut self, facts: &[PathFacts], groups: &Groups, deadline: Duration, now: Timestamp) {
        let Self { lanes, scheduler, parameters, .. } = self;
        lanes.retain(|path, _| {
            let is_there = facts.iter().any(|one| one.path == *path);
            if !is_there {
                scheduler.on_path_closed(*path);
            }
            is_there
        });
        let passed = self.solved_at.map_or(Duration::ZERO, |at| now.since(at));
        self.solved_at = Some(now);
        for one in facts {
            let lane = lanes.entry(one.path).or_insert_with(|| Lane::new(*one, *parameters, now));
            lane.fill(now);
            lane.look(*one, now);
            lane.late = lane.late_for(deadline);
            lane.loss = scheduler.loss(one.path, now);
            lane.value = (1.0 - lane.loss) * (1.0 - lane.late);
            lane.group = self.sharing.tells_groups_apart().then(|| groups.of(one.path));
        }
        self.rank(deadline, now);
        self.set_rates(passed);
    }

    /// The host says which paths answer. Returns those that fell silent; where all are, the way back is the matter.
    pub(crate) fn hear(&mut self, facts: &[PathFacts]) -> Vec<PathId> {
        let is_silent = |one: &&PathFacts| one.liveness == Liveness::Silent;
        let all_are = facts.iter().filter(|one| one.usable).all(|one| is_silent(&one));
        let mut fell_silent = Vec::new();
        for one in facts {
            let Some(lane) = self.lanes.get_mut(&one.path) else { continue };
            let falls_silent = !all_are && is_silent(&one);
            if !core::mem::replace(&mut lane.is_silent, falls_silent) && falls_silent {
                fell_silent.push(one.path);
            }
        }
        fell_silent
    }

    /// A packet of the path was acknowledged.
    pub(crate) fn on_acked(&mut self, path: PathId, now: Timestamp) {
        let Some(lane) = self.lanes.get_mut(&path) else { return };
        self.scheduler.on_ack(&lane.view(), lane.facts.max_datagram, now);
        lane.loss_intervals.on_received();
    }

    /// A packet of the path that left at `sent_at` was lost.
    pub(crate) fn on_lost(&mut self, path: PathId, sent_at: Timestamp, now: Timestamp) {
        let Some(lane) = self.lanes.get_mut(&path) else { return };
        self.scheduler.on_lost(path, lane.facts.max_datagram, now);
        lane.loss_intervals.on_lost(sent_at, lane.rtt());
    }

    /// A packet of the path that left at `sent_at` and was taken for lost has arrived: others had overtaken it.
    pub(crate) fn on_late(&mut self, path: PathId, sent_at: Timestamp, now: Timestamp) {
        let Some(lane) = self.lanes.get_mut(&path) else { return };
        self.scheduler.on_spurious_loss(path, now);
        lane.loss_intervals.on_late(sent_at);
    }

    /// The friendly rates that bring the most in time, group by group: paths of different groups share no bottleneck.
    fn set_rates(&mut self, passed: Duration) {
        let (price, alike) = (self.price(), self.alike);
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
            // Paths without losses take nothing from others, and may use all that their windows
            // allow.
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
                false => 1.0 - alike * libm::floor((1.0 - lane.value) / alike),
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

    /// Takes the scheduler's rank of each path, and the share of losses that retransmissions do not
    /// repair.
    fn rank(&mut self, deadline: Duration, now: Timestamp) {
        let views: Vec<PathView> = self.lanes.values().map(Lane::view).collect();
        for (path, rank, unmended) in self.scheduler.prospects(&views, deadline, now) {
            if let Some(lane) = self.lanes.get_mut(&path) {
                (lane.rank, lane.unmended) = (rank, unmended);
            }
        }
    }

    /// The path for a packet, with the bytes that wait behind it; not `except`, which has the
    /// original.
    pub(crate) fn choose(
        &mut self,
        due: Due,
        behind: usize,
        except: Option<PathId>,
        may_send: impl Fn(PathId) -> bool,
        now: Timestamp,
    ) -> Option<PathId> {
        self.lanes.values_mut().for_each(|lane| lane.fill(now));
        let beside = self.lanes.iter().filter(|(path, lane)| self.is_beside(except, **path, lane));
        let mut views: Vec<PathView> = beside.map(|(_, lane)| lane.view()).collect();
        let unsent = Some(ByteCount::new(behind as u64));
        let connection = ConnectionView { unsent, due: Some(due), ..ConnectionView::default() };
        loop {
            let path = self.scheduler.pick(&connection, &views, now).path()?;
            if may_send(path) {
                return Some(path);
            }
            views.iter_mut().filter(|view| view.id == path).for_each(|view| view.paced = true);
        }
    }

    /// Whether the path may carry a copy of data on `other`: a copy is not worth a higher cost.
    fn is_beside(&self, other: Option<PathId>, path: PathId, lane: &Lane) -> bool {
        let Some(other) = other else { return true };
        let price = self.lanes.get(&other).map(|other| other.facts.terms.price());
        path != other && price.is_none_or(|price| lane.facts.terms.price() <= price)
    }

    /// Whether there is a path for copies of data on this one.
    pub(crate) fn has_beside(&self, other: PathId) -> bool {
        self.lanes.iter().any(|(path, lane)| lane.is_open() && self.is_beside(Some(other), *path, lane))
    }

    /// The price of the paths that carry the stream; `None` if none does.
    fn price(&self) -> Option<(bool, u32)> {
        let open = self.lanes.values().filter(|lane| lane.is_open());
        open.map(|lane| (lane.rank, lane.facts.terms.price())).min().map(|(_, price)| price)
    }

    /// A path that is to carry a copy of `bytes` that leave on `chosen`. Without `chosen`, a silent
    /// path, if there is one.
    pub(crate) fn probed(
        &mut self,
        chosen: Option<PathId>,
        bytes: usize,
        may_send: impl Fn(PathId) -> bool,
        now: Timestamp,
    ) -> Option<PathId> {
        let bytes = bytes as f64;
        let cost = self.price().map_or(0, |(_, cost)| cost);
        let LiveParameters { probing, probe_every, dear_probe_every, .. } = self.parameters;
        let is_dear = |lane: &Lane| lane.facts.terms.cost > cost;
        let measured = |lane: &Lane| lane.facts.usable && !is_dear(lane);
        for (_, lane) in self.lanes.iter_mut().filter(|(path, lane)| Some(**path) != chosen && measured(lane)) {
            lane.owes = (lane.owes + probing * bytes).min(2.0 * bytes);
        }
        let is_other = |path: &PathId, lane: &Lane| chosen.map_or(lane.is_silent, |chosen| *path != chosen);
        let is_due = |lane: &Lane| match is_dear(lane) {
            true => now.since(lane.carried_at) >= dear_probe_every,
            false => lane.owes >= bytes || now.since(lane.carried_at) >= probe_every,
        };
        let mut others =
            self.lanes.iter().filter(|(path, lane)| is_other(path, lane) && lane.facts.usable && is_due(lane));
        others.find(|(path, _)| may_send(**path)).map(|(path, _)| *path)
    }

    /// A silent path for data that no other takes, or brings within `left`. This also probes it.
    pub(crate) fn last_resort(&self, left: Duration, may_send: impl Fn(PathId) -> bool) -> Option<PathId> {
        let price = self.price();
        let silent = self.lanes.iter().filter(|(_, lane)| lane.facts.usable && lane.is_silent);
        let in_time = silent.filter(|(path, lane)| lane.mostly_takes() <= left && may_send(**path));
        // It costs no more than the paths that answer.
        let mut paid = in_time.filter(|(_, lane)| price.is_none_or(|price| lane.facts.terms.price() <= price));
        paid.next().map(|(path, _)| *path)
    }

    /// Charges the bytes that leave on the path. `is_new`: they are new data and no copy.
    pub(crate) fn on_leaving(&mut self, path: PathId, bytes: usize, is_new: bool, now: Timestamp) {
        let Some(lane) = self.lanes.get_mut(&path) else { return };
        let bytes = bytes as f64;
        // Packets that measure a path, or leave on it as a last resort, need no credit.
        lane.credit = (lane.credit - bytes).max(-lane.burst() - bytes);
        lane.carried_at = now;
        // Any packet that it carries tells as much as a copy.
        lane.owes = (lane.owes - bytes).max(0.0);
        if is_new {
            lane.carried += bytes;
            self.scheduler.on_sent(path, ByteCount::new(bytes as u64));
        }
    }

    /// When a path that has no credit has some again.
    pub(crate) fn next_credit(&self) -> Option<Timestamp> {
        let open = self.lanes.values().filter(|lane| lane.is_open() && lane.credit <= 0.0 && lane.rate > 0.0);
        let at =
            |lane: &Lane| lane.filled_at + Duration::from_secs_f64((-lane.credit / lane.rate).clamp(0.0, 1.0) + 1e-6);
        open.map(at).min()
    }

    /// The share of new packets that is expected to be missing at the deadline though they are sent again.
    pub(crate) fn missing(&self) -> f64 {
        let all: f64 = self.lanes.values().map(|lane| lane.carried).sum();
        match all > 0.0 {
            true => self.lanes.values().map(|lane| lane.carried * lane.unmended).sum::<f64>() / all,
            false => self.lanes.values().filter(|lane| lane.is_open()).map(|lane| lane.unmended).fold(1.0, f64::min),
        }
    }

    /// The rate at which the paths bring data in time. Paths of higher cost are left out, as an
    /// encoder that follows the budget would always use them. Paths with late packets count less:
    /// losses are sent again, but late packets are not reported in time.
    pub(crate) fn whole(&self) -> Bitrate {
        let LiveParameters { probing, late_max, probe_every, .. } = self.parameters;
        let price = self.price();
        let open = || self.lanes.values().filter(|lane| lane.is_open() && Some(lane.facts.terms.price()) <= price);
        let best = self.lanes.values().filter(|lane| lane.is_open()).map(|lane| lane.rank).min();
        let carries: f64 = open().filter(|lane| Some(lane.rank) == best).map(Lane::lasting).sum();
        // Paths below the best carry copies of a share of its data, to be measured.
        let copies = |lane: &Lane| if Some(lane.rank) == best { 0.0 } else { probing * carries };
        let room = |lane: &Lane| (lane.lasting() - copies(lane)).max(0.0);
        let brings = |lane: &Lane| room(lane) * lane.value * (1.0 - lane.late / late_max).max(0.0);
        // A path on which everything was late needs some data, to show when it no longer is.
        let probes = |lane: &Lane| lane.facts.max_datagram.as_f64() / probe_every.as_secs_f64();
        let add = |(sum, least): (f64, f64), lane: &Lane| (sum + brings(lane), least.max(probes(lane)));
        let (sum, least) = open().fold((0.0, 0.0), add);
        Bitrate::from_bps((8.0 * sum.max(least)) as u64)
    }

    /// How long half of the packets take on the quickest way that there is; nothing where that is not known, or nothing
    /// has measured it of late, so that it gets known.
    pub(crate) fn quickest(&self, now: Timestamp) -> Option<Duration> {
        let is_measured = |lane: &Lane| lane.is_known() && now.since(lane.carried_at) < self.parameters.probe_every;
        let open = self.lanes.values().filter(|lane| lane.is_open());
        open.map(|lane| if is_measured(lane) { lane.mostly_takes() } else { Duration::ZERO }).min()
    }

    /// The shortest round trip that there was.
    pub(crate) fn least_rtt(&self) -> Option<Duration> {
        self.lanes.values().filter_map(|lane| lane.facts.least_rtt).min()
    }
}
