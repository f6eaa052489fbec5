//! The next datagram to leave, and its path.

use core::time::Duration;

use fairpath_core::{PathId, Timestamp};
use fairpath_engine::Due;

use super::{Cargo, FlowId, Outgoing, Sender, To, micros};
use crate::retained::PieceId;
use crate::spread::Spread;
use crate::wire::{Datagram, PieceFragment, Repair, Way, label};

/// Why a piece leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    New,
    Again,
    Copy,
    /// To measure the path.
    Probe,
}

impl Sender {
    /// The next datagram, on a path that `may_send`.
    pub fn next(&mut self, may_send: impl Fn(PathId) -> bool, now: Timestamp) -> Option<Outgoing> {
        self.next_rest(&may_send, now)
            .or_else(|| self.next_again(&may_send, now))
            .or_else(|| self.next_copy(&may_send, now))
            .or_else(|| self.next_new(&may_send, now))
            .or_else(|| self.next_repair(&may_send, now))
    }

    /// A piece that has not arrived, and whose deadline is after `arrives`; it could leave `since` then, or as it was queued.
    fn waiting(&self, piece: PieceId, arrives: Timestamp, since: Option<Timestamp>, now: Timestamp) -> Option<Due> {
        let kept = self.retained.get(piece).filter(|kept| kept.due > arrives)?;
        let held = now.since(since.unwrap_or(kept.queued_at));
        Some(Due { deadline: kept.due.since(kept.queued_at), left: kept.due.since(now), held })
    }

    /// The path for data that is due then; not `except`, which has the original.
    fn choose(
        &mut self,
        due: Due,
        except: Option<PathId>,
        may_send: &impl Fn(PathId) -> bool,
        now: Timestamp,
    ) -> Option<PathId> {
        self.spread.choose(due, self.waits, except, may_send, now)
    }

    /// The path for a piece. If the paths that answer have had no room for long, a silent one.
    fn path_for(&mut self, due: Due, may_send: &impl Fn(PathId) -> bool, now: Timestamp) -> Option<PathId> {
        let last_resort =
            |spread: &Spread| spread.last_resort(due.left, may_send).filter(|_| spread.scheduler.is_old(&due));
        self.choose(due, None, may_send, now).or_else(|| last_resort(&self.spread))
    }

    /// The remaining parts of a piece that has begun to leave. It is worth nothing without them.
    fn next_rest(&mut self, may_send: &impl Fn(PathId) -> bool, now: Timestamp) -> Option<Outgoing> {
        while let Some((piece, part, kind, since)) = self.rest.front().copied() {
            let Some(due) = self.waiting(piece, now, Some(since), now) else {
                self.rest.pop_front();
                continue;
            };
            let path = self.choose(due, None, may_send, now)?;
            self.rest.pop_front();
            return self.leave_as(piece, part, path, kind, now);
        }
        None
    }

    fn next_again(&mut self, may_send: &impl Fn(PathId) -> bool, now: Timestamp) -> Option<Outgoing> {
        while let Some((piece, since)) = self.again.front().copied() {
            // It may have arrived, or is too late.
            let Some(due) = self.waiting(piece, now, Some(since), now) else {
                self.again.pop_front();
                continue;
            };
            let path = self.path_for(due, may_send, now)?;
            self.again.pop_front();
            self.tally.again += 1;
            return self.source(piece, path, Kind::Again, now);
        }
        None
    }

    fn next_copy(&mut self, may_send: &impl Fn(PathId) -> bool, now: Timestamp) -> Option<Outgoing> {
        while let Some((piece, to, since)) = self.copies.front().copied() {
            // Copies that measure a path do so at any age.
            let is_worth = |due: &Due| !matches!(to, To::Other(_)) || due.left >= half(due.deadline);
            let Some(due) = self.waiting(piece, now, Some(since), now).filter(is_worth) else {
                self.copies.pop_front();
                continue;
            };
            let path = match to {
                To::Only(path) => Some(path).filter(|path| may_send(*path)),
                // All that is left costs more than a copy is worth.
                To::Other(path) | To::Instead(path) if !self.spread.has_beside(path) => {
                    self.copies.pop_front();
                    continue;
                }
                To::Other(path) | To::Instead(path) => self.choose(urgent(due), Some(path), may_send, now),
            };
            if path.is_none() && !matches!(to, To::Only(_)) {
                return None;
            }
            self.copies.pop_front();
            if let Some(path) = path {
                let kind = match to {
                    To::Only(_) => Kind::Probe,
                    To::Other(_) => Kind::Copy,
                    To::Instead(_) => Kind::Again,
                };
                match kind {
                    Kind::Again => self.tally.again += 1,
                    _ => self.tally.copies += 1,
                }
                return self.source(piece, path, kind, now);
            }
        }
        None
    }

    fn next_new(&mut self, may_send: &impl Fn(PathId) -> bool, now: Timestamp) -> Option<Outgoing> {
        while let Some((piece, bytes)) = self.new.front().copied() {
            // Data that no path brings in time any more only delays the rest.
            let arrives = now + self.spread.quickest(now).unwrap_or_default();
            let Some(due) = self.waiting(piece, arrives, None, now) else {
                self.new.pop_front();
                self.waits -= bytes;
                self.tally.marked.remove(&piece);
                let left = self.retained.get(piece).map(|kept| kept.due.since(now));
                if let Some(path) = left.and_then(|left| self.spread.last_resort(left, may_send)) {
                    return self.new_on(piece, path, may_send, now);
                }
                self.tally.dropped += 1;
                // It asks a silent path as well as one that would be in time.
                if left.is_some()
                    && let Some(probed) = self.spread.probed(None, bytes, may_send, now)
                {
                    self.tally.copies += 1;
                    return self.source(piece, probed, Kind::Probe, now);
                }
                continue;
            };
            let path = self.path_for(due, may_send, now)?;
            self.new.pop_front();
            self.waits -= bytes;
            if self.tally.marked.remove(&piece) {
                self.copies.push_back((piece, To::Other(path), now));
            }
            return self.new_on(piece, path, may_send, now);
        }
        None
    }

    /// Sends new data on a path, and a copy of it on one that is to be measured. If the chosen path
    /// is silent, because no other brings the data in time, other silent paths are still probed.
    fn new_on(
        &mut self,
        piece: PieceId,
        path: PathId,
        may_send: &impl Fn(PathId) -> bool,
        now: Timestamp,
    ) -> Option<Outgoing> {
        let outgoing = self.source(piece, path, Kind::New, now)?;
        self.tally.pieces += 1;
        if let Some(probed) = self.spread.probed(Some(path), outgoing.datagram.len(), may_send, now) {
            self.copies.push_back((piece, To::Only(probed), now));
        }
        Some(outgoing)
    }

    fn next_repair(&mut self, may_send: &impl Fn(PathId) -> bool, now: Timestamp) -> Option<Outgoing> {
        // A repair that cannot leave whole is dropped: its parts would cost more than they are
        // worth, and losses are sent again.
        let fits = |repair: &Repair| repair.length() <= self.room;
        while self.repair.front().is_some_and(|(_, stale, _, repair)| *stale <= now || !fits(repair)) {
            self.repair.pop_front();
        }
        let (at, _, flow, _) = self.repair.front().filter(|(at, ..)| *at <= now)?;
        let (flow, held, deadline) = (*flow, now.since(*at), self.config.deadline);
        let due = Due { deadline, left: half(deadline), held };
        let path = self.choose(due, None, may_send, now)?;
        let (_, _, _, repair) = self.repair.pop_front()?;
        let datagram = Datagram::Repair { way: self.way(flow, path, false, now), repair }.write();
        self.tally.repair += 1;
        self.tally.on_leaving(path, datagram.len(), false, true);
        self.spread.on_leaving(path, datagram.len(), true, now);
        Some(Outgoing { path, datagram, cargo: Cargo::Repair })
    }

    /// Sends a piece, in parts if it is larger than a datagram may be.
    fn source(&mut self, piece: PieceId, path: PathId, kind: Kind, now: Timestamp) -> Option<Outgoing> {
        let total = PieceFragment::total(self.retained.get(piece)?.body.len(), self.room)?;
        // The first part measures a path as well as all do.
        if kind != Kind::Probe {
            self.rest.extend((1..total).map(|index| (piece, PieceFragment { index, total }, kind, now)));
        }
        self.leave_as(piece, PieceFragment { index: 0, total }, path, kind, now)
    }

    fn leave_as(
        &mut self,
        piece: PieceId,
        part: PieceFragment,
        path: PathId,
        kind: Kind,
        now: Timestamp,
    ) -> Option<Outgoing> {
        let (flow, number) = piece;
        let body = self.retained.get(piece)?.body.clone();
        let way = self.way(flow, path, kind == Kind::Again, now);
        let datagram = part.datagram(way, number as u32, body).write();
        self.tally.on_leaving(path, datagram.len(), kind == Kind::New, kind != Kind::Probe);
        self.spread.on_leaving(path, datagram.len(), matches!(kind, Kind::New | Kind::Again), now);
        Some(Outgoing { path, datagram, cargo: Cargo::of(piece, part) })
    }

    fn way(&self, flow: FlowId, path: PathId, is_again: bool, now: Timestamp) -> Way {
        let least = self.spread.least_rtt().map_or(0, |rtt| rtt.as_micros() / 100);
        let least = u16::try_from(least).unwrap_or(u16::MAX);
        Way { flow, path: label(path), is_again, left: micros(now), least }
    }
}

/// The same, of what takes any path that is in time.
fn urgent(due: Due) -> Due {
    Due { left: due.left.min(half(due.deadline)), ..due }
}

fn half(deadline: Duration) -> Duration {
    deadline / 2
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use fairpath_core::{ByteCount, Groups};
    use fairpath_engine::Liveness;

    use super::*;
    use crate::config::Config;
    use crate::facts::{PathFacts, PathTerms};

    fn facts(path: PathId, rtt_ms: u64) -> PathFacts {
        PathFacts {
            path,
            usable: true,
            liveness: Liveness::Alive,
            rtt: Some(Duration::from_millis(rtt_ms)),
            least_rtt: Some(Duration::from_millis(rtt_ms)),
            window: ByteCount::new(200_000),
            served: None,
            max_datagram: ByteCount::new(1_200),
            terms: PathTerms::default(),
        }
    }

    #[test]
    fn a_copy_of_what_is_old_protects_nothing_and_measures_a_path_all_the_same() {
        let paths = [0, 1].map(PathId::new);
        let facts = paths.map(|path| facts(path, 40));
        let leaves = |to: To, waited: u64| {
            let (mut sender, begun) = (Sender::new(Config::default()), Timestamp::from_secs(1));
            sender.handle_timeout(&facts, &Groups::singletons(paths), begun);
            sender.queue(FlowId(0), &[0; 500], false, 1_200, begun).expect("room");
            sender.copies = [((FlowId(0), 0), to, begun)].into();
            sender.next_copy(&|_| true, begun + Duration::from_millis(waited)).map(|outgoing| outgoing.path)
        };
        // Half of the deadline of 300 ms.
        assert!([149, 151].map(|waited| leaves(To::Other(paths[0]), waited)) == [Some(paths[1]), None]);
        assert_eq!([149, 151, 299].map(|waited| leaves(To::Only(paths[1]), waited)), [Some(paths[1]); 3]);
    }

    #[test]
    fn what_no_other_path_takes_or_brings_in_time_leaves_on_a_silent_one() {
        let paths = [0, 1].map(PathId::new);
        let facts = [(paths[0], 40), (paths[1], 300)].map(|(path, rtt)| facts(path, rtt));
        let begun = Timestamp::from_secs(1);
        let leaves = |waited: u64, has_room: bool| {
            let mut sender = Sender::new(Config::default());
            sender.handle_timeout(&facts, &Groups::singletons(paths), begun);
            sender.queue(FlowId(0), &[0; 500], false, 1_200, begun).expect("room");
            let now = begun + Duration::from_millis(waited);
            for lane in sender.spread.lanes.values_mut() {
                (lane.is_silent, lane.carried_at) = (lane.facts.path == paths[0], now);
            }
            sender.next_new(&|path| has_room || path == paths[0], now).map(|outgoing| outgoing.path)
        };
        // The deadline is 300 ms, and the alive path takes 150 ms.
        assert_eq!([60, 160, 270].map(|waited| leaves(waited, true)), [Some(paths[1]), Some(paths[0]), Some(paths[0])]);
        assert_eq!(leaves(290, true), None, "no path brings it in time");
        assert_eq!(
            [60, 80].map(|waited| leaves(waited, false)),
            [None, Some(paths[0])],
            "the other has no room for long"
        );
    }
}
