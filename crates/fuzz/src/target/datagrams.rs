//! DATAGRAM frames of an authenticated peer, all kinds of them in any order: fragments and credits of
//! both channels, receipts, delays, farewells, and the application's own.
//!
//! The input is a byte that says how far the peer is trusted, and steps. A step is a length and a datagram of
//! that length. A length of 0 has the application take what is complete, and one of 255 lets time pass.

use std::time::{Duration, Instant};

use fairpath_quic_core::bulk::{Credit, Record, Sender};
use fairpath_quic_core::{ChannelId, Connection, Event, Trust, fuzzing};

use super::{Seed, Target};
use crate::memory;

pub(crate) static TARGET: Target = Target {
    name: "datagrams",
    about: "QUIC DATAGRAM frames: which kind they are, channels, receipts, delays, farewells",
    check,
    seeds,
    words: &[],
    also: &[],
};

const TAKE: u8 = 0;
const WAIT: u8 = 255;

/// The state of a connection and of its TLS session.
const CONNECTION: usize = 1 << 20;

/// An event or a report takes some words for a byte of a datagram.
const MEMORY: usize = 256;

/// The bytes before the data in the body of a record.
const HEAD: u64 = 12;

fn check(input: &[u8]) {
    let Some((first, steps)) = input.split_first() else { return };
    let trust = if first & 1 == 0 { Trust::Full } else { Trust::Guest };
    let windows: u64 = [ChannelId::Messages, ChannelId::Bulk].map(|id| fuzzing::window(trust, id).0).iter().sum();
    // An eighth again for what is known of fragments out of order.
    let held = (windows + windows / 8) as usize;
    memory::within(input, CONNECTION + held, MEMORY, || hear(trust, steps));
}

fn hear(trust: Trust, mut steps: &[u8]) {
    let mut now = Instant::now();
    let mut connection = fuzzing::listening(trust, now);
    let mut taken = [0; 2];
    while let Some((length, rest)) = steps.split_first() {
        steps = rest;
        match *length {
            TAKE => take(&mut connection, &mut taken),
            WAIT => {
                now += Duration::from_millis(100);
                connection.handle_timeout(now);
            }
            length => {
                let (datagram, rest) = steps.split_at(steps.len().min(length.into()));
                steps = rest;
                fuzzing::hear(&mut connection, datagram, now);
            }
        }
        for (id, taken) in [ChannelId::Messages, ChannelId::Bulk].into_iter().zip(taken) {
            let held = connection.received_bytes(id).checked_sub(taken).expect("what was taken had come");
            assert!(held <= fuzzing::window(trust, id).0, "{held} bytes are held of {id:?}");
        }
        while let Some(event) = connection.poll_event() {
            if let Event::Closed(reason) = event {
                assert!(connection.close_reason().is_some(), "{reason}");
            }
        }
    }
}

fn take(connection: &mut Connection, taken: &mut [u64; 2]) {
    while let Some(message) = connection.take_message() {
        taken[0] += HEAD + message.len() as u64;
    }
    while let Some(record) = connection.take_record() {
        taken[1] += HEAD + record.data.len() as u64;
    }
}

/// The datagrams of records, each of at most `room` bytes.
fn fragments(records: &[Record], room: usize) -> Vec<Vec<u8>> {
    let mut sender = Sender::new();
    sender.on_credit(Credit { bytes: 1 << 20, records: 100 });
    records.iter().for_each(|record| sender.queue(record.clone()).expect("it is small"));
    core::iter::from_fn(|| sender.next(room)).map(|fragment| fragment.datagram.to_vec()).collect()
}

/// Steps that say these datagrams, and take at the end.
fn steps(trust: u8, datagrams: &[Vec<u8>]) -> Vec<u8> {
    let said = datagrams.iter().flat_map(|datagram| [&[datagram.len() as u8][..], datagram].concat());
    [trust].into_iter().chain(said).chain([TAKE]).collect()
}

fn seeds() -> Vec<Seed> {
    let record = |object, offset, data: &'static [u8]| Record { object, offset, data: data.into() };
    let records = [record(1, 0, b"the first record"), record(2, 1 << 40, b"the second, which is a longer one")];
    let bulk = fragments(&records, 30);
    let messages: Vec<_> = fragments(&[record(0, 0, b"hello"), record(0, 1, b"world")], 100)
        .into_iter()
        .map(|mut datagram| {
            // The kinds of messages are those of bulk but for one bit.
            datagram[0] ^= 0x02;
            datagram
        })
        .collect();
    let credit = Credit { bytes: 1 << 20, records: 7 }.to_datagram().to_vec();
    let reversed: Vec<_> = bulk.iter().rev().chain(&bulk).cloned().collect();
    let others =
        vec![vec![0, 1, 2, 3], vec![1], vec![3, 0, 0, 0, 0, 9, 1, 0, 0, 0, 5], [&[2][..], &[0; 12], &[7; 12]].concat()];
    let farewell = vec![vec![4, 0, 0, 0, 7, b'b', b'y', b'e']];
    vec![
        Seed::new("bulk", steps(0, &bulk)),
        Seed::new("bulk_reversed_and_again", steps(0, &reversed)),
        Seed::new("messages", steps(0, &messages)),
        Seed::new("messages_of_a_guest", steps(1, &messages)),
        Seed::new("bulk_of_a_guest", steps(1, &bulk)),
        Seed::new("credits", steps(0, &[credit.clone(), [&[0x23], &credit[1..]].concat()])),
        Seed::new("others", steps(0, &others)),
        Seed::new("farewell", steps(0, &[farewell, others.clone()].concat())),
        Seed::new("time", [steps(0, &others), vec![WAIT; 40]].concat()),
    ]
}
