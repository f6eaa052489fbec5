//! Applications that fill queues by themselves and let them drain, on two links without other
//! traffic. Whatever both links show at once then is the work of the application, and no shared
//! bottleneck.

use core::time::Duration;

use fairpath_core::{Bitrate, ByteCount, PathId, Timestamp};
use fairpath_engine::EngineConfig;
use fairpath_net::{LinkConfig, QueueConfig};
use fairpath_scenario::{Distribution, PathRoute, Traffic};
use fairpath_sim::{FlowIndex, Recorder, View, run};
use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use crate::common::{Net, ms};

/// For how long the two paths of the first flow are in one group.
#[derive(Default)]
struct Together {
    samples: u32,
    together: u32,
}

impl Recorder for Together {
    fn on_sample(&mut self, _now: Timestamp, view: &View<'_>) {
        let Some(groups) = view.groups(FlowIndex(0)) else { return };
        self.samples += 1;
        self.together += u32::from(groups.together(PathId::new(0), PathId::new(1)));
    }
}

struct Draw(ChaCha12Rng);

impl Draw {
    fn new(seed: u64) -> Self {
        Self(ChaCha12Rng::seed_from_u64(seed))
    }

    fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn log_between(&mut self, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.unit())
    }

    fn seconds(&mut self, low: f64, high: f64) -> Duration {
        Duration::from_secs_f64(self.log_between(low, high))
    }
}

/// The kinds of applications, and the number of seeds for each.
const KINDS: [(&str, u64); 3] = [("a constant rate", 20), ("a rate with pauses", 20), ("live pictures", 40)];

/// The traffic of an application of this kind, with a mean rate of `rate`.
fn application(kind: usize, rate: f64, draw: &mut Draw) -> Traffic {
    let rate = Bitrate::from_bps(rate as u64);
    match kind {
        0 => Traffic::Constant { rate },
        1 => {
            let (on, off) = (draw.seconds(0.05, 5.0), draw.seconds(0.05, 1.0));
            Traffic::OnOff { on, off, distribution: Distribution::Fixed }
        }
        _ => Traffic::Media {
            rate,
            frames_per_second: [25, 30, 50, 60][(draw.unit() * 4.0) as usize],
            key_frame_every: draw.log_between(10.0, 200.0) as u32,
            key_frame_ratio: draw.log_between(1.5, 10.0),
        },
    }
}

/// A link of 3 to 50 Mbit/s, and its rate.
fn link(net: &mut Net, draw: &mut Draw) -> (PathRoute, f64) {
    let rate = draw.log_between(3e6, 50e6);
    let (delay, room) = (draw.seconds(0.005, 0.08), draw.seconds(0.03, 0.4));
    let config = LinkConfig::new(Bitrate::from_bps(rate as u64)).delay(delay).queue(QueueConfig::sojourn(room));
    let (there, back) = (net.link(config), net.link(LinkConfig::pure_delay(delay)));
    (PathRoute { forward: vec![there], backward: vec![back] }, rate)
}

/// The share of 90 s for which two separate links, alike or not, are coupled. The application sends
/// at 0.5 to 1.1 of their common rate. In some runs others' transfers cross each link.
fn together(kind: usize, seed: u64) -> f64 {
    let mut draw = Draw::new(seed);
    let mut net = Net::new(90, seed);
    net.scenario.sample_every = ms(100);
    let is_alike = draw.unit() < 0.5;
    let mut links = || {
        let again = draw.0.clone();
        let first = link(&mut net, &mut draw);
        let mut other = if is_alike { Draw(again) } else { Draw::new(seed ^ 1 << 32) };
        [first, link(&mut net, &mut other)]
    };
    let [(first, first_rate), (second, second_rate)] = links();
    let load = 0.5 + 0.6 * draw.unit();
    let traffic = application(kind, load * (first_rate + second_rate), &mut draw);
    let mut engine = EngineConfig::live();
    if draw.unit() < 0.5 {
        engine.scheduler = "round_robin".into();
    }
    let paths = [first, second];
    net.flow("application", "reno", &paths).as_live(engine).traffic = traffic;
    if draw.unit() < 0.3 {
        for path in &paths {
            let mean_interval = draw.seconds(0.2, 2.0);
            net.flow("others", "reno", std::slice::from_ref(path)).traffic =
                Traffic::ShortFlows { size: ByteCount::new(100_000), mean_interval };
        }
    }
    let mut together = Together::default();
    run(&net.scenario, &mut together).unwrap();
    f64::from(together.together) / f64::from(together.samples)
}

/// A twentieth of the runs of each kind may have a mistake. Were a path that is sent on at a steady rate heard whatever
/// its window does, two links would be one for 0.05 of the time under live pictures.
#[test]
fn what_an_application_does_by_itself_makes_no_bottleneck_in_common() {
    for (kind, (name, runs)) in KINDS.iter().enumerate() {
        let first = 1 + 1_000 * kind as u64;
        let parts: Vec<(u64, f64)> = (first..first + runs).map(|seed| (seed, together(kind, seed))).collect();
        let mean = parts.iter().map(|(_, part)| part).sum::<f64>() / *runs as f64;
        let worst: Vec<&(u64, f64)> = parts.iter().filter(|(_, part)| *part > 0.05).collect();
        println!("{name}: together for {mean:.4} of the time; by seed where it is more than .05: {worst:.3?}");
        assert!(
            mean < 0.035 && worst.len() as u64 * 20 <= *runs,
            "{name}: {mean:.3} of the time; by seed: {worst:.3?}"
        );
    }
}
