//! Errors: faults of a scenario, and violations of the simulator's invariants.

use core::time::Duration;

use fairpath_core::Timestamp;
use fairpath_engine::UnknownName;
use fairpath_net::TopologyError;

/// A scenario that cannot be run. The fault is the scenario's.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SimError {
    /// A link cannot be meant.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// A flow names an algorithm that does not exist.
    #[error("flow {flow:?}: {source}")]
    Algorithm {
        /// The flow.
        flow: String,
        /// The name.
        source: UnknownName,
    },
    /// A flow has no path.
    #[error("flow {flow:?} has no path")]
    NoPath {
        /// The flow.
        flow: String,
    },
    /// A flow has more paths than packets can name.
    #[error("flow {flow:?} has {paths} paths; at most {} can be told apart", u16::MAX)]
    TooManyPaths {
        /// The flow.
        flow: String,
        /// How many.
        paths: usize,
    },
    /// A flow's path or a change names a link that the scenario does not have.
    #[error("{what} goes over link number {link}, and there are only {links} links")]
    UnknownLink {
        /// The flow or the change that names it.
        what: String,
        /// The link.
        link: u32,
        /// How many there are.
        links: usize,
    },
    /// Several cores cannot run it: a link has no delay in which they may run ahead of each other.
    #[error(
        "link {link:?} passes packets on without any delay, or with a jitter that may take all of it; give it a `delay`, or run it on one core"
    )]
    NoLookahead {
        /// The link.
        link: String,
    },
    /// Several cores cannot run it: a path has no link.
    #[error("flow {flow:?} has a path without a link there or back; give it one, or run it on one core")]
    NoLink {
        /// The flow.
        flow: String,
    },
    /// The links hold more packets than fit the memory, or the hosts have sent more that are open.
    #[error(
        "at {at} more than {most} packets are on their way, most of them at link {name:?} (rate {rate}, delay {delay:?}, queue {queue}); give it a lower `rate`, a shorter `delay` or a smaller `queue`"
    )]
    TooManyPackets {
        /// When.
        at: Timestamp,
        /// How many may be.
        most: u64,
        /// The link that holds most.
        name: String,
        /// Its rate.
        rate: String,
        /// Its delay.
        delay: Duration,
        /// The capacity of its queue.
        queue: String,
    },
    /// More connections are open than fit the memory.
    #[error(
        "at {at} more than {most} connections are open, most of them of flow {flow:?}; give its `short_flows` a longer `mean_interval` or a smaller `size`"
    )]
    TooManyConnections {
        /// When.
        at: Timestamp,
        /// How many may be.
        most: usize,
        /// The flow that has most.
        flow: String,
    },
    /// A flow has had more transfers or frames than are noted.
    #[error(
        "by {at} flow {flow:?} has had more than {most} transfers or frames; give the run a shorter `duration`, or the flow a longer `mean_interval` or fewer `frames_per_second`"
    )]
    TooManyTimes {
        /// When.
        at: Timestamp,
        /// How many are noted.
        most: usize,
        /// The flow.
        flow: String,
    },
    /// The events come to no end, and no time passes.
    #[error(
        "time stands still at {at}, after {events} events at that moment; on the way of every flow one link needs a `delay` above zero, or a `rate` that is not \"unlimited\""
    )]
    Standstill {
        /// When.
        at: Timestamp,
        /// How many events there were.
        events: u64,
    },
}

/// Something that must always hold did not. The fault is the simulator's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at {at}: {what}")]
pub struct Violation {
    /// When it was found.
    pub at: Timestamp,
    /// What.
    pub what: String,
}
