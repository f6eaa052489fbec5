//! Frames of streams as they leave, and their fates.

use bytes::Bytes;
use fairpath_engine::PathId;

use super::part::{Due, StreamDatagram, What};
use super::send::Piece;
use super::set::{Phase, Streams};
use super::wire::{Frame, HEADER_MAX, header, put_header};
use crate::carrier::Why;

impl Streams {
    /// Whether something waits to be sent and may be.
    pub(crate) fn has_next(&self) -> bool {
        self.is_due() || self.has_data()
    }

    /// Whether something is to be said beside data.
    pub fn is_due(&self) -> bool {
        self.due.first().is_some_and(|due| self.may_say(*due))
    }

    /// Until it is clear which streams are meant only that is spoken of. It comes first in the order of what is due.
    fn may_say(&self, due: Due) -> bool {
        match self.phase {
            Phase::Open => true,
            Phase::Asking => due == Due::Resume,
            Phase::Listening => due == Due::Refused,
        }
    }

    /// Whether data waits to be sent and may be.
    pub(crate) fn has_data(&self) -> bool {
        self.phase == Phase::Open && (!self.free.is_empty() || self.sums.new > 0 && self.credit_left() > 0)
    }

    /// Whether something waits that goes before bulk data.
    pub(crate) fn has_small(&self) -> bool {
        self.is_due() || self.has_data() && self.schedule.has_sparse()
    }

    /// Whether an application has filled the room there is.
    pub(crate) fn is_full(&self) -> bool {
        self.sums.full > 0
    }

    /// Whether nothing is to be sent, nor on its way.
    pub(crate) fn is_idle(&self) -> bool {
        !self.has_next() && self.sums.unsent == 0 && self.sums.unacked == 0 && self.sums.unsettled == 0
    }

    /// Whether data waits for the peer's credit alone.
    pub fn is_blocked(&self) -> bool {
        self.sums.unsent > 0 && !self.has_data()
    }

    /// Credit, resets and stops: the next of them.
    pub(crate) fn next_due(&mut self) -> Option<(Bytes, StreamDatagram)> {
        while self.is_due()
            && let Some(due) = self.due.pop_first()
        {
            let Some((frame, what)) = self.said(due) else { continue };
            self.has_spoken = true;
            let datagram = self.buffer.datagram(0, |to| frame.put(to));
            return Some((datagram, StreamDatagram { what, why: Why::New }));
        }
        None
    }

    /// The frame that is due, as things stand now; `None` where it has become pointless.
    fn said(&mut self, due: Due) -> Option<(Frame<'static>, What)> {
        match due {
            Due::Resume => self.token.map(|token| (Frame::Resume(token.0), What::Resume(token))),
            Due::Refused => Some((Frame::Refused, What::Refused)),
            Due::Limits => {
                self.window.tell();
                self.untold = false;
                self.told = self.present_limits();
                Some((Frame::Limits(self.told), What::Limits(self.told)))
            }
            Due::Reset(id) => {
                let send = &self.streams.get(&id)?.send;
                Some((Frame::Reset { id, code: send.reset_code()?, end: send.sent() }, What::Reset(id)))
            }
            Due::Stop(id) => {
                let code = self.streams.get(&id)?.recv.stop_code()?;
                Some((Frame::Stop { id, code }, What::Stop(id)))
            }
            Due::Credit(id) => {
                let recv = &mut self.streams.get_mut(&id)?.recv;
                let limit = recv.wants_credit().then(|| recv.window.tell())?;
                Some((Frame::Credit { id, limit }, What::Credit { id, limit }))
            }
        }
    }

    /// The next data in a DATAGRAM of at most `room` bytes. `None` where there is none, or no room for any.
    pub(crate) fn next_data(&mut self, room: usize) -> Option<(Bytes, StreamDatagram)> {
        if room <= HEADER_MAX || !self.has_data() {
            return None;
        }
        self.schedule.fit(room);
        let (id, piece, is_new) = loop {
            let credit = self.credit_left();
            // Without credit the turns of all others stay as they are.
            let id = if credit > 0 { self.schedule.head()? } else { *self.free.first()? };
            let space = |offset| (room - header(id, offset)) as u64;
            let taken = self.touch(id, |stream| {
                let again = stream.send.take_free(space).map(|piece| (piece, false));
                again.or_else(|| stream.send.take_new(space, credit).map(|piece| (piece, true)))
            });
            match taken.flatten() {
                Some((piece, is_new)) => break (id, piece, is_new),
                None if credit > 0 => self.schedule.on_empty_head(),
                None => return None,
            }
        };
        match is_new {
            true => self.sent += piece.len(),
            false => self.resent_bytes += piece.len(),
        }
        let why = if is_new { Why::New } else { Why::Again };
        let (datagram, part) = self.cut(id, piece, why)?;
        self.schedule.charge(id, datagram.len());
        Some((datagram, part))
    }

    /// The DATAGRAM that carries a piece; `None` where it is not kept any more, because it arrived.
    fn cut(&mut self, id: u64, piece: Piece, why: Why) -> Option<(Bytes, StreamDatagram)> {
        let send = &self.streams.get(&id)?.send;
        if !send.keeps(piece) {
            return None;
        }
        let length = header(id, piece.start) + piece.len() as usize;
        let datagram = self.buffer.datagram(length, |to| {
            put_header(id, piece.start, piece.is_last, piece.len() == 0, to);
            send.copy(piece, to);
        });
        debug_assert!(piece.len() == 0 || datagram.len() == length, "{piece:?}");
        Some((datagram, StreamDatagram { what: What::Piece(id, piece), why }))
    }

    /// For the tail: a copy, to go on `path`, of data in flight on another path that `slower`
    /// accepts. It gives one only if nothing else can be sent, and of each piece once.
    pub(crate) fn reinject(
        &mut self,
        path: PathId,
        room: usize,
        slower: impl Fn(PathId) -> bool,
    ) -> Option<(Bytes, StreamDatagram)> {
        if self.has_next() || room <= HEADER_MAX {
            return None;
        }
        loop {
            let part = self.in_flight.hand_on_newest(path, &slower)?;
            self.send_again(part);
            // There is none where another copy has arrived.
            if let Some((datagram, part)) = self.next_data(room) {
                return Some((datagram, StreamDatagram { why: Why::Tail, ..part }));
            }
        }
    }

    /// Whether nothing of it is missing at the peer.
    pub(crate) fn has_arrived(&self, part: StreamDatagram) -> bool {
        let What::Piece(id, piece) = part.what else { return true };
        self.streams.get(&id).is_none_or(|stream| stream.send.reset_code().is_some() || stream.send.has_arrived(piece))
    }

    /// A frame that another path has carried, once more, and whether it answers for its bytes: it does where they were
    /// to be sent again anyway. `None` where it has arrived.
    pub(crate) fn repeat(&mut self, part: StreamDatagram) -> Option<(Bytes, StreamDatagram, bool)> {
        let What::Piece(id, piece) = part.what else { return None };
        if self.has_arrived(part) {
            return None;
        }
        let answers = self.touch(id, |stream| stream.send.take_of_again(piece))?;
        let (datagram, part) = self.cut(id, piece, if answers { Why::Again } else { part.why })?;
        Some((datagram, part, answers))
    }

    /// It left in packet `number` of `path`.
    pub(crate) fn on_sent(&mut self, part: StreamDatagram, path: PathId, number: u64) {
        self.in_flight.on_sent(part, path, number);
    }

    /// A copy of it left, which answers for nothing.
    pub(crate) fn on_copy_sent(&mut self, part: StreamDatagram, path: PathId, number: u64) {
        self.in_flight.on_copy_sent(part, path, number);
    }

    /// It did not leave, or nothing answers for it any more.
    pub(crate) fn send_again(&mut self, StreamDatagram { what, .. }: StreamDatagram) {
        match what {
            What::Piece(id, piece) => _ = self.touch(id, |stream| stream.send.send_again(piece)),
            What::Limits(limits) => {
                if limits == self.told {
                    self.untold = true;
                    self.due.insert(Due::Limits);
                }
            }
            What::Credit { id, limit } => {
                let Some(stream) = self.streams.get_mut(&id) else { return };
                stream.recv.window.is_lost(limit);
                if stream.recv.window.is_due() && stream.recv.wants_credit() {
                    self.due.insert(Due::Credit(id));
                }
            }
            What::Resume(_) if self.phase == Phase::Asking => _ = self.due.insert(Due::Resume),
            What::Refused if self.phase == Phase::Listening => _ = self.due.insert(Due::Refused),
            What::Resume(_) | What::Refused => {}
            What::Reset(id) => _ = self.due.insert(Due::Reset(id)),
            What::Stop(id) => _ = self.due.insert(Due::Stop(id)),
        }
    }

    /// Packet `number` of `path` was acknowledged.
    pub(crate) fn on_acked(&mut self, path: PathId, number: u64) {
        let mut in_flight = std::mem::take(&mut self.in_flight);
        in_flight.settle(path, number, |part, _| match part.what {
            What::Piece(id, piece) => _ = self.touch(id, |stream| stream.send.on_acked(piece)),
            What::Reset(id) => _ = self.touch(id, |stream| stream.send.on_reset_acked()),
            _ => {}
        });
        self.in_flight = in_flight;
    }

    /// It was lost.
    pub(crate) fn on_lost(&mut self, path: PathId, number: u64) {
        let mut in_flight = std::mem::take(&mut self.in_flight);
        in_flight.settle(path, number, |part, answerable| {
            if answerable {
                self.send_again(part);
            }
        });
        self.in_flight = in_flight;
    }

    /// Sends again what is in flight on `path`, which fell ill. Acknowledgements that come late still count.
    pub(crate) fn resend(&mut self, path: PathId) {
        let mut in_flight = std::mem::take(&mut self.in_flight);
        in_flight.hand_on(path, |part| self.send_again(part));
        self.in_flight = in_flight;
    }

    /// Nothing will be heard of `path` any more.
    pub(crate) fn on_path_gone(&mut self, path: PathId) {
        self.resend(path);
        self.note_late(path, false);
        self.in_flight.forget(path);
    }

    // ---- copies for a path that is late

    /// The answer of `path` is late, or is not. While it is, what streams wait for there is to be copied, each piece once.
    pub(crate) fn note_late(&mut self, path: PathId, is_late: bool) {
        if !is_late {
            return self.rescue.note_answer(path);
        }
        let Self { in_flight, streams, rescue, .. } = self;
        let awaited = |part: StreamDatagram| match part.what {
            What::Piece(id, piece) if streams.get(&id)?.send.waits_for(piece) => Some((id, piece.start, part)),
            _ => None,
        };
        rescue.note_late(path, in_flight.answerable_on(path).filter_map(awaited));
    }

    /// The paths on which something is in flight.
    pub(crate) fn paths_in_use(&self) -> Vec<PathId> {
        self.in_flight.paths().collect()
    }

    /// The paths on which something waits for its fate.
    #[cfg(feature = "simulation")]
    pub(crate) fn answerable_paths(&self) -> impl Iterator<Item = PathId> {
        self.in_flight.answerable_paths()
    }

    /// Whether something is to be copied.
    pub(crate) fn has_rescue(&self) -> bool {
        !self.rescue.is_empty()
    }

    /// The next copy, for `path`, and whether it answers for its bytes; `None` where there is none.
    pub(crate) fn next_rescue(&mut self, path: PathId) -> Option<(Bytes, StreamDatagram, bool)> {
        while let Some(part) = self.rescue.next(path) {
            if let Some((datagram, part, answers)) = self.repeat(part) {
                self.resent_bytes += datagram.len() as u64;
                return Some((datagram, part, answers));
            }
        }
        None
    }
}
