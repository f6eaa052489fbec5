//! What the watchdog does about paths that carry what they are said to.

use fairpath_core::Groups;

use super::*;

const STEP: Duration = Duration::from_millis(20);

/// Paths whose rates, in Mbit/s, depend on which of them carry data.
struct Bench<F> {
    watchdog: Watchdog,
    rates: F,
    delivered: Vec<f64>,
    usable: Vec<bool>,
    groups: Groups,
    now: Timestamp,
}

fn path(at: usize) -> PathId {
    PathId::new(at as u32)
}

impl<F: Fn(&[bool]) -> Vec<f64>> Bench<F> {
    fn new(paths: usize, rates: F) -> Self {
        let mut watchdog = Watchdog::default();
        (0..paths).for_each(|at| watchdog.on_path_opened(path(at)));
        let groups = Groups::singletons((0..paths).map(path));
        Self { watchdog, rates, delivered: vec![0.0; paths], usable: vec![true; paths], groups, now: Timestamp::ZERO }
    }

    fn parked(&self) -> Vec<bool> {
        (0..self.usable.len()).map(|at| self.watchdog.is_parked(path(at))).collect()
    }

    /// Lets so much time pass, and gives for how much of it each path was left alone, in seconds.
    fn run(&mut self, time: Duration, mut act: impl FnMut(&mut Watchdog, Timestamp)) -> Vec<f64> {
        let mut left_alone = vec![0.0; self.usable.len()];
        let end = self.now + time;
        while self.now < end {
            self.now = self.now + STEP;
            let parked = self.parked();
            let carries: Vec<bool> =
                self.usable.iter().zip(&parked).map(|(usable, parked)| *usable && !parked).collect();
            let rates = (self.rates)(&carries);
            for (at, rate) in rates.iter().enumerate() {
                self.delivered[at] += rate * 1e6 / 8.0 * STEP.as_secs_f64();
                left_alone[at] += if parked[at] { STEP.as_secs_f64() } else { 0.0 };
            }
            act(&mut self.watchdog, self.now);
            if self.watchdog.is_due(self.now) {
                let seen = |at: usize| Seen {
                    path: path(at),
                    group: self.groups.of(path(at)),
                    delivered: Bytes::from_f64(self.delivered[at]),
                    usable: self.usable[at],
                    smoothed: Duration::from_millis(50),
                    rate: Some(Bitrate::from_bps((rates[at] * 1e6) as u64)),
                };
                let seen: Vec<Seen> = (0..self.usable.len()).map(seen).collect();
                self.watchdog.look(&seen, self.now);
            }
        }
        left_alone
    }
}

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// The first carries 20 alone and 12 beside the second, which carries 2.
fn harmful(carries: &[bool]) -> Vec<f64> {
    match carries {
        [true, true] => vec![12.0, 2.0],
        [true, false] => vec![20.0, 0.0],
        [false, true] => vec![0.0, 2.0],
        _ => vec![0.0, 0.0],
    }
}

#[test]
fn a_path_that_lowers_the_total_is_parked_and_that_is_said() {
    let mut bench = Bench::new(2, harmful);
    bench.usable[1] = false;
    bench.run(secs(3), |_, _| {});
    bench.usable[1] = true;
    bench.run(secs(5), |_, _| {});
    let parked = bench.watchdog.parked(path(1), bench.now).expect("it is parked");
    assert_eq!((parked.with, parked.without), (Bitrate::from_mbps(14), Bitrate::from_mbps(20)));
    assert!(parked.again_in <= BACKOFF && parked.since < secs(2), "{parked:?}");
    assert_eq!(bench.watchdog.parked(path(0), bench.now), None);
}

/// Beside others one of them has all of it now and then, and the sum swings: each trial costs the share of the path that
/// is left alone.
#[test]
fn paths_of_one_group_are_one_flow_and_do_not_harm_each_other() {
    let left_alone = |groups: Groups| {
        let steps = std::cell::Cell::new(0);
        let rates = |carries: &[bool]| {
            steps.set(steps.get() + 1);
            // Of six seconds the first two.
            let has_all = steps.get() % 300 < 100;
            match carries {
                [true, true] if !has_all => vec![4.5, 4.5],
                _ => vec![10.0, 0.0],
            }
        };
        let mut bench = Bench { groups, ..Bench::new(2, rates) };
        bench.run(secs(60), |_, _| {})[1]
    };
    let both = || [path(0), path(1)];
    assert!(left_alone(Groups::singletons(both())) > 5.0);
    assert_eq!(left_alone(Groups::one(both())), 0.0);
}

#[test]
fn a_path_that_goes_on_harming_is_tried_ever_more_rarely() {
    let mut bench = Bench::new(2, harmful);
    bench.usable[1] = false;
    bench.run(secs(3), |_, _| {});
    bench.usable[1] = true;
    let early = bench.run(secs(20), |_, _| {})[1];
    bench.run(secs(200), |_, _| {});
    let late = bench.run(secs(200), |_, _| {})[1];
    assert!(early > 10.0 && late > 0.95 * 200.0, "parked for {early} of 20 s and {late} of 200 s");
}

#[test]
fn a_path_is_free_when_it_has_ceased_to_harm() {
    let has_ceased = std::cell::Cell::new(false);
    let rates = |carries: &[bool]| match (carries, has_ceased.get()) {
        ([true, true], true) => vec![20.0, 2.0],
        _ => harmful(carries),
    };
    let mut bench = Bench::new(2, rates);
    bench.usable[1] = false;
    bench.run(secs(3), |_, _| {});
    bench.usable[1] = true;
    bench.run(secs(5), |_, _| {});
    assert!(bench.watchdog.is_parked(path(1)));
    has_ceased.set(true);
    bench.run(secs(8), |_, _| {});
    assert!(!bench.watchdog.is_parked(path(1)));
    let again = bench.run(secs(60), |_, _| {})[1];
    assert_eq!(again, 0.0, "and is left in peace");
}

#[test]
fn a_path_whose_harm_never_showed_is_found_where_windows_hold_the_others_back() {
    let mut bench = Bench::new(2, harmful);
    // Between two stops the first path delivers at 20 Mbit/s.
    let act = |watchdog: &mut Watchdog, now: Timestamp| {
        watchdog.on_window_blocked(now);
        if let Some(watched) = watchdog.watched.get_mut(path(0)) {
            let peak = Seen {
                path: path(0),
                group: Groups::default().of(path(0)),
                delivered: Bytes::ZERO,
                usable: true,
                smoothed: Duration::ZERO,
                rate: Some(Bitrate::from_mbps(20)),
            };
            watched.note_rate(&peak, now);
        }
    };
    bench.run(secs(8), act);
    assert!(bench.watchdog.parked(path(1), bench.now).is_some());
}

#[test]
fn a_path_that_only_adds_is_never_left_alone() {
    for second in [0.2, 2.0, 20.0] {
        let rates = move |carries: &[bool]| vec![f64::from(carries[0]) * 20.0, f64::from(carries[1]) * second];
        let mut bench = Bench::new(2, rates);
        bench.usable[1] = false;
        bench.run(secs(3), |_, _| {});
        bench.usable[1] = true;
        assert_eq!(bench.run(secs(100), |_, _| {}), [0.0, 0.0], "{second}");
    }
}

/// The best link has become slower, which nobody is guilty of.
#[test]
fn a_path_that_was_suspected_wrongly_is_used_again_and_left_in_peace_for_longer_and_longer() {
    let is_slower = std::cell::Cell::new(false);
    let rates = |carries: &[bool]| {
        vec![f64::from(carries[0]) * if is_slower.get() { 5.0 } else { 20.0 }, f64::from(carries[1]) * 2.0]
    };
    let mut bench = Bench::new(2, rates);
    bench.run(secs(5), |_, _| {});
    is_slower.set(true);
    let left_alone = bench.run(secs(100), |_, _| {})[1];
    // A trial takes two stretches of half a second, of which the first does not count. It was missed in that, and is left in
    // peace for longer than the old rate is believed.
    assert!((0.9..1.1).contains(&left_alone), "it was tried without, for {left_alone} s");
    assert!(!bench.watchdog.is_parked(path(1)));
}

#[test]
fn a_parked_path_is_tried_at_once_where_the_other_has_lost_most_of_its_rate_or_is_gone() {
    let is_slower = std::cell::Cell::new(false);
    let rates = |carries: &[bool]| match (carries, is_slower.get()) {
        ([a, b], true) => vec![f64::from(*a) * 0.5, f64::from(*b) * 2.0],
        _ => harmful(carries),
    };
    let mut bench = Bench::new(2, rates);
    bench.usable[1] = false;
    bench.run(secs(3), |_, _| {});
    bench.usable[1] = true;
    bench.run(secs(90), |_, _| {});
    assert!(bench.watchdog.parked(path(1), bench.now).is_some_and(|parked| parked.again_in > secs(4)));
    is_slower.set(true);
    bench.run(secs(2), |_, _| {});
    assert!(!bench.watchdog.is_parked(path(1)));

    let mut bench = Bench::new(2, harmful);
    bench.usable[1] = false;
    bench.run(secs(3), |_, _| {});
    bench.usable[1] = true;
    bench.run(secs(5), |_, _| {});
    assert!(bench.watchdog.is_parked(path(1)));
    bench.usable[0] = false;
    bench.run(secs(1), |_, _| {});
    assert!(!bench.watchdog.is_parked(path(1)));
}

#[test]
fn where_the_application_is_the_limit_nobody_is_suspected() {
    // It had much to send, and then little.
    let is_little = std::cell::Cell::new(false);
    let rates = |_: &[bool]| if is_little.get() { vec![1.0, 1.0] } else { vec![20.0, 2.0] };
    let mut bench = Bench::new(2, rates);
    bench.run(secs(5), |_, _| {});
    is_little.set(true);
    let left_alone = bench.run(secs(20), |watchdog, now| {
        watchdog.on_sent(now);
        watchdog.on_nothing_to_send(now);
    });
    assert_eq!(left_alone, [0.0, 0.0]);
}

#[test]
fn a_path_that_goes_takes_its_sentence_along() {
    let mut bench = Bench::new(3, |carries: &[bool]| match carries {
        [_, true, _] => vec![10.0, 1.0, 1.0],
        _ => vec![20.0, 0.0, 1.0],
    });
    bench.usable[1] = false;
    bench.run(secs(3), |_, _| {});
    bench.usable[1] = true;
    bench.run(secs(30), |_, _| {});
    assert!(bench.watchdog.is_parked(path(1)), "the one of three that does harm");
    assert!(!bench.watchdog.is_parked(path(2)));
    bench.watchdog.on_path_closed(path(1));
    assert!(!bench.watchdog.is_parked(path(1)));
}

/// A factor that swings by so much to either side of one, drawn anew every so many steps.
struct Noise {
    random: u64,
    swing: f64,
    every: u32,
    steps: u32,
    factor: f64,
}

impl Noise {
    fn new(seed: u64, swing: f64, every: u32) -> Self {
        Self { random: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1, swing, every, steps: 0, factor: 1.0 }
    }

    fn step(&mut self) -> f64 {
        if self.steps.is_multiple_of(self.every) {
            self.random ^= self.random << 13;
            self.random ^= self.random >> 7;
            self.random ^= self.random << 17;
            let unit = (self.random >> 11) as f64 / (1_u64 << 53) as f64;
            self.factor = 1.0 + self.swing * (2.0 * unit - 1.0);
        }
        self.steps += 1;
        self.factor
    }
}

/// Other flows come and go: what arrives differs by a fifth from one moment to the next, whatever this end does.
#[test]
fn where_the_noise_of_others_is_taken_for_harm_next_to_nothing_is_lost() {
    let mut left_alone = 0.0;
    for seed in 0..20_u64 {
        // Anew each 500 ms, between 0.7 and 1.3.
        let noise = std::cell::RefCell::new(Noise::new(seed, 0.3, 25));
        let rates = |carries: &[bool]| {
            vec![f64::from(carries[0]) * 10.0 * noise.borrow_mut().step(), f64::from(carries[1]) * 0.5]
        };
        let mut bench = Bench::new(2, rates);
        left_alone += bench.run(secs(100), |_, _| {})[1];
    }
    // The path brings 0.5 of 10.5 Mbit/s.
    let lost = left_alone / 2_000.0 * 0.5 / 10.5;
    assert!(lost < 0.01, "{left_alone} of 2,000 s without it cost {lost:.4} of what there was to have");
}

/// A flow of BBR or a few of CUBIC on a link give another flow now a fifth of its share and now nearly two.
#[test]
fn of_paths_that_swing_by_themselves_none_is_left_alone_for_long() {
    for paths in [2, 4] {
        let mut left_alone = 0.0;
        for seed in 0..20_u64 {
            let noise: Vec<Noise> =
                (0..paths as u64).map(|at| Noise::new(paths as u64 * seed + at + 1, 0.8, 50)).collect();
            let noise = std::cell::RefCell::new(noise);
            let rates = |carries: &[bool]| {
                let mut noise = noise.borrow_mut();
                carries
                    .iter()
                    .zip(noise.iter_mut())
                    .map(|(carries, noise)| f64::from(*carries) * noise.step())
                    .collect()
            };
            left_alone += Bench::new(paths, rates).run(secs(100), |_, _| {}).iter().sum::<f64>();
        }
        let lost = left_alone / (2_000.0 * paths as f64);
        assert!(lost < 0.03, "{paths} paths were left alone for {lost:.4} of the time");
    }
}
