//! The messages of the control stream, of either end, and the head of a greeting.

use fairpath_transfer::{fuzzing, printable};

use super::{Seed, Target};
use crate::memory::{self, BUFFERS};

pub(crate) static TARGET: Target = Target {
    name: "control",
    about: "the control protocol: greetings, and the messages of sender and receiver",
    check,
    seeds,
    words: &["FPT", "FPM"],
    also: &[],
};

/// An empty name takes one byte in a message and three words in memory, three times where a list grows.
const MEMORY: usize = 128;

fn check(input: &[u8]) {
    for rewrite in [fuzzing::from_sender, fuzzing::from_receiver] {
        if let Ok(written) = memory::within(input, BUFFERS, MEMORY, || rewrite(input)) {
            assert_eq!(rewrite(&written), Ok(written), "what is written is read as the same");
        }
    }
    if let Some(head) = input.first_chunk::<4>()
        && let Some(written) = fuzzing::greeting_head(*head)
    {
        assert_eq!(head[..3], written[..3]);
    }
    let shown = printable(&String::from_utf8_lossy(input));
    assert!(shown.len() < 1_100 && !shown.contains(char::is_control), "{shown:?}");
}

fn seeds() -> Vec<Seed> {
    let messages = fuzzing::sender_messages().into_iter().chain(fuzzing::receiver_messages());
    let mut seeds: Vec<Seed> = messages.map(|(name, message)| Seed::new(name, message)).collect();
    seeds.push(Seed::new("greeting", *b"FPT\x02"));
    seeds
}
