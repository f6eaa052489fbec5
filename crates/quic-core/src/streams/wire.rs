//! The DATAGRAM frames of streams. The first byte says which kind it is.
//!
//! ```text
//! DATA   = 0x30 | id | offset | data ...           LAST   = 0x31, the same: and the stream ends here
//! LIMITS = 0x32 | streams | bytes of all streams | bytes of a new stream
//! CREDIT = 0x33 | id | bytes of the stream         STOP   = 0x35 | id | code
//! RESET  = 0x34 | id | code | bytes sent             RESUME = 0x36 | token, 16 bytes     REFUSED = 0x37
//! ```
//!
//! All numbers are variable-length integers [RFC9000 §16]. An offset has at least four bytes, and eight where no data
//! follows: no frame of data is so short that it could be in either of two packets (`connection/queue.rs`). The id of a
//! stream is twice its number, and one more for those that a server opened. The end that opens a stream sends its kind
//! first, as the byte at offset 0: a frame of data with that byte opens the stream at the other end. Resets, stops and
//! credits are said again until they are acknowledged. The largest credit counts, and the first reset.

use bytes::{Buf as _, BufMut};
use noq_proto::VarInt;
use noq_proto::coding::{Decodable as _, Encodable as _};

use super::id::StreamsToken;

const DATA: u8 = 0x30;
const LAST: u8 = 0x31;
const LIMITS: u8 = 0x32;
const CREDIT: u8 = 0x33;
const RESET: u8 = 0x34;
const STOP: u8 = 0x35;
const RESUME: u8 = 0x36;
const REFUSED: u8 = 0x37;

/// The most that is put before data, in bytes.
pub(super) const HEADER_MAX: usize = 1 + 8 + 8;

/// The largest number in a frame.
pub(super) const NUMBER_MAX: u64 = (1 << 62) - 1;

/// Whether a DATAGRAM with this first byte is one of streams.
pub(crate) fn is_streams(kind: u8) -> bool {
    (DATA..=REFUSED).contains(&kind)
}

/// The limits of an end that opens streams and sends bytes. All of them only rise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Limits {
    /// How many streams it may have opened, from the beginning.
    pub(crate) streams: u64,
    /// How many bytes it may have sent on all streams, from the beginning.
    pub(crate) bytes: u64,
    /// How many bytes it may send on each stream before it hears of a credit for it.
    pub(crate) window: u64,
}

/// A frame that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frame<'a> {
    Data { id: u64, offset: u64, is_last: bool, data: &'a [u8] },
    Limits(Limits),
    Credit { id: u64, limit: u64 },
    Reset { id: u64, code: u64, end: u64 },
    Stop { id: u64, code: u64 },
    Resume([u8; StreamsToken::LEN]),
    Refused,
}

/// Why a DATAGRAM is none that this version writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Malformed {
    /// It is of another kind, or empty.
    #[error("a frame of streams begins with {0:?}, not with 0x30 to 0x37")]
    Kind(Option<u8>),
    /// A number is missing or cut off.
    #[error("a frame of streams of kind {kind:#04x} ends within its numbers, after {length} bytes")]
    Short {
        /// Its first byte.
        kind: u8,
        /// How long it is.
        length: usize,
    },
    /// There is more than belongs to it.
    #[error("a frame of streams of kind {kind:#04x} has {extra} bytes too many")]
    Long {
        /// Its first byte.
        kind: u8,
        /// How many.
        extra: usize,
    },
}

impl<'a> Frame<'a> {
    /// Reads a DATAGRAM.
    pub(super) fn parse(datagram: &'a [u8]) -> Result<Self, Malformed> {
        let (&kind, mut rest) = datagram.split_first().ok_or(Malformed::Kind(None))?;
        let numbers = match kind {
            DATA | LAST | CREDIT | STOP => 2,
            LIMITS | RESET => 3,
            RESUME => {
                let short = || Malformed::Short { kind, length: datagram.len() };
                let (token, rest) = rest.split_first_chunk().ok_or_else(short)?;
                return if rest.is_empty() {
                    Ok(Self::Resume(*token))
                } else {
                    Err(Malformed::Long { kind, extra: rest.len() })
                };
            }
            REFUSED => 0,
            _ => return Err(Malformed::Kind(Some(kind))),
        };
        let mut found = [0; 3];
        for number in &mut found[..numbers] {
            let short = |_| Malformed::Short { kind, length: datagram.len() };
            *number = VarInt::decode(&mut rest).map_err(short)?.into_inner();
        }
        let [first, second, third] = found;
        if kind != DATA && kind != LAST && rest.has_remaining() {
            return Err(Malformed::Long { kind, extra: rest.len() });
        }
        Ok(match kind {
            LIMITS => Self::Limits(Limits { streams: first, bytes: second, window: third }),
            CREDIT => Self::Credit { id: first, limit: second },
            RESET => Self::Reset { id: first, code: second, end: third },
            STOP => Self::Stop { id: first, code: second },
            REFUSED => Self::Refused,
            _ => Self::Data { id: first, offset: second, is_last: kind == LAST, data: rest },
        })
    }

    /// Writes it.
    pub(super) fn put(self, to: &mut impl BufMut) {
        let (kind, numbers): (u8, &[u64]) = match &self {
            Self::Data { id, offset, is_last, data } => {
                put_header(*id, *offset, *is_last, data.is_empty(), to);
                return to.put_slice(data);
            }
            Self::Limits(Limits { streams, bytes, window }) => (LIMITS, &[*streams, *bytes, *window]),
            Self::Credit { id, limit } => (CREDIT, &[*id, *limit]),
            Self::Reset { id, code, end } => (RESET, &[*id, *code, *end]),
            Self::Stop { id, code } => (STOP, &[*id, *code]),
            Self::Resume(token) => {
                to.put_u8(RESUME);
                return to.put_slice(token);
            }
            Self::Refused => (REFUSED, &[]),
        };
        to.put_u8(kind);
        numbers.iter().for_each(|value| number(*value).encode(to));
    }
}

/// How long the header of a frame of data is, in bytes. That of one without data may be longer.
pub(super) fn header(id: u64, offset: u64) -> usize {
    let id = match id {
        0..0x40 => 1,
        0x40..0x4000 => 2,
        0x4000..0x4000_0000 => 4,
        _ => 8,
    };
    1 + id + if offset < 1 << 30 { 4 } else { 8 }
}

/// Writes the header of a frame of data, which follows unless it `is_alone`.
pub(super) fn put_header(id: u64, offset: u64, is_last: bool, is_alone: bool, to: &mut impl BufMut) {
    to.put_u8(if is_last { LAST } else { DATA });
    number(id).encode(to);
    match u32::try_from(offset).ok().filter(|offset| *offset < 1 << 30 && !is_alone) {
        Some(offset) => to.put_u32(offset | 0x8000_0000),
        None => to.put_u64(offset.min(NUMBER_MAX) | 0xC000_0000_0000_0000),
    }
}

/// Nothing is counted so far in a lifetime.
fn number(value: u64) -> VarInt {
    VarInt::from_u64(value).unwrap_or(VarInt::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(frame: Frame<'_>) -> Vec<u8> {
        let mut wire = Vec::new();
        frame.put(&mut wire);
        wire
    }

    #[test]
    fn frames_are_written_in_network_order() {
        let data = Frame::Data { id: 5, offset: 0x0102, is_last: true, data: &[9] };
        assert_eq!(written(data), [0x31, 5, 0x80, 0, 1, 2, 9]);
        assert_eq!(written(Frame::Reset { id: 4, code: 0x41, end: 3 }), [0x34, 4, 0x40, 0x41, 3]);
        assert_eq!(Frame::parse(&[0x38]), Err(Malformed::Kind(Some(0x38))));
        let end = Frame::Data { id: 5, offset: 9, is_last: true, data: &[] };
        assert_eq!(written(end), [0x31, 5, 0xC0, 0, 0, 0, 0, 0, 0, 9]);
        assert_eq!(Frame::parse(&[]), Err(Malformed::Kind(None)));
        assert_eq!(Frame::parse(&[0x30, 1, 0x80]), Err(Malformed::Short { kind: 0x30, length: 3 }));
        assert_eq!(Frame::parse(&[0x35, 1, 1, 1]), Err(Malformed::Long { kind: 0x35, extra: 1 }));
    }

    fn numbers() -> impl Strategy<Value = u64> {
        prop_oneof![0..70_u64, 0..20_000_u64, 0..=NUMBER_MAX]
    }

    proptest! {
        #[test]
        fn a_frame_comes_back_as_it_was_written(
            kind in 0..7, a in numbers(), b in numbers(), c in numbers(), is_last: bool, data: Vec<u8>,
        ) {
            let frame = match kind {
                0 => Frame::Data { id: a, offset: b, is_last, data: &data },
                1 => Frame::Limits(Limits { streams: a, bytes: b, window: c }),
                2 => Frame::Credit { id: a, limit: b },
                3 => Frame::Reset { id: a, code: b, end: c },
                4 => Frame::Resume([is_last.into(); 16]),
                5 => Frame::Refused,
                _ => Frame::Stop { id: a, code: b },
            };
            let wire = written(frame);
            prop_assert_eq!(Frame::parse(&wire), Ok(frame));
            if kind == 0 {
                let expected = if data.is_empty() { header(a, 1 << 40) } else { header(a, b) + data.len() };
                prop_assert_eq!(wire.len(), expected);
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(kind in 0x2f_u8..0x39, mut datagram: Vec<u8>) {
            if let Some(first) = datagram.first_mut() {
                *first = kind;
            }
            if let Ok(frame) = Frame::parse(&datagram) {
                let again = written(frame);
                prop_assert_eq!(Frame::parse(&again), Ok(frame));
            }
        }
    }
}
