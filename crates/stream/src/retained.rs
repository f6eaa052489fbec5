//! What was sent and may have to be sent again.

use std::collections::BTreeMap;

use bytes::Bytes;
use fairpath_core::{PathId, PathMap, Timestamp};

use crate::config::FlowId;

/// Which piece: its flow and its number there.
pub(crate) type PieceId = (FlowId, u64);

/// A piece until its deadline, or until it has arrived.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub(crate) body: Bytes,
    pub(crate) queued_at: Timestamp,
    pub(crate) due: Timestamp,
    /// On how many paths it is on its way.
    on_its_way: u32,
}

/// A packet that left, of which it is not known what became.
#[derive(Clone, Copy, Debug)]
struct Left {
    piece: Option<PieceId>,
    at: Timestamp,
    /// Whether what it carries was sent again, so that its loss orders nothing.
    is_given_up: bool,
}

/// What a packet was that was acknowledged or lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gone {
    pub(crate) sent_at: Timestamp,
    /// What it carried that has to be sent again.
    pub(crate) again: Option<PieceId>,
}

/// Pieces by their numbers, and the packets that they are in.
#[derive(Debug, Default)]
pub(crate) struct Retained {
    pieces: BTreeMap<PieceId, Kept>,
    paths: PathMap<BTreeMap<u64, Left>>,
    bytes: usize,
}

impl Retained {
    pub(crate) fn keep(&mut self, piece: PieceId, body: Bytes, queued_at: Timestamp, due: Timestamp) {
        self.bytes += body.len();
        self.pieces.insert(piece, Kept { body, queued_at, due, on_its_way: 0 });
    }

    pub(crate) fn get(&self, piece: PieceId) -> Option<&Kept> {
        self.pieces.get(&piece)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn on_sent(&mut self, piece: Option<PieceId>, path: PathId, number: u64, now: Timestamp) {
        if let Some(kept) = piece.and_then(|piece| self.pieces.get_mut(&piece)) {
            kept.on_its_way += 1;
        }
        if !self.paths.contains(path) {
            self.paths.insert(path, BTreeMap::new());
        }
        if let Some(packets) = self.paths.get_mut(path) {
            packets.insert(number, Left { piece, at: now, is_given_up: false });
        }
    }

    /// The packet arrived; `None` where it was none of ours.
    pub(crate) fn on_acked(&mut self, path: PathId, number: u64) -> Option<Gone> {
        let Left { piece, at, .. } = self.paths.get_mut(path)?.remove(&number)?;
        if let Some(kept) = piece.and_then(|piece| self.pieces.remove(&piece)) {
            self.bytes -= kept.body.len();
        }
        Some(Gone { sent_at: at, again: None })
    }

    /// The packet was lost.
    pub(crate) fn on_lost(&mut self, path: PathId, number: u64) -> Option<Gone> {
        let left = self.paths.get_mut(path)?.remove(&number)?;
        Some(Gone { sent_at: left.at, again: self.given_up(left) })
    }

    /// The path fell silent: what is on its way there goes elsewhere too. An answer that comes late still counts, and so
    /// does a loss; that orders nothing again.
    pub(crate) fn on_silent(&mut self, path: PathId) -> Vec<PieceId> {
        let Some(packets) = self.paths.get_mut(path) else { return Vec::new() };
        let take = |left: &mut Left| core::mem::replace(left, Left { is_given_up: true, ..*left });
        let taken: Vec<Left> = packets.values_mut().map(take).collect();
        taken.into_iter().filter_map(|left| self.given_up(left)).collect()
    }

    /// Nothing more is heard of what is on its way on the path.
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

    /// Forgets what is past its deadline.
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
    const PATHS: [PathId; 2] = [PathId::new(0), PathId::new(1)];

    fn retained() -> Retained {
        let mut retained = Retained::default();
        retained.keep(PIECE, Bytes::from_static(b"body"), Timestamp::ZERO, Timestamp::from_millis(300));
        retained.on_sent(Some(PIECE), PATHS[0], 1, Timestamp::ZERO);
        retained
    }

    fn again(gone: Option<Gone>) -> Option<PieceId> {
        gone.expect("it was ours").again
    }

    #[test]
    fn a_piece_is_sent_again_when_its_last_copy_is_lost_and_once() {
        let mut retained = retained();
        retained.on_sent(Some(PIECE), PATHS[1], 1, Timestamp::ZERO);
        assert_eq!(again(retained.on_lost(PATHS[0], 1)), None, "a copy is on its way");
        assert_eq!(again(retained.on_lost(PATHS[1], 1)), Some(PIECE));
        assert_eq!(retained.on_lost(PATHS[1], 1), None);
    }

    #[test]
    fn what_a_silent_path_had_goes_elsewhere_and_a_late_answer_counts() {
        let mut retained = retained();
        assert_eq!(retained.on_silent(PATHS[0]), [PIECE]);
        assert_eq!(retained.on_silent(PATHS[0]), []);
        retained.on_sent(Some(PIECE), PATHS[1], 5, Timestamp::ZERO);
        assert_eq!(again(retained.on_acked(PATHS[0], 1)), None);
        assert!(retained.get(PIECE).is_none() && retained.bytes() == 0, "it has arrived");
        assert_eq!(again(retained.on_lost(PATHS[1], 5)), None);
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
