//! The send stream of a connection: data cut into numbered pieces, and pieces to send again.

use std::collections::VecDeque;

use fairpath_core::ByteCount;
use fairpath_engine::ConnectionView;

use crate::packet::Chunk;

/// How much the application has for the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Supply {
    /// This many bytes.
    Bytes(u64),
    /// More than the network takes.
    Endless,
}

/// The data of one connection. Pieces are numbered from 0; each is sent on some path, and again
/// where it was lost.
#[derive(Debug)]
pub(crate) struct SendStream {
    payload: u32,
    supply: Supply,
    /// The supply ends here: the last piece of it is marked.
    ends: bool,
    next: u64,
    again: VecDeque<Chunk>,
    /// Pieces that were passed over, in order: they were cut and never sent.
    passed: VecDeque<Chunk>,
    /// The first piece that is not acknowledged, and for each from there on, up to the last that is, whether it is.
    /// Mostly none is: pieces are acknowledged in order.
    acked_from: u64,
    acked: VecDeque<bool>,
    /// The receiver takes pieces below this.
    limit: u64,
    /// How many pieces may be unacknowledged.
    buffer: u64,
}

impl SendStream {
    /// For how many pieces there is an entry.
    pub(crate) fn entries(&self) -> usize {
        self.again.len() + self.passed.len() + (self.next - self.acked_from) as usize
    }

    /// A stream of pieces of up to `payload` bytes, of which `buffer` may be unacknowledged, to a
    /// receiver that takes `limit` for a start.
    pub(crate) fn new(payload: u32, buffer: u64, limit: u64) -> Self {
        Self {
            payload,
            supply: Supply::Bytes(0),
            ends: false,
            next: 0,
            again: VecDeque::new(),
            passed: VecDeque::new(),
            acked_from: 0,
            acked: VecDeque::new(),
            limit,
            buffer,
        }
    }

    /// The application has `bytes` more.
    pub(crate) fn supply(&mut self, bytes: u64) {
        if let Supply::Bytes(supply) = &mut self.supply {
            *supply += bytes;
        }
    }

    /// The application has more than the network takes, or no longer.
    pub(crate) fn set_endless(&mut self, endless: bool) {
        self.supply = if endless { Supply::Endless } else { Supply::Bytes(0) };
    }

    /// Declares that no more data will be supplied.
    pub(crate) fn end(&mut self) {
        self.ends = true;
    }

    /// Throws away what has not been cut into pieces yet.
    pub(crate) fn stop(&mut self) {
        self.supply = Supply::Bytes(0);
    }

    /// The piece to send next; it stays the next until [`SendStream::on_sent`].
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Chunk> {
        if !self.again.is_empty()
            && let Some(chunk) = self.next_again()
        {
            return Some(chunk);
        }
        self.passed.front().copied().or_else(|| self.cut())
    }

    /// The next piece of what is not cut yet, as far as the receiver and the buffer take it.
    fn cut(&self) -> Option<Chunk> {
        if self.next >= self.limit || self.next - self.acked_from >= self.buffer {
            return None;
        }
        let bytes = match self.supply {
            Supply::Endless => self.payload,
            Supply::Bytes(0) => return None,
            Supply::Bytes(supply) => u32::try_from(supply).unwrap_or(u32::MAX).min(self.payload),
        };
        let last = self.ends && self.supply == Supply::Bytes(u64::from(bytes));
        Some(Chunk { number: self.next, bytes, last })
    }

    /// The next of the pieces that must be sent again. What has arrived meanwhile need not be.
    fn next_again(&mut self) -> Option<Chunk> {
        while let Some(chunk) = self.again.front().copied() {
            if !self.is_acked(chunk.number) {
                return Some(chunk);
            }
            self.again.pop_front();
        }
        None
    }

    /// The piece that lies `gap` beyond the first one never sent. The answer stays the same until
    /// [`SendStream::on_sent`]. Pieces in between are passed over, and come next. `None` if the
    /// data or the room does not reach that far.
    pub(crate) fn ahead(&mut self, gap: ByteCount) -> Option<Chunk> {
        let first = self.passed.front().map_or(self.next, |chunk| chunk.number);
        let wanted = first + gap / ByteCount::new(u64::from(self.payload.max(1)));
        while self.next < wanted {
            let chunk = self.cut()?;
            self.note_cut(chunk);
            self.passed.push_back(chunk);
        }
        let at = self.passed.partition_point(|chunk| chunk.number < wanted);
        self.passed.get(at).copied().or_else(|| self.cut())
    }

    /// The piece that [`SendStream::next`] or [`SendStream::ahead`] gave has been sent.
    #[inline]
    pub(crate) fn on_sent(&mut self, chunk: Chunk) {
        if chunk.number == self.next {
            self.note_cut(chunk);
        } else if self.again.front().is_some_and(|again| again.number == chunk.number) {
            self.again.pop_front();
        } else if let Ok(at) = self.passed.binary_search_by_key(&chunk.number, |chunk| chunk.number) {
            self.passed.remove(at);
        }
    }

    fn note_cut(&mut self, chunk: Chunk) {
        self.next += 1;
        if let Supply::Bytes(supply) = &mut self.supply {
            *supply -= u64::from(chunk.bytes);
        }
    }

    /// The piece was lost, or must go another way.
    pub(crate) fn send_again(&mut self, chunk: Chunk) {
        if !self.is_acked(chunk.number) {
            self.again.push_back(chunk);
        }
    }

    /// The piece has arrived.
    #[inline]
    pub(crate) fn on_ack(&mut self, chunk: Chunk) {
        let Some(at) = chunk.number.checked_sub(self.acked_from) else { return };
        if at == 0 && self.acked.is_empty() {
            // The usual case: in order, and nothing is ahead.
            self.acked_from += 1;
        } else {
            self.note_acked(at as usize);
        }
    }

    fn note_acked(&mut self, at: usize) {
        if at >= self.acked.len() {
            self.acked.resize(at + 1, false);
        }
        self.acked[at] = true;
        self.skip_acked();
    }

    /// The receiver says, with an acknowledgement of whichever path, that all pieces below `expected` have arrived, and
    /// that it takes those below `limit` [RFC8684 §3.3.2].
    #[inline]
    pub(crate) fn on_receiver(&mut self, expected: u64, limit: u64) {
        self.limit = self.limit.max(limit);
        if expected > self.acked_from {
            self.note_all_acked(expected.min(self.next));
        }
    }

    fn note_all_acked(&mut self, below: u64) {
        let known = (below - self.acked_from).min(self.acked.len() as u64) as usize;
        self.acked.drain(..known);
        self.acked_from = below;
        self.skip_acked();
    }

    fn skip_acked(&mut self) {
        while self.acked.front() == Some(&true) {
            self.acked.pop_front();
            self.acked_from += 1;
        }
    }

    /// Whether the piece has arrived.
    pub(crate) fn is_acked(&self, number: u64) -> bool {
        match number.checked_sub(self.acked_from) {
            None => true,
            Some(at) => self.acked.get(at as usize).is_some_and(|acked| *acked),
        }
    }

    /// The view of the connection for a scheduler.
    pub(crate) fn view(&self) -> ConnectionView {
        let bytes = |pieces: u64| ByteCount::new(pieces.saturating_mul(self.payload.into()));
        let bound = |pieces: u64| (pieces < u64::MAX).then(|| bytes(pieces));
        let passed = self.passed.len() as u64;
        let held = self.next - self.acked_from - passed;
        ConnectionView {
            unsent: match self.supply {
                Supply::Bytes(supply) => Some(ByteCount::new(supply) + bytes(passed)),
                Supply::Endless => None,
            },
            window: if self.limit == u64::MAX { None } else { bound(self.limit - self.acked_from) },
            window_used: bytes(held),
            send_buffer: bound(self.buffer),
            buffered: bytes(held),
            is_blocked: passed == 0 && (self.next >= self.limit || held >= self.buffer),
            due: None,
        }
    }

    /// How many pieces were cut, and all but those that were passed over sent at least once.
    pub(crate) fn sent(&self) -> u64 {
        self.next
    }

    /// The oldest piece that has not arrived.
    pub(crate) fn oldest_unacked(&self) -> u64 {
        self.acked_from
    }

    /// Whether everything has arrived and no more will come.
    pub(crate) fn is_finished(&self) -> bool {
        self.ends && self.supply == Supply::Bytes(0) && self.acked_from == self.next && self.next > 0
    }

    /// Whether there is more, and it is the receiver that takes none of it.
    pub(crate) fn is_receive_limited(&self) -> bool {
        !self.is_dry() && self.again.is_empty() && self.passed.is_empty() && self.next >= self.limit
    }

    /// Whether the application, not the network or the receiver, has nothing more.
    pub(crate) fn is_dry(&self) -> bool {
        self.again.is_empty() && self.passed.is_empty() && self.supply == Supply::Bytes(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(stream: &mut SendStream) -> Option<(u64, u32, bool)> {
        let chunk = stream.next()?;
        stream.on_sent(chunk);
        Some((chunk.number, chunk.bytes, chunk.last))
    }

    #[test]
    fn the_rest_is_a_smaller_piece_and_the_last_one() {
        let mut stream = SendStream::new(1000, u64::MAX, u64::MAX);
        stream.supply(2500);
        stream.end();
        assert_eq!(take(&mut stream), Some((0, 1000, false)));
        assert_eq!(take(&mut stream), Some((1, 1000, false)));
        assert_eq!(take(&mut stream), Some((2, 500, true)));
        assert_eq!(take(&mut stream), None);
        assert!(!stream.is_finished());
        for number in 0..3 {
            stream.on_ack(Chunk { number, bytes: 0, last: false });
        }
        assert!(stream.is_finished());
    }

    #[test]
    fn what_was_lost_goes_first_unless_it_has_arrived_in_the_meantime() {
        let mut stream = SendStream::new(1000, u64::MAX, u64::MAX);
        stream.set_endless(true);
        for _ in 0..3 {
            take(&mut stream);
        }
        for number in [0, 1] {
            stream.send_again(Chunk { number, bytes: 1000, last: false });
        }
        stream.on_ack(Chunk { number: 0, bytes: 1000, last: false });
        assert_eq!(take(&mut stream), Some((1, 1000, false)));
        assert_eq!(take(&mut stream), Some((3, 1000, false)));
    }

    #[test]
    fn what_is_passed_over_is_next_and_everything_is_sent_once() {
        let mut stream = SendStream::new(1000, u64::MAX, u64::MAX);
        stream.supply(5500);
        stream.end();
        let ahead = |stream: &mut SendStream, pieces: u64| {
            let chunk = stream.ahead(ByteCount::new(1000 * pieces))?;
            stream.on_sent(chunk);
            Some((chunk.number, chunk.bytes, chunk.last))
        };
        assert_eq!(take(&mut stream), Some((0, 1000, false)));
        assert_eq!(ahead(&mut stream, 2), Some((3, 1000, false)));
        assert_eq!(ahead(&mut stream, 2), Some((4, 1000, false)), "3 has been sent");
        assert_eq!(take(&mut stream), Some((1, 1000, false)));
        stream.send_again(Chunk { number: 0, bytes: 1000, last: false });
        assert_eq!(ahead(&mut stream, 3), Some((5, 500, true)), "3 after 2, the first that was not sent");
        assert_eq!(ahead(&mut stream, 1), None, "there is none so far on");
        // 2 was never sent and holds nothing.
        let view = stream.view();
        assert_eq!((view.unsent, view.window_used), (Some(ByteCount::new(1_000)), ByteCount::new(5_000)));
        assert_eq!(take(&mut stream), Some((0, 1000, false)), "what was lost goes first");
        assert_eq!(take(&mut stream), Some((2, 1000, false)));
        assert_eq!((take(&mut stream), stream.is_dry()), (None, true));
    }

    #[test]
    fn what_the_receiver_has_holds_nothing_whichever_path_says_so() {
        let mut stream = SendStream::new(1000, 4, u64::MAX);
        stream.set_endless(true);
        (0..4).for_each(|number| assert_eq!(take(&mut stream), Some((number, 1000, false))));
        let chunk = |number| Chunk { number, bytes: 1000, last: false };
        stream.on_ack(chunk(2));
        assert_eq!(take(&mut stream), None, "four may be there, from the first that is not acknowledged");
        // The acknowledgements of the other pieces, on their own path, are still in flight.
        stream.on_receiver(3, u64::MAX);
        assert_eq!([0, 1, 2, 3].map(|number| stream.is_acked(number)), [true, true, true, false]);
        stream.send_again(chunk(1));
        assert_eq!(take(&mut stream), Some((4, 1000, false)), "what has arrived is not sent again");
        stream.on_ack(chunk(1));
        stream.on_receiver(2, u64::MAX);
        assert_eq!(stream.oldest_unacked(), 3, "said before, and late");
        assert_eq!(stream.view().buffered, ByteCount::new(2_000));
    }

    #[test]
    fn the_buffer_and_the_receiver_hold_the_sender_back() {
        let mut stream = SendStream::new(1000, 2, 3);
        stream.set_endless(true);
        take(&mut stream);
        take(&mut stream);
        assert_eq!(take(&mut stream), None, "two are unacknowledged");
        stream.on_ack(Chunk { number: 0, bytes: 1000, last: false });
        stream.on_ack(Chunk { number: 1, bytes: 1000, last: false });
        assert_eq!(take(&mut stream), Some((2, 1000, false)));
        assert_eq!(take(&mut stream), None, "the receiver takes three");
        stream.on_receiver(2, 4);
        assert_eq!(take(&mut stream), Some((3, 1000, false)));
        assert!(!stream.is_dry());
    }
}
