//! The contract that every detector of the catalogue must keep, whatever happens: random events, drawn by
//! proptest, against each of them.

use core::time::Duration;

use fairpath_core::{ByteCount, DelaySample, Groups, Lost, PathId, Timestamp};
use proptest::prelude::*;

use crate::testing::path;
use crate::{Detector, NAMES, PairVerdict, by_name};

/// The paths that operations speak of; whether they are open is another matter.
const PATHS: u32 = 4;

/// Something that happens.
#[derive(Clone, Debug)]
enum Op {
    Wait {
        millis: u64,
    },
    Open {
        path: u32,
    },
    Close {
        path: u32,
    },
    /// Samples of all open paths for `steps`: a queue that several share, and noise.
    Load {
        shared: [bool; PATHS as usize],
        steps: u64,
        seed: u64,
    },
    Sample {
        path: u32,
        rtt_micros: u64,
        one_way_micros: Option<u64>,
    },
    Lose {
        path: u32,
    },
}

impl Op {
    /// The same on paths that are called otherwise.
    fn relabelled(&self, label: [u32; PATHS as usize]) -> Self {
        let mut op = self.clone();
        match &mut op {
            Self::Wait { .. } => {}
            Self::Open { path } | Self::Close { path } | Self::Sample { path, .. } | Self::Lose { path } => {
                *path = label[*path as usize];
            }
            Self::Load { .. } => {}
        }
        op
    }
}

fn op() -> impl Strategy<Value = Op> {
    let path = 0..PATHS;
    let rtt = prop_oneof![8 => 0u64..400_000, 1 => Just(0), 1 => Just(3_600_000_000)];
    let one_way = prop_oneof![4 => Just(None), 1 => (0u64..200_000).prop_map(Some)];
    let wait = prop_oneof![4 => 0u64..50, 4 => 50u64..2_000, 1 => 2_000u64..10_000, 1 => Just(10_000_000)];
    prop_oneof![
        10 => (path.clone(), rtt, one_way)
            .prop_map(|(path, rtt_micros, one_way_micros)| Op::Sample { path, rtt_micros, one_way_micros }),
        4 => wait.prop_map(|millis| Op::Wait { millis }),
        4 => (prop::array::uniform4(any::<bool>()), 1u64..600, any::<u64>())
            .prop_map(|(shared, steps, seed)| Op::Load { shared, steps, seed }),
        2 => path.clone().prop_map(|path| Op::Lose { path }),
        1 => path.clone().prop_map(|path| Op::Open { path }),
        1 => path.prop_map(|path| Op::Close { path }),
    ]
}

/// Random operations after all paths were opened.
fn ops() -> impl Strategy<Value = Vec<Op>> {
    prop::collection::vec(op(), 1..40).prop_map(|random| {
        let open = (0..PATHS).map(|path| Op::Open { path });
        open.chain(random).collect()
    })
}

/// A detector and what a test must know to judge it.
struct Subject {
    detector: Box<dyn Detector>,
    now: Timestamp,
    /// The id of each path. Loads are drawn by position, and arrive in that order.
    label: [u32; PATHS as usize],
    open: [bool; PATHS as usize],
    groups: Groups,
    partitions: usize,
}

impl Subject {
    fn new(name: &str, label: [u32; PATHS as usize]) -> Self {
        Self {
            detector: by_name(name).unwrap(),
            now: Timestamp::from_secs(1),
            label,
            open: [false; PATHS as usize],
            groups: Groups::default(),
            partitions: 0,
        }
    }

    fn apply(&mut self, op: &Op) {
        let now = self.now;
        match *op {
            Op::Wait { millis } => self.now = now + Duration::from_millis(millis),
            Op::Open { path: id } => {
                self.open[id as usize] = true;
                self.detector.on_path_opened(path(id), now);
            }
            Op::Close { path: id } => {
                self.open[id as usize] = false;
                self.detector.on_path_closed(path(id), now);
            }
            Op::Load { shared, steps, seed } => self.load(shared, steps, seed),
            Op::Sample { path: id, rtt_micros, one_way_micros } => {
                let rtt = Duration::from_micros(rtt_micros);
                let one_way = one_way_micros.map(Duration::from_micros);
                let sample = DelaySample { now, rtt, one_way };
                match one_way {
                    Some(_) => self.detector.on_saturated_sample(path(id), &sample),
                    None => self.detector.on_sample(path(id), &sample),
                }
            }
            Op::Lose { path: id } => self.detector.on_loss(path(id), &Lost { now, bytes: ByteCount::new(1_200) }),
        }
        self.poll();
    }

    /// Twenty milliseconds are a step. The delays come from queues that grow and drain at random.
    fn load(&mut self, shared: [bool; PATHS as usize], steps: u64, seed: u64) {
        let mut queues = [0.0f64; 1 + PATHS as usize];
        let mut state = seed;
        for _ in 0..steps {
            for queue in &mut queues {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                *queue = if state >> 57 == 0 { 0.0 } else { *queue + (state >> 60) as f64 };
            }
            for (what, id) in self.label.into_iter().enumerate() {
                let queue = if shared[what] { queues[0] } else { queues[1 + what] };
                let rtt = Duration::from_secs_f64((50.0 + 10.0 * what as f64 + queue) / 1e3);
                self.detector.on_sample(path(id), &DelaySample { now: self.now, rtt, one_way: None });
            }
            self.now = self.now + Duration::from_millis(20);
            self.poll();
        }
    }

    fn poll(&mut self) {
        if let Some(groups) = self.detector.poll(self.now) {
            self.groups = groups;
            self.partitions += 1;
        }
    }

    fn open_paths(&self) -> Vec<PathId> {
        (0..PATHS).filter(|id| self.open[*id as usize]).map(path).collect()
    }
}

const SAME: [u32; PATHS as usize] = [0, 1, 2, 3];

fn run(name: &str, ops: &[Op], label: [u32; PATHS as usize]) -> Subject {
    let mut subject = Subject::new(name, label);
    ops.iter().for_each(|op| subject.apply(&op.relabelled(label)));
    subject
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn the_partition_is_one_of_exactly_the_open_paths(ops in ops()) {
        for name in NAMES {
            let mut subject = Subject::new(name, SAME);
            for op in &ops {
                subject.apply(op);
                let paths: Vec<PathId> = subject.groups.paths().collect();
                prop_assert_eq!(&paths, &subject.open_paths(), "{}: {:?}", name, op);
                let members: Vec<PathId> = subject.groups.members().concat();
                prop_assert_eq!(members.len(), paths.len(), "{}: a path in two groups", name);
            }
        }
    }

    #[test]
    fn a_partition_is_told_once(ops in ops()) {
        for name in NAMES {
            let mut subject = run(name, &ops, SAME);
            let now = subject.now;
            prop_assert_eq!(subject.detector.poll(now), None, "{}", name);
        }
    }

    #[test]
    fn verdicts_are_probabilities_that_agree_with_the_partition(ops in ops()) {
        for name in NAMES {
            let mut subject = Subject::new(name, SAME);
            for op in &ops {
                subject.apply(op);
                for PairVerdict { paths: (low, high), confidence, together, since } in subject.detector.verdicts() {
                    prop_assert!((0.0..=1.0).contains(&confidence), "{name}: {confidence}");
                    prop_assert_eq!(together, subject.groups.together(low, high), "{}", name);
                    prop_assert!(low < high && since <= subject.now, "{name}");
                    prop_assert!([low, high].iter().all(|path| subject.open_paths().contains(path)), "{name}");
                }
            }
        }
    }

    #[test]
    fn relabelled_paths_relabel_the_answer(ops in ops(), label in Just(SAME).prop_shuffle()) {
        for name in NAMES {
            let (old, new) = (run(name, &ops, SAME).groups, run(name, &ops, label).groups);
            for a in 0..PATHS {
                for b in 0..PATHS {
                    let renamed = new.together(path(label[a as usize]), path(label[b as usize]));
                    prop_assert_eq!(renamed, old.together(path(a), path(b)), "{}: {:?} and {:?}", name, old, new);
                }
            }
        }
    }

    #[test]
    fn a_path_that_is_closed_does_not_matter_to_those_that_stay(ops in ops()) {
        // Path 3 is closed at once, and all that is said of it afterwards is ignored.
        let without: Vec<Op> = ops.iter().filter(|op| !matches!(op, Op::Open { path: 3 })).cloned().collect();
        let mut closed = without.clone();
        closed.insert(0, Op::Open { path: 3 });
        closed.insert(1, Op::Close { path: 3 });
        for name in NAMES {
            prop_assert_eq!(run(name, &closed, SAME).groups, run(name, &without, SAME).groups, "{}", name);
        }
    }

    #[test]
    fn the_same_samples_give_the_same_answer(ops in ops()) {
        for name in NAMES {
            let (first, second) = (run(name, &ops, SAME), run(name, &ops, SAME));
            prop_assert_eq!(format!("{:?}", first.detector), format!("{:?}", second.detector));
            prop_assert_eq!(first.partitions, second.partitions);
        }
    }
}

#[test]
fn samples_of_one_moment_of_one_path_or_of_none_are_taken() {
    for name in NAMES {
        let mut detector = by_name(name).unwrap();
        let sample = |now| DelaySample { now, rtt: Duration::from_millis(50), one_way: None };
        detector.on_sample(path(0), &sample(Timestamp::ZERO));
        assert_eq!(detector.poll(Timestamp::ZERO), None, "{name}: no path is open");
        detector.on_path_opened(path(0), Timestamp::ZERO);
        detector.on_path_opened(path(0), Timestamp::ZERO);
        for _ in 0..1000 {
            detector.on_sample(path(0), &sample(Timestamp::from_secs(7)));
        }
        for now in [7, 8, 100_000_000] {
            detector.poll(Timestamp::from_secs(now));
        }
        detector.on_sample(path(0), &sample(Timestamp::MAX));
        detector.on_path_closed(path(0), Timestamp::MAX);
        let nothing = detector.poll(Timestamp::MAX).expect("the path is gone");
        assert_eq!(nothing.paths().count(), 0, "{name}");
    }
}
