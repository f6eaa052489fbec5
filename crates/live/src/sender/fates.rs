//! The fates of sent packets.

use fairpath_core::{PathId, Timestamp};

use super::{Cargo, Sender, To};
use crate::lane::Lane;
use crate::retained::PieceId;
use crate::wire::{Report, label};

impl Sender {
    /// The datagram left as packet `number` of a path.
    pub fn on_sent(&mut self, cargo: Cargo, path: PathId, number: u64, now: Timestamp) {
        self.retained.on_sent(cargo.piece(), path, number, now);
    }

    /// It did not leave, or it is not known in which packet.
    pub fn on_unsent(&mut self, cargo: Cargo, now: Timestamp) {
        if let Some((piece, _)) = cargo.piece() {
            self.again.push_back((piece, now));
        }
    }

    /// The packet was acknowledged.
    pub fn on_acked(&mut self, path: PathId, number: u64, now: Timestamp) {
        let Some(gone) = self.retained.on_acked(path, number) else { return };
        gone.again.into_iter().for_each(|piece| self.send_again(piece, now));
        self.budget.on_arrived(fairpath_core::ByteCount::new(gone.completes as u64));
        if let Some(lane) = self.spread.lanes.get_mut(&path) {
            lane.on_answer(now.since(gone.sent_at));
        }
        match gone.was_lost {
            true => self.spread.on_late(path, gone.sent_at, now),
            false => self.spread.on_acked(path, now),
        }
    }

    /// The packet was lost.
    pub fn on_lost(&mut self, path: PathId, number: u64, now: Timestamp) {
        let Some(gone) = self.retained.on_lost(path, number) else { return };
        self.spread.on_lost(path, gone.sent_at, now);
        gone.again.into_iter().for_each(|piece| self.send_again(piece, now));
    }

    /// The packets in flight on the path will not be accounted for.
    pub fn on_discarded(&mut self, path: PathId, now: Timestamp) {
        self.retained.on_path_gone(path).into_iter().for_each(|piece| self.send_again(piece, now));
    }

    /// Queues a lost piece once more, if it can still be in time.
    fn send_again(&mut self, piece: PieceId, now: Timestamp) {
        let quickest = self.spread.quickest(now).unwrap_or_default();
        if self.retained.get(piece).is_some_and(|kept| kept.due > now + quickest) {
            self.again.push_back((piece, now));
        }
    }

    /// The peer reported its arrivals.
    pub fn on_report(&mut self, report: &Report, now: Timestamp) {
        let is_newer = |newest: u32| report.number.wrapping_sub(newest) as i32 > 0;
        if !self.newest_report.is_none_or(is_newer) {
            return;
        }
        (self.newest_report, self.peer) = (Some(report.number), Some(report.counts));
        for one in &report.paths {
            // Paths are numbered on and on, and there are a few at a time.
            let named = self.spread.lanes.iter_mut().rev().find(|(path, _)| label(**path) == one.path);
            if let Some((_, lane)) = named {
                lane.track.on_report(one, now);
            }
        }
    }

    /// These paths fell silent.
    pub(super) fn leave(&mut self, fell_silent: &[PathId], now: Timestamp) {
        for path in fell_silent {
            self.retained.on_silent(*path).into_iter().for_each(|piece| self.send_again(piece, now));
        }
    }

    /// Sends a copy of overdue packets of a path elsewhere, if it can be in time. They may be lost,
    /// or stand in a new queue; neither is known before another round trip has passed.
    pub(super) fn leave_overdue(&mut self, now: Timestamp) {
        let overdue = |(path, lane): (&PathId, &Lane)| {
            let until = Timestamp::ZERO + now.since(Timestamp::ZERO).checked_sub(lane.patience())?;
            self.retained.oldest(*path).filter(|at| *at <= until).map(|_| (*path, until))
        };
        let overdue: Vec<(PathId, Timestamp)> = self.spread.lanes.iter().filter_map(overdue).collect();
        for (path, until) in overdue {
            let (overdue, pieces) = self.retained.take_overdue(path, until);
            if let Some(lane) = self.spread.lanes.get_mut(&path) {
                lane.on_no_answer(overdue);
            }
            for piece in pieces {
                self.copies.push_back((piece, To::Instead(path), now));
            }
        }
    }

    /// When the next piece is overdue.
    pub(super) fn overdue_at(&self) -> Option<Timestamp> {
        let at = |(path, lane): (&PathId, &Lane)| Some(self.retained.oldest(*path)? + lane.patience());
        self.spread.lanes.iter().filter_map(at).min()
    }
}
