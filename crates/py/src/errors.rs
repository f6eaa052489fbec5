//! Errors as the exceptions of `fairpath.errors`.

use fairpath_runs::{Stopped, Unusable};
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError};
use pyo3::prelude::*;

/// An exception of `fairpath.errors` with this text.
fn raised(name: &str, text: String) -> PyErr {
    Python::attach(|py| {
        let class = py.import("fairpath.errors").and_then(|module| module.getattr(name));
        class.and_then(|class| class.call1((text,))).map_or_else(|error| error, PyErr::from_value)
    })
}

/// A scenario that cannot be meant.
pub(crate) fn unusable(text: impl Into<String>) -> PyErr {
    raised("ScenarioError", text.into())
}

/// Numbers that cannot be meant.
pub(crate) fn wrong(text: impl Into<String>) -> PyErr {
    raised("DataError", text.into())
}

/// The exception for whatever went wrong.
pub(crate) fn error(error: &anyhow::Error) -> PyErr {
    if let Some(Unusable(text)) = error.downcast_ref() {
        return unusable(text);
    }
    if error.is::<Stopped>() {
        return PyKeyboardInterrupt::new_err(());
    }
    let text = format!("{error:#}");
    if error.chain().any(|cause| cause.is::<std::io::Error>()) {
        PyOSError::new_err(text)
    } else {
        raised("Error", text)
    }
}
