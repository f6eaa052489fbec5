//! Pictures that notebooks show.

use std::path::PathBuf;

use pyo3::prelude::*;

/// A picture as SVG.
#[pyclass(module = "fairpath", frozen)]
pub(crate) struct Picture {
    svg: String,
}

impl Picture {
    /// The picture; written to a file where there is one.
    pub(crate) fn new(svg: String, path: Option<PathBuf>) -> PyResult<Self> {
        if let Some(path) = path {
            std::fs::write(&path, &svg).map_err(|error| {
                crate::errors::error(&anyhow::Error::new(error).context(format!("cannot write {}", path.display())))
            })?;
        }
        Ok(Self { svg })
    }
}

#[pymethods]
impl Picture {
    /// The picture as text.
    #[getter]
    fn svg(&self) -> &str {
        &self.svg
    }

    fn _repr_svg_(&self) -> &str {
        &self.svg
    }
}

/// A table for people and a picture under it, as a page has them.
pub(crate) fn html(text: &str, svg: &str) -> String {
    let text = text.trim_end().replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    format!("<pre>{text}</pre>{svg}")
}
