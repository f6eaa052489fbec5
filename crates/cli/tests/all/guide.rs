//! The commands of the guide, run as they stand there, over loopback. Those of the pages on proxies need links: the tests of
//! namespaces run them.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use crate::common::{Listening, Scratch, fairpath, text};
use crate::proxy_pages::PROXY_PAGES;

const PAGES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide");

const HERE: [&str; 6] =
    ["first-transfer", "two-links", "live-stream", "interfaces-and-costs", "when-it-is-slow", "security"];

/// The page whose commands the tests of the library run.
const OF_THE_LIBRARY: &str = "bond-your-own-program";

/// How long what sends until it is stopped must go on without an error.
const GOES_ON: Duration = Duration::from_millis(700);

/// A reader of the guide, with the two ends on one machine.
struct Reader {
    folder: Scratch,
    /// The end that listens, and by which command.
    listening: Option<(String, Listening)>,
}

impl Reader {
    fn new() -> Self {
        let folder = Scratch::new();
        folder.file("photos/one.jpg", &[7; 100_000]);
        folder.file("notes.txt", b"notes");
        Self { folder, listening: None }
    }

    fn types(&mut self, line: &str) {
        let words = words(line);
        match listens(&words) {
            Some(kind) => self.listens(kind, &words),
            None if words.starts_with(&["stream".to_owned(), "send".to_owned()]) => self.sends_on(&words, line),
            None => {
                let output = self.runs(&words);
                assert!(output.status.success(), "{line}: {output:?}");
            }
        }
    }

    /// A command that prints a ticket. It listens on loopback only, where all interfaces of this reader are.
    fn listens(&mut self, kind: &str, words: &[String]) {
        let words = [words, &["--listen".to_owned(), "127.0.0.1:0".to_owned()]].concat();
        self.listening = Some((kind.to_owned(), Listening::of(self.command(&words))));
    }

    /// A command that ends by itself.
    fn runs(&mut self, words: &[String]) -> Output {
        let mut words = self.with_ticket(words);
        if words.starts_with(&["perf".to_owned(), "client".to_owned()]) {
            words.retain(|word| word.parse::<u32>().is_err() && word != "--seconds");
            words.extend(["--seconds".to_owned(), "1".to_owned()]);
        }
        let mut command = self.command(&words);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let ticket = self.listening.as_ref().map(|(_, listening)| listening.ticket.clone()).unwrap_or_default();
        // An error means that the command has ended without reading it.
        _ = writeln!(child.stdin.take().unwrap(), "{ticket}");
        let output = child.wait_with_output().unwrap();
        // A ticket of `recv` is good once.
        self.listening = self.listening.take().filter(|(kind, _)| kind == "perf");
        output
    }

    /// A command that goes on until it is stopped.
    fn sends_on(&mut self, words: &[String], line: &str) {
        let words = self.with_ticket(words);
        let mut child = self.command(&words).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(GOES_ON);
        let ended = child.try_wait().unwrap();
        child.kill().unwrap();
        let output = child.wait_with_output().unwrap();
        // Its ticket is for one stream.
        self.listening = None;
        assert_eq!(ended, None, "{line}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// The words with the ticket of what listens, which is started where the page has it elsewhere.
    fn with_ticket(&mut self, words: &[String]) -> Vec<String> {
        let (kind, listen): (&str, &[&str]) = match (words[0].as_str(), words.get(1).map(String::as_str)) {
            ("send", _) => ("recv", &["recv", "--dir", "incoming"]),
            ("perf", _) => ("perf", &["perf", "server"]),
            ("stream", _) => ("stream", &["stream", "recv", "--to", "udp://127.0.0.1:6000"]),
            _ => return words.to_vec(),
        };
        if self.listening.as_ref().is_none_or(|(which, _)| which != kind) {
            self.listens(kind, &listen.iter().map(|&word| word.to_owned()).collect::<Vec<_>>());
        }
        let ticket = self.listening.as_ref().map(|(_, listening)| listening.ticket.clone()).unwrap_or_default();
        let file = self.folder.file("ticket", ticket.as_bytes());
        let meant = |word: &String| match word.as_str() {
            "TICKET" => ticket.clone(),
            "FILE" => text(&file).to_owned(),
            _ => word.clone(),
        };
        words.iter().map(meant).collect()
    }

    fn command(&self, words: &[String]) -> Command {
        let mut command = fairpath(&words.iter().map(String::as_str).collect::<Vec<_>>());
        command.current_dir(&self.folder.0).env("XDG_STATE_HOME", self.folder.0.join("state"));
        command
    }
}

/// The kind of end that listens by this command, if any does.
fn listens(words: &[String]) -> Option<&'static str> {
    match (words[0].as_str(), words.get(1).map(String::as_str)) {
        ("recv", _) => Some("recv"),
        ("perf", Some("server")) => Some("perf"),
        ("stream", Some("recv")) => Some("stream"),
        _ => None,
    }
}

/// The words behind the program's name, with addresses of this machine in place of the interfaces of the guide.
fn words(line: &str) -> Vec<String> {
    let here = line.replace("eth0", "127.0.1.1").replace("wlan0", "127.0.2.1").replace("wwan0", "127.0.3.1");
    // Terms need the name of an interface.
    let here = here.replace("wwan1", "lo");
    here.split_whitespace().skip(1).map(str::to_owned).collect()
}

#[test]
fn the_commands_of_the_guide_run() {
    let mut typed = 0;
    for page in HERE {
        let page = std::fs::read_to_string(Path::new(PAGES).join(format!("{page}.md"))).unwrap();
        let mut reader = Reader::new();
        for line in page.lines().filter_map(|line| line.strip_prefix("$ ")).filter(|line| line.starts_with("fairpath "))
        {
            reader.types(line);
            typed += 1;
        }
    }
    assert!(typed >= 16, "{typed} commands were found");
}

#[test]
fn no_page_of_the_guide_is_forgotten() {
    let mut known: Vec<String> =
        HERE.iter().chain(&PROXY_PAGES).chain([&OF_THE_LIBRARY]).map(|page| format!("{page}.md")).collect();
    let pages = std::fs::read_dir(PAGES).unwrap().map(|page| page.unwrap().file_name().into_string().unwrap());
    let mut pages: Vec<String> = pages.collect();
    known.sort();
    pages.sort();
    assert_eq!(pages, known);
}
