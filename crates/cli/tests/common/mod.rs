//! The program as a person runs it.

#![allow(dead_code, reason = "every test file uses a part of it")]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use fairpath_transfer::{Secret, Ticket};

/// A directory that disappears in the end.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("fairpath-test-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// A file in it, for whoever has no use for directories.
    pub(crate) fn file(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// A large file of holes that travels whole: in each record is a byte that is no zero.
    pub(crate) fn large(&self, name: &str, megabytes: u64) -> PathBuf {
        let path = self.file(name, b"");
        let file = fs::File::options().write(true).open(&path).unwrap();
        let size = megabytes * 1_000_000;
        file.set_len(size).unwrap();
        (0..size).step_by(fairpath_quic::RECORD).for_each(|at| file.write_all_at(&[1], at).unwrap());
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn fairpath(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fairpath"));
    // Runs keep some things for later ones: below the target directory, not in the tester's home.
    command.env("XDG_STATE_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/state")).args(args);
    command
}

pub(crate) fn run(args: &[&str]) -> Output {
    fairpath(args).output().unwrap()
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("a path of this test is UTF-8")
}

/// The only line of standard error that is an error.
pub(crate) fn error_of(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let errors: Vec<_> = text.lines().filter(|line| line.starts_with("error: ")).map(str::to_owned).collect();
    assert_eq!(errors.len(), 1, "one clear error: {text}");
    errors.into_iter().next().unwrap()
}

/// A receiver or server that has printed its ticket.
pub(crate) struct Listening {
    pub(crate) child: Child,
    output: BufReader<ChildStdout>,
    pub(crate) ticket: String,
}

impl Listening {
    pub(crate) fn start(args: &[&str]) -> Self {
        Self::of(fairpath(args))
    }

    pub(crate) fn of(command: Command) -> Self {
        Self::with_errors(command, Stdio::piped())
    }

    /// The same with its standard error somewhere else.
    pub(crate) fn with_errors(mut command: Command, errors: Stdio) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(errors).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        Self { child, output, ticket: line.trim_end().to_owned() }
    }

    /// Its ticket with another secret.
    pub(crate) fn ticket_with_wrong_secret(&self) -> String {
        let mut wrong: Ticket = self.ticket.parse().unwrap();
        wrong.secret = Secret::from_bytes([0; 16]);
        wrong.to_string()
    }

    /// The exit code, and the rest of standard output.
    pub(crate) fn end_of_output(&mut self) -> (Option<i32>, String) {
        let mut output = String::new();
        self.output.read_to_string(&mut output).unwrap();
        (self.child.wait().unwrap().code(), output)
    }

    /// The exit code, the rest of standard output, and standard error.
    pub(crate) fn end(mut self) -> (Option<i32>, String, String) {
        let (mut output, mut errors) = (String::new(), String::new());
        self.output.read_to_string(&mut output).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        (self.child.wait().unwrap().code(), output, errors)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A ticket of a receiver that is not there: nobody listens on that port of this machine.
pub(crate) fn ticket_of_nobody() -> String {
    let addresses = vec!["127.0.0.1:1".parse().unwrap()];
    Ticket { addresses, fingerprint: [7; 32], secret: Secret::generate().unwrap() }.to_string()
}
