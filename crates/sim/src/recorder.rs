//! Recorders: observers of a run.

use core::time::Duration;

use fairpath_core::{PathId, Timestamp};
use fairpath_engine::{Engine, Groups, PathSnapshot};
use fairpath_live::{Counts, Status};
use fairpath_net::LinkStats;
use fairpath_scenario::{Scenario, ScenarioLink};

/// The position of a flow in [`Scenario::flows`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowIndex(pub u32);

/// Watches a run. It changes nothing: with another recorder, or `()`, the result is the same.
///
/// The simulator is built for the recorder it is given, so what a recorder leaves out costs
/// nothing.
pub trait Recorder {
    /// Whether it wants to be told more than samples. For one that does not, a run over several cores notes nothing
    /// down.
    fn hears_all(&self) -> bool {
        true
    }
    /// The time has come for a sample, every [`Scenario::sample_every`].
    fn on_sample(&mut self, _now: Timestamp, _view: &View<'_>) {}
    /// An acknowledgement gave a round-trip time.
    fn on_rtt(&mut self, _now: Timestamp, _flow: FlowIndex, _path: PathId, _rtt: Duration) {}
    /// An episode of congestion began on a path.
    fn on_congestion(&mut self, _now: Timestamp, _flow: FlowIndex, _path: PathId) {}
    /// A packet was found lost.
    fn on_lost(&mut self, _now: Timestamp, _flow: FlowIndex, _path: PathId) {}
    /// A transfer ended after this long.
    fn on_completion(&mut self, _now: Timestamp, _flow: FlowIndex, _took: Duration) {}
    /// A packet of a live stream was played, this long after its application had it.
    fn on_played(&mut self, _now: Timestamp, _flow: FlowIndex, _took: Duration) {}
}

/// Nobody watches.
impl Recorder for () {
    fn hears_all(&self) -> bool {
        false
    }
}

/// Two watch.
impl<A: Recorder, B: Recorder> Recorder for (A, B) {
    fn hears_all(&self) -> bool {
        self.0.hears_all() || self.1.hears_all()
    }

    fn on_sample(&mut self, now: Timestamp, view: &View<'_>) {
        self.0.on_sample(now, view);
        self.1.on_sample(now, view);
    }
    fn on_rtt(&mut self, now: Timestamp, flow: FlowIndex, path: PathId, rtt: Duration) {
        self.0.on_rtt(now, flow, path, rtt);
        self.1.on_rtt(now, flow, path, rtt);
    }
    fn on_congestion(&mut self, now: Timestamp, flow: FlowIndex, path: PathId) {
        self.0.on_congestion(now, flow, path);
        self.1.on_congestion(now, flow, path);
    }
    fn on_lost(&mut self, now: Timestamp, flow: FlowIndex, path: PathId) {
        self.0.on_lost(now, flow, path);
        self.1.on_lost(now, flow, path);
    }
    fn on_completion(&mut self, now: Timestamp, flow: FlowIndex, took: Duration) {
        self.0.on_completion(now, flow, took);
        self.1.on_completion(now, flow, took);
    }
    fn on_played(&mut self, now: Timestamp, flow: FlowIndex, took: Duration) {
        self.0.on_played(now, flow, took);
        self.1.on_played(now, flow, took);
    }
}

/// The view that a run offers to recorders.
pub(crate) trait Shown {
    fn scenario(&self) -> &Scenario;
    /// The engine of every connection that is open, with its flow.
    fn engines(&self) -> Box<dyn Iterator<Item = (FlowIndex, &Engine)> + '_>;
    fn live(&self, flow: FlowIndex) -> Option<(Status, Counts)>;
    fn links(&self) -> Box<dyn Iterator<Item = (&ScenarioLink, LinkStats)> + '_>;
}

/// A run at one moment, as a recorder sees it.
pub struct View<'a> {
    pub(crate) run: &'a dyn Shown,
    pub(crate) now: Timestamp,
}

impl<'a> View<'a> {
    /// The scenario of the run.
    pub fn scenario(&self) -> &'a Scenario {
        self.run.scenario()
    }

    /// Every path of every connection that is open, with its flow. A flow of short transfers has
    /// none or several.
    pub fn paths(&self) -> impl Iterator<Item = (FlowIndex, PathSnapshot)> + use<'a> {
        let now = self.now;
        self.run.engines().flat_map(move |(flow, engine)| engine.snapshots(now).map(move |snapshot| (flow, snapshot)))
    }

    /// The partition of the paths of a flow's connections.
    pub fn groups(&self, flow: FlowIndex) -> Option<&'a Groups> {
        self.run.engines().find(|(of, _)| *of == flow).map(|(_, engine)| engine.groups())
    }

    /// How a live stream goes at its sending end, and what its receiver has counted; `None` of a flow that is none, or
    /// has not begun.
    pub fn live(&self, flow: FlowIndex) -> Option<(Status, Counts)> {
        self.run.live(flow)
    }

    /// Every link.
    pub fn links(&self) -> impl Iterator<Item = (&'a ScenarioLink, LinkStats)> + use<'a> {
        self.run.links()
    }
}
