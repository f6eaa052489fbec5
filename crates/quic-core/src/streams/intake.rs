//! Frames of streams that the peer sends.

use super::error::StreamsError;
use super::id::{StreamKind, StreamsToken};
use super::part::Due;
use super::recv::Read;
use super::set::{Phase, StreamEvent, Streams};
use super::stream::Stream;
use super::wire::{Frame, Limits};

/// The code with which a stream is reset whose opener gave up before it said what the stream is.
const NEVER_OPENED: u64 = 0;

impl Streams {
    /// A DATAGRAM of streams came.
    pub(crate) fn on_datagram(&mut self, datagram: &[u8]) -> Result<(), StreamsError> {
        let frame = Frame::parse(datagram)?;
        match frame {
            Frame::Resume(token) if self.is_server && self.on_asked(StreamsToken(token)) => return Ok(()),
            Frame::Refused if !self.is_server => {
                self.on_refused();
                return Ok(());
            }
            Frame::Resume(_) | Frame::Refused => return Err(StreamsError::Part),
            _ => (self.phase, self.has_heard) = (Phase::Open, true),
        }
        match frame {
            Frame::Resume(_) | Frame::Refused => {}
            Frame::Limits(limits) => self.on_limits(limits),
            Frame::Data { id, offset, is_last, data } => self.on_data(id, offset, is_last, data)?,
            Frame::Credit { id, limit } => {
                if self.knows(id)? {
                    self.touch(id, |stream| stream.send.on_credit(limit));
                }
            }
            Frame::Reset { id, code, end } => self.on_reset(id, code, end)?,
            Frame::Stop { id, code } => {
                let stop = |stream: &mut Stream| {
                    let is_new = stream.send.stop(code);
                    // A writer may wait for all to arrive, which will not be.
                    stream.wants_to_write |= is_new;
                    is_new
                };
                if self.knows(id)? && self.touch(id, stop) == Some(true) {
                    self.due.insert(Due::Reset(id));
                }
            }
        }
        Ok(())
    }

    /// Whether a stream of this id is open; one that the peer may open now is from here on.
    fn knows(&mut self, id: u64) -> Result<bool, StreamsError> {
        if self.streams.contains_key(&id) {
            return Ok(true);
        }
        let number = id >> 1;
        if self.is_own(id) {
            return if number < self.opened { Ok(false) } else { Err(StreamsError::NotOpened { id }) };
        }
        // The limit told last counts, and not the one to be told next: the peer can know of no other.
        let allowed = if self.is_admitted { self.told.streams } else { 0 };
        if number >= allowed {
            return Err(StreamsError::TooMany { id, allowed });
        }
        if self.closed.contains(&number) {
            return Ok(false);
        }
        self.add(id, None);
        Ok(true)
    }

    fn on_limits(&mut self, limits: Limits) {
        let before = self.limits;
        self.limits = Limits {
            streams: before.streams.max(limits.streams),
            bytes: before.bytes.max(limits.bytes),
            window: before.window.max(limits.window),
        };
        if self.limits.window > before.window {
            let window = self.limits.window;
            let ids: Vec<u64> = self.streams.keys().copied().collect();
            for id in ids {
                self.touch(id, |stream| stream.send.on_credit(window));
            }
        }
        if self.opened < self.limits.streams && std::mem::take(&mut self.wants_to_open) {
            self.events.push_back(StreamEvent::MayOpen);
        }
    }

    fn on_data(&mut self, id: u64, offset: u64, is_last: bool, data: &[u8]) -> Result<(), StreamsError> {
        if !self.knows(id)? {
            return Ok(());
        }
        let now = self.now;
        let placed = self.touch(id, |stream| {
            let unread = stream.recv.unread();
            let moved = stream.recv.on_data(id, offset, data, is_last)?;
            let kind = if stream.kind.is_none() { stream.recv.read(1) } else { Ok(Read::Pending) };
            if let Ok(Read::Data(byte)) = kind {
                stream.recv.window.on_taken(1, now, web_time::Duration::MAX);
                stream.kind = byte.first().copied().map(StreamKind);
                return Ok::<_, StreamsError>((moved, unread + moved - stream.recv.unread(), true));
            }
            Ok((moved, unread + moved - stream.recv.unread(), false))
        });
        let (moved, taken, has_opened) = placed.unwrap_or(Ok((0, 0, false)))?;
        if has_opened {
            self.arrived.push_back(id);
            self.events.push_back(StreamEvent::Opened);
            // It may have more than its kind.
            self.touch(id, |_| ());
        }
        self.count(moved, taken)
    }

    fn on_reset(&mut self, id: u64, code: u64, end: u64) -> Result<(), StreamsError> {
        if !self.knows(id)? {
            return Ok(());
        }
        let reset = self.touch(id, |stream| {
            let unread = stream.recv.unread();
            let moved = stream.recv.on_reset(id, code, end)?;
            // Its kind will never be known. No application is asked to deal with it.
            let is_orphan = stream.kind.is_none() && {
                let _ = stream.recv.read(1);
                stream.send.reset(NEVER_OPENED)
            };
            Ok::<_, StreamsError>((moved, unread + moved - stream.recv.unread(), is_orphan))
        });
        let (moved, taken, is_orphan) = reset.unwrap_or(Ok((0, 0, false)))?;
        if is_orphan {
            self.due.insert(Due::Reset(id));
        }
        self.count(moved, taken)
    }

    /// Counts what came, and what nobody will read, against the credit of all streams.
    fn count(&mut self, moved: u64, taken: u64) -> Result<(), StreamsError> {
        self.received += moved;
        let limit = self.window.limit();
        if self.received > limit {
            return Err(StreamsError::AllBeyondCredit { received: self.received, limit });
        }
        if taken > 0 {
            self.on_taken(taken);
        }
        // Readers that take their time must not keep others waiting.
        if moved > 0 && self.held_bytes() > self.window.size() / 2 {
            self.grow(self.window.size());
            self.note_limits();
        }
        Ok(())
    }
}
