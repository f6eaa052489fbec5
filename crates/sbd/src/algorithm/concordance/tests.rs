use super::*;
use crate::testing::{path, sample};

/// A queue of up to `full_ms` that grows for 2 to 3 s and drains, again and again; the times
/// are drawn by `seed`.
fn queue(at_ms: f64, full_ms: f64, seed: u64) -> f64 {
    let (mut begin, mut state) = (0.0, seed);
    loop {
        state = draw(state);
        let period = 2000.0 + 1000.0 * (state >> 32) as f64 / f64::from(u32::MAX);
        if at_ms < begin + period {
            return full_ms * libm::sqrt((at_ms - begin) / period);
        }
        begin += period;
    }
}

fn draw(state: u64) -> u64 {
    state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407)
}

const ONE: u64 = 1 << 40;
const OTHER: u64 = 7 << 50;

/// How long a dip lasts, and how often one of the two paths dips in turn.
const DIP_MS: u64 = 350;
const DIP_EVERY_MS: u64 = 4_000;

/// The path that dips.
fn dipping(at_ms: f64) -> Option<u32> {
    let (dip, into) = (at_ms as u64 / DIP_EVERY_MS, at_ms as u64 % DIP_EVERY_MS);
    (dip > 0 && into < DIP_MS).then_some((dip % 2) as u32)
}

struct Run {
    detector: Concordance,
    /// The times in ms at which the partition changed, and its groups.
    changes: Vec<(u64, Vec<Vec<PathId>>)>,
}

impl Run {
    /// Samples every 20 ms; the delay of a path by its id and the time.
    fn new(paths: u32, until_ms: u64, delay: impl Fn(u32, f64) -> f64) -> Self {
        Self::with_dips(false, paths, until_ms, delay)
    }

    fn with_dips(dips: bool, paths: u32, until_ms: u64, delay: impl Fn(u32, f64) -> f64) -> Self {
        let mut run = Self { detector: Concordance::default(), changes: Vec::new() };
        (0..paths).for_each(|id| run.detector.on_path_opened(path(id), Timestamp::ZERO));
        for at in (0..until_ms).step_by(20) {
            if at % DIP_EVERY_MS == 0
                && let Some(id) = dipping(at as f64).filter(|_| dips)
            {
                let now = Timestamp::from_millis(at);
                run.detector.on_dip(path(id), now, now + Duration::from_millis(DIP_MS));
            }
            (0..paths).for_each(|id| run.detector.on_sample(path(id), &sample(at, delay(id, at as f64))));
            if let Some(groups) = run.detector.poll(Timestamp::from_millis(at)) {
                run.changes.push((at, groups.members()));
            }
        }
        run
    }

    /// How long both paths of a run were in one group.
    fn together_ms(&self, until_ms: u64) -> u64 {
        let ends = self.changes.iter().skip(1).map(|(at, _)| *at).chain([until_ms]);
        let together = self.changes.iter().zip(ends).filter(|((_, groups), _)| groups.len() == 1);
        together.map(|((from, _), to)| to - from).sum()
    }

    fn confidence(&self) -> f64 {
        self.detector.verdicts()[0].confidence
    }
}

#[test]
fn one_queue_is_found_within_seconds() {
    let run = Run::new(2, 30_000, |id, at| [50.0, 70.0][id as usize] + queue(at, 60.0, ONE));
    let at: Vec<u64> = run.changes.iter().map(|(at, _)| *at).collect();
    // Detection starts at 1 s and the largest lag, 0.4 s; pieces of evidence of 0.3 s follow.
    assert!(at.len() == 2 && (3_000..7_000).contains(&at[1]), "{at:?}");
    assert!(run.confidence() > 0.99);
}

#[test]
fn two_queues_of_one_kind_are_together_for_less_than_a_tenth_of_the_time() {
    // The worst case: both grow and drain by the same amounts, and from time to time in step
    // for several periods.
    let of = |n: u64| [n << 33, (n + 100) << 41];
    let together = |n| {
        let run = Run::new(2, 100_000, |id, at| 50.0 + queue(at, 60.0, of(n)[id as usize]));
        run.together_ms(100_000)
    };
    let sum: u64 = (0..20).map(together).sum();
    assert!(sum < 20 * 10_000, "{sum} ms of 20 times 100 s");
}

#[test]
fn queues_in_step_are_two_where_a_dip_shows_on_one_path_only() {
    // A quarter less in flight than a round trip of 50 ms and a queue of up to 25 ms hold.
    let delay = |both: bool, seed: u64| {
        move |id, at: f64| {
            let full = 50.0 + queue(at, 25.0, seed);
            let dips = dipping(at).is_some_and(|dipping| both || dipping == id);
            if dips { (0.75 * full).max(50.0) } else { full }
        }
    };
    // The mean over eight runs, in parts of the time.
    let together = |is_told, both| {
        let run = |n: u64| Run::with_dips(is_told, 2, 40_000, delay(both, n << 33)).together_ms(40_000);
        (1..=8).map(run).sum::<u64>() as f64 / 320_000.0
    };
    let [deceived, told, shared] =
        [(false, false), (true, false), (true, true)].map(|(told, both)| together(told, both));
    // No harder case is known: the queues stay in step for ever, and move more than a dip does.
    assert!(deceived > 0.8, "who is not told of the dips: {deceived}");
    assert!(told < 0.2, "{told}");
    assert!(shared > 0.8, "{shared}");
}

#[test]
fn queues_that_grow_alike_and_never_drain_are_no_evidence() {
    let run = Run::new(2, 60_000, |_, at| 50.0 + at / 1000.0);
    assert_eq!(run.changes.len(), 1);
    assert!((run.confidence() - 0.5).abs() < 0.01, "{}", run.confidence());
}

#[test]
fn changes_of_another_size_are_another_queue() {
    let run = Run::new(2, 60_000, |id, at| 50.0 + queue(at, [60.0, 20.0][id as usize], ONE));
    assert_eq!(run.changes.len(), 1, "{:?}", run.changes);
}

#[test]
fn a_path_that_sees_the_queue_later_is_found_where_its_round_trip_is_longer() {
    let behind = |rtt_ms: f64| {
        move |id, at: f64| {
            if id == 0 { 50.0 + queue(at, 60.0, ONE) } else { rtt_ms + queue((at - 400.0).max(0.0), 60.0, ONE) }
        }
    };
    assert_eq!(Run::new(2, 30_000, behind(500.0)).changes.len(), 2);
    assert_eq!(Run::new(2, 30_000, behind(60.0)).changes.len(), 1, "0.4 s cannot come from 10 ms");
}

#[test]
fn where_round_trips_are_long_what_differs_within_one_is_each_paths_own() {
    // Movements over 2 to 4 s are those of one queue or two; a value that is new every tenth of
    // a second is the path's own.
    let slow = |at: f64, of: f64| 25.0 * (libm::sin(at * of / 500.0) + libm::sin(at * of / 350.0));
    let own = |id: u32, at: f64| 30.0 * (draw(draw(at as u64 / 100 * 2 + u64::from(id)) >> 29) >> 32) as f64 / 4e9;
    let found = |rtt_ms: f64, of: [f64; 2]| {
        let run = Run::new(2, 60_000, |id, at| rtt_ms + slow(at, of[id as usize]) + own(id, at));
        run.changes.get(1).map(|(at, _)| *at)
    };
    assert!(found(600.0, [1.0; 2]).is_some_and(|at| at < 20_000), "{:?}", found(600.0, [1.0; 2]));
    assert_eq!([found(200.0, [1.0; 2]), found(600.0, [1.0, 0.8])], [None, None]);
}

/// A full queue with dips of some ms, which it refills a moment later. It drains no faster than
/// time passes, as it is first in, first out.
fn dips(at_ms: u64, seed: u64) -> f64 {
    let (dip, into) = (at_ms / 25, (at_ms % 25) as f64);
    let depth = 8.0 * (draw(draw(dip ^ seed) >> 7) >> 32) as f64 / f64::from(u32::MAX);
    20.0 - into.min(depth * (25.0 - into) / (25.0 - depth))
}

/// Two paths that each send every 12 to 29 ms, at moments of their own. Returns when they are
/// found to share, and the confidence at the end.
fn within_spans(is_saturated: bool, seeds: [u64; 2]) -> (Option<u64>, f64) {
    let mut detector = Concordance::default();
    (0..2).for_each(|id| detector.on_path_opened(path(id), Timestamp::ZERO));
    let (mut leaves, mut found, mut state) = ([0, 4], None, 5u64);
    for at in 0..20_000u64 {
        for id in 0..2 {
            if leaves[id] != at {
                continue;
            }
            state = draw(state);
            leaves[id] = at + 12 + (state >> 33) % 18;
            let delay = dips(at, seeds[id]);
            let now = Timestamp::from_micros(1000 * at + (1000.0 * delay) as u64);
            let one_way = Some(Duration::from_secs_f64(1.0 + delay / 1e3));
            let sample = DelaySample { now, rtt: Duration::from_millis(21), one_way };
            match is_saturated {
                true => detector.on_saturated_sample(path(id as u32), &sample),
                false => detector.on_sample(path(id as u32), &sample),
            }
            if detector.poll(now).is_some_and(|groups| groups.together(path(0), path(1))) {
                found = found.or(Some(at));
            }
        }
    }
    (found, detector.verdicts()[0].confidence)
}

#[test]
fn a_short_queue_that_moves_within_a_span_is_found_by_the_order_of_what_comes() {
    let (found, confidence) = within_spans(true, [ONE, ONE]);
    assert!(found.is_some_and(|at| at < 10_000) && confidence > 0.9, "{found:?} {confidence}");
    let (found, confidence) = within_spans(true, [ONE, OTHER]);
    assert!(found.is_none() && confidence < 0.1, "{found:?} {confidence}");
    // An application that bursts onto all paths at once makes separate queues alike. Then only
    // spans count, and take longer.
    let (found, _) = within_spans(false, [ONE, ONE]);
    assert!(found.is_none_or(|at| at > 10_000), "{found:?}");
}

#[test]
fn a_route_that_changes_is_unlearnt_and_learnt_within_seconds() {
    let seed = |id, at: f64| if id == 1 && (30_000.0..60_000.0).contains(&at) { OTHER } else { ONE };
    let run = Run::new(2, 90_000, |id, at| 50.0 + queue(at, 60.0, seed(id, at)));
    let at: Vec<u64> = run.changes.iter().map(|(at, _)| *at).collect();
    assert_eq!(at.len(), 4, "{at:?}");
    assert!((30_000..40_000).contains(&at[2]) && (60_000..72_000).contains(&at[3]), "{at:?}");
}

#[test]
fn three_paths_of_which_two_share_are_two_groups() {
    let run = Run::new(3, 60_000, |id, at| 50.0 + queue(at, 60.0, [ONE, OTHER, ONE][id as usize]));
    assert_eq!(run.changes.last().unwrap().1, [vec![path(0), path(2)], vec![path(1)]]);
}

#[test]
fn losses_that_meet_are_enough_where_delays_say_nothing() {
    let mut detector = Concordance::default();
    (0..2).for_each(|id| detector.on_path_opened(path(id), Timestamp::ZERO));
    let (mut partitions, mut state) = (Vec::new(), 1u64);
    for at in (0..200_000).step_by(20) {
        state = draw(state);
        (0..2).for_each(|id| detector.on_sample(path(id), &sample(at, 50.0)));
        if state >> 56 == 0 {
            let lost = Lost { now: Timestamp::from_millis(at), bytes: fairpath_core::ByteCount::new(1200) };
            (0..2).for_each(|id| detector.on_loss(path(id), &lost));
        }
        partitions.extend(detector.poll(Timestamp::from_millis(at)));
    }
    assert!(partitions.len() == 2 && partitions[1].together(path(0), path(1)), "{partitions:?}");
}

#[test]
fn the_memory_of_a_path_and_of_a_pair_is_what_the_head_says() {
    let (of_path, of_pair) = (size_of::<Path>(), size_of::<crate::pairs::Pair<Evidence>>());
    assert!(of_path <= 3950 && of_pair <= 2000, "{of_path} and {of_pair}");
}
