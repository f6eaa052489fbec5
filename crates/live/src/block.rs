//! Blocks at the sender, and their repair.

use core::time::Duration;

use bytes::Bytes;
use fairpath_core::Timestamp;
use fairpath_rate::repair_packets;
use reed_solomon_simd::ReedSolomonEncoder;

use crate::parameters::LiveParameters;
use crate::wire::{Repair, symbol, symbol_length};

/// The most pieces of a block, and the most repair symbols: one byte numbers both together.
const PIECES_MAX: usize = u8::MAX as usize / 2;

/// The pieces that get repair together.
#[derive(Debug, Default)]
pub(crate) struct Gathering {
    first: u64,
    bodies: Vec<Bytes>,
    opened_at: Timestamp,
}

/// The repair of a block, and over which time it is to be spread.
#[derive(Debug)]
pub(crate) struct Closed {
    pub(crate) repair: Vec<Repair>,
    pub(crate) spread: Duration,
}

impl Gathering {
    /// The piece `number` was cut; true where the block is full.
    pub(crate) fn add(&mut self, number: u64, body: Bytes, now: Timestamp) -> bool {
        if self.bodies.is_empty() {
            (self.first, self.opened_at) = (number, now);
        }
        self.bodies.push(body);
        self.bodies.len() == PIECES_MAX
    }

    /// When it is to be closed although it is not full.
    pub(crate) fn closes_at(&self, deadline: Duration, parameters: &LiveParameters) -> Option<Timestamp> {
        (!self.bodies.is_empty()).then(|| self.opened_at + deadline / parameters.span_parts)
    }

    /// Ends the block: its repair, where so great a share of its packets is expected to be missing though they are sent
    /// again.
    pub(crate) fn close(&mut self, missing: f64, deadline: Duration, parameters: &LiveParameters) -> Option<Closed> {
        let bodies = core::mem::take(&mut self.bodies);
        let pieces = u8::try_from(bodies.len()).ok().filter(|pieces| *pieces > 0)?;
        let least = usize::from(bodies.len() >= parameters.protected_min as usize);
        let total =
            repair_packets(bodies.len(), missing, parameters.residual, PIECES_MAX.min(2 * bodies.len())).max(least);
        if total == 0 {
            return None;
        }
        let total = u8::try_from(total).unwrap_or(u8::MAX);
        let symbols = encode(&bodies, total.into())?;
        let repair = |(index, symbol): (usize, Vec<u8>)| Repair {
            first: self.first as u32,
            pieces,
            index: index as u8,
            total,
            symbol: symbol.into(),
        };
        let repair = symbols.into_iter().enumerate().map(repair).collect();
        Some(Closed { repair, spread: deadline / parameters.span_parts / 2 })
    }
}

/// The repair symbols of a block; `None` if it can have none.
fn encode(bodies: &[Bytes], total: usize) -> Option<Vec<Vec<u8>>> {
    let length = symbol_length(bodies.iter().map(Bytes::len).max()?);
    let mut encoder = ReedSolomonEncoder::new(bodies.len(), total, length).ok()?;
    for body in bodies {
        encoder.add_original_shard(symbol(body, length)?).ok()?;
    }
    Some(encoder.encode().ok()?.recovery_iter().map(<[u8]>::to_vec).collect())
}
