//! Files through all of the product above the sockets, in virtual time.

use std::time::Duration;

use fairpath_core::ByteCount;
use fairpath_faults::{Fault, Scheduled, Side, Transfer, Wire};
use rayon::prelude::*;

/// The seeds that every change is tested with.
const SEEDS: std::ops::Range<u64> = 0..100;

/// Seeds beyond [`SEEDS`] that found a fault. A client that lost the race of handshakes reported
/// that without end (291, 427, 435, 475). A sender did not try again after a receiver that stood
/// still had not heard it in time (312).
const FOUND: [u64; 6] = [291, 312, 427, 435, 475, 7_521];

#[test]
fn files_arrive_whole_under_faults_and_both_ends_agree() {
    let failed: Vec<String> = SEEDS
        .chain(FOUND)
        .collect::<Vec<_>>()
        .into_par_iter()
        .filter_map(|seed| {
            let transfer = Transfer::of(seed);
            let failure = transfer.run().err()?;
            Some(format!("{failure}\n{transfer}again: cargo run -q -p fairpath-faults -- --files --seeds {seed}"))
        })
        .collect();
    assert!(failed.is_empty(), "{} seeds failed:\n{}", failed.len(), failed.join("\n\n"));
}

/// The second time in another thread, so that neither what ran before nor what runs beside it may matter.
#[test]
fn a_seed_gives_the_same_transfer_each_time() {
    let trace = |seed| Transfer::of(seed).run().map(|outcome| (outcome.trace, outcome.virtual_time));
    (0..6_u64).into_par_iter().for_each(|seed| {
        let again = std::thread::spawn(move || trace(seed));
        assert_eq!(trace(seed), again.join().expect("no panic"), "seed {seed}");
    });
}

/// One file of some 6 MB, over two wires of 4 Mbit/s: some 6 s.
pub(crate) fn transfer() -> Transfer {
    let mut transfer =
        Transfer { wires: vec![Wire::new(4, 10), Wire::new(4, 30)], bytes: 6_000_000, ..Transfer::of(0) };
    transfer.faults.clear();
    let is_meant = |files: &u64| {
        let transfer = Transfer { files: *files, ..transfer.clone() };
        // A directory with the file, and maybe an empty one.
        transfer.size() > 5_000_000 && transfer.entries() <= 3
    };
    transfer.files = (0..).find(is_meant).expect("there are such");
    transfer
}

/// With these faults. How long it took.
fn takes(faults: &[(Duration, Fault)]) -> Duration {
    let scheduled = |(whole, &(at, fault)): (usize, &_)| Scheduled { at, fault, whole };
    let transfer = Transfer { faults: faults.iter().enumerate().map(scheduled).collect(), ..transfer() };
    transfer.run().unwrap_or_else(|failure| panic!("{failure}\n{transfer}")).virtual_time
}

/// How long it takes where nothing is wrong.
fn alone() -> Duration {
    takes(&[])
}

#[test]
fn files_take_little_longer_than_the_wires_need_for_them() {
    let bytes = ByteCount::new(transfer().size());
    let needed = bytes / fairpath_core::Bitrate::from_mbps(8);
    let took = alone();
    // Two handshakes' and a plan's round trips, the start of each path, and the last file's way to its name.
    assert!(took < needed.mul_f64(1.25) + Duration::from_millis(700), "{took:?} for {needed:?}");
}

#[test]
fn an_outage_longer_than_a_connection_lives_costs_little_more_than_itself() {
    let [begin, end] = [1, 21].map(Duration::from_secs);
    let took = takes(&[(begin, Fault::All(false)), (end, Fault::All(true))]);
    // A try follows the last after a twentieth of what was lost, a handshake and the plan come after it, and what was on its
    // way at the beginning is sent again.
    let bound = alone() + (end - begin).mul_f64(1.05) + Duration::from_millis(2_500);
    assert!(took < bound, "{took:?}, more than {bound:?}");
}

#[test]
fn a_receiver_that_is_started_again_goes_on_with_what_it_has() {
    let restart = Fault::Restart { side: Side::Server, keeps_ports: true };
    let took = takes(&[(Duration::from_secs(4), restart)]);
    // The sender notices the silence after 2.5 s and tries again every half second. What came since the last journal is
    // sent again: of up to a second, and of a file of which less than a MiB has come since the one before, that too.
    let again = Duration::from_secs(1) + ByteCount::new(1 << 20) / fairpath_core::Bitrate::from_mbps(8);
    let bound = alone() + again + Duration::from_millis(2_500 + 500 + 700);
    assert!(took < bound, "{took:?}, more than {bound:?}");
}

#[test]
fn what_changed_on_the_receivers_disk_is_found_and_sent_again() {
    let at = Duration::from_secs(4);
    let restart = takes(&[(at, Fault::Restart { side: Side::Server, keeps_ports: true })]);
    let spoiled = takes(&[(at, Fault::Spoil(0))]);
    // At the end all is as it was sent, which every run checks; all of the file has to come once more.
    assert!(spoiled > restart + Duration::from_secs(1), "{spoiled:?}, and {restart:?} where it was not spoiled");
}

#[test]
fn a_sender_that_is_started_again_takes_over_from_the_one_before_at_once() {
    let at = Duration::from_secs(1);
    let took = takes(&[(at, Fault::Restart { side: Side::Client, keeps_ports: false })]);
    // A handshake, the plan, and what came since the last journal.
    let bound = alone() + at + Duration::from_millis(700);
    assert!(took < bound, "{took:?}, more than {bound:?}");
}

#[test]
fn another_sender_waits_until_the_one_before_is_known_to_be_silent() {
    let restart = Fault::Restart { side: Side::Client, keeps_ports: false };
    let faults = vec![Scheduled { at: Duration::from_secs(1), fault: restart, whole: 0 }];
    let transfer = Transfer { faults, is_same_sender: false, ..transfer() };
    let took = transfer.run().unwrap_or_else(|failure| panic!("{failure}\n{transfer}")).virtual_time;
    // The receiver probes the sender before it for this long, and half of a second's data may be
    // sent again.
    let bound = alone() + fairpath_transfer::SILENCE + Duration::from_secs(2);
    assert!(took < bound, "{took:?}, more than {bound:?}");
}
