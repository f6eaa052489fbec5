//! The same seed gives the same packets, byte for byte.

use std::thread;

use fairpath_faults::{Failure, Scenario};

const SEEDS: std::ops::Range<u64> = 0..10;

fn trace(seed: u64) -> Result<blake3::Hash, Failure> {
    Scenario::of(seed).run().map(|outcome| outcome.trace)
}

/// The second time in other threads and in the opposite order, so that neither what ran before nor what runs
/// beside it may matter.
#[test]
fn a_seed_gives_the_same_trace_each_time() {
    let first: Vec<_> = SEEDS.map(trace).collect();
    let again = thread::scope(|scope| {
        let runs: Vec<_> = SEEDS.rev().map(|seed| scope.spawn(move || trace(seed))).collect();
        runs.into_iter().rev().map(|run| run.join().expect("no panic")).collect::<Vec<_>>()
    });
    for ((seed, first), again) in SEEDS.zip(first).zip(again) {
        assert_eq!(first, again, "seed {seed}");
    }
}

#[test]
fn two_seeds_give_different_traces() {
    assert_ne!(trace(1), trace(2));
}
