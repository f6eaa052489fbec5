//! The sending end of a stream.

mod status;

use core::time::Duration;
use std::collections::VecDeque;

use bytes::Bytes;
use fairpath_core::{Groups, PathId, Timestamp};

use crate::block::Gathering;
use crate::budget::Budget;
use crate::config::{Config, Copies, DEADLINE_MAX, DEADLINE_MIN, FlowId, PACKET_MAX};
use crate::counts::Counts;
use crate::retained::{PieceId, Retained};
use crate::sharing::Sharing;
use crate::spread::{Lane, PathFacts, Spread, Waiting};
use crate::terms::PathTerms;
use crate::wire::{Body, Datagram, OVERHEAD, Repair, Report, Way, expand, label};
use status::Tally;
pub use status::{PathStatus, Status};

/// Rates are set anew no more often.
const SOLVE_EVERY: Duration = Duration::from_millis(100);

/// What may wait and be kept, in bytes: what 30 Mbit/s bring in two seconds.
const BYTES_MAX: usize = 8 << 20;

/// The least data that a piece is worth its head for.
const PIECE_MIN: usize = 64;

/// Why a packet was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// It is larger than any packet of UDP.
    #[error("a packet of {0} bytes is larger than the {PACKET_MAX} of UDP")]
    TooLarge(usize),
    /// There is no such flow.
    #[error("there is no flow {0}")]
    Flow(u8),
    /// As much waits as may: the application sends far more than the paths take.
    #[error("{0} bytes wait already: send less, as the budget says")]
    Full(usize),
    /// The peer's datagrams are too small for anything.
    #[error("the peer takes datagrams of {0} bytes, which is too small for a stream")]
    NoRoom(usize),
}

/// What a datagram carries, for whoever hears what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cargo {
    /// A piece of a flow.
    Piece(FlowId, u64),
    /// Repair, of which nothing is sent again.
    Repair,
}

impl Cargo {
    fn piece(self) -> Option<PieceId> {
        match self {
            Self::Piece(flow, number) => Some((flow, number)),
            Self::Repair => None,
        }
    }
}

/// A datagram that is to leave on a path.
#[derive(Clone, Debug)]
#[must_use = "what is neither sent nor given back never arrives"]
pub struct Outgoing {
    /// On which path.
    pub path: PathId,
    /// The whole DATAGRAM.
    pub datagram: Bytes,
    /// What it carries.
    pub cargo: Cargo,
}

/// Where a copy goes.
#[derive(Clone, Copy, Debug)]
enum To {
    /// On a path that is to be measured.
    Only(PathId),
    /// On another one than this.
    Other(PathId),
    /// On another one than this, of which no answer came in time.
    Instead(PathId),
}

/// Why a piece leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    New,
    Again,
    Copy,
    /// To measure the path.
    Probe,
}

#[derive(Debug, Default)]
struct FlowOut {
    next: u64,
    block: Gathering,
}

/// Cuts packets into pieces, spreads them over the paths, protects them, and sends again what was lost in time.
///
/// The host calls [`Sender::handle_timeout`] when [`Sender::next_timeout`] has come, and tells of each packet that it
/// left, and then that it was acknowledged or lost.
#[derive(Debug)]
pub struct Sender {
    config: Config,
    flows: Vec<FlowOut>,
    spread: Spread,
    retained: Retained,
    new: VecDeque<(PieceId, usize)>,
    /// The bytes of all that is new.
    waits: usize,
    again: VecDeque<PieceId>,
    copies: VecDeque<(PieceId, To)>,
    /// Not before when each leaves, and after when it is worth nothing.
    repair: VecDeque<(Timestamp, Timestamp, FlowId, Repair)>,
    solve_at: Timestamp,
    budget: Budget,
    tally: Tally,
    newest_report: Option<u32>,
    peer: Option<Counts>,
}

impl Sender {
    /// A sender of as many flows as were agreed on.
    pub fn new(config: Config) -> Self {
        Self::sharing(config, Sharing::default())
    }

    /// The same, whose paths share it by other rates.
    pub fn sharing(config: Config, sharing: Sharing) -> Self {
        let config = config.bounded();
        Self {
            config,
            flows: (0..config.flows).map(|_| FlowOut::default()).collect(),
            spread: Spread::new(sharing),
            retained: Retained::default(),
            new: VecDeque::new(),
            waits: 0,
            again: VecDeque::new(),
            copies: VecDeque::new(),
            repair: VecDeque::new(),
            solve_at: Timestamp::ZERO,
            budget: Budget::default(),
            tally: Tally::default(),
            newest_report: None,
            peer: None,
        }
    }

    /// How long what is queued from now on may take; the nearest that can be.
    pub fn set_deadline(&mut self, deadline: Duration) {
        self.config.deadline = deadline.clamp(DEADLINE_MIN, DEADLINE_MAX);
    }

    /// What is said of a path, from the next time on that rates are set.
    pub fn set_terms(&mut self, path: PathId, terms: PathTerms) {
        self.spread.terms.insert(path, terms);
    }

    /// Queues a packet of the application, in datagrams of at most `room` bytes.
    ///
    /// # Errors
    ///
    /// It is not taken then.
    pub fn queue(
        &mut self,
        flow: FlowId,
        packet: &[u8],
        is_marked: bool,
        room: usize,
        now: Timestamp,
    ) -> Result<(), SendError> {
        let data_max = room.checked_sub(OVERHEAD).filter(|room| *room >= PIECE_MIN).ok_or(SendError::NoRoom(room))?;
        if packet.len() > PACKET_MAX {
            return Err(SendError::TooLarge(packet.len()));
        }
        if self.retained.bytes() + packet.len() > BYTES_MAX {
            self.tally.dropped += 1;
            return Err(SendError::Full(self.retained.bytes()));
        }
        if usize::from(flow.0) >= self.flows.len() {
            return Err(SendError::Flow(flow.0));
        }
        let pieces = packet.len().div_ceil(data_max).max(1);
        // Pieces of one size: the symbols of a block have that of the largest.
        let length = packet.len().div_ceil(pieces);
        let copied = match self.config.copies {
            Copies::None => false,
            Copies::Marked => is_marked,
            Copies::All => true,
        };
        for at in 0..pieces {
            let data = Bytes::copy_from_slice(&packet[at * length..packet.len().min((at + 1) * length)]);
            let body = Body {
                sent: micros(now),
                deadline_ms: self.config.deadline.as_millis() as u16,
                is_first: at == 0,
                is_last: at + 1 == pieces,
                data,
            };
            self.add_piece(flow, body.write(), copied, now);
        }
        self.tally.packets += 1;
        Ok(())
    }

    fn add_piece(&mut self, flow: FlowId, body: Bytes, copied: bool, now: Timestamp) {
        let of_flow = &mut self.flows[usize::from(flow.0)];
        let number = of_flow.next;
        of_flow.next += 1;
        let is_full = self.config.repair && of_flow.block.add(number, body.clone(), now);
        self.new.push_back(((flow, number), body.len()));
        self.waits += body.len();
        self.retained.keep((flow, number), body, now, now + self.config.deadline);
        if copied {
            // Which path the first goes on shows when it leaves.
            self.tally.marked.insert((flow, number));
        }
        if is_full {
            self.close(flow, now);
        }
    }

    /// Ends the block of a flow. Its repair is spread over a while: a burst of losses takes less of it.
    fn close(&mut self, flow: FlowId, now: Timestamp) {
        let missing = self.spread.missing();
        let block = &mut self.flows[usize::from(flow.0)].block;
        let Some(closed) = block.close(missing, self.config.deadline) else { return };
        let gap = closed.spread / u32::try_from(closed.repair.len()).unwrap_or(u32::MAX).max(1);
        let stale = now + self.config.deadline;
        for (at, repair) in closed.repair.into_iter().enumerate() {
            self.repair.push_back((now + gap * at as u32, stale, flow, repair));
        }
        // Where there are several flows, each has its own pace.
        self.repair.make_contiguous().sort_by_key(|(at, ..)| *at);
    }

    /// The next datagram, on a path that `may_send`.
    pub fn next(&mut self, may_send: impl Fn(PathId) -> bool, now: Timestamp) -> Option<Outgoing> {
        self.next_again(&may_send, now)
            .or_else(|| self.next_copy(&may_send, now))
            .or_else(|| self.next_new(&may_send, now))
            .or_else(|| self.next_repair(&may_send, now))
    }

    /// A piece that has not arrived, and whose deadline is after `arrives`.
    fn waiting(&self, piece: PieceId, arrives: Timestamp, now: Timestamp) -> Option<Waiting> {
        let kept = self.retained.get(piece).filter(|kept| kept.due > arrives)?;
        let waited = now.since(kept.queued_at);
        Some(Waiting { waited, held: waited, deadline: kept.due.since(kept.queued_at), behind: self.waits })
    }

    fn next_again(&mut self, may_send: &impl Fn(PathId) -> bool, now: Timestamp) -> Option<Outgoing> {
        while let Some(piece) = self.again.front().copied() {
            // It may have arrived, or is too late.
            let Some(waiting) = self.waiting(piece, now, now) else {
                self.again.pop_front();
                continue;
            };
            let path = self.spread.choose(waiting, None, may_send, now)?;
            self.again.pop_front();
            self.tally.again += 1;
            return self.source(piece, path, Kind::Again, now);
        }
        None
    }

    fn next_copy(&mut self, may_send: &impl Fn(PathId) -> bool, now: Timestamp) -> Option<Outgoing> {
        while let Some((piece, to)) = self.copies.front().copied() {
            let is_worth = |one: &Waiting| matches!(to, To::Instead(_)) || one.waited <= one.deadline / 2;
            let Some(waiting) = self.waiting(piece, now, now).filter(is_worth) else {
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
                To::Other(path) | To::Instead(path) => self.spread.choose(waiting.urgent(), Some(path), may_send, now),
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
            // What no path brings in time any more only keeps back what follows.
            let arrives = now + self.spread.quickest().unwrap_or_default();
            let Some(waiting) = self.waiting(piece, arrives, now) else {
                self.new.pop_front();
                self.waits -= bytes;
                self.tally.marked.remove(&piece);
                self.tally.dropped += 1;
                continue;
            };
            let path = self.spread.choose(waiting, None, may_send, now)?;
            self.new.pop_front();
            self.waits -= bytes;
            let outgoing = self.source(piece, path, Kind::New, now)?;
            self.tally.pieces += 1;
            if self.tally.marked.remove(&piece) {
                self.copies.push_back((piece, To::Other(path)));
            }
            if let Some(probed) = self.spread.probed(path, outgoing.datagram.len(), may_send, now) {
                self.copies.push_back((piece, To::Only(probed)));
            }
            return Some(outgoing);
        }
        None
    }

    fn next_repair(&mut self, may_send: &impl Fn(PathId) -> bool, now: Timestamp) -> Option<Outgoing> {
        while self.repair.front().is_some_and(|(_, stale, ..)| *stale <= now) {
            self.repair.pop_front();
        }
        let (at, _, flow, _) = self.repair.front().filter(|(at, ..)| *at <= now)?;
        let (flow, held, deadline) = (*flow, now.since(*at), self.config.deadline);
        let waiting = Waiting { waited: deadline / 2, held, deadline, behind: self.waits };
        let path = self.spread.choose(waiting, None, may_send, now)?;
        let (_, _, _, repair) = self.repair.pop_front()?;
        let datagram = Datagram::Repair { way: self.way(flow, path, false, now), repair }.write();
        self.tally.repair += 1;
        self.tally.on_leaving(path, datagram.len(), false, true);
        self.spread.on_leaving(path, datagram.len(), true, now);
        Some(Outgoing { path, datagram, cargo: Cargo::Repair })
    }

    fn source(&mut self, piece: PieceId, path: PathId, kind: Kind, now: Timestamp) -> Option<Outgoing> {
        let (flow, number) = piece;
        let body = self.retained.get(piece)?.body.clone();
        let datagram =
            Datagram::Source { way: self.way(flow, path, kind == Kind::Again, now), number: number as u32, body }
                .write();
        self.tally.on_leaving(path, datagram.len(), kind == Kind::New, kind != Kind::Probe);
        self.spread.on_leaving(path, datagram.len(), matches!(kind, Kind::New | Kind::Again), now);
        Some(Outgoing { path, datagram, cargo: Cargo::Piece(flow, number) })
    }

    fn way(&self, flow: FlowId, path: PathId, is_again: bool, now: Timestamp) -> Way {
        let least = self.spread.least_rtt().map_or(0, |rtt| rtt.as_micros() / 100);
        let least = u16::try_from(least).unwrap_or(u16::MAX);
        Way { flow, path: label(path), is_again, left: micros(now), least }
    }

    // ---- what became of it

    /// The datagram left as packet `number` of a path.
    pub fn on_sent(&mut self, cargo: Cargo, path: PathId, number: u64, now: Timestamp) {
        self.retained.on_sent(cargo.piece(), path, number, now);
        if let Some(lane) = self.spread.lanes.get_mut(&path) {
            lane.track.on_sent(now);
        }
    }

    /// It did not leave, or it is not known in which packet.
    pub fn on_unsent(&mut self, cargo: Cargo) {
        if let Some(piece) = cargo.piece() {
            self.again.push_back(piece);
        }
    }

    /// The packet was acknowledged.
    pub fn on_acked(&mut self, path: PathId, number: u64, now: Timestamp) {
        if let Some(gone) = self.retained.on_acked(path, number)
            && let Some(lane) = self.spread.lanes.get_mut(&path)
        {
            lane.track.on_acked(now);
            lane.is_overdue = now.since(gone.sent_at) > lane.patience();
        }
    }

    /// The packet was lost.
    pub fn on_lost(&mut self, path: PathId, number: u64, now: Timestamp) {
        let Some(gone) = self.retained.on_lost(path, number) else { return };
        if let Some(lane) = self.spread.lanes.get_mut(&path) {
            lane.track.on_lost(gone.sent_at, lane.rtt(), now);
        }
        gone.again.into_iter().for_each(|piece| self.send_again(piece, now));
    }

    /// Nothing more will be heard of what is in flight on the path.
    pub fn on_discarded(&mut self, path: PathId, now: Timestamp) {
        self.retained.on_path_gone(path).into_iter().for_each(|piece| self.send_again(piece, now));
    }

    /// Queues what was lost once more, where it can still be in time.
    fn send_again(&mut self, piece: PieceId, now: Timestamp) {
        let quickest = self.spread.quickest().unwrap_or_default();
        if self.retained.get(piece).is_some_and(|kept| kept.due > now + quickest) {
            self.again.push_back(piece);
        }
    }

    /// The peer says what came.
    pub fn on_report(&mut self, report: &Report, now: Timestamp) {
        let is_newer = |newest: u32| report.number.wrapping_sub(newest) as i32 > 0;
        if !self.newest_report.is_none_or(is_newer) {
            return;
        }
        (self.newest_report, self.peer) = (Some(report.number), Some(report.counts));
        let here = now.as_nanos() / 1_000;
        for one in &report.paths {
            let newest = Timestamp::from_micros(expand(one.newest, here).min(here));
            // Paths are numbered on and on, and there are a few at a time.
            let named = self.spread.lanes.iter_mut().rev().find(|(path, _)| label(**path) == one.path);
            if let Some((_, lane)) = named {
                lane.track.on_report(one, newest, now);
            }
        }
        let fell_silent = self.spread.judge_silence(now);
        self.leave(&fell_silent, now);
    }

    /// These paths fell silent.
    fn leave(&mut self, fell_silent: &[PathId], now: Timestamp) {
        for path in fell_silent {
            self.retained.on_silent(*path).into_iter().for_each(|piece| self.send_again(piece, now));
        }
    }

    /// Of what a path has not answered in time a copy leaves elsewhere, where it can be in time: it may be lost, or
    /// stand in a queue that was not there before, and neither is known before another round trip has passed.
    fn leave_overdue(&mut self, now: Timestamp) {
        let overdue = |(path, lane): (&PathId, &Lane)| {
            let until = Timestamp::ZERO + now.since(Timestamp::ZERO).checked_sub(lane.patience())?;
            self.retained.oldest(*path).filter(|at| *at <= until).map(|_| (*path, until))
        };
        let overdue: Vec<(PathId, Timestamp)> = self.spread.lanes.iter().filter_map(overdue).collect();
        for (path, until) in overdue {
            if let Some(lane) = self.spread.lanes.get_mut(&path) {
                lane.is_overdue = true;
            }
            for piece in self.retained.take_overdue(path, until) {
                self.copies.push_back((piece, To::Instead(path)));
            }
        }
    }

    /// When the next piece is overdue.
    fn overdue_at(&self) -> Option<Timestamp> {
        let at = |(path, lane): (&PathId, &Lane)| Some(self.retained.oldest(*path)? + lane.patience());
        self.spread.lanes.iter().filter_map(at).min()
    }

    // ---- time

    /// Does what is due. The host says what it knows of its paths, and which of them share a bottleneck.
    pub fn handle_timeout(&mut self, facts: &[PathFacts], groups: &Groups, now: Timestamp) {
        let deadline = self.config.deadline;
        for at in 0..self.flows.len() {
            if self.flows[at].block.closes_at(deadline).is_some_and(|at| at <= now) {
                self.close(FlowId(at as u8), now);
            }
        }
        self.leave_overdue(now);
        if now < self.solve_at {
            return;
        }
        let rtt = facts.iter().filter_map(|one| one.rtt).min().unwrap_or_default();
        self.solve_at = now + rtt.max(SOLVE_EVERY);
        let fell_silent = self.spread.solve(facts, groups, deadline, now);
        self.leave(&fell_silent, now);
        self.retained.forget(now);
        self.budget.on_rates(self.spread.whole(), self.tally.beside(), now);
        self.tally.fade();
        // What was carried counts less and less.
        self.spread.lanes.values_mut().for_each(|lane| lane.carried *= 0.8);
    }

    /// When [`Sender::handle_timeout`] is to be called, or something may leave.
    pub fn next_timeout(&self, now: Timestamp) -> Option<Timestamp> {
        let closes = self.flows.iter().filter_map(|flow| flow.block.closes_at(self.config.deadline));
        let repair = self.repair.front().map(|(at, ..)| *at);
        let credit = if self.has_work(now) { self.spread.next_credit() } else { None };
        let later = repair.into_iter().chain(credit).filter(|at| *at > now);
        closes.chain([self.solve_at]).chain(later).chain(self.overdue_at()).min()
    }

    /// Whether something waits that could leave now.
    pub fn has_work(&self, now: Timestamp) -> bool {
        let lists = [self.new.is_empty(), self.again.is_empty(), self.copies.is_empty()];
        lists.contains(&false) || self.repair.front().is_some_and(|(at, ..)| *at <= now)
    }

    /// Whether something waits, or is on its way.
    pub fn is_busy(&self) -> bool {
        self.retained.bytes() > 0
    }

    /// How it goes.
    pub fn status(&self) -> Status {
        let path = |(path, lane): (&PathId, &Lane)| PathStatus::of(*path, lane, self.tally.sent_on(*path));
        Status {
            deadline: self.config.deadline,
            paths: self.spread.lanes.iter().map(path).collect(),
            budget: self.budget.rate(),
            budget_variation: self.budget.variation(),
            beside: self.tally.beside(),
            packets: self.tally.packets,
            pieces: self.tally.pieces,
            repair: self.tally.repair,
            copies: self.tally.copies,
            again: self.tally.again,
            dropped: self.tally.dropped,
            peer: self.peer,
        }
    }
}

impl Waiting {
    /// The same, of what takes any path that is in time.
    fn urgent(self) -> Self {
        Self { waited: self.waited.max(self.deadline / 2), ..self }
    }
}

fn micros(at: Timestamp) -> u32 {
    (at.as_nanos() / 1_000) as u32
}
