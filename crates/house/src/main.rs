//! Lists what the checks of the house count.

use std::path::Path;
use std::process::ExitCode;

use fairpath_house::english::Fault;
use fairpath_house::{comparison, constants, figures, ratchet, repository, size};

const USAGE: &str = "usage: fairpath-house english|figures|constants [--record] | compare COMMIT | size COMMIT
  english              lists sentences that are too long and comments that begin with a relative word
  english --record     writes the counts to crates/house/english.toml, where none of them has grown
  figures              lists sentences of documents with figures of performance that have no evidence behind them
  figures --record     writes their counts to crates/house/figures.toml, where none of them has grown
  constants            prints docs/reference/constants.md: value, meaning, place, source, and the row or table
  constants --record   writes how many have neither to crates/house/constants.toml, where none of them has grown
  compare COMMIT       compares docs/evidence of a commit with that of now: claims that have another outcome, numbers
                       that differ by more than their intervals
  size COMMIT          compares the lines of code and the constants of each crate at a commit with those of now";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["english"] => list(),
        ["english", "--record"] => return record(),
        ["figures"] => list_figures(),
        ["figures", "--record"] => return record_figures(),
        ["constants"] => print!("{}", constants::page()),
        ["constants", "--record"] => return record_constants(),
        ["compare", commit] => {
            return compare(comparison::of_commit(commit), |before| comparison::table(before, &comparison::now()));
        }
        ["size", commit] => {
            return compare(size::of_commit(commit), |before| size::table(commit, before, &size::now()));
        }
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

fn list() {
    for (path, finding) in ratchet::findings().into_values().flatten() {
        let fault = match finding.fault {
            Fault::Long => "long sentence",
            Fault::Relative => "relative word",
        };
        println!("{}:{}: {fault}: {}", repository::relative(&path), finding.line, finding.text);
    }
}

fn record() -> ExitCode {
    let (recorded, counts) = (ratchet::recorded(), ratchet::counts());
    for (part, count) in &counts {
        let allowed = recorded.get(part).copied().unwrap_or_default();
        if count.long > allowed.long || count.relative > allowed.relative {
            eprintln!("error: {part} has {count:?}, and {allowed:?} is recorded: the counts may only fall");
            return ExitCode::FAILURE;
        }
    }
    write(&ratchet::file(), &ratchet::to_toml(&counts))
}

fn list_figures() {
    for (document, found) in figures::findings() {
        for finding in found {
            println!("{document}:{}: {}", finding.line, finding.text);
        }
    }
}

fn record_figures() -> ExitCode {
    let (recorded, findings) = (figures::recorded(), figures::findings());
    for (document, found) in &findings {
        let allowed = recorded.get(document).copied().unwrap_or_default();
        if found.len() > allowed {
            eprintln!("error: {document} has {}, and {allowed} is recorded: the counts may only fall", found.len());
            return ExitCode::FAILURE;
        }
    }
    write(&figures::file(), &figures::to_toml(&findings))
}

fn record_constants() -> ExitCode {
    let (recorded, counts) = (constants::recorded(), constants::bare());
    for (part, count) in &counts {
        let allowed = recorded.get(part).copied().unwrap_or_default();
        if *count > allowed {
            eprintln!("error: {part} has {count} bare constants, and {allowed} are recorded: the counts may only fall");
            return ExitCode::FAILURE;
        }
    }
    write(&constants::file(), &constants::to_toml(&counts))
}

fn compare<T>(before: Result<T, String>, table: impl Fn(&T) -> String) -> ExitCode {
    match before {
        Ok(before) => {
            print!("{}", table(&before));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write(file: &Path, text: &str) -> ExitCode {
    match std::fs::write(file, text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}: {error}", file.display());
            ExitCode::FAILURE
        }
    }
}
