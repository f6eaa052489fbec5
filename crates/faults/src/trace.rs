//! The trace of a run: a digest of the datagrams that left, and lines for readers.

use std::fmt::Display;
use std::time::Duration;

/// The bytes hashed at once: BLAKE3 is several times as fast on long inputs as on single datagrams.
const BATCH: usize = 64 << 10;

/// Takes what happened, line by line.
pub type Teller = Box<dyn FnMut(&str)>;

/// A digest of everything that left: when, on which end, and what.
#[derive(Default)]
pub(crate) struct Trace {
    /// Whether packets are counted only, and the digest is that of nothing.
    counts_only: bool,
    hasher: blake3::Hasher,
    waiting: Vec<u8>,
    packets: u64,
    teller: Option<Teller>,
    /// The last line about the state.
    state: String,
}

impl Trace {
    /// From now on everything is told as well.
    pub(crate) fn tell(&mut self, teller: Option<Teller>) {
        self.teller = teller;
    }

    /// Packets are counted only.
    pub(crate) fn only_count(&mut self) {
        self.counts_only = true;
    }

    pub(crate) fn is_told(&self) -> bool {
        self.teller.is_some()
    }

    pub(crate) fn say(&mut self, at: Duration, what: impl Display) {
        if let Some(teller) = &mut self.teller {
            teller(&format!("{:11.6} s  {what}", at.as_secs_f64()));
        }
    }

    /// Says how everything stands, where that is not as before.
    pub(crate) fn say_state(&mut self, at: Duration, state: String) {
        if state != self.state {
            self.say(at, &state);
            self.state = state;
        }
    }

    pub(crate) fn note(&mut self, at: Duration, from_client: bool, contents: &[u8]) {
        self.packets += 1;
        if self.counts_only {
            return;
        }
        self.waiting.extend(at.as_nanos().to_le_bytes());
        self.waiting.push(from_client.into());
        self.waiting.extend((contents.len() as u64).to_le_bytes());
        self.waiting.extend(contents);
        if self.waiting.len() >= BATCH {
            self.hasher.update(&self.waiting);
            self.waiting.clear();
        }
    }

    pub(crate) fn digest(&self) -> blake3::Hash {
        self.hasher.clone().update(&self.waiting).finalize()
    }

    pub(crate) fn packets(&self) -> u64 {
        self.packets
    }
}
