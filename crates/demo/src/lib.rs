//! `fairpath demo`: the promise of the README, kept or broken on this machine in less than a minute.

mod live;
mod picture;
mod scene;
mod verdict;

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Context as _;
use fairpath_core::Estimate;
use fairpath_report::recording::TraceFile;
use fairpath_report::text::{output, table, tell};
use serde_json::json;

use live::Live;
use scene::{LINK, Mode, Network, QUEUE, RTT, Run};
use verdict::Row;

/// See it work: fast over separate links, fair on a shared one; without network, root or flags, in a minute
///
/// Two scenes: two separate links, where two paths should be as fast as both, and one link that both paths
/// share with somebody else, where they should take no more than one connection would. Each runs with one path,
/// with two uncoupled paths, and as Fairpath does by default. The whole stack runs in virtual time, with
/// several seeds: the results are the same on every machine, however busy it is. Then one scene runs live,
/// over real sockets. A table, a picture and a trace come out. The exit code is 0 where all came out as
/// promised; the live scene, which depends on what else the machine does, does not change it.
#[derive(Debug, clap::Args)]
#[command(before_help = "Example:\n  fairpath demo\n  fairpath demo --live --out /tmp/demo\n  \
    fairpath demo --no-live --json")]
pub struct Args {
    /// Where the picture and the trace go
    #[arg(long, value_name = "DIR", default_value = "fairpath-demo")]
    out: PathBuf,
    /// How many seeds each mode runs with; more of them make the intervals narrower
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(2..=1000))]
    seeds: u64,
    /// Run all scenes and modes live too, not only Fairpath on the shared link (a minute and a half)
    #[arg(long)]
    live: bool,
    /// Run nothing live
    #[arg(long, conflicts_with = "live")]
    no_live: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs it, and fails where it did not show what is promised.
pub async fn run(args: Args) -> anyhow::Result<()> {
    // Before anything runs: can the results be kept?
    let files = Files::create(&args.out)?;
    let seeds = args.seeds;
    let runs = tokio::task::spawn_blocking(move || run_all(seeds)).await.context("a run panicked")??;
    let rows: Vec<Row> = Network::ALL.into_iter().flat_map(|network| verdict::rows(network, &runs)).collect();
    let (picture, trace) = files.write(&runs, &rows)?;
    let as_promised = rows.iter().all(|row| row.as_promised);
    if args.json {
        let live = run_live(&args).await?;
        let result = json!({
            "link_bps": LINK.as_bps(),
            "seeds": seeds,
            "runs": rows,
            "live": live,
            "as_promised": as_promised,
            "picture": picture,
            "trace": trace,
        });
        writeln!(output(), "{}", serde_json::to_string_pretty(&result)?)?;
    } else {
        write!(output(), "{}", report(&rows, seeds))?;
        writeln!(output(), "\nPicture: {}\nTrace:   {}", picture.display(), trace.display())?;
        let live = run_live(&args).await?;
        if !live.is_empty() {
            writeln!(
                output(),
                "\nLive, over real sockets on this machine (one run of {} s decides nothing):",
                live::TIME.as_secs()
            )?;
        }
        live.iter().try_for_each(|one| writeln!(output(), "  {}", one.line()))?;
        writeln!(output(), "\n{}", last_line(as_promised))?;
    }
    anyhow::ensure!(
        as_promised,
        "the demo did not show what is promised: see the verdicts (with {seeds} seeds; more make the intervals narrower)"
    );
    Ok(())
}

fn last_line(as_promised: bool) -> &'static str {
    match as_promised {
        true => "As promised: fast over separate links, fair on a shared one.",
        false => "Not as promised: a verdict above says where.",
    }
}

/// All runs in virtual time, on all cores; in the order of the scenes, the modes and the seeds.
fn run_all(seeds: u64) -> anyhow::Result<Vec<Run>> {
    let jobs: Vec<(Network, Mode, u64)> = Network::ALL
        .into_iter()
        .flat_map(|network| Mode::ALL.map(|mode| (network, mode)))
        .flat_map(|(network, mode)| (1..=seeds).map(move |seed| (network, mode, seed)))
        .collect();
    let bar = indicatif::ProgressBar::new(jobs.len() as u64).with_style(
        indicatif::ProgressStyle::with_template("{bar:40} {pos}/{len} runs in virtual time").expect("a constant"),
    );
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some((network, mode, seed)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let outcome = scene::run(*network, *mode, *seed);
            done.push(outcome.with_context(|| format!("{} on {network:?} links, seed {seed}", mode.name())));
            bar.inc(1);
        }
        done
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(jobs.len());
    let done: Vec<anyhow::Result<Run>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("a run does not panic")).collect()
    });
    bar.finish_and_clear();
    let mut runs = done.into_iter().collect::<anyhow::Result<Vec<Run>>>()?;
    let place = |run: &Run| jobs.iter().position(|job| *job == (run.network, run.mode, run.seed));
    runs.sort_by_key(place);
    Ok(runs)
}

/// The scenes that run live, one after the other: two at once would disturb each other.
async fn run_live(args: &Args) -> anyhow::Result<Vec<Live>> {
    let all = || Network::ALL.into_iter().flat_map(|network| Mode::ALL.map(|mode| (network, mode)));
    let wanted = all().filter(|one| args.live || (!args.no_live && *one == (Network::Shared, Mode::Fairpath)));
    let mut outcomes = Vec::new();
    for (network, mode) in wanted {
        let links = if network == Network::Shared { "one shared link" } else { "two separate links" };
        tell(format_args!("Live, over real sockets: {}, {links}, {} s …", mode.name(), live::TIME.as_secs()));
        let outcome = live::run(network, mode).await;
        outcomes.push(outcome.with_context(|| format!("live: {} on {network:?} links", mode.name()))?);
    }
    Ok(outcomes)
}

fn report(rows: &[Row], seeds: u64) -> String {
    let (separate, shared): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(|row| row.network == Network::Separate);
    let links = format!("{LINK}, {} ms, queues of {} ms", RTT.as_millis(), QUEUE.as_millis());
    let mut text = format!("Two separate links of {links}; {seeds} seeds, means and 95 % intervals, Mbit/s\n\n");
    let cells: Vec<Vec<String>> = separate
        .iter()
        .map(|row| {
            let times = row.times_one_path.as_ref().map(|times| interval(times, 2));
            vec![row.mode.name().into(), interval(&row.goodput, 1), times.unwrap_or_default(), row.verdict.clone()]
        })
        .collect();
    text += &table(&["", "goodput", "times one path", ""], &cells);
    let _ = write!(text, "\nOne link of {links}, shared with somebody else's CUBIC connection\n\n");
    let cells: Vec<Vec<String>> = shared
        .iter()
        .map(|row| {
            let or_none = |one: &Option<Estimate>, digits| one.as_ref().map_or("-".into(), |one| interval(one, digits));
            let name = row.mode.name().into();
            let goodput = interval(&row.goodput, 1);
            vec![name, goodput, or_none(&row.competitor, 1), or_none(&row.share, 2), row.verdict.clone()]
        })
        .collect();
    text += &table(&["", "goodput", "somebody else", "share", ""], &cells);
    for row in rows.iter().filter(|row| row.mode == Mode::Fairpath && !row.found_after.is_empty()) {
        let (least, most) = row.found_after.iter().fold((f64::MAX, 0.0), |(a, b), one| (one.min(a), one.max(b)));
        let links = if row.network == Network::Shared { "shared" } else { "separate" };
        let found = row.found_after.len();
        let _ = writeln!(
            text,
            "Fairpath found the {links} link in {found} of {seeds} runs, after {least:.1} to {most:.1} s."
        );
    }
    text
}

fn interval(one: &Estimate, digits: usize) -> String {
    match one.half_width {
        Some(half) => format!("{:.digits$} ± {half:.digits$}", one.mean),
        None => format!("{:.digits$}", one.mean),
    }
}

/// The files to be written, the trace opened before the runs so that these are not for nothing.
struct Files {
    picture: PathBuf,
    trace: PathBuf,
    trace_file: TraceFile,
}

impl Files {
    fn create(out: &Path) -> anyhow::Result<Self> {
        std::fs::create_dir_all(out).with_context(|| format!("cannot create the directory {}", out.display()))?;
        let (picture, trace) = (out.join("demo.svg"), out.join("demo.ndjson"));
        let trace_file = TraceFile::create(&trace, "demo")?;
        Ok(Self { picture, trace, trace_file })
    }

    /// Writes both, the trace from the first seed, and says where they are: picture and trace.
    fn write(mut self, runs: &[Run], rows: &[Row]) -> anyhow::Result<(PathBuf, PathBuf)> {
        let svg = picture::draw(rows, runs)?;
        std::fs::write(&self.picture, svg).with_context(|| format!("cannot write {}", self.picture.display()))?;
        self.trace_file.write(runs.iter().filter(|run| run.seed == 1).flat_map(|run| &run.records))?;
        self.trace_file.finish()?;
        Ok((self.picture, self.trace))
    }
}
