//! The receiving end of a stream.

use core::time::Duration;
use std::collections::BTreeMap;

use bytes::Bytes;
use fairpath_core::Timestamp;

use crate::config::{Config, DEADLINE_MAX, FlowId};
use crate::counts::Counts;
use crate::flow::{Came, Flow};
use crate::lane::ACK_DELAY_MAX;
use crate::peer_clock::PeerClock;
use crate::wire::{Body, Datagram, Malformed, PathReport, Report, Way};

/// The number of paths that are distinguished. The sender chooses their numbers.
const PATHS_MAX: usize = 32;

/// A packet of the peer's application, as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// Its flow.
    pub flow: FlowId,
    /// The packet.
    pub packet: Bytes,
}

/// The arrivals on a path since the last report.
#[derive(Clone, Copy, Debug, Default)]
struct OnPath {
    newest: u32,
    count: f64,
    mean: f64,
    /// The sum of the squares of the distances from the mean.
    squares: f64,
}

impl OnPath {
    fn on_delay(&mut self, left: u32, delay: Duration) {
        if self.newest == 0 || left.wrapping_sub(self.newest) as i32 > 0 {
            self.newest = left;
        }
        let delay = delay.as_secs_f64();
        self.count += 1.0;
        let off = delay - self.mean;
        self.mean += off / self.count;
        self.squares += off * (delay - self.mean);
    }

    fn report(&mut self, path: u8) -> PathReport {
        let micros = |seconds: f64| (seconds * 1e6).round() as u32;
        let deviation = if self.count > 0.0 { libm::sqrt(self.squares / self.count) } else { 0.0 };
        let report = PathReport { path, newest: self.newest, mean: micros(self.mean), deviation: micros(deviation) };
        *self = Self { newest: self.newest, ..Self::default() };
        report
    }
}

/// Puts pieces in order, recovers missing ones, and reports arrivals.
#[derive(Debug)]
pub struct Receiver {
    config: Config,
    flows: Vec<Flow>,
    clock: PeerClock,
    counts: Counts,
    paths: BTreeMap<u8, OnPath>,
    reports: u32,
    report_at: Option<Timestamp>,
    /// A deadline after the last datagram: the sender has heard of it by then, though some were lost.
    report_until: Timestamp,
}

impl Receiver {
    /// A receiver for as many flows as were agreed on.
    pub fn new(config: Config) -> Self {
        let config = config.bounded();
        Self {
            config,
            flows: (0..config.flows).map(|_| Flow::default()).collect(),
            clock: PeerClock::default(),
            counts: Counts::default(),
            paths: BTreeMap::new(),
            reports: 0,
            report_at: None,
            report_until: Timestamp::ZERO,
        }
    }

    /// A datagram of the peer came; a report in it is for the sender at this end.
    ///
    /// # Errors
    ///
    /// It is none that a peer sends that keeps to the format. Nothing has changed then.
    pub fn on_datagram(&mut self, datagram: &Bytes, now: Timestamp) -> Result<Option<Report>, Malformed> {
        match Datagram::read(datagram)? {
            Datagram::Report(report) => return Ok(Some(report)),
            Datagram::Source { way, number, body } => {
                self.check(way)?;
                self.on_way(way, now);
                self.on_piece(way, number, &body, now);
            }
            Datagram::PieceFragment { way, number, part, data } => {
                self.check(way)?;
                self.on_way(way, now);
                let flow = &mut self.flows[usize::from(way.flow.0)];
                if let Some(body) = flow.on_part(flow.number(number), part, data) {
                    self.on_piece(way, number, &body, now);
                }
            }
            Datagram::Repair { way, repair } => {
                self.check(way)?;
                self.on_way(way, now);
                let Self { flows, clock, counts, .. } = self;
                flows[usize::from(way.flow.0)].on_repair(&repair, |body| due(clock, body), counts, now);
            }
        }
        Ok(None)
    }

    fn on_piece(&mut self, way: Way, number: u32, body: &Bytes, now: Timestamp) {
        let Self { flows, clock, counts, .. } = self;
        let flow = &mut flows[usize::from(way.flow.0)];
        let number = flow.number(number);
        match flow.on_piece((number, way.is_again), body, |body| due(clock, body), counts, now) {
            Came::InTime => clock.on_judged(true, now),
            Came::Late => clock.on_judged(false, now),
            Came::Not => {}
        }
    }

    fn check(&self, way: Way) -> Result<(), Malformed> {
        (way.flow.0 < self.config.flows).then_some(()).ok_or(Malformed::Flow(way.flow.0))
    }

    fn on_way(&mut self, way: Way, now: Timestamp) {
        let delay = self.clock.on_arrival(way.left, way.least, now);
        if self.paths.len() < PATHS_MAX || self.paths.contains_key(&way.path) {
            self.paths.entry(way.path).or_default().on_delay(way.left, delay);
        }
        self.report_until = now + self.config.deadline;
        self.report_at.get_or_insert(now + ACK_DELAY_MAX);
    }

    /// The next packet that is to be handed out by now.
    pub fn take(&mut self, now: Timestamp) -> Option<Delivered> {
        let Self { config, flows, counts, .. } = self;
        let mut flows = flows.iter_mut().enumerate();
        flows.find_map(|(at, flow)| {
            let packet = flow.take(config.playout, counts, now)?;
            Some(Delivered { flow: FlowId(at as u8), packet })
        })
    }

    /// The report to send on every path now, if one is due.
    pub fn report(&mut self, now: Timestamp) -> Option<Bytes> {
        if self.report_at.is_none_or(|at| now < at) {
            return None;
        }
        self.report_at = (now < self.report_until).then(|| now + ACK_DELAY_MAX);
        let paths = self.paths.iter_mut().map(|(path, came)| came.report(*path)).collect();
        let report = Report { number: self.reports, counts: self.counts, paths };
        self.reports = self.reports.wrapping_add(1);
        Some(Datagram::Report(report).write())
    }

    /// When something is to be handed out or said.
    pub fn next_timeout(&self) -> Option<Timestamp> {
        self.next_due().into_iter().chain(self.report_at).min()
    }

    /// When something is to be said.
    pub fn report_at(&self) -> Option<Timestamp> {
        self.report_at
    }

    /// When a packet that waits is to be handed out at the latest.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.flows.iter().filter_map(Flow::next_due).min()
    }

    /// The counts of all arrivals.
    pub fn counts(&self) -> Counts {
        self.counts
    }
}

/// When a piece is due, by the clock here.
fn due(clock: &PeerClock, body: &Body) -> Timestamp {
    let deadline = Duration::from_millis(body.deadline_ms.into()).min(DEADLINE_MAX);
    clock.here(body.sent) + deadline
}
