//! The examples as cargo builds them beside the tests.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

fn example(name: &str) -> Command {
    let mut folder: PathBuf = std::env::current_exe().unwrap();
    folder.pop();
    let file = folder.with_file_name("examples").join(name);
    assert!(file.exists(), "{} is missing: cargo test builds it where no target is named", file.display());
    Command::new(file)
}

/// Ends with its test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    /// Starts an example on loopback, and its first line.
    fn start(arguments: &[&str]) -> (Self, String) {
        let mut command = example("forward");
        let child = command.args(arguments).env("VIA", "127.0.0.1,127.0.0.2").stdout(Stdio::piped()).spawn().unwrap();
        let mut running = Self(child);
        let mut line = String::new();
        BufReader::new(running.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
        (running, line.trim().to_owned())
    }
}

fn output(mut command: Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_example_of_an_echo_uses_two_addresses() {
    let said = output(example("echo"));
    assert!(said.contains("the answer: hello over all paths"), "{said}");
    assert_eq!(said.matches(": open").count(), 2, "{said}");
}

#[test]
fn the_example_of_a_copy_copies_and_draws_a_bar_for_each_path() {
    let folder = std::env::temp_dir().join(format!("fairpath-copy-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let data: Vec<u8> = (0..4_000_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    std::fs::write(folder.join("from"), &data).unwrap();
    let mut command = example("copy");
    command.arg(folder.join("from")).arg(folder.join("to"));
    let said = output(command);
    let copied = std::fs::read(folder.join("to")).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(copied == data);
    assert!(said.contains("4000000 bytes in"), "{said}");
    // The links have rates of 2 to 1. How a short copy begins and ends is not that exact.
    let bars: Vec<usize> = said.lines().map(|line| line.matches('█').count()).filter(|bar| *bar > 0).collect();
    assert!(matches!(bars[..], [40, other] if (8..32).contains(&other)), "{said}");
}

#[test]
fn the_example_of_a_forwarder_carries_tcp() {
    let target = TcpListener::bind("127.0.0.1:0").unwrap();
    let (_serving, told) = Running::start(&["serve", &target.local_addr().unwrap().to_string()]);
    let arguments: Vec<&str> = ["dial", "127.0.0.1:0"].into_iter().chain(told.split(' ')).collect();
    let (_dialing, told) = Running::start(&arguments);
    let mut near = TcpStream::connect(told.strip_prefix("listening on ").unwrap()).unwrap();
    near.write_all(b"a question").unwrap();
    near.shutdown(Shutdown::Write).unwrap();
    let (mut far, _) = target.accept().unwrap();
    let mut heard = String::new();
    far.read_to_string(&mut heard).unwrap();
    far.write_all(b"an answer").unwrap();
    drop(far);
    let mut answer = String::new();
    near.read_to_string(&mut answer).unwrap();
    assert_eq!((heard.as_str(), answer.as_str()), ("a question", "an answer"));
    let source = include_str!("../../examples/forward.rs");
    assert!(source.lines().count() < 100);
}

#[test]
fn the_example_of_events_prints_a_path_that_closes_and_the_end() {
    let said = output(example("events"));
    assert!(said.contains("path closed") && said.contains("with code 7: that was all"), "{said}");
}

#[test]
fn the_guide_names_the_examples_that_there_are() {
    let guide = include_str!("../../../../docs/guide/bond-your-own-program.md");
    for name in ["echo", "copy", "forward", "events"] {
        assert!(guide.contains(&format!("--example {name}")), "{name}");
    }
    // The programs in it are compiled where they stand in the crate, too.
    let programs: Vec<&str> =
        guide.split("```rust,no_run").skip(1).filter_map(|part| part.split("```").next()).collect();
    assert_eq!(programs.len(), 2);
    assert!(programs.iter().all(|program| include_str!("../../README.md").contains(program)));
}
