//! OLIA [Khalili2013; OLIA; CoNEXT2012OLIA].

mod algorithms;
mod asymmetric;
mod data_centre;
mod downloads;
mod dynamic_fat_tree;
mod goals;
mod load_balancing;
mod responsiveness;
mod scenario_a;
mod scenario_c;
mod sensitivity;
mod static_fat_tree;
mod symmetric;
mod theorems;
mod traces;
mod two_bottlenecks;
mod two_paths;
mod two_routers;

use crate::Experiment;

/// In the paper's order.
pub(crate) const EXPERIMENTS: &[Experiment] = &[
    two_paths::EXPERIMENT,
    goals::EXPERIMENT,
    scenario_a::EXPERIMENT,
    scenario_c::EXPERIMENT,
    theorems::EXPERIMENT,
    downloads::EXPERIMENT,
    symmetric::EXPERIMENT,
    asymmetric::EXPERIMENT,
    static_fat_tree::EXPERIMENT,
    dynamic_fat_tree::EXPERIMENT,
    responsiveness::EXPERIMENT,
    sensitivity::EXPERIMENT,
];
