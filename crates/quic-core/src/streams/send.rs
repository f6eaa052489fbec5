//! The sending half of a stream.

use core::ops::Range;
use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use rangemap::RangeSet;

use super::wire::NUMBER_MAX;

/// Up to this size writes are put together, in bytes: what is kept of each costs memory.
const JOINED_MAX: usize = 4 << 10;

/// How the half ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// More may be written.
    Open,
    /// No more is written; whether it is to be said that the stream ends.
    Finished { is_due: bool },
    /// It is, and the peer knows.
    FinishKnown,
    /// All is given up. The code.
    Reset(u64),
    /// It is, and the peer knows.
    ResetKnown,
}

/// A piece of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) start: u64,
    pub(super) end: u64,
    /// Whether the stream ends with it.
    pub(super) is_last: bool,
}

impl Piece {
    fn range(self) -> Range<u64> {
        self.start..self.end
    }

    pub(super) fn len(self) -> u64 {
        self.end - self.start
    }
}

/// Bytes to be sent, bytes sent, and bytes known to have arrived. Positions are counted from the beginning.
#[derive(Debug)]
pub(super) struct SendHalf {
    /// Chunks that are kept, each with its position: all that is not acknowledged, and the rest of the first chunk.
    chunks: VecDeque<(u64, Bytes)>,
    written: u64,
    sent: u64,
    /// All before it is acknowledged.
    base: u64,
    /// The acknowledged ranges beyond.
    acked: RangeSet<u64>,
    /// Ranges to be sent again.
    again: RangeSet<u64>,
    limit: u64,
    end: End,
    /// The code with which the peer asked for no more.
    stopped: Option<u64>,
}

impl SendHalf {
    /// One on which the peer takes bytes up to `limit`.
    pub(super) fn new(limit: u64) -> Self {
        Self {
            chunks: VecDeque::new(),
            written: 0,
            sent: 0,
            base: 0,
            acked: RangeSet::new(),
            again: RangeSet::new(),
            limit,
            end: End::Open,
            stopped: None,
        }
    }

    /// Whether more may be written.
    pub(super) fn is_open(&self) -> bool {
        self.end == End::Open
    }

    /// Why nothing may be written any more, where the peer wants none.
    pub(super) fn stopped(&self) -> Option<u64> {
        self.stopped
    }

    /// How much was written and never sent.
    pub(super) fn unsent(&self) -> u64 {
        self.written - self.sent
    }

    /// How much is kept that was sent.
    pub(super) fn unacked(&self) -> u64 {
        self.sent - self.base
    }

    /// How much was sent, from the beginning.
    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    /// Adds data; how much of it was taken, which is all but at the end of all numbers.
    pub(super) fn write(&mut self, mut data: Bytes) -> usize {
        data.truncate((NUMBER_MAX - self.written).min(usize::MAX as u64) as usize);
        if !self.is_open() || data.is_empty() {
            return 0;
        }
        let length = data.len();
        if let Some((_, last)) = self.chunks.back_mut()
            && last.len() + length <= JOINED_MAX
        {
            let mut joined = std::mem::take(last).try_into_mut().unwrap_or_else(|shared| BytesMut::from(&shared[..]));
            joined.extend_from_slice(&data);
            *last = joined.freeze();
        } else {
            self.chunks.push_back((self.written, data));
        }
        self.written += length as u64;
        length
    }

    /// Nothing more is written. False where it had ended before.
    pub(super) fn finish(&mut self) -> bool {
        let is_open = self.is_open();
        if is_open {
            self.end = End::Finished { is_due: true };
        }
        is_open
    }

    /// Gives up what did not arrive. False where nothing is left to give up.
    pub(super) fn reset(&mut self, code: u64) -> bool {
        if self.is_done() || matches!(self.end, End::Reset(_)) {
            return false;
        }
        self.end = End::Reset(code);
        self.chunks = VecDeque::new();
        (self.acked, self.again) = (RangeSet::new(), RangeSet::new());
        (self.written, self.base) = (self.sent, self.sent);
        true
    }

    /// The peer wants no more. True where that is new, and the half is to be reset.
    pub(super) fn stop(&mut self, code: u64) -> bool {
        if self.is_done() || self.stopped.is_some() || matches!(self.end, End::Reset(_)) {
            return false;
        }
        self.stopped = Some(code);
        self.reset(code)
    }

    /// The code of the reset, where it was reset and the peer may not know.
    pub(super) fn reset_code(&self) -> Option<u64> {
        if let End::Reset(code) = self.end { Some(code) } else { None }
    }

    /// The peer knows of the reset.
    pub(super) fn on_reset_acked(&mut self) {
        if matches!(self.end, End::Reset(_)) {
            self.end = End::ResetKnown;
        }
    }

    /// Whether the peer has all that it will get, and knows that that is all.
    pub(super) fn is_done(&self) -> bool {
        self.end == End::ResetKnown || self.end == End::FinishKnown && self.base == self.written
    }

    /// Whether all that was written has arrived, and its end with it.
    pub(super) fn has_arrived_whole(&self) -> bool {
        self.end == End::FinishKnown && self.base == self.written
    }

    /// Whether its end was said and the peer may not know.
    pub(super) fn is_unsettled(&self) -> bool {
        matches!(self.end, End::Finished { .. } | End::Reset(_))
    }

    /// Takes the peer's credit.
    pub(super) fn on_credit(&mut self, limit: u64) {
        self.limit = self.limit.max(limit);
    }

    /// Whether there is something to send that costs no credit: what was sent before, or the end alone.
    pub(super) fn has_free(&self) -> bool {
        !self.again.is_empty() || self.end == End::Finished { is_due: true } && self.sent == self.written
    }

    /// Whether there is something to send that was never sent and the stream has credit for.
    pub(super) fn has_new(&self) -> bool {
        self.sent < self.written.min(self.limit)
    }

    /// How much more the peer takes, as far as anybody asks: no sum over streams overflows, whatever a peer says.
    pub(super) fn credit_left(&self) -> u64 {
        self.limit.saturating_sub(self.sent).min(u64::from(u32::MAX))
    }

    /// The next piece to be sent again, of at most `space` bytes as [`header`](super::wire::header) leaves them, or the
    /// end alone.
    pub(super) fn take_free(&mut self, space: impl Fn(u64) -> u64) -> Option<Piece> {
        let Some(first) = self.again.first() else {
            return (self.has_free()).then(|| self.last_of(self.sent..self.sent));
        };
        let (start, end) = (first.start, first.end.min(first.start.saturating_add(space(first.start))));
        if start == end {
            return None;
        }
        self.again.remove(start..end);
        Some(self.last_of(start..end))
    }

    /// The next piece that was never sent, of at most `space` bytes and within `credit`.
    pub(super) fn take_new(&mut self, space: impl Fn(u64) -> u64, credit: u64) -> Option<Piece> {
        let start = self.sent;
        let most = space(start).min(credit);
        let end = self.written.min(self.limit).min(start.saturating_add(most));
        if start >= end {
            return None;
        }
        self.sent = end;
        Some(self.last_of(start..end))
    }

    /// The piece, which says that the stream ends where it does so with it.
    fn last_of(&mut self, range: Range<u64>) -> Piece {
        let is_last = matches!(self.end, End::Finished { .. } | End::FinishKnown) && range.end == self.written;
        if is_last && self.end != End::FinishKnown {
            self.end = End::Finished { is_due: false };
        }
        Piece { start: range.start, end: range.end, is_last }
    }

    /// The piece has arrived.
    pub(super) fn on_acked(&mut self, piece: Piece) {
        if matches!(self.end, End::Reset(_) | End::ResetKnown) {
            return;
        }
        if piece.is_last {
            self.end = End::FinishKnown;
        }
        let range = piece.start.max(self.base)..piece.end;
        if range.start >= range.end {
            return;
        }
        self.again.remove(range.clone());
        if range.start == self.base && self.acked.is_empty() {
            self.base = range.end;
        } else {
            self.acked.insert(range);
            if let Some(first) = self.acked.first().filter(|first| first.start == self.base).cloned() {
                self.acked.remove(first.clone());
                self.base = first.end;
            }
        }
        while self.chunks.front().is_some_and(|(start, chunk)| start + chunk.len() as u64 <= self.base) {
            self.chunks.pop_front();
        }
    }

    /// Nothing answers for the piece any more: what of it has not arrived is to be sent again.
    pub(super) fn send_again(&mut self, piece: Piece) {
        match self.end {
            End::Reset(_) | End::ResetKnown => return,
            End::Finished { .. } if piece.is_last => self.end = End::Finished { is_due: true },
            _ => {}
        }
        let range = piece.start.max(self.base)..piece.end;
        if range.start < range.end {
            let missing: Vec<_> = self.acked.gaps(&range).collect();
            missing.into_iter().for_each(|range| self.again.insert(range));
        }
    }

    /// Whether nothing of the piece is missing at the peer.
    pub(super) fn has_arrived(&self, piece: Piece) -> bool {
        let range = piece.start.max(self.base)..piece.end;
        let is_end_known = !piece.is_last || self.end == End::FinishKnown;
        is_end_known && (range.start >= range.end || self.acked.gaps(&range).next().is_none())
    }

    /// Whether nothing of the stream can be read beyond the piece before it arrives.
    pub(super) fn waits_for(&self, piece: Piece) -> bool {
        piece.start <= self.base && !self.has_arrived(piece)
    }

    /// Takes a piece of what is to be sent again; false where not all of it is.
    pub(super) fn take_of_again(&mut self, piece: Piece) -> bool {
        let range = piece.range();
        if range.is_empty() || self.again.gaps(&range).next().is_some() {
            return false;
        }
        self.again.remove(range);
        if piece.is_last && self.end == (End::Finished { is_due: true }) {
            self.end = End::Finished { is_due: false };
        }
        true
    }

    /// Whether the bytes of the piece are still kept.
    pub(super) fn keeps(&self, piece: Piece) -> bool {
        let first = self.chunks.front().map_or(self.written, |(start, _)| *start);
        first <= piece.start && piece.end <= self.written
    }

    /// Copies the bytes of a piece that is kept.
    pub(super) fn copy(&self, piece: Piece, to: &mut BytesMut) {
        let mut at = self.chunks.partition_point(|(start, chunk)| start + chunk.len() as u64 <= piece.start);
        let mut from = piece.start;
        while from < piece.end
            && let Some((start, chunk)) = self.chunks.get(at)
        {
            let (begin, end) = ((from - start) as usize, ((piece.end - start) as usize).min(chunk.len()));
            to.extend_from_slice(&chunk[begin..end]);
            from = start + end as u64;
            at += 1;
        }
    }

    /// Its memory on the heap, at least, in bytes.
    #[cfg(test)]
    pub(super) fn heap(&self) -> usize {
        self.chunks.capacity() * size_of::<(u64, Bytes)>()
    }
}
