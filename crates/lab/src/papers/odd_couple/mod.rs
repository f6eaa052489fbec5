//! The odd couple: loss-based congestion control and min-RTT scheduling [Luebben2019].

mod buffers;
mod profiles;

use crate::Experiment;

/// In the order of the slides, and then our own question.
pub(crate) const EXPERIMENTS: &[Experiment] = &[buffers::EXPERIMENT, profiles::EXPERIMENT];
