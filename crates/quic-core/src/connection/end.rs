//! How a connection ends, and who is told.

use bytes::Bytes;
use noq_proto::{ApplicationClose, ConnectionError, TransportError, VarInt};
use web_time::Instant;

use super::{Connection, Event};
use crate::farewell::{Farewell, Turn};

/// The code with which a connection is closed whose peer breaks the rules of the channels.
pub const VIOLATION: u32 = 0x1f1;

/// How the peer broke the rules of a channel, where this end closed the connection for that.
pub fn violation(reason: &ConnectionError) -> Option<&str> {
    match reason {
        ConnectionError::TransportError(error) if u64::from(error.code) == u64::from(VIOLATION) => Some(&error.reason),
        _ => None,
    }
}

impl Connection {
    /// Ends the connection and tells the peer `code` and `reason`.
    pub fn close(&mut self, code: u32, reason: Bytes, now: Instant) {
        self.close_for(ConnectionError::LocallyClosed, code, reason, now);
    }

    /// The peer broke the rules of a channel.
    pub(super) fn fail(&mut self, what: String, now: Instant) {
        let reason = Bytes::from(what.clone());
        let code = VarInt::from_u32(VIOLATION).into();
        self.close_for(TransportError::new(code, what).into(), VIOLATION, reason, now);
    }

    fn close_for(&mut self, cause: ConnectionError, code: u32, reason: Bytes, now: Instant) {
        if self.closed.is_some() {
            return;
        }
        match self.policy.as_ref().filter(|_| self.application.is_fairpath()) {
            Some(policy) => self.farewell = Some(Farewell::new(code, reason, policy.slowest_answer(), now)),
            None => self.quic.close(now, code.into(), reason),
        }
        self.note_closed(cause, now);
        self.bid_farewell(now);
    }

    /// Why the connection ended; `None` while it is open.
    pub fn close_reason(&self) -> Option<&ConnectionError> {
        self.closed.as_ref()
    }

    // ---- inside

    pub(super) fn note_closed(&mut self, reason: ConnectionError, now: Instant) {
        if self.closed.is_none() {
            self.measure(now);
            self.closed = Some(reason.clone());
            self.events.push_back(Event::Closed(reason));
        }
    }

    /// Says on every path that this is the end, again and again, until the peer ends too or it has been said
    /// often enough. The stack says it on one path, once, and that may be lost.
    pub(super) fn bid_farewell(&mut self, now: Instant) {
        let (Some(farewell), Some(policy)) = (&mut self.farewell, &self.policy) else { return };
        match farewell.say(now) {
            Turn::Wait => {}
            Turn::Say(datagram) => {
                for path in policy.open_paths().filter_map(|(_, path)| path) {
                    self.output.say_on(path, datagram.clone());
                }
            }
            Turn::Leave { code, reason } => {
                self.farewell = None;
                self.quic.close(now, code.into(), reason);
            }
        }
    }

    /// The peer says that this is the end.
    pub(super) fn on_farewell(&mut self, code: u32, reason: Bytes, now: Instant) {
        self.farewell = None;
        self.quic.close(now, code.into(), Bytes::new());
        let close = ApplicationClose { error_code: code.into(), reason };
        self.note_closed(ConnectionError::ApplicationClosed(close), now);
    }
}
