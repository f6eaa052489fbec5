//! The machine that all AIMD rules share: additive increase, multiplicative decrease, and
//! everything around it that is the same for each of them [RFC5681 §3.1; RFC9002 §7].
//!
//! It keeps slow start, recovery episodes, the minimum window and growth by fractions; a published
//! algorithm is a [`Rule`]: what an acknowledgement adds in congestion avoidance and what
//! congestion leaves.
//!
//! # Deviations
//!
//! - Persistent congestion does not clear the start of the recovery episode, as [RFC9002 §7.6.2]
//!   does. Late reports of the same outage would otherwise halve a window that is already the
//!   minimum, and with it the threshold up to which slow start may return.
//! - The reduction takes the window and not what is in flight, which [RFC5681 §3.1] takes: a window
//!   that grows only while it is full cannot outgrow what was in flight.

mod config;
mod group_view;
mod losses;
mod path_window;
mod totals;
mod undo;
mod until_coupled;

use core::fmt::Debug;

use fairpath_core::{Ack, Bitrate, ByteCount, Congestion, CongestionSignal, Groups, PathId, PathMap, Timestamp};

pub use self::config::AimdConfig;
pub use self::group_view::GroupView;
pub use self::losses::Losses;
pub use self::path_window::PathWindow;
pub use self::totals::{Member, Totals};
pub use self::until_coupled::{Both, UntilCoupled};

use self::group_view::{PathEntry, PathOfGroup};
use self::losses::LossTest;
use self::undo::Undo;
use crate::controller::{ControlState, Controller};

/// The rule in which one AIMD algorithm differs from another.
///
/// The machine calls [`on_ack`](Self::on_ack) for each acknowledgement. Where the window may change,
/// because it was the limit and no recovery is going on, it then asks
/// [`on_delay`](Self::on_delay), and if that says nothing and slow start is over,
/// [`increase`](Self::increase). For each episode of congestion it calls
/// [`decrease`](Self::decrease) and then [`on_reduced`](Self::on_reduced).
pub trait Rule: Debug + Send {
    /// The rule's memory of each path.
    type Memory: Clone + Debug + Default + Send;

    /// The news of its group that a path hears before each of its events; `()` for a rule that asks when it must.
    type News;

    /// Whether it reads [`Ack::rate`], which is otherwise not worked out.
    fn reads_rates(&self) -> bool {
        false
    }

    /// How much the window of the view's own path grows for `acked`, in bytes. May be negative.
    fn increase(&self, group: &impl GroupView<Self::Memory>, acked: ByteCount) -> f64;

    /// The window of the view's own path after congestion, in bytes. The machine keeps it above the
    /// least threshold and the minimum window.
    fn decrease(&self, group: &impl GroupView<Self::Memory>) -> f64;

    /// The least slow-start threshold, in datagrams. `configured` is what holds for one path.
    fn min_ssthresh_datagrams(&self, _group: &impl GroupView<Self::Memory>, configured: u32) -> u32 {
        configured
    }

    /// Whether the slow-start threshold follows a window that [`increase`](Self::increase) shrinks below it. Where
    /// it does not, and the path is coupled, slow start takes the window back, and goes on up to and including the threshold.
    fn lowers_threshold(&self) -> bool {
        true
    }

    /// The rule's answer to the delays of the view's own path, in slow start
    /// as well as later. `None`: nothing; the window grows as it otherwise does. Rules that look at
    /// delays collect them in [`on_ack`](Self::on_ack).
    fn on_delay(&self, _group: &impl GroupView<Self::Memory>, _ack: &Ack) -> Option<Adjustment<Self::Memory>> {
        None
    }

    /// The news that the path must have of its group before it answers an acknowledgement or congestion. `None`:
    /// nothing; a rule that treats the windows of a group as one needs it.
    fn news(&self, _group: &impl GroupView<Self::Memory>) -> Option<Self::News> {
        None
    }

    /// The path hears of its group. What this makes of its window, with the others' reductions since it was last heard
    /// of: so an event still changes no window but that of its own path. `None`: nothing.
    fn follow(&self, _memory: &mut Self::Memory, _window: &PathWindow, _news: Self::News) -> Option<Followed> {
        None
    }

    /// A packet was acknowledged, in whatever phase. `window` is what it was before.
    fn on_ack(&self, _memory: &mut Self::Memory, _window: &PathWindow, _ack: &Ack) {}

    /// The window is being reduced. `window` is what it was before.
    fn on_reduced(&self, _memory: &mut Self::Memory, _window: &PathWindow, _now: Timestamp) {}

    /// Congestion persisted: the window falls to the minimum and slow start begins anew.
    fn on_collapsed(&self, _memory: &mut Self::Memory) {}

    /// The path is coupled with other paths than before or, where it is not coupled now, alone again.
    fn on_recoupled(&self, _memory: &mut Self::Memory, _coupled: bool) {}

    /// The last reduction is taken back, because nothing was lost. `before` is what was remembered before it;
    /// what [`on_reduced`](Self::on_reduced) and [`on_collapsed`](Self::on_collapsed) made of it is
    /// restored, and what has been measured since stays.
    fn on_undone(&self, _memory: &mut Self::Memory, _before: &Self::Memory) {}
}

/// The answer of a rule to the delays that were measured.
#[derive(Clone, Copy, Debug)]
pub struct Adjustment<M> {
    /// The window from now on, in bytes. The machine keeps it above the minimum, and ends slow start.
    pub cwnd: f64,
    /// The rule's memory of the path from now on.
    pub memory: M,
}

/// The changes of its group that a path makes up for.
#[derive(Clone, Copy, Debug)]
pub struct Followed {
    /// The window from now on, in bytes. A smaller one is a reduction, and ends slow start.
    pub cwnd: f64,
    /// When the group was last reduced: what was sent before belongs to that episode.
    pub reduced_at: Timestamp,
}

/// A controller that follows the AIMD rule `R`.
///
/// Paths are coupled within the groups of the newest partition. Before there is one, all paths are
/// one group; a path that the partition does not name is alone. Opening a path that is open
/// changes nothing.
#[derive(Clone, Debug)]
pub struct Aimd<R: Rule> {
    rule: R,
    config: AimdConfig,
    paths: PathMap<PathEntry<R::Memory>>,
    groups: Option<Groups>,
}

impl<R: Rule> Aimd<R> {
    /// A controller without paths.
    pub fn new(rule: R, config: AimdConfig) -> Self {
        Self { rule, config, paths: PathMap::new(), groups: None }
    }

    /// Finds out which paths are coupled, and tells the rule where that is new.
    fn find_coupled(&mut self) {
        for at in 0..self.paths.len() {
            let path = self.paths.paths().nth(at).expect("there are so many");
            let partners = group_view::partners(&self.paths, path);
            let Some(entry) = self.paths.get_mut(path) else { return };
            if entry.partners != partners {
                entry.partners = partners;
                self.rule.on_recoupled(&mut entry.memory, !entry.partners.is_empty());
            }
        }
    }

    /// Has the path make up for what its group has done.
    fn follow(&mut self, path: PathId) {
        let news = PathOfGroup::new(&self.paths, path).and_then(|group| self.rule.news(&group));
        let (Some(news), Some(entry)) = (news, self.paths.get_mut(path)) else { return };
        let Some(Followed { cwnd, reduced_at }) = self.rule.follow(&mut entry.memory, &entry.window, news) else {
            return;
        };
        // The reduction of the path that could be undone is not the last one any more.
        entry.undo = None;
        let Some(group) = PathOfGroup::new(&self.paths, path) else { return };
        let floor = self.rule.min_ssthresh_datagrams(&group, self.config.min_ssthresh_datagrams);
        if let Some(entry) = self.paths.get_mut(path) {
            entry.window.follow(cwnd, floor, reduced_at);
        }
    }

    /// Takes losses or marks; says whether they are congestion.
    pub(crate) fn is_congestion(&mut self, path: PathId, event: &Congestion) -> bool {
        let Some(entry) = self.paths.get_mut(path) else { return false };
        let datagram = entry.window.max_datagram();
        entry.losses.as_mut().is_none_or(|losses| losses.is_congestion(event, datagram))
    }

    /// Gives way to what is congestion.
    pub(crate) fn give_way(&mut self, path: PathId, event: &Congestion) {
        let Some(entry) = self.paths.get(path) else { return };
        let undo = Undo::of(event, &entry.window, &entry.memory);
        self.follow(path);
        let Some(group) = PathOfGroup::new(&self.paths, path) else { return };
        let reduced = self.rule.decrease(&group);
        let floor = self.rule.min_ssthresh_datagrams(&group, self.config.min_ssthresh_datagrams);
        let Some(entry) = self.paths.get_mut(path) else { return };
        if entry.window.starts_episode(event.sent_at) {
            entry.undo = undo;
            self.rule.on_reduced(&mut entry.memory, &entry.window, event.now);
            entry.window.reduce(reduced, floor, event.now);
        } else if event.signal == CongestionSignal::Ecn {
            // Whatever is found of the losses, the path is congested.
            entry.undo = None;
        }
        if event.persistent {
            self.rule.on_collapsed(&mut entry.memory);
            entry.window.collapse();
        }
    }

    /// Whether what is lost was sent after the window was last reduced.
    pub(crate) fn starts_episode(&self, path: PathId, event: &Congestion) -> bool {
        self.paths.get(path).is_some_and(|entry| entry.window.starts_episode(event.sent_at))
    }

    /// Has slow start go on up to `ssthresh` bytes at least, once the reduction is over.
    pub(crate) fn expect(&mut self, path: PathId, ssthresh: f64) {
        if let Some(entry) = self.paths.get_mut(path) {
            entry.window.expect(ssthresh);
        }
    }

    /// Grows from `cwnd` bytes on, slowly from `ssthresh` on, as after a time in which nothing was learnt of where the
    /// network is full.
    pub(crate) fn resume(&mut self, path: PathId, cwnd: f64, ssthresh: f64) {
        if let Some(entry) = self.paths.get_mut(path) {
            entry.undo = None;
            entry.window.resume(cwnd, ssthresh);
            self.rule.on_collapsed(&mut entry.memory);
        }
    }
}

impl<R: Rule> Controller for Aimd<R> {
    fn on_path_opened(&mut self, path: PathId, max_datagram: ByteCount, _now: Timestamp) {
        if !self.paths.contains(path) {
            let group = self.groups.as_ref().map(|groups| groups.of(path));
            let window = PathWindow::new(&self.config, max_datagram);
            let memory = R::Memory::default();
            let losses = LossTest::new(self.config.losses).map(Box::new);
            self.paths.insert(path, PathEntry { group, partners: Vec::new(), window, memory, losses, undo: None });
            self.find_coupled();
        }
    }

    fn on_path_closed(&mut self, path: PathId) {
        self.paths.remove(path);
        self.find_coupled();
    }

    fn on_max_datagram(&mut self, path: PathId, max_datagram: ByteCount) {
        if let Some(entry) = self.paths.get_mut(path) {
            entry.window.set_max_datagram(max_datagram);
        }
    }

    fn reads_rates(&self) -> bool {
        self.rule.reads_rates()
    }

    fn hears_sent(&self) -> bool {
        false
    }

    fn on_ack(&mut self, path: PathId, ack: &Ack) {
        self.follow(path);
        let Some(entry) = self.paths.get_mut(path) else { return };
        let is_first_sample = !entry.window.has_rtt() && ack.rtt.is_some();
        if let Some(losses) = &mut entry.losses {
            losses.on_ack(ack);
        }
        entry.window.on_ack(ack);
        self.rule.on_ack(&mut entry.memory, &entry.window, ack);
        let may_grow = entry.window.may_grow(ack);
        if is_first_sample {
            self.find_coupled();
        }
        if !may_grow {
            return;
        }
        let Some(group) = PathOfGroup::new(&self.paths, path) else { return };
        if let Some(adjustment) = self.rule.on_delay(&group, ack) {
            if let Some(entry) = self.paths.get_mut(path) {
                if adjustment.cwnd < entry.window.cwnd() {
                    // The delay has spoken since the last loss: the window from before is not to come back.
                    entry.undo = None;
                }
                entry.window.adjust(adjustment.cwnd);
                entry.memory = adjustment.memory;
            }
            return;
        }
        let (own, lowers_threshold) = (group.own(), self.rule.lowers_threshold() || !group.is_coupled());
        let growth = match own.in_slow_start() {
            _ if !lowers_threshold && own.is_up_to_threshold() => Some(ack.bytes.as_f64()),
            true => None,
            false => Some(self.rule.increase(&group, ack.bytes)),
        };
        let Some(entry) = self.paths.get_mut(path) else { return };
        match growth {
            Some(bytes) => entry.window.grow(bytes, lowers_threshold),
            None => entry.window.double(ack.bytes),
        }
    }

    fn on_congestion(&mut self, path: PathId, event: &Congestion) {
        if self.is_congestion(path, event) {
            self.give_way(path, event);
        }
    }

    fn on_spurious_congestion(&mut self, path: PathId, _now: Timestamp) {
        let Some(entry) = self.paths.get_mut(path) else { return };
        if let Some(losses) = &mut entry.losses {
            losses.on_spurious();
        }
        let Some(undo) = entry.undo.take() else { return };
        if entry.window.restore(&undo.window) {
            self.rule.on_undone(&mut entry.memory, &undo.memory);
        }
    }

    fn clamp(&mut self, path: PathId, window: ByteCount) {
        if let Some(entry) = self.paths.get_mut(path)
            && window.as_f64() < entry.window.cwnd()
        {
            // A reduction that is undone must not bring back what the delay has taken since.
            entry.undo = None;
            entry.window.adjust(window.as_f64());
        }
    }

    fn penalise(&mut self, path: PathId) {
        if let Some(entry) = self.paths.get_mut(path) {
            entry.undo = None;
            entry.window.penalise(self.config.min_ssthresh_datagrams);
        }
    }

    fn on_groups(&mut self, groups: &Groups) {
        for (path, entry) in self.paths.iter_mut() {
            entry.group = Some(groups.of(path));
        }
        self.groups = Some(groups.clone());
        self.find_coupled();
    }

    fn window(&self, path: PathId) -> ByteCount {
        self.paths.get(path).map_or(ByteCount::ZERO, |entry| ByteCount::from_f64(entry.window.cwnd()))
    }

    fn pacing_rate(&self, path: PathId) -> Option<Bitrate> {
        self.paths.get(path)?.window.pacing_rate(&self.config)
    }

    fn state(&self, path: PathId) -> Option<ControlState> {
        self.paths.get(path).map(|entry| entry.window.state())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::Phase;
    use crate::testing::*;
    use crate::{Lia, Olia, Reno, SlowStart};

    const DATAGRAM: ByteCount = ByteCount::new(1200);

    fn opened() -> Aimd<Reno> {
        let mut reno = Aimd::new(Reno, AimdConfig::default());
        reno.on_path_opened(path(0), DATAGRAM, Timestamp::ZERO);
        reno
    }

    fn phase(controller: &impl Controller) -> Phase {
        controller.state(path(0)).unwrap().phase
    }

    #[test]
    fn a_path_begins_with_ten_datagrams_and_doubles_them_in_a_round_trip() {
        let mut reno = opened();
        assert_eq!((reno.window(path(0)), phase(&reno)), (DATAGRAM * 10, Phase::SlowStart));
        reno.on_ack(path(0), &ack(100, DATAGRAM * 10, 100));
        assert_eq!(reno.window(path(0)), DATAGRAM * 20);
    }

    #[test]
    fn one_episode_is_one_reduction_until_a_packet_sent_after_it_is_lost() {
        let mut reno = opened();
        reno.on_congestion(path(0), &loss(1_000));
        assert_eq!((reno.window(path(0)), phase(&reno)), (DATAGRAM * 5, Phase::Recovery));
        // Lost as well, but sent before the reduction: 1000 ms, not later.
        reno.on_congestion(path(0), &Congestion { now: Timestamp::from_millis(1_050), ..loss(1_000) });
        assert_eq!(reno.window(path(0)), DATAGRAM * 5);
        reno.on_congestion(path(0), &loss(1_100));
        assert_eq!(reno.window(path(0)), ByteCount::new(3_000));
    }

    #[test]
    fn packets_sent_before_the_reduction_do_not_grow_the_window() {
        let mut reno = opened();
        reno.on_congestion(path(0), &loss(1_000));
        reno.on_ack(path(0), &ack(1_050, DATAGRAM, 100));
        assert_eq!((reno.window(path(0)), phase(&reno)), (DATAGRAM * 5, Phase::Recovery));
        reno.on_ack(path(0), &ack(1_101, DATAGRAM, 100));
        assert_eq!(phase(&reno), Phase::CongestionAvoidance);
        // 1200 · 1200 / 6000 = 240
        assert_eq!(reno.window(path(0)), ByteCount::new(6_240));
    }

    #[test]
    fn persistent_congestion_falls_to_the_minimum_and_starts_slowly_to_the_threshold() {
        let mut reno = opened();
        let outage = Congestion { persistent: true, ..loss(1_000) };
        reno.on_congestion(path(0), &outage);
        let state = reno.state(path(0)).unwrap();
        assert_eq!((state.window, state.ssthresh), (DATAGRAM * 2, Some(DATAGRAM * 5)));
        assert_eq!(state.phase, Phase::SlowStart);
        // A late report of the same outage changes nothing: least of all the threshold.
        reno.on_congestion(path(0), &outage);
        assert_eq!(reno.state(path(0)), Some(state));
        reno.on_ack(path(0), &ack(1_200, DATAGRAM * 9, 100));
        assert_eq!((reno.window(path(0)), phase(&reno)), (DATAGRAM * 5, Phase::CongestionAvoidance));
    }

    #[test]
    fn a_timeout_of_tcp_leaves_one_segment_and_a_loss_two() {
        let mut reno = Aimd::new(Reno, AimdConfig::tcp());
        reno.on_path_opened(path(0), DATAGRAM, Timestamp::ZERO);
        for second in 1..5 {
            reno.on_congestion(path(0), &loss(second * 1_000));
        }
        // 10, 5, 2.5 datagrams, and then not less than 2
        assert_eq!(reno.window(path(0)), DATAGRAM * 2);
        reno.on_congestion(path(0), &Congestion { persistent: true, ..loss(10_000) });
        let state = reno.state(path(0)).unwrap();
        assert_eq!((state.window, state.ssthresh), (DATAGRAM, Some(DATAGRAM * 2)));
    }

    /// Packets that come back 10 ms apart, each 2 ms later than the one before: a round trip takes a
    /// quarter longer than the last. It is found out after 21 packets, and five such rounds take 123.
    fn growing_delay(step: u64) -> Ack {
        ack(200 + 10 * step, DATAGRAM, 100 + 2 * step)
    }

    #[test]
    fn a_queue_ends_the_first_slow_start_where_hystart_is_on() {
        for (slow_start, phase) in
            [(SlowStart::Standard, Phase::SlowStart), (SlowStart::HyStartPlusPlus, Phase::CongestionAvoidance)]
        {
            let mut reno = Aimd::new(Reno, AimdConfig { slow_start, ..AimdConfig::default() });
            reno.on_path_opened(path(0), DATAGRAM, Timestamp::ZERO);
            for step in 0..200 {
                reno.on_ack(path(0), &growing_delay(step));
            }
            assert_eq!(self::phase(&reno), phase, "{slow_start:?}");
        }
    }

    #[test]
    fn conservative_slow_start_grows_by_a_quarter_of_what_was_acknowledged() {
        let mut reno = Aimd::new(Reno, AimdConfig { slow_start: SlowStart::HyStartPlusPlus, ..AimdConfig::default() });
        reno.on_path_opened(path(0), DATAGRAM, Timestamp::ZERO);
        let mut growths = Vec::new();
        for step in 0..100 {
            let before = reno.window(path(0));
            reno.on_ack(path(0), &growing_delay(step));
            growths.push((reno.window(path(0)) - before).get());
        }
        assert_eq!((growths[0], growths[99]), (1_200, 300));
    }

    #[test]
    fn an_ecn_mark_counts_as_a_loss_does() {
        let mut reno = opened();
        let mark = Congestion { signal: fairpath_core::CongestionSignal::Ecn, lost: ByteCount::ZERO, ..loss(1_000) };
        reno.on_congestion(path(0), &mark);
        assert_eq!(reno.window(path(0)), DATAGRAM * 5);
    }

    #[test]
    fn fractions_add_up() {
        // 1000 acknowledgements of one byte at 5 datagrams: 1200/6000 = 0.2 each, about 200 in all;
        // rounded one by one they would be none.
        let mut reno = opened();
        reno.on_congestion(path(0), &loss(1_000));
        for _ in 0..1000 {
            reno.on_ack(path(0), &ack(2_000, ByteCount::new(1), 100));
        }
        assert!((ByteCount::new(6_190)..ByteCount::new(6_200)).contains(&reno.window(path(0))));
    }

    #[test]
    fn larger_datagrams_raise_the_minimum_and_keep_the_window() {
        let mut reno = opened();
        reno.on_max_datagram(path(0), ByteCount::new(1500));
        assert_eq!(reno.window(path(0)), DATAGRAM * 10);
        reno.on_max_datagram(path(0), ByteCount::new(9000));
        assert_eq!(reno.window(path(0)), ByteCount::new(18_000));
    }

    #[test]
    fn pacing_waits_for_a_sample_and_is_faster_in_slow_start() {
        let mut reno = opened();
        assert_eq!(reno.pacing_rate(path(0)), None);
        reno.on_ack(path(0), &Ack { window_limited: false, ..ack(100, DATAGRAM, 100) });
        // 2 · 12,000 B / 0.1 s = 240,000 B/s
        assert_eq!(reno.pacing_rate(path(0)), Some(Bitrate::from_bps(1_920_000)));
        reno.on_congestion(path(0), &loss(1_000));
        // 1.25 · 6,000 B / 0.1 s = 75,000 B/s
        assert_eq!(reno.pacing_rate(path(0)), Some(Bitrate::from_bps(600_000)));
    }

    #[test]
    fn a_round_trip_of_no_time_gives_a_finite_rate() {
        let mut reno = opened();
        reno.on_ack(path(0), &ack(100, DATAGRAM, 0));
        // 2 · 13,200 B / 1 µs
        assert_eq!(reno.pacing_rate(path(0)), Some(Bitrate::from_bps(211_200_000_000)));
    }

    #[test]
    fn all_paths_are_coupled_until_a_partition_says_otherwise() {
        // As in `lia`: coupled 0.025 per packet, alone 1/20.
        let paths = [(20, 100), (10, 50)];
        let mut lia = in_avoidance(Lia, &paths);
        lia.on_groups(&Groups::singletons([path(0), path(1)]));
        assert_near(growth(&mut lia, 0, 100), 0.05);
        let mut lia = in_avoidance(Lia, &paths);
        lia.on_groups(&Groups::one([path(1)]));
        assert_near(growth(&mut lia, 0, 100), 0.05);
        let mut lia = in_avoidance(Lia, &paths);
        lia.on_groups(&Groups::one([path(0), path(1)]));
        assert_near(growth(&mut lia, 0, 100), 0.025);
    }

    #[test]
    fn the_window_shrunk_by_a_rule_is_not_taken_back_by_slow_start() {
        // [OLIA §3]: path 0 gives way to path 1 by 0.0125 per packet.
        let mut olia = in_avoidance(Olia::default(), &[(20, 100), (10, 50)]);
        olia.on_ack(path(1), &Ack { window_limited: false, ..ack(10_000, PACKET * 1000, 50) });
        assert!(growth(&mut olia, 0, 100) < 0.0);
        assert_eq!(phase(&olia), Phase::CongestionAvoidance);
        assert!(growth(&mut olia, 0, 100) < 0.0);
    }

    #[test]
    fn a_clamp_takes_the_threshold_along_and_never_makes_a_window_larger() {
        let mut reno = opened();
        reno.clamp(path(0), DATAGRAM * 20);
        assert_eq!((reno.window(path(0)), phase(&reno)), (DATAGRAM * 10, Phase::SlowStart));
        reno.clamp(path(0), DATAGRAM * 6);
        assert_eq!((reno.window(path(0)), phase(&reno)), (DATAGRAM * 6, Phase::CongestionAvoidance));
        reno.clamp(path(0), ByteCount::ZERO);
        assert_eq!(reno.window(path(0)), DATAGRAM * 2, "the minimum");
    }

    #[test]
    fn a_penalty_halves_the_window_and_the_threshold_only_after_slow_start() {
        let mut reno = opened();
        reno.penalise(path(0));
        let state = reno.state(path(0)).unwrap();
        assert_eq!((state.window, state.ssthresh, state.phase), (DATAGRAM * 5, None, Phase::SlowStart));
        reno.clamp(path(0), DATAGRAM * 4);
        // Ten datagrams of four: 4 + 10/4 = 6.5, above the threshold of 4.
        reno.on_ack(path(0), &ack(100, DATAGRAM * 10, 100));
        reno.penalise(path(0));
        let state = reno.state(path(0)).unwrap();
        assert_eq!((state.window, state.ssthresh), (ByteCount::new(3_900), Some(ByteCount::new(2_400))));
        assert_eq!(state.phase, Phase::CongestionAvoidance);
    }

    #[test]
    fn a_path_that_is_not_open_has_no_window() {
        let mut reno = opened();
        reno.on_path_closed(path(0));
        reno.on_ack(path(0), &ack(100, DATAGRAM, 100));
        reno.on_congestion(path(0), &loss(200));
        assert_eq!((reno.window(path(0)), reno.state(path(0))), (ByteCount::ZERO, None));
    }
}
