//! Tickets, as a person gives them to the program. The input is taken as a word, and as the content of
//! one whose length and checksum are right: no fuzzer finds a checksum.

use fairpath_transfer::{MAX_ADDRESSES, Secret, Ticket, TicketError, fuzzing};

use super::{Seed, Target};
use crate::memory::{self, BUFFERS};
use crate::said;

pub(crate) static TARGET: Target = Target {
    name: "ticket",
    about: "tickets: the word, and the content of a word that is well-formed",
    check,
    seeds,
    words: &["fp1", "fp2"],
    also: &[],
};

/// The longest content whose length fits into its two bytes.
const CONTENT_MAX: usize = u16::MAX as usize;

fn check(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    memory::within(input, BUFFERS, 16, || check_word(&text));
    let content = &input[..input.len().min(CONTENT_MAX)];
    check_word(&fuzzing::ticket_word(content));
}

fn check_word(text: &str) {
    let word = text.trim();
    let parsed: Result<Ticket, TicketError> = text.parse();
    if let Err(error) = &parsed {
        said::words(error, 200);
    }
    match parsed {
        Ok(ticket) => {
            assert_eq!(ticket.to_string(), word, "a ticket has one form");
            assert!(ticket.addresses.len() <= MAX_ADDRESSES);
        }
        Err(TicketError::Character { position, character }) => {
            assert_eq!(word.chars().nth(position - 1), Some(character));
        }
        Err(TicketError::Truncated { length, expected }) => {
            assert_eq!(length, word.chars().count());
            assert!(expected.is_none_or(|expected| expected > length));
        }
        Err(TicketError::TooLong { length, expected }) => {
            assert_eq!(length, word.chars().count());
            assert!(expected < length);
        }
        Err(_) => {}
    }
}

fn seeds() -> Vec<Seed> {
    let addresses = ["192.0.2.7:4433", "[2001:db8::1]:4433"].map(|address| address.parse().expect("an address"));
    let ticket = |addresses: &[_]| Ticket {
        addresses: addresses.to_vec(),
        fingerprint: [7; 32],
        secret: Secret::from_bytes([9; 16]),
    };
    let word = ticket(&addresses).to_string();
    // The same two addresses in bytes: number, kinds, addresses and ports, then the fingerprint and the secret.
    let content = [
        &[2, 4, 192, 0, 2, 7, 0x11, 0x51, 6, 0x20, 0x01, 0x0d, 0xb8][..],
        &[0; 11],
        &[1, 0x11, 0x51],
        &[7; 32],
        &[9; 16],
    ];
    vec![
        Seed::new("two_addresses", word.clone()),
        Seed::new("no_address", ticket(&[]).to_string()),
        Seed::new("with_space", format!("  {word}\n")),
        Seed::new("content", content.concat()),
    ]
}
