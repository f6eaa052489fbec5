//! A stream over paths that delay, lose and fall silent.

use core::time::Duration;

use fairpath_core::PathId;
use fairpath_live::{Config, Copies, FlowId, Playout};

use crate::common::{Link, World};

const DEADLINE: Duration = Duration::from_millis(300);

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn config() -> Config {
    Config { deadline: DEADLINE, ..Config::default() }
}

/// 2.6 Mbit/s: a packet of MPEG-TS, in two pieces, every 4 ms.
fn picture(world: &mut World, seconds: u64) {
    world.stream(250 * seconds, 1_316, ms(4));
}

#[test]
fn what_is_sent_over_paths_that_lose_nothing_arrives_unchanged_and_at_once() {
    let mut world = World::new(config(), vec![Link::new(20, 0.0), Link::new(30, 0.0)], 1);
    picture(&mut world, 5);
    world.run_for(ms(500));
    world.check(DEADLINE, Duration::ZERO);
    assert_eq!(world.share(), 1.0);
    let slowest = world.played.iter().zip(&world.queued).map(|(played, queued)| played.at.since(queued.0)).max();
    assert!(slowest.unwrap() <= ms(60), "{slowest:?}: in order, and the credit of a path");
    assert!(world.sent_on.iter().all(|sent| *sent > 500), "both carry: {:?}", world.sent_on);
    let counts = world.receiver.counts();
    assert_eq!((counts.lost, counts.late, counts.recovered), (0, 0, 0), "{counts:?}");
}

#[test]
fn steady_playout_keeps_the_gaps() {
    let config = Config { playout: Playout::Steady, ..config() };
    let mut world = World::new(config, vec![Link { jitter: ms(60), ..Link::new(20, 0.0) }], 2);
    picture(&mut world, 3);
    world.run_for(ms(500));
    assert_eq!(world.share(), 1.0);
    let delays: Vec<Duration> =
        world.played.iter().zip(&world.queued).map(|(played, queued)| played.at.since(queued.0)).skip(250).collect();
    let (least, most) = (delays.iter().min().unwrap(), delays.iter().max().unwrap());
    // At 60 ms of random jitter the least delay seen is within 1 ms of the true one.
    assert!(*most <= DEADLINE + ms(1) && *most - *least <= ms(1), "from {least:?} to {most:?}");
}

/// Where a path loses many, QUIC takes large packets for the reason, and then all paths carry smaller ones.
#[test]
fn what_waits_when_datagrams_become_smaller_leaves_in_parts() {
    for loss in [0.0, 0.02] {
        let mut world = World::new(config(), vec![Link::new(20, loss), Link::new(30, loss)], 5);
        picture(&mut world, 2);
        for room in [700, 1_200, 400, 1_200] {
            for _ in 0..40 {
                world.queue(FlowId(0), 1_150, false);
            }
            world.room = room;
            world.run_for(ms(200));
        }
        world.run_for(ms(500));
        world.check(DEADLINE, Duration::ZERO);
        assert_eq!(world.share(), 1.0, "{:?}", world.receiver.counts());
        assert!(!world.sender.is_busy(), "all was acknowledged");
    }
}

#[test]
fn losses_of_a_fiftieth_are_made_up_for() {
    for repair in [true, false] {
        let config = Config { repair, ..config() };
        let mut world = World::new(config, vec![Link::new(20, 0.02), Link::new(40, 0.02)], 3);
        picture(&mut world, 20);
        world.run_for(ms(500));
        world.check(DEADLINE, ms(5));
        let (counts, status) = (world.receiver.counts(), world.sender.status());
        assert!(world.share() > 0.999, "{} with repair {repair}: {counts:?} {status:?}", world.share());
        assert_eq!(counts.recovered > 0, repair, "{counts:?}");
        assert!(status.again > 0, "what is lost is sent again too: {status:?}");
    }
}

/// A loss is known after 45 ms and can be repaired twice before the deadline, so almost nothing
/// needs repair symbols. At 20 packets per second a block has one or two, and repair would be most
/// of the traffic.
#[test]
fn what_is_mended_by_sending_again_needs_no_repair() {
    let mut world = World::new(config(), vec![Link::new(10, 0.1)], 13);
    world.stream(2_000, 1_000, ms(50));
    world.run_for(ms(500));
    world.check(DEADLINE, ms(5));
    let (counts, status) = (world.receiver.counts(), world.sender.status());
    let beside = 1.0 - status.pieces as f64 / (status.pieces + status.repair + status.again + status.copies) as f64;
    assert!(world.share() > 0.99 && beside < 0.35, "{} in time, {beside} beside: {counts:?} {status:?}", world.share());
}

/// Too late to send anything again: a round trip takes as long as the deadline. What a TCP would send on such paths is
/// little, and so is this: 0.4 Mbit/s.
#[test]
fn where_there_is_no_time_to_send_again_repair_brings_back_what_is_lost() {
    let mut world = World::new(config(), vec![Link::new(150, 0.01), Link::new(150, 0.01)], 4);
    world.stream(6_000, 500, ms(10));
    world.run_for(ms(500));
    world.check(DEADLINE, ms(5));
    let (counts, status) = (world.receiver.counts(), world.sender.status());
    assert!(counts.on_time().unwrap() > 0.995, "{counts:?} {status:?}");
    assert!(counts.recovered > 30, "{counts:?}");
}

#[test]
fn a_path_that_falls_silent_is_left_in_a_fraction_of_a_second_and_nothing_is_lost() {
    let mut world = World::new(config(), vec![Link::new(20, 0.0), Link::new(25, 0.0)], 5);
    picture(&mut world, 3);
    world.links[0].up = false;
    let before = world.sent_on[0];
    picture(&mut world, 3);
    let silent = world.sender.status().paths[0].is_silent;
    let meanwhile = world.sent_on[0] - before;
    // Half of 500 pieces in a second, for a fifth of one; and then a copy now and then.
    assert!(silent && meanwhile < 250, "silent: {silent}, {meanwhile} sent");
    world.links[0].up = true;
    picture(&mut world, 3);
    world.run_for(ms(500));
    world.check(DEADLINE, ms(5));
    assert!(!world.sender.status().paths[0].is_silent, "it is back");
    assert!(world.share() > 0.999, "{}: {:?}", world.share(), world.receiver.counts());
}

/// Queued data is old when it leaves. As a copy it would be worth nothing, but it measures a path
/// as well as any.
#[test]
fn a_silent_path_is_asked_though_the_other_one_cannot_carry_the_stream() {
    let mut world = World::new(config(), vec![Link::new(20, 0.0), Link::new(100, 0.0)], 13);
    // A window of 200 kB in 200 ms is 8 Mbit/s; this is 12.
    let picture = |world: &mut World, seconds: u64| world.stream(1_000 * seconds, 1_500, ms(1));
    picture(&mut world, 2);
    world.links[0].up = false;
    picture(&mut world, 3);
    assert!(world.sender.status().paths[0].is_silent);
    world.links[0].up = true;
    picture(&mut world, 1);
    assert!(!world.sender.status().paths[0].is_silent, "it has been back for a second");
    let (before, queued) = (world.sender.status().dropped, world.queued.len());
    picture(&mut world, 3);
    assert_eq!(world.sender.status().dropped, before, "of {} that came", world.queued.len() - queued);
}

#[test]
fn a_weak_third_path_carries_copies_only_and_harms_neither_the_stream_nor_its_budget() {
    let run = |links: Vec<Link>| {
        let mut world = World::new(config(), links, 6);
        picture(&mut world, 20);
        world.run_for(ms(500));
        world.check(DEADLINE, ms(5));
        let status = world.sender.status();
        (world.receiver.counts().on_time().unwrap(), status.budget.as_mbps_f64(), world.sent_on.clone(), status)
    };
    let good = vec![Link::new(20, 0.0), Link::new(30, 0.0)];
    let (alone, budget_alone, ..) = run(good.clone());
    let (with, budget_with, sent, status) = run([good, vec![Link::new(400, 0.05)]].concat());
    assert!(with >= 0.98 * alone, "{with} after {alone}: {status:?}");
    assert!(budget_with >= 0.98 * budget_alone, "{budget_with} after {budget_alone}: {status:?}");
    let share = sent[2] as f64 / sent.iter().sum::<u64>() as f64;
    assert!(share < 0.15, "{sent:?}");
}

#[test]
fn marked_packets_leave_on_two_paths_and_are_handed_out_once() {
    for (copies, expected) in [(Copies::None, 0), (Copies::Marked, 100), (Copies::All, 1_000)] {
        let config = Config { copies, repair: false, ..config() };
        let mut world = World::new(config, vec![Link::new(20, 0.0), Link::new(30, 0.0)], 7);
        for at in 0..1_000 {
            world.queue(FlowId(0), 500, at % 10 == 0);
            world.run_for(ms(2));
        }
        world.run_for(ms(500));
        world.check(DEADLINE, Duration::ZERO);
        assert_eq!(world.share(), 1.0);
        let (status, counts) = (world.sender.status(), world.receiver.counts());
        // Others are there to measure the paths.
        let copies = status.copies;
        assert!(copies >= expected && copies <= expected + 100, "{copies} copies for {expected}");
        assert_eq!(counts.duplicate, copies, "{counts:?}");
    }
}

#[test]
fn a_deadline_that_is_changed_holds_for_what_is_sent_from_then_on() {
    let config = Config { playout: Playout::Steady, ..config() };
    let mut world = World::new(config, vec![Link::new(20, 0.0)], 8);
    picture(&mut world, 2);
    world.sender.set_deadline(ms(600));
    picture(&mut world, 2);
    world.run_for(ms(1_000));
    assert_eq!(world.share(), 1.0);
    let delay = |at: usize| world.played[at].at.since(world.queued[at].0);
    assert!(
        delay(400) <= ms(300) && delay(900) > ms(595) && delay(900) <= ms(600),
        "{:?} {:?}",
        delay(400),
        delay(900)
    );
}

#[test]
fn several_flows_do_not_wait_for_each_other_and_large_packets_arrive_whole() {
    let config = Config { flows: 3, ..config() };
    let mut world = World::new(config, vec![Link::new(20, 0.01), Link::new(40, 0.01)], 9);
    for at in 0..600_u64 {
        let length = [60, 1_400, 5_000][(at % 3) as usize];
        world.queue(FlowId((at % 3) as u8), length, false);
        world.run_for(ms(10));
    }
    world.run_for(ms(500));
    world.check(DEADLINE, ms(5));
    assert!(world.share() > 0.99, "{}: {:?}", world.share(), world.receiver.counts());
}

#[test]
fn what_the_paths_cannot_carry_is_dropped_where_it_is_sent_and_counted() {
    let mut world = World::new(config(), vec![Link::new(100, 0.0)], 10);
    // A window of 200 kB in 200 ms is 8 Mbit/s; this is 40.
    for _ in 0..2_000 {
        (0..5).for_each(|_| world.queue(FlowId(0), 1_000, false));
        world.run_for(ms(1));
    }
    world.run_for(ms(500));
    world.check(DEADLINE, ms(5));
    let status = world.sender.status();
    assert!(status.dropped > 5_000 && world.share() > 0.15, "{} {status:?}", world.share());
    let counts = world.receiver.counts();
    assert!(counts.late * 50 < counts.received, "what would be late is not sent: {counts:?}");
}

/// A window of 200 kB in 40 ms is 40 Mbit/s, and in 200 ms 8. What a path is paced at is a quarter above that, so that
/// its window is the limit: an encoder that was given it would be dropped from all the time.
#[test]
fn a_budget_is_no_more_than_what_windows_let_out() {
    let mut world = World::new(config(), vec![Link::new(20, 0.0), Link::new(100, 0.0)], 12);
    // 32 Mbit/s: what has passed does not bound the budget.
    world.stream(30_000, 1_316, Duration::from_micros(330));
    let budget = world.sender.status().budget.as_mbps_f64();
    assert!((30.0..0.9 * 48.0).contains(&budget), "{budget} Mbit/s");
}

#[test]
fn paths_are_named_as_the_host_names_them() {
    let mut world = World::new(config(), vec![Link::new(20, 0.0), Link::new(30, 0.0)], 11);
    picture(&mut world, 1);
    let paths: Vec<PathId> = world.sender.status().paths.iter().map(|path| path.path).collect();
    assert_eq!(paths, [PathId::new(0), PathId::new(1)]);
}
