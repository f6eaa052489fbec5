//! `fairpath recv` and `fairpath send` between two network namespaces, over two links of the kernel
//! that are limited with `tbf`: 10 and 20 Mbit/s. Needs root, `ip` and `tc`; without them each test
//! says that it is skipped, and why.

#![cfg(target_os = "linux")]

mod addresses;
mod bond;
mod cables;
mod clients;
mod described;
mod detection;
mod doctor;
mod faults;
mod figures;
mod guide;
mod kernel;
mod lan;
mod money;
mod network;
mod own;
mod packets;
mod programs;
mod proxy;
#[path = "../common/proxy_pages.rs"]
mod proxy_pages;
mod transfer;
mod ways;

use std::io::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use network::{End, FAST, Family, LINKS, Link, Network, SLOW};
use transfer::{Scratch, Transfer};

/// How long a link is cut.
const OUTAGE: Duration = Duration::from_secs(4);

/// The size on the wire, as `tbf` counts it, of a frame with 1,452 bytes of QUIC: the largest datagram
/// that noq sends at an MTU of 1,500. It adds 14 bytes of Ethernet, 20 of IPv4 and 8 of UDP.
const FRAME: f64 = 14.0 + 20.0 + 8.0 + DATAGRAM;
const DATAGRAM: f64 = 1452.0;

/// The part of a datagram that cannot be application data. The short header takes flags (1), the
/// connection id (8) and at least 2 for the packet number. The tag of the AEAD takes 16. The header of
/// one STREAM frame takes the type (1), the stream id (1) and the offset (4). Numbers, ids and offsets
/// may take more, and acknowledgements, probes and the transfer protocol take some too. None of this is
/// allowed for: no transfer can exceed this share, and the goals below are the stricter for it.
const QUIC: f64 = 1.0 + 8.0 + 2.0 + 16.0 + 1.0 + 1.0 + 4.0;

#[test]
fn a_directory_over_two_links_reaches_nine_tenths_of_their_sum() {
    let Some((_place, network)) = network(Family::V4, LINKS) else { return };
    let scratch = Scratch::with_tree(100_000_000);
    let transfer = Transfer::start(&network, &scratch);
    let ended = transfer.end(Duration::from_secs(120));

    ended.assert_success();
    scratch.assert_arrived_identical();
    let goodput = mbps(scratch.bytes(), ended.elapsed);
    let (possible, wire) = (goodput_possible(&LINKS), wire_rate(&LINKS));
    say(&format!(
        "two links: 100 MB in {:.1} s, {goodput:.2} Mbit/s: {:.3} of the {possible:.2} Mbit/s of application data \
         that the links can carry, {:.3} of their {wire:.0} Mbit/s",
        ended.elapsed.as_secs_f64(),
        goodput / possible,
        goodput / wire,
    ));
    assert!(goodput >= 0.9 * possible, "{goodput:.2} of {possible:.2} Mbit/s\n{}", ended.sender_said);
}

#[test]
fn two_links_that_know_only_ipv6_carry_a_file_together() {
    let Some((_place, network)) = network(Family::V6, LINKS) else { return };
    let scratch = Scratch::with_tree(15_000_000);
    let ended = Transfer::start(&network, &scratch).end(Duration::from_secs(60));
    ended.assert_success();
    scratch.assert_arrived_identical();
    let carried = LINKS.map(|link| network.carried(&link));
    assert!(carried.iter().all(|bytes| *bytes > 2_000_000), "{carried:?}\n{}", ended.sender_said);
}

#[test]
fn an_interface_of_the_sender_that_goes_down_and_returns_is_used_again() {
    let cut = |network: &Network| network.set_link(&FAST, End::Sender, "down");
    let mend = |network: &Network| network.set_link(&FAST, End::Sender, "up");
    an_outage("interface down at the sender", "its interface is down", cut, mend);
}

/// The sender's interface stays up, but has no carrier. The kernel may take a second to tell, and
/// then the silence has told before: either reason is right.
#[test]
fn an_interface_of_the_receiver_that_goes_down_and_returns_is_used_again() {
    let cut = |network: &Network| network.set_link(&FAST, End::Receiver, "down");
    let mend = |network: &Network| network.set_link(&FAST, End::Receiver, "up");
    an_outage("interface down at the receiver", "", cut, mend);
}

/// An outage as of a radio link: only silence tells of it.
#[test]
fn a_link_that_swallows_everything_while_it_seems_up_is_used_again() {
    let cut = |network: &Network| network.swallow(&FAST);
    let mend = |network: &Network| network.limit(&FAST);
    an_outage("everything swallowed", "no answer for", cut, mend);
}

/// A lease that ends with another address: the interface is up all the while.
#[test]
fn an_address_that_changes_is_told_with_the_new_one() {
    let Some((_place, network)) = network(Family::V4, LINKS) else { return };
    let scratch = Scratch::with_tree(30_000_000);
    let mut transfer = Transfer::start(&network, &scratch);
    transfer.until("the fast link carries data", || network.carried(&FAST) >= 5_000_000);
    network.readdress(&FAST, End::Sender, 9);
    let ended = transfer.end(Duration::from_secs(90));
    ended.assert_success();
    scratch.assert_arrived_identical();
    assert_told_in_order(&ended.sender_said, &["fast: path closed, its address changed from 10.77.2.1 to 10.77.2.9"]);
}

/// Cuts the fast link in the middle of a transfer. `reason` is how the sender has to begin to
/// explain it.
fn an_outage(name: &str, reason: &str, cut: impl Fn(&Network), mend: impl Fn(&Network)) {
    let Some((_place, network)) = network(Family::V4, LINKS) else { return };
    let scratch = Scratch::with_tree(60_000_000);
    let mut transfer = Transfer::start(&network, &scratch);

    // A quarter has arrived: the windows have grown, and there is enough left for what follows.
    transfer.until("a quarter arrived", || network.carried(&FAST) >= 10_000_000);
    cut(&network);
    let slow_before = network.carried(&SLOW);
    std::thread::sleep(OUTAGE);
    let slow_in_outage = network.carried(&SLOW) - slow_before;
    mend(&network);
    let before = LINKS.map(|link| network.carried(&link));
    let mended = Instant::now();
    // A second's worth of data, on each link: more than probes, and more than leftovers in queues.
    transfer.until("both links carry data again", || {
        LINKS.iter().zip(before).all(|(link, before)| network.carried(link) - before >= link.mbit * 125_000)
    });
    let returned = mended.elapsed();
    let ended = transfer.end(Duration::from_secs(90));

    ended.assert_success();
    scratch.assert_arrived_identical();
    let goodput = mbps(scratch.bytes(), ended.elapsed);
    let (one, slow) = (goodput_possible(&[FAST]), mbps(slow_in_outage, OUTAGE));
    say(&format!(
        "{name}: 60 MB in {:.1} s, {goodput:.2} Mbit/s, against {one:.2} Mbit/s that the fast link alone can carry; \
         {slow:.1} Mbit/s over the slow link meanwhile; both in full use {:.1} s after the return",
        ended.elapsed.as_secs_f64(),
        returned.as_secs_f64(),
    ));
    let closed = format!("fast: path closed, {reason}");
    assert_told_in_order(&ended.sender_said, &[&closed, "fast: path open again"]);
    assert_told_in_order(&ended.receiver_said, &["fast: path closed", "fast: path open again"]);
    assert!(goodput >= one, "{goodput:.2} Mbit/s is less than {one:.2} over the best link alone");
    assert!(slow >= 5.0, "the connection stalled in the outage: {slow:.1} Mbit/s over the link that worked");
}

/// One of three places for a network: tests mostly wait for their links, but what all of them take of the processors
/// together would disturb measurements.
fn place() -> MutexGuard<'static, ()> {
    static PLACES: [Mutex<()>; 3] = [Mutex::new(()), Mutex::new(()), Mutex::new(())];
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let free = PLACES.iter().find_map(|place| match place.try_lock() {
        // A test that failed has left nothing that could disturb the next.
        Err(TryLockError::Poisoned(failed)) => Some(failed.into_inner()),
        other => other.ok(),
    });
    free.unwrap_or_else(|| {
        let place = &PLACES[NEXT.fetch_add(1, Ordering::Relaxed) % PLACES.len()];
        place.lock().unwrap_or_else(PoisonError::into_inner)
    })
}

/// A network, and a place for it. `None` where this machine cannot have one.
fn network(family: Family, links: [Link; 2]) -> Option<(MutexGuard<'static, ()>, Network)> {
    let place = place();
    match Network::new(family, links) {
        Ok(network) => Some((place, network)),
        Err(reason) => {
            let test = std::thread::current().name().unwrap_or("a test").to_owned();
            say(&format!("{test}: skipped, {reason}"));
            None
        }
    }
}

/// Prints past the capture of test output: figures and skipped tests are to be seen when all is well.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Asserts that lines that begin so were said, in this order.
fn assert_told_in_order(said: &str, beginnings: &[&str]) {
    let mut lines = said.lines();
    for beginning in beginnings {
        let is_it = |line: &str| without_address(line).starts_with(beginning);
        assert!(lines.any(is_it), "'{beginning}' was not said in its turn:\n{said}");
    }
}

/// A notice with the interface alone as the name of its path: the address is there where another path of the same
/// interface was opened, which is a matter of time.
fn without_address(line: &str) -> String {
    match line.split_once(": path ") {
        Some((name, rest)) => format!("{}: path {rest}", name.split('/').next().unwrap_or(name)),
        None => line.to_owned(),
    }
}

fn mbps(bytes: u64, elapsed: Duration) -> f64 {
    bytes as f64 * 8.0 / 1e6 / elapsed.as_secs_f64()
}

fn wire_rate(links: &[Link]) -> f64 {
    links.iter().map(|link| link.mbit as f64).sum()
}

/// Application data that `links` can carry together, in Mbit/s: 95 % of what is on the wire.
fn goodput_possible(links: &[Link]) -> f64 {
    wire_rate(links) * (DATAGRAM - QUIC) / FRAME
}
