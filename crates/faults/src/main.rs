//! `fairpath-faults`: runs scenarios by their seeds, on all cores, and makes those that fail small.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use clap::Parser;
use fairpath_faults::{Cryptography, Failure, Outcome, Scenario, Teller, Transfer};
use indicatif::{ProgressBar, ProgressStyle};
use rayon::prelude::*;

/// Runs both ends of connections in virtual time while links break, and checks that nothing is lost, that
/// windows are kept to, and that everything works again afterwards.
///
/// Example: fairpath-faults --seeds 0..10000
#[derive(Debug, Parser)]
#[command(version, about)]
struct Arguments {
    /// The seeds to run: 'first..end', the end excluded, or one seed
    #[arg(long, default_value = "0..300", value_parser = parse_seeds)]
    seeds: Range<u64>,
    /// Run every scenario twice, and fail where the two differ
    #[arg(long)]
    twice: bool,
    /// Print the scenario of each seed that fails as it was drawn, without making it small
    #[arg(long)]
    whole: bool,
    /// Leave the cryptography out, which takes less time
    #[arg(long)]
    null: bool,
    /// Tell what happens to each seed: the faults, each datagram that leaves or comes, and how the paths stand
    #[arg(long)]
    trace: bool,
    /// Open streams, and go on with them on a new connection where one is lost
    #[arg(long, conflicts_with = "files")]
    streams: bool,
    /// Transfer files, with all of the product above the sockets
    #[arg(long)]
    files: bool,
}

/// A run that a seed stands for.
trait Run: Sync + std::fmt::Display {
    fn of(seed: u64, cryptography: Cryptography) -> Self;
    fn run(&self, teller: Option<Teller>) -> Result<Outcome, Failure>;
    fn minimised(&self, fails: impl Fn(&Self) -> bool) -> Self;
}

impl Run for Scenario {
    fn of(seed: u64, cryptography: Cryptography) -> Self {
        Self { cryptography, ..Self::of(seed) }
    }

    fn run(&self, teller: Option<Teller>) -> Result<Outcome, Failure> {
        self.run_told(teller)
    }

    fn minimised(&self, fails: impl Fn(&Self) -> bool) -> Self {
        self.minimised(fails)
    }
}

/// A scenario with streams.
struct OnStreams(Scenario);

impl std::fmt::Display for OnStreams {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl Run for OnStreams {
    fn of(seed: u64, cryptography: Cryptography) -> Self {
        Self(Scenario { cryptography, ..Scenario::of_streams(seed) })
    }

    fn run(&self, teller: Option<Teller>) -> Result<Outcome, Failure> {
        self.0.run_told(teller)
    }

    fn minimised(&self, fails: impl Fn(&Self) -> bool) -> Self {
        Self(self.0.minimised(|scenario| fails(&Self(scenario.clone()))))
    }
}

impl Run for Transfer {
    fn of(seed: u64, cryptography: Cryptography) -> Self {
        Self { cryptography, ..Self::of(seed) }
    }

    fn run(&self, teller: Option<Teller>) -> Result<Outcome, Failure> {
        self.run_told(teller)
    }

    fn minimised(&self, fails: impl Fn(&Self) -> bool) -> Self {
        self.minimised(fails)
    }
}

fn parse_seeds(text: &str) -> Result<Range<u64>, String> {
    let number = |text: &str| text.trim().parse::<u64>().map_err(|_| format!("'{text}' is no whole number"));
    let range = match text.split_once("..") {
        Some((first, end)) => number(first)?..number(end)?,
        None => {
            let seed = number(text)?;
            seed..seed.saturating_add(1)
        }
    };
    match range.is_empty() {
        true => Err(format!("'{text}' names no seed: the end is excluded and must be above the first")),
        false => Ok(range),
    }
}

/// A panic is a failure like any other.
fn run(scenario: &impl Run, twice: bool, told: bool) -> Result<Outcome, Failure> {
    let teller = || told.then(|| Box::new(|line: &str| println!("{line}")) as Teller);
    let once = || {
        catch_unwind(AssertUnwindSafe(|| scenario.run(teller()))).unwrap_or_else(|panic| {
            let words = panic.downcast_ref::<String>().map(String::as_str);
            let words = words.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no words");
            Err(Failure(format!("panic: {words}")))
        })
    };
    let outcome = once();
    if twice {
        let came_of = |outcome: &Result<Outcome, Failure>| match outcome {
            Ok(outcome) => outcome.trace.to_string(),
            Err(failure) => failure.to_string(),
        };
        let [first, again] = [came_of(&outcome), came_of(&once())];
        if first != again {
            return Err(Failure(format!("two runs differ: {first} and {again}")));
        }
    }
    outcome
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    std::panic::set_hook(Box::new(|_| {}));
    match (arguments.files, arguments.streams) {
        (true, _) => run_all::<Transfer>(&arguments),
        (false, true) => run_all::<OnStreams>(&arguments),
        (false, false) => run_all::<Scenario>(&arguments),
    }
}

fn run_all<T: Run>(arguments: &Arguments) -> ExitCode {
    let &Arguments { ref seeds, twice, whole, null, trace, files, streams } = arguments;
    let count = seeds.end - seeds.start;
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} seeds, {msg}{eta} to go").expect("a template");
    let bar = ProgressBar::new(count).with_style(style);
    #[expect(clippy::disallowed_methods, reason = "it says how long it took")]
    let begun = Instant::now();
    let (failed, passed) = (Mutex::new(Vec::new()), Mutex::new((Duration::ZERO, 0_u64)));
    seeds.clone().into_par_iter().for_each(|seed| {
        let cryptography = if null { Cryptography::Null } else { Cryptography::Tls };
        let scenario = T::of(seed, cryptography);
        match run(&scenario, twice, trace) {
            Ok(outcome) => {
                let mut passed = passed.lock().expect("nobody panics with it");
                passed.0 += outcome.virtual_time;
                passed.1 += u64::from(outcome.had_to_live);
            }
            Err(failure) => {
                let fails = |other: &T| run(other, twice, false).is_err();
                let scenario = if whole { scenario } else { scenario.minimised(fails) };
                bar.suspend(|| {
                    eprintln!("seed {seed}: {failure}\n{scenario}");
                    let null = if null { " --null" } else { "" };
                    let files = if files { " --files" } else if streams { " --streams" } else { "" };
                    eprintln!(
                        "again: cargo run -q --release -p fairpath-faults -- --seeds {seed} --whole --trace{null}{files}\n"
                    );
                });
                let mut failed = failed.lock().expect("nobody panics with it");
                failed.push(seed);
                bar.set_message(format!("{} failed, ", failed.len()));
            }
        }
        bar.inc(1);
    });
    bar.finish_and_clear();
    let ((virtual_time, lived), mut failed) =
        (passed.into_inner().expect("nobody panicked"), failed.into_inner().expect("nobody panicked"));
    failed.sort_unstable();
    let took = begun.elapsed().as_secs_f64();
    println!(
        "{count} seeds in {took:.1} s, {:.2} h of virtual time; {lived} connections had to live to the end",
        virtual_time.as_secs_f64() / 3600.0
    );
    match failed.is_empty() {
        true => {
            println!("none failed");
            ExitCode::SUCCESS
        }
        false => {
            println!("{} failed: {failed:?}", failed.len());
            ExitCode::FAILURE
        }
    }
}
