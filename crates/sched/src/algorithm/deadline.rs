//! Deadline: the path that most likely brings the packet in time, at the least cost.
//!
//! # Source
//! Ours. That a packet counts for what its path neither loses nor brings late [Pluntke2011 §3]. That a slow path is left
//! alone where the quick one has brought the packet before [ECF §3].
//!
//! # Symbols
//! | symbol | here | unit |
//! |---|---|---|
//! | m, σ | `mean` and `deviation` of the way there: the receiver's word; without it half of the round trip, and the deviation of round trips | time |
//! | takes | m + 2 σ: all but a fifth take no longer, whatever their distribution | time |
//! | p | `loss`, the share of packets lost of late | 1 |
//! | late(t) | the share that takes longer than t, by Cantelli's inequality | 1 |
//! | chance(t) | (1 − p) (1 − late(t)), the share that is there within t | 1 |
//! | patience | a probe timeout and the delay of an acknowledgement: what has no answer by then was lost, or is late | time |
//! | again | m + patience + the least m of all paths: when a lost packet is there that was sent again | time |
//! | unmended | 1 − chance, times the same of the best path for what is left after each patience: the share that is missing though it is sent again | 1 |
//!
//! The best paths are those that cost least among all that bring about as much in time; then those that answer; then
//! those that bring most, in steps of [`DeadlineParameters::alike`]. A path that is slow is a step worse: packets are
//! handed out in order, so it makes all that follow as late as it is. Losses that are mended before a slow path would have
//! brought the packet are no reason for the slow one.
//!
//! A packet waits for the best paths for a part of its deadline. Then it takes another one, if it is there no later than
//! by waiting on, or would be too late if it waited on. A path that loses much is another one only where the others do not
//! bring the packet, or what waits behind it, in time, or where it can be sent again twice.
//!
//! Equally good paths share in proportion to their rates. Otherwise the loss of one path could take
//! all the data in flight.
//!
//! # Deviations
//! None. Data without a deadline goes on the best path with room.

mod parameters;

use core::time::Duration;

use fairpath_core::{ByteCount, PathId, PathMap, Timestamp, share_above};

pub use self::parameters::DeadlineParameters;
use crate::losses::RecentLosses;
use crate::scheduler::{Choice, ConnectionView, Due, PathView, Scheduler, Transit, active};

/// How long a peer may hold an acknowledgement back [RFC9000 §18.2, max_ack_delay].
const ACK_DELAY_MAX: Duration = Duration::from_millis(25);

/// Sends on the path that most likely brings the packet in time, at the least cost.
#[derive(Debug, Default)]
pub struct Deadline {
    parameters: DeadlineParameters,
    paths: PathMap<Known>,
    /// The time of fair queueing, in seconds: the turn of the packet that left last. A path that was not used for a while
    /// does not catch up on what it missed.
    time: f64,
    is_indifferent: bool,
}

/// How good a path is for a connection: the least is the best. Whether it brings too little in time, what it costs, whether
/// it owes an answer, and how many steps it is from the best.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    fails: bool,
    cost: u32,
    is_overdue: bool,
    steps: u32,
}

/// The memory of a path.
#[derive(Debug)]
struct Known {
    losses: RecentLosses,
    /// Its rate at the newest acknowledgement, in bytes in a second.
    rate: Option<f64>,
    /// When its next packet has its turn.
    turn: f64,
}

impl Scheduler for Deadline {
    fn pick(&self, connection: &ConnectionView, paths: &[PathView], now: Timestamp) -> Choice {
        let due = connection.due.unwrap_or(Due::far_off());
        let field = Field::new(self, paths, due.deadline, now);
        let behind = connection.unsent.unwrap_or(ByteCount::ZERO);
        field.choose(&Packet { due, behind: behind.as_f64() })
    }

    fn on_sent(&mut self, path: PathId, bytes: ByteCount) {
        let time = self.time;
        let known = self.known(path);
        let turn = known.turn.max(time);
        known.turn = turn + known.rate.map_or(0.0, |rate| bytes.as_f64() / rate);
        self.time = turn;
    }

    fn hears_acks(&self) -> bool {
        true
    }

    fn on_ack(&mut self, path: &PathView, bytes: ByteCount, now: Timestamp) {
        let packets = bytes.get().div_ceil(path.max_datagram.get().max(1));
        let known = self.known(path.id);
        known.losses.on_arrived(u32::try_from(packets).unwrap_or(u32::MAX), now);
        known.rate = Some(rate(path));
    }

    fn on_lost(&mut self, path: PathId, _bytes: ByteCount, now: Timestamp) {
        self.known(path).losses.on_lost(now);
    }

    fn on_spurious_loss(&mut self, path: PathId, now: Timestamp) {
        self.known(path).losses.on_spurious(now);
    }

    fn on_path_closed(&mut self, path: PathId) {
        self.paths.remove(path);
    }
}

impl Due {
    /// For data without a deadline: nothing is too late, and any path with room is taken.
    fn far_off() -> Self {
        let hour = Duration::from_secs(3_600);
        Self { deadline: hour, left: hour, held: hour }
    }
}

impl Deadline {
    /// With these parameters.
    pub fn new(parameters: DeadlineParameters) -> Self {
        Self { parameters, ..Self::default() }
    }

    /// To compare with: whatever comes in time on each path, none of those that answer and cost the same is better.
    pub fn indifferent() -> Self {
        Self { is_indifferent: true, ..Self::default() }
    }

    fn known(&mut self, path: PathId) -> &mut Known {
        if !self.paths.contains(path) {
            let losses = RecentLosses::new(self.parameters.losses);
            self.paths.insert(path, Known { losses, rate: None, turn: 0.0 });
        }
        self.paths.get_mut(path).expect("it was put there")
    }

    /// Whether the packet would be dropped before long, or waits for longer than anybody should.
    pub fn is_old(&self, due: &Due) -> bool {
        self.parameters.is_old(due)
    }

    /// The share of packets that the path lost of late.
    pub fn loss(&self, path: PathId, now: Timestamp) -> f64 {
        self.paths.get(path).map_or(0.0, |known| known.losses.share(now))
    }

    /// How good each path is where packets may take `deadline`, and which share of what leaves on it is missing then though
    /// it is sent again.
    pub fn prospects(&self, paths: &[PathView], deadline: Duration, now: Timestamp) -> Vec<(PathId, Rank, f64)> {
        let field = Field::new(self, paths, deadline, now);
        field.all.iter().map(|one| (one.path.id, one.rank, field.unmended(one))).collect()
    }
}

/// In bytes in a second; by the window before it was measured.
fn rate(path: &PathView) -> f64 {
    let by_window = || path.window.as_f64() / path.smoothed().unwrap_or_default().as_secs_f64().max(1e-3);
    path.delivery_rate.map_or_else(by_window, |rate| rate.as_bps() as f64 / 8.0).max(1.0)
}

/// The packet that is next.
struct Packet {
    due: Due,
    /// How many bytes wait together with it.
    behind: f64,
}

impl Packet {
    /// How long it takes until as much has left as waits, at this rate.
    fn drained(&self, rate: f64) -> Duration {
        Duration::try_from_secs_f64(self.behind / rate).unwrap_or(Duration::MAX)
    }
}

/// The expectations of a path.
#[derive(Debug)]
struct Prospect<'a> {
    path: &'a PathView,
    transit: Transit,
    loss: f64,
    /// Whether its losses keep back what follows.
    keeps_back: bool,
    patience: Duration,
    is_overdue: bool,
    /// In bytes in a second.
    rate: f64,
    turn: f64,
    rank: Rank,
}

impl<'a> Prospect<'a> {
    fn new(scheduler: &Deadline, path: &'a PathView, deadline: Duration, now: Timestamp) -> Self {
        let known = scheduler.paths.get(path.id);
        let smoothed = path.smoothed().unwrap_or_default();
        let variance = path.rtt.map_or(Duration::ZERO, |rtt| rtt.variance);
        let guess = || Transit {
            mean: smoothed / 2,
            deviation: variance,
            late: share_above(smoothed / 2, variance, deadline),
            lost: 0.0,
        };
        let patience = path.rtt.map_or(Duration::ZERO, |rtt| rtt.probe_timeout()) + ACK_DELAY_MAX;
        Self {
            path,
            transit: path.transit.unwrap_or_else(guess),
            loss: known.map_or(0.0, |known| known.losses.share(now)),
            keeps_back: known.is_some_and(|known| known.losses.keep_back(now)),
            patience,
            is_overdue: path.rtt.is_some() && path.silent_for(now) > patience,
            rate: rate(path),
            turn: known.map_or(0.0, |known| known.turn).max(scheduler.time),
            rank: Rank { fails: false, cost: path.terms.cost, is_overdue: false, steps: 0 },
        }
    }

    /// How long all but a few packets take.
    fn takes(&self) -> Duration {
        self.transit.mean + 2 * self.transit.deviation
    }

    /// The share that is there by the deadline.
    fn chance(&self) -> f64 {
        (1.0 - self.loss) * (1.0 - self.transit.late)
    }

    /// The share that is there within a part of the deadline.
    fn chance_within(&self, left: Duration) -> f64 {
        (1.0 - self.loss) * (1.0 - share_above(self.transit.mean, self.transit.deviation, left))
    }

    /// The preference for a packet with this time left: lateness counts more than anything.
    fn order(&self, left: Duration) -> (bool, Rank) {
        (self.takes() > left, self.rank)
    }
}

/// All paths that may be chosen at some time.
struct Field<'a> {
    parameters: &'a DeadlineParameters,
    all: Vec<Prospect<'a>>,
    deadline: Duration,
    /// The least mean delay.
    quickest: Duration,
}

impl<'a> Field<'a> {
    fn new(scheduler: &'a Deadline, paths: &'a [PathView], deadline: Duration, now: Timestamp) -> Self {
        let prospect = |path: &'a PathView| Prospect::new(scheduler, path, deadline, now);
        let all: Vec<Prospect<'a>> = active(paths).map(prospect).collect();
        let quickest = all.iter().map(|one| one.transit.mean).min().unwrap_or_default();
        let mut field = Self { parameters: &scheduler.parameters, all, deadline, quickest };
        let ranks = field.ranks();
        for (one, rank) in field.all.iter_mut().zip(ranks) {
            one.rank = if scheduler.is_indifferent { Rank { steps: 0, ..rank } } else { rank };
        }
        field
    }

    fn best_chance(&self, counts: impl Fn(&Prospect<'_>) -> bool) -> f64 {
        self.all.iter().filter(|one| counts(one)).map(Prospect::chance).fold(0.0, f64::max)
    }

    /// How good each path is. The better of two that are as quick is the one that brings more. The few packets that a
    /// quick one loses come again about when a slow one would have brought them. So only those speak for the slow one
    /// that miss their deadline all the same.
    fn ranks(&self) -> Vec<Rank> {
        // Where all cost the same, what one brings in time is all that counts.
        let first = self.all.first().map(|one| one.path.terms.cost);
        let is_choice = self.all.iter().any(|one| Some(one.path.terms.cost) != first);
        let is_sound = |one: &Prospect<'_>| !self.is_slow(one) && !self.is_left(one);
        let (best, best_sound) = (self.best_chance(|_| true), self.best_chance(is_sound));
        let least_unmended = self.all.iter().map(|one| self.unmended(one)).fold(1.0, f64::min);
        let steps = |difference: f64| (difference.max(0.0) / self.parameters.alike) as u32;
        let rank = |one: &Prospect<'_>| Rank {
            fails: is_choice && one.chance() < self.parameters.serves * best,
            cost: one.path.terms.cost,
            is_overdue: one.is_overdue,
            steps: match is_sound(one) {
                true => steps(best_sound - one.chance()) + 2 * steps(self.unmended(one) - least_unmended),
                false => steps(best - one.chance()) + u32::from(self.is_slow(one)),
            },
        };
        self.all.iter().map(rank).collect()
    }

    /// By the mean: what varies much is late now and then, and its chance says so.
    fn is_slow(&self, one: &Prospect<'_>) -> bool {
        let DeadlineParameters { slow, parts, .. } = *self.parameters;
        one.transit.mean > self.quickest + slow.min(self.deadline / parts)
    }

    /// Whether what leaves on it mostly needs to leave again, or may: nothing is heard of what left.
    fn is_lossy(&self, one: &Prospect<'_>) -> bool {
        one.is_overdue || 1.0 - one.loss < self.parameters.serves
    }

    /// Whether it is left for others since it loses much: there is no time to send again twice, or another one brings the
    /// packet before it is there again.
    fn is_left(&self, one: &Prospect<'_>) -> bool {
        let again = self.again(one);
        let is_before = |other: &Prospect<'_>| other.path.id != one.path.id && other.transit.mean < again;
        one.keeps_back && (2 * again > self.deadline || self.all.iter().any(is_before))
    }

    /// When a packet is there that is lost and sent again on the quickest path.
    fn again(&self, one: &Prospect<'_>) -> Duration {
        one.transit.mean + one.patience + self.quickest
    }

    /// The share of packets that is missing at the deadline. They are lost or late, and each time that this is found they
    /// are sent again, on the path that is best for what is left of the deadline.
    fn unmended(&self, one: &Prospect<'_>) -> f64 {
        // Losses come in bursts and outages: what is sent again is missing once more as often as samples can hide.
        let again = |left: Duration| {
            let missing = |other: &Prospect<'_>| 1.0 - other.chance_within(left);
            self.all.iter().map(missing).fold(1.0, f64::min).max(self.parameters.losses.least_seen())
        };
        // A path that lost something a while ago does so again.
        let (mut missing, mut left) = ((1.0 - one.chance()).max(one.transit.lost), self.deadline);
        // Smaller shares decide nothing.
        let alike = self.parameters.alike;
        while left > one.patience && missing > alike * alike * alike {
            left -= one.patience;
            missing *= again(left);
        }
        missing
    }

    fn choose(&self, packet: &Packet) -> Choice {
        let left = packet.due.left;
        let Some(best) = self.all.iter().map(|one| one.order(left)).min() else { return Choice::Wait };
        let is_best = |one: &Prospect<'_>| one.order(left) == best;
        let by_preference =
            |a: &&Prospect<'_>, b: &&Prospect<'_>| a.order(left).cmp(&b.order(left)).then(a.turn.total_cmp(&b.turn));
        let free = || self.all.iter().filter(|one| one.path.has_room());
        let soonest = self.soonest(best, packet);
        let is_crowded = self.is_crowded(packet);
        let fits = |one: &&Prospect<'_>| is_best(one) || self.is_instead(one, packet, soonest, is_crowded);
        let chosen = free().filter(fits).min_by(by_preference);
        let waits_for = || self.all.iter().find(|one| is_best(one) && one.path.is_worth_waiting_for());
        match (chosen, waits_for()) {
            (Some(chosen), _) => Choice::Send(chosen.path.id),
            (None, Some(best)) if free().next().is_some() => Choice::WaitFor(best.path.id),
            // Nobody would ask again.
            (None, _) => free().min_by(by_preference).map_or(Choice::Wait, |one| Choice::Send(one.path.id)),
        }
    }

    /// Whether the packet goes on a path that is not the best, rather than wait for that until `soonest`.
    fn is_instead(&self, one: &Prospect<'_>, packet: &Packet, soonest: Duration, is_crowded: bool) -> bool {
        let Due { deadline, left, held } = packet.due;
        let parameters = self.parameters;
        let takes = one.takes();
        let is_in_time = takes <= left || (parameters.is_old(&packet.due) && one.transit.mean <= left);
        let is_soon = takes <= soonest || left <= takes + deadline / (4 * parameters.parts);
        // A burst of losses may be over, and the packet waits for long already.
        let is_mendable = || held >= parameters.longest_wait(deadline) && 2 * self.again(one) <= left;
        // It is held for a while, so that it takes another path than the best.
        let takes_any = held >= deadline / (2 * parameters.parts);
        takes_any && is_in_time && is_soon && (!self.is_lossy(one) || is_crowded || is_mendable())
    }

    /// In what time a packet is there at the latest that waits for the best paths. All that waits leaves as fast as they
    /// let it, or the packet has waited for longer already.
    fn soonest(&self, best: (bool, Rank), packet: &Packet) -> Duration {
        let those = || self.all.iter().filter(|one| one.rank == best.1);
        let takes = those().map(Prospect::takes).min().unwrap_or_default();
        let drained = packet.drained(those().map(|one| one.rate).sum());
        drained.max(packet.due.held).saturating_add(takes)
    }

    /// Whether the paths that lose little cannot carry the packet in time, or not what waits behind it: what leaves on
    /// others mostly has to leave again.
    fn is_crowded(&self, packet: &Packet) -> bool {
        let sound = || self.all.iter().filter(|one| !self.is_lossy(one));
        let Some(takes) = sound().map(Prospect::takes).min() else { return true };
        let drained = packet.drained(sound().map(|one| one.rate).sum());
        drained.saturating_add(takes) > self.deadline
            || takes + self.deadline / (2 * self.parameters.parts) > packet.due.left
    }
}

#[cfg(test)]
mod tests {
    use fairpath_core::{Bitrate, Rtt};

    use super::*;
    use crate::testing::{path, view};

    const NOW: Timestamp = Timestamp::from_secs(10);

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// Paths with round trips of 40 ± 5 ms that carry 5 MB in a second, with delays one way of such means. An answer is
    /// missed after 40 + 4 · 5 + 25 = 85 ms.
    fn paths(means: [u64; 2]) -> [PathView; 2] {
        [0, 1].map(|at| PathView {
            rtt: Some(Rtt { variance: ms(5), ..Rtt::steady(ms(40)) }),
            delivery_rate: Some(Bitrate::from_mbps(40)),
            transit: Some(Transit { mean: ms(means[at]), deviation: ms(5), late: 0.0, lost: 0.0 }),
            ..view(at as u32, 40)
        })
    }

    fn fill(path: &mut PathView) {
        path.in_flight = path.window;
    }

    /// The first path lost seven of its newest twenty packets.
    fn after_a_burst() -> Deadline {
        let mut scheduler = Deadline::default();
        (0..7).for_each(|_| scheduler.on_lost(path(0), ByteCount::new(1_200), NOW));
        scheduler
    }

    /// The choice for a packet queued `waited` ago that could have left `held` ago, with `behind`
    /// bytes after it.
    fn choice(scheduler: &Deadline, paths: &[PathView], times: [u64; 3], behind: u64) -> Choice {
        let [deadline, waited, held] = times.map(ms);
        let due = Due { deadline, left: deadline.saturating_sub(waited), held };
        let connection =
            ConnectionView { due: Some(due), unsent: Some(ByteCount::new(behind)), ..ConnectionView::default() };
        scheduler.pick(&connection, paths, NOW)
    }

    #[test]
    fn what_the_best_path_has_no_room_for_leaves_on_a_worse_one_before_it_is_dropped() {
        let mut paths = paths([153, 20]);
        // Its queue was full for two seconds and has been empty for one.
        paths[0].transit = Some(Transit { mean: ms(153), deviation: ms(96), late: 0.0, lost: 0.0 });
        let chosen = |paths: &[PathView], waited| choice(&Deadline::default(), paths, [300, waited, waited], 1_200);
        assert_eq!(chosen(&paths, 100), Choice::Send(path(1)), "the best has room");
        fill(&mut paths[1]);
        assert_eq!(chosen(&paths, 20), Choice::WaitFor(path(1)));
        // Most took up to 345 ms there, 153 + 2 · 96; half of them take less than 153.
        assert_eq!(chosen(&paths, 100), Choice::Send(path(0)), "it would be dropped otherwise");
        assert_eq!(chosen(&paths, 200), Choice::WaitFor(path(1)), "it would be late");
    }

    #[test]
    fn what_waits_for_long_takes_a_path_that_lost_a_burst_where_there_is_time_to_mend_it() {
        let mut paths = paths([20, 60]);
        fill(&mut paths[1]);
        let takes = |deadline, waited, held| {
            choice(&after_a_burst(), &paths, [deadline, waited, held], 1_200) == Choice::Send(path(0))
        };
        // Sent again twice it takes 2 · (20 + 85 + 20) ms.
        assert_eq!([124, 125, 749, 751].map(|waited| takes(1_000, waited, waited)), [false, true, true, false]);
        assert!(!takes(1_000, 500, 50), "it was lost just now");
        assert!(!takes(300, 100, 100), "there is no time for that");
    }

    #[test]
    fn what_the_best_path_brings_too_late_takes_one_that_may_lose_it() {
        let mut paths = paths([20, 150]);
        // Most take 160 ms on the second one.
        let chosen = |paths: &[PathView], waited| choice(&after_a_burst(), paths, [200, waited, waited], 1_200);
        let expected = [1, 1, 0, 0].map(|at| Choice::Send(path(at)));
        assert_eq!([10, 39, 41, 160].map(|waited| chosen(&paths, waited)), expected);
        fill(&mut paths[0]);
        assert_eq!(chosen(&paths, 60), Choice::WaitFor(path(0)), "it may still get room");
        assert_eq!(chosen(&paths, 175), Choice::Send(path(1)), "late on both");
    }

    #[test]
    fn losses_of_a_quick_path_are_no_reason_for_a_slow_one_where_they_are_mended_in_time() {
        // One of each six is lost, all in one moment or so far apart, after 160 that came.
        let best = |deadline: u64, lost: u64, apart: u64, means: [u64; 2]| {
            let mut paths = paths(means);
            let (mut scheduler, mut now) = (Deadline::default(), NOW);
            scheduler.on_ack(&paths[0], ByteCount::new(160 * 1_200), now);
            now = now + ms(200);
            for _ in 0..lost {
                scheduler.on_ack(&paths[0], ByteCount::new(5 * 1_200), now);
                scheduler.on_lost(path(0), ByteCount::new(1_200), now);
                now = now + ms(apart);
            }
            for path in &mut paths {
                let transit = path.transit.as_mut().expect("it has one");
                transit.late = share_above(transit.mean, transit.deviation, ms(deadline));
            }
            let prospects = scheduler.prospects(&paths, ms(deadline), now).into_iter();
            prospects.min_by_key(|(_, rank, _)| *rank).map(|(path, ..)| path.get())
        };
        assert_eq!(best(300, 4, 0, [20, 150]), Some(0), "sent again they come before the other's");
        assert_eq!(best(300, 15, 100, [20, 100]), Some(1), "they keep back what follows most of the time");
        // An answer is missed after 85 ms: sent again they are there after 125.
        assert_eq!(best(300, 15, 100, [20, 150]), Some(0), "and no longer than the other takes");
        assert_eq!(best(200, 15, 100, [20, 150]), Some(1), "there is no time for it twice");
        assert_eq!(best(80, 4, 0, [20, 60]), Some(1), "an answer is missed after 85 ms at the soonest");
        assert_eq!(best(200, 0, 0, [180, 100]), Some(1), "what is late is not sent again");
    }

    #[test]
    fn a_path_is_slow_however_long_the_deadline_is() {
        let steps = |means: [u64; 2]| -> Vec<u32> {
            let prospects = Deadline::default().prospects(&paths(means), ms(5_000), NOW);
            prospects.iter().map(|(_, rank, _)| rank.steps).collect()
        };
        assert_eq!(steps([20, 100]), [0, 1]);
        assert_eq!(steps([20, 60]), [0, 1], "what is lost there and sent again comes later than by the first");
        assert_eq!(steps([20, 40]), [0, 0], "both carry their part");
    }

    #[test]
    fn a_packet_waits_for_a_quick_path_that_has_no_room_for_a_moment_and_takes_a_slow_one_that_is_as_soon() {
        let mut paths = paths([20, 200]);
        fill(&mut paths[0]);
        let chosen = |waited, held, behind| choice(&Deadline::default(), &paths, [300, waited, held], behind);
        assert_eq!(chosen(50, 50, 1_200), Choice::WaitFor(path(0)), "on the slow one it would come 180 ms later");
        // 1 MB leave in 200 ms on the quick one.
        assert_eq!(chosen(50, 50, 1_000_000), Choice::Send(path(1)));
        assert_eq!(chosen(75, 75, 1_200), Choice::Send(path(1)), "a moment later it would be too late there");
        assert_eq!(chosen(75, 20, 1_200), Choice::WaitFor(path(0)), "it was lost on the quick one just now");
    }

    #[test]
    fn a_dear_path_carries_what_a_cheap_one_fails_to_bring_and_nothing_that_is_merely_better_there() {
        let mut paths = paths([30, 20]);
        paths[1].terms.cost = 1;
        assert_eq!(choice(&Deadline::default(), &paths, [300, 0, 0], 1_200), Choice::Send(path(0)));
        assert_eq!(choice(&after_a_burst(), &paths, [300, 0, 0], 1_200), Choice::Send(path(1)), "a third is lost");
        let mut once = Deadline::default();
        once.on_lost(path(0), ByteCount::new(1_200), NOW);
        assert_eq!(choice(&once, &paths, [300, 0, 0], 1_200), Choice::Send(path(0)), "a twentieth is mended");
    }

    #[test]
    fn a_path_that_owes_an_answer_is_worse_than_one_that_does_not() {
        let mut paths = paths([20, 30]);
        paths[0].oldest_sent = Some(NOW - ms(85));
        assert_eq!(choice(&Deadline::default(), &paths, [300, 0, 0], 1_200), Choice::Send(path(0)));
        paths[0].oldest_sent = Some(NOW - ms(86));
        assert_eq!(choice(&Deadline::default(), &paths, [300, 0, 0], 1_200), Choice::Send(path(1)));
    }

    #[test]
    fn paths_that_are_as_good_share_in_proportion_to_their_rates() {
        let mut paths = paths([20, 25]);
        paths[0].delivery_rate = Some(Bitrate::from_mbps(10));
        let (mut scheduler, mut sent) = (Deadline::default(), [0, 0]);
        paths.iter().for_each(|path| scheduler.on_ack(path, ByteCount::new(1_200), NOW));
        // The second one is not used for a while.
        (0..500).for_each(|_| scheduler.on_sent(path(0), ByteCount::new(1_200)));
        for _ in 0..1_000 {
            let Choice::Send(chosen) = choice(&scheduler, &paths, [300, 0, 0], 1_200) else { panic!("there is room") };
            scheduler.on_sent(chosen, ByteCount::new(1_200));
            sent[chosen.get() as usize] += 1;
        }
        assert!((195..=205).contains(&sent[0]), "{sent:?}: a fifth");
    }

    #[test]
    fn however_long_the_deadline_is_nobody_waits_for_long() {
        for (deadline, longest) in [(300, 75), (400, 100), (2_000, 100)] {
            let due = |waited| Due { deadline: ms(deadline), left: ms(deadline - waited), held: ms(waited) };
            let is_old = |waited| Deadline::default().is_old(&due(waited));
            assert_eq!([longest - 1, longest].map(is_old), [false, true], "{deadline} ms");
        }
    }

    #[test]
    fn data_without_a_deadline_goes_on_the_best_path_with_room_whatever_is_known_of_it() {
        let mut paths = [view(0, 20), view(1, 200)];
        let chosen = |paths: &[PathView]| Deadline::default().pick(&ConnectionView::default(), paths, NOW);
        assert_eq!(chosen(&paths), Choice::Send(path(0)));
        fill(&mut paths[0]);
        assert_eq!(chosen(&paths), Choice::Send(path(1)));
        fill(&mut paths[1]);
        assert_eq!(chosen(&paths), Choice::Wait);
    }
}
