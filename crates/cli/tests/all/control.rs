//! `control`: what the paths of a sender carry, changed while it sends.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::common::{Listening, Scratch, error_of, fairpath, text};
use serde_json::Value;

/// How long a change takes that is made between two looks, and how long what follows is measured.
const HEARD: Duration = Duration::from_millis(700);
const MEASURED: Duration = Duration::from_secs(1);

/// A sender with two paths, its receiver, and the state directory of the sender.
pub(crate) struct Sending {
    child: Child,
    _receiver: Listening,
    scratch: Scratch,
}

impl Sending {
    /// Sends for a dozen seconds. Each path carries half of it at most.
    pub(crate) fn begin() -> Self {
        let scratch = Scratch::new();
        let (inbox, file) = (scratch.0.join("inbox"), scratch.large("film", 60));
        let mut receiver = fairpath(&["recv", "--listen", "127.0.0.1:0", "--dir", text(&inbox), "--quiet"]);
        let receiver = Listening::of({
            receiver.env("XDG_STATE_HOME", scratch.0.join("other"));
            receiver
        });
        let mut sender = fairpath(&["send", text(&file), &receiver.ticket, "--limit", "40Mbit/s", "--quiet"]);
        sender.args(["--via", "127.0.1.1", "--via", "127.0.2.1"]);
        sender.args(["--path", "127.0.1.1:cap=20Mbit/s", "--path", "127.0.2.1:cap=20Mbit/s"]);
        let sender = sender.env("XDG_STATE_HOME", scratch.0.join("state")).stdout(Stdio::null()).stderr(Stdio::null());
        let sending = Self { child: sender.spawn().unwrap(), _receiver: receiver, scratch };
        let open = || sending.list()["peers"][0]["paths"].as_array().map_or(0, Vec::len);
        (0..100).take_while(|_| open() < 2).for_each(|_| std::thread::sleep(Duration::from_millis(50)));
        sending
    }

    fn control(&self, words: &[&str]) -> std::process::Output {
        self.command(&[&["control"], words].concat()).output().unwrap()
    }

    /// A command of the sender's user.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = fairpath(words);
        command.env("XDG_STATE_HOME", self.scratch.0.join("state"));
        command
    }

    /// Asks for a change; the words of the answer.
    fn change(&self, words: &[&str]) -> String {
        let done = self.control(words);
        assert!(done.status.success(), "{done:?}");
        String::from_utf8(done.stdout).unwrap().trim_end().to_owned()
    }

    fn list(&self) -> Value {
        serde_json::from_slice(&self.control(&["list", "--json"]).stdout).unwrap_or_default()
    }

    /// How much the paths from the two addresses have carried.
    fn carried(&self) -> [f64; 2] {
        let paths = self.list()["peers"][0]["paths"].as_array().cloned().unwrap_or_default();
        ["127.0.1.1", "127.0.2.1"].map(|local| {
            let from = paths.iter().filter(|path| path["local"] == local);
            from.map(|path| path["acked_bytes"].as_f64().unwrap()).sum()
        })
    }

    /// The rates from the two addresses for a while, in Mbit/s.
    fn rates(&self) -> [f64; 2] {
        std::thread::sleep(HEARD);
        let (before, begun) = (self.carried(), std::time::Instant::now());
        std::thread::sleep(MEASURED);
        let (after, elapsed) = (self.carried(), begun.elapsed());
        [0, 1].map(|at| (after[at] - before[at]) * 8e-6 / elapsed.as_secs_f64())
    }

    /// The directory of the sender's socket.
    fn own(&self) -> PathBuf {
        let running = self.scratch.0.join("state/fairpath/running");
        running.join(format!("send-{}", self.child.id()))
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn mode(file: &Path) -> u32 {
    std::fs::metadata(file).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_path_is_capped_parked_used_again_and_preferred_while_a_file_is_sent() {
    let sending = Sending::begin();
    assert_eq!((mode(&sending.own()), mode(&sending.own().join("control"))), (0o700, 0o600));
    let both = sending.rates();
    assert!(both.iter().all(|rate| *rate > 8.0), "{both:?}");
    let words = sending.change(&["cap", "127.0.2.1", "2Mbit/s"]);
    assert_eq!(words, "127.0.2.1: 2.0 Mbit/s at most, each way");
    let capped = sending.rates();
    assert!(capped[1] < 4.0 && capped[0] > 8.0, "{capped:?}");
    sending.change(&["park", "127.0.1.1"]);
    // A list right after a change shows what holds.
    let shown = String::from_utf8(sending.control(&["list"]).stdout).unwrap();
    assert!(shown.contains("parked") && shown.contains("cap 2.0 Mbit/s"), "{shown}");
    sending.change(&["cap", "127.0.2.1", "20Mbit/s"]);
    let parked = sending.rates();
    assert!(parked[0] < 0.5 && parked[1] > 8.0, "{parked:?}");
    let shown = String::from_utf8(sending.control(&["list"]).stdout).unwrap();
    assert!(shown.contains("parked") && shown.contains("a backup: data was to be kept off it"), "{shown}");
    sending.change(&["unpark", "127.0.1.1"]);
    let back = sending.rates();
    assert!(back.iter().all(|rate| *rate > 8.0), "{back:?}");
    ["127.0.1.1", "127.0.2.1"].iter().for_each(|path| _ = sending.change(&["cap", path, "none"]));
    let done: Value = serde_json::from_str(&sending.change(&["prefer", "127.0.2.1", "--json"])).unwrap();
    assert!(done["done"].as_str().unwrap().starts_with("127.0.2.1 goes first"), "{done}");
    let preferred = sending.rates();
    assert!(preferred[1] > 8.0 && preferred[1] > 5.0 * preferred[0], "{preferred:?}");

    for (words, expected) in [
        (
            &["park", "wwan9"][..],
            "no interface or address 'wwan9' on this machine; there are lo:127.0.1.1, lo:127.0.2.1",
        ),
        (&["cap", "127.0.1.1", "fast"], "cap: "),
        (&["cost", "127.0.1.1", "2000"], "cost: 2000 is no whole number from 0 to 1000"),
    ] {
        let refused = sending.control(words);
        assert!(error_of(&refused).contains(expected) && refused.status.code() == Some(2), "{words:?}: {refused:?}");
    }
}

#[test]
fn where_no_end_runs_that_is_told() {
    let scratch = Scratch::new();
    let control = |words: &[&str]| fairpath(words).env("XDG_STATE_HOME", &scratch.0).output().unwrap();
    let refused = control(&["control", "list"]);
    assert!(error_of(&refused).contains("runs here for this user: start one"), "{refused:?}");
    let refused = control(&["control", "--end", "recv", "park", "lo"]);
    assert!(error_of(&refused).contains("no end called 'recv' runs here"), "{refused:?}");
    assert_eq!(refused.status.code(), Some(1));
}

#[test]
fn top_ends_where_nobody_reads_it_any_more() {
    let sending = Sending::begin();
    let mut top = sending.command(&["top", "--end", "send", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut first = [0; 1];
    std::io::Read::read_exact(&mut top.stdout.take().unwrap(), &mut first).unwrap();
    for _ in 0..100 {
        if let Some(ended) = top.try_wait().unwrap() {
            return assert!(ended.success());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    top.kill().unwrap();
    panic!("it goes on");
}
