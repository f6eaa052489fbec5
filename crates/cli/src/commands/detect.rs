//! `fairpath detect`: which of several traces of round-trip times share a bottleneck.

mod judge;
mod picture;
mod report;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use fairpath_core::Timestamp;
use fairpath_report::text::{print_line, safe, tell};
use fairpath_sbd::Held;
use fairpath_trace::rtt::{Format, Limits, RttError, RttSample, TooMuch, Traces, read_within};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::error::UsageError;
use judge::judge;
use report::Report;

/// Say which paths share a bottleneck, from their round-trip times
///
/// The files hold round-trip times over time: CSV with columns such as time_s and rtt_ms, the NDJSON
/// that fairpath writes, qlog, or captures of TCP (pcap, pcapng), each also packed with gzip. Times
/// must come from one clock. `docs/detect.md` says what is read and what the answer means.
#[derive(Debug, clap::Args)]
#[command(before_help = "Example:\n  fairpath detect wifi.csv lte.csv\n  \
    fairpath detect upload.pcapng --picture delays.svg\n  \
    fairpath detect fairpath-sim/paths.ndjson --detector trendline --json")]
pub(crate) struct Args {
    /// The traces: at least two series of round-trip times in all
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Which detector judges
    #[arg(long, value_name = "NAME", default_value = fairpath_sbd::NAMES[0],
        value_parser = clap::builder::PossibleValuesParser::new(fairpath_sbd::NAMES))]
    detector: String,
    /// Hold what was found together for so much longer
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = fairpath_scenario::units::time)]
    hold: Duration,
    /// Draw the delays, with the build-ups that match, into this file
    #[arg(long, value_name = "FILE.svg")]
    picture: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A series under the name by which the answer calls it.
struct Named {
    /// The file as it was given; of a file with several series, with the label behind a colon.
    name: String,
    format: Format,
    /// At least one.
    samples: Vec<RttSample>,
}

/// More series make more pairs than anybody can read.
const SERIES_MAX: usize = 200;

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let mut warnings = Vec::new();
    let mut series = Vec::new();
    // The limit on round-trip times is one for all files together.
    let mut limits = Limits::default();
    for path in &args.files {
        let traces = read_file(path, &limits)?;
        let kept = traces.series.iter().map(|one| one.samples.len()).sum();
        limits.samples = limits.samples.saturating_sub(kept);
        warn(path, &traces, &mut warnings);
        series.extend(named(path, traces));
    }
    enough(&series)?;
    let bar = bar("judging");
    bar.set_length(series.iter().map(|one| one.samples.len() as u64).sum());
    let inner = fairpath_sbd::by_name(&args.detector).map_err(|error| UsageError(error.to_string()))?;
    let mut detector = Held::new(inner, args.hold);
    let samples: Vec<&[RttSample]> = series.iter().map(|one| one.samples.as_slice()).collect();
    let judgement = judge(&mut detector, &samples, || advance(&bar, 1));
    bar.finish_and_clear();
    let report = Report { detector: &args.detector, series: &series, judgement: &judgement, warnings: &warnings };
    if let Some(file) = &args.picture {
        write_whole(file, &picture::svg(&report)?)?;
    }
    if args.json {
        return print_line(&serde_json::to_string_pretty(&report.json())?);
    }
    print_line(report.text().trim_end())?;
    args.picture.as_ref().map_or(Ok(()), |file| print_line(&format!("Picture: {}", file.display())))
}

fn read_file(path: &Path, limits: &Limits) -> anyhow::Result<Traces> {
    let name = path.display();
    let file = File::open(path).with_context(|| format!("cannot read the trace {name}"))?;
    let bar = bar("reading");
    bar.set_length(file.metadata().map_or(0, |about| about.len()));
    let traces = read_within(Counted { file, bar: bar.clone() }, limits);
    bar.finish_and_clear();
    traces.map_err(|error| match error {
        RttError::Io(error) => anyhow::Error::new(error).context(format!("cannot read the trace {name}")),
        RttError::TooMuch(TooMuch::Samples(left) | TooMuch::Packets(left)) if left < Limits::default().samples => {
            let most = Limits::default().samples;
            let said = format!("{name}: with the files before it there are more than {most} round-trip times; give fewer files or shorter parts of them");
            UsageError(said).into()
        }
        error => UsageError(format!("{name}: {error}")).into(),
    })
}

/// Tells of bad lines and of what was assumed, at once and in the end.
fn warn(path: &Path, traces: &Traces, warnings: &mut Vec<String>) {
    let name = path.display();
    let mut told: Vec<String> = traces.notes.iter().map(|note| format!("{name}: {note}")).collect();
    told.extend(traces.bad.iter().map(|bad| format!("{name}: {bad}; the line is skipped")));
    let more = traces.bad_count - traces.bad.len() as u64;
    if more > 0 {
        told.push(format!("{name}: {more} more bad lines are skipped"));
    }
    told.iter().for_each(|warning| tell(safe(&format!("warning: {warning}"))));
    warnings.extend(told);
}

fn named(path: &Path, traces: Traces) -> impl Iterator<Item = Named> {
    let (file, format) = (safe(&path.display().to_string()), traces.format);
    traces.series.into_iter().map(move |one| {
        let name = one.label.map_or_else(|| file.clone(), |label| format!("{file}:{label}"));
        Named { name, format, samples: one.samples }
    })
}

/// Whether there is anything to compare.
fn enough(series: &[Named]) -> Result<(), UsageError> {
    if let [only] = series {
        return Err(UsageError(format!("{} is the only series of round-trip times; two are needed", only.name)));
    }
    if series.len() > SERIES_MAX {
        let count = series.len();
        return Err(UsageError(format!(
            "{count} series of round-trip times are too many; {SERIES_MAX} can be compared"
        )));
    }
    let meet = |a: &Named, b: &Named| first(a) < last(b) && first(b) < last(a);
    if series.iter().enumerate().any(|(at, one)| series[..at].iter().any(|other| meet(one, other))) {
        return Ok(());
    }
    let span = |one: &Named| format!("{} from {} to {} s", one.name, first(one).as_secs_f64(), last(one).as_secs_f64());
    let (one, other) = (span(&series[0]), span(&series[1]));
    Err(UsageError(format!("no two series were measured at the same time: {one}, {other}; is it one clock?")))
}

fn first(series: &Named) -> Timestamp {
    series.samples[0].at
}

fn last(series: &Named) -> Timestamp {
    series.samples[series.samples.len() - 1].at
}

/// Writes a file so that it is there as a whole or not at all.
fn write_whole(file: &Path, text: &str) -> anyhow::Result<()> {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let part = file.with_file_name(name);
    let written = std::fs::write(&part, text).and_then(|()| std::fs::rename(&part, file));
    written
        .inspect_err(|_| drop(std::fs::remove_file(&part)))
        .with_context(|| format!("cannot write {}", file.display()))
}

/// A file whose bytes are counted.
struct Counted {
    file: File,
    bar: ProgressBar,
}

impl std::io::Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.file.read(buffer)?;
        advance(&self.bar, read as u64);
        Ok(read)
    }
}

/// A progress bar that nobody sees yet.
fn bar(what: &'static str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden()).with_prefix(what);
    let style = ProgressStyle::with_template("{prefix} {elapsed} {bar:40} {percent} %  {eta} to go");
    bar.with_style(style.expect("a constant template"))
}

/// Goes on; what takes over two seconds is shown on standard error.
fn advance(bar: &ProgressBar, by: u64) {
    bar.inc(by);
    if bar.is_hidden() && bar.elapsed() > Duration::from_secs(2) {
        bar.set_draw_target(ProgressDrawTarget::stderr());
    }
}
