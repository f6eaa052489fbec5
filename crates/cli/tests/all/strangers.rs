//! Tickets and strangers, as a person meets them.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::common::{Listening, Scratch, error_of, fairpath, run, text};
use fairpath_transfer::Ticket;
use serde_json::Value;

fn receive(scratch: &Scratch, more: &[&str]) -> Listening {
    let to = scratch.0.join("to");
    fs::create_dir_all(&to).unwrap();
    Listening::start(&[&["recv", "--listen", "127.0.0.1:0", "--dir", text(&to)], more].concat())
}

fn with_input(mut command: Command, input: &str) -> Output {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

/// A file with a ticket in it that only its owner may read.
fn ticket_file(scratch: &Scratch, ticket: &str, mode: u32) -> PathBuf {
    use std::os::unix::fs::PermissionsExt as _;
    let path = scratch.file("ticket", format!("  {ticket}\n\n").as_bytes());
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    path
}

#[test]
fn a_ticket_need_not_stand_on_the_command_line() {
    let scratch = Scratch::new();
    let file = scratch.file("from/x", b"content");
    let ways: [&dyn Fn(&str) -> Output; 5] = [
        &|ticket| with_input(fairpath(&["send", text(&file), "-"]), &format!("{ticket}\n")),
        &|ticket| with_input(fairpath(&["send", text(&file), "--ticket-file", "-"]), ticket),
        &|ticket| run(&["send", "--ticket-file", text(&ticket_file(&scratch, ticket, 0o600)), text(&file)]),
        &|ticket| fairpath(&["send", text(&file)]).env("FAIRPATH_TICKET", ticket).output().unwrap(),
        &|ticket| run(&["send", text(&file), &format!(" {ticket}\n")]),
    ];
    for (number, way) in ways.iter().enumerate() {
        let recv = receive(&scratch, &[]);
        let sent = way(&recv.ticket);
        assert!(sent.status.success(), "{number}: {sent:?}");
        assert_eq!(recv.end().0, Some(0), "{number}");
        assert!(!String::from_utf8_lossy(&sent.stderr).contains("warning"), "{number}: {sent:?}");
    }
    let server = Listening::start(&["perf", "server", "--listen", "127.0.0.1:0", "--once"]);
    let measured = with_input(fairpath(&["perf", "client", "-", "--seconds", "1"]), &server.ticket);
    assert!(measured.status.success(), "{measured:?}");
}

#[test]
fn a_ticket_file_that_others_can_read_is_told() {
    let scratch = Scratch::new();
    let file = scratch.file("from/x", b"content");
    let recv = receive(&scratch, &[]);
    let path = ticket_file(&scratch, &recv.ticket, 0o644);
    let sent = run(&["send", text(&file), "--ticket-file", text(&path)]);
    assert!(sent.status.success(), "{sent:?}");
    let said = String::from_utf8_lossy(&sent.stderr);
    assert!(said.contains("warning: other users of this machine may read the ticket") && said.contains("chmod 600"));
}

#[test]
fn no_message_shows_a_ticket_or_a_part_of_it() {
    let scratch = Scratch::new();
    let file = scratch.file("from/x", b"content");
    let recv = receive(&scratch, &[]);
    let ticket = &recv.ticket;
    let (left, right) = ticket.split_at(60);
    let end = if ticket.ends_with('a') { "b" } else { "a" };
    let mistyped = format!("{}{end}", &ticket[..ticket.len() - 1]);
    let file = text(&file);
    for words in [
        &["send", file, &ticket[1..]][..],
        &["send", file, &mistyped],
        &["send", file, left, right],
        &["send", file, right],
        &["send", ticket, file],
        &["send", file, ticket, ticket],
        &["perf", "client", left, right],
        &["perf", "client", &mistyped],
        &["perf", "client", right],
    ] {
        let output = run(words);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let said = format!("{}{}", error_of(&output), String::from_utf8_lossy(&output.stdout));
        for part in ticket.as_bytes().windows(12) {
            let part = std::str::from_utf8(part).unwrap();
            assert!(!said.contains(part), "{words:?}: {said}");
        }
    }
}

#[test]
fn an_advertised_address_stands_first_in_the_ticket() {
    let scratch = Scratch::new();
    let recv = receive(&scratch, &["--advertise", "203.0.113.7:4433", "--advertise", "[2001:db8::7]:4433"]);
    let ticket: Ticket = recv.ticket.parse().unwrap();
    assert_eq!(ticket.addresses[0], "203.0.113.7:4433".parse().unwrap());
    assert_eq!(ticket.addresses[1], "[2001:db8::7]:4433".parse().unwrap());
    assert!(ticket.addresses[2].ip().is_loopback() && ticket.addresses.len() == 3);
    let nowhere = run(&["perf", "server", "--advertise", "0.0.0.0:4433"]);
    assert!(error_of(&nowhere).contains("nobody can connect"), "{nowhere:?}");
    assert_eq!(nowhere.status.code(), Some(2));
}

#[test]
fn failed_attempts_are_counted_and_disturbs_no_transfer() {
    let scratch = Scratch::new();
    let large = scratch.large("from/large", 300);
    let small: &Path = &scratch.file("from/small", b"content");
    let recv = receive(&scratch, &["--json"]);
    let wrong = recv.ticket_with_wrong_secret();
    let first = fairpath(&["send", text(&large), &recv.ticket]).stderr(Stdio::null()).spawn().unwrap();
    for _ in 0..5 {
        // It may be that the transfer is over before: then nobody answers.
        assert_eq!(run(&["send", text(small), &wrong]).status.code(), Some(1));
        if scratch.0.join("to/large").exists() {
            break;
        }
    }
    assert!(first.wait_with_output().unwrap().status.success());
    let (code, summary, said) = recv.end();
    assert_eq!(code, Some(0), "{said}");
    let summary: Value = serde_json::from_str(&summary).unwrap();
    let count = summary["failed_attempts"]["wrong_secret"].as_u64().unwrap();
    if count == 0 {
        println!("skipped: this machine is too fast, the transfer was over before anybody tried");
        return;
    }
    assert!(said.contains(&format!("{count} with a wrong secret")), "{said}");
    assert!(said.contains("received 1 file"), "{said}");
}

#[test]
fn hidden_names_and_modes_are_taken_only_where_they_are_wanted() {
    use std::os::unix::fs::PermissionsExt as _;
    let scratch = Scratch::new();
    for name in ["from/.profile", "from/.config/x", "from/run", "from/y"] {
        let path = scratch.file(name, b"content");
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let from = scratch.0.join("from");
    let is_executable = || fs::metadata(scratch.0.join("to/from/run")).unwrap().permissions().mode() & 0o111 != 0;

    let recv = receive(&scratch, &["--json"]);
    let sent = run(&["send", text(&from), &recv.ticket]);
    assert_eq!(sent.status.code(), Some(3), "not all that was named is there: {sent:?}");
    let (code, summary, received) = recv.end();
    assert_eq!(code, Some(0), "the receiver took all that it wanted");
    let sender = String::from_utf8_lossy(&sent.stderr);
    for said in [&*sender, &received] {
        assert!(said.contains("hidden not taken") && said.contains("from/.profile"), "{said}");
    }
    assert!(
        sender.contains("the receiver takes no hidden names") && !sender.contains("the receiver waits"),
        "{sender}"
    );
    assert!(received.contains("from/run (7 B), from/y (7 B)"), "{received}");
    let summary: Value = serde_json::from_str(&summary).unwrap();
    assert_eq!(summary["names"], serde_json::json!(["from/run", "from/y"]));
    assert!(!scratch.0.join("to/from/.profile").exists() && !scratch.0.join("to/from/.config").exists());
    assert!(!is_executable());

    fs::remove_dir_all(scratch.0.join("to")).unwrap();
    let recv = receive(&scratch, &["--allow-hidden", "--keep-modes"]);
    assert!(run(&["send", text(&from), &recv.ticket]).status.success());
    assert_eq!(recv.end().0, Some(0));
    assert!(scratch.0.join("to/from/.config/x").exists() && is_executable());
}
