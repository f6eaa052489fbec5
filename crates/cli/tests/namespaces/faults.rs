//! Faults that strike the whole connection. Two links of 20 Mbit/s.

use std::time::{Duration, Instant};

use crate::network::{End, Family, TWINS};
use crate::transfer::{Scratch, Transfer};
use crate::{network, say};

/// What a transfer over both links brings in ten seconds.
const BYTES: u64 = 50_000_000;

#[test]
fn an_end_that_is_terminated_tells_the_other_at_once() {
    let Some((_alone, network)) = network(Family::V4, TWINS) else { return };
    for (who, signal) in [(End::Sender, "TERM"), (End::Receiver, "TERM"), (End::Sender, "HUP"), (End::Receiver, "INT")]
    {
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
