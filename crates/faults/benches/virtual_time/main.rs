//! How fast virtual time runs: both ends of a connection over two wires of 50 Mbit/s, with the cryptography of the
//! product and without any, beside the stack by itself over one wire of 100.

mod stack;

use std::fs;
use std::time::Duration;

use fairpath_faults::{Cryptography, Wire, World};
use fairpath_quic_core::EngineConfig;
use stack::Stack;

/// How much virtual time a run takes.
const TIME: Duration = Duration::from_secs(60);

/// The number of runs; the median is shown.
const RUNS: u64 = 3;

struct Run {
    packets: u64,
    cpu: Duration,
}

impl Run {
    fn packets_per_second(&self) -> f64 {
        self.packets as f64 / self.cpu.as_secs_f64()
    }
}

/// The processor's time that this thread has had; `None` where the system does not say.
fn cpu_time() -> Option<Duration> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(Duration::from_nanos(text.split_whitespace().next()?.parse().ok()?))
}

/// The stack under test.
#[derive(Clone, Copy)]
enum Runner {
    Fairpath,
    /// noq-proto, and nothing else.
    Stack,
}

/// The packets of a run, and the processor's time for them. Beginnings do not count.
fn measure<T>(mut of: T, packets: impl Fn(&T) -> u64, run_for: impl Fn(&mut T, Duration)) -> Option<Run> {
    let (before, begun) = (packets(&of), cpu_time()?);
    run_for(&mut of, TIME);
    Some(Run { packets: packets(&of) - before, cpu: cpu_time()? - begun })
}

fn run(runner: Runner, cryptography: Cryptography, seed: u64) -> Option<Run> {
    match runner {
        Runner::Fairpath => {
            let wires = [Wire::new(50, 10), Wire::new(50, 10)];
            let mut world =
                World::protected_by(cryptography, &wires, &EngineConfig::live(), seed).opened().without_trace();
            world.client.send(u64::MAX);
            measure(world, World::packets, World::run_for)
        }
        Runner::Stack => {
            let mut stack = Stack::new(cryptography, seed)?;
            stack.run_for(Duration::from_secs(1));
            measure(stack, Stack::packets, Stack::run_for)
        }
    }
}

fn main() {
    println!("{:<10} {:<6} {:>9} {:>7} {:>12} {:>11}", "", "", "packets", "CPU s", "packets/CPU s", "× real time");
    let rows = [Cryptography::Tls, Cryptography::Null];
    let rows =
        rows.into_iter().flat_map(|row| [(Runner::Fairpath, "fairpath", row), (Runner::Stack, "noq-proto", row)]);
    for (runner, name, cryptography) in rows {
        let runs: Option<Vec<_>> = (0..RUNS).map(|seed| run(runner, cryptography, seed)).collect();
        let Some(mut runs) = runs else { return println!("the system does not say what time the processor took") };
        runs.sort_by(|a, b| a.packets_per_second().total_cmp(&b.packets_per_second()));
        let middle = &runs[runs.len() / 2];
        println!(
            "{:<10} {:<6} {:>9} {:>7.2} {:>12.0} {:>11.1}",
            name,
            format!("{cryptography:?}").to_lowercase(),
            middle.packets,
            middle.cpu.as_secs_f64(),
            middle.packets_per_second(),
            TIME.as_secs_f64() / middle.cpu.as_secs_f64()
        );
    }
}
