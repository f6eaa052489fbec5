//! `fairpath demo`: what coupling is for, on this machine, in under a minute.

mod picture;
mod scene;
mod verdict;

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use fairpath_core::Bitrate;
use fairpath_quic::Coupling;
use serde_json::json;

use crate::recording::TraceFile;
use crate::text::table;
use scene::{Mode, Network, Outcome, Span};
use verdict::Row;

/// See it work: real QUIC over emulated links, without network, root or flags, in under a minute
///
/// Two scenes: two separate bottlenecks, where a bond should be fast, and one bottleneck shared with
/// a competing connection, where it should be fair. Each runs with a single path, with uncoupled
/// paths, coupled by LIA and by OLIA, all of them beside Reno; and as all of Fairpath does by default,
/// coupled CUBIC where the paths are found to share a bottleneck, beside CUBIC. A table, a picture and
/// a trace come out.
#[derive(Debug, clap::Args)]
#[command(before_help = "Example:\n  fairpath demo\n  fairpath demo --out /tmp/demo --json\n  \
    fairpath demo --coupling auto")]
pub(crate) struct Args {
    /// Only the runs whose paths are coupled then, beside those with a single path
    #[arg(long, value_name = "WHEN", value_parser = crate::engine_args::coupling())]
    coupling: Option<Coupling>,
    /// Where the picture and the trace go
    #[arg(long, value_name = "DIR", default_value = "fairpath-demo")]
    out: PathBuf,
    /// How long to measure on the shared bottleneck, in seconds; shorter measures more noise. Separate
    /// ones, where little varies, take a quarter of it
    #[arg(long, value_name = "SECONDS", default_value_t = 32, value_parser = clap::value_parser!(u64).range(2..=3600))]
    seconds: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The scenes, in the order in which they run.
const SCENES: [Network; 2] = [Network::Separate, Network::Shared];

/// Slow start and the first losses are over after this long.
const START_UP: Duration = Duration::from_secs(6);

/// How long the parts of a scene take, where the shared bottleneck is measured for so many seconds. Two
/// connections there win from each other by turns: the share of one spreads by 0.12 in 20 s and by 0.09 in
/// 32 s, while what separate bottlenecks give is the same to a hundredth each time.
fn span(network: Network, seconds: u64) -> Span {
    let measured = Duration::from_secs(seconds);
    let measured = if network == Network::Shared { measured } else { measured / 4 };
    Span { start_up: START_UP, measured }
}

pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    // Before a minute is spent: can the results be kept?
    let files = Files::create(&args.out)?;
    let outcomes = run_all(args.coupling, args.seconds).await?;
    let rows: Vec<Row> = SCENES.into_iter().flat_map(|network| verdict::rows(&of(&outcomes, network))).collect();
    let (picture, trace) = files.write(&outcomes, &rows)?;
    let mut out = std::io::stdout().lock();
    if args.json {
        let result = json!({
            "bottleneck_bps": scene::BOTTLENECK.as_bps(),
            "runs": rows,
            "picture": picture,
            "trace": trace,
        });
        writeln!(out, "{}", serde_json::to_string_pretty(&result)?)?;
    } else {
        write!(out, "{}", report(&rows))?;
        writeln!(out, "Picture: {}", picture.display())?;
        writeln!(out, "Trace:   {}", trace.display())?;
    }
    Ok(())
}

fn of(outcomes: &[Outcome], network: Network) -> Vec<&Outcome> {
    outcomes.iter().filter(|one| one.network == network).collect()
}

/// One scene after the other: all at once would need more than the two cores of a small machine, and
/// what a busy machine delays looks like a bottleneck that all paths share.
async fn run_all(coupling: Option<Coupling>, seconds: u64) -> anyhow::Result<Vec<Outcome>> {
    let scenes = SCENES.map(|network| (network, Mode::with(coupling, network)));
    let runs = scenes.iter().map(|(_, modes)| modes.len()).sum();
    let bar = progress(runs, SCENES.map(|network| span(network, seconds)).to_vec());
    let mut outcomes = Vec::new();
    for (network, modes) in scenes {
        outcomes.extend(run_scene(network, &modes, span(network, seconds)).await?);
    }
    bar.abort();
    if std::io::stderr().is_terminal() {
        eprint!("\r\x1b[K");
    }
    Ok(outcomes)
}

/// All modes side by side, each in an emulated network of its own.
async fn run_scene(network: Network, modes: &[Mode], span: Span) -> anyhow::Result<Vec<Outcome>> {
    let mut tasks = tokio::task::JoinSet::new();
    for (at, mode) in modes.iter().copied().enumerate() {
        tasks.spawn(async move {
            let outcome = scene::run(network, mode, span).await;
            (at, outcome.with_context(|| format!("{} on {network:?} links", mode.name())))
        });
    }
    let mut outcomes = Vec::new();
    while let Some(task) = tasks.join_next().await {
        let (at, outcome) = task.context("a run panicked")?;
        outcomes.push((at, outcome?));
    }
    outcomes.sort_by_key(|(at, _)| *at);
    Ok(outcomes.into_iter().map(|(_, outcome)| outcome).collect())
}

/// Says what is going on while nothing is to be seen.
fn progress(runs: usize, scenes: Vec<Span>) -> tokio::task::JoinHandle<()> {
    let total: Duration = scenes.iter().map(|scene| scene.start_up + scene.measured).sum();
    eprintln!(
        "{} scenes, {runs} runs, those of a scene side by side over emulated links, about {} s.",
        scenes.len(),
        total.as_secs() + 1
    );
    tokio::spawn(async move {
        if !std::io::stderr().is_terminal() {
            return;
        }
        let bar = indicatif::ProgressBar::new(total.as_secs()).with_style(
            indicatif::ProgressStyle::with_template("{bar:40} {pos}/{len} s {msg}").expect("a constant template"),
        );
        let begun = Instant::now();
        loop {
            let elapsed = begun.elapsed();
            let mut into_scene = elapsed;
            for Span { start_up, measured } in &scenes {
                if into_scene < *start_up + *measured {
                    bar.set_message(if into_scene < *start_up { "starting up" } else { "measuring" });
                    break;
                }
                into_scene -= *start_up + *measured;
            }
            bar.set_position(elapsed.as_secs().min(total.as_secs()));
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
    })
}

fn report(rows: &[Row]) -> String {
    let mbps = |bps: u64| format!("{:.1}", Bitrate::from_bps(bps).as_mbps_f64());
    let number = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.2}"));
    let (separate, shared): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(|row| row.network == Network::Separate);
    let over = |rows: &[&Row]| rows.first().map_or(0.0, |row| row.measured_seconds);
    let mut text = format!(
        "Two separate bottlenecks of {}, {} ms; goodput over {:.0} s in Mbit/s\n\n",
        scene::BOTTLENECK,
        scene::RTT.as_millis(),
        over(&separate)
    );
    let cells: Vec<Vec<String>> = separate
        .iter()
        .map(|row| vec![row.mode.name().into(), mbps(row.goodput_bps), number(row.times_single), row.verdict.clone()])
        .collect();
    text += &table(&["mode", "goodput", "times single", "verdict"], &cells);
    text += &found(&separate);
    text += &format!(
        "\nOne bottleneck of {}, shared with a competing connection of one path; goodput over {:.0} s in Mbit/s\n\n",
        scene::BOTTLENECK,
        over(&shared)
    );
    let cells: Vec<Vec<String>> = shared
        .iter()
        .map(|row| {
            vec![
                row.mode.name().into(),
                row.competitor.clone().unwrap_or_default(),
                mbps(row.goodput_bps),
                row.competitor_bps.map_or("-".into(), mbps),
                number(row.share),
                row.one_path_bps.map_or("-".into(), mbps),
                number(row.jain),
                row.verdict.clone(),
            ]
        })
        .collect();
    text += &table(&["mode", "beside", "goodput", "competitor", "share", "one path", "Jain", "verdict"], &cells);
    text += "One path: what a single path of the competitor's congestion control gets in our place.\n";
    text += &found(&shared);
    let surprises = rows.iter().filter(|row| !row.as_expected).count();
    text += &match surprises {
        0 if !rows.iter().any(|row| row.mode.is_coupled()) => "\n".to_owned(),
        0 => "\nCoupled paths are fast where they can be and fair where they must be.\n\n".to_owned(),
        _ => {
            let runs = rows.len();
            format!(
                "\n{surprises} of {runs} runs did not come out as expected. Shares vary by chance, and more on a busy \
                machine; `fairpath demo --seconds 120` tells chance from the rule.\n\n"
            )
        }
    };
    text
}

/// What was found out about the bottlenecks of a scene.
fn found(rows: &[&Row]) -> String {
    let sharing = rows.iter().filter_map(|row| Some((row.mode, row.sharing.as_ref()?)));
    sharing
        .flat_map(|(mode, sharing)| sharing.sentences().into_iter().map(move |one| format!("{}: {one}\n", mode.name())))
        .collect()
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

    /// Writes both, and says where they are: picture and trace.
    fn write(mut self, outcomes: &[Outcome], rows: &[Row]) -> anyhow::Result<(PathBuf, PathBuf)> {
        let svg = picture::draw(rows, &of(outcomes, Network::Shared))?;
        std::fs::write(&self.picture, svg).with_context(|| format!("cannot write {}", self.picture.display()))?;
        self.trace_file.write(outcomes.iter().flat_map(|one| &one.records))?;
        self.trace_file.finish()?;
        Ok((self.picture, self.trace))
    }
}
