//! Taking back a reduction for losses that were none [RFC9438 §4.9].

use fairpath_core::{Congestion, CongestionSignal};

use super::PathWindow;
use super::path_window::Unreduced;

/// A path as it was before its last reduction.
#[derive(Clone, Debug)]
pub(super) struct Undo<M> {
    pub(super) window: Unreduced,
    pub(super) memory: M,
}

impl<M: Clone> Undo<M> {
    /// The means to undo the reduction that `event` is about to cause; `None` where nothing may: a mark does not
    /// turn out to be wrong.
    pub(super) fn of(event: &Congestion, window: &PathWindow, memory: &M) -> Option<Box<Self>> {
        let may = event.signal == CongestionSignal::Loss;
        may.then(|| Box::new(Self { window: window.unreduced(), memory: memory.clone() }))
    }
}

#[cfg(test)]
mod tests {
    use fairpath_core::{Ack, ByteCount, Rtt, Timestamp};

    use super::*;
    use crate::testing::*;
    use crate::{Aimd, AimdConfig, Controller, Cubic, Daimd, Phase, Reno, Rule};

    const NOW: Timestamp = Timestamp::from_secs(60);

    fn window(controller: &impl Controller) -> f64 {
        controller.window(path(0)).as_f64() / PACKET.as_f64()
    }

    /// The same loss twice over, once with the word that it was none: what 200 packets make of each.
    fn with_and_without<R: Rule + Clone>(rule: R) -> [f64; 2] {
        let mut untouched = Aimd::new(rule, IN_PACKETS);
        untouched.on_path_opened(path(0), PACKET, Timestamp::ZERO);
        untouched.on_ack(path(0), &ack(1_000, PACKET * 39, 100));
        untouched.on_congestion(path(0), &loss(2_000));
        (0..20).for_each(|step| untouched.on_ack(path(0), &ack(10_000 + 10 * step, PACKET, 100)));
        let mut undone = untouched.clone();
        undone.on_congestion(path(0), &loss(11_000));
        assert!(window(&undone) < 0.8 * window(&untouched));
        undone.on_spurious_congestion(path(0), NOW);
        [untouched, undone].map(|mut controller| {
            (0..200).for_each(|step| controller.on_ack(path(0), &ack(11_200 + 10 * step, PACKET, 100)));
            window(&controller)
        })
    }

    #[test]
    fn a_loss_that_was_none_leaves_the_growth_as_it_would_have_been() {
        let grown = [with_and_without(Reno), with_and_without(Cubic::default()), with_and_without(Daimd::default())];
        for [untouched, undone] in grown {
            assert!(untouched > 25.0);
            assert_near(undone, untouched);
        }
    }

    #[test]
    fn slow_start_goes_on_after_a_loss_that_was_none() {
        let mut reno = Aimd::new(Reno, AimdConfig::default());
        reno.on_path_opened(path(0), ByteCount::new(1200), Timestamp::ZERO);
        let before = reno.state(path(0));
        reno.on_congestion(path(0), &Congestion { persistent: true, ..loss(1_000) });
        assert_eq!(reno.state(path(0)).unwrap().window, ByteCount::new(2400));
        reno.on_spurious_congestion(path(0), NOW);
        assert_eq!(reno.state(path(0)), before);
        assert_eq!(before.unwrap().phase, Phase::SlowStart);
    }

    #[test]
    fn one_reduction_is_undone_once_and_not_the_one_before_it() {
        let mut reno = in_avoidance(Reno, &[(20, 100)]);
        reno.on_congestion(path(0), &loss(11_000));
        reno.on_congestion(path(0), &loss(12_000));
        assert_near(window(&reno), 5.0);
        reno.on_spurious_congestion(path(0), NOW);
        assert_near(window(&reno), 10.0);
        reno.on_spurious_congestion(path(0), NOW);
        assert_near(window(&reno), 10.0);
    }

    #[test]
    fn a_loss_sent_before_a_reduction_that_was_none_is_news_again() {
        let mut reno = in_avoidance(Reno, &[(20, 100)]);
        reno.on_congestion(path(0), &loss(11_000));
        reno.on_spurious_congestion(path(0), NOW);
        assert_near(window(&reno), 20.0);
        reno.on_congestion(path(0), &Congestion { now: Timestamp::from_millis(11_050), ..loss(11_000) });
        assert_near(window(&reno), 10.0);
    }

    #[test]
    fn a_window_that_has_grown_beyond_what_it_was_stays() {
        let mut reno = in_avoidance(Reno, &[(2, 100)]);
        reno.on_congestion(path(0), &loss(11_000));
        (0..20).for_each(|step| reno.on_ack(path(0), &ack(11_200 + 10 * step, PACKET, 100)));
        let grown = window(&reno);
        assert!(grown > 2.0);
        reno.on_spurious_congestion(path(0), NOW);
        assert_near(window(&reno), grown);
    }

    #[test]
    fn a_mark_is_not_undone_neither_alone_nor_in_the_episode_of_a_loss() {
        let mark = |now_ms| Congestion { signal: CongestionSignal::Ecn, lost: ByteCount::ZERO, ..loss(now_ms) };
        let mut reno = in_avoidance(Reno, &[(20, 100)]);
        reno.on_congestion(path(0), &mark(11_000));
        reno.on_spurious_congestion(path(0), NOW);
        assert_near(window(&reno), 10.0);
        reno.on_congestion(path(0), &loss(12_000));
        // Sent before that reduction, so it is the same episode.
        reno.on_congestion(path(0), &mark(12_000));
        reno.on_spurious_congestion(path(0), NOW);
        assert_near(window(&reno), 5.0);
    }

    #[test]
    fn a_window_that_delay_has_shrunk_since_does_not_come_back() {
        let mut daimd = in_avoidance(Daimd { window_least: 0.0, ..Daimd::default() }, &[(20, 100)]);
        let measure = |daimd: &mut Aimd<Daimd>, now_ms, latest_ms| {
            let measured = Rtt { latest: ms(latest_ms), ..rtt(ms(100)) };
            let sent_at = Timestamp::from_millis(now_ms);
            daimd.on_ack(path(0), &Ack { sent_at, rtt: Some(measured), ..ack(now_ms, ByteCount::ZERO, 100) });
        };
        measure(&mut daimd, 10_900, 200);
        measure(&mut daimd, 11_000, 100);
        daimd.on_congestion(path(0), &loss(11_100));
        measure(&mut daimd, 11_200, 195);
        measure(&mut daimd, 11_300, 195);
        assert_near(window(&daimd), 7.0);
        daimd.on_spurious_congestion(path(0), NOW);
        assert_near(window(&daimd), 7.0);
    }
}
