//! `top` in a terminal: its keys change what the paths of a sender carry.

#![cfg(target_os = "linux")]

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::termios::tcgetattr;

use crate::control::Sending;

/// Time for whatever the test waits for, on a busy machine.
const LIMIT: Duration = Duration::from_secs(20);

/// Each page begins here.
const CLEARED: &str = "\u{1b}[H\u{1b}[J";

/// Reads until a page has been shown that has all these words: the page.
fn page(screen: &mut File, shown: &mut String, words: &[&str]) -> String {
    let deadline = Instant::now() + LIMIT;
    let mut some = [0; 4096];
    loop {
        // The last one may still be on its way.
        let pages: Vec<&str> = shown.split(CLEARED).collect();
        let whole = &pages[..pages.len().saturating_sub(1)];
        if let Some(at) = whole.iter().rposition(|page| words.iter().all(|word| page.contains(word))) {
            let page = whole[at].to_owned();
            *shown = CLEARED.to_owned() + pages[pages.len() - 1];
            return page;
        }
        assert!(Instant::now() < deadline, "{words:?}: {shown}");
        let length = screen.read(&mut some).unwrap();
        *shown += &String::from_utf8_lossy(&some[..length]);
    }
}

/// The line of the path that is chosen.
fn chosen(page: &str) -> &str {
    page.lines().find(|line| line.starts_with('>')).unwrap_or_default()
}

#[test]
fn a_path_is_chosen_and_parked_preferred_and_capped_by_keys_and_the_terminal_is_put_back() {
    let sending = Sending::begin();
    let both = nix::pty::openpty(None, None).unwrap();
    let (mut user, program) = (File::from(both.master), File::from(both.slave));
    let before = tcgetattr(&program).unwrap();
    let mut top = sending.command(&["top", "send"]);
    let stdio = || Stdio::from(program.try_clone().unwrap());
    let mut top = top.stdin(stdio()).stdout(stdio()).stderr(stdio()).spawn().unwrap();
    let mut shown = String::new();
    let first = page(&mut user, &mut shown, &["p: park or use", "q: end", "127.0.2.1"]);
    let of_first = first.lines().find(|line| line.starts_with('>')).unwrap();
    let (of_first, other) = match of_first.contains("127.0.1.1") {
        true => ("127.0.1.1", "127.0.2.1"),
        false => ("127.0.2.1", "127.0.1.1"),
    };

    let mut press = |keys: &[u8], words: &[&str]| {
        user.write_all(keys).unwrap();
        page(&mut user, &mut shown, words)
    };
    let parked = press(b"p", &["parked, it carries nothing while another path works"]);
    assert!(chosen(&parked).contains(of_first) && chosen(&parked).contains("parked"), "{parked}");
    press(b"p", &["not parked any more"]);
    let capped = press(b"-", &["Mbit/s at most, each way"]);
    assert!(chosen(&capped).contains("cap 10.0 Mbit/s"), "{capped}");
    press(b"f", &["goes first", "first, "]);
    // The other one, by an arrow.
    let moved = press(b"\x1b[B>", &[": cost 1\r\n"]);
    assert!(chosen(&moved).contains(other), "{moved}");
    user.write_all(b"q").unwrap();
    let deadline = Instant::now() + LIMIT;
    let ended = loop {
        if let Some(ended) = top.try_wait().unwrap() {
            break ended;
        }
        assert!(Instant::now() < deadline, "it goes on after q");
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(ended.success());
    assert_eq!(tcgetattr(&program).unwrap().local_flags, before.local_flags);
}
