//! Results of the benches of criterion, as reports.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::figures;
use crate::made::{Made, Maker};
use crate::stored_report::StoredReport;
use crate::table::{Cell, Table};
use crate::{Description, Estimate, Report, Verdict};

/// A bench, and what is asked of it.
struct Bench {
    /// The folder below that of criterion's results: the crate.
    key: &'static str,
    title: &'static str,
    claim: &'static str,
    /// Rows, as criterion names them, and how many nanoseconds they may take.
    goals: &'static [(&'static str, f64)],
    /// Why goals are missed, where they are: one sentence. Empty where none was ever missed.
    reason: &'static str,
    claims: &'static [Claim],
}

/// The name of a paper's claim, the claim, and what is compared for it.
type Claim = (&'static str, &'static str, &'static [Compared]);

/// A cost that a paper speaks of.
enum Compared {
    /// One row takes more than another.
    Dearer(Dearer),
    /// The row takes so many nanoseconds at most.
    AtMost(&'static str, f64),
}

/// One row that is said to take more than another.
struct Dearer {
    what: &'static str,
    rows: [&'static str; 2],
    /// How often each of them happens, in a second; 1 where one is compared with one.
    per_second: [f64; 2],
}

/// [TR2018 §5.1]: SSC runs every 350 ms, TR every five seconds.
const SSC_AND_TR: &[Compared] = &[
    Compared::Dearer(Dearer {
        what: "a sample, SSC / TR",
        rows: ["ssc_rfc8382/2 paths", "trendline/2 paths"],
        per_second: [1.0; 2],
    }),
    Compared::Dearer(Dearer {
        what: "the decisions of a second, SSC / TR",
        rows: ["decision/ssc_rfc8382", "decision/trendline"],
        per_second: [1.0 / 0.35, 1.0 / 5.0],
    }),
];

/// [Pluntke2011 §3]: in the timescale of milliseconds, that is less than ten.
const IN_MILLISECONDS: &[Compared] =
    &[Compared::AtMost("best rates, 8 paths", 1e7), Compared::AtMost("linear program, 8 paths", 1e7)];

const BENCHES: &[Bench] = &[
    Bench {
        key: "cc",
        title: "One acknowledgement in congestion avoidance, all paths coupled",
        claim: "The default takes at most 50 ns with two paths and 150 ns with eight.",
        goals: &[("default/2 paths", 50.0), ("default/8 paths", 150.0)],
        reason: "Coupled CUBIC looks at the windows of its whole group with each acknowledgement, and the default asks which \
                 losses are congestion, too: the rows of `cubic` and `coupled_cubic` show the parts.",
        claims: &[],
    },
    Bench {
        key: "sbd",
        title: "One delay sample and the poll after it, and one decision of two paths",
        claim: "The detector of the default takes at most 100 ns for a sample.",
        goals: &[("concordance/2 paths", 100.0), ("concordance/8 paths", 100.0)],
        reason: "",
        claims: &[("SSC costs more", "There is more computation in SSC than in TR.", SSC_AND_TR)],
    },
    Bench {
        key: "rate",
        title: "The best TCP-friendly rates of a stream",
        claim: "The optimum takes at most 5 µs for eight paths and 1 ms for a thousand.",
        goals: &[("best rates, 8 paths", 5e3), ("best rates, 1000 paths", 1e6)],
        reason: "",
        claims: &[(
            "in milliseconds",
            "The optimisation problem is linear and is solved in the timescale of milliseconds.",
            IN_MILLISECONDS,
        )],
    },
    Bench {
        key: "engine",
        title: "The path of the next packet",
        claim: "The default scheduler takes at most 60 ns with two paths and 200 ns with eight.",
        goals: &[("arrival, 2 paths, after a packet", 60.0), ("arrival, 8 paths, after a packet", 200.0)],
        reason: "After each event the view of a path is drawn anew: the rows of `round_robin`, which compares nothing, show what \
                 that takes of it.",
        claims: &[],
    },
    Bench {
        key: "net",
        title: "A packet over a link, and over a network",
        claim: "No goal is set.",
        goals: &[],
        reason: "",
        claims: &[],
    },
];

/// The names of the reports over benches.
pub fn bench_names() -> impl Iterator<Item = String> {
    BENCHES.iter().map(|bench| format!("bench/{}", bench.key)).chain(figures::names())
}

#[derive(Deserialize)]
struct Named {
    full_id: String,
}

#[derive(Deserialize)]
struct Estimates {
    mean: Measured,
}

#[derive(Deserialize)]
struct Measured {
    point_estimate: f64,
    confidence_interval: Interval,
}

#[derive(Deserialize)]
struct Interval {
    lower_bound: f64,
    upper_bound: f64,
}

/// Reports over what criterion has left below `results`, where each crate's bench has a folder of its own, and over
/// the figures that other benches have written there.
pub fn bench_reports(results: &Path, maker: &Maker) -> Vec<StoredReport> {
    let by_criterion = BENCHES.iter().filter_map(|bench| report(bench, &results.join(bench.key), maker));
    by_criterion.chain(figures::reports(results, maker)).collect()
}

fn report(bench: &Bench, folder: &Path, maker: &Maker) -> Option<StoredReport> {
    let rows = rows(folder);
    if rows.is_empty() {
        return None;
    }
    let mut table = Table::new("times", "Times", &["what"], &[("mean", "ns")]);
    rows.iter().for_each(|(name, time)| table.push(&[name], &[Cell::from(time.clone())]));
    let mut verdict = Verdict::ours("goals", bench.claim);
    for (name, most) in bench.goals {
        verdict = verdict.at_most(name, table.estimate(&[name], "mean"), *most);
    }
    if !bench.reason.is_empty() {
        verdict = verdict.because(bench.reason);
    }
    let mut verdicts = if bench.goals.is_empty() { Vec::new() } else { vec![verdict] };
    verdicts.extend(bench.claims.iter().map(|claim| claimed(&table, claim)));
    let Maker { commit, machine } = maker.clone();
    let command = format!("cargo bench -p fairpath-{}", bench.key);
    Some(StoredReport {
        experiment: format!("bench/{}", bench.key),
        effort: "bench".to_owned(),
        description: Description {
            title: bench.title.to_owned(),
            claim: bench.claim.to_owned(),
            ..Description::default()
        },
        report: Report { tables: vec![table], verdicts, ..Report::default() },
        made: Some(Made { command, seeds: String::new(), commit, machine }),
    })
}

fn claimed(table: &Table, (name, claim, compared): &Claim) -> Verdict {
    compared.iter().fold(Verdict::new(name, claim), |verdict, one| match one {
        Compared::Dearer(one) => {
            let [more, less] = [0, 1].map(|at| table.estimate(&[one.rows[at]], "mean") * one.per_second[at]);
            verdict.at_least(one.what, more / less, 1.0)
        }
        Compared::AtMost(row, most) => verdict.at_most(&format!("{row}, in ns"), table.estimate(&[row], "mean"), *most),
    })
}

/// The rows of a bench: each name, and the mean time with its interval.
fn rows(folder: &Path) -> Vec<(String, Estimate)> {
    let mut rows: Vec<(String, Estimate)> = newest(folder).iter().filter_map(|folder| row(folder)).collect();
    rows.sort_by(|a, b| a.0.cmp(&b.0));
    rows
}

fn row(folder: &Path) -> Option<(String, Estimate)> {
    let named: Named = serde_json::from_str(&fs::read_to_string(folder.join("benchmark.json")).ok()?).ok()?;
    let estimates: Estimates = serde_json::from_str(&fs::read_to_string(folder.join("estimates.json")).ok()?).ok()?;
    let Measured { point_estimate, confidence_interval: Interval { lower_bound, upper_bound } } = estimates.mean;
    Some((named.full_id, Estimate::with_interval(point_estimate, Some((upper_bound - lower_bound) / 2.0), 100)))
}

/// The folders with the newest results, wherever they are below this one.
fn newest(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let folders = entries.filter(|path| path.is_dir());
    folders.flat_map(|path| if path.ends_with("new") { vec![path] } else { newest(&path) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_criterion_leaves_is_a_table_with_intervals_and_a_verdict_over_the_goals() {
        let folder = std::env::temp_dir().join(format!("fairpath-benches-{}", std::process::id()));
        for (name, mean) in [("best rates, 8 paths", 200.0), ("best rates, 1000 paths", 2e6)] {
            let new = folder.join("rate").join(name).join("new");
            fs::create_dir_all(&new).unwrap();
            fs::write(new.join("benchmark.json"), format!("{{\"full_id\":\"{name}\"}}")).unwrap();
            let interval = format!("{{\"lower_bound\":{},\"upper_bound\":{}}}", mean * 0.9, mean * 1.1);
            let estimates = format!("{{\"mean\":{{\"point_estimate\":{mean},\"confidence_interval\":{interval}}}}}");
            fs::write(new.join("estimates.json"), estimates).unwrap();
        }
        let reports = bench_reports(&folder, &Maker::default());
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(reports.len(), 1);
        assert_eq!(reports[0].experiment, "bench/rate");
        let verdict = &reports[0].report.verdicts[0];
        assert_eq!(verdict.outcome, crate::Outcome::Partly);
        assert_eq!(verdict.checks[0].half_width.map(f64::round), Some(20.0));
    }

    #[test]
    fn a_paper_s_claim_of_costs_is_judged_by_what_was_measured() {
        let mut table = Table::new("times", "", &["what"], &[("mean", "ns")]);
        let times = [("ssc_rfc8382/2 paths", 30.0), ("trendline/2 paths", 20.0)];
        let decisions = [("decision/ssc_rfc8382", 700.0), ("decision/trendline", 5_000.0)];
        for (name, mean) in times.into_iter().chain(decisions) {
            table.push(&[name], &[Cell::from(Estimate::with_interval(mean, Some(mean / 100.0), 100))]);
        }
        // 30 / 20 = 1.5; 700 / 0.35 s = 2000 ns in a second beside 5000 / 5 s = 1000.
        let verdict = claimed(&table, &("SSC costs more", "", SSC_AND_TR));
        assert_eq!(verdict.outcome, crate::Outcome::Holds);
        let values: Vec<f64> = verdict.checks.iter().map(|check| (check.value * 10.0).round() / 10.0).collect();
        assert_eq!(values, [1.5, 2.0]);
    }
}
