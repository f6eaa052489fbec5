//! The pieces that were sent and may have to be sent again.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use fairpath_core::{PathId, PathMap, Timestamp};

use crate::config::FlowId;
use crate::wire::PieceFragment;

/// The identity of a piece: its flow and its number there.
pub(crate) type PieceId = (FlowId, u64);

/// A piece until its deadline, or until it has arrived.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub(crate) body: Bytes,
    pub(crate) queued_at: Timestamp,
    pub(crate) due: Timestamp,
    /// How many packets are on their way with it, or with a part of it.
    on_its_way: u32,
    /// The number of parts, and a bit set of those that have arrived, if it left in parts.
    parts: (u8, u64),
}

impl Kept {
    /// A packet with this of it arrived; whether all has.
    fn has_arrived(&mut self, part: PieceFragment) -> bool {
        self.on_its_way = self.on_its_way.saturating_sub(1);
        let (total, came) = if self.parts.0 == part.total { self.parts } else { (part.total, 0) };
        self.parts = (total, came | 1 << part.index);
        self.parts.1.count_ones() == u32::from(total)
    }
}

/// A packet whose fate is not known yet.
#[derive(Clone, Copy, Debug)]
struct Left {
    piece: Option<PieceId>,
    part: PieceFragment,
    at: Timestamp,
    /// Whether its piece was sent again, so that its loss causes no other retransmission.
    is_given_up: bool,
}

/// The state of a packet that was acknowledged or lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gone {
    pub(crate) sent_at: Timestamp,
    /// The piece that it carried and that has to be sent again.
    pub(crate) again: Option<PieceId>,
    /// Whether it had been taken for lost.
    pub(crate) was_lost: bool,
    /// The bytes of the piece that is whole at the peer with it, for the first time.
    pub(crate) completes: usize,
}

/// How many packets of a path are remembered that were taken for lost: where paths reorder, some of them come.
const LOST_MAX: usize = 256;

/// Packets of one path.
#[derive(Debug, Default)]
struct OnPath {
    packets: BTreeMap<u64, Left>,
    lost: BTreeMap<u64, Left>,
    /// Those that have not been found overdue, the oldest first; some may be gone.
    awaited: VecDeque<(u64, Timestamp)>,
}

/// Pieces by their numbers, and the packets that they are in.
#[derive(Debug, Default)]
pub(crate) struct Retained {
    pieces: BTreeMap<PieceId, Kept>,
    paths: PathMap<OnPath>,
    bytes: usize,
}

impl Retained {
    pub(crate) fn keep(&mut self, piece: PieceId, body: Bytes, queued_at: Timestamp, due: Timestamp) {
        self.bytes += body.len();
        self.pieces.insert(piece, Kept { body, queued_at, due, on_its_way: 0, parts: (1, 0) });
    }

    pub(crate) fn get(&self, piece: PieceId) -> Option<&Kept> {
        self.pieces.get(&piece)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// A packet left, with a piece or a part of it, or with repair.
    pub(crate) fn on_sent(
        &mut self,
        piece: Option<(PieceId, PieceFragment)>,
        path: PathId,
        number: u64,
        now: Timestamp,
    ) {
        let (piece, part) =
            piece.map_or((None, PieceFragment { index: 0, total: 1 }), |(piece, part)| (Some(piece), part));
        if let Some(kept) = piece.and_then(|piece| self.pieces.get_mut(&piece)) {
            kept.on_its_way += 1;
        }
        if !self.paths.contains(path) {
            self.paths.insert(path, OnPath::default());
        }
        if let Some(on_path) = self.paths.get_mut(path) {
            on_path.packets.insert(number, Left { piece, part, at: now, is_given_up: false });
            if piece.is_some() {
                on_path.awaited.push_back((number, now));
            }
        }
    }

    /// When the oldest packet left on the path whose piece is waited for, and that has not been taken as overdue.
    pub(crate) fn oldest(&self, path: PathId) -> Option<Timestamp> {
        self.paths.get(path)?.awaited.front().map(|(_, at)| *at)
    }

    /// How many pieces left on the path by `until` and are still waited for, and those that have no copy on its way
    /// elsewhere. Each is named only once.
    pub(crate) fn take_overdue(&mut self, path: PathId, until: Timestamp) -> (usize, Vec<PieceId>) {
        let Some(OnPath { packets, awaited, .. }) = self.paths.get_mut(path) else { return (0, Vec::new()) };
        let overdue = awaited.iter().take_while(|(_, at)| *at <= until).count();
        let piece = |(number, _)| packets.get(&number).filter(|left| !left.is_given_up)?.piece;
        let pieces: Vec<PieceId> = awaited.drain(..overdue).filter_map(piece).collect();
        self.tidy(path);
        // Pieces with a copy in flight elsewhere do not depend on this path alone.
        let is_alone = |piece: &PieceId| self.pieces.get(piece).is_some_and(|kept| kept.on_its_way == 1);
        (pieces.len(), pieces.into_iter().filter(is_alone).collect())
    }

    /// Nothing is waited for any more of what is gone.
    fn tidy(&mut self, path: PathId) {
        let Some(OnPath { packets, awaited, .. }) = self.paths.get_mut(path) else { return };
        while awaited.front().is_some_and(|(number, _)| packets.get(number).is_none_or(|left| left.is_given_up)) {
            awaited.pop_front();
        }
    }

    /// The packet arrived; `None` if it is unknown.
    pub(crate) fn on_acked(&mut self, path: PathId, number: u64) -> Option<Gone> {
        let on_path = self.paths.get_mut(path)?;
        let awaited = on_path.packets.remove(&number);
        let was_lost = awaited.is_none();
        let Left { piece, part, at, .. } = awaited.or_else(|| on_path.lost.remove(&number))?;
        self.tidy(path);
        let kept = self.bytes;
        let again = piece.and_then(|piece| self.on_arrived(piece, part));
        Some(Gone { sent_at: at, again, was_lost, completes: kept - self.bytes })
    }

    /// A piece arrived, or a part of it; the piece where another part was lost and nothing of it is on its way.
    fn on_arrived(&mut self, piece: PieceId, part: PieceFragment) -> Option<PieceId> {
        let kept = self.pieces.get_mut(&piece)?;
        if kept.has_arrived(part) {
            self.bytes -= kept.body.len();
            self.pieces.remove(&piece);
            return None;
        }
        (kept.on_its_way == 0).then_some(piece)
    }

    /// The packet was lost.
    pub(crate) fn on_lost(&mut self, path: PathId, number: u64) -> Option<Gone> {
        let on_path = self.paths.get_mut(path)?;
        let left = on_path.packets.remove(&number)?;
        on_path.lost.insert(number, left);
        if on_path.lost.len() > LOST_MAX {
            on_path.lost.pop_first();
        }
        self.tidy(path);
        Some(Gone { sent_at: left.at, again: self.given_up(left), was_lost: false, completes: 0 })
    }

    /// The path fell silent: what is on its way there goes elsewhere too. An answer that comes late still counts, and so
    /// does a loss; that orders nothing again.
    pub(crate) fn on_silent(&mut self, path: PathId) -> Vec<PieceId> {
        let Some(OnPath { packets, awaited, .. }) = self.paths.get_mut(path) else { return Vec::new() };
        awaited.clear();
        let take = |left: &mut Left| core::mem::replace(left, Left { is_given_up: true, ..*left });
        let taken: Vec<Left> = packets.values_mut().map(take).collect();
        taken.into_iter().filter_map(|left| self.given_up(left)).collect()
    }

    /// The packets in flight on the path will not be accounted for.
    pub(crate) fn on_path_gone(&mut self, path: PathId) -> Vec<PieceId> {
        let lost = self.on_silent(path);
        self.paths.remove(path);
        lost
    }

    fn given_up(&mut self, left: Left) -> Option<PieceId> {
        if left.is_given_up {
            return None;
        }
        let kept = self.pieces.get_mut(&left.piece?)?;
        kept.on_its_way = kept.on_its_way.saturating_sub(1);
        left.piece.filter(|_| kept.on_its_way == 0)
    }

    /// Forgets pieces past their deadline.
    pub(crate) fn forget(&mut self, now: Timestamp) {
        self.pieces.retain(|_, kept| {
            let stays = kept.due > now;
            self.bytes -= if stays { 0 } else { kept.body.len() };
            stays
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIECE: PieceId = (FlowId(0), 7);
    const WHOLE: PieceFragment = PieceFragment { index: 0, total: 1 };
    const PATHS: [PathId; 2] = [PathId::new(0), PathId::new(1)];

    fn retained() -> Retained {
        let mut retained = Retained::default();
        retained.keep(PIECE, Bytes::from_static(b"body"), Timestamp::ZERO, Timestamp::from_millis(300));
        retained.on_sent(Some((PIECE, WHOLE)), PATHS[0], 1, Timestamp::ZERO);
        retained
    }

    fn again(gone: Option<Gone>) -> Option<PieceId> {
        gone.expect("it was ours").again
    }

    #[test]
    fn a_piece_is_sent_again_when_its_last_copy_is_lost_and_once() {
        let mut retained = retained();
        retained.on_sent(Some((PIECE, WHOLE)), PATHS[1], 1, Timestamp::ZERO);
        assert_eq!(again(retained.on_lost(PATHS[0], 1)), None, "a copy is on its way");
        assert_eq!(again(retained.on_lost(PATHS[1], 1)), Some(PIECE));
        assert_eq!(retained.on_lost(PATHS[1], 1), None);
    }

    #[test]
    fn what_a_silent_path_had_goes_elsewhere_and_a_late_answer_counts() {
        let mut retained = retained();
        assert_eq!(retained.on_silent(PATHS[0]), [PIECE]);
        assert_eq!(retained.on_silent(PATHS[0]), []);
        retained.on_sent(Some((PIECE, WHOLE)), PATHS[1], 5, Timestamp::ZERO);
        assert_eq!(again(retained.on_acked(PATHS[0], 1)), None);
        assert!(retained.get(PIECE).is_none() && retained.bytes() == 0, "it has arrived");
        assert_eq!(again(retained.on_lost(PATHS[1], 5)), None);
    }

    #[test]
    fn what_was_taken_for_lost_and_arrives_is_not_sent_again() {
        let mut retained = retained();
        assert_eq!(again(retained.on_lost(PATHS[0], 1)), Some(PIECE));
        let gone = retained.on_acked(PATHS[0], 1).expect("it was ours");
        assert!(gone.was_lost && retained.get(PIECE).is_none(), "{gone:?}");
        assert_eq!(retained.on_acked(PATHS[0], 1), None, "once");
    }

    #[test]
    fn what_has_no_answer_is_overdue_and_an_answer_or_a_copy_ends_the_wait() {
        let until = Timestamp::from_millis(100);
        let mut overdue = retained();
        assert_eq!(overdue.oldest(PATHS[0]), Some(Timestamp::ZERO));
        assert_eq!(overdue.take_overdue(PATHS[0], until), (1, vec![PIECE]));
        assert_eq!((overdue.take_overdue(PATHS[0], until), overdue.oldest(PATHS[0])), ((0, vec![]), None));
        assert_eq!(again(overdue.on_lost(PATHS[0], 1)), Some(PIECE), "its loss orders it, too");
        let mut answered = retained();
        answered.on_acked(PATHS[0], 1);
        assert_eq!(answered.oldest(PATHS[0]), None);
        let mut copied = retained();
        copied.on_sent(Some((PIECE, WHOLE)), PATHS[1], 1, Timestamp::ZERO);
        assert_eq!(copied.take_overdue(PATHS[0], until), (1, vec![]));
    }

    #[test]
    fn a_piece_in_parts_has_arrived_when_all_have_and_is_sent_again_when_one_is_lost() {
        let halves = || {
            let mut retained = Retained::default();
            retained.keep(PIECE, Bytes::from_static(b"body"), Timestamp::ZERO, Timestamp::from_millis(300));
            for index in 0..2 {
                let half = Some((PIECE, PieceFragment { index, total: 2 }));
                retained.on_sent(half, PATHS[0], index.into(), Timestamp::ZERO);
            }
            retained
        };
        let mut both = halves();
        assert_eq!(again(both.on_acked(PATHS[0], 0)), None);
        assert!(both.get(PIECE).is_some());
        assert_eq!(again(both.on_acked(PATHS[0], 1)), None);
        assert_eq!((both.get(PIECE).is_none(), both.bytes()), (true, 0));
        let mut second_lost = halves();
        second_lost.on_acked(PATHS[0], 0);
        assert_eq!(again(second_lost.on_lost(PATHS[0], 1)), Some(PIECE));
        let mut first_lost = halves();
        assert_eq!(again(first_lost.on_lost(PATHS[0], 0)), None, "the other half may be lost, too");
        assert_eq!(again(first_lost.on_acked(PATHS[0], 1)), Some(PIECE));
    }

    #[test]
    fn nothing_is_kept_beyond_its_deadline() {
        let mut retained = retained();
        retained.forget(Timestamp::from_millis(299));
        assert_eq!(retained.bytes(), 4);
        retained.forget(Timestamp::from_millis(300));
        assert_eq!((retained.bytes(), again(retained.on_lost(PATHS[0], 1))), (0, None));
    }
}
