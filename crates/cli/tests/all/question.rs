//! A receiver that asks its user, in a terminal.

#![cfg(target_os = "linux")]

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Listening, Scratch, fairpath, text};

/// How long the user takes to answer.
const THINKING: Duration = Duration::from_millis(1_500);

/// How long anything may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(20);

/// A terminal: the side of its user, and the side of a program.
fn terminal() -> (File, File) {
    let both = nix::pty::openpty(None, None).unwrap();
    (File::from(both.master), File::from(both.slave))
}

/// A sender that ends with the test, also where that fails while it waits.
struct Sender(Child);

impl Drop for Sender {
    fn drop(&mut self) {
        // It has ended where all went well.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Reads until this stands on the screen; answers all that was read.
fn read_until(screen: &mut File, mut shown: String, end: impl Fn(&str) -> bool) -> String {
    let deadline = Instant::now() + LIMIT;
    let mut some = [0; 1024];
    while !end(&shown) {
        assert!(Instant::now() < deadline, "{shown}");
        let length = screen.read(&mut some).unwrap();
        shown += &String::from_utf8_lossy(&some[..length]);
    }
    shown
}

#[test]
fn the_sender_waits_for_a_yes_whose_time_does_not_count_and_nothing_hides_the_question() {
    const QUESTION: &str = "Take this? [y/N] ";
    const CLEARED: &str = "\u{1b}[2K";
    let scratch = Scratch::new();
    let file = scratch.file("from/letter", b"Dear reader");
    let (mut user, program) = terminal();
    let mut command = fairpath(&["recv", "--via", "127.0.0.1", "--json", "--dir", text(&scratch.0.join("to"))]);
    command.stdin(program.try_clone().unwrap());
    let mut receiver = Listening::with_errors(command, program.into());
    let mut sender = fairpath(&["send", text(&file), &receiver.ticket, "--json"]);
    let mut sender = Sender(sender.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    let shown = read_until(&mut user, String::new(), |shown| shown.contains(QUESTION));
    // Something else happens: somebody comes with a wrong secret, which is told at once.
    let stranger = fairpath(&["send", text(&file), &receiver.ticket_with_wrong_secret()]).output().unwrap();
    assert_eq!(stranger.status.code(), Some(1), "{stranger:?}");
    let shown = read_until(&mut user, shown, |shown| shown.contains("wrong secret") && shown.ends_with(QUESTION));
    // Each thing that is told takes the place of the question, which then stands anew.
    let told_meanwhile = shown.matches(CLEARED).count();
    assert!(told_meanwhile > 0, "{shown}");
    assert_eq!(shown.matches(QUESTION).count(), 1 + told_meanwhile, "{shown}");
    std::thread::sleep(THINKING);
    user.write_all(b"y\n").unwrap();
    let mut told = String::new();
    sender.0.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    let mut summary = String::new();
    sender.0.stdout.take().unwrap().read_to_string(&mut summary).unwrap();
    assert!(sender.0.wait().unwrap().success(), "{told}");
    assert_eq!(told.matches("waiting for the receiver's yes").count(), 1, "{told}");
    let (code, received) = receiver.end_of_output();
    assert_eq!(code, Some(0));
    for summary in [summary, received] {
        let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
        let seconds = summary["seconds"].as_f64().unwrap();
        assert!(seconds < THINKING.as_secs_f64(), "{summary}");
    }
}
