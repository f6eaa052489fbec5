//! Frames of streams, as a server hears them whose application accepts, reads, writes, ends and gives up.
//!
//! The input is steps: a length and a frame of that length; a length of 0 has the application act, one of 255 has the
//! connection replaced by another.

use fairpath_quic_core::fuzzing::StreamsHeard;
use fairpath_quic_core::streams::{Read, StreamId};

use super::{Seed, Target};
use crate::{memory, said};

pub(crate) static TARGET: Target = Target {
    name: "streams",
    about: "frames of streams: data, limits, credit, resets, stops, resumption",
    check,
    seeds,
    words: &[],
    also: &[],
};

const ACT: u8 = 0;
const REPLACE: u8 = 255;

/// The bound of all streams together, in bytes.
const WINDOW: u64 = 2 << 20;

/// Blocks may have room for twice as much as is in them, and an eighth for what is known of gaps.
const HELD: usize = WINDOW as usize / 4 * 9;

/// The state of streams that are open, and buffers that packets are cut from.
const STATE: usize = 1 << 20;

/// A frame of seven bytes opens a stream, which costs about a kilobyte at each half.
const MEMORY: usize = 512;

/// Errors name numbers of up to 20 digits.
const WORDS_MAX: usize = 200;

fn check(input: &[u8]) {
    memory::within(input, STATE + HELD, MEMORY, || hear(input));
}

fn hear(mut steps: &[u8]) {
    let mut heard = StreamsHeard::new(WINDOW);
    let (mut open, mut acts) = (Vec::new(), 0);
    while let Some((length, rest)) = steps.split_first() {
        steps = rest;
        match *length {
            ACT => {
                acts += 1;
                act(&mut heard, &mut open, acts);
            }
            REPLACE => heard.replace_connection(),
            length => {
                let (frame, rest) = steps.split_at(steps.len().min(length.into()));
                steps = rest;
                if let Err(error) = heard.hear(frame) {
                    said::words(&error, WORDS_MAX);
                    return;
                }
            }
        }
        let streams = heard.streams();
        assert!(streams.held_bytes() <= streams.window_bytes(), "{streams:?}");
        heard.say_all();
    }
}

/// Accepts all, reads and writes a little, and gives up on some.
fn act(heard: &mut StreamsHeard, open: &mut Vec<StreamId>, acts: u64) {
    let streams = heard.streams();
    while streams.poll_event().is_some() {}
    open.extend(std::iter::from_fn(|| streams.accept()).map(|(id, _)| id));
    for id in &*open {
        let _ = streams.write(*id, (&b"an answer"[..]).into());
        let read = streams.read(*id, 500);
        match (acts + id.number()) % 5 {
            0 => streams.reset(*id, 3),
            1 => streams.stop(*id, 4),
            _ if read == Ok(Read::End) => _ = streams.finish(*id),
            _ => {}
        }
    }
    open.retain(|id| streams.contains(*id));
}

/// Steps that say these frames, with the application acting after each.
fn steps(frames: &[&[u8]]) -> Vec<u8> {
    frames.iter().flat_map(|frame| [&[frame.len() as u8][..], frame, &[ACT]].concat()).collect()
}

fn seeds() -> Vec<Seed> {
    let limits: &[u8] = &[0x32, 0x44, 0x00, 0x80, 0x10, 0, 0, 0x80, 1, 0, 0];
    let opened: &[u8] = &[0x30, 0, 0x80, 0, 0, 0, b'k', b'a', b'b', b'c'];
    let later: &[u8] = &[0x30, 0, 0x80, 0, 0, 6, b'f'];
    let between: &[u8] = &[0x30, 0, 0x80, 0, 0, 4, b'd', b'e'];
    let end: &[u8] = &[0x31, 0, 0xC0, 0, 0, 0, 0, 0, 0, 7];
    let beyond: &[u8] = &[0x30, 4, 0x80, 1, 0, 0, b'x'];
    let far: &[u8] = &[0x30, 2, 0x80, 0, 0xFF, 0xFF, b'x'];
    let reset: &[u8] = &[0x34, 0, 9, 0x40, 200];
    let stop: &[u8] = &[0x35, 0, 9];
    let credit: &[u8] = &[0x33, 0, 0x80, 2, 0, 0];
    let resume: &[u8] = &[&[0x36][..], &[7; 16]].concat();
    vec![
        Seed::new("in_order", steps(&[limits, opened, between, later, end])),
        Seed::new("out_of_order", steps(&[limits, end, later, opened, between, opened])),
        Seed::new("reset", steps(&[limits, opened, reset, later])),
        Seed::new("reset_first", steps(&[limits, reset, opened])),
        Seed::new("stop", steps(&[limits, opened, credit, stop, stop])),
        Seed::new("beyond_credit", steps(&[limits, far, beyond])),
        Seed::new("resume", steps(&[resume, resume, limits, opened])),
        Seed::new(
            "replaced",
            [steps(&[limits, opened]), vec![REPLACE], steps(&[resume, later, between, end])].concat(),
        ),
    ]
}
