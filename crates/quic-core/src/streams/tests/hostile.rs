//! A peer that does not keep to the rules.

use super::super::error::StreamsError;
use super::super::wire::{Frame, Limits};
use super::*;

/// A server that admits, whose client says these frames. What comes of the last.
fn hear(config: &StreamsConfig, frames: &[Frame<'_>]) -> (Streams, Result<(), StreamsError>) {
    let mut server = Streams::new(true, config.clone());
    server.on_connected(TOKEN);
    server.admit();
    let limits = Frame::Limits(Limits { streams: 1_000, bytes: 1 << 20, window: 1 << 16 });
    let mut result = Ok(());
    for frame in [limits].iter().chain(frames) {
        let mut datagram = Vec::new();
        frame.put(&mut datagram);
        result = server.on_datagram(&datagram);
        while server.next_due().is_some() {}
    }
    (server, result)
}

fn data(id: u64, offset: u64, data: &[u8]) -> Frame<'_> {
    Frame::Data { id, offset, is_last: false, data }
}

fn last(id: u64, offset: u64, data: &[u8]) -> Frame<'_> {
    Frame::Data { id, offset, is_last: true, data }
}

#[test]
fn each_breach_of_the_rules_is_a_clear_error() {
    let breaches: [(&[Frame<'_>], &str); 9] = [
        (&[data(16, 0, b"k")], "a frame of stream 8 of the client came, of which 8 may be opened"),
        (&[data(1, 0, b"k")], "a frame of stream 0 of the server came, which was never opened here"),
        (&[data(0, 65_536, b"x")], "stream 0 of the client was sent up to byte 65537 where its credit is for 65536"),
        (&[data(0, u64::MAX >> 2, b"x")], "stream 0 of the client was sent up to byte"),
        (&[last(0, 0, b"abc"), data(0, 3, b"d")], "stream 0 of the client ends at byte 3, or has more"),
        (&[data(0, 5, b"d"), last(0, 0, b"abc")], "stream 0 of the client ends at byte 6, or has more"),
        (&[last(0, 0, b"abc"), Frame::Reset { id: 0, code: 1, end: 4 }], "stream 0 of the client ends at byte 3"),
        (&[Frame::Reset { id: 0, code: 1, end: 1 << 40 }], "stream 0 of the client was sent up to byte"),
        (&[Frame::Refused], "the peer did what is not its part"),
    ];
    for (frames, expected) in breaches {
        let (_, result) = hear(&small(), frames);
        let error = result.expect_err(expected).to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn more_than_the_credit_of_the_connection_is_an_error() {
    let frames: Vec<Frame<'_>> = (0..17).map(|number| data(number * 2, 65_535, b"x")).collect();
    let config = StreamsConfig { connection_max: fairpath_engine::ByteCount::new(1 << 20), ..StreamsConfig::default() };
    let (server, result) = hear(&config, &frames[..16]);
    assert_eq!((result, server.held_bytes()), (Ok(()), 1 << 20));
    let (_, result) = hear(&config, &frames);
    assert!(matches!(result, Err(StreamsError::AllBeyondCredit { .. })), "{result:?}");
}

#[test]
fn data_that_comes_first_stands_where_other_data_overlaps_it() {
    let frames = [data(0, 0, b"kabc"), data(0, 2, b"XYZ"), data(0, 0, b"?????")];
    let (mut server, result) = hear(&small(), &frames);
    assert_eq!(result, Ok(()));
    let (id, kind) = server.accept().expect("it was opened");
    assert_eq!(kind, StreamKind(b'k'));
    assert_eq!(server.read(id, 100), Ok(Read::Data(Bytes::from_static(b"abcZ"))));
}

#[test]
fn a_reset_beats_all_that_stands_before_it_and_frees_its_credit() {
    let frames = [data(0, 0, b"kabc"), Frame::Reset { id: 0, code: 9, end: 60_000 }, data(0, 4, b"late")];
    let (mut server, result) = hear(&small(), &frames);
    assert_eq!((result, server.held_bytes()), (Ok(()), 0));
    let (id, _) = server.accept().expect("it was opened");
    assert_eq!(server.read(id, 100), Err(StreamError::Reset(9)));
    assert_eq!(server.read(id, 100), Ok(Read::End), "it is said once");
    server.reset(id, 0);
    assert!(server.contains(id), "the peer does not know of the reset");
}

#[test]
fn an_end_may_come_before_the_data_and_twice() {
    let frames = [last(0, 4, b""), data(0, 2, b"bc"), last(0, 2, b"bc"), data(0, 0, b"ka")];
    let (mut server, result) = hear(&small(), &frames);
    assert_eq!(result, Ok(()));
    let (id, _) = server.accept().expect("it was opened");
    assert_eq!(server.read(id, 100), Ok(Read::Data(Bytes::from_static(b"abc"))));
    assert_eq!(server.read(id, 100), Ok(Read::End));
}

#[test]
fn a_stream_that_is_reset_before_its_kind_came_bothers_nobody() {
    let (mut server, result) = hear(&small(), &[Frame::Reset { id: 0, code: 9, end: 60_000 }]);
    assert_eq!((result, server.accept()), (Ok(()), None));
    assert_eq!((server.poll_event(), server.held_bytes()), (None, 0));
}

#[test]
fn any_frames_leave_what_is_held_within_the_credit() {
    let mut luck = ChaCha8Rng::seed_from_u64(5);
    for _ in 0..300 {
        let mut server = hear(&small(), &[]).0;
        for _ in 0..200 {
            let id = luck.random_range(0..20);
            let at = luck.random_range(0..80_000);
            let frame = match luck.random_range(0..12) {
                0 => Frame::Reset { id, code: 1, end: at },
                1 => Frame::Stop { id, code: 1 },
                2 => Frame::Credit { id, limit: at },
                3 => Frame::Limits(Limits { streams: at, bytes: at * 100, window: at }),
                4 => Frame::Resume([luck.random_range(6..8); 16]),
                _ => Frame::Data { id, offset: at % 1_000, is_last: luck.random_bool(0.05), data: &[3; 700] },
            };
            let mut datagram = Vec::new();
            frame.put(&mut datagram);
            if server.on_datagram(&datagram).is_err() {
                break;
            }
            assert!(server.held_bytes() <= server.window_bytes());
            if let Some((id, _)) = server.accept() {
                _ = server.write(id, Bytes::from_static(b"an answer"));
                _ = server.read(id, 500);
                _ = server.finish(id);
            }
            while server.next_due().or_else(|| server.next_data(100)).is_some() {}
        }
    }
}
