//! Paths with a cost, backups, and paths with a cap.

use core::time::Duration;

use fairpath_core::Bitrate;
use fairpath_live::{Config, Copies, FlowId, PathTerms};

use crate::common::{Link, World};

const DEADLINE: Duration = Duration::from_millis(300);

const CHEAP: PathTerms = PathTerms { backup: false, cost: 0, cap: None };

/// Both are used only where they are needed.
const DEAR: [PathTerms; 2] = [PathTerms { cost: 1, ..CHEAP }, PathTerms { backup: true, ..CHEAP }];

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn world(links: Vec<Link>, copies: Copies) -> World {
    World::new(Config { deadline: DEADLINE, copies, ..Config::default() }, links, 1)
}

/// 2.6 Mbit/s, of which every twelfth packet is marked.
fn picture(world: &mut World, seconds: u64) {
    for at in 0..250 * seconds {
        world.queue(FlowId(0), 1_316, at % 12 == 0);
        world.run_for(ms(4));
    }
}

/// The share of what left that left on the second path since then.
fn share(world: &World, since: &[u64]) -> f64 {
    let left: Vec<u64> = world.sent_on.iter().zip(since).map(|(now, then)| now - then).collect();
    left[1] as f64 / left.iter().sum::<u64>() as f64
}

#[test]
fn a_dear_path_carries_next_to_nothing_while_a_cheaper_one_has_room() {
    for (terms, most) in [(DEAR[0], 0.01), (DEAR[1], 0.08)] {
        // Even where the dear one is quicker and loses less, and all is to leave twice. On the cheap one TCP would have
        // 9 Mbit/s, and has less for a while after a loss that comes early.
        let mut world = world(vec![Link::new(40, 0.0003), Link { terms, ..Link::new(20, 0.0) }], Copies::All);
        picture(&mut world, 5);
        let since = world.sent_on.clone();
        picture(&mut world, 20);
        world.run_for(ms(500));
        world.check(DEADLINE, ms(5));
        let dear = share(&world, &since);
        assert!(dear < most && world.share() > 0.99, "{terms:?}: {dear}, {} on time", world.share());
        assert!(world.sent_on[1] > 10, "it is measured: {:?}", world.sent_on);
    }
}

#[test]
fn a_dear_path_carries_what_the_cheaper_one_has_no_room_for() {
    for terms in DEAR {
        let cap = Some(Bitrate::from_kbps(1_000));
        let cheap = Link { terms: PathTerms { cap, ..CHEAP }, ..Link::new(20, 0.0) };
        let mut world = world(vec![cheap, Link { terms, ..Link::new(30, 0.0) }], Copies::None);
        picture(&mut world, 10);
        let since = world.sent_on.clone();
        picture(&mut world, 10);
        world.run_for(ms(500));
        world.check(DEADLINE, ms(5));
        let dear = share(&world, &since);
        assert!((0.5..0.75).contains(&dear) && world.share() > 0.995, "{terms:?}: {dear}, {} on time", world.share());
    }
}

#[test]
fn a_dear_path_takes_over_where_the_cheaper_one_falls_silent_or_loses_much_and_leaves_it_again() {
    for terms in DEAR {
        for bad in [Link { up: false, ..Link::new(20, 0.0) }, Link::new(20, 0.3)] {
            let mut world = world(vec![Link::new(20, 0.0), Link { terms, ..Link::new(30, 0.0) }], Copies::None);
            picture(&mut world, 5);
            world.links[0] = bad;
            picture(&mut world, 2);
            let since = world.sent_on.clone();
            picture(&mut world, 5);
            let meanwhile = share(&world, &since);
            world.links[0] = Link::new(20, 0.0);
            // The losses of two seconds are remembered.
            picture(&mut world, 8);
            let since = world.sent_on.clone();
            picture(&mut world, 5);
            let after = share(&world, &since);
            world.run_for(ms(500));
            world.check(DEADLINE, ms(5));
            let on_time = world.share();
            assert!(meanwhile > 0.8 && after < 0.08, "{terms:?} {bad:?}: {meanwhile} meanwhile, {after} after");
            assert!(on_time > 0.995, "{terms:?} {bad:?}: {on_time} on time");
        }
    }
}

#[test]
fn an_encoder_is_offered_what_the_cheap_paths_carry_and_no_more_than_a_cap() {
    // Budgets follow what has passed, so that it takes an encoder that sends much: 32 Mbit/s of the 40 that a window lets
    // out.
    let budget_of = |links: Vec<Link>, packets: u64, gap: Duration| {
        let mut world = world(links, Copies::None);
        world.stream(packets, 1_316, gap);
        world.sender.status().budget.as_mbps_f64()
    };
    let budget = |links: Vec<Link>| budget_of(links, 30_000, Duration::from_micros(330));
    let cheap = Link::new(20, 0.0);
    let alone = budget(vec![cheap]);
    for terms in DEAR {
        let with = budget(vec![cheap, Link { terms, ..Link::new(20, 0.0) }]);
        assert!((with / alone - 1.0).abs() < 0.05, "{terms:?}: {with} beside {alone}");
        let mut world = world(vec![cheap, Link { terms, ..Link::new(20, 0.0) }], Copies::None);
        world.stream(15_000, 1_316, Duration::from_micros(330));
        world.links[0].up = false;
        world.stream(15_000, 1_316, Duration::from_micros(330));
        let instead = world.sender.status().budget.as_mbps_f64();
        assert!(instead > 0.8 * alone, "{terms:?}: {instead} beside {alone}");
    }
    let cap = Some(Bitrate::from_kbps(4_000));
    let capped = budget_of(vec![Link { terms: PathTerms { cap, ..CHEAP }, ..cheap }], 2_500, ms(4));
    assert!((3.0..=3.6).contains(&capped), "{capped}: nine tenths, less repair");
}
