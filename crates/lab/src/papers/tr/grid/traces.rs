//! The detectors on traces of round-trip times from another simulator (ns-3).

use core::time::Duration;
use std::path::{Path, PathBuf};
use std::process::Command;

use fairpath_core::{DelaySample, PathId, Timestamp};
use fairpath_sbd::Detector;

use super::watch::Entry;
use crate::{Cell, Table};

/// The traces that were looked at while ours was tuned, and those that were not.
const HALVES: [[&str; 2]; 2] = [["00", "01"], ["02", "03"]];
const KINDS: [&str; 2] = ["shared", "separate"];
const PATHS: [PathId; 2] = [PathId::new(0), PathId::new(1)];

/// The samples of both senders, in order of time.
type Trace = Vec<(PathId, DelaySample)>;

/// Where the traces are, beside this project.
pub(in crate::papers::tr) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/rtt-traces")
}

/// How much of the time each detector held both senders together. Where traces cannot be read, the rows are
/// there all the same, and say so.
pub(super) fn table(entries: &[Entry], folder: &Path) -> (Table, Option<String>) {
    let columns = [
        ("shared, tuned on", ""),
        ("separate, tuned on", ""),
        ("shared, held out", ""),
        ("separate, held out", ""),
        ("first yes, shared", "s"),
    ];
    let mut table = Table::new(
        "traces",
        "Detectors on traces of ns-3: part of the time together",
        &["detector", "traces"],
        &columns,
    );
    let traces = read_all(folder);
    for entry in entries.iter().filter(|entry| entry.setting.is_empty()) {
        match &traces {
            Ok(traces) => table.push(&[entry.name, "played"], &cells(entry, traces)),
            Err(missing) => table.push(&[entry.name, missing.name()], &[const { Cell::EMPTY }; 5]),
        }
    }
    (table, traces.err().map(|missing| format!("{missing}: the table of the traces of ns-3 has no numbers.")))
}

/// Why there are no traces.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::papers::tr) enum Missing {
    #[error("Recorded round trips are not beside this project, in shared/rtt-traces")]
    Folder,
    #[error("The recording {0} cannot be read")]
    Trace(String),
}

impl Missing {
    fn name(&self) -> &'static str {
        match self {
            Self::Folder => "not there",
            Self::Trace(_) => "not readable",
        }
    }
}

/// By half and then by kind.
fn read_all(folder: &Path) -> Result<Vec<Vec<Trace>>, Missing> {
    if !folder.is_dir() {
        return Err(Missing::Folder);
    }
    let groups = HALVES.iter().flat_map(|half| KINDS.map(|kind| (half, kind)));
    groups.map(|(half, kind)| half.iter().map(|number| read(folder, kind, number)).collect()).collect()
}

fn cells(entry: &Entry, traces: &[Vec<Trace>]) -> Vec<Cell> {
    let play = |traces: &Vec<Trace>| traces.iter().map(|trace| play(entry.make().as_mut(), trace)).collect();
    let seen: Vec<Vec<(f64, Option<f64>)>> = traces.iter().map(play).collect();
    let mut cells: Vec<Cell> = seen.iter().map(|seen| Cell::of(seen.iter().map(|(together, _)| *together))).collect();
    let firsts = [&seen[0], &seen[2]].into_iter().flatten().map(|(_, first)| *first);
    // Where one was never found, there is no mean.
    cells.push(firsts.collect::<Option<Vec<f64>>>().map_or(Cell::EMPTY, Cell::of));
    cells
}

/// Plays a trace as an engine would. The part of the time that both were together, from when both
/// are there on, and how many seconds later they first were.
fn play(detector: &mut dyn Detector, trace: &Trace) -> (f64, Option<f64>) {
    let of = |path: PathId| trace.iter().find(|(of, _)| *of == path).map_or(Timestamp::ZERO, |(_, sample)| sample.now);
    let begin = of(PATHS[0]).max(of(PATHS[1]));
    let end = trace.last().map_or(begin, |(_, sample)| sample.now);
    let (mut together_since, mut together, mut first) = (None, Duration::ZERO, None);
    let mut opened = [false; PATHS.len()];
    for (path, sample) in trace {
        let now = sample.now;
        if !core::mem::replace(&mut opened[path.get() as usize], true) {
            detector.on_path_opened(*path, now);
        }
        detector.on_sample(*path, sample);
        let Some(groups) = detector.poll(now) else { continue };
        together += together_since.take().map_or(Duration::ZERO, |since| now.since(since));
        if groups.together(PATHS[0], PATHS[1]) {
            together_since = Some(now.max(begin));
            first = first.or(Some(now.since(begin).as_secs_f64()));
        }
    }
    together += together_since.map_or(Duration::ZERO, |since| end.since(since));
    (together.as_secs_f64() / end.since(begin).as_secs_f64(), first)
}

fn read(folder: &Path, kind: &str, number: &str) -> Result<Trace, Missing> {
    let mut trace = Trace::new();
    for (path, side) in PATHS.iter().zip(["a", "b"]) {
        let samples = read_one(folder, &format!("{kind}-{number}-{side}.csv.gz"))?;
        trace.extend(samples.into_iter().map(|sample| (*path, sample)));
    }
    trace.sort_by_key(|(path, sample)| (sample.now, *path));
    Ok(trace)
}

/// The samples of one sender, in order of time.
pub(in crate::papers::tr) fn read_one(folder: &Path, name: &str) -> Result<Vec<DelaySample>, Missing> {
    let unreadable = || Missing::Trace(name.to_owned());
    let output = Command::new("gzip").arg("-dc").arg(folder.join(name)).output().map_err(|_| unreadable())?;
    let text = String::from_utf8(output.stdout).map_err(|_| unreadable())?;
    let samples: Option<Vec<DelaySample>> = text.lines().skip(1).map(sample).collect();
    samples.filter(|samples| !samples.is_empty()).ok_or_else(unreadable)
}

/// A line `time_s,rtt_ms`.
fn sample(line: &str) -> Option<DelaySample> {
    let (time, rtt) = line.split_once(',')?;
    let now = Timestamp::ZERO + Duration::try_from_secs_f64(time.parse().ok()?).ok()?;
    let rtt = Duration::try_from_secs_f64(rtt.parse::<f64>().ok()? / 1e3).ok()?;
    Some(DelaySample { now, rtt, one_way: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_the_traces_every_row_is_there_and_says_so() {
        let entries = Entry::all();
        let (table, note) = table(&entries, Path::new("/nowhere"));
        let shown = entries.iter().filter(|entry| entry.setting.is_empty()).count();
        assert_eq!(table.rows.len(), shown);
        assert!(table.rows.iter().all(|(heads, _)| heads[1] == "not there"));
        assert!(note.unwrap().contains("shared/rtt-traces"));
    }

    #[test]
    fn a_line_is_a_time_in_seconds_and_a_delay_in_milliseconds() {
        let sample = sample("1.5,80.25").unwrap();
        assert_eq!((sample.now, sample.rtt), (Timestamp::from_millis(1500), Duration::from_micros(80_250)));
        assert!(super::sample("1.5").is_none() && super::sample("-1,2").is_none());
    }
}
