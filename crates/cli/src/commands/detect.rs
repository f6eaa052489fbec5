//! `fairpath detect`: which of several traces of round-trip times share a bottleneck.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use fairpath_judge::{DETECTORS, judge, named, warnings};
use fairpath_report::text::{print_line, safe, tell};
use fairpath_trace::rtt::{Limits, RttError, TooMuch, Traces, read_within};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::error::UsageError;

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
    /// The detector that judges
    #[arg(long, value_name = "NAME", default_value = DETECTORS[0],
        value_parser = clap::builder::PossibleValuesParser::new(DETECTORS))]
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

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let mut told = Vec::new();
    let mut series = Vec::new();
    // The limit on round-trip times is one for all files together.
    let mut limits = Limits::default();
    for path in &args.files {
        let traces = read_file(path, &limits)?;
        let kept = traces.series.iter().map(|one| one.samples.len()).sum();
        limits.samples = limits.samples.saturating_sub(kept);
        let of_file = warnings(&path.display().to_string(), &traces);
        of_file.iter().for_each(|warning| tell(safe(&format!("warning: {warning}"))));
        told.extend(of_file);
        series.extend(named(&safe(&path.display().to_string()), traces));
    }
    let bar = bar("judging");
    bar.set_length(series.iter().map(|one| one.samples.len() as u64).sum());
    let report = judge(series, &args.detector, args.hold, told, || advance(&bar, 1));
    let report = report.map_err(|error| UsageError(error.to_string()))?;
    bar.finish_and_clear();
    if let Some(file) = &args.picture {
        write_whole(file, &report.svg()?)?;
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
