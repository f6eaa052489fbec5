//! The pieces of a scenario, drawn from its seed.

use std::time::Duration;

use fairpath_core::{Bitrate, ByteCount};
use fairpath_net::{Impairments, Jitter, Reorder};
use fairpath_quic_sim::{Plan, Side, Skew};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::{FAULT_MAX, FAULTY, Fault, Scheduled};
use crate::wires::{Impair, Wire};

pub(super) fn wire(luck: &mut ChaCha8Rng) -> Wire {
    let rate = Bitrate::from_mbps(luck.random_range(2..=20));
    let delay = Duration::from_millis(luck.random_range(2..=100));
    let queue = rate * Duration::from_millis(luck.random_range(40..=300));
    let loss = if luck.random_bool(0.3) { 0.01 } else { 0.0 };
    Wire { rate, delay, queue, loss, jitter: Jitter::default() }
}

/// Clocks are off by up to an hour, and by the 100 millionths of a poor quartz.
pub(super) fn skew(luck: &mut ChaCha8Rng) -> Skew {
    match luck.random_bool(0.5) {
        true => {
            Skew { ahead: Duration::from_millis(luck.random_range(0..3_600_000)), ppm: luck.random_range(-100..=100) }
        }
        false => Skew::default(),
    }
}

/// One fault of a host.
pub(crate) fn draw_of_host(luck: &mut ChaCha8Rng, whole: usize, faults: &mut Vec<Scheduled>) {
    let at = FAULTY.mul_f64(luck.random());
    let side = if luck.random() { Side::Server } else { Side::Client };
    let time = (FAULT_MAX / 2).mul_f64(luck.random());
    let fault = match luck.random_range(0..6) {
        0 | 1 => Fault::Sleep(side, time),
        2 | 3 => Fault::Jump(side, time),
        4 => Fault::Restart { side, keeps_ports: luck.random() },
        _ => return,
    };
    faults.push(Scheduled { at, fault, whole });
}

/// One fault, with what mends it, where it does not pass by itself.
pub(crate) fn draw(luck: &mut ChaCha8Rng, count: usize, whole: usize, faults: &mut Vec<Scheduled>) {
    let at = FAULTY.mul_f64(luck.random());
    let end = at + FAULT_MAX.mul_f64(luck.random());
    let way = luck.random_range(0..count);
    let mut add = |at: Duration, fault: Fault| faults.push(Scheduled { at, fault, whole });
    match luck.random_range(0..18) {
        0 | 1 => (add(at, Fault::There(way, false)), add(end, Fault::There(way, true))).1,
        2 | 3 => (add(at, Fault::Back(way, false)), add(end, Fault::Back(way, true))).1,
        4 | 5 => (add(at, Fault::Both(way, false)), add(end, Fault::Both(way, true))).1,
        6 => (add(at, Fault::All(false)), add(at + (end - at) / 2, Fault::All(true))).1,
        7 => {
            // A link that flaps.
            let pause = Duration::from_millis(luck.random_range(50..1_000));
            for turn in 0..6 {
                add(at + pause * turn, Fault::Both(way, turn % 2 == 1));
            }
        }
        8 => add(at, Fault::Rebind(way)),
        9 => add(at, Fault::RebindAll),
        10 => add(at, Fault::RebindSoftly(way)),
        11 => add(at, Fault::Copy),
        12 => add(at, Fault::Stall(Side::Server, (end - at) / 2)),
        13 => add(at, Fault::Stall(Side::Client, (end - at) / 2)),
        14 => add(at, Fault::Attack),
        kind => {
            let impair = match kind {
                15 => Impair { mtu: Some(ByteCount::new(luck.random_range(1_250..1_400))), ..Impair::default() },
                16 => Impair { delay: Duration::from_millis(luck.random_range(20..500)), ..Impair::default() },
                _ => Impair {
                    loss: luck.random_range(0.0..0.1),
                    passing: Impairments {
                        duplicate: luck.random_range(0.0..0.1),
                        corrupt: luck.random_range(0.0..0.1),
                        reorder: Some(Reorder {
                            share: luck.random_range(0.0..0.2),
                            by: Duration::from_millis(luck.random_range(1..50)),
                        }),
                    },
                    ..Impair::default()
                },
            };
            add(at, Fault::Impair(way, impair));
            add(end, Fault::Impair(way, Impair::default()));
        }
    }
}

/// The streams of a seed, and whether there are records beside them.
pub(super) fn streams(seed: u64) -> (Plan, bool) {
    let mut luck = ChaCha8Rng::seed_from_u64(seed);
    luck.set_stream(2);
    let (count, longest) = match luck.random_range(0..20) {
        0 => (luck.random_range(500..=5_000), 400),
        1..5 => (luck.random_range(30..=300), 20_000),
        _ => (luck.random_range(1..=30), 200_000),
    };
    let by_client = luck.random_range(0..=count);
    let open_max = luck.random_range(1..=200).max(count / 20);
    let by_server = count - by_client;
    (Plan { seed, by_client, by_server, longest, open_max }, !luck.random_bool(0.8))
}
