//! The DATAGRAM frames of a stream. The first byte is the kind.
//!
//! ```text
//! SOURCE = 5 | flow, 8 bits | again, 1 | path, 7 | number, low 32 | left, 32 | least, 16 | body
//! REPAIR = 6 | flow, 8 bits | 0, 1 | path, 7 | first number of the block, low 32 | left, 32 | least, 16
//!            | pieces of the block, 8 | which repair, 8 | how many in all, 8 | symbol
//! PART   = 8 | flow, 8 bits | again, 1 | path, 7 | number, low 32 | left, 32 | least, 16
//!            | which part, 8 | how many in all, 8 | that part of the body
//! REPORT = 7 | number, 32 bits | counts, 7 × 64 | for each path: path, 8 | newest, 32 | mean, 32 | deviation, 32
//! body   = sent, 32 bits | deadline in ms, 16 | flags, 8 | data
//! symbol = Reed–Solomon over the pieces of the block, each as: length of the body, 16 bits | body | zeros
//! ```
//!
//! A piece leaves in parts where it was cut for larger datagrams than can leave now: its number and its length stand in
//! its block already. All parts but the last have one length.
//!
//! All numbers are big-endian. Times are in µs, modulo 2³², by the clock of the sender of the
//! pieces. `sent` is when the application sent the packet, `left` when this datagram left, `newest`
//! when the newest left that has come on a path. `least` is the shortest round trip that the sender
//! knows, in tenths of a millisecond. A report gives the mean delay on each path since the last
//! report, and its deviation, in µs.

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};

use fairpath_core::PathId;

use crate::config::FlowId;
use crate::counts::Counts;

pub(crate) const SOURCE: u8 = 5;
pub(crate) const REPAIR: u8 = 6;
pub(crate) const REPORT: u8 = 7;
pub(crate) const PART: u8 = 8;

/// The length of the header of a piece.
const SOURCE_HEAD: usize = 13;

/// The length of the header of a part of a piece.
const PART_HEAD: usize = SOURCE_HEAD + 2;

/// The most parts of a piece: of the largest, in the smallest datagrams that QUIC has.
const PARTS_MAX: usize = 64;

/// The length of the header of a repair.
const REPAIR_HEAD: usize = 16;

/// The length of the header of a body.
const BODY_HEAD: usize = 7;

/// The length of a body before it in a symbol.
const LENGTH: usize = 2;

/// The largest overhead of a datagram beside data: symbols have an even length.
pub(crate) const OVERHEAD: usize = REPAIR_HEAD + LENGTH + BODY_HEAD + 1;

/// No report names more paths.
const REPORTED_MAX: usize = 32;

const AGAIN: u8 = 0x80;

const FIRST: u8 = 1;
const LAST: u8 = 2;

/// Why a datagram is none that this version writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// It is of another kind, or empty.
    #[error("a datagram of a stream begins with 5, 6, 7 or 8, and not with {0:?}")]
    Kind(Option<u8>),
    /// It ends too early, or in the middle of an entry.
    #[error("a datagram of kind {kind} cannot have {length} bytes")]
    Length {
        /// Its first byte.
        kind: u8,
        /// How long it is.
        length: usize,
    },
    /// It names a flow that there is not.
    #[error("there is no flow {0}")]
    Flow(u8),
    /// Its piece has no such part.
    #[error("part {index} of {total} cannot be")]
    PieceFragment {
        /// The index of the part.
        index: u8,
        /// How many there are.
        total: u8,
    },
    /// Its block has no piece, or its repair is none of those that there are.
    #[error("repair {index} of {total} for {pieces} pieces cannot be")]
    Block {
        /// How many pieces the block has.
        pieces: u8,
        /// The index of the repair symbol.
        index: u8,
        /// How many there are.
        total: u8,
    },
}

/// Whether a datagram that begins so is of a stream.
pub fn is_stream(kind: u8) -> bool {
    (SOURCE..=PART).contains(&kind)
}

/// The label of a path in a datagram.
pub(crate) fn label(path: PathId) -> u8 {
    path.get() as u8 & !AGAIN
}

/// The path and times in a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    pub(crate) flow: FlowId,
    /// The path that it was meant for: the low 7 bits of its number.
    pub(crate) path: u8,
    /// Whether it is sent again because it was lost.
    pub(crate) is_again: bool,
    /// When it left.
    pub(crate) left: u32,
    /// The shortest round trip that the sender knows of, in tenths of a millisecond.
    pub(crate) least: u16,
}

/// A part of a packet, with all that is needed to put it in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Body {
    /// When the application sent the packet.
    pub(crate) sent: u32,
    pub(crate) deadline_ms: u16,
    /// Whether the packet begins with it.
    pub(crate) is_first: bool,
    /// Whether the packet ends with it.
    pub(crate) is_last: bool,
    pub(crate) data: Bytes,
}

/// One datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Datagram {
    Source { way: Way, number: u32, body: Bytes },
    PieceFragment { way: Way, number: u32, part: PieceFragment, data: Bytes },
    Repair { way: Way, repair: Repair },
    Report(Report),
}

/// A part of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PieceFragment {
    pub(crate) index: u8,
    /// How many there are; one is the whole piece.
    pub(crate) total: u8,
}

impl PieceFragment {
    /// The number of parts of a body, in datagrams with this room; `None` if there is no room for
    /// any.
    pub(crate) fn total(body: usize, room: usize) -> Option<u8> {
        if SOURCE_HEAD + body <= room {
            return Some(1);
        }
        let total = body.div_ceil(room.checked_sub(PART_HEAD).filter(|room| *room > 0)?);
        u8::try_from(total).ok().filter(|total| usize::from(*total) <= PARTS_MAX)
    }

    /// Its part of a body.
    fn of(self, body: &Bytes) -> Bytes {
        let length = body.len().div_ceil(self.total.into());
        let begins = (usize::from(self.index) * length).min(body.len());
        body.slice(begins..(begins + length).min(body.len()))
    }

    /// Its datagram.
    pub(crate) fn datagram(self, way: Way, number: u32, body: Bytes) -> Datagram {
        match self.total {
            1 => Datagram::Source { way, number, body },
            _ => Datagram::PieceFragment { way, number, part: self, data: self.of(&body) },
        }
    }
}

/// Repair of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Repair {
    pub(crate) first: u32,
    pub(crate) pieces: u8,
    pub(crate) index: u8,
    pub(crate) total: u8,
    pub(crate) symbol: Bytes,
}

impl Repair {
    /// How long its datagram is.
    pub(crate) fn length(&self) -> usize {
        REPAIR_HEAD + self.symbol.len()
    }
}

/// The arrivals on a path since the last report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PathReport {
    pub(crate) path: u8,
    /// When the newest left that has come. Senders of former versions judge silence by it.
    pub(crate) newest: u32,
    /// How long it took, in µs; nothing new has come where both are zero.
    pub(crate) mean: u32,
    pub(crate) deviation: u32,
}

/// The report of a receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Rises with every report.
    pub(crate) number: u32,
    pub(crate) counts: Counts,
    pub(crate) paths: Vec<PathReport>,
}

impl Body {
    pub(crate) fn write(&self) -> Bytes {
        let mut body = BytesMut::with_capacity(BODY_HEAD + self.data.len());
        body.put_u32(self.sent);
        body.put_u16(self.deadline_ms);
        body.put_u8((u8::from(self.is_first) * FIRST) | (u8::from(self.is_last) * LAST));
        body.put_slice(&self.data);
        body.freeze()
    }

    /// `None` if it is too short.
    pub(crate) fn read(mut body: Bytes) -> Option<Self> {
        let sent = body.try_get_u32().ok()?;
        let deadline_ms = body.try_get_u16().ok()?;
        let flags = body.try_get_u8().ok()?;
        Some(Self { sent, deadline_ms, is_first: flags & FIRST != 0, is_last: flags & LAST != 0, data: body })
    }
}

/// A body as the code sees it, in `length` bytes; `None` where it is longer.
pub(crate) fn symbol(body: &[u8], length: usize) -> Option<Vec<u8>> {
    let mut symbol = Vec::with_capacity(length);
    symbol.put_u16(u16::try_from(body.len()).ok()?);
    symbol.put_slice(body);
    (symbol.len() <= length).then(|| {
        symbol.resize(length, 0);
        symbol
    })
}

/// The length of the symbols of a block whose longest body has `body` bytes.
pub(crate) fn symbol_length(body: usize) -> usize {
    (LENGTH + body).next_multiple_of(2)
}

/// The body in a symbol; `None` where there is none.
pub(crate) fn body_in(symbol: &[u8]) -> Option<Bytes> {
    let (length, rest) = symbol.split_first_chunk::<LENGTH>()?;
    let body = rest.get(..usize::from(u16::from_be_bytes(*length)))?;
    Some(Bytes::copy_from_slice(body))
}

impl Datagram {
    pub(crate) fn write(&self) -> Bytes {
        let mut out = BytesMut::new();
        let head = |out: &mut BytesMut, kind: u8, way: &Way, number: u32| {
            out.put_slice(&[kind, way.flow.0, (u8::from(way.is_again) * AGAIN) | way.path]);
            out.put_u32(number);
            out.put_u32(way.left);
            out.put_u16(way.least);
        };
        match self {
            Self::Source { way, number, body } => {
                out.reserve(SOURCE_HEAD + body.len());
                head(&mut out, SOURCE, way, *number);
                out.put_slice(body);
            }
            Self::PieceFragment { way, number, part, data } => {
                out.reserve(PART_HEAD + data.len());
                head(&mut out, PART, way, *number);
                out.put_slice(&[part.index, part.total]);
                out.put_slice(data);
            }
            Self::Repair { way, repair } => {
                out.reserve(REPAIR_HEAD + repair.symbol.len());
                head(&mut out, REPAIR, way, repair.first);
                out.put_slice(&[repair.pieces, repair.index, repair.total]);
                out.put_slice(&repair.symbol);
            }
            Self::Report(report) => {
                out.put_u8(REPORT);
                out.put_u32(report.number);
                report.counts.as_words().into_iter().for_each(|word| out.put_u64(word));
                for one in report.paths.iter().take(REPORTED_MAX) {
                    out.put_u8(one.path);
                    [one.newest, one.mean, one.deviation].into_iter().for_each(|word| out.put_u32(word));
                }
            }
        }
        out.freeze()
    }

    pub(crate) fn read(datagram: &Bytes) -> Result<Self, Malformed> {
        let kind = *datagram.first().ok_or(Malformed::Kind(None))?;
        let length = Malformed::Length { kind, length: datagram.len() };
        let rest = datagram.slice(1..);
        match kind {
            SOURCE => read_head(rest)
                .filter(|(_, _, body)| body.len() >= BODY_HEAD)
                .map(|(way, number, body)| Self::Source { way, number, body })
                .ok_or(length),
            PART => {
                let (way, number, mut rest) = read_head(rest).ok_or(length)?;
                let mut byte = || rest.try_get_u8().map_err(|_| length);
                let (index, total) = (byte()?, byte()?);
                if index >= total || !(2..=PARTS_MAX).contains(&usize::from(total)) {
                    return Err(Malformed::PieceFragment { index, total });
                }
                Ok(Self::PieceFragment { way, number, part: PieceFragment { index, total }, data: rest })
            }
            REPAIR => {
                let (way, first, mut rest) = read_head(rest).ok_or(length)?;
                let mut byte = || rest.try_get_u8().map_err(|_| length);
                let (pieces, index, total) = (byte()?, byte()?, byte()?);
                if pieces == 0 || index >= total {
                    return Err(Malformed::Block { pieces, index, total });
                }
                if rest.len() < LENGTH + BODY_HEAD || !rest.len().is_multiple_of(2) {
                    return Err(length);
                }
                Ok(Self::Repair { way, repair: Repair { first, pieces, index, total, symbol: rest } })
            }
            REPORT => read_report(rest).map(Self::Report).ok_or(length),
            other => Err(Malformed::Kind(Some(other))),
        }
    }
}

fn read_head(mut rest: Bytes) -> Option<(Way, u32, Bytes)> {
    let (flow, path) = (FlowId(rest.try_get_u8().ok()?), rest.try_get_u8().ok()?);
    let (is_again, path) = (path & AGAIN != 0, path & !AGAIN);
    let number = rest.try_get_u32().ok()?;
    let (left, least) = (rest.try_get_u32().ok()?, rest.try_get_u16().ok()?);
    Some((Way { flow, path, is_again, left, least }, number, rest))
}

fn read_report(mut rest: Bytes) -> Option<Report> {
    let number = rest.try_get_u32().ok()?;
    let mut words = [0; 7];
    for word in &mut words {
        *word = rest.try_get_u64().ok()?;
    }
    let mut paths = Vec::new();
    while rest.has_remaining() {
        let path = rest.try_get_u8().ok()?;
        let (newest, mean) = (rest.try_get_u32().ok()?, rest.try_get_u32().ok()?);
        let deviation = rest.try_get_u32().ok()?;
        if paths.len() == REPORTED_MAX {
            return None;
        }
        paths.push(PathReport { path, newest, mean, deviation });
    }
    Some(Report { number, counts: Counts::from_words(words), paths })
}

/// The number with these low 32 bits that is nearest to `near`.
pub(crate) fn expand(low: u32, near: u64) -> u64 {
    let ahead = low.wrapping_sub(near as u32) as i32;
    near.saturating_add_signed(ahead.into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WAY: Way = Way { flow: FlowId(1), path: 2, is_again: true, left: 77, least: 400 };

    fn body(data: &'static [u8]) -> Bytes {
        Body { sent: 5, deadline_ms: 300, is_first: true, is_last: false, data: Bytes::from_static(data) }.write()
    }

    #[test]
    fn what_is_written_is_read() {
        let repair = Repair { first: 9, pieces: 3, index: 1, total: 2, symbol: vec![1; 12].into() };
        let path = PathReport { path: 1, newest: 2, mean: 3, deviation: 4 };
        let counts = Counts::from_words([1, 2, 3, 4, 5, 6, 7]);
        for datagram in [
            Datagram::Source { way: WAY, number: 8, body: body(b"data") },
            Datagram::PieceFragment {
                way: WAY,
                number: 8,
                part: PieceFragment { index: 1, total: 2 },
                data: Bytes::from_static(b"ta"),
            },
            Datagram::Repair { way: WAY, repair },
            Datagram::Report(Report { number: 1, counts, paths: vec![path; 3] }),
        ] {
            let written = datagram.write();
            assert_eq!(Datagram::read(&written), Ok(datagram));
            assert!(is_stream(written[0]));
        }
        let read = Body::read(body(b"data")).unwrap();
        assert_eq!((read.is_first, read.is_last, &read.data[..]), (true, false, &b"data"[..]));
    }

    #[test]
    fn a_body_comes_out_of_its_symbol_and_repair_has_room_where_the_piece_has() {
        let body = body(b"some");
        let length = symbol_length(body.len());
        assert_eq!(body_in(&symbol(&body, length).unwrap()), Some(body.clone()));
        assert_eq!(symbol(&body, length - 2), None);
        assert_eq!(body_in(&[0xff, 0xff, 1]), None);
        for data in 0..50 {
            let largest = SOURCE_HEAD.max(REPAIR_HEAD) + symbol_length(BODY_HEAD + data);
            assert!(largest <= data + OVERHEAD && SOURCE_HEAD + BODY_HEAD + data <= data + OVERHEAD);
        }
    }

    #[test]
    fn a_body_that_is_too_large_leaves_in_parts_that_fit_and_are_the_whole() {
        let body = Bytes::from_iter(0..=255);
        assert_eq!(PieceFragment::total(body.len(), SOURCE_HEAD + 256), Some(1));
        for room in 20..SOURCE_HEAD + 256 {
            let total = PieceFragment::total(body.len(), room).unwrap();
            let datagrams =
                (0..total).map(|index| PieceFragment { index, total }.datagram(WAY, 8, body.clone()).write());
            let parts = datagrams.map(|datagram| {
                assert!(datagram.len() <= room, "{} of {room}", datagram.len());
                let Ok(Datagram::PieceFragment { data, .. }) = Datagram::read(&datagram) else {
                    panic!("{datagram:?}")
                };
                data
            });
            assert_eq!(parts.collect::<Vec<_>>().concat(), body);
        }
        assert_eq!(PieceFragment::total(body.len(), PART_HEAD), None);
    }

    #[test]
    fn a_number_is_the_nearest_with_its_low_bits() {
        let near = (3 << 32) + 5;
        for number in [near, near + 1_000, near - 6, near - 2_000_000_000, near + 2_000_000_000] {
            assert_eq!(expand(number as u32, near), number);
        }
        assert_eq!(expand(u32::MAX, 0), 0, "nothing is before the first");
    }

    proptest! {
        #[test]
        fn what_can_be_read_is_written_the_same(bytes in proptest::collection::vec(any::<u8>(), 0..90), kind in 4_u8..10) {
            let datagram = Bytes::from([&[kind][..], &bytes].concat());
            if let Ok(read) = Datagram::read(&datagram) {
                prop_assert_eq!(read.write(), datagram);
            }
        }
    }
}
