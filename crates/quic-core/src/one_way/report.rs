//! The wire format of delay reports, in QUIC datagrams. The first byte is the kind.
//!
//! Kind 1 asks for reports. Kind 2 is a report: its number (4 bytes) and the time of the first arrival
//! (8 bytes, in µs from an unknown zero). Then come the arrivals, each with its mark (8 bytes) and how
//! much later it came (4 bytes, in µs). Numbers are big-endian.

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};

use super::marks::Mark;

const ASK: u8 = 1;
const REPORT: u8 = 2;
const HEADER: usize = 13;
const ENTRY: usize = 12;

/// How many arrivals are in a report at most: a hundred show a queue of 50 ms as well as a thousand would.
pub(super) const ENTRIES_MAX: usize = 128;

/// One datagram.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Message {
    Ask,
    Report(Report),
}

/// Arrivals and their times.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Report {
    /// Rises with every report.
    pub(super) number: u32,
    /// In order of coming: in µs from the peer's zero.
    pub(super) came: Vec<(Mark, u64)>,
}

impl Report {
    /// As much of what came as has `room` bytes, by the ranks of the marks; `None` where there is nothing to report.
    /// Later arrivals come later in `came`.
    pub(super) fn new(number: u32, mut came: Vec<(Mark, u64)>, room: usize) -> Option<Self> {
        let entries_max = (room.saturating_sub(HEADER) / ENTRY).min(ENTRIES_MAX);
        let mut rank = 0;
        while came.len() > entries_max {
            came.retain(|(mark, _)| mark.rank() >= rank);
            if rank == u64::BITS {
                came.truncate(entries_max);
            }
            rank += 1;
        }
        (!came.is_empty()).then_some(Self { number, came })
    }
}

impl Message {
    pub(crate) fn write(&self) -> Bytes {
        let mut datagram = BytesMut::new();
        match self {
            Self::Ask => datagram.put_u8(ASK),
            Self::Report(report) => {
                let first = report.came.first().map_or(0, |(_, at)| *at);
                datagram.put_u8(REPORT);
                datagram.put_u32(report.number);
                datagram.put_u64(first);
                for (mark, at) in &report.came {
                    datagram.put_u64(mark.0);
                    datagram.put_u32(u32::try_from(at.saturating_sub(first)).unwrap_or(u32::MAX));
                }
            }
        }
        datagram.freeze()
    }

    /// The message in a datagram; `None` where it is of another kind or not whole.
    pub(crate) fn read(mut datagram: &[u8]) -> Option<Self> {
        match datagram.try_get_u8().ok()? {
            ASK => datagram.is_empty().then_some(Self::Ask),
            REPORT => {
                let number = datagram.try_get_u32().ok()?;
                let first = datagram.try_get_u64().ok()?;
                let entry = |mut entry: &[u8]| (Mark(entry.get_u64()), first.saturating_add(entry.get_u32().into()));
                let entries = datagram.chunks_exact(ENTRY);
                entries
                    .remainder()
                    .is_empty()
                    .then(|| Self::Report(Report { number, came: entries.map(entry).collect() }))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(count: u64) -> Report {
        Report { number: 7, came: (0..count).map(|at| (Mark(at << 40), 5_000_000 + 100 * at)).collect() }
    }

    #[test]
    fn what_is_written_is_read() {
        for message in [Message::Ask, Message::Report(report(1)), Message::Report(report(90))] {
            assert_eq!(Message::read(&message.write()), Some(message));
        }
    }

    #[test]
    fn what_is_not_whole_is_not_read() {
        let whole = Message::Report(report(3)).write();
        assert!((0..whole.len()).all(|length| {
            // Cut between two entries it is a shorter report.
            let cut = Message::read(&whole[..length]);
            cut.is_none() || (length >= HEADER && (length - HEADER).is_multiple_of(ENTRY))
        }));
        assert_eq!(Message::read(&[9, 0, 0]), None);
        assert_eq!(Message::read(&[]), None);
    }

    #[test]
    fn a_report_fits_and_has_the_marks_of_the_highest_ranks() {
        let thinned = Report::new(1, report(1000).came, 1200).unwrap();
        // 98 entries fit; the 63 of 1000 numbers from 0 on that are multiples of 16.
        assert_eq!(thinned.came.len(), 63);
        assert!(thinned.came.iter().all(|(mark, _)| mark.rank() >= 44));
        // As no tags of datagrams are.
        let alike = Report::new(1, vec![(Mark(0), 7); 1000], 1200).unwrap();
        assert_eq!(alike.came.len(), 98);
        assert!(Message::Report(thinned).write().len() <= 1200);
        assert_eq!(Report::new(1, Vec::new(), 1200), None);
    }
}
