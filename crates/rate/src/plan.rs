//! A plan: the rates of a stream on each path, and how much of them is repair.

use core::time::Duration;
use std::collections::BTreeMap;

use fairpath_core::{GroupId, Groups, PathId};

use crate::coupled::capped;
use crate::delays::Delays;
use crate::equation::simple;
use crate::fec::Repair;
use crate::lateness::Bound;
use crate::optimum::{floors, greedy};
use crate::packet_rate::{NotARate, PacketRate};
use crate::region::Region;

/// The share of the whole that each path carries at least, so that a change of it is seen [Pluntke2011 §3]. The paper
/// does not say what it was, nor what [`MARGIN`] was: both are fitted to its two figures of repair.
pub const PROBING: f64 = 0.0675;

/// How far repair is above what is missing on average, in deviations of one packet, as [`PROBING`] fitted to the paper
/// [Pluntke2011 §3]; see [`Repair::plan`].
pub const MARGIN: f64 = 0.144;

/// The model of a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathModel {
    /// The share of packets that are lost.
    pub loss: f64,
    /// Round-trip times.
    pub delays: Delays,
}

impl PathModel {
    /// A path that loses this share of packets.
    pub const fn new(loss: f64, delays: Delays) -> Self {
        Self { loss, delays }
    }

    /// The share of packets that are lost, or come after the deadline: both independently [Pluntke2011 §3].
    fn missing(&self, late: f64) -> f64 {
        1.0 - (1.0 - self.loss) * (1.0 - late)
    }
}

/// The plan of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// On each path.
    pub rates: Vec<PacketRate>,
    /// How much of it is repair.
    pub repair: Repair,
    /// The rate that reaches the player in time.
    pub goodput: PacketRate,
}

impl Plan {
    /// The friendly rates that bring the most in time, with [`PROBING`] on each path and [`MARGIN`] of repair.
    ///
    /// # Errors
    ///
    /// Where a path has lost nothing, so that its TCP-friendly rate has no bound.
    pub fn best(paths: &[PathModel], deadline: Duration, bound: &Bound) -> Result<Self, NotARate> {
        Self::best_with(paths, deadline, bound, PROBING, MARGIN)
    }

    /// The same with another share for probing and another margin of repair.
    ///
    /// # Errors
    ///
    /// As [`Plan::best`].
    pub fn best_with(
        paths: &[PathModel],
        deadline: Duration,
        bound: &Bound,
        probing: f64,
        margin: f64,
    ) -> Result<Self, NotARate> {
        let together = Groups::one((0..paths.len()).map(path_id));
        Self::best_in(&together, paths, deadline, bound, probing, margin)
    }

    /// The same where the paths of different groups share no bottleneck, as a detector says: each group needs to be
    /// friendly only by itself. Path n of the groups is the n-th of `paths`, from 0 on.
    ///
    /// # Errors
    ///
    /// As [`Plan::best`].
    pub fn best_in(
        groups: &Groups,
        paths: &[PathModel],
        deadline: Duration,
        bound: &Bound,
        probing: f64,
        margin: f64,
    ) -> Result<Self, NotARate> {
        let missing = missing(paths, deadline, bound);
        let mut rates = vec![PacketRate::ZERO; paths.len()];
        let mut members: BTreeMap<GroupId, Vec<usize>> = BTreeMap::new();
        (0..paths.len()).for_each(|path| members.entry(groups.of(path_id(path))).or_default().push(path));
        for members in members.values() {
            let tcp: Vec<PacketRate> =
                members.iter().map(|path| simple(paths[*path].delays.mean, paths[*path].loss)).collect();
            let region = Region::new(&tcp).map_err(|error| NotARate { path: members[error.path], ..error })?;
            let values: Vec<f64> = members.iter().map(|path| 1.0 - missing[*path]).collect();
            let of_group = greedy(&region, &values, &floors(&region, probing));
            members.iter().zip(of_group).for_each(|(path, rate)| rates[*path] = rate);
        }
        Ok(Self::of(rates, &missing, margin))
    }

    /// The plan with coupled TCP's rates.
    pub fn coupled(paths: &[PathModel], deadline: Duration, bound: &Bound, margin: f64) -> Self {
        let pairs: Vec<(f64, Duration)> = paths.iter().map(|path| (path.loss, path.delays.mean)).collect();
        Self::of(capped(&pairs), &missing(paths, deadline, bound), margin)
    }

    fn of(rates: Vec<PacketRate>, missing: &[f64], margin: f64) -> Self {
        let repair = Repair::plan(&rates, missing, margin);
        let goodput = repair.goodput(&rates);
        Self { rates, repair, goodput }
    }
}

fn path_id(path: usize) -> PathId {
    PathId::new(path as u32)
}

fn missing(paths: &[PathModel], deadline: Duration, bound: &Bound) -> Vec<f64> {
    let of = |(at, path): (usize, &PathModel)| path.missing(bound.late(at, &path.delays, deadline));
    paths.iter().enumerate().map(of).collect()
}
