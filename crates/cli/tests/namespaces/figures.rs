//! The figures of `fairpath serve` and `fairpath proxy`, with programs as people run them, over described links: `make
//! proxy-figures`. Each table is a file that `fairpath lab pages` makes a page of.
//!
//! In the environment, `QUICK=1` takes the short form of each, `ONLY=outage,fair` these tables, `SEEDS=N` that many runs, and
//! `FAIRPATH_FIGURES=DIR` says where the files go.

mod curl;
mod downloads;
mod echo;
mod ends;
mod fair;
mod loopback;
mod outage;
mod peers;
mod processors;
mod profiles;

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use fairpath_core::Bitrate;
use fairpath_emu::{LinkConfig, QueueConfig};
use serde_json::{Value, json};

use crate::described::{Both, Described, INTERFACES, far_address};
use crate::network::run;
use crate::{place, say};

/// A table, and what measures it.
type Table = (&'static str, fn(Form) -> Result<Rows, String>);

const TABLES: &[Table] = &[
    ("downloads", downloads::rows),
    ("outage", outage::rows),
    ("echo", echo::rows),
    ("fair", fair::rows),
    ("loopback", loopback::rows),
    ("profiles", profiles::rows),
    ("peers", peers::rows),
];

/// How much trouble is taken.
#[derive(Clone, Copy)]
struct Form {
    is_quick: bool,
    runs: u64,
}

impl Form {
    /// The first of two for the short form, else the other.
    fn choose<T>(self, quick: T, full: T) -> T {
        if self.is_quick { quick } else { full }
    }

    fn seeds(self) -> impl Iterator<Item = u64> {
        1..=self.runs
    }
}

#[derive(Clone, Copy)]
enum Goal {
    AtLeast(f64),
    AtMost(f64),
    Between(f64, f64),
}

impl Goal {
    fn bounds(self) -> (f64, f64) {
        match self {
            Self::AtLeast(least) => (least, f64::INFINITY),
            Self::AtMost(most) => (f64::NEG_INFINITY, most),
            Self::Between(least, most) => (least, most),
        }
    }
}

/// A figure, with a sample of each run.
struct Row {
    what: String,
    unit: &'static str,
    goal: Option<Goal>,
    samples: Vec<f64>,
}

impl Row {
    fn mean(&self) -> f64 {
        self.samples.iter().sum::<f64>() / self.samples.len() as f64
    }

    fn as_json(&self) -> Value {
        let goal = self.goal.map(|goal| match goal {
            Goal::AtLeast(least) => json!({ "at_least": least }),
            Goal::AtMost(most) => json!({ "at_most": most }),
            Goal::Between(least, most) => json!({ "between": [least, most] }),
        });
        json!({ "what": self.what, "unit": self.unit, "samples": self.samples, "goal": goal })
    }
}

/// The figures of a table, in the order in which they were first seen.
#[derive(Default)]
struct Rows(Vec<Row>);

impl Rows {
    /// Notes what a run has shown.
    fn add(&mut self, what: impl Into<String>, unit: &'static str, goal: impl Into<Option<Goal>>, sample: f64) {
        let what = what.into();
        say(&format!("  {what}: {sample:.3} {unit}"));
        match self.0.iter_mut().find(|row| row.what == what) {
            Some(row) => row.samples.push(sample),
            None => self.0.push(Row { what, unit, goal: goal.into(), samples: vec![sample] }),
        }
    }

    fn print(&self) {
        for row in &self.0 {
            let mean = row.mean();
            let verdict = row.goal.map_or(String::new(), |goal| {
                let (least, most) = goal.bounds();
                format!("{least} to {most}: {}", if (least..=most).contains(&mean) { "holds" } else { "MISSED" })
            });
            say(&format!("{:<78} {mean:>10.3} {:<8} {verdict}", row.what, row.unit));
        }
    }

    fn keep(&self, table: &str, form: Form) {
        let Some(folder) = std::env::var_os("FAIRPATH_FIGURES").map(PathBuf::from) else { return };
        let lines: Vec<Value> = self.0.iter().map(Row::as_json).collect();
        let seeds = if form.runs == 1 { "1".to_owned() } else { format!("1 to {}", form.runs) };
        let kept = json!({ "form": form.choose("quick", "full"), "seeds": seeds, "lines": lines });
        fs::create_dir_all(&folder).unwrap();
        let text = serde_json::to_string_pretty(&kept).expect("plain data");
        fs::write(folder.join(format!("proxy_{table}.json")), text + "\n").unwrap();
    }
}

/// A link that is the same both ways: its rate in Mbit/s, its delay one way, and netem's queue.
fn link(mbps: u64, delay_ms: u64) -> Both {
    let config = LinkConfig::new(Bitrate::from_mbps(mbps)).delay(Duration::from_millis(delay_ms));
    let config = config.queue(QueueConfig::packets(1_000));
    [config.clone(), config]
}

/// The figures stand on this.
#[test]
fn a_described_link_has_its_rate_and_its_delay_for_every_program() {
    let _place = place();
    let described = match Described::new(1, &[link(10, 25)], &[0]) {
        Ok(described) => described,
        Err(reason) => return say(&format!("described links: skipped, {reason}")),
    };
    let Described { near, far, .. } = &described;
    let alone = echo::probes(near, far, 0, Duration::from_secs(1));
    // There and back; no timer is late by more than this, or a measurement says nothing.
    assert!((50.0..100.0).contains(&alone.at(50)), "{} ms", alone.at(50));
    let web = (far_address(0), ends::web(far)).into();
    let rate = curl::download(near, curl::Way::Direct(INTERFACES[0]), web, 1, 2_500_000).unwrap();
    // Two seconds' worth, from the first packet on. Headers alone take a part.
    assert!((6.0..9.7).contains(&rate), "{rate} Mbit/s");
    described.set_link_up(0, false);
    let dark = echo::probes(near, far, 0, Duration::from_millis(300));
    assert_eq!(dark.at(50), f64::INFINITY);
    described.assert_all_fitted();
}

/// For people.
#[test]
#[ignore = "tables; three minutes in the short form, more than an hour in the whole one: `make proxy-figures`"]
fn tables_of_the_proxy() {
    let _place = place();
    if run(&["curl", "--version"]).is_err() {
        return say("figures of the proxy: skipped, there is no `curl` here");
    }
    let said = |name: &str| std::env::var(name).unwrap_or_default();
    let is_quick = !said("QUICK").is_empty();
    let form = Form { is_quick, runs: said("SEEDS").parse().unwrap_or(if is_quick { 1 } else { 5 }) };
    let only = said("ONLY");
    let wanted: Vec<&str> = only.split(',').filter(|name| !name.is_empty()).collect();
    let known = |name: &&str| TABLES.iter().any(|(table, _)| table == name);
    if let Some(other) = wanted.iter().find(|name| !known(name)) {
        panic!(
            "ONLY={other}: there is no such table; there are {}",
            TABLES.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
        );
    }
    for (name, measure) in TABLES.iter().filter(|(name, _)| wanted.is_empty() || wanted.contains(name)) {
        let begun = Instant::now();
        say(&format!("{name}{}", if is_quick { ", short form" } else { "" }));
        match measure(form) {
            Ok(rows) => {
                rows.print();
                rows.keep(name, form);
                say(&format!("{name}: {:.0} s", begun.elapsed().as_secs_f64()));
            }
            Err(reason) => panic!("{name}: {reason}"),
        }
    }
}
