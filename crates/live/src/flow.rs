//! One flow at the receiver: its pieces are put in order, and missing ones recovered.

use std::collections::{BTreeMap, BTreeSet};

use bytes::{Bytes, BytesMut};
use fairpath_core::Timestamp;

use crate::config::{PACKET_MAX, Playout};
use crate::counts::Counts;
use crate::decoder::Decoder;
use crate::wire::{Body, PieceFragment, Repair, expand};

/// How many pieces of a flow are held, those that were handed out and may still help a block included: what comes in
/// 1 s at 80 Mbit/s.
const PIECES_MAX: u64 = 8_192;

/// How many given-up pieces are remembered, to tell late pieces from duplicates.
const GIVEN_UP_MAX: usize = 4_096;

/// The number of pieces whose parts are kept: more than wait anywhere when datagrams become
/// smaller.
const IN_PARTS_MAX: usize = 1_024;

/// The parts of a piece that came.
#[derive(Debug, Default)]
struct Parts {
    total: u8,
    came: BTreeMap<u8, Bytes>,
}

/// A piece that came or was brought back.
#[derive(Debug)]
struct Piece {
    due: Timestamp,
    is_first: bool,
    is_last: bool,
    data: Bytes,
    /// As the code sees it.
    body: Bytes,
    /// Whether it was there by its deadline.
    in_time: bool,
    /// Whether repair brought it back, and it has not come by itself.
    is_restored: bool,
}

/// The outcome of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Came {
    InTime,
    Late,
    /// It is known already, or too far from the known ones.
    Not,
}

/// The receiving end of a flow.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    pieces: BTreeMap<u64, Piece>,
    /// The piece that is to be handed out next.
    next: u64,
    /// Whether anything has come.
    has_begun: bool,
    /// The highest number that has come.
    highest: u64,
    given_up: BTreeSet<u64>,
    parts: BTreeMap<u64, Parts>,
    decoder: Decoder,
}

impl Flow {
    /// The number with these low 32 bits.
    pub(crate) fn number(&self, low: u32) -> u64 {
        expand(low, self.highest)
    }

    /// A piece came, for the first time or again, that is due at `due`.
    pub(crate) fn on_piece(
        &mut self,
        (number, is_again): (u64, bool),
        body: &Bytes,
        due: impl Fn(&Body) -> Timestamp,
        counts: &mut Counts,
        now: Timestamp,
    ) -> Came {
        let came = match self.pieces.get_mut(&number) {
            // It was not lost: repair was quicker, on another path.
            Some(piece) if piece.is_restored && !is_again && now <= piece.due => {
                piece.is_restored = false;
                counts.recovered -= u64::from(piece.in_time);
                counts.received += u64::from(piece.in_time);
                return Came::InTime;
            }
            _ => self.insert(number, body, &due, counts, now),
        };
        match came {
            Came::InTime => counts.received += 1,
            Came::Late => counts.late += 1,
            Came::Not => {}
        }
        self.repair(number, due, counts, now);
        came
    }

    /// A part of a piece came: the whole body where no other is missing.
    pub(crate) fn on_part(&mut self, number: u64, part: PieceFragment, data: Bytes) -> Option<Bytes> {
        if self.is_far(number) {
            return None;
        }
        let parts = self.parts.entry(number).or_default();
        if parts.total != part.total {
            *parts = Parts { total: part.total, came: BTreeMap::new() };
        }
        parts.came.insert(part.index, data);
        if parts.came.len() < usize::from(part.total) {
            if self.parts.len() > IN_PARTS_MAX {
                self.parts.pop_first();
            }
            return None;
        }
        let parts = self.parts.remove(&number)?;
        let mut body = BytesMut::new();
        parts.came.values().for_each(|part| body.extend_from_slice(part));
        Some(body.freeze())
    }

    /// Repair came for a block.
    pub(crate) fn on_repair(
        &mut self,
        repair: &Repair,
        due: impl Fn(&Body) -> Timestamp,
        counts: &mut Counts,
        now: Timestamp,
    ) {
        counts.repair += 1;
        let first = self.number(repair.first);
        // A block that ends before the next piece to hand out has nothing left to recover.
        if first + u64::from(repair.pieces) > self.next && !self.is_far(first) {
            self.decoder.add(first, repair);
            self.repair(first, due, counts, now);
        }
    }

    fn repair(&mut self, number: u64, due: impl Fn(&Body) -> Timestamp, counts: &mut Counts, now: Timestamp) {
        let Self { pieces, decoder, .. } = self;
        let Some(restored) = decoder.restore(number, |number| Some(&pieces.get(&number)?.body)) else { return };
        for (number, body) in restored {
            let came = self.insert(number, &body, &due, counts, now);
            if let Some(piece) = self.pieces.get_mut(&number) {
                piece.is_restored = came == Came::InTime;
            }
            match came {
                Came::InTime => counts.recovered += 1,
                Came::Late => counts.late += 1,
                Came::Not => {}
            }
        }
    }

    /// Whether a number is farther from the highest than all that is held.
    fn is_far(&self, number: u64) -> bool {
        self.has_begun && (number > self.highest + PIECES_MAX || number + PIECES_MAX <= self.highest)
    }

    fn insert(
        &mut self,
        number: u64,
        body: &Bytes,
        due: impl Fn(&Body) -> Timestamp,
        counts: &mut Counts,
        now: Timestamp,
    ) -> Came {
        let Some(parsed) = Body::read(body.clone()) else { return Came::Not };
        if self.is_far(number) {
            return Came::Not;
        }
        let due = due(&parsed);
        let is_waited_for = number >= self.next && !self.pieces.contains_key(&number);
        if !is_waited_for && !self.given_up.remove(&number) {
            counts.duplicate += 1;
            return Came::Not;
        }
        if !is_waited_for {
            // It was counted as lost when it was given up.
            counts.lost -= 1;
        }
        let in_time = is_waited_for && now <= due;
        self.has_begun = true;
        self.highest = self.highest.max(number);
        let Body { is_first, is_last, data, .. } = parsed;
        // Late ones are of use to their block.
        self.pieces
            .insert(number, Piece { due, is_first, is_last, data, body: body.clone(), in_time, is_restored: false });
        self.forget_old();
        if in_time { Came::InTime } else { Came::Late }
    }

    fn forget_old(&mut self) {
        let oldest = (self.highest + 1).saturating_sub(PIECES_MAX);
        while self.pieces.first_key_value().is_some_and(|(number, _)| *number < oldest.min(self.next)) {
            self.pieces.pop_first();
        }
        self.decoder.forget_before(oldest.min(self.next));
    }

    /// The next packet that is to be handed out by now.
    pub(crate) fn take(&mut self, playout: Playout, counts: &mut Counts, now: Timestamp) -> Option<Bytes> {
        loop {
            let (number, piece) = self.pieces.range(self.next..).next()?;
            let (number, due) = (*number, piece.due);
            // The oldest piece has to go once too many wait.
            let is_full = self.highest >= number + PIECES_MAX / 2;
            let is_due = due <= now || is_full;
            if (number > self.next || playout == Playout::Steady) && !is_due {
                return None;
            }
            match self.packet(number) {
                Packet::Whole { end, data } => {
                    self.give_up_to(number, counts);
                    self.next = end;
                    counts.delivered += 1;
                    return Some(data);
                }
                Packet::Lacks if !is_due => return None,
                Packet::Lacks => {
                    self.give_up_to(number, counts);
                    self.next = number + 1;
                }
                Packet::Never => {
                    self.give_up_to(number, counts);
                    self.next = number + 1;
                }
            }
        }
    }

    /// When the next packet is due, if one waits.
    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        self.pieces.range(self.next..).next().map(|(_, piece)| piece.due)
    }

    /// The packet that begins with this piece.
    fn packet(&self, number: u64) -> Packet {
        let (mut end, mut length) = (number, 0);
        loop {
            let Some(piece) = self.pieces.get(&end) else { return Packet::Lacks };
            length += piece.data.len();
            if !piece.in_time || piece.is_first != (end == number) || length > PACKET_MAX {
                return Packet::Never;
            }
            end += 1;
            if piece.is_last {
                break;
            }
        }
        if end == number + 1 {
            return Packet::Whole { end, data: self.pieces[&number].data.clone() };
        }
        let mut data = BytesMut::with_capacity(length);
        self.pieces.range(number..end).for_each(|(_, piece)| data.extend_from_slice(&piece.data));
        Packet::Whole { end, data: data.freeze() }
    }

    /// Gives up the pieces that are missing before this one.
    fn give_up_to(&mut self, number: u64, counts: &mut Counts) {
        counts.lost += number - self.next;
        let kept = self.next.max(number.saturating_sub(GIVEN_UP_MAX as u64));
        self.given_up.extend(kept..number);
        while self.given_up.len() > GIVEN_UP_MAX {
            self.given_up.pop_first();
        }
    }
}

enum Packet {
    Whole {
        end: u64,
        data: Bytes,
    },
    /// Something of it has not come.
    Lacks,
    /// It cannot be had any more: something came late, or its beginning is gone.
    Never,
}
