//! `fairpath doctor` where a network blocks a port of the far end, and slows another down.

use std::io::Write as _;
use std::process::{Command, Stdio};

use crate::bond::PATIENCE;
use crate::network::{End, Family, TWINS, run};
use crate::transfer::{Process, Scratch};
use crate::{network, say};

/// Drops what goes to one port, and lets little come from another: 400 kbit/s of a link of 20 Mbit/s.
const RULES: &str = "table inet network {
    chain to { type filter hook input priority 0; udp dport 4434 drop; }
    chain from { type filter hook output priority 0; udp sport 4435 limit rate over 50 kbytes/second burst 100 kbytes drop; }
}";

#[test]
fn a_port_that_is_blocked_and_one_that_is_throttled_are_told_in_words() {
    if run(&["nft", "--version"]).is_err() {
        return say("a test of doctor's words on ports: skipped, there is no `nft` here");
    }
    let Some((_place, network)) = network(Family::V4, TWINS) else { return };
    let scratch = Scratch::with_tree(0);
    // Ports after the first are served by way of loopback there.
    network.ip(End::Receiver, "link set lo up");
    let [far, near] = ["far", "near"].map(|name| scratch.path().join(name).display().to_string());
    let at = |end, words: &[&str]| {
        let program = env!("CARGO_BIN_EXE_fairpath");
        run(&[&["ip", "netns", "exec", network.name(end), program], words].concat())
    };
    let ports = ["4433", "4434", "4435"].map(|port| format!("0.0.0.0:{port}"));
    let listen: Vec<&str> = ports.iter().flat_map(|port| ["--listen", port]).collect();
    let words = [&["serve", "--state", &far][..], &listen].concat();
    let mut serve = Process::start(network.name(End::Receiver), &words, &scratch.path());
    serve.until("it serves", PATIENCE, |serve| serve.said().contains("serving at"));
    let invitation = at(End::Receiver, &["invite", "van", "--state", &far]).unwrap();
    at(End::Sender, &["join", invitation.trim(), "--state", &near]).unwrap();

    let mut nft = Command::new("ip")
        .args(["netns", "exec", network.name(End::Receiver), "nft", "-f", "-"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    nft.stdin.take().unwrap().write_all(RULES.as_bytes()).unwrap();
    assert!(nft.wait().unwrap().success());
    let said = at(End::Sender, &["doctor", "--via", TWINS[0].name, "--seconds", "2", "--state", &near]).unwrap();
    // The other address of the host is not reached by this link, whatever the port.
    let blocked = "one: UDP is blocked on the way to 10.77.1.2:4434; other ports of the same host answer.";
    assert!(said.contains(blocked), "{said}");
    assert!(said.contains("one: UDP is throttled on the way to 10.77.1.2:4435 with "), "{said}");
    assert!(!said.contains("share a bottleneck"), "{said}");
}
