//! Fairpath for Python. What is seen there is told in `python/fairpath/_fairpath.pyi`.

mod convert;
mod errors;
mod frame;
mod picture;
mod result;
mod scenario;
mod table;

use pyo3::prelude::*;

/// The module, as the package `fairpath` imports it.
#[pymodule]
fn _fairpath(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<scenario::Scenario>()?;
    module.add_class::<result::RunResult>()?;
    module.add_class::<table::Table>()?;
    module.add_class::<frame::Frame>()?;
    module.add_class::<picture::Picture>()
}
