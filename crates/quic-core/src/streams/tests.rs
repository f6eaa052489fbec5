//! Two ends of streams and a network that loses, repeats, reorders and forgets, without a stack.

use std::collections::BTreeMap;

use bytes::Bytes;
use fairpath_engine::{PathId, Timestamp};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use web_time::Duration;

use super::*;

mod hostile;
mod room;

const TOKEN: StreamsToken = StreamsToken([7; 16]);

/// The byte at `offset` of what one end says on a stream.
fn byte(id: StreamId, is_server: bool, offset: u64) -> u8 {
    let seed = (id.number() << 2 | u64::from(id.is_from_server()) << 1 | u64::from(is_server)) + 1;
    (seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(offset.wrapping_mul(0xD6E8_FEB8_6659_FD93)) >> 32) as u8
}

/// One direction of a stream, at its writer.
#[derive(Debug)]
struct Writing {
    left: u64,
    written: u64,
    resets: bool,
    is_blocked: bool,
}

/// One direction, at its reader.
#[derive(Debug, Default)]
struct Reading {
    read: u64,
    stops_at: Option<u64>,
    may_read: bool,
}

#[derive(Debug, Default)]
struct App {
    writing: BTreeMap<StreamId, Writing>,
    reading: BTreeMap<StreamId, Reading>,
    to_open: u64,
    may_open: bool,
    /// How each stream that was read to its end has ended: its length, or a code.
    ended: BTreeMap<StreamId, Result<u64, u64>>,
}

/// How a writer ended its streams: the length of each, or a code.
type Ends = BTreeMap<StreamId, Result<u64, u64>>;

struct Net {
    ends: [Streams; 2],
    apps: [App; 2],
    /// How the writers of each end ended their streams.
    said: [Ends; 2],
    stopped: [BTreeMap<StreamId, u64>; 2],
    wire: Vec<(usize, PathId, u64, Bytes)>,
    fates: Vec<(usize, PathId, u64, bool)>,
    number: u64,
    luck: ChaCha8Rng,
    loss: f64,
    time: u64,
}

impl Net {
    fn new(seed: u64, config: &StreamsConfig, streams: u64) -> Self {
        let ends = [false, true].map(|is_server| {
            let mut end = Streams::new(is_server, config.clone());
            end.on_connected(TOKEN);
            end.admit();
            end
        });
        let app = || App { to_open: streams, may_open: true, ..App::default() };
        Self {
            ends,
            apps: [app(), app()],
            said: Default::default(),
            stopped: Default::default(),
            wire: Vec::new(),
            fates: Vec::new(),
            number: 0,
            luck: ChaCha8Rng::seed_from_u64(seed),
            loss: 0.1,
            time: 0,
        }
    }

    fn take_on(&mut self, end: usize, id: StreamId) {
        let luck = &mut self.luck;
        let length = match luck.random_range(0..4) {
            0 => 0,
            1 => luck.random_range(1..100),
            2 => luck.random_range(100..20_000),
            _ => luck.random_range(20_000..300_000),
        };
        let writing = Writing { left: length, written: 0, resets: luck.random_bool(0.15), is_blocked: false };
        let stops_at = luck.random_bool(0.15).then(|| luck.random_range(0..30_000));
        self.apps[end].writing.insert(id, writing);
        self.apps[end].reading.insert(id, Reading { read: 0, stops_at, may_read: true });
    }

    /// The application of an end does all that it was told it may.
    fn run_app(&mut self, end: usize, reads: bool) {
        self.time += 1;
        self.ends[end].set_now(Timestamp::ZERO + Duration::from_millis(self.time));
        while let Some(event) = self.ends[end].poll_event() {
            let app = &mut self.apps[end];
            match event {
                StreamEvent::MayOpen => app.may_open = true,
                StreamEvent::Readable(id) => _ = app.reading.get_mut(&id).map(|one| one.may_read = true),
                StreamEvent::Writable(id) => _ = app.writing.get_mut(&id).map(|one| one.is_blocked = false),
                StreamEvent::Finished(id) => {
                    let length = self.said[end].get(&id).copied();
                    assert!(matches!(length, Some(Ok(_))), "{id} was not finished, but {length:?}");
                }
                StreamEvent::Opened | StreamEvent::Lost => {}
            }
        }
        while let Some((id, kind)) = self.ends[end].accept() {
            assert_eq!(kind, StreamKind(id.number() as u8), "{id}");
            self.take_on(end, id);
        }
        while self.apps[end].to_open > 0 && self.apps[end].may_open {
            let number = self.ends[end].opened;
            match self.ends[end].open(StreamKind(number as u8)) {
                Some(id) => {
                    self.apps[end].to_open -= 1;
                    self.take_on(end, id);
                }
                None => self.apps[end].may_open = false,
            }
        }
        self.write(end);
        if reads {
            self.read(end);
        }
    }

    fn write(&mut self, end: usize) {
        let (streams, said) = (&mut self.ends[end], &mut self.said[end]);
        let (luck, is_server) = (&mut self.luck, end == 1);
        self.apps[end].writing.retain(|&id, one| {
            // The byte at the front is the kind, which the opener wrote.
            while one.left > 0 && !one.is_blocked {
                let length = one.left.min(luck.random_range(1..5_000));
                let data: Vec<u8> = (one.written..one.written + length).map(|at| byte(id, is_server, at)).collect();
                match streams.write(id, data.into()) {
                    Ok(taken) => {
                        (one.written, one.left) = (one.written + taken as u64, one.left - taken as u64);
                        one.is_blocked = (taken as u64) < length;
                    }
                    Err(StreamError::Stopped(code)) => {
                        said.insert(id, Err(code));
                        return false;
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            if one.left > 0 {
                return true;
            }
            if one.resets {
                streams.reset(id, 77);
                said.insert(id, Err(77));
            } else if streams.finish(id).is_ok() {
                said.insert(id, Ok(one.written));
            }
            false
        });
    }

    fn read(&mut self, end: usize) {
        let (streams, stopped) = (&mut self.ends[end], &mut self.stopped[end]);
        let (is_peer_server, luck) = (end == 0, &mut self.luck);
        let App { reading, ended, .. } = &mut self.apps[end];
        reading.retain(|&id, one| {
            while one.may_read {
                if one.stops_at.is_some_and(|at| at <= one.read) {
                    streams.stop(id, 55);
                    stopped.insert(id, one.read);
                    return false;
                }
                match streams.read(id, luck.random_range(1..70_000)) {
                    Ok(Read::Data(data)) => {
                        for (at, found) in (one.read..).zip(&data) {
                            assert_eq!(*found, byte(id, is_peer_server, at), "{id} at {at}");
                        }
                        one.read += data.len() as u64;
                    }
                    Ok(Read::Pending) => one.may_read = false,
                    Ok(Read::End) => {
                        ended.insert(id, Ok(one.read));
                        return false;
                    }
                    Err(StreamError::Reset(code)) => {
                        ended.insert(id, Err(code));
                        return false;
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            true
        });
    }

    /// One packet of an end, if it has anything to say; whether it had.
    fn send(&mut self, end: usize) -> bool {
        let path = PathId::new(self.luck.random_range(0..3));
        let room = self.luck.random_range(40..1_400);
        let streams = &mut self.ends[end];
        let next = streams.next_rescue(path).or_else(|| {
            let next = streams.next_due().or_else(|| streams.next_data(room));
            next.or_else(|| streams.reinject(path, room, |_| true)).map(|(datagram, part)| (datagram, part, true))
        });
        let Some((datagram, part, answers)) = next else {
            assert!(!streams.has_next(), "it has something, and says nothing");
            return false;
        };
        if self.luck.random_bool(self.loss / 10.0) {
            if answers {
                streams.send_again(part);
            }
            return true;
        }
        let number = self.number;
        self.number += 1;
        match answers {
            true => streams.on_sent(part, path, number),
            false => streams.on_copy_sent(part, path, number),
        }
        if self.luck.random_bool(self.loss) {
            self.fates.push((end, path, number, false));
            return true;
        }
        if self.luck.random_bool(self.loss / 5.0) {
            self.wire.push((1 - end, path, number, datagram.clone()));
        }
        self.wire.push((1 - end, path, number, datagram));
        true
    }

    /// One that is on its way arrives.
    fn deliver(&mut self) -> bool {
        if self.wire.is_empty() {
            return false;
        }
        let at = self.luck.random_range(0..self.wire.len().min(20));
        let (end, path, number, datagram) = self.wire.swap_remove(at);
        self.ends[end].on_datagram(&datagram).expect("the other end keeps to the rules");
        assert!(self.ends[end].held_bytes() <= self.ends[end].window_bytes());
        // Some are thought to be lost though they are not.
        let is_acked = !self.luck.random_bool(self.loss / 10.0);
        self.fates.push((1 - end, path, number, is_acked));
        true
    }

    fn tell_fate(&mut self) -> bool {
        if self.fates.is_empty() {
            return false;
        }
        let at = self.luck.random_range(0..self.fates.len().min(10));
        match self.fates.swap_remove(at) {
            (end, path, number, true) => self.ends[end].on_acked(path, number),
            (end, path, number, false) => self.ends[end].on_lost(path, number),
        }
        true
    }

    /// The connection is lost, and another goes on.
    fn replace_connection(&mut self) {
        self.wire.clear();
        self.fates.clear();
        for end in &mut self.ends {
            end.on_connection_gone();
            end.go_on(TOKEN);
        }
        // As a server that has not heard of the streams that are meant.
        self.ends[1].phase = set::Phase::Listening;
    }

    /// A server that is asked goes on.
    fn answer(&mut self) {
        if self.ends[1].take_asked() == Some(TOKEN) {
            self.ends[1].go_on(TOKEN);
        }
    }

    fn step(&mut self) {
        match self.luck.random_range(0..12) {
            0 => self.run_app(0, true),
            1 => self.run_app(1, true),
            2..5 => _ = self.send(0),
            5..8 => _ = self.send(1),
            8..10 => _ = self.deliver(),
            _ => _ = self.tell_fate(),
        }
        self.answer();
    }

    /// Nothing is lost any more, and all goes on until nothing is left to do.
    fn settle(&mut self) {
        self.loss = 0.0;
        for _ in 0..200_000 {
            let before = self.number;
            self.run_app(0, true);
            self.run_app(1, true);
            let has_sent = (0..20).fold(false, |any, turn| self.send(turn % 2) | any);
            let has_done = (0..40).fold(false, |any, _| self.deliver() | self.tell_fate() | any);
            self.answer();
            if !has_sent && !has_done && self.number == before {
                return;
            }
        }
        panic!("it does not come to rest");
    }

    /// All ended at both ends as it was ended.
    fn check(&self) {
        for end in 0..2 {
            let (app, said) = (&self.apps[end], &self.said[1 - end]);
            assert!(app.writing.is_empty() && app.reading.is_empty() && app.to_open == 0, "{app:?}");
            for (id, found) in &app.ended {
                // The peer never heard which stream this end had opened before it gave up, and resets its own half.
                if *found == Err(0) && self.said[end].get(id) == Some(&Err(77)) {
                    continue;
                }
                let expected = said.get(id).unwrap_or_else(|| panic!("{id} has ended by itself"));
                assert_eq!(found, expected, "{id}");
            }
            let streams = &self.ends[end];
            assert_eq!(streams.len(), 0);
            assert_eq!((streams.sums, streams.held_bytes()), (stream::Sums::default(), 0));
            assert_eq!(streams.sent, self.ends[1 - end].received, "both ends agree on what was sent");
            assert_eq!(streams.grown, 0);
        }
    }
}

fn small() -> StreamsConfig {
    StreamsConfig { open_max: 8, ..StreamsConfig::default() }
}

#[test]
fn every_byte_comes_once_and_in_order_whatever_is_lost() {
    for seed in 0..60 {
        let mut net = Net::new(seed, &small(), 12);
        (0..4_000).for_each(|_| net.step());
        net.settle();
        net.check();
    }
}

#[test]
fn paths_that_go_away_and_connections_that_are_replaced_lose_nothing() {
    for seed in 0..60 {
        let mut net = Net::new(1_000 + seed, &small(), 12);
        for _ in 0..4_000 {
            net.step();
            match net.luck.random_range(0..1_000) {
                0..10 => {
                    let (end, path) = (net.luck.random_range(0..2), PathId::new(net.luck.random_range(0..3)));
                    net.ends[end].resend(path);
                }
                10..13 => {
                    let path = PathId::new(net.luck.random_range(0..3));
                    net.fates.retain(|(_, on, ..)| *on != path);
                    net.wire.retain(|(_, on, ..)| *on != path);
                    net.ends.iter_mut().for_each(|end| end.on_path_gone(path));
                }
                13..16 => net.replace_connection(),
                16..40 => {
                    let (end, path) = (net.luck.random_range(0..2), PathId::new(net.luck.random_range(0..3)));
                    let is_late = net.luck.random();
                    net.ends[end].note_late(path, is_late);
                }
                _ => {}
            }
        }
        net.settle();
        net.check();
    }
}

/// Two ends that have heard of each other's limits.
fn pair(config: &StreamsConfig) -> Net {
    let mut net = Net::new(1, config, 0);
    net.settle();
    net
}

#[test]
fn an_idle_stream_costs_less_than_a_kilobyte() {
    let mut net = pair(&StreamsConfig::default());
    let id = net.ends[0].open(StreamKind(0)).expect("allowed");
    net.ends[0].write(id, Bytes::from(vec![1; 1_000])).expect("open");
    (0..40).for_each(|turn| _ = net.send(turn % 2) | net.deliver() | net.tell_fate());
    for end in &mut net.ends {
        end.accept();
        _ = end.read(id, usize::MAX);
        let stream = &end.streams[&id.0];
        let bytes = size_of_val(&**stream) + stream.send.heap() + stream.recv.heap();
        assert!(bytes < 1_000, "{bytes}");
    }
}

#[test]
fn a_sparse_stream_goes_before_those_that_fill_the_way() {
    let mut net = pair(&StreamsConfig::default());
    for _ in 0..10 {
        let id = net.ends[0].open(StreamKind(0)).expect("allowed");
        net.ends[0].write(id, Bytes::from(vec![1; 60_000])).expect("open");
    }
    (0..30).for_each(|_| _ = net.send(0));
    let sparse = net.ends[0].open(StreamKind(9)).expect("allowed");
    assert!(net.ends[0].has_small());
    let (datagram, _) = net.ends[0].next_data(1_400).expect("it has data");
    let first = wire::Frame::parse(&datagram).expect("a frame");
    assert!(matches!(first, wire::Frame::Data { id, .. } if id == sparse.0), "{first:?}");
}

/// The piece that each stream waits for on a late path is copied once, and nothing else.
#[test]
fn the_first_bytes_that_are_missing_go_to_another_path_once() {
    let mut net = pair(&StreamsConfig::default());
    let end = &mut net.ends[0];
    let [late, other] = [PathId::new(0), PathId::new(1)];
    let ids = [(); 2].map(|()| end.open(StreamKind(0)).expect("allowed"));
    for (at, id) in ids.into_iter().enumerate() {
        end.write(id, Bytes::from(vec![at as u8; 3_000])).expect("open");
    }
    // All of both on the path, but for the first piece of the second, which is acknowledged.
    for number in 0.. {
        let Some((datagram, part)) = end.next_data(1_000) else { break };
        end.on_sent(part, late, number);
        if matches!(wire::Frame::parse(&datagram), Ok(wire::Frame::Data { id, offset: 0, .. }) if id == ids[1].0) {
            end.on_acked(late, number);
        }
    }
    assert_eq!(end.next_rescue(other), None, "its answer is not late");
    end.note_late(late, true);
    assert_eq!(end.next_rescue(late), None, "they are there");
    let mut copied = Vec::new();
    for number in 0.. {
        let Some((datagram, part, answers)) = end.next_rescue(other) else { break };
        assert!(!answers, "the piece on the late path still answers for its bytes");
        end.on_copy_sent(part, other, number);
        let Ok(wire::Frame::Data { id, offset, .. }) = wire::Frame::parse(&datagram) else { panic!("{datagram:?}") };
        copied.push((id, offset > 0));
    }
    assert_eq!(copied, [(ids[0].0, false), (ids[1].0, true)]);
    end.note_late(late, true);
    assert!(!end.has_rescue(), "once each time that it is late");
    end.on_acked(other, 0);
    end.note_late(late, true);
    let next: Vec<_> = std::iter::from_fn(|| end.next_rescue(other)).collect();
    assert_eq!(next.len(), 1, "what the first waits for now that its first piece arrived");
    end.on_acked(other, 1);
    end.note_late(late, false);
    end.note_late(late, true);
    let again: Vec<_> = std::iter::from_fn(|| end.next_rescue(other)).collect();
    assert_eq!(again.len(), 2, "what they wait for now");
}

#[test]
fn streams_that_the_server_does_not_know_are_lost_and_new_ones_go_on() {
    let mut net = pair(&small());
    let id = net.ends[0].open(StreamKind(0)).expect("allowed");
    net.settle();
    net.replace_connection();
    let mut server = Streams::new(true, small());
    server.on_connected(TOKEN);
    server.admit();
    net.ends[1] = server;
    for _ in 0..20 {
        _ = net.send(0) | net.send(1) | net.deliver() | net.tell_fate();
        if net.ends[1].take_asked().is_some() {
            net.ends[1].refuse();
        }
    }
    let events: Vec<_> = std::iter::from_fn(|| net.ends[0].poll_event()).collect();
    assert!(events.contains(&StreamEvent::Lost), "{events:?}");
    assert_eq!(net.ends[0].write(id, Bytes::from_static(b"x")), Err(StreamError::Closed(id)));
    net.apps[0].to_open = 5;
    net.settle();
    net.check();
}

/// A client says it again where an acknowledgement is late. A host that answered twice would take the streams from the
/// connection to which it had just given them.
#[test]
fn a_host_is_asked_once_for_older_streams() {
    let mut datagram = Vec::new();
    wire::Frame::Resume(TOKEN.0).put(&mut datagram);
    let mut server = Streams::new(true, small());
    for _ in 0..2 {
        server.on_datagram(&datagram).expect("a client may ask");
        server.on_datagram(&datagram).expect("and again");
    }
    assert_eq!(server.take_asked(), Some(TOKEN));
    server.on_datagram(&datagram).expect("and again");
    assert_eq!(server.take_asked(), None, "the answer is due");
}
