//! The end of a connection, said on every path.
//!
//! noq says CONNECTION_CLOSE on one path, once, and repeats it only in answer to what comes. Where that packet is
//! lost, or the path is cut in that direction, the peer waits until its idle timeout. So the end is first said in
//! a datagram on every path, a few times, until the peer ends the connection too.
//!
//! In a QUIC datagram: the kind (1 byte), the code (4 bytes, big-endian), the reason.

use web_time::{Duration, Instant};

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};

/// The first byte of a farewell.
pub(crate) const KIND: u8 = 4;

/// How often it is said at most. Three probe timeouts are how long QUIC repeats an end [RFC9000 §10.2].
const TIMES: u32 = 3;

/// The longest reason, in bytes: it has to fit into the smallest datagram.
const REASON_MAX: usize = 1_000;

/// The next step of a farewell.
#[derive(Debug)]
pub(crate) enum Turn {
    /// Nothing yet.
    Wait,
    /// Say it.
    Say(Bytes),
    /// The stack may end now.
    Leave {
        /// The code.
        code: u32,
        /// The reason.
        reason: Bytes,
    },
}

/// An end that is being said.
#[derive(Debug)]
pub(crate) struct Farewell {
    code: u32,
    reason: Bytes,
    /// How long an answer takes.
    answer: Duration,
    said: u32,
    next: Instant,
}

impl Farewell {
    /// `answer` is how long an answer of the peer takes on its slowest path.
    pub(crate) fn new(code: u32, mut reason: Bytes, answer: Duration, now: Instant) -> Self {
        reason.truncate(REASON_MAX);
        Self { code, reason, answer, said: 0, next: now }
    }

    /// When something is to be done.
    pub(crate) fn next(&self) -> Instant {
        self.next
    }

    /// Takes the next step, if it is due.
    pub(crate) fn say(&mut self, now: Instant) -> Turn {
        if now < self.next {
            return Turn::Wait;
        }
        if self.said == TIMES {
            return Turn::Leave { code: self.code, reason: self.reason.clone() };
        }
        self.said += 1;
        self.next = now + self.answer;
        let mut datagram = BytesMut::with_capacity(5 + self.reason.len());
        datagram.put_u8(KIND);
        datagram.put_u32(self.code);
        datagram.put(self.reason.clone());
        Turn::Say(datagram.freeze())
    }
}

/// The code and the reason of a farewell; `None` where it is cut.
pub(crate) fn read(datagram: &Bytes) -> Option<(u32, Bytes)> {
    let mut rest = datagram.slice(1..);
    let code = rest.try_get_u32().ok()?;
    Some((code, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_said_three_times_and_then_the_stack_ends() {
        let begun = Instant::now();
        let answer = Duration::from_millis(100);
        let mut farewell = Farewell::new(7, Bytes::from_static(b"done"), answer, begun);
        for turn in 0..TIMES {
            let Turn::Say(datagram) = farewell.say(begun + answer * turn) else { panic!("turn {turn}") };
            assert_eq!(read(&datagram), Some((7, Bytes::from_static(b"done"))));
            assert!(matches!(farewell.say(begun + answer * turn), Turn::Wait));
        }
        assert!(matches!(farewell.say(begun + answer * TIMES), Turn::Leave { code: 7, .. }));
    }

    #[test]
    fn a_cut_farewell_is_none_and_a_long_reason_is_cut() {
        assert_eq!(read(&Bytes::from_static(&[KIND, 0, 0])), None);
        let now = Instant::now();
        let mut farewell = Farewell::new(0, vec![b'x'; 5_000].into(), Duration::ZERO, now);
        let Turn::Say(datagram) = farewell.say(now) else { panic!("not said") };
        assert_eq!(datagram.len(), 5 + REASON_MAX);
    }
}
