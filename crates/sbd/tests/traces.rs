//! The detectors on traces of round-trip times from another simulator (ns-3): pairs of senders of
//! which both cross one bottleneck, or each its own, with 3 to 25 flows each, 90 s.
//!
//! The traces are not part of this project; where they lie beside it, they are read. Half of them,
//! `00` and `01` of each kind, were looked at while the parameters of `concordance` were chosen;
//! the other half was not. The parameters of all other detectors are the published ones.
//!
//! Beside them are traces of a real Linux kernel, of one MPTCP connection whose two subflows are not
//! coupled, over two links or one, 65 to 75 s. `cases.txt` of each folder says what each case is, and every case that it
//! names is tried.
//!
//! `cargo test -p fairpath-sbd --test traces -- --nocapture` prints the tables.

use core::time::Duration;
use std::path::{Path, PathBuf};
use std::process::Command;

use fairpath_core::{DelaySample, PathId, Timestamp};
use fairpath_sbd::{Detector, NAMES, Persistence, Summary, SummaryConfig, Trendline, TrendlineConfig, by_name};

/// The half that was looked at, and the half that was not.
const HALVES: [(&str, [&str; 2]); 2] = [("training", ["00", "01"]), ("held out", ["02", "03"])];
const KINDS: [&str; 2] = ["shared", "separate"];
const PATHS: [PathId; 2] = [PathId::new(0), PathId::new(1)];

/// The samples of both senders of a case, in order of time.
type Case = Vec<(PathId, DelaySample)>;

/// The verdict of a detector on a case.
#[derive(Clone, Copy, Debug)]
struct Outcome {
    /// The part of the time that both paths were in one group.
    coupled: f64,
    /// How long after both paths were there they were first in one group.
    first: Option<Duration>,
}

/// A line of the table.
struct Entry {
    name: String,
    /// As it is in the catalogue, or as the name says.
    detector: Box<dyn Fn() -> Box<dyn Detector>>,
    /// The same without memory of earlier answers: what it decides from one time to the next.
    momentary: Box<dyn Fn() -> Box<dyn Detector>>,
}

#[test]
fn detectors_on_traces_of_another_simulator() {
    for (half, numbers) in HALVES {
        let Some(cases) = read(numbers) else { return };
        println!("\n{half}: {}", numbers.join(", "));
        println!("{:24}  yes, of the decisions   first yes   coupled, of the time", "");
        println!("{:24}    shared     separate      (median)    shared     separate", "");
        for entry in entries() {
            let outcomes = |make: &dyn Fn() -> Box<dyn Detector>| {
                cases.each_ref().map(|kind| kind.iter().map(|case| run(make().as_mut(), case)).collect::<Vec<_>>())
            };
            let (lasting, momentary) = (outcomes(&entry.detector), outcomes(&entry.momentary));
            print(&entry.name, &lasting, &momentary);
            check(&entry.name, &lasting);
        }
    }
}

/// The folders of traces, beneath that of all.
const FOLDERS: [&str; 2] = ["", "kernel"];

/// Every case is judged as `cases.txt` says, whoever measured it. Shared paths are found within 20
/// s and stay together for most of the time. Separate ones are together for at most a twentieth of
/// it.
#[test]
fn every_case_is_judged_as_it_is_described() {
    let Some(root) = folder() else { return };
    let mut wrong = Vec::new();
    for folder in FOLDERS.map(|folder| root.join(folder)) {
        let cases = std::fs::read_to_string(folder.join("cases.txt")).expect("what the traces are");
        for line in cases.lines().filter(|line| !line.trim().is_empty()) {
            let (name, shared) = described(line);
            let Some(case) = read_case(&folder, name) else { return };
            let outcome = run(by_name("concordance").expect("ours").as_mut(), &case);
            println!("{:9} {name:14} {outcome:?}", folder.file_name().unwrap_or_default().display());
            let soon = outcome.first.is_some_and(|first| first < Duration::from_secs(20));
            if shared != (soon && outcome.coupled > 0.75) || (!shared && outcome.coupled > 0.05) {
                wrong.push(format!("{line}: {outcome:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The name of a case, and whether its paths share a bottleneck: `shared-00 --shared=1 ...` or
/// `shared-00: shared; ...`.
fn described(line: &str) -> (&str, bool) {
    let (name, rest) = line.split_once([':', ' ']).unwrap_or_else(|| panic!("not a case: {line}"));
    let shared = rest.contains("--shared=1") || rest.trim_start().starts_with("shared;");
    let separate = rest.contains("--shared=0") || rest.trim_start().starts_with("separate;");
    assert!(shared != separate, "says neither shared nor separate: {line}");
    (name, shared)
}

/// The assertions, and their limits.
///
/// `concordance` is made for a bottleneck with many flows, whose queue is most of the variation. So
/// it is tested on every case, also on those that were not used for choices. Shared paths are found
/// within 20 s, as a queue with few flows may take that long to drain a second time, and then stay
/// together for most of the time. Separate ones are together for at most a twentieth of it. The
/// other detectors are not tested: eight cases do not rank detectors, and their errors here are
/// published.
fn check(name: &str, [shared, separate]: &[Vec<Outcome>; 2]) {
    for outcome in shared.iter().filter(|_| name == "concordance") {
        assert!(outcome.first.is_some_and(|first| first < Duration::from_secs(20)), "{outcome:?}");
        assert!(outcome.coupled > 0.75, "{outcome:?}");
    }
    for outcome in separate.iter().filter(|_| name == "concordance") {
        assert!(outcome.coupled < 0.05, "{outcome:?}");
    }
    let fixed = [("always", 1.0), ("never", 0.0)].into_iter().find(|(fixed, _)| *fixed == name);
    if let Some((_, expected)) = fixed {
        assert!(shared.iter().chain(separate).all(|outcome| outcome.coupled == expected), "{name}");
    }
}

fn entries() -> Vec<Entry> {
    let by_its_name = |name: &'static str| Entry {
        name: name.to_owned(),
        detector: Box::new(move || by_name(name).expect("a name of the catalogue")),
        momentary: Box::new(move || momentary(name)),
    };
    let mut entries: Vec<Entry> = NAMES.iter().copied().map(by_its_name).collect();
    // The paper on the trend line holds the answer of both detectors for 100 s.
    let held =
        || SummaryConfig { persistence: Persistence::Hold(Duration::from_secs(100)), ..SummaryConfig::rfc8382() };
    entries.push(Entry {
        name: "ssc_rfc8382, held 100 s".to_owned(),
        detector: Box::new(move || Box::new(Summary::new(held()))),
        momentary: Box::new(|| momentary("ssc_rfc8382")),
    });
    entries
}

fn momentary(name: &str) -> Box<dyn Detector> {
    let trendline = |config| Box::new(Trendline::new(TrendlineConfig { hold: Duration::ZERO, ..config }));
    let summary = |config| Box::new(Summary::new(SummaryConfig { persistence: Persistence::Latest, ..config }));
    match name {
        "trendline" => trendline(TrendlineConfig::default()),
        "trendline_srtt" => trendline(TrendlineConfig::smoothed_input()),
        "trendline_overlapping" => trendline(TrendlineConfig::overlapping()),
        "ssc_mptcp_sbd" => summary(SummaryConfig::mptcp_sbd()),
        "ssc_author_variant" => summary(SummaryConfig::author_variant()),
        name => by_name(name).expect("a name of the catalogue"),
    }
}

/// Plays a case to a detector as an engine does: a path is opened with its first sample, and the
/// detector is asked after each sample.
fn run(detector: &mut dyn Detector, case: &Case) -> Outcome {
    let first_of = |path: PathId| case.iter().find(|(of, _)| *of == path).expect("both have samples").1.now;
    let begin = first_of(PATHS[0]).max(first_of(PATHS[1]));
    let (mut together, mut since) = (false, begin);
    let (mut coupled, mut first) = (Duration::ZERO, None);
    let mut opened = [false; 2];
    for (path, sample) in case {
        let now = sample.now;
        if !core::mem::replace(&mut opened[path.get() as usize], true) {
            detector.on_path_opened(*path, now);
        }
        detector.on_sample(*path, sample);
        if let Some(groups) = detector.poll(now) {
            if together {
                coupled += now.since(since);
            }
            together = groups.together(PATHS[0], PATHS[1]);
            since = now.max(begin);
            if together && first.is_none() {
                first = Some(since.since(begin));
            }
        }
    }
    let end = case.last().expect("a case has samples").1.now;
    if together {
        coupled += end.since(since);
    }
    Outcome { coupled: coupled.as_secs_f64() / end.since(begin).as_secs_f64(), first }
}

fn print(name: &str, lasting: &[Vec<Outcome>; 2], momentary: &[Vec<Outcome>; 2]) {
    let mean =
        |outcomes: &[Outcome]| outcomes.iter().map(|outcome| outcome.coupled).sum::<f64>() / outcomes.len() as f64;
    let mut firsts: Vec<f64> =
        lasting[0].iter().map(|outcome| outcome.first.map_or(f64::INFINITY, |first| first.as_secs_f64())).collect();
    firsts.sort_by(f64::total_cmp);
    let median = (firsts[(firsts.len() - 1) / 2] + firsts[firsts.len() / 2]) / 2.0;
    let first = if median.is_finite() { format!("{median:.1} s") } else { "-".to_owned() };
    let [yes, coupled] = [momentary, lasting].map(|of| of.each_ref().map(|outcomes| mean(outcomes)));
    println!(
        "{name:24}    {:6.3}       {:6.3}   {first:>11}    {:6.3}       {:6.3}",
        yes[0], yes[1], coupled[0], coupled[1]
    );
}

/// The cases of each kind; `None`, and a word about it: they are not there, or cannot be read.
fn read(numbers: [&str; 2]) -> Option<[Vec<Case>; 2]> {
    let folder = folder()?;
    let mut kinds = [Vec::new(), Vec::new()];
    for (kind, cases) in KINDS.iter().zip(&mut kinds) {
        for number in numbers {
            let case = read_case(&folder, &format!("{kind}-{number}"))?;
            cases.push(case);
        }
    }
    Some(kinds)
}

/// Where the traces are; `None`, and a word about it: nowhere.
fn folder() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/rtt-traces");
    if !folder.is_dir() {
        println!("skipped: the traces are not beside this project, in shared/rtt-traces");
        return None;
    }
    Some(folder)
}

fn read_case(folder: &Path, name: &str) -> Option<Case> {
    let mut case = Case::new();
    for (path, side) in PATHS.iter().zip(["a", "b"]) {
        let text = unzipped(&folder.join(format!("{name}-{side}.csv.gz")))?;
        case.extend(text.lines().skip(1).map(|line| (*path, sample(line))));
    }
    case.sort_by_key(|(path, sample)| (sample.now, *path));
    Some(case)
}

/// A line `time_s,rtt_ms`.
fn sample(line: &str) -> DelaySample {
    let (time, rtt) = line.split_once(',').unwrap_or_else(|| panic!("not a sample: {line}"));
    let [time, rtt] =
        [time, rtt].map(|number| number.parse::<f64>().unwrap_or_else(|_| panic!("not a sample: {line}")));
    let now = Timestamp::ZERO + Duration::from_secs_f64(time);
    DelaySample { now, rtt: Duration::from_secs_f64(rtt / 1e3), one_way: None }
}

fn unzipped(file: &Path) -> Option<String> {
    match Command::new("gzip").arg("-dc").arg(file).output() {
        Ok(output) if output.status.success() => Some(String::from_utf8(output.stdout).expect("a table is text")),
        Ok(output) => panic!("{}: {}", file.display(), String::from_utf8_lossy(&output.stderr)),
        Err(error) => {
            println!("skipped: the traces are packed, and gzip cannot be run ({error})");
            None
        }
    }
}
