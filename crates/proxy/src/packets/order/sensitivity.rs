//! The constants of the order: packets over pairs of paths with each of them halved and doubled.
//!
//! `FAIRPATH_PACKET_ORDER_JSON=FILE cargo test -p fairpath-proxy --lib sensitivity` writes the table.

use super::*;

/// A constant, and how to scale it by a factor.
type Constant = (&'static str, fn(&mut Limits, f64));

const CONSTANTS: &[Constant] = &[
    ("hold max", |limits, times| limits.hold_max = limits.hold_max.mul_f64(times)),
    ("spread min", |limits, times| limits.spread_min = limits.spread_min.mul_f64(times)),
    ("late min", |limits, times| limits.late_min = (limits.late_min as f64 * times) as u64),
    ("epoch", |limits, times| limits.epoch = limits.epoch.mul_f64(times)),
    ("margin", |limits, times| limits.margin *= times),
    ("held max", |limits, times| limits.held_max = (limits.held_max as f64 * times) as usize),
];

const TIMES: [(f64, &str); 2] = [(0.5, "half"), (2.0, "twice")];

/// Random numbers [Steele2014].
struct Luck(u64);

impl Luck {
    /// From 0 up to but not including 1.
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Paths, of which each packet takes one by chance.
struct Network {
    name: &'static str,
    packets_a_second: u32,
    /// How long packets are sent.
    seconds: u32,
    /// How long the second path takes longer than the first, in ms, at this time in seconds.
    longer_ms: fn(f64) -> f64,
    /// The share of packets that take the second path.
    second: f64,
    /// Delays differ by up to this, evenly.
    jitter_ms: f64,
    loss: f64,
}

const TWO: Network = Network {
    name: "",
    packets_a_second: 1_000,
    seconds: 30,
    longer_ms: |_| 25.0,
    second: 0.5,
    jitter_ms: 5.0,
    loss: 0.01,
};

/// Where a constant is a threshold, networks lie on both sides of it.
const NETWORKS: [Network; 10] = [
    Network { name: "25 ms apart", ..TWO },
    // A queue that fills for 12 s and is empty then.
    Network { name: "25 to 85 ms apart, in 12 s", longer_ms: |at| 25.0 + 5.0 * (at % 12.0), ..TWO },
    Network {
        name: "25 ms apart, 85 for a second in 13",
        longer_ms: |at| if at % 13.0 < 1.0 { 85.0 } else { 25.0 },
        ..TWO
    },
    Network { name: "one path, jitter of 4.5 ms", second: 0.0, jitter_ms: 4.5, ..TWO },
    Network { name: "one path, jitter of 3 ms", second: 0.0, jitter_ms: 3.0, ..TWO },
    Network {
        name: "one of 150 is late by 40 ms, 2 % lost",
        longer_ms: |_| 40.0,
        second: 1.0 / 150.0,
        jitter_ms: 0.0,
        loss: 0.02,
        ..TWO
    },
    Network {
        name: "one of 70 is late by 40 ms, 2 % lost",
        longer_ms: |_| 40.0,
        second: 1.0 / 70.0,
        jitter_ms: 0.0,
        loss: 0.02,
        ..TWO
    },
    Network { name: "140 ms apart", longer_ms: |_| 140.0, ..TWO },
    Network { name: "300 ms apart", longer_ms: |_| 300.0, ..TWO },
    Network { name: "25 ms apart, 30,000 packets a second", packets_a_second: 30_000, seconds: 2, ..TWO },
];

/// The share of packets that follow a later one, in per cent, and how long packets are held back, in ms: the mean.
fn run(network: &Network, limits: Limits) -> [f64; 2] {
    let mut luck = Luck(1);
    let begun = Instant::now();
    let count = network.packets_a_second * network.seconds;
    let mut arrivals: Vec<(Instant, u32)> = Vec::new();
    for number in 0..count {
        let at = f64::from(number) / f64::from(network.packets_a_second);
        let [loss, second, jitter] = [(); 3].map(|()| luck.unit());
        let longer = if second < network.second { (network.longer_ms)(at) } else { 0.0 };
        if loss >= network.loss {
            let takes_ms = 10.0 + longer + network.jitter_ms * jitter;
            arrivals.push((begun + Duration::from_secs_f64(at + takes_ms * 1e-3), number));
        }
    }
    arrivals.sort_unstable();
    let mut order = Order::new(limits);
    let (mut highest, mut after, mut held) = (0, 0_u32, Duration::ZERO);
    let mut hand_out = |order: &mut Order<(Instant, u32)>, now: Instant| {
        while let Some((arrived, number)) = order.pop(now) {
            after += u32::from(number < highest);
            highest = highest.max(number);
            held += now - arrived;
        }
    };
    for (now, number) in &arrivals {
        while let Some(due) = order.due().filter(|due| due < now) {
            hand_out(&mut order, due);
        }
        order.take(*number, (*now, *number), *now);
        hand_out(&mut order, *now);
    }
    let all = arrivals.len() as f64;
    [100.0 * f64::from(after) / all, 1e3 * held.as_secs_f64() / all]
}

#[test]
fn half_or_twice_of_each_constant_changes_what_comes_in_order_or_how_long_it_is_held_back() {
    const MEASURES: [(&str, &str); 2] = [("out of order", "%"), ("held back, mean", "ms")];
    let mut lines = Vec::new();
    let mut add = |constant: &str, network: &Network, at: usize, value: f64| {
        let (measure, unit) = MEASURES[at];
        println!("{constant:<18} {:<38} {measure:<16} {value:7.3} {unit}", network.name);
        let what = format!("{constant}: {}, {measure}", network.name);
        lines.push(serde_json::json!({ "what": what, "unit": unit, "value": value }));
    };
    let defaults = NETWORKS.map(|network| {
        let is = run(&network, Limits::DEFAULT);
        (0..2).for_each(|at| add("the default", &network, at, is[at]));
        (network, is)
    });
    for (constant, change) in CONSTANTS {
        for (factor, times) in TIMES {
            let mut limits = Limits::DEFAULT;
            change(&mut limits, factor);
            let mut changes = 0;
            for (network, before) in &defaults {
                let is = run(network, limits);
                // A packet in a thousand, or a tenth of a millisecond.
                for at in (0..2).filter(|at| (is[*at] - before[*at]).abs() >= 0.1) {
                    add(&format!("{constant}, {times}"), network, at, is[at]);
                    changes += 1;
                }
            }
            assert!(changes > 0, "{times} of {constant} changes nothing");
        }
    }
    if let Some(file) = std::env::var_os("FAIRPATH_PACKET_ORDER_JSON") {
        let text = serde_json::to_string_pretty(&lines).expect("it is plain data");
        std::fs::write(&file, text + "\n").unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    }
}
