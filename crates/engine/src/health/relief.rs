//! Relief: paths that an end which only receives keeps its acknowledgements off.
//!
//! A stack may send the acknowledgements of all paths on one of them, whatever its outgoing queue
//! is like. At one acknowledgement for two packets, 100 Mbit/s of data need 2 Mbit/s, and if they
//! queue, all paths wait. The answers to this end's probes all return one way, that of the peer's
//! acknowledgements. So the round trips of paths differ by as much as their ways out do, queues
//! included. A path whose way out is much slower becomes a backup.
//!
//! If the path of the acknowledgements goes dark, none arrive for any path until that is noticed,
//! and the windows of all paths fill. So a path is doubted if steady data on it breaks off while
//! data goes on coming on another. It is a backup until something comes in on it again. A doubt
//! only moves acknowledgements elsewhere.

use core::time::Duration;

use fairpath_core::{ByteCount, Timestamp};

use super::path_health::PathHealth;
use super::steadiness::SILENCE;
use crate::path::BackupReason::{BrokenOff, Slow};

/// A way out is slow if it takes this much longer than the quickest and a quarter of it. An
/// acknowledgement may be delayed by this much anyway [RFC9000 §18.2, max_ack_delay].
const MUCH: Duration = Duration::from_millis(25);

/// An end with more in flight on a path sends data, beyond signs of life and credit.
const LISTENING_MAX: ByteCount = ByteCount::new(4 * 1_200);

/// Decides which paths are relieved. `listens`: this end sends little, and receives much. `doubts`:
/// a path on which steady data breaks off is relieved, too.
pub fn relieve<'a, P: Copy + PartialEq + 'a>(
    paths: impl Iterator<Item = &'a mut PathHealth<P>>,
    listens: bool,
    doubts: bool,
    now: Timestamp,
) {
    let mut paths: Vec<_> = paths.filter(|path| path.is_open()).collect();
    let listens = listens && paths.iter().all(|path| path.answered_in_flight() <= LISTENING_MAX);
    doubt(&mut paths, listens && doubts, now);
    let of_use = paths.iter().filter(|path| path.answers() && !path.holds(Slow));
    let Some(quickest) = of_use.filter_map(|path| path.round_trip()).min().filter(|_| listens) else {
        return paths.iter_mut().for_each(|path| path.set_relieved(false, now));
    };
    for path in &mut paths {
        let Some(own) = path.round_trip().filter(|_| path.relief_lasts(now) > path.parameters.settled) else {
            continue;
        };
        match path.holds(Slow) {
            false if is_slow(own, quickest) && path.answers() => path.set_relieved(true, now),
            true if is_slow(quickest, own) => path.set_relieved(false, now),
            _ => {}
        }
    }
}

/// Decides which paths are doubted. A doubt outlasts silence on all other paths for a while, since
/// the peer has nothing to send there until acknowledgements arrive again. It must end: each
/// direction may have a path of its own, and then the peer hears this end on the very path that
/// this end does not hear.
fn doubt<P: Copy + PartialEq>(paths: &mut [&mut PathHealth<P>], listens: bool, now: Timestamp) {
    let goes_on = |path: &PathHealth<P>| path.answers() && path.unheard_for(now) < SILENCE;
    let other = paths.iter().position(|path| goes_on(path));
    let mut is_any_doubted = false;
    for path in paths.iter_mut() {
        let stays = path.holds(BrokenOff) && path.unheard_for(now) <= path.parameters.deaf;
        let is_doubted = listens && path.is_broken_off(now) && (other.is_some() || stays);
        path.keep_off(BrokenOff, is_doubted);
        is_any_doubted |= is_doubted;
    }
    // One path has to be left for acknowledgements.
    let is_one_left = paths.iter().any(|path| goes_on(path) && !path.holds(Slow));
    if let Some(other) = other.filter(|_| is_any_doubted && !is_one_left) {
        paths[other].set_relieved(false, now);
    }
}

fn is_slow(one: Duration, other: Duration) -> bool {
    one > other + other / 4 + MUCH
}

#[cfg(test)]
mod tests {
    use fairpath_core::PathId;

    use super::super::path_health::Signs;
    use super::*;
    use crate::config::EngineConfig;
    use crate::engine::PathSnapshot;
    use crate::health_parameters::HealthParameters;
    use crate::path::Liveness;

    const SIGNS: Option<Duration> = Some(Duration::from_millis(150));

    /// Looks every 50 ms, `looks` times, at paths with these round trips and bytes in flight.
    /// Returns which are backups then, and how often that changed.
    fn look(
        paths: &mut [PathHealth<u8>],
        from_ms: u64,
        looks: u64,
        listens: bool,
        seen: impl Fn(u64) -> Vec<(u64, u64)>,
    ) -> (Vec<bool>, usize) {
        let mut engine = EngineConfig::default().build().expect("the default");
        let id = PathId::new(0);
        engine.on_path_opened(id, ByteCount::new(1_200), Timestamp::ZERO);
        engine.on_sent(id, 0, ByteCount::new(1_200), Timestamp::ZERO);
        engine.on_ack(id, 0, Timestamp::from_millis(100));
        engine.on_ack_end(id, Duration::ZERO, Timestamp::from_millis(100));
        let template = engine.snapshot(id, Timestamp::ZERO).expect("a path");
        let mut changes = 0;
        for at in 1..=looks {
            let now = Timestamp::from_millis(from_ms + 50 * at);
            for (path, (rtt_ms, in_flight)) in paths.iter_mut().zip(seen(50 * at)) {
                let mut rtt = template.rtt.expect("a sample");
                rtt.smoothed = Duration::from_millis(rtt_ms);
                let (rtt, in_flight, liveness) = (Some(rtt), ByteCount::new(in_flight), Liveness::Alive);
                let snapshot = Some(PathSnapshot { rtt, in_flight, liveness, ..template });
                let datagrams = Some((from_ms + at, at));
                path.measure(&Signs { datagrams, snapshot, arrived_at: Some(now) }, SIGNS, now);
            }
            let before: Vec<bool> = paths.iter().map(|path| path.holds(Slow)).collect();
            relieve(paths.iter_mut(), listens, true, now);
            changes += paths.iter().zip(before).filter(|(path, before)| path.holds(Slow) != *before).count();
        }
        (paths.iter().map(|path| path.is_unwanted()).collect(), changes)
    }

    fn open(count: u8) -> Vec<PathHealth<u8>> {
        let open = |path| {
            let mut health = PathHealth::new(&HealthParameters::default(), Timestamp::ZERO);
            health.on_first(path, Timestamp::ZERO);
            health
        };
        (0..count).map(open).collect()
    }

    #[test]
    fn a_listener_says_nothing_where_it_would_wait_and_the_quickest_way_out_stays() {
        let mut paths = open(3);
        let (backups, changes) = look(&mut paths, 1_000, 100, true, |_| vec![(270, 80), (55, 1_500), (90, 40)]);
        assert_eq!((backups, changes), (vec![true, false, false], 1), "90 ms are no more than 55 and a quarter and 25");
        // The first path's queue is now empty, and the second one is slow.
        let (backups, _) = look(&mut paths, 6_000, 100, true, |_| vec![(20, 80), (300, 1_500), (310, 40)]);
        assert_eq!(backups, vec![false, true, true]);
    }

    #[test]
    fn a_path_that_breaks_off_is_doubted_while_another_goes_on_and_until_it_is_heard_again() {
        let mut paths = open(2);
        let look = |paths: &mut [PathHealth<u8>], at: u64, heard: [u64; 2], listens: bool| {
            let now = Timestamp::from_millis(50 * at);
            for (path, heard) in paths.iter_mut().zip(heard) {
                path.measure(&Signs { datagrams: Some((heard, at)), ..Signs::default() }, SIGNS, now);
            }
            relieve(paths.iter_mut(), listens, true, now);
            paths.iter().map(|path| path.is_unwanted()).collect::<Vec<_>>()
        };
        for at in 1..=30 {
            assert_eq!(look(&mut paths, at, [at, at], true), [false, false]);
        }
        for (at, doubted) in [(31, false), (32, false), (33, true), (40, true)] {
            assert_eq!(look(&mut paths, at, [30, at], true), [doubted, false], "look {at}");
        }
        assert_eq!(look(&mut paths, 41, [30, 41], false), [false, false], "who sends judges by acknowledgements");
        assert_eq!(look(&mut paths, 42, [30, 42], true), [true, false]);
        assert_eq!(look(&mut paths, 43, [43, 43], true), [false, false], "it is heard again");
        let mut paths = open(2);
        (1..=30).for_each(|at| _ = look(&mut paths, at, [at, at], true));
        assert_eq!(look(&mut paths, 35, [30, 30], true), [false, false], "nothing comes on any: the peer is silent");
    }

    /// Credit is few bytes, but piles up without answers. The sender, whose acknowledgements were
    /// lost, soon sends nothing on the other path either.
    #[test]
    fn a_doubt_stays_for_600_ms_whatever_waits_for_answers_there_and_though_the_other_path_falls_still() {
        let mut engine = EngineConfig::default().build().expect("the default");
        let id = PathId::new(0);
        engine.on_path_opened(id, ByteCount::new(1_200), Timestamp::ZERO);
        let template = engine.snapshot(id, Timestamp::ZERO).expect("a path");
        let mut paths = open(2);
        let look = |paths: &mut [PathHealth<u8>], at: u64, heard: [u64; 2], liveness: Liveness| {
            let now = Timestamp::from_millis(50 * at);
            let in_flight = ByteCount::new(if liveness == Liveness::Alive { 1_000 } else { 6_000 });
            let snapshots = [
                PathSnapshot { in_flight, liveness, ..template },
                PathSnapshot { liveness: Liveness::Alive, ..template },
            ];
            for ((path, heard), snapshot) in paths.iter_mut().zip(heard).zip(snapshots) {
                let signs = Signs { datagrams: Some((heard, at)), snapshot: Some(snapshot), arrived_at: Some(now) };
                path.measure(&signs, SIGNS, now);
            }
            relieve(paths.iter_mut(), true, true, now);
            paths.iter().map(|path| path.is_unwanted()).collect::<Vec<_>>()
        };
        for at in 1..=30 {
            assert_eq!(look(&mut paths, at, [at, at], Liveness::Alive), [false, false]);
        }
        for (at, liveness) in [(31, Liveness::Alive), (32, Liveness::Late)] {
            assert_eq!(look(&mut paths, at, [30, at], liveness), [false, false], "look {at}");
        }
        for (at, is_doubted) in (33..50).map(|at| (at, at <= 42)) {
            assert_eq!(look(&mut paths, at, [30, 33], Liveness::Silent), [is_doubted, false], "look {at}");
        }
    }

    #[test]
    fn who_sends_uses_every_path() {
        let slow = |_| vec![(270, 80), (55, 1_500)];
        for (listens, seen) in [(false, 1_500), (true, 20_000)] {
            let mut paths = open(2);
            assert_eq!(look(&mut paths, 3_000, 20, true, slow).0, vec![true, false]);
            let (backups, _) = look(&mut paths, 4_000, 1, listens, |_| vec![(270, 80), (55, seen)]);
            assert_eq!(backups, vec![false; 2], "listens: {listens}, {seen} bytes in flight");
        }
    }

    #[test]
    fn where_no_way_out_carries_acknowledgements_they_change_it_every_two_seconds_at_most() {
        let mut paths = open(2);
        // The path of the acknowledgements takes 400 ms, the other one 40 ms.
        let wavering =
            |ms: u64| if (ms / 100).is_multiple_of(2) { vec![(400, 40), (40, 40)] } else { vec![(40, 40), (400, 40)] };
        let (_, changes) = look(&mut paths, 1_000, 400, true, wavering);
        assert!(changes <= 21, "{changes} in 20 s");
    }
}
