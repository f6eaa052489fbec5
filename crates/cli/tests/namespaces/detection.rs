//! The detector over links of the kernel, behind short queues and long ones, and on hosts that are busy: the network of
//! `kernel`, with one CUBIC flow of the kernel on each narrow link.

use std::net::Ipv4Addr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::kernel::{Crossing, OURS, PATIENCE, RECEIVERS, RIVALS, Tcp};
use crate::{place, say};

/// How long the connection runs. Its share is measured from a quarter of that on. Behind a queue without jitter two flows
/// take turns of some seconds, so shares are those of a minute (docs/design/default-controller.md).
const TIME: Duration = Duration::from_secs(20);

/// A shared link is to be found within this.
const SOON_S: f64 = 10.0;

/// A verdict that is this sure, and wrong, is a wrong one.
const SURE: f64 = 0.9;

/// Processes that have as much to do as there is, until they are dropped.
struct Busy(Vec<Child>);

impl Busy {
    fn start(count: usize) -> Self {
        // Each ends by itself if this test is killed.
        let spin = ["-c", "ulimit -t 60; while :; do :; done"];
        let one = || Command::new("sh").args(spin).stdin(Stdio::null()).spawn().expect("a shell");
        Self((0..count).map(|_| one()).collect())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Cell {
    queue_ms: u64,
    is_shared: bool,
    busy: usize,
    time: Duration,
}

/// The result of a cell.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// After how many seconds the paths were found to share a link.
    found: Option<f64>,
    /// For which part of the time a wrong verdict was sure.
    wrong: f64,
    /// Our rate, over what arrived of the kernel's flows.
    share: f64,
}

impl Cell {
    fn run(self) -> Result<Seen, String> {
        let (time, from) = (self.time, self.time / 4);
        let (crossing, rivals) = self.rivals()?;
        let theirs = || received(&rivals);
        let _busy = Busy::start(self.busy);
        let (_server, mut client) = crossing.perf(time, &["--via", "one", "--via", "two"]);
        let begun = Instant::now();
        std::thread::sleep(from.saturating_sub(begun.elapsed()));
        let before = theirs();
        std::thread::sleep(time.saturating_sub(begun.elapsed()));
        let theirs_bps = (theirs() - before) as f64 * 8.0 / (time - from).as_secs_f64();
        let status = client.end(PATIENCE);
        assert!(status.success(), "{}", client.said());
        let said = serde_json::from_str(&client.printed()).expect("JSON");
        let is_wrong = |confidence: f64| if self.is_shared { confidence < 1.0 - SURE } else { confidence > SURE };
        let (mut wrong, mut ours_bps, mut late) = (0, 0.0, 0);
        for interval in intervals(&said) {
            wrong += usize::from(pairs(interval).any(|pair| is_wrong(pair["confidence"].as_f64().expect("a number"))));
            if interval["end_s"].as_f64().expect("a time") > from.as_secs_f64() + 0.5 {
                let paths = interval["paths"].as_array().expect("paths").iter();
                ours_bps += paths.map(|path| path["rate_bps"].as_f64().expect("a rate")).sum::<f64>();
                late += 1;
            }
        }
        let wrong = wrong as f64 / intervals(&said).len() as f64;
        Ok(Seen { found: first_found(&said), wrong, share: ours_bps / f64::from(late) / theirs_bps })
    }

    /// The network, with flows of the kernel that are under way.
    fn rivals(self) -> Result<(Crossing, Vec<Tcp>), String> {
        let crossing = Crossing::new(self.queue_ms, self.is_shared)?;
        let rivals = self.flows(&crossing, &crossing.rival, RIVALS)?;
        std::thread::sleep(Duration::from_secs(2));
        Ok((crossing, rivals))
    }

    /// A flow of the kernel on each narrow link, from these addresses in a namespace.
    fn flows(self, crossing: &Crossing, namespace: &str, from: [Ipv4Addr; 2]) -> Result<Vec<Tcp>, String> {
        let places = from.into_iter().zip(RECEIVERS).take(if self.is_shared { 1 } else { 2 });
        places.map(|(from, to)| Tcp::start(crossing, namespace, [from, to], "cubic", false)).collect()
    }

    /// The share of flows of the kernel that come in our place, as late as we do: behind long queues all who come late win
    /// their share for longer than this table takes. One where both paths share a link, else one on each.
    fn share_of_kernel(self) -> Result<f64, String> {
        let (crossing, rivals) = self.rivals()?;
        let _busy = Busy::start(self.busy);
        let flows = self.flows(&crossing, &crossing.sender, OURS)?;
        std::thread::sleep(self.time / 4);
        let before = [received(&flows), received(&rivals)];
        std::thread::sleep(self.time - self.time / 4);
        let [ours, theirs] = [received(&flows) - before[0], received(&rivals) - before[1]];
        Ok(ours as f64 / theirs as f64)
    }
}

fn received(flows: &[Tcp]) -> u64 {
    flows.iter().map(Tcp::received).sum()
}

fn intervals(said: &Value) -> &Vec<Value> {
    said["intervals"].as_array().expect("intervals")
}

fn pairs(interval: &Value) -> impl Iterator<Item = &Value> {
    interval["pairs"].as_array().expect("pairs").iter()
}

/// By the account of `fairpath perf`, after how many seconds two paths were found to share a link.
pub(crate) fn first_found(said: &Value) -> Option<f64> {
    let mut shared = intervals(said).iter().flat_map(pairs).filter(|pair| pair["shared"] == true);
    shared.next().and_then(|pair| pair["since_seconds"].as_f64())
}

/// For people. `RUNS` in the environment is how many runs each cell has, `BUSY` how many busy processes there are,
/// `QUEUES` how long queues are, in ms, and `SECONDS` how long a run takes. `SHARED=1` leaves out the links that are
/// separate.
#[test]
#[ignore = "a table; half an hour of real time for each run of a cell"]
fn table_of_detection() {
    let _place = place();
    let runs = std::env::var("RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(1);
    let numbers = |name: &str, all: &[u64]| match std::env::var(name) {
        Ok(given) => given.split(',').map(|one| one.parse().expect("a number")).collect(),
        Err(_) => all.to_vec(),
    };
    let (busy, queues) = (numbers("BUSY", &[0, 2, 4, 8]), numbers("QUEUES", &[20, 50, 100, 200]));
    let time = Duration::from_secs(numbers("SECONDS", &[TIME.as_secs()])[0]);
    let kinds: &[bool] = if std::env::var_os("SHARED").is_some() { &[true] } else { &[true, false] };
    let cells = busy.into_iter().flat_map(|busy| queues.iter().map(move |queue_ms| (busy as usize, *queue_ms)));
    let mut wrong = Vec::new();
    for (busy, queue_ms) in cells {
        for &is_shared in kinds {
            let cell = Cell { queue_ms, is_shared, busy, time };
            for _ in 0..runs {
                let both = cell.run().and_then(|seen| Ok((seen, cell.share_of_kernel()?)));
                match both {
                    Err(reason) => return say(&format!("detection over the kernel: skipped, {reason}")),
                    Ok((seen, kernel)) => {
                        let soon = seen.found.is_some_and(|at| at <= SOON_S);
                        let Seen { found, wrong: part, share } = seen;
                        let mark = if soon == is_shared { "" } else { " ✗" };
                        say(&format!(
                            "{cell:?}: found {found:.1?}, wrong for {part:.2}, share {share:.2}, two TCPs {kernel:.2}{mark}"
                        ));
                        wrong.push(part);
                    }
                }
            }
        }
    }
    let mean = wrong.iter().sum::<f64>() / wrong.len() as f64;
    say(&format!("surely wrong for {mean:.4} of the time, over all cells"));
}
