//! The sending end of a stream.

mod fates;
mod outgoing;
mod status;

use core::time::Duration;
use std::collections::VecDeque;

use bytes::Bytes;
use fairpath_core::{Groups, PathId, Timestamp};
use fairpath_engine::DeadlineParameters;

use crate::block::Gathering;
use crate::budget::{Budget, BudgetParameters};
use crate::config::{Config, Copies, DEADLINE_MAX, DEADLINE_MIN, FlowId, PACKET_MAX};
use crate::counts::Counts;
use crate::facts::PathFacts;
use crate::lane::{ACK_DELAY_MAX, Lane};
use crate::parameters::LiveParameters;
use crate::retained::{PieceId, Retained};
use crate::sharing::Sharing;
use crate::spread::Spread;
use crate::wire::{Body, OVERHEAD, PieceFragment, Repair};
use outgoing::Kind;
use status::Tally;
pub use status::{PathStatus, Status};

/// The bytes that may wait and be kept: two seconds at 30 Mbit/s.
const BYTES_MAX: usize = 8 << 20;

/// The least data that a piece is worth its head for.
const PIECE_MIN: usize = 64;

/// Why a packet was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
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

/// The contents of a datagram, for notes about its fate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cargo {
    /// A piece of a flow.
    Piece(FlowId, u64),
    /// A part of a piece, and of how many: it was cut for larger datagrams than can leave now.
    PieceFragment(FlowId, u64, [u8; 2]),
    /// Repair, which is never sent again.
    Repair,
}

impl Cargo {
    fn of((flow, number): PieceId, part: PieceFragment) -> Self {
        match part.total {
            1 => Self::Piece(flow, number),
            _ => Self::PieceFragment(flow, number, [part.index, part.total]),
        }
    }

    fn piece(self) -> Option<(PieceId, PieceFragment)> {
        match self {
            Self::Piece(flow, number) => Some(((flow, number), PieceFragment { index: 0, total: 1 })),
            Self::PieceFragment(flow, number, [index, total]) => Some(((flow, number), PieceFragment { index, total })),
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
    /// Its contents.
    pub cargo: Cargo,
}

/// Where a copy goes.
#[derive(Clone, Copy, Debug)]
enum To {
    /// On a path that is to be measured.
    Only(PathId),
    /// On another one than this.
    Other(PathId),
    /// On another path than this one, whose answer did not come in time.
    Instead(PathId),
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
    /// How large a datagram may be that leaves now.
    room: usize,
    /// The remaining parts of pieces that leave in parts, and since when they could leave.
    rest: VecDeque<(PieceId, PieceFragment, Kind, Timestamp)>,
    /// The pieces to be sent again, and since when they wait.
    again: VecDeque<(PieceId, Timestamp)>,
    copies: VecDeque<(PieceId, To, Timestamp)>,
    /// Not before when each leaves, and after when it is worth nothing.
    repair: VecDeque<(Timestamp, Timestamp, FlowId, Repair)>,
    solve_at: Timestamp,
    /// When the host last said which paths answer.
    heard_at: Timestamp,
    budget: Budget,
    tally: Tally,
    newest_report: Option<u32>,
    peer: Option<Counts>,
}

impl Sender {
    /// A sender of as many flows as were agreed on.
    pub fn new(config: Config) -> Self {
        Self::sharing(config, Sharing::default(), DeadlineParameters::default())
    }

    /// The same, whose paths share it by other rates, or whose scheduler has other parameters.
    pub fn sharing(config: Config, sharing: Sharing, scheduler: DeadlineParameters) -> Self {
        let config = config.bounded();
        Self {
            config,
            flows: (0..config.flows).map(|_| FlowOut::default()).collect(),
            spread: Spread::new(sharing, scheduler),
            retained: Retained::default(),
            new: VecDeque::new(),
            waits: 0,
            room: usize::MAX,
            rest: VecDeque::new(),
            again: VecDeque::new(),
            copies: VecDeque::new(),
            repair: VecDeque::new(),
            solve_at: Timestamp::ZERO,
            heard_at: Timestamp::ZERO,
            budget: Budget::default(),
            tally: Tally::default(),
            newest_report: None,
            peer: None,
        }
    }

    /// The same, whose budget has other parameters.
    #[must_use]
    pub fn with_budget(mut self, parameters: BudgetParameters) -> Self {
        self.budget = Budget::new(parameters);
        self
    }

    /// The same with other parameters.
    #[must_use]
    pub fn with_parameters(mut self, parameters: LiveParameters) -> Self {
        self.spread.parameters = parameters;
        self
    }

    /// How long what is queued from now on may take; the nearest that can be.
    pub fn set_deadline(&mut self, deadline: Duration) {
        self.config.deadline = deadline.clamp(DEADLINE_MIN, DEADLINE_MAX);
    }

    /// How large datagrams may be from now on. What waits and is larger leaves in parts: where a path loses many, QUIC
    /// takes large packets for the reason, and then all paths carry smaller ones.
    pub fn set_room(&mut self, room: usize) {
        self.room = room;
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
            // The path of the original is known only when it leaves.
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
        let Some(closed) = block.close(missing, self.config.deadline, &self.spread.parameters) else { return };
        let gap = closed.spread / u32::try_from(closed.repair.len()).unwrap_or(u32::MAX).max(1);
        let stale = now + self.config.deadline;
        for (at, repair) in closed.repair.into_iter().enumerate() {
            self.repair.push_back((now + gap * at as u32, stale, flow, repair));
        }
        // Where there are several flows, each has its own pace.
        self.repair.make_contiguous().sort_by_key(|(at, ..)| *at);
    }

    // ---- time

    /// Does all work that is due, with the host's current facts about its paths and their groups.
    pub fn handle_timeout(&mut self, facts: &[PathFacts], groups: &Groups, now: Timestamp) {
        let (deadline, parameters) = (self.config.deadline, self.spread.parameters);
        for at in 0..self.flows.len() {
            if self.flows[at].block.closes_at(deadline, &parameters).is_some_and(|at| at <= now) {
                self.close(FlowId(at as u8), now);
            }
        }
        self.leave_overdue(now);
        let fell_silent = self.spread.hear(facts);
        self.leave(&fell_silent, now);
        self.heard_at = now;
        if now < self.solve_at {
            return;
        }
        let rtt = facts.iter().filter_map(|one| one.rtt).min().unwrap_or_default();
        self.solve_at = now + rtt.max(parameters.solve_every);
        self.spread.solve(facts, groups, deadline, now);
        self.retained.forget(now);
        let waits = fairpath_core::ByteCount::new(self.waits as u64);
        self.budget.on_rates(self.spread.whole(), self.tally.beside(), deadline / parameters.waits, waits, now);
        self.tally.fade();
        // Older data counts less and less.
        self.spread.lanes.values_mut().for_each(|lane| lane.carried *= 0.8);
    }

    /// When [`Sender::handle_timeout`] is to be called, or something may leave.
    pub fn next_timeout(&self, now: Timestamp) -> Option<Timestamp> {
        let closes =
            self.flows.iter().filter_map(|flow| flow.block.closes_at(self.config.deadline, &self.spread.parameters));
        let repair = self.repair.front().map(|(at, ..)| *at);
        let credit = if self.has_work(now) { self.spread.next_credit() } else { None };
        let later = repair.into_iter().chain(credit).filter(|at| *at > now);
        let hears = self.is_busy().then_some(self.heard_at + ACK_DELAY_MAX);
        closes.chain([self.solve_at]).chain(hears).chain(later).chain(self.overdue_at()).min()
    }

    /// Whether something waits that could leave now.
    pub fn has_work(&self, now: Timestamp) -> bool {
        let lists = [self.new.is_empty(), self.again.is_empty(), self.copies.is_empty(), self.rest.is_empty()];
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

fn micros(at: Timestamp) -> u32 {
    (at.as_nanos() / 1_000) as u32
}
