//! The treatment of ill paths, by a host that looks every 50 ms.

use core::time::Duration;

use fairpath_engine::health::{
    Action, CloseReason, Condition, HealthParameters, PathHealth, Signs, best_rank, treatment,
};
use fairpath_engine::{BackupReason, EngineConfig, Liveness, PathId, PathSnapshot, Timestamp};
use proptest::prelude::*;

const LOOK_MS: u64 = 50;

/// How often a peer says something while data flows.
const SIGNS: Option<Duration> = Some(Duration::from_millis(150));

/// The behaviour of a path.
#[derive(Clone, Copy, Debug)]
struct Way {
    /// Whether packets arrive from the peer, and at the peer.
    comes: bool,
    goes: bool,
    /// Whether the acknowledgements of what is sent on it come back.
    is_acknowledged: bool,
}

const WELL: Way = Way { comes: true, goes: true, is_acknowledged: true };
const CUT: Way = Way { comes: false, goes: false, is_acknowledged: false };

/// Paths under one host.
struct Host {
    paths: Vec<PathHealth<u8>>,
    counts: Vec<(u64, u64)>,
    arrived_at: Vec<Option<Timestamp>>,
    proven_at: Vec<Timestamp>,
    template: PathSnapshot,
    now_ms: u64,
}

impl Host {
    fn new(paths: u8) -> Self {
        let mut engine = EngineConfig::default().build().unwrap();
        let id = PathId::new(0);
        engine.on_path_opened(id, fairpath_engine::ByteCount::new(1_200), Timestamp::ZERO);
        let start = Timestamp::from_secs(1);
        let open = |path| {
            let mut health = PathHealth::new(&HealthParameters::default(), start);
            health.on_first(path, start);
            health
        };
        Self {
            paths: (0..paths).map(open).collect(),
            counts: vec![(0, 0); paths.into()],
            arrived_at: vec![None; paths.into()],
            proven_at: vec![start; paths.into()],
            template: engine.snapshot(id, Timestamp::ZERO).unwrap(),
            now_ms: 1_000,
        }
    }

    /// Looks once, with data flowing, and does what is to be done. Gives what that is.
    fn look(&mut self, ways: &[Way], signs_every: Option<Duration>) -> Vec<(usize, Action)> {
        self.now_ms += LOOK_MS;
        let now = Timestamp::from_millis(self.now_ms);
        for (at, way) in ways.iter().enumerate() {
            self.counts[at].0 += u64::from(way.comes);
            self.counts[at].1 += 1;
            // A receipt takes any path on which something comes in.
            if way.goes && ways.iter().any(|way| way.comes) {
                self.arrived_at[at] = Some(now);
            }
            if way.goes && way.is_acknowledged {
                self.proven_at[at] = now;
            }
            let proven = now.since(self.proven_at[at]);
            let is_silent = proven > Duration::from_millis(200);
            let liveness = if is_silent { Liveness::Silent } else { Liveness::Alive };
            let snapshot = PathSnapshot { liveness, proven: Some(proven), ..self.template };
            let (datagrams, snapshot) = (Some(self.counts[at]), Some(snapshot));
            self.paths[at].measure(&Signs { datagrams, snapshot, arrived_at: self.arrived_at[at] }, signs_every, now);
        }
        let best = best_rank(self.paths.iter());
        let mut done = Vec::new();
        for at in 0..self.paths.len() {
            let paths: Vec<&PathHealth<u8>> = self.paths.iter().collect();
            for action in treatment(&paths, at, best, true, now) {
                match action {
                    Action::Close(_) => self.paths[at].on_closed(now),
                    Action::SetBackup(backup) => self.paths[at].keep_off(BackupReason::Unwell, backup),
                    Action::OpenBeside | Action::Probe | Action::Resend => {}
                }
                done.push((at, action));
            }
        }
        done
    }

    /// The actions within `time_ms`, probes left out, with their times since the beginning.
    fn run(&mut self, ways: &[Way], signs_every: Option<Duration>, time_ms: u64) -> Vec<(u64, usize, Action)> {
        let begun = self.now_ms;
        let mut all = Vec::new();
        while self.now_ms < begun + time_ms {
            let done = self.look(ways, signs_every);
            let done = done.into_iter().filter(|(_, action)| *action != Action::Probe);
            all.extend(done.map(|(at, action)| (self.now_ms - begun, at, action)));
        }
        all
    }
}

#[test]
fn a_path_that_is_cut_becomes_a_backup_and_is_closed_when_another_has_outlived_it() {
    let mut host = Host::new(2);
    assert_eq!(host.run(&[WELL, WELL], SIGNS, 5_000), []);
    let done = host.run(&[WELL, CUT], SIGNS, 5_000);
    // Ill after 600 ms, when what had arrived is too long ago; closed when ill for 600 ms more.
    let (backup_ms, at, backup) = done[0];
    assert_eq!((at, backup, done[1].2), (1, Action::SetBackup(true), Action::Resend));
    assert!((600..=700).contains(&backup_ms), "{done:?}");
    let (closed_ms, at, closed) = done[2];
    assert!(at == 1 && matches!(closed, Action::Close(CloseReason::Unheard(_))), "{done:?}");
    assert!((1_250..=1_400).contains(&closed_ms), "{done:?}");
    assert_eq!(done.len(), 3, "and nothing more: {done:?}");
}

#[test]
fn a_path_that_works_again_is_no_backup_any_more() {
    let mut host = Host::new(2);
    host.run(&[WELL, CUT], SIGNS, 700);
    let done = host.run(&[WELL, WELL], SIGNS, 5_000);
    assert_eq!(done.iter().map(|(_, at, action)| (*at, *action)).collect::<Vec<_>>(), [(1, Action::SetBackup(false))]);
}

#[test]
fn where_each_direction_has_a_path_of_its_own_none_is_closed_and_data_goes_where_it_arrives() {
    let mut host = Host::new(2);
    host.run(&[WELL, WELL], SIGNS, 5_000);
    let (there, back) = (Way { comes: false, ..WELL }, Way { goes: false, is_acknowledged: false, ..WELL });
    let done = host.run(&[there, back], SIGNS, 60_000);
    assert!(done.iter().all(|(_, _, action)| !matches!(action, Action::Close(_))), "{done:?}");
    assert_eq!([host.paths[0].condition(), host.paths[1].condition()], [Condition::Deaf, Condition::Unacknowledged]);
    assert_eq!([0, 1].map(|at: usize| host.paths[at].backup().is_some()), [false, true]);
}

#[test]
fn where_every_path_is_cut_each_gets_another_beside_it_and_none_is_closed() {
    let mut host = Host::new(2);
    host.run(&[WELL, WELL], SIGNS, 5_000);
    let done = host.run(&[CUT, CUT], SIGNS, 10_000);
    let (first_ms, ..) = *done.iter().find(|(_, _, action)| *action == Action::OpenBeside).expect("one beside");
    assert!((1_600..=1_750).contains(&first_ms), "{first_ms} ms");
    assert!(done.iter().all(|(_, _, action)| *action == Action::OpenBeside), "{done:?}");
}

#[test]
fn a_path_that_takes_no_data_is_closed_after_two_seconds_where_another_works() {
    for (other, is_closed) in [(WELL, true), (CUT, false)] {
        let mut host = Host::new(2);
        let mut closed_ms = None;
        for step in 1..=100 {
            let now = Timestamp::from_millis(host.now_ms);
            host.paths[0].on_refused(now);
            let done = host.look(&[WELL, other], SIGNS);
            if done.iter().any(|(at, action)| *at == 0 && matches!(action, Action::Close(CloseReason::Unvalidated))) {
                closed_ms = Some(step * LOOK_MS);
                break;
            }
        }
        // Until the other is ill it counts as one that works, which takes less than two seconds.
        assert_eq!(closed_ms.is_some(), is_closed, "{closed_ms:?}");
        assert!(closed_ms.is_none_or(|ms| (2_000..=2_200).contains(&ms)), "{closed_ms:?}");
    }
}

#[test]
fn a_path_is_ill_that_was_silent_for_four_signs_of_life() {
    let silent = Way { comes: false, ..WELL };
    for (signs_every, ill_after_ms) in [(SIGNS, 600), (Some(Duration::from_secs(1)), 4_000)] {
        let mut host = Host::new(1);
        let ill = (1..).find(|_| {
            host.look(&[silent], signs_every);
            host.paths[0].condition() != Condition::Healthy
        });
        let ill_ms = ill.expect("some time") * LOOK_MS;
        assert!((ill_after_ms..=ill_after_ms + 100).contains(&ill_ms), "{signs_every:?}: {ill_ms} ms");
    }
    let mut host = Host::new(1);
    host.run(&[silent], None, 60_000);
    assert_eq!(host.paths[0].condition(), Condition::Healthy);
}

#[test]
fn what_the_application_keeps_back_is_a_backup_until_that_is_taken_back() {
    let mut host = Host::new(2);
    let actions = |done: Vec<(u64, usize, Action)>| done.into_iter().map(|(_, _, action)| action).collect::<Vec<_>>();
    host.paths[0].keep_off(BackupReason::Asked, true);
    let done = actions(host.run(&[WELL, WELL], SIGNS, 1_000));
    assert_eq!(done, [Action::SetBackup(true), Action::Resend]);
    host.paths[0].keep_off(BackupReason::Asked, false);
    assert_eq!(actions(host.run(&[WELL, WELL], SIGNS, 1_000)), [Action::SetBackup(false)]);
}

fn way() -> impl Strategy<Value = Way> {
    (any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(comes, goes, acked)| Way {
        comes,
        goes,
        is_acknowledged: acked,
    })
}

proptest! {
    /// Whatever the paths do: where one is closed, another works both ways as far as anybody can tell.
    #[test]
    fn a_path_is_closed_only_while_another_answers(
        phases in prop::collection::vec((prop::collection::vec(way(), 3), 1..60_u64), 1..12),
    ) {
        let mut host = Host::new(3);
        for (ways, looks) in phases {
            for _ in 0..looks {
                let done = host.look(&ways, SIGNS);
                for (at, action) in done {
                    if let Action::Close(_) = action {
                        let others = host.paths.iter().enumerate().filter(|(other, _)| *other != at);
                        prop_assert!(others.filter(|(_, path)| path.answers()).count() > 0, "path {at} at {} ms", host.now_ms);
                    }
                }
            }
        }
    }
}
