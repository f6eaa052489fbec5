//! `fairpath perf` as a person runs it, over loopback.

use crate::common::{Listening, Scratch, error_of, run, text};
use serde_json::Value;

const LOOPBACK: [&str; 4] = ["perf", "server", "--listen", "127.0.0.1:0"];

/// Two seconds over two paths, and what came of it.
fn measured(more: &[&str]) -> Value {
    let server = Listening::start(&[&LOOPBACK[..], &["--once"]].concat());
    let options = ["--via", "127.0.1.1", "--via", "127.0.2.1", "--seconds", "2", "--json"];
    let output = run(&[&["perf", "client", &server.ticket], &options[..], more].concat());
    assert!(output.status.success(), "{output:?}");
    let (code, rest, errors) = server.end();
    assert_eq!((code, rest.as_str()), (Some(0), ""), "only the ticket is on standard output: {errors}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn check(result: &Value, direction: &str) {
    assert_eq!(result["direction"], direction);
    assert!(result["goodput_bps"].as_u64().unwrap() > 0, "{result}");
    assert!(result["received_bytes"].as_u64().unwrap() > 0, "{result}");
    let paths = result["paths"].as_array().unwrap();
    let names: Vec<_> = paths.iter().map(|path| path["interface"].as_str().unwrap()).collect();
    assert_eq!(names.len(), 2, "{result}");
    assert!(names.contains(&"lo:127.0.1.1") && names.contains(&"lo:127.0.2.1"), "{names:?}");
    assert!(paths.iter().all(|path| path["bytes"].as_u64().unwrap() > 0), "both paths carry: {result}");
    // Whole packets are counted, so that they hold more than the data. What was sent last may not be
    // acknowledged when the client counts.
    let carried: u64 = paths.iter().map(|path| path["bytes"].as_u64().unwrap()).sum();
    let least = if direction == "upload" { 0.95 } else { 1.0 };
    assert!(carried as f64 > least * result["received_bytes"].as_u64().unwrap() as f64, "{result}");
    assert!(result["intervals"].as_array().unwrap().len() >= 2, "{result}");
}

#[test]
fn two_paths_carry_what_the_client_sends() {
    check(&measured(&[]), "upload");
}

#[test]
fn two_paths_carry_what_the_server_sends() {
    check(&measured(&["--reverse"]), "download");
}

#[test]
fn wrong_secrets_are_refused_in_words_and_the_server_waits_on() {
    let server = Listening::start(&[&LOOPBACK[..], &["--once"]].concat());
    for _ in 0..4 {
        let refused = run(&["perf", "client", &server.ticket_with_wrong_secret(), "--seconds", "1"]);
        assert_eq!(
            error_of(&refused),
            "error: the server refused: the secret in the ticket is wrong: use the ticket that the other machine shows"
        );
        assert_eq!(refused.status.code(), Some(1));
    }
    let right = run(&["perf", "client", &server.ticket, "--seconds", "1"]);
    assert!(right.status.success(), "{right:?}");
    let (code, _, errors) = server.end();
    assert_eq!(code, Some(0));
    assert!(errors.contains("4 attempts to connect failed: 4 with a wrong secret"), "{errors}");
}

#[test]
fn what_cannot_be_meant_is_a_usage_error() {
    let server = Listening::start(&LOOPBACK);
    let truncated = run(&["perf", "client", &server.ticket[..40]]);
    assert!(error_of(&truncated).contains("truncated"));
    assert_eq!(truncated.status.code(), Some(2));

    let never = run(&["perf", "client", &server.ticket, "--seconds", "0"]);
    assert!(error_of(&never).contains("'--seconds <SECONDS>'"));
    assert_eq!(never.status.code(), Some(2));

    let two = run(&["perf", "server", "--listen", "127.0.0.1:4433", "--via", "lo"]);
    assert!(error_of(&two).contains("--listen 0.0.0.0:4433"), "{two:?}");
    assert_eq!(two.status.code(), Some(2));
}

#[test]
fn a_ticket_of_the_other_kind_is_told_at_once_at_both_ends() {
    let scratch = Scratch::new();
    let (inbox, file) = (scratch.0.join("inbox"), scratch.file("x", b"content"));
    let mut receiver = Listening::start(&["recv", "--listen", "127.0.0.1:0", "--dir", text(&inbox)]);
    let client = run(&["perf", "client", &receiver.ticket, "--seconds", "1"]);
    assert!(error_of(&client).contains("this ticket is not from `fairpath perf server`"), "{client:?}");
    assert_eq!(client.status.code(), Some(1));
    // The receiver waits on for the right one.
    let sent = run(&["send", text(&file), &receiver.ticket]);
    assert!(sent.status.success(), "{sent:?}");
    assert_eq!(receiver.child.wait().unwrap().code(), Some(0));
    let (_, _, errors) = receiver.end();
    assert!(
        errors.contains("1 attempt to connect failed: 1 with the ticket of another command or version"),
        "{errors}"
    );

    let server = Listening::start(&[&LOOPBACK[..], &["--once"]].concat());
    let sender = run(&["send", text(&file), &server.ticket]);
    assert!(error_of(&sender).contains("this ticket is not from `fairpath recv`"), "{sender:?}");
    assert_eq!(sender.status.code(), Some(1));
    assert!(run(&["perf", "client", &server.ticket, "--seconds", "1"]).status.success());
    let (code, _, errors) = server.end();
    assert_eq!(code, Some(0));
    assert!(
        errors.contains("1 attempt to connect failed: 1 with the ticket of another command or version"),
        "{errors}"
    );
}

#[test]
fn a_port_in_use_is_told_with_what_to_do() {
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = run(&["perf", "server", "--listen", &address]);
    let error = error_of(&output);
    assert!(error.contains(&address) && error.contains("give another to --listen"), "{error}");
    assert_eq!(error.matches("in use").count(), 1, "nothing is told twice: {error}");
    assert_eq!(output.status.code(), Some(1));
}
