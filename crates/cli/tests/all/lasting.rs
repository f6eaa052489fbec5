//! A receiver that stays, and is the same after a restart.

#![cfg(unix)]

use std::fs;
use std::process::Output;

use crate::common::{Listening, Scratch, error_of, run, text};
use rustix::process::{Pid, Signal, kill_process};

/// A receiver that keeps what it is in `state`.
fn start(scratch: &Scratch, more: &[&str]) -> Listening {
    let (to, state) = (scratch.0.join("to"), scratch.0.join("state"));
    let basic = ["recv", "--via", "127.0.0.1", "--keep", "--dir", text(&to), "--state", text(&state)];
    Listening::start(&[&basic, more].concat())
}

/// As a service manager ends it.
fn stop(receiver: Listening) {
    kill_process(Pid::from_child(&receiver.child), Signal::TERM).unwrap();
    let (code, _, errors) = receiver.end();
    assert_eq!(code, Some(0), "{errors}");
}

fn send(scratch: &Scratch, name: &str, ticket: &[&str]) -> Output {
    let file = scratch.file(&format!("from/{name}"), name.as_bytes());
    let sent = run(&[&["send", text(&file), "--give-up-after", "0"], ticket].concat());
    let arrived = fs::read(scratch.0.join("to").join(name)).unwrap_or_default();
    assert_eq!(sent.status.success(), arrived == name.as_bytes(), "{sent:?}");
    sent
}

#[test]
fn a_receiver_is_the_same_after_a_restart_and_a_revoked_ticket_is_refused() {
    let scratch = Scratch::new();
    let first = start(&scratch, &[]);
    let ticket = first.ticket.clone();
    for name in ["a", "b"] {
        assert!(send(&scratch, name, &[&ticket]).status.success());
    }
    let second = run(&["recv", "--keep", "--state", text(&scratch.0.join("state")), "--via", "127.0.0.1"]);
    assert!(
        second.status.code() == Some(1) && error_of(&second).contains("another `fairpath recv` runs"),
        "{second:?}"
    );
    stop(first);

    let again = start(&scratch, &[]);
    assert_eq!(again.ticket, ticket);
    let file = scratch.0.join("state/ticket");
    assert!(send(&scratch, "c", &["--ticket-file", text(&file)]).status.success());
    stop(again);

    let new = start(&scratch, &["--new-ticket"]);
    let refused = send(&scratch, "d", &[&ticket]);
    assert!(error_of(&refused).contains("the secret in the ticket is wrong"), "{refused:?}");
    assert!(send(&scratch, "e", &[&new.ticket]).status.success());
    let ticket = new.ticket.clone();
    stop(new);
    let last = start(&scratch, &[]);
    assert_eq!(last.ticket, ticket, "the new one lasts");
    stop(last);
}

#[test]
fn a_state_without_a_receiver_that_stays_cannot_be_meant() {
    for (args, needed) in [(&["recv", "--state", "x"][..], "--keep"), (&["recv", "--keep", "--new-ticket"], "--state")]
    {
        let output = run(args);
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && told.contains(needed), "{told}");
    }
}
