//! Fairpath for Python. What is seen there is told in `python/fairpath/_fairpath.pyi`.

mod convert;
mod emulation;
mod env;
mod errors;
mod frame;
mod lab;
mod models;
mod own;
mod picture;
mod plan;
mod result;
mod scenario;
mod table;
mod traces;

use pyo3::prelude::*;

/// The module, as the package `fairpath` imports it.
#[pymodule]
fn _fairpath(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<scenario::Scenario>()?;
    module.add_class::<result::RunResult>()?;
    module.add_class::<table::Table>()?;
    module.add_class::<frame::Frame>()?;
    module.add_class::<picture::Picture>()?;
    module.add_class::<traces::Shared>()?;
    module.add_class::<env::Env>()?;
    module.add_function(wrap_pyfunction!(env::step_all, module)?)?;
    module.add_function(wrap_pyfunction!(env::congestion_controls, module)?)?;
    module.add_function(wrap_pyfunction!(env::schedulers, module)?)?;
    module.add_class::<lab::Cut>()?;
    module.add_function(wrap_pyfunction!(lab::experiments, module)?)?;
    module.add_function(wrap_pyfunction!(lab::run_experiment, module)?)?;
    module.add_function(wrap_pyfunction!(lab::keep_reports, module)?)?;
    module.add_class::<emulation::Emulation>()?;
    module.add_class::<plan::SweepPlan>()?;
    module.add_class::<own::Path>()?;
    module.add_class::<own::Ack>()?;
    module.add_class::<own::Loss>()?;
    module.add_class::<own::Connection>()?;
    module.add_function(wrap_pyfunction!(traces::detectors, module)?)?;
    module.add_function(wrap_pyfunction!(traces::judge_series, module)?)?;
    module.add_function(wrap_pyfunction!(traces::read_series, module)?)?;
    module.add_function(wrap_pyfunction!(models::settle, module)?)?;
    module.add_function(wrap_pyfunction!(models::best_rates, module)?)
}
