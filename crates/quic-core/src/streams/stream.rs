//! One stream, both ways, and sums over all.

use super::id::StreamKind;
use super::recv::RecvHalf;
use super::send::SendHalf;

/// How much every stream may have written and not sent, in bytes, however much others have.
pub(super) const UNSENT_EACH: u64 = 64 << 10;

/// How much one may have so where few share [`UNSENT_ALL`], in bytes.
const UNSENT_ONE: u64 = 1 << 20;

/// The bound that streams with much unsent share, in bytes; each has [`UNSENT_EACH`] at least.
const UNSENT_ALL: u64 = 4 << 20;

/// From here on a stream takes a share of [`UNSENT_ALL`], in bytes: one that sends little does not.
const MUCH: u64 = UNSENT_EACH / 2;

/// One stream, both ways.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) send: SendHalf,
    pub(super) recv: RecvHalf,
    /// Unknown of a stream of the peer until it comes.
    pub(super) kind: Option<StreamKind>,
    /// The application waits for something to read.
    pub(super) wants_to_read: bool,
    /// It waits for room.
    pub(super) wants_to_write: bool,
    /// Whether the application knows that all arrived.
    pub(super) is_finish_told: bool,
}

impl Stream {
    /// How much may be written now, with `much` streams that have much unsent data.
    pub(super) fn room(&self, much: usize) -> u64 {
        bound(much).saturating_sub(self.send.unsent())
    }

    /// Whether an application that waits is to be woken: at half of what it may have unsent. Were that not its own share,
    /// all would be woken for the room that the first of them takes.
    pub(super) fn has_room(&self, much: usize) -> bool {
        self.send.unsent() < bound(much) / 2
    }
}

/// Limit on the unsent data of a stream, with `much` streams that have much of it.
fn bound(much: usize) -> u64 {
    (UNSENT_ALL / much.max(1) as u64).clamp(UNSENT_EACH, UNSENT_ONE)
}

/// Sums over all streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    pub(super) unsent: u64,
    pub(super) unacked: u64,
    /// How many have something that was never sent, and credit of their own for it.
    pub(super) new: usize,
    /// How much more the peer takes on these, by their own credit.
    pub(super) credit: u64,
    /// How many have [`MUCH`] unsent, or an application that waits for room.
    pub(super) much: usize,
    /// How many have an application that waits for room.
    pub(super) full: usize,
    /// How many have not told the peer all that they have to tell, or do not know that it knows.
    pub(super) unsettled: usize,
}

impl Sums {
    pub(super) fn subtract(&mut self, stream: &Stream) {
        let Self { unsent, unacked, new, much, credit, full, unsettled } = Self::of(stream);
        self.unsent -= unsent;
        self.unacked -= unacked;
        self.new -= new;
        self.credit -= credit;
        self.much -= much;
        self.full -= full;
        self.unsettled -= unsettled;
    }

    pub(super) fn add(&mut self, stream: &Stream) {
        let Self { unsent, unacked, new, much, credit, full, unsettled } = Self::of(stream);
        self.unsent += unsent;
        self.unacked += unacked;
        self.new += new;
        self.credit += credit;
        self.much += much;
        self.full += full;
        self.unsettled += unsettled;
    }

    fn of(stream: &Stream) -> Self {
        let send = &stream.send;
        Self {
            unsent: send.unsent(),
            unacked: send.unacked(),
            new: usize::from(send.has_new()),
            credit: if send.has_new() { send.credit_left() } else { 0 },
            much: usize::from(stream.wants_to_write || send.unsent() >= MUCH),
            full: usize::from(stream.wants_to_write),
            unsettled: usize::from(send.is_unsettled()),
        }
    }
}
