//! The properties that hold whatever the network does.

use core::time::Duration;

use bytes::Bytes;
use fairpath_core::{ByteCount, Groups, PathId, Timestamp};
use fairpath_live::{Cargo, Config, Copies, FlowId, Liveness, PathFacts, PathTerms, Playout, Receiver, Sender, Status};
use proptest::prelude::*;

use crate::common::{Link, World};

/// The datagrams of a block with pieces of these lengths, and its repair.
fn block(lengths: &[usize], loss: u32) -> Vec<(Cargo, Bytes)> {
    let config = Config { deadline: Duration::from_secs(1), copies: Copies::None, ..Config::default() };
    let mut sender = Sender::new(config);
    let path = PathFacts {
        path: PathId::new(0),
        usable: true,
        liveness: Liveness::Alive,
        rtt: Some(Duration::from_millis(20)),
        least_rtt: Some(Duration::from_millis(20)),
        window: ByteCount::new(10_000_000),
        served: None,
        max_datagram: ByteCount::new(1_200),
        terms: PathTerms::default(),
    };
    let groups = Groups::singletons([path.path]);
    let mut now = Timestamp::from_secs(1);
    sender.handle_timeout(&[path], &groups, now);
    // Losses before, so that the repair is as much as they take.
    for number in 0..200 {
        sender.on_sent(Cargo::Repair, path.path, number, now);
        match number % 100 < u64::from(loss) {
            true => sender.on_lost(path.path, number, now),
            false => sender.on_acked(path.path, number, now),
        }
    }
    now = now + Duration::from_millis(200);
    sender.handle_timeout(&[path], &groups, now);
    for (at, length) in lengths.iter().enumerate() {
        sender.queue(FlowId(0), &vec![at as u8; *length], false, 1_200, now).expect("room");
    }
    let mut left = Vec::new();
    // The block ends with a quarter of the deadline, and its repair leaves in an eighth.
    for _ in 0..400 {
        while let Some(outgoing) = sender.next(|_| true, now) {
            left.push((outgoing.cargo, outgoing.datagram));
        }
        now = now + Duration::from_millis(1);
        sender.handle_timeout(&[path], &groups, now);
    }
    left
}

/// A path that is not heard of though it has worked for 1.5 s: streams of pictures over paths of such delays, some of
/// which are out for a second at a time.
fn silent_though_it_works(
    seed: u64,
    delays: &[u64],
    outages: &[Vec<bool>],
    deadline_ms: u64,
    kilobytes_per_second: u64,
) -> Option<(usize, Status)> {
    let config = Config { deadline: Duration::from_millis(deadline_ms), ..Config::default() };
    let mut world = World::new(config, delays.iter().map(|delay| Link::new(*delay, 0.0)).collect(), seed);
    let gap = Duration::from_micros(1_316_000 / kilobytes_per_second);
    // The paths that were alive in this time. One that carries a copy now and then is silent again
    // if that is late.
    let picture = |world: &mut World, time: Duration| {
        let (end, mut heard) = (world.now + time, vec![false; delays.len()]);
        while world.now < end {
            // The sender refuses packets beyond what the paths take.
            let _ = world.sender.queue(FlowId(0), &[0; 1_316], false, 1_200, world.now);
            let next = world.now + gap;
            while world.now < next {
                world.run_for((next.since(world.now)).min(Duration::from_millis(5)));
                let status = world.sender.status();
                heard.iter_mut().zip(&status.paths).for_each(|(heard, path)| *heard |= !path.is_silent);
            }
        }
        heard
    };
    picture(&mut world, Duration::from_secs(1));
    for outage in outages {
        let is_out = |at: usize| outage[at] && outage[..delays.len()].contains(&false);
        (0..delays.len()).for_each(|at| world.links[at].up = !is_out(at));
        picture(&mut world, Duration::from_secs(1));
        let heard = picture(&mut world, Duration::from_millis(500));
        if let Some(at) = (0..delays.len()).find(|at| !is_out(*at) && !heard[*at]) {
            return Some((at, world.sender.status()));
        }
    }
    None
}

#[test]
fn a_path_that_works_is_heard_of_where_nothing_is_in_time() {
    let outages = [[false, false, false], [true, false, true], [false, false, true]].map(|out| out.to_vec());
    let silent = silent_though_it_works(0, &[116, 140, 5], &outages, 20, 20);
    assert!(silent.is_none(), "{silent:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// As many packets of a block as it has pieces are enough, whichever they are and in any order.
    #[test]
    fn any_losses_within_the_repair_are_made_up_for(
        lengths in proptest::collection::vec(0_usize..1_100, 5..100),
        loss in 0_u32..40,
        order in any::<u64>(),
    ) {
        use rand::{SeedableRng as _, seq::SliceRandom as _};
        let mut left = block(&lengths, loss);
        let repair = left.iter().filter(|(cargo, _)| *cargo == Cargo::Repair).count();
        prop_assert_eq!(left.len() - repair, lengths.len());
        prop_assert!(repair > 0, "each block of so many pieces has some");
        left.shuffle(&mut rand_chacha::ChaCha8Rng::seed_from_u64(order));
        left.truncate(lengths.len());
        let mut receiver = Receiver::new(Config::default());
        let now = Timestamp::from_secs(7);
        for (_, datagram) in &left {
            prop_assert_eq!(receiver.on_datagram(datagram, now), Ok(None));
        }
        let mut packets = Vec::new();
        while let Some(delivered) = receiver.take(now) {
            packets.push(delivered.packet);
        }
        let expected: Vec<Bytes> = lengths.iter().enumerate().map(|(at, length)| vec![at as u8; *length].into()).collect();
        prop_assert!(packets == expected, "{:?}", receiver.counts());
    }

    /// Whatever the others carry, and however little they have room for, a path that works is heard of again.
    #[test]
    fn no_path_that_works_stays_silent(
        seed in any::<u64>(),
        delays in proptest::collection::vec(5_u64..150, 2..4),
        outages in proptest::collection::vec(prop::collection::vec(any::<bool>(), 3), 1..5),
        deadline_ms in 20_u64..1_000,
        kilobytes_per_second in 20_u64..1_500,
    ) {
        let silent = silent_though_it_works(seed, &delays, &outages, deadline_ms, kilobytes_per_second);
        prop_assert!(silent.is_none(), "{silent:?}");
    }

    /// Nothing is handed out twice, out of order, changed, or after its deadline; and what did not come is counted.
    #[test]
    fn whatever_paths_do_what_is_handed_out_is_in_order_in_time_and_there_once(
        seed in any::<u64>(),
        links in proptest::collection::vec((1_u64..200, 0_u64..100, 0.0..0.5_f64), 1..4),
        copies in prop_oneof![Just(Copies::None), Just(Copies::Marked), Just(Copies::All)],
        playout in prop_oneof![Just(Playout::InOrder), Just(Playout::Steady)],
        deadline_ms in 20_u64..600,
        outage in 0_u64..300,
    ) {
        let deadline = Duration::from_millis(deadline_ms);
        let config = Config { flows: 2, deadline, copies, playout, ..Config::default() };
        let links: Vec<Link> = links
            .into_iter()
            .map(|(delay, jitter, loss)| Link { jitter: Duration::from_millis(jitter), ..Link::new(delay, loss) })
            .collect();
        // The largest error of the clock: half a round trip less the shortest delay so far.
        let error = links.iter().map(|link| link.delay + link.jitter).max().unwrap();
        let mut world = World::new(config, links, seed);
        for at in 0..400_u64 {
            world.links[0].up = !(outage..outage + 100).contains(&at);
            world.queue(FlowId((at % 2) as u8), (at as usize * 37) % 3_000, at % 7 == 0);
            world.run_for(Duration::from_millis(5));
        }
        world.run_for(Duration::from_secs(2));
        world.check(deadline, error);
        prop_assert!(world.receiver.counts().delivered == world.played.len() as u64);
    }

    #[test]
    fn arbitrary_datagrams_do_no_harm(
        datagrams in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..80), 0..200),
        kinds in proptest::collection::vec(5_u8..8, 200),
    ) {
        let mut receiver = Receiver::new(Config { flows: 16, ..Config::default() });
        let mut sender = Sender::new(Config::default());
        let mut now = Timestamp::ZERO;
        for (datagram, kind) in datagrams.iter().zip(kinds) {
            // The flow and the numbers are small, so that datagrams meet.
            let mut datagram = [&[kind], &datagram[..]].concat();
            datagram.iter_mut().skip(1).take(6).for_each(|byte| *byte &= 0x83);
            if let Ok(Some(report)) = receiver.on_datagram(&datagram.into(), now) {
                sender.on_report(&report, now);
            }
            while receiver.take(now).is_some() {}
            receiver.report(now);
            now = now + Duration::from_millis(3);
        }
        receiver.counts();
        sender.status();
    }
}
