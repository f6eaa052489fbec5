//! Ten servers through one access link: a stream with a path to each of them, beside TCP.
//!
//! # Claim
//!
//! A stream that is connected to ten servers through one interface does not get ten times the throughput of a TCP on the
//! access network.
//!
//! # Topology
//!
//! ```text
//!   server 1 ──── 30 ms ───┐
//!      ...                 ├── 12 Mbit/s, drop-tail ── player, TCPs
//!   server 10 ─── 66 ms ───┘
//!   TCP servers ─ 40 ms ───┘
//! ```
//!
//! # Parameters
//!
//! | parameter | value | from |
//! |---|---|---|
//! | servers | 10 | paper |
//! | access link | 12 Mbit/s, a queue of 100 ms | assumed |
//! | round-trip times | 30, 34 ... 66 ms without the queue | assumed |
//! | jitter | a packet's transmission on each way there | assumed, as [Floyd1992] advises |
//! | TCP | Reno, three, 40 ms | assumed |
//! | the stream | an encoder that follows its budget, 300 ms | assumed |
//! | its paths | each by itself, as single-path equation-based control would have it; one group; or as detected | assumed |
//! | duration | 80 s, of which the first 20 are left out | assumed |
//!
//! # Deviations
//!
//! - The paper says so in words and measures nothing.
//! - The quick form lasts 30 s, of which the first 10 are left out.

use core::time::Duration;

use fairpath_core::Bitrate;
use fairpath_engine::{Coupling, EngineConfig};
use fairpath_net::{LinkConfig, QueueConfig};
use fairpath_scenario::{PathRoute, Scenario, Traffic};
use fairpath_sim::SimError;

use super::live::{Policy, live};
use crate::{Cell, Context, Experiment, Failure, Net, Report, Table, Verdict, engine, ms};

pub(super) const EXPERIMENT: Experiment = Experiment::new("tfrc_multipath/servers", include_str!("servers.rs"), run);

const SERVERS: u64 = 10;
const TCPS: usize = 3;
/// By how much the stream may be above: a TCP's own rate over a minute is known to about a tenth.
const MARGIN: f64 = 1.1;

const APART: &str = "each by itself";
const COUPLINGS: [(Coupling, &str); 3] =
    [(Coupling::Never, APART), (Coupling::Always, "one group"), (Coupling::Auto, "as detected")];

/// How the stream's paths are taken, and from when to when it is measured.
#[derive(Clone, Copy, Debug)]
struct Case {
    coupling: Coupling,
    times: (Duration, Duration),
}

impl Case {
    fn scenario(&self, seed: u64) -> Scenario {
        let mut net = Net::new("ten servers", seed, self.times.0, self.times.1);
        let rate = Bitrate::from_mbps(12);
        let access = net.link("access", LinkConfig::new(rate).queue(QueueConfig::sojourn(ms(100))));
        let mut way = |name: &str, rtt: u64| {
            let half = LinkConfig::pure_delay(ms(rtt) / 2);
            // A packet of 1,500 bytes takes 1 ms over the access link.
            let there = net.link(&format!("{name} there"), half.clone().jitter(ms(1)));
            let back = net.link(&format!("{name} back"), half);
            PathRoute { forward: vec![there, access], backward: vec![back] }
        };
        let paths: Vec<PathRoute> = (0..SERVERS).map(|at| way(&format!("server {at}"), 30 + 4 * at)).collect();
        let others: Vec<PathRoute> = (0..TCPS).map(|at| way(&format!("TCP {at}"), 40)).collect();
        let config = EngineConfig { coupling: self.coupling, ..EngineConfig::live() };
        net.live("stream", config, &paths).traffic = Traffic::Live(live(Policy::Best, None, ms(300)));
        for route in &others {
            net.flow("tcp", engine("reno"), core::slice::from_ref(route)).start_jitter = ms(1_000);
        }
        net.scenario
    }

    /// The rates of the stream and of a TCP, as they arrive, in Mbit/s.
    fn run(&self, seed: u64) -> Result<[f64; 2], SimError> {
        let outcome = fairpath_sim::run(&self.scenario(seed), &mut ())?;
        let stream = outcome.flows[0].paths.iter().map(|path| path.goodput.as_mbps_f64()).sum();
        Ok([stream, outcome.mean_goodput("tcp").as_mbps_f64()])
    }
}

fn run(context: &Context) -> Result<Report, Failure> {
    let times = context.pick((10, 30), (20, 80));
    let times = (Duration::from_secs(times.0), Duration::from_secs(times.1));
    let cases = COUPLINGS.map(|(coupling, _)| Case { coupling, times });
    let seen = context.sweep(&cases, &context.seeds(context.pick(4, 10)), Case::run)?;
    let columns = [("stream", "Mbit/s"), ("a TCP", "Mbit/s"), (RATIO, "")];
    let mut table =
        Table::new("servers", "A stream over ten paths through one link, beside TCPs", &["paths"], &columns);
    for ((_, name), runs) in COUPLINGS.iter().zip(&seen) {
        let of = |who: usize| Cell::of(runs.iter().map(|run| run[who]));
        let ratio = of(0).estimate() / of(1).estimate();
        table.row([name], [of(0), of(1), ratio.into()]);
    }
    let of = |name: &str| table.estimate(&[name], RATIO);
    let mut fair =
        Verdict::new("not ten times", "Where its paths share the access link a stream takes no more than a TCP.");
    for (_, name) in &COUPLINGS[1..] {
        fair = fair.at_most(&format!("{name}: stream / a TCP"), of(name), MARGIN);
    }
    let verdicts = vec![
        fair.because("Until a bottleneck is found each path has a TCP's share of its own."),
        Verdict::new("unfair by itself", "With single-path control on each path it takes many times what a TCP does.")
            .at_least("each by itself: stream / a TCP", of(APART), 3.0)
            .because("Ten flows of the equation share one queue, and each meets more loss events than one would."),
    ];
    Ok(Report { tables: vec![table], verdicts, ..Report::default() })
}

const RATIO: &str = "stream / a TCP";
