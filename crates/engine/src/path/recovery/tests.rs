//! Losses, episodes and lateness, with worked times.

use super::*;

fn ms(millis: u64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn rtt_ms(millis: u64) -> Option<Rtt> {
    Some(Rtt::steady(Duration::from_millis(millis)))
}

/// A detector with packets sent a millisecond apart.
fn sent(count: u64) -> LossDetector<()> {
    let mut packets = LossDetector::default();
    (0..count).for_each(|number| packets.on_sent(number, (), ms(number)));
    packets
}

/// Acknowledges these packets at once; returns whether the newest episode was spurious.
fn acked(packets: &mut LossDetector<()>, numbers: &[u64], now: u64) -> bool {
    numbers.iter().for_each(|number| _ = packets.on_acked(*number, None));
    packets.on_ack_end(rtt_ms(100), ms(now))
}

fn lost(packets: &mut LossDetector<()>, now: u64) -> Vec<u64> {
    let mut numbers = Vec::new();
    packets.find_lost(rtt_ms(100), Duration::ZERO, ms(now), |packet, _| numbers.push(packet.number));
    numbers
}

/// A path of 100 ms on which packets were 100 ms late: the patience is 212.5 ms.
fn reordered(sent_at: &[u64]) -> LossDetector<()> {
    let mut packets = LossDetector::default();
    packets.reordering.on_late(ms(0), rtt_ms(100), ms(200));
    sent_at.iter().enumerate().for_each(|(number, at)| packets.on_sent(number as u64, (), ms(*at)));
    packets
}

#[test]
fn a_packet_is_lost_when_three_later_ones_have_arrived_or_an_eighth_of_a_round_trip_too_late() {
    let mut packets = sent(6);
    acked(&mut packets, &[3], 103);
    assert_eq!((lost(&mut packets, 103), packets.due()), (vec![0], Some(Timestamp::from_micros(113_500))));
    assert_eq!((lost(&mut packets, 114), packets.due()), (vec![1], Some(Timestamp::from_micros(114_500))));
    assert!(packets.is_declared(1) && !packets.is_declared(2));
    acked(&mut packets, &[2], 120);
    assert_eq!((lost(&mut packets, 200), packets.due()), (vec![], None), "4 and 5 may be on their way");
}

#[test]
fn where_packets_were_late_time_alone_tells_and_they_were_no_congestion() {
    let mut packets = sent(10);
    acked(&mut packets, &[4], 104);
    assert_eq!(lost(&mut packets, 104), [0, 1]);
    assert!(!acked(&mut packets, &[0], 120), "1 is missing still");
    assert!(acked(&mut packets, &[1], 121));
    assert!(!acked(&mut packets, &[1], 121), "told once");
    acked(&mut packets, &[9], 122);
    assert_eq!(lost(&mut packets, 122), [] as [u64; 0], "five later ones have arrived");
    // 20 ms later than an eighth of a round trip.
    assert_eq!(packets.due(), Some(Timestamp::from_micros(134_500)));
}

#[test]
fn what_was_lost_in_an_episode_is_not_forgotten_before_the_next_one() {
    // Losses are forgotten after 202 ms, less than the patience.
    let mut packets = reordered(&[0, 150, 160]);
    acked(&mut packets, &[2], 260);
    assert_eq!(lost(&mut packets, 213), [0]);
    assert_eq!(lost(&mut packets, 363), [1], "sent before 0 was found lost: the same episode");
    assert!(!acked(&mut packets, &[1], 364));
}

#[test]
fn an_episode_that_is_taken_back_has_never_been() {
    let mut packets = reordered(&[0, 100, 220, 230]);
    acked(&mut packets, &[3], 330);
    assert_eq!(lost(&mut packets, 213), [0]);
    // 100 ms late, as packets were before.
    assert!(acked(&mut packets, &[0], 200));
    // 1 was sent before that episode, and begins one of its own; 2 was sent before this second one began.
    assert_eq!(lost(&mut packets, 313), [1]);
    assert_eq!(lost(&mut packets, 433), [2]);
    assert!(!acked(&mut packets, &[2], 434), "1 is missing still");
}

#[test]
fn what_was_lost_long_ago_does_not_speak_for_what_is_late_now() {
    let mut packets = sent(6);
    acked(&mut packets, &[1, 2, 3, 4, 5], 100);
    assert_eq!(lost(&mut packets, 100), [0]);
    (6..10).for_each(|number| packets.on_sent(number, (), ms(1_000 + number)));
    acked(&mut packets, &[9], 1_100);
    assert_eq!(lost(&mut packets, 1_100), [6]);
    // 0 is forgotten, 7 and 8 are not late yet.
    assert!(acked(&mut packets, &[6], 1_101));
}

#[test]
fn what_an_earlier_episode_lost_does_not_speak_for_this_one() {
    let mut packets = sent(20);
    acked(&mut packets, &[4], 104);
    assert_eq!(lost(&mut packets, 104), [0, 1]);
    // Sent after that was found.
    (20..30).for_each(|number| packets.on_sent(number, (), ms(100 + number)));
    acked(&mut packets, &(2..20).collect::<Vec<_>>(), 220);
    acked(&mut packets, &[25], 225);
    assert_eq!(lost(&mut packets, 225), [20, 21, 22]);
    assert_eq!([20, 22, 21].map(|number| acked(&mut packets, &[number], 230)), [false, false, true]);
    assert!(!acked(&mut packets, &[0, 1], 240), "that one was followed by another");
}

#[test]
fn a_question_whether_the_path_works_is_lost_without_counting() {
    let mut packets = sent(6);
    packets.exempt_up_to(Some(0));
    acked(&mut packets, &[4], 104);
    let mut lost = Vec::new();
    let batch =
        packets.find_lost(rtt_ms(100), Duration::ZERO, ms(104), |packet, counts| lost.push((packet.number, counts)));
    assert_eq!((batch.newest, lost), (Some(ms(1)), vec![(0, false), (1, true)]));
    assert!(!packets.is_declared(0) && packets.is_declared(1));
}

#[test]
fn another_packet_of_the_same_number_is_not_meant_and_numbers_may_be_left_out() {
    let mut packets = LossDetector::default();
    [3, 5, 9].into_iter().for_each(|number| packets.on_sent(number, (), ms(number)));
    assert!(packets.on_acked(9, Some(ms(50))).is_none());
    assert_eq!(lost(&mut packets, 200), [] as [u64; 0]);
    assert!(packets.on_acked(4, None).is_none(), "left out");
    assert!(packets.on_acked(9, Some(ms(9))).is_some());
    assert_eq!(lost(&mut packets, 100), [3, 5], "six and four numbers behind the newest");
}

#[test]
fn losing_everything_for_three_probe_timeouts_is_persistent_congestion() {
    // 3 · 101 ms = 303 ms. Of five packets the last arrived; the fourth, 2 ms after `last`, is the newest lost.
    for (last, persistent) in [(301, false), (302, true)] {
        let mut packets = LossDetector::default();
        [0, last, last + 1, last + 2, last + 3].into_iter().zip(0..).for_each(|(at, number)| {
            packets.on_sent(number, (), ms(at));
        });
        acked(&mut packets, &[4], 999);
        let batch = packets.find_lost(rtt_ms(100), Duration::ZERO, ms(1_000), |_, _| {});
        assert_eq!((batch.newest, batch.persistent), (Some(ms(last + 2)), persistent));
    }
    let mut packets = LossDetector::default();
    [0, 200, 400, 401].into_iter().zip(0..).for_each(|(at, number)| packets.on_sent(number, (), ms(at)));
    acked(&mut packets, &[1, 3], 999);
    let mut numbers = Vec::new();
    let batch = packets.find_lost(rtt_ms(100), Duration::ZERO, ms(1_000), |packet, _| numbers.push(packet.number));
    assert_eq!((numbers, batch.persistent), (vec![0, 2], false), "one in between arrived");
}
