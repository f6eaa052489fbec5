//! The default configuration: how fair and how fast it is in networks as they are.

mod ablation;
mod alike;
mod budget;
mod cell;
mod deadline;
mod found;
mod grid;
mod halved;
mod live;
mod loss;
mod said;
mod scene;
mod short_queues;
mod start;

use crate::Experiment;

/// In the order of the questions.
pub(crate) const EXPERIMENTS: &[Experiment] = &[
    scene::EXPERIMENT,
    grid::EXPERIMENT,
    start::EXPERIMENT,
    found::EXPERIMENT,
    alike::EXPERIMENT,
    loss::EXPERIMENT,
    ablation::EXPERIMENT,
    deadline::EXPERIMENT,
    budget::EXPERIMENT,
    live::EXPERIMENT,
    short_queues::EXPERIMENT,
];
