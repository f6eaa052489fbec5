//! Faults that strike the whole connection: both links down, an end killed or asked to end. Two links
//! of 20 Mbit/s.

use std::time::{Duration, Instant};

use crate::network::{End, Family, Link, Network, TWINS};
use crate::transfer::{Scratch, Transfer};
use crate::{assert_told_in_order, network, say};

/// The bytes that both links carry in ten seconds.
const BYTES: u64 = 50_000_000;

/// How long after the first link is back data may take to flow. The goal is two seconds; the rest is
/// for machines that do other work meanwhile.
const FLOWS_AGAIN: Duration = Duration::from_secs(4);

/// A peer that is gone is noticed within ten seconds; two more for machines that do other work.
const NOTICED: Duration = Duration::from_secs(12);

/// How a link goes down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    /// As a radio link: nothing arrives, nothing tells.
    Swallowed,
    /// The sender's interfaces are switched off.
    Down,
}

impl Cut {
    fn cut(self, network: &Network, link: &Link) {
        match self {
            Self::Swallowed => network.swallow(link),
            Self::Down => network.set_link(link, End::Sender, "down"),
        }
    }

    fn mend(self, network: &Network, link: &Link) {
        match self {
            Self::Swallowed => network.limit(link),
            Self::Down => network.set_link(link, End::Sender, "up"),
        }
    }
}

/// The result of a transfer whose links were both down for a time.
struct Outcome {
    /// From the return of the first link until data flowed.
    flowed_after: Duration,
    elapsed: Duration,
    codes: [Option<i32>; 2],
    said: [String; 2],
}

impl Outcome {
    fn agree(&self) -> bool {
        self.codes[0] == self.codes[1]
    }
}

/// Cuts both links in the middle of a transfer, and mends one after `outage`, the other a second later.
fn outage(network: &Network, scratch: &Scratch, cut: Cut, outage: Duration, cut_after: u64) -> Outcome {
    let carried = || TWINS.iter().map(|link| network.carried(link)).sum::<u64>();
    let nothing = carried();
    let mut transfer = Transfer::start(network, scratch);
    transfer.until("the moment to cut", || carried() - nothing >= cut_after);
    TWINS.iter().for_each(|link| cut.cut(network, link));
    std::thread::sleep(outage);
    let before = carried();
    cut.mend(network, &TWINS[0]);
    let mended = Instant::now();
    // A fifth of a second's worth: more than probes and handshakes carry. A transfer that has ended needs none.
    let mut flowed_after = None;
    let mut second = false;
    while flowed_after.is_none() || !second {
        if flowed_after.is_none() && (carried() - before >= 500_000 || transfer.sender.has_ended()) {
            flowed_after = Some(mended.elapsed());
        }
        if !second && mended.elapsed() >= Duration::from_secs(1) {
            cut.mend(network, &TWINS[1]);
            second = true;
        }
        assert!(mended.elapsed() < Duration::from_secs(180), "nothing flowed:\n{}", transfer.sender.said());
        std::thread::sleep(Duration::from_millis(10));
    }
    let ended = transfer.end(Duration::from_secs(240));
    Outcome {
        flowed_after: flowed_after.expect("the loop ends with it"),
        elapsed: ended.elapsed,
        codes: [ended.sender.code(), ended.receiver.code()],
        said: [ended.sender_said, ended.receiver_said],
    }
}

fn assert_survives(cut: Cut, down: Duration, cut_after: u64) {
    let Some((_place, network)) = network(Family::V4, TWINS) else { return };
    let scratch = Scratch::with_tree(BYTES);
    let outcome = outage(&network, &scratch, cut, down, cut_after);
    let Outcome { flowed_after, elapsed, codes, said } = &outcome;
    say(&format!("both links {cut:?} for {down:?}: data flowed after {flowed_after:.2?}, {elapsed:.1?} in all"));
    assert_eq!(codes, &[Some(0); 2], "sender:\n{}\nreceiver:\n{}", said[0], said[1]);
    scratch.assert_arrived_identical();
    // 50 MB take 10.8 s over 40 Mbit/s, and the second link returns a second after the first; the rest is for
    // growing windows, and for machines that do other work.
    let enough = down + Duration::from_secs(30);
    assert!(*elapsed <= enough, "{elapsed:?}\nsender:\n{}\nreceiver:\n{}", said[0], said[1]);
    assert!(*flowed_after <= FLOWS_AGAIN, "{flowed_after:?}\nsender:\n{}\nreceiver:\n{}", said[0], said[1]);
}

#[test]
fn data_flows_soon_after_both_links_were_down_for_five_seconds() {
    assert_survives(Cut::Swallowed, Duration::from_secs(5), BYTES / 3);
}

#[test]
fn data_flows_soon_after_both_links_were_down_for_longer_than_a_connection_lives() {
    assert_survives(Cut::Swallowed, Duration::from_secs(20), BYTES / 3);
}

#[test]
fn data_flows_soon_after_both_interfaces_were_switched_off_and_on() {
    assert_survives(Cut::Down, Duration::from_secs(12), BYTES / 3);
}

/// After three seconds nothing gets there over one link, and nothing back over another or the same one.
/// The remaining link carries 20 Mbit/s.
fn assert_goes_on_without(there: &Link, back: &Link) {
    let Some((_place, network)) = network(Family::V4, TWINS) else { return };
    let scratch = Scratch::with_tree(BYTES);
    TWINS.iter().for_each(|link| network.introduce(link));
    let mut transfer = Transfer::start(&network, &scratch);
    transfer.until("data flows over both", || TWINS.iter().all(|link| network.carried(link) >= 1_000_000));
    std::thread::sleep(Duration::from_secs(3));
    network.swallow_from(there, End::Sender);
    network.swallow_from(back, End::Receiver);
    let ended = transfer.end(Duration::from_secs(90));
    say(&format!("nothing there over {}, nothing back over {}: {:.1?}", there.name, back.name, ended.elapsed));
    ended.assert_success();
    scratch.assert_arrived_identical();
    let said = &ended.sender_said;
    assert!(!said.contains("connection lost"), "{said}");
}

#[test]
fn a_transfer_goes_on_there_by_one_link_and_back_by_the_other() {
    assert_goes_on_without(&TWINS[0], &TWINS[1]);
    assert_goes_on_without(&TWINS[1], &TWINS[0]);
}

#[test]
fn a_transfer_goes_on_by_the_one_link_that_works_both_ways() {
    assert_goes_on_without(&TWINS[0], &TWINS[0]);
    assert_goes_on_without(&TWINS[1], &TWINS[1]);
}

/// The table of outages: run with `--ignored`. It takes a quarter of an hour.
#[test]
#[ignore = "takes a quarter of an hour; prints a table"]
fn table_of_outages() {
    let Some((_place, network)) = network(Family::V4, TWINS) else { return };
    let scratch = Scratch::with_tree(BYTES);
    say("down  how        cut at   flows after  in all   codes  agree");
    let mut disagreed = 0;
    let mut slow = 0;
    // After one megabyte, a third, and when nearly all has arrived.
    let moments = [1_000_000, BYTES / 3, BYTES - BYTES / 20, BYTES - BYTES / 100];
    let lengths = [2, 3, 4, 6, 8, 10, 12, 15, 18, 20, 22, 25];
    let kinds = [Cut::Swallowed, Cut::Down];
    for (at, length) in lengths.into_iter().enumerate() {
        for (of, cut) in kinds.into_iter().enumerate() {
            scratch.forget_what_arrived();
            let cut_after = moments[(at + 2 * of) % moments.len()];
            let outcome = outage(&network, &scratch, cut, Duration::from_secs(length), cut_after);
            let codes = outcome.codes.map(|code| code.map_or("-".to_owned(), |code| code.to_string()));
            disagreed += usize::from(!outcome.agree() || outcome.codes != [Some(0); 2]);
            slow += usize::from(outcome.flowed_after > Duration::from_secs(2));
            say(&format!(
                "{length:>2} s  {:<9}  {:>4.1} MB  {:>9.2} s  {:>5.1} s  {}/{}    {}",
                format!("{cut:?}"),
                cut_after as f64 / 1e6,
                outcome.flowed_after.as_secs_f64(),
                outcome.elapsed.as_secs_f64(),
                codes[0],
                codes[1],
                if outcome.agree() { "yes" } else { "NO" },
            ));
            if outcome.codes != [Some(0); 2] || outcome.flowed_after > Duration::from_secs(2) {
                say(&format!("  sender:\n{}\n  receiver:\n{}", outcome.said[0], outcome.said[1]));
            }
        }
    }
    say(&format!("{slow} of {} took more than 2 s; {disagreed} did not end well at both ends", lengths.len() * 2));
    assert_eq!(disagreed, 0);
}

#[test]
fn a_killed_sender_is_noticed_within_ten_seconds_and_waited_for() {
    let Some((_place, network)) = network(Family::V4, TWINS) else { return };
    let scratch = Scratch::with_tree(BYTES);
    let mut transfer = Transfer::start(&network, &scratch);
    transfer.until("a part", || network.carried(&TWINS[0]) >= 5_000_000);
    transfer.sender.signal("KILL");
    let killed = Instant::now();
    let mut receiver = transfer.receiver;
    receiver.until("the loss is told", 4 * NOTICED, |receiver| receiver.said().contains("still waiting"));
    say(&format!("a killed sender was noticed after {:.1?}", killed.elapsed()));
    assert!(killed.elapsed() <= NOTICED, "{:?}: {}", killed.elapsed(), receiver.said());
}

#[test]
fn a_killed_receiver_is_noticed_within_ten_seconds_and_given_up_in_time() {
    let Some((_place, network)) = network(Family::V4, TWINS) else { return };
    let scratch = Scratch::with_tree(BYTES);
    let mut transfer = Transfer::start_with(&network, &scratch, &["--give-up-after", "20s"]);
    transfer.until("a part", || network.carried(&TWINS[0]) >= 5_000_000);
    transfer.receiver.signal("KILL");
    let killed = Instant::now();
    let mut sender = transfer.sender;
    sender.until("the loss is told", 4 * NOTICED, |sender| sender.said().contains("connection lost"));
    assert!(killed.elapsed() <= NOTICED, "{:?}: {}", killed.elapsed(), sender.said());
    let status = sender.end(Duration::from_secs(40));
    assert_eq!(status.code(), Some(1), "{}", sender.said());
    assert!(killed.elapsed() >= Duration::from_secs(18), "{:?}: {}", killed.elapsed(), sender.said());
    assert_told_in_order(&sender.said(), &["connection lost", "error: "]);
}

#[test]
fn an_end_that_is_terminated_tells_the_other_at_once() {
    let Some((_place, network)) = network(Family::V4, TWINS) else { return };
    for (who, signal) in [(End::Sender, "TERM"), (End::Receiver, "TERM"), (End::Sender, "HUP"), (End::Receiver, "INT")]
    {
        if signal == "HUP" && hangups_are_ignored() {
            say("SIGHUP: skipped, it is ignored here, as below nohup, and stays so in what is started");
            continue;
        }
        let scratch = Scratch::with_tree(BYTES);
        let mut transfer = Transfer::start(&network, &scratch);
        let before = network.carried(&TWINS[0]);
        transfer.until("a part", || network.carried(&TWINS[0]) - before >= 3_000_000);
        let since = Instant::now();
        let (asked, other, words) = match who {
            End::Sender => (&mut transfer.sender, &mut transfer.receiver, "interrupted by the sender's user"),
            End::Receiver => (&mut transfer.receiver, &mut transfer.sender, "interrupted by the receiver's user"),
        };
        asked.signal(signal);
        let heard = Duration::from_secs(40);
        match who {
            End::Sender => other.until("the end is told", heard, |other| other.said().contains(words)),
            End::Receiver => {
                assert_eq!(other.end(heard).code(), Some(1), "{}", other.said());
                assert!(other.said().contains(words), "{}", other.said());
            }
        }
        let told = since.elapsed();
        assert_eq!(asked.end(heard).code(), Some(1), "{}", asked.said());
        say(&format!("SIG{signal}: the other end knew after {told:.2?}"));
        assert!(told <= Duration::from_secs(2), "SIG{signal}: {told:?}");
    }
}

/// Whether this process was started with SIGHUP ignored.
fn hangups_are_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).map(str::trim);
    // The lowest bit is that of signal 1.
    ignored.and_then(|bits| u64::from_str_radix(bits, 16).ok()).is_some_and(|bits| bits & 1 == 1)
}
