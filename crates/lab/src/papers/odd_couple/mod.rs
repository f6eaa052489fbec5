//! The odd couple: loss-based congestion control and min-RTT scheduling [Luebben2019].

mod buffers;
mod couple;
mod drive;
mod fairness;
mod heterogeneity;
mod mechanism;
pub(super) mod profiles;
mod queues;
mod receive;
mod remedies;
mod trace;

use crate::Experiment;

/// In the order of the slides, and then our own questions.
pub(crate) const EXPERIMENTS: &[Experiment] = &[
    drive::EXPERIMENT,
    buffers::EXPERIMENT,
    mechanism::EXPERIMENT,
    queues::EXPERIMENT,
    receive::EXPERIMENT,
    remedies::EXPERIMENT,
    fairness::EXPERIMENT,
    profiles::EXPERIMENT,
    heterogeneity::EXPERIMENT,
];
