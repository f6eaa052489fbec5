//! Cases that random events found.

use fairpath_core::{Bitrate, ByteCount, Congestion, Timestamp};

use super::*;
use crate::testing::{IN_PACKETS, PACKET, ack, loss, path};

/// A path whose start has ended because packets waited: its window is its own, and not CUBIC's.
fn keeps_short() -> HybridCubic {
    let mut hybrid = HybridCubic::new(Cubic::default(), IN_PACKETS);
    hybrid.on_path_opened(path(0), PACKET, Timestamp::ZERO);
    hybrid.on_ack(path(0), &ack(100, PACKET * 99, 20));
    for now in [130, 160, 190] {
        hybrid.on_ack(path(0), &ack(now, ByteCount::ZERO, 20));
    }
    hybrid.on_ack(path(0), &ack(250, ByteCount::ZERO, 60));
    assert_eq!(hybrid.window(path(0)), PACKET * 50);
    hybrid
}

#[test]
fn persistent_congestion_is_answered_from_the_window_of_now_and_not_from_the_last_one_of_cubic() {
    let [mut touched, mut untouched] = [keeps_short(), keeps_short()];
    touched.on_congestion(path(0), &loss(300));
    touched.on_spurious_congestion(path(0), Timestamp::from_millis(310));
    assert_eq!(touched.window(path(0)), untouched.window(path(0)));
    for hybrid in [&mut touched, &mut untouched] {
        hybrid.on_congestion(path(0), &Congestion { persistent: true, ..loss(400) });
        let state = hybrid.state(path(0)).expect("it is open");
        // CUBIC leaves 0.7 of 50 packets.
        assert_eq!((state.window, state.ssthresh), (PACKET, Some(PACKET * 35)));
    }
}

#[test]
fn a_path_that_lost_packets_before_its_first_sample_goes_on_as_it_was_when_others_are_grouped() {
    let groups =
        |of: &[&[u32]]| Groups::from_members(of.iter().map(|ids| ids.iter().copied().map(path).collect::<Vec<_>>()));
    let mut hybrid = HybridCubic::new(Cubic::default(), IN_PACKETS);
    (0..3).for_each(|id| hybrid.on_path_opened(path(id), PACKET, Timestamp::ZERO));
    hybrid.on_groups(&groups(&[&[0], &[1], &[2]]));
    hybrid.on_congestion(path(0), &loss(300));
    let mut regrouped = hybrid.clone();
    regrouped.on_groups(&groups(&[&[0], &[1, 2]]));
    for hybrid in [&mut hybrid, &mut regrouped] {
        hybrid.on_ack(path(0), &Ack { rtt: None, ..ack(400, PACKET, 20) });
    }
    assert_eq!(hybrid.window(path(0)), regrouped.window(path(0)));
    assert_eq!(hybrid.state(path(0)).map(|state| state.ssthresh), regrouped.state(path(0)).map(|state| state.ssthresh));
}

#[test]
fn a_mark_does_not_turn_out_to_be_wrong() {
    let mut hybrid = HybridCubic::new(Cubic::default(), IN_PACKETS);
    hybrid.on_path_opened(path(0), PACKET, Timestamp::ZERO);
    hybrid.on_ack(path(0), &ack(100, PACKET * 99, 20));
    let mark = Congestion { signal: CongestionSignal::Ecn, lost: ByteCount::ZERO, ..loss(300) };
    hybrid.on_congestion(path(0), &mark);
    let reduced = (hybrid.window(path(0)), hybrid.paths.get(path(0)).map(|path| path.starting));
    assert_eq!(reduced, (PACKET * 70, Some(false)));
    hybrid.on_spurious_congestion(path(0), Timestamp::from_millis(310));
    assert_eq!((hybrid.window(path(0)), hybrid.paths.get(path(0)).map(|path| path.starting)), reduced);
}

#[test]
fn what_a_path_carries_is_known_where_it_fills_its_window_and_packets_wait_all_the_time() {
    let served = |in_flight: u64, rtt_ms: u64| {
        let mut hybrid = keeps_short();
        for now in (260..400).step_by(4) {
            let ack = Ack { in_flight: PACKET * in_flight, ..ack(now, PACKET * 5, rtt_ms) };
            hybrid.on_ack(path(0), &ack);
        }
        hybrid.served(path(0))
    };
    // 5 packets of a megabyte in each 4 ms are 10 Gbit/s.
    assert_eq!(served(50, 28), Some(Bitrate::from_mbps(10_000)));
    assert_eq!(served(20, 28), None, "others may have made them wait");
    assert_eq!(served(50, 20), None, "it may carry more");
}
