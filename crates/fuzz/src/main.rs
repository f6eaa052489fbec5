//! The program behind `make fuzz`: `fairpath-fuzz` without arguments says what it can do.

use std::path::Path;
use std::process::ExitCode;

use fairpath_fuzz::{TARGETS, Target, corpus, target};

const USAGE: &str = "usage: fairpath-fuzz list               the targets
       fairpath-fuzz seeds              write the seeds of all targets into their corpora
       fairpath-fuzz folders TARGET     where its inputs are in the repository, the corpus first
       fairpath-fuzz words TARGET       its words, as a dictionary of libFuzzer
       fairpath-fuzz check TARGET FILE… try inputs out, as after a crash
       fairpath-fuzz fuzz TARGET        look for crashes; built and called by scripts/fuzz.sh";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["list"] => {
            TARGETS.iter().for_each(|target| println!("{:<10} {}", target.name, target.about));
            Ok(())
        }
        ["seeds"] => TARGETS.iter().try_for_each(|target| write_seeds(target)),
        [command, name, files @ ..] => match target::named(name) {
            Some(target) => run(command, target, files),
            None => usage(&format!("there is no target '{name}'")),
        },
        _ => usage("a command is needed"),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Fault { said, code }) => {
            eprintln!("fairpath-fuzz: {said}");
            ExitCode::from(code)
        }
    }
}

/// The message and the exit code of a failure.
struct Fault {
    said: String,
    code: u8,
}

fn usage(said: &str) -> Result<(), Fault> {
    Err(Fault { said: format!("{said}\n{USAGE}"), code: 2 })
}

fn run(command: &str, target: &'static Target, files: &[&str]) -> Result<(), Fault> {
    match (command, files) {
        ("folders", []) => {
            corpus::folders_of(target).iter().for_each(|folder| println!("{}", folder.display()));
            Ok(())
        }
        ("words", []) => {
            target.words.iter().for_each(|word| println!("{}", quoted(word)));
            Ok(())
        }
        ("check", [_, ..]) => files.iter().try_for_each(|file| check(target, file)),
        ("fuzz", []) => fuzz(target),
        _ => usage(&format!("'{command}' is no command, or its arguments are others")),
    }
}

/// A word as the dictionaries of libFuzzer have it.
fn quoted(word: &str) -> String {
    let byte = |byte: u8| match byte {
        b'"' | b'\\' => format!("\\{}", char::from(byte)),
        b' '..=b'~' => char::from(byte).to_string(),
        _ => format!("\\x{byte:02x}"),
    };
    format!("\"{}\"", word.bytes().map(byte).collect::<String>())
}

fn write_seeds(target: &Target) -> Result<(), Fault> {
    let failed = |path: &Path, error| Fault { said: format!("{} cannot be written: {error}", path.display()), code: 1 };
    let folder = corpus::folder(target);
    std::fs::create_dir_all(&folder).map_err(|error| failed(&folder, error))?;
    for seed in (target.seeds)() {
        let path = corpus::seed_file(target, &seed.name);
        std::fs::write(&path, seed.content).map_err(|error| failed(&path, error))?;
    }
    Ok(())
}

fn check(target: &Target, file: &str) -> Result<(), Fault> {
    let input =
        std::fs::read(file).map_err(|error| Fault { said: format!("{file} cannot be read: {error}"), code: 1 })?;
    println!("{file}: {} bytes", input.len());
    (target.check)(&input);
    Ok(())
}

/// Hands over to the fuzzer, which takes its options from the environment and does not come back.
#[cfg(feature = "libfuzzer")]
fn fuzz(target: &'static Target) -> Result<(), Fault> {
    // Where it is called, the macro returns nothing.
    let hand_over = || {
        bolero::check!().with_shrink_time(core::time::Duration::ZERO).for_each(target.check);
    };
    hand_over();
    Ok(())
}

#[cfg(not(feature = "libfuzzer"))]
fn fuzz(_: &Target) -> Result<(), Fault> {
    usage("this was built without a fuzzer: scripts/fuzz.sh builds one")
}
