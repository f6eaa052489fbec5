//! TCP-friendly rate control for non-TCP multipath flows [Pluntke2011].

mod fig1;

use crate::Experiment;

/// In the order of the paper.
pub(crate) const EXPERIMENTS: &[Experiment] = &[fig1::EXPERIMENT];
