//! An application at one end that opens streams, writes, reads, resets and stops, and counts.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::{Duration, Instant};

use bytes::Bytes;
use fairpath_quic_core::streams::{Read, StreamError, StreamEvent, StreamId, StreamKind, Streams, StreamsToken};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

/// The code of each reset.
const RESET: u64 = 77;

/// The code of each stop.
const STOP: u64 = 55;

/// Streams that the two ends open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Everything is drawn from it.
    pub seed: u64,
    /// How many the client opens.
    pub by_client: u32,
    /// How many the server opens.
    pub by_server: u32,
    /// The longest, in bytes, each way.
    pub longest: u64,
    /// How many the peer lets an end have open at once.
    pub open_max: u32,
}

/// How each stream ended that an end wrote or read: its length, or a code.
pub type Ends = BTreeMap<StreamId, Result<u64, u64>>;

struct Writing {
    left: u64,
    written: u64,
    resets: bool,
}

struct Reading {
    read: u64,
    stops_at: Option<u64>,
    /// Before that nothing is read.
    from: Instant,
}

/// The application of one end on one set of streams, which may go over several connections.
pub(crate) struct App {
    secret: u64,
    is_server: bool,
    longest: u64,
    luck: ChaCha8Rng,
    to_open: u32,
    may_open: bool,
    writing: BTreeMap<StreamId, Writing>,
    reading: BTreeMap<StreamId, Reading>,
    /// Streams to write to and to read from, as far as was told.
    writable: BTreeSet<StreamId>,
    readable: BTreeSet<StreamId>,
    /// How this end ended streams.
    said: Ends,
    /// How streams ended that this end read.
    ended: Ends,
    pub(crate) violation: Option<String>,
}

impl App {
    pub(crate) fn new(plan: Plan, is_server: bool, token: StreamsToken) -> Self {
        let mut hasher = DefaultHasher::new();
        token.hash(&mut hasher);
        Self {
            secret: hasher.finish(),
            is_server,
            longest: plan.longest,
            luck: ChaCha8Rng::seed_from_u64(plan.seed << 1 | u64::from(is_server)),
            to_open: if is_server { plan.by_server } else { plan.by_client },
            may_open: true,
            writing: BTreeMap::new(),
            reading: BTreeMap::new(),
            writable: BTreeSet::new(),
            readable: BTreeSet::new(),
            said: Ends::new(),
            ended: Ends::new(),
            violation: None,
        }
    }

    /// Whether all was opened, written and read.
    pub(crate) fn is_done(&self) -> bool {
        self.to_open == 0 && self.writing.is_empty() && self.reading.is_empty()
    }

    /// How it stands, for people.
    pub(crate) fn state(&self) -> String {
        format!("{} to open, {} to write, {} to read", self.to_open, self.writing.len(), self.reading.len())
    }

    /// A stream of which the reader has found another end than the writer at the other end has said.
    pub(crate) fn differs_from(&self, writer: &Self) -> Option<String> {
        self.ended.iter().find_map(|(id, found)| {
            // A stream whose opener gave up before it had said its kind is reset by the other end as well.
            let is_orphan = *found == Err(0) && self.said.get(id) == Some(&Err(RESET));
            let expected = writer.said.get(id);
            (expected != Some(found) && !is_orphan)
                .then(|| format!("{id} ended with {found:?} at the reader and {expected:?} at the writer"))
        })
    }

    /// Something happened.
    pub(crate) fn on_event(&mut self, event: StreamEvent) {
        match event {
            StreamEvent::MayOpen => self.may_open = true,
            StreamEvent::Readable(id) => _ = self.readable.insert(id),
            StreamEvent::Writable(id) => _ = self.writable.insert(id),
            StreamEvent::Finished(id) if !matches!(self.said.get(&id), Some(Ok(_))) => {
                self.violation.get_or_insert(format!("{id} arrived whole and was not finished"));
            }
            StreamEvent::Finished(_) | StreamEvent::Opened | StreamEvent::Lost => {}
        }
    }

    /// Does all that it may.
    pub(crate) fn run(&mut self, streams: &mut Streams, now: Instant) {
        while let Some((id, kind)) = streams.accept() {
            if kind != StreamKind(id.number() as u8) {
                self.violation.get_or_insert(format!("{id} is of {kind:?}"));
            }
            self.take_on(id, now);
        }
        while self.to_open > 0 && self.may_open {
            let number = streams.opened_count();
            match streams.open(StreamKind(number as u8)) {
                Some(id) => {
                    self.to_open -= 1;
                    self.take_on(id, now);
                }
                None => self.may_open = false,
            }
        }
        for id in std::mem::take(&mut self.writable) {
            self.write(streams, id);
        }
        for id in std::mem::take(&mut self.readable) {
            self.read(streams, id, now);
        }
    }

    fn take_on(&mut self, id: StreamId, now: Instant) {
        let luck = &mut self.luck;
        let longest = self.longest;
        let left = match luck.random_range(0..4) {
            0 => luck.random_range(0..100),
            1 | 2 => luck.random_range(0..=longest / 20),
            _ => luck.random_range(0..=longest),
        };
        let writing = Writing { left, written: 0, resets: luck.random_bool(0.1) };
        let stops_at = luck.random_bool(0.1).then(|| luck.random_range(0..=longest / 2));
        let wait = if luck.random_bool(0.2) { luck.random_range(0..3_000) } else { 0 };
        let reading = Reading { read: 0, stops_at, from: now + Duration::from_millis(wait) };
        self.writing.insert(id, writing);
        self.reading.insert(id, reading);
        self.writable.insert(id);
        self.readable.insert(id);
    }

    fn write(&mut self, streams: &mut Streams, id: StreamId) {
        let secret = secret_of(self.secret, id, self.is_server);
        let Some(one) = self.writing.get_mut(&id) else { return };
        while one.left > 0 {
            let length = one.left.min(20_000);
            match streams.write(id, data(secret, one.written, length as usize)) {
                Ok(taken) => {
                    one.written += taken as u64;
                    one.left -= taken as u64;
                    if (taken as u64) < length {
                        return;
                    }
                }
                Err(StreamError::Stopped(code)) => {
                    self.said.insert(id, Err(code));
                    self.writing.remove(&id);
                    return;
                }
                Err(error) => {
                    self.violation.get_or_insert(format!("{id} cannot be written to: {error}"));
                    self.writing.remove(&id);
                    return;
                }
            }
        }
        let end = match one.resets {
            true => {
                streams.reset(id, RESET);
                Err(RESET)
            }
            false if streams.finish(id).is_ok() => Ok(one.written),
            false => Err(STOP),
        };
        self.said.insert(id, end);
        self.writing.remove(&id);
    }

    fn read(&mut self, streams: &mut Streams, id: StreamId, now: Instant) {
        let secret = secret_of(self.secret, id, !self.is_server);
        let Some(one) = self.reading.get_mut(&id) else { return };
        if now < one.from {
            self.readable.insert(id);
            return;
        }
        loop {
            if one.stops_at.is_some_and(|at| at <= one.read) {
                streams.stop(id, STOP);
                break;
            }
            match streams.read(id, 40_000) {
                Ok(Read::Data(found)) => {
                    if found != data(secret, one.read, found.len()) {
                        self.violation.get_or_insert(format!("{id} is damaged after {} bytes", one.read));
                    }
                    one.read += found.len() as u64;
                }
                Ok(Read::Pending) => return,
                Ok(Read::End) => {
                    self.ended.insert(id, Ok(one.read));
                    break;
                }
                Err(StreamError::Reset(code)) => {
                    self.ended.insert(id, Err(code));
                    break;
                }
                Err(error) => {
                    self.violation.get_or_insert(format!("{id} cannot be read: {error}"));
                    break;
                }
            }
        }
        self.reading.remove(&id);
    }
}

/// The secret of one direction of a stream, different from all others.
fn secret_of(secret: u64, id: StreamId, is_server: bool) -> u64 {
    let name = id.number() << 2 | u64::from(id.is_from_server()) << 1 | u64::from(is_server);
    secret ^ (name + 1).wrapping_mul(0xD6E8_FEB8_6659_FD93)
}

/// The bytes from `offset` on.
fn data(secret: u64, offset: u64, length: usize) -> Bytes {
    let before = (offset % 8) as usize;
    let mut data = Vec::with_capacity(length + 16);
    // Odd and without a pattern: 2⁶⁴ over the golden ratio.
    let words = (offset / 8..).map(|at| (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ secret).to_le_bytes());
    words.take((before + length).div_ceil(8)).for_each(|word| data.extend_from_slice(&word));
    data.truncate(before + length);
    Bytes::from(data).slice(before..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_from_any_offset_is_a_part_of_all() {
        let all = data(7, 0, 100);
        for offset in 0..20 {
            assert_eq!(data(7, offset as u64, 50), all.slice(offset..offset + 50));
        }
        assert_ne!(data(8, 0, 8), all.slice(..8));
    }
}
