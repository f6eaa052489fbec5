//! The trend line [TR2018].

mod alpha;
mod bbr;
mod chains;
mod conservative;
mod dumbbell;
mod fairness;
mod fig1;
mod fig2;
mod fig4;
mod fig6;
mod grid;
mod mininet;
mod model;
mod network;
mod separate;
mod sessions;
mod table1;
mod table2;
mod table3;
mod table4;
mod table5;

use crate::Experiment;

/// In the paper's order.
pub(crate) const EXPERIMENTS: &[Experiment] = &[
    conservative::EXPERIMENT,
    fig1::EXPERIMENT,
    fig2::EXPERIMENT,
    table1::EXPERIMENT,
    fig4::EXPERIMENT,
    fig6::EXPERIMENT,
    table2::EXPERIMENT,
    table3::EXPERIMENT,
    table4::EXPERIMENT,
    table5::EXPERIMENT,
    separate::EXPERIMENT,
    bbr::EXPERIMENT,
    alpha::EXPERIMENT,
    grid::EXPERIMENT,
    grid::classes::EXPERIMENT,
];
