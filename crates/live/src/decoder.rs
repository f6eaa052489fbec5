//! Blocks at the receiver, and the recovery of missing pieces.

use std::collections::BTreeMap;

use bytes::Bytes;
use reed_solomon_simd::ReedSolomonDecoder;

use crate::wire::{Repair, body_in, symbol};

/// How many blocks of a flow are kept that lack something. Those of a deadline of 10 s at 30 Mbit/s.
const BLOCKS_MAX: usize = 256;

/// The state of a block.
#[derive(Debug)]
struct Block {
    pieces: u8,
    total: u8,
    length: usize,
    repair: BTreeMap<u8, Bytes>,
}

/// The blocks of one flow that may have to be repaired, by the number of their first piece.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    blocks: BTreeMap<u64, Block>,
}

impl Decoder {
    /// Takes in the repair of a block that begins with piece `first`.
    pub(crate) fn add(&mut self, first: u64, repair: &Repair) {
        let Repair { pieces, total, symbol, .. } = repair;
        let length = symbol.len();
        let fresh = || Block { pieces: *pieces, total: *total, length, repair: BTreeMap::new() };
        let block = self.blocks.entry(first).or_insert_with(fresh);
        // Repair that contradicts the block's parameters is ignored.
        if (block.pieces, block.total, block.length) == (*pieces, *total, length) {
            block.repair.insert(repair.index, symbol.clone());
        }
        while self.blocks.len() > BLOCKS_MAX {
            self.blocks.pop_first();
        }
    }

    /// Forgets the blocks that end before piece `number`.
    pub(crate) fn forget_before(&mut self, number: u64) {
        while let Some(entry) = self.blocks.first_entry()
            && entry.key().saturating_add(entry.get().pieces.into()) <= number
        {
            entry.remove();
        }
    }

    /// The bodies that are missing in the block of piece `number`, where there is enough to have them. `body` is what
    /// came of the pieces.
    pub(crate) fn restore<'a>(
        &mut self,
        number: u64,
        body: impl Fn(u64) -> Option<&'a Bytes>,
    ) -> Option<Vec<(u64, Bytes)>> {
        let (first, block) = self.blocks.range(..=number).next_back()?;
        let (first, pieces) = (*first, u64::from(block.pieces));
        if number >= first + pieces {
            return None;
        }
        let there = (first..first + pieces).filter(|number| body(*number).is_some()).count();
        if there == usize::from(block.pieces) {
            self.blocks.remove(&first);
            return None;
        }
        if there + block.repair.len() < block.pieces.into() {
            return None;
        }
        let restored = decode(first, block, body);
        // Where it cannot be decoded more of the same does not help.
        self.blocks.remove(&first);
        restored
    }
}

fn decode<'a>(first: u64, block: &Block, body: impl Fn(u64) -> Option<&'a Bytes>) -> Option<Vec<(u64, Bytes)>> {
    let Block { pieces, total, length, repair } = block;
    let mut decoder = ReedSolomonDecoder::new((*pieces).into(), (*total).into(), *length).ok()?;
    for at in 0..usize::from(*pieces) {
        if let Some(body) = body(first + at as u64) {
            decoder.add_original_shard(at, symbol(body, *length)?).ok()?;
        }
    }
    for (index, symbol) in repair {
        decoder.add_recovery_shard((*index).into(), symbol).ok()?;
    }
    let restored = decoder.decode().ok()?;
    let of = |(at, symbol): (usize, &[u8])| Some((first + at as u64, body_in(symbol)?));
    Some(restored.restored_original_iter().filter_map(of).collect())
}
