//! Figures that programs of ours write while they measure, as reports.
//!
//! A file is a list of lines, each with the thing measured and its unit. A line has samples, or a value with the half of
//! its 95 % interval. Where something is wanted of it, it has the least or the most. Programs with a short form write an
//! object instead, with the list, the form and the seeds.

use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::made::{Made, Maker};
use crate::stored_report::StoredReport;
use crate::table::{Cell, Table};
use crate::{Description, Estimate, Report, Verdict};

/// A program that writes figures.
struct Program {
    /// The name of its file, without `.json`, and of its page.
    key: &'static str,
    title: &'static str,
    claim: &'static str,
    command: &'static str,
    /// Remarks on how it measures.
    notes: &'static [&'static str],
    /// Why goals are missed, where they are: one sentence. Empty where none was ever missed.
    reason: &'static str,
}

const PROGRAMS: &[Program] = &[
    Program {
        key: "goodput",
        title: "Bulk data on loopback, beside the QUIC stack as it is",
        claim: "Over loopback without limits we carry 1.2 times what the stack alone does, for 0.8 of the processors' time.",
        command: "FAIRPATH_GOODPUT_JSON=FILE cargo bench -p fairpath-quic --bench goodput -- loopback",
        notes: &["Ratios are to the better of the raw ones of the same round: the machine's speed drifts."],
        reason: "",
    },
    Program {
        key: "detection",
        title: "How soon and how rightly the engine finds bottlenecks, over the real stack",
        claim: "The engine finds 0.95 of shared bottlenecks, half of them within 10 s, and takes separate paths for one for \
                0.05 of the time at most.",
        command: "FAIRPATH_DETECTION_JSON=FILE cargo bench -p fairpath-faults --bench tables -- detection",
        notes: &["Networks are drawn from seeds, and both ends run in virtual time."],
        reason: "",
    },
    Program {
        key: "ablation",
        title: "The default over the real stack without one mechanism after the other",
        claim: "No goal is set: above 1 a mechanism helps.",
        command: "FAIRPATH_ABLATION_JSON=FILE cargo bench -p fairpath-faults --bench tables -- ablation",
        notes: &[
            "A row `without` is the cost without in parts of the cost with all, seed by seed.",
            "Both ends run in virtual time, with packets that nothing protects.",
        ],
        reason: "",
    },
    Program {
        key: "health",
        title: "Links that fail, with half and twice of each constant of the health of paths",
        claim: "No goal is set: a constant without a row changes nothing that a person would notice in these networks.",
        command: "FAIRPATH_HEALTH_JSON=FILE cargo bench -p fairpath-faults --bench tables -- health",
        notes: &[
            "Both ends run in virtual time, over two wires of 20 Mbit/s and 20 ms, with packets that nothing protects.",
            "Another value has a row for each network in which it costs at least 50 ms more or less.",
            "A row of what is lacking gives the time that both links would need for it.",
        ],
        reason: "",
    },
    Program {
        key: "packet_order",
        title: "Packets of UDP put into order at the proxy, with half and twice of each constant",
        claim: "No goal is set: each constant changes what comes in order, or how long packets are held back.",
        command: "FAIRPATH_PACKET_ORDER_JSON=FILE cargo test -p fairpath-proxy --lib sensitivity",
        notes: &[
            "Each packet takes one of two paths by chance, in virtual time; one in a hundred is lost where nothing else is said.",
            "Another value has a row for each network on which it changes a packet in a thousand, or 0.1 ms.",
        ],
        reason: "",
    },
    Program {
        key: "pauses",
        title: "Files through outages, with half and twice of each pause after which a sender connects again",
        claim: "No goal is set: each pause changes how long a transfer takes, or how many packets it costs.",
        command: "FAIRPATH_PAUSES_JSON=FILE cargo test -p fairpath-faults --test all pauses:: -- --ignored",
        notes: &[
            "One file over two paths of 4 Mbit/s, in virtual time. Each outage begins at four moments and is as much as a \
             tenth longer each time.",
            "Rows of another value are what it takes more than the default, outage by outage, where that is a tenth of a \
             second or ten packets in the mean.",
            "Files, streams and the proxy have the same pauses; `silent` is of files alone.",
        ],
        reason: "",
    },
    Program {
        key: "streams",
        title: "Streams of bytes: beside records, while a path is dark, a thousand at once, a sparse one, and how they open",
        claim: "Streams carry 0.95 of what records do, stand still for 500 ms at most where a path goes dark, have their \
                rate again 2 s after its return, share evenly, and a sparse one does not wait for a bulk one.",
        command: "FAIRPATH_STREAMS_JSON=FILE cargo bench -p fairpath-faults --bench tables -- streams",
        notes: &[
            "Each number without an interval is of one run, in virtual time where nothing else is said.",
            "Rows of an outage give the mean over seeds, and the longest of all, to which the goal applies.",
        ],
        reason: "Sixteen streams are written and read by sixteen tasks, each of which is woken for its own part, where records have \
                 one: the rows of the processors' time show what that takes.",
    },
    Program {
        key: "proxy_downloads",
        title: "Downloads by curl through the proxy over two links, beside each of the links alone",
        claim: "One download brings 0.9 of what the links bring alone, or 0.95 where they are alike, and 16 at once 0.95.",
        command: "make proxy-figures ONLY=downloads",
        notes: PROXY,
        reason: "Both ends, curl, the servers and the links share the cores of one machine: the rows of idle cores say how much \
                 of them was left.",
    },
    Program {
        key: "proxy_echo",
        title: "An echo of 64 bytes every 100 ms beside a bulk download, both through the proxy",
        claim: "Its 99th percentile is no more than 30 ms beyond what the slower link's own queue costs.",
        command: "make proxy-figures ONLY=echo",
        notes: PROXY,
        reason: "",
    },
    Program {
        key: "proxy_fair",
        title: "Sixteen downloads through the proxy over two paths of one link, beside one CUBIC of the kernel",
        claim: "Together they get what one connection gets.",
        command: "make proxy-figures ONLY=fair",
        notes: PROXY,
        reason: "Two CUBIC flows share by chance for a minute, too: the row of a second one in the place of the bond says what \
                 it gets.",
    },
    Program {
        key: "proxy_loopback",
        title: "The proxy over loopback without limits, beside our own perf; many connections, and small datagrams",
        claim: "It brings 0.6 of perf and 3 Gbit/s, 200,000 datagrams and 1,000 connections a second, for 200 kB each.",
        command: "make proxy-figures ONLY=loopback",
        notes: &["Both ends, curl and the servers share the cores of one machine.", FOR_TESTS],
        reason: "Each byte crosses TCP twice and our connection once, on the same cores: a proxy that costs nothing would have the \
                 rate of the row `TCP twice and perf once`.",
    },
    Program {
        key: "proxy_profiles",
        title: "One file by curl through the proxy, over sixteen pairs of links on which bonds fail",
        claim: "Both links bring at least 0.97 of the better one alone, over each of the sixteen pairs.",
        command: "make proxy-figures ONLY=profiles",
        notes: &[
            IN_NAMESPACES,
            AS_WAITED,
            FOR_TESTS,
            "The short form takes files of 1 MiB, most of which is sent in slow start; the whole form takes 20 MiB.",
        ],
        reason: "",
    },
    Program {
        key: "proxy_peers",
        title: "Other proxies beside ours over one link of 80 Mbit/s",
        claim: "No goal is set. A peer whose programs are not installed is left out.",
        command: "make proxy-figures ONLY=peers",
        notes: PROXY,
        reason: "",
    },
    Program {
        key: "proxy_outage",
        title: "A link that goes dark under sixteen downloads through the proxy, and comes back",
        claim: "No connection stands still for more than half a second, and the rate is full two seconds after the return.",
        command: "make proxy-figures ONLY=outage",
        notes: PROXY,
        reason: "",
    },
];

/// How the figures of the proxy are measured.
const PROXY: &[&str] = &[IN_NAMESPACES, AS_WAITED, FOR_TESTS];

const IN_NAMESPACES: &str = "Both ends, curl and the servers run on one machine, in network namespaces between which our \
                             own links lie: packets of the kernel cross them, with rate, delay and queue as described, in \
                             both directions.";
const AS_WAITED: &str =
    "Rates of downloads that end are over what a person waits, with the handshakes and the slow start.";
const FOR_TESTS: &str = "The short form measures a program that was built for tests, which is slower.";

/// Such a file.
#[derive(Deserialize)]
#[serde(untagged)]
enum File {
    Lines(Vec<Line>),
    Measured { form: String, seeds: String, lines: Vec<Line> },
}

/// A line of such a file.
#[derive(Deserialize)]
struct Line {
    what: String,
    unit: String,
    value: Option<f64>,
    half_width: Option<f64>,
    #[serde(default)]
    samples: Vec<f64>,
    goal: Option<Goal>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Goal {
    AtLeast(f64),
    AtMost(f64),
    Between(f64, f64),
}

impl Line {
    fn estimate(&self) -> Estimate {
        match (Estimate::of(self.samples.iter().copied()), self.value) {
            (Some(estimate), _) => estimate,
            (None, Some(value)) => match self.half_width {
                Some(half) => Estimate::with_interval(value, Some(half), 0),
                None => value.into(),
            },
            (None, None) => Estimate::unknown(),
        }
    }
}

/// The names of the reports over figures.
pub(crate) fn names() -> impl Iterator<Item = String> {
    PROGRAMS.iter().map(|program| format!("bench/{}", program.key))
}

/// Reports over the files in `results`.
pub(crate) fn reports(results: &Path, maker: &Maker) -> Vec<StoredReport> {
    PROGRAMS.iter().filter_map(|program| report(program, results, maker)).collect()
}

fn report(program: &Program, results: &Path, maker: &Maker) -> Option<StoredReport> {
    let text = fs::read_to_string(results.join(format!("{}.json", program.key))).ok()?;
    let (form, seeds, lines) = match serde_json::from_str(&text).ok()? {
        File::Lines(lines) => ("bench".to_owned(), String::new(), lines),
        File::Measured { form, seeds, lines } => (form, seeds, lines),
    };
    let command = format!("{}{}", program.command, if form == "quick" { " QUICK=1" } else { "" });
    let mut table = Table::new("figures", "Figures", &["what", "unit"], &[("value", "")]);
    let mut verdict = Verdict::ours("goals", program.claim);
    for line in &lines {
        table.push(&[&line.what, &line.unit], &[Cell::from(line.estimate())]);
        let what = if line.unit.is_empty() { line.what.clone() } else { format!("{}, in {}", line.what, line.unit) };
        verdict = match line.goal {
            Some(Goal::AtLeast(least)) => verdict.at_least(&what, line.estimate(), least),
            Some(Goal::AtMost(most)) => verdict.at_most(&what, line.estimate(), most),
            Some(Goal::Between(least, most)) => verdict.between(&what, line.estimate(), least, most),
            None => verdict,
        };
    }
    if !program.reason.is_empty() {
        verdict = verdict.because(program.reason);
    }
    let Maker { commit, machine } = maker.clone();
    let verdicts = if verdict.checks.is_empty() { Vec::new() } else { vec![verdict] };
    let notes = program.notes.iter().map(|note| (*note).to_owned()).collect();
    Some(StoredReport {
        experiment: format!("bench/{}", program.key),
        effort: form,
        description: Description {
            title: program.title.to_owned(),
            claim: program.claim.to_owned(),
            ..Description::default()
        },
        report: Report { tables: vec![table], verdicts, notes, ..Report::default() },
        made: Some(Made { command, seeds, commit, machine }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Outcome;

    #[test]
    fn lines_become_a_table_and_their_goals_a_verdict() {
        let folder = std::env::temp_dir().join(format!("fairpath-figures-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let text = r#"[
            {"what": "found", "unit": "", "value": 0.97, "half_width": 0.01, "goal": {"at_least": 0.95}},
            {"what": "first", "unit": "s", "samples": [3.0, 5.0, 4.0], "goal": {"at_most": 10.0}},
            {"what": "runs", "unit": "", "value": 180.0}
        ]"#;
        fs::write(folder.join("detection.json"), text).unwrap();
        let reports = reports(&folder, &Maker::default());
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(reports.len(), 1);
        let report = &reports[0].report;
        assert_eq!((report.tables[0].rows.len(), report.verdicts[0].checks.len()), (3, 2));
        assert_eq!(report.verdicts[0].outcome, Outcome::Holds);
        assert_eq!(report.tables[0].estimate(&["first", "s"], "value").mean, 4.0);
    }

    #[test]
    fn a_short_form_says_so_with_its_seeds_and_its_command() {
        let folder = std::env::temp_dir().join(format!("fairpath-short-figures-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let text = r#"{"form": "quick", "seeds": "1", "lines": [
            {"what": "stillness", "unit": "ms", "samples": [240.0], "goal": {"at_most": 500.0}}
        ]}"#;
        fs::write(folder.join("proxy_outage.json"), text).unwrap();
        let maker = Maker { commit: "abc".into(), machine: "two cores".into() };
        let stored = reports(&folder, &maker).remove(0);
        fs::remove_dir_all(&folder).unwrap();
        let made = stored.made.unwrap();
        assert_eq!((stored.experiment.as_str(), stored.effort.as_str()), ("bench/proxy_outage", "quick"));
        assert_eq!(made.command, "make proxy-figures ONLY=outage QUICK=1");
        assert_eq!((made.seeds.as_str(), made.commit.as_str(), made.machine.as_str()), ("1", "abc", "two cores"));
        // One run decides nothing.
        assert_eq!(stored.report.verdicts[0].outcome, Outcome::Undecided);
    }
}
