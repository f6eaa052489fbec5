//! DAIMD [DAIMD2016].

mod fig2;
mod fig3;
mod fig4;
mod fig5;
mod fig6;
mod idle;
mod losses;
mod model;
mod queueing;
mod sensitivity;
mod setup;
mod shared;
mod table1;
mod table2;
mod windows;

use crate::Experiment;

/// In the paper's order.
pub(crate) const EXPERIMENTS: &[Experiment] = &[
    fig2::EXPERIMENT,
    fig3::EXPERIMENT,
    table1::EXPERIMENT,
    fig4::EXPERIMENT,
    fig5::EXPERIMENT,
    fig6::EXPERIMENT,
    table2::EXPERIMENT,
    losses::EXPERIMENT,
    queueing::EXPERIMENT,
    sensitivity::EXPERIMENT,
    model::EXPERIMENT,
];
