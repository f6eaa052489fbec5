//! `fairpath recv` and `fairpath send` as a person runs them, over loopback.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use fairpath_transfer::{Secret, Ticket};
use serde_json::Value;

/// A directory that disappears in the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("fairpath-test-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(path.join("from")).unwrap();
        fs::create_dir_all(path.join("to")).unwrap();
        Self(path)
    }

    /// A file to send.
    fn file(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.0.join("from").join(name);
        fs::write(&path, content).unwrap();
        path
    }

    fn to(&self) -> PathBuf {
        self.0.join("to")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn fairpath() -> Command {
    Command::new(env!("CARGO_BIN_EXE_fairpath"))
}

/// A receiver that has printed its ticket.
struct Recv {
    child: Child,
    output: BufReader<ChildStdout>,
    ticket: String,
}

impl Recv {
    fn start(directory: &Path, more: &[&str]) -> Self {
        let mut command = fairpath();
        command.args(["recv", "--listen", "127.0.0.1:0", "--dir"]).arg(directory).args(more);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        Self { child, output, ticket: line.trim_end().to_owned() }
    }

    /// The exit code, the rest of standard output, and standard error.
    fn end(mut self) -> (Option<i32>, String, String) {
        let (mut output, mut errors) = (String::new(), String::new());
        self.output.read_to_string(&mut output).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        (self.child.wait().unwrap().code(), output, errors)
    }
}

impl Drop for Recv {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn send(files: &[&Path], ticket: &str, more: &[&str]) -> Output {
    fairpath().arg("send").args(files).arg(ticket).args(more).output().unwrap()
}

fn error_of(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let errors: Vec<_> = text.lines().filter(|line| line.starts_with("error: ")).map(str::to_owned).collect();
    assert_eq!(errors.len(), 1, "one clear error: {text}");
    errors.into_iter().next().unwrap()
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what} never came");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A file of `megabytes` that takes no room here.
fn large_file(scratch: &Scratch, megabytes: u64) -> PathBuf {
    let path = scratch.file("large", b"");
    fs::File::options().write(true).open(&path).unwrap().set_len(megabytes * 1_000_000).unwrap();
    path
}

fn partial_files(directory: &Path, ending: &str) -> Vec<PathBuf> {
    let listed = fs::read_dir(directory.join(".fairpath-partial")).into_iter().flatten();
    let paths = listed.filter_map(|item| Some(item.ok()?.path()));
    paths.filter(|path| path.to_string_lossy().ends_with(ending)).collect()
}

#[test]
fn files_and_directories_arrive_and_both_ends_sum_up() {
    let scratch = Scratch::new();
    let one = scratch.file("one file", &[7; 300_000]);
    let tree = scratch.0.join("from/tree");
    fs::create_dir_all(tree.join("empty")).unwrap();
    fs::write(tree.join("x"), "x").unwrap();
    let trace = scratch.0.join("trace.ndjson");
    let recv = Recv::start(&scratch.to(), &["--json"]);
    let output = send(&[&one, &tree], &recv.ticket, &["--json", "--trace", trace.to_str().unwrap()]);
    assert!(output.status.success(), "{output:?}");
    let sent: Value = serde_json::from_slice(&output.stdout).unwrap();
    let (code, received, errors) = recv.end();
    assert_eq!(code, Some(0), "{errors}");
    let received: Value = serde_json::from_str(&received).unwrap();
    for (summary, role) in [(&sent, "send"), (&received, "receive")] {
        assert_eq!((&summary["files"], &summary["bytes"]), (&2.into(), &300_001.into()));
        assert_eq!(summary["role"], role);
        assert!(!summary["paths"].as_array().unwrap().is_empty(), "{summary}");
    }
    assert!(errors.contains("received 2 files, 300.0 kB"), "{errors}");
    assert_eq!(fs::read(scratch.to().join("one file")).unwrap(), [7; 300_000]);
    assert!(scratch.to().join("tree/empty").is_dir());
    assert!(fs::read_to_string(trace).unwrap().starts_with('{'));
}

#[test]
fn what_the_user_can_get_wrong_is_one_clear_error() {
    let scratch = Scratch::new();
    let file = scratch.file("x", b"content");
    let recv = Recv::start(&scratch.to(), &[]);

    let truncated = send(&[&file], &recv.ticket[..40], &[]);
    assert!(error_of(&truncated).contains("truncated"));
    assert_eq!(truncated.status.code(), Some(2));

    let missing = send(&[Path::new("/nowhere/x")], &recv.ticket, &[]);
    assert_eq!(error_of(&missing), "error: no such file: /nowhere/x");
    assert_eq!(missing.status.code(), Some(1));

    let unknown = send(&[&file], &recv.ticket, &["--congestion", "magic"]);
    let error = error_of(&unknown);
    assert!(error.contains("magic") && error.contains("olia"), "the names that exist are listed: {error}");
    assert_eq!(unknown.status.code(), Some(2));

    let mut other: Ticket = recv.ticket.parse().unwrap();
    other.fingerprint = [1; 32];
    let stranger = send(&[&file], &other.to_string(), &[]);
    assert!(error_of(&stranger).contains("not the one meant"), "{stranger:?}");
    assert_eq!(stranger.status.code(), Some(1));
    assert_eq!(fs::read_dir(scratch.to()).unwrap().count(), 0);
}

#[test]
fn three_wrong_secrets_end_the_receiver() {
    let scratch = Scratch::new();
    let file = scratch.file("x", b"content");
    let recv = Recv::start(&scratch.to(), &[]);
    let mut wrong: Ticket = recv.ticket.parse().unwrap();
    wrong.secret = Secret::from_bytes([0; 16]);
    for attempt in 1..=3 {
        let refused = send(&[&file], &wrong.to_string(), &[]);
        assert_eq!(refused.status.code(), Some(1));
        assert!(error_of(&refused).contains("secret"), "{attempt}: {refused:?}");
    }
    let (code, _, errors) = recv.end();
    assert_eq!(code, Some(1));
    assert!(errors.contains("error: 3 wrong secrets"), "{errors}");
    assert_eq!(fs::read_dir(scratch.to()).unwrap().count(), 0);
}

#[test]
fn an_existing_file_stays_unless_forced() {
    let scratch = Scratch::new();
    let file = scratch.file("x", b"new");
    fs::write(scratch.to().join("x"), b"precious").unwrap();
    let recv = Recv::start(&scratch.to(), &[]);
    let refused = send(&[&file], &recv.ticket, &[]);
    assert!(error_of(&refused).contains("already exists"), "{refused:?}");
    let (code, _, errors) = recv.end();
    assert_eq!(code, Some(1));
    assert!(errors.contains("--force"), "{errors}");
    assert_eq!(fs::read(scratch.to().join("x")).unwrap(), b"precious");

    let recv = Recv::start(&scratch.to(), &["--force"]);
    assert!(send(&[&file], &recv.ticket, &["--quiet"]).stderr.is_empty());
    assert_eq!(recv.end().0, Some(0));
    assert_eq!(fs::read(scratch.to().join("x")).unwrap(), b"new");
}

#[test]
fn a_killed_sender_resumes_with_the_same_ticket() {
    let scratch = Scratch::new();
    let file = large_file(&scratch, 300);
    let recv = Recv::start(&scratch.to(), &[]);
    let mut first = fairpath().arg("send").arg(&file).arg(&recv.ticket).stderr(Stdio::null()).spawn().unwrap();
    until("a good part", || {
        partial_files(&scratch.to(), ".part")
            .iter()
            .any(|part| fs::metadata(part).is_ok_and(|part| part.len() > 50_000_000))
    });
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(!scratch.to().join("large").exists());

    let second = send(&[&file], &recv.ticket, &["--json"]);
    assert!(second.status.success(), "{second:?}");
    let summary: Value = serde_json::from_slice(&second.stdout).unwrap();
    assert!(summary["resumed_bytes"].as_u64().unwrap() > 10_000_000, "{summary}");
    let (code, _, errors) = recv.end();
    assert_eq!(code, Some(0), "{errors}");
    assert_eq!(fs::metadata(scratch.to().join("large")).unwrap().len(), 300_000_000);
    assert!(!scratch.to().join(".fairpath-partial").exists());
}

#[test]
fn a_killed_receiver_uses_what_its_journal_says() {
    let scratch = Scratch::new();
    let file = large_file(&scratch, 600);
    let mut recv = Recv::start(&scratch.to(), &[]);
    let mut first = fairpath().arg("send").arg(&file).arg(&recv.ticket).stderr(Stdio::null()).spawn().unwrap();
    until("a journal", || !partial_files(&scratch.to(), ".journal").is_empty() || scratch.to().join("large").exists());
    recv.child.kill().unwrap();
    first.kill().unwrap();
    first.wait().unwrap();
    if scratch.to().join("large").exists() {
        println!("skipped: this machine is too fast, everything arrived within a second");
        return;
    }

    let recv = Recv::start(&scratch.to(), &[]);
    let second = send(&[&file], &recv.ticket, &["--json"]);
    assert!(second.status.success(), "{second:?}");
    let summary: Value = serde_json::from_slice(&second.stdout).unwrap();
    assert!(summary["resumed_bytes"].as_u64().unwrap() > 1_000_000, "{summary}");
    assert_eq!(recv.end().0, Some(0));
    assert_eq!(fs::metadata(scratch.to().join("large")).unwrap().len(), 600_000_000);
}
