//! TCP-friendly rate control for non-TCP multipath flows [Pluntke2011].

mod deadlines;
mod fig1;
mod friendly;
mod live;
mod modems;
mod servers;
mod simulated;
mod system;

use crate::Experiment;

/// In the order of the paper.
pub(crate) const EXPERIMENTS: &[Experiment] = &[
    fig1::EXPERIMENT,
    simulated::EXPERIMENT,
    friendly::EXPERIMENT,
    servers::EXPERIMENT,
    deadlines::EXPERIMENT,
    modems::EXPERIMENT,
];
