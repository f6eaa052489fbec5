//! Metered links: quotas hold, a backup stays idle, a limit is one of all paths together.

use std::time::Duration;

use crate::network::{End, Family, Link, Network, TWINS};
use crate::transfer::{Ended, Scratch, Transfer};

const LIMIT: Duration = Duration::from_secs(60);

/// The traffic of ARP and of the search for routers, without a transfer.
const NEXT_TO_NOTHING: u64 = 10_000;

/// The bytes on their way when a quota of a link of 20 Mbit/s is used up: a queue of 50 ms and one batch of the kernel. The
/// peer sends as much as in two such queues until it has heard of it.
const IN_FLIGHT: u64 = 3 * 125_000 + 65_536;

const METERED: Link = TWINS[0];
const OTHER: Link = TWINS[1];

fn transfer(network: &Network, scratch: &Scratch, sender: &[&str], receiver: &[&str]) -> Ended {
    Transfer::start_both(network, scratch, sender, receiver).end_sender(LIMIT)
}

#[test]
fn a_quota_that_is_used_up_lets_nothing_out() {
    let Some((_place, network)) = super::network(Family::V4, TWINS) else { return };
    let scratch = Scratch::with_tree(2_000_000);
    scratch.note_used("send", "one", 1_000_000);
    let alone = transfer(&network, &scratch, &["--via", "one", "--path", "one:quota=1MB"], &[]);
    assert_eq!(alone.sender.code(), Some(1), "{}", alone.sender_said);
    assert!(alone.sender_said.contains("the quota of one is used up"), "{}", alone.sender_said);
    assert!(network.carried(&METERED) < NEXT_TO_NOTHING, "{}", network.carried(&METERED));

    let beside = transfer(&network, &scratch, &["--path", "one:quota=1MB"], &[]);
    assert!(beside.sender.success(), "{}", beside.sender_said);
    assert!(beside.sender_said.contains("one: the quota of 1.0 MB is used up"), "{}", beside.sender_said);
    assert!(network.carried(&METERED) < NEXT_TO_NOTHING, "{}", network.carried(&METERED));
    scratch.assert_arrived_identical();
}

#[test]
fn a_quota_of_either_end_is_passed_by_no_more_than_what_is_in_flight() {
    for (sender, receiver) in [(&["--path", "one:quota=1MB"][..], &[][..]), (&[], &["--path", "one:quota=1MB"])] {
        let Some((_place, network)) = super::network(Family::V4, TWINS) else { return };
        let scratch = Scratch::with_tree(10_000_000);
        let ended = transfer(&network, &scratch, sender, receiver);
        assert!(ended.sender.success(), "{}", ended.sender_said);
        let carried = network.carried(&METERED);
        assert!((500_000..1_000_000 + IN_FLIGHT).contains(&carried), "{sender:?}: {carried}\n{}", ended.sender_said);
        let told = if receiver.is_empty() { &ended.sender_said } else { &ended.receiver_said };
        assert!(told.contains("one: the quota of 1.0 MB is used up"), "{told}");
        assert!(!ended.sender_said.contains("one: path open again"), "{}", ended.sender_said);
        scratch.assert_arrived_identical();
    }
}

#[test]
fn where_all_quotas_are_used_up_the_transfer_ends_with_an_error() {
    let Some((_place, network)) = super::network(Family::V4, TWINS) else { return };
    let scratch = Scratch::with_tree(8_000_000);
    let ended = transfer(&network, &scratch, &["--path", "one:quota=1MB", "--path", "two:quota=1MB"], &[]);
    assert_eq!(ended.sender.code(), Some(1), "{}", ended.sender_said);
    assert!(ended.sender_said.contains("is used up, and no other path is there"), "{}", ended.sender_said);
    let carried = network.carried(&METERED) + network.carried(&OTHER);
    assert!(carried < 2_000_000 + 2 * IN_FLIGHT, "{carried}");
}

#[test]
fn a_backup_carries_next_to_nothing_until_the_others_fail() {
    let Some((_place, network)) = super::network(Family::V4, TWINS) else { return };
    let scratch = Scratch::with_tree(10_000_000);
    let mut transfer = Transfer::start_both(&network, &scratch, &["--path", "one:backup"], &[]);
    transfer.until("much has come", || network.carried(&OTHER) > 4_000_000);
    // The handshake of a second path, with the search for the size of its datagrams, and a word now and then that it lives.
    let idle = network.carried(&METERED);
    network.set_link(&OTHER, End::Sender, "down");
    let ended = transfer.end(LIMIT);
    ended.assert_success();
    assert!(idle < 100_000, "{idle}\n{}", ended.sender_said);
    assert!(network.carried(&METERED) > 3_000_000, "{}", ended.sender_said);
    scratch.assert_arrived_identical();
}

#[test]
fn a_limit_is_one_of_all_paths_together() {
    let Some((_place, network)) = super::network(Family::V4, TWINS) else { return };
    let scratch = Scratch::with_tree(4_000_000);
    let ended = transfer(&network, &scratch, &["--limit", "8Mbit/s"], &[]);
    assert!(ended.sender.success(), "{}", ended.sender_said);
    // 32 Mbit at 8 Mbit/s; and no slower than at half of it, on a machine that has much else to do.
    let took = ended.elapsed.as_secs_f64();
    assert!((3.9..8.0).contains(&took), "{took} s\n{}", ended.sender_said);
    let carried = [METERED, OTHER].map(|link| network.carried(&link));
    assert!(carried.iter().sum::<u64>() > 4_000_000, "{carried:?}");
}
