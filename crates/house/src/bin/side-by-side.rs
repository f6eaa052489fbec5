//! Runs the tests of the workspace side by side: `side-by-side [--beside COMMAND] [OPTIONS OF cargo test]`.
//!
//! `cargo test` runs one test program after the other, and those that wait for the real clock leave the processors
//! idle. Here they run in two lanes at ordinary priority: those that wait for links of 10 to 30 Mbit/s between network
//! namespaces, which compute next to nothing, and all others, one after the other. Programs that only compute run beside
//! them at the lowest priority and take what they leave, and so do the examples in the documentation and the command of
//! the shell that `--beside` names. The output of each is printed as a whole when it ends, in the form of `cargo test`.

use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Mutex, PoisonError, mpsc};

/// Packages whose tests open sockets or wait for the real clock.
const REAL_TIME: &[&str] = &["cli", "emu", "fairpath", "noq", "quic", "transfer"];

/// Those of them that have a lane of their own: they wait for the links of networks that they made.
const NETWORKS: &[(&str, &str)] = &[("cli", "namespaces")];

/// Test programs of other packages that do so.
const REAL_TIME_PROGRAMS: &[(&str, &str)] = &[("faults", "emulated")];

/// The longest begin first, so that nothing long is left for the end, when one core would be idle.
const FIRST: &[(&str, &str)] = &[("lab", "quick"), ("cli", "namespaces"), ("faults", "all"), ("sim", "all")];

/// How many programs that only compute run at a time: a second one fills in where the first has one long test left.
const COMPUTING: usize = 2;

/// How many tests of a program that waits for the clock run at a time: they compute for a third of their time at most.
const WAITING: usize = 4;

/// A test program that was built.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Program {
    /// The folder of its package, in which it runs.
    folder: PathBuf,
    /// The name of its target.
    target: String,
    /// Its main file, as seen from that folder.
    source: String,
    executable: PathBuf,
}

impl Program {
    /// Reads one line of what cargo says about a build. `None` where it is about something else than a test program.
    fn from_message(line: &str) -> Option<Self> {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        let is_test = message["reason"] == "compiler-artifact" && message["profile"]["test"] == true;
        let executable = message["executable"].as_str().filter(|_| is_test)?;
        let folder = PathBuf::from(message["manifest_path"].as_str()?).parent()?.to_owned();
        let source = PathBuf::from(message["target"]["src_path"].as_str()?);
        Some(Self {
            target: message["target"]["name"].as_str()?.to_owned(),
            source: source.strip_prefix(&folder).unwrap_or(&source).display().to_string(),
            executable: executable.into(),
            folder,
        })
    }

    /// The name of its package's folder.
    fn package(&self) -> &str {
        self.folder.file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }

    fn title(&self) -> String {
        format!("{}/{} ({})", self.package(), self.source, self.target)
    }

    fn is_real_time(&self) -> bool {
        let known = (self.package(), self.target.as_str());
        REAL_TIME.contains(&known.0) || REAL_TIME_PROGRAMS.contains(&known)
    }

    fn is_of_networks(&self) -> bool {
        NETWORKS.contains(&(self.package(), self.target.as_str()))
    }

    fn rank(&self) -> usize {
        let known = (self.package(), self.target.as_str());
        FIRST.iter().position(|first| *first == known).unwrap_or(FIRST.len())
    }

    fn command(&self) -> Command {
        let mut command = if self.is_real_time() {
            let mut waiting = Command::new(&self.executable);
            waiting.env("RUST_TEST_THREADS", WAITING.to_string());
            waiting
        } else {
            let mut nice = Command::new("nice");
            nice.args(["-n", "19"]).arg(&self.executable);
            nice
        };
        command.current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder);
        command
    }
}

/// Something else that is run beside the tests.
struct Extra {
    title: String,
    /// The command that runs it at the lowest priority, word for word.
    words: Vec<String>,
}

impl Extra {
    fn new(title: &str, words: &[String]) -> Self {
        let nice = ["nice", "-n", "19"].map(str::to_owned);
        Self { title: title.to_owned(), words: [&nice, words].concat() }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.words[0]);
        command.args(&self.words[1..]);
        command
    }
}

/// A program's result.
struct Ended {
    title: String,
    output: Vec<u8>,
    failed: bool,
}

fn main() -> ExitCode {
    let (beside, options) = arguments(std::env::args().skip(1));
    match run(beside.as_deref(), &options) {
        Ok(failed) if failed.is_empty() => ExitCode::SUCCESS,
        Ok(failed) => {
            eprintln!("error: {} test programs failed:\n    {}", failed.len(), failed.join("\n    "));
            ExitCode::FAILURE
        }
        Err(reason) => {
            eprintln!("error: {reason}");
            ExitCode::FAILURE
        }
    }
}

/// The command that is run beside the tests, and the options of cargo.
fn arguments(said: impl Iterator<Item = String>) -> (Option<String>, Vec<String>) {
    let mut options: Vec<String> = said.collect();
    let beside = (options.first().is_some_and(|first| first == "--beside") && options.len() > 1).then(|| {
        options.remove(0);
        options.remove(0)
    });
    if options.is_empty() {
        options.push("--workspace".to_owned());
    }
    (beside, options)
}

/// Builds, runs everything, and returns what failed.
fn run(beside: Option<&str>, options: &[String]) -> Result<Vec<String>, String> {
    let mut programs = built(options)?;
    programs.sort_by_key(Program::rank);
    let (real_time, computing): (Vec<_>, Vec<_>) = programs.into_iter().partition(Program::is_real_time);
    let (networks, sockets): (Vec<_>, Vec<_>) = real_time.into_iter().partition(Program::is_of_networks);
    let [networks, sockets, computing] = [networks, sockets, computing].map(|lane| Mutex::new(lane.into_iter()));
    let (ended, endings) = mpsc::channel();
    let mut failed = Vec::new();
    std::thread::scope(|scope| {
        for queue in [&networks, &sockets].into_iter().chain(std::iter::repeat_n(&computing, COMPUTING)) {
            let ended = ended.clone();
            scope.spawn(move || {
                loop {
                    let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
                    let Some(program) = next else { break };
                    if ended.send(end(&program.title(), program.command())).is_err() {
                        break;
                    }
                }
            });
        }
        // One after the other, for each wants the whole of the target folder.
        scope.spawn(move || {
            for extra in extras(beside, options) {
                if ended.send(end(&extra.title, extra.command())).is_err() {
                    break;
                }
            }
        });
        for ending in endings {
            print(&ending);
            failed.extend(ending.failed.then_some(ending.title));
        }
    });
    Ok(failed)
}

/// The examples in the documentation, each of which cargo builds as a program of its own, and the command of the shell.
fn extras(beside: Option<&str>, options: &[String]) -> Vec<Extra> {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let examples = [words(&[&cargo(), "test"]), options.to_vec(), words(&["--doc", "--no-fail-fast"])].concat();
    let mut extras = vec![Extra::new("the examples in the documentation", &examples)];
    extras.extend(beside.map(|command| Extra::new(command, &words(&["sh", "-c", command]))));
    extras
}

fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}

/// Builds the test programs.
fn built(options: &[String]) -> Result<Vec<Program>, String> {
    let mut build = Command::new(cargo())
        .arg("test")
        .args(options)
        .args(["--no-run", "--message-format=json-render-diagnostics"])
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cargo test --no-run: {error}"))?;
    let mut said = String::new();
    build.stdout.take().expect("it is piped").read_to_string(&mut said).map_err(|error| format!("cargo: {error}"))?;
    let status = build.wait().map_err(|error| format!("cargo: {error}"))?;
    let programs: Vec<Program> = said.lines().filter_map(Program::from_message).collect();
    match status.success() {
        false => Err("the tests could not be built".to_owned()),
        true if programs.is_empty() => Err(format!("there are no tests in {}", options.join(" "))),
        true => Ok(programs),
    }
}

/// Runs a program to its end.
fn end(title: &str, mut command: Command) -> Ended {
    let title = title.to_owned();
    match command.stdin(Stdio::null()).output() {
        Ok(output) => {
            let mut said = output.stderr;
            said.extend(output.stdout);
            if !output.status.success() {
                said.extend(format!("{title}: {}\n", output.status).into_bytes());
            }
            Ended { title, output: said, failed: !output.status.success() }
        }
        Err(error) => Ended { output: format!("{title}: {error}\n").into_bytes(), title, failed: true },
    }
}

fn print(ended: &Ended) {
    let mut out = std::io::stdout().lock();
    // Nobody is left to be told where this cannot be written.
    let _ = writeln!(out, "     Running {}", ended.title).and_then(|()| out.write_all(&ended.output));
    let _ = out.flush();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(test: bool, package: &str, target: &str) -> String {
        format!(
            r#"{{"reason":"compiler-artifact","manifest_path":"/f/crates/{package}/Cargo.toml","profile":{{"test":{test}}},"target":{{"name":"{target}","src_path":"/f/crates/{package}/tests/{target}.rs"}},"executable":"/f/target/{target}-1"}}"#
        )
    }

    #[test]
    fn only_test_programs_are_run() {
        let program = Program::from_message(&message(true, "net", "link")).unwrap();
        assert_eq!((program.package(), program.source.as_str()), ("net", "tests/link.rs"));
        assert_eq!(Program::from_message(&message(false, "net", "link")), None);
        assert_eq!(Program::from_message(r#"{"reason":"build-finished","success":true}"#), None);
        assert_eq!(Program::from_message("not JSON"), None);
    }

    #[test]
    fn what_meets_the_real_clock_keeps_its_priority() {
        for (package, target, is_real_time) in [
            ("cli", "namespaces", true),
            ("faults", "emulated", true),
            ("faults", "all", false),
            ("lab", "quick", false),
        ] {
            let program = Program::from_message(&message(true, package, target)).unwrap();
            assert_eq!(program.is_real_time(), is_real_time, "{package}/{target}");
            assert_eq!(program.command().get_program() == "nice", !is_real_time, "{package}/{target}");
        }
    }

    #[test]
    fn a_command_beside_the_tests_comes_before_the_options_of_cargo() {
        let said = |words: &[&str]| arguments(words.iter().map(|word| (*word).to_owned()));
        let all = vec!["--workspace".to_owned()];
        assert_eq!(said(&[]), (None, all.clone()));
        assert_eq!(said(&["--beside", "make doc"]), (Some("make doc".to_owned()), all));
        assert_eq!(said(&["-p", "fairpath-net"]), (None, vec!["-p".to_owned(), "fairpath-net".to_owned()]));
        let extras = extras(Some("make doc"), &["--workspace".to_owned()]);
        assert_eq!(extras[1].words, ["nice", "-n", "19", "sh", "-c", "make doc"]);
        assert_eq!(extras[0].words[4..], ["test", "--workspace", "--doc", "--no-fail-fast"]);
    }

    #[test]
    fn what_the_lists_name_is_there() {
        let crates = fairpath_house::repository::root().join("crates");
        for package in REAL_TIME {
            assert!(crates.join(package).is_dir(), "{package}");
        }
        for (package, target) in REAL_TIME_PROGRAMS.iter().chain(NETWORKS).chain(FIRST) {
            let tests = crates.join(package).join("tests");
            let main = [tests.join(format!("{target}.rs")), tests.join(target).join("main.rs")];
            assert!(main.iter().any(|main| main.is_file()), "{package}/{target}");
        }
    }
}
