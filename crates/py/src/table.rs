//! The results of a sweep.

use std::path::PathBuf;

use fairpath_runs::{ParameterValue, Results, figure};
use pyo3::prelude::*;

use crate::convert::from_json;
use crate::errors;
use crate::frame::{Column, Frame};
use crate::picture::{Picture, html};

/// Means over seeds, with 95 % intervals, at each point of a sweep; as a frame it has the rows.
#[pyclass(module = "fairpath", extends = Frame, frozen)]
pub(crate) struct Table {
    results: Results,
}

/// A parameter as a column: numbers where all of its values are.
fn column(values: &[&ParameterValue]) -> Column {
    let numbers: Option<Vec<_>> = values.iter().map(|value| value.number().map(Some)).collect();
    numbers
        .map_or_else(|| Column::Text(values.iter().map(|value| value.plain().into_owned()).collect()), Column::Number)
}

impl Table {
    pub(crate) fn new(py: Python<'_>, results: Results) -> PyResult<Py<Self>> {
        let whole = PyClassInitializer::from(Self::frame(&results)).add_subclass(Self { results });
        Py::new(py, whole)
    }

    fn frame(results: &Results) -> Frame {
        let rows = results.rows();
        let parameters = results.parameters().enumerate().map(|(at, name)| {
            let values: Vec<&ParameterValue> = rows.iter().map(|row| &row.values[at]).collect();
            (name.to_owned(), column(&values))
        });
        let text = |of: &dyn Fn(usize) -> String| Column::Text((0..rows.len()).map(of).collect());
        let number = |of: &dyn Fn(usize) -> Option<f64>| Column::Number((0..rows.len()).map(of).collect());
        let own = [
            ("kind", text(&|at| rows[at].kind.to_owned())),
            ("name", text(&|at| rows[at].name.to_owned())),
            ("path", number(&|at| rows[at].path.map(|path| path as f64))),
            ("quantity", text(&|at| rows[at].quantity.to_owned())),
            ("mean", number(&|at| Some(rows[at].mean.mean))),
            ("half_width_95", number(&|at| rows[at].mean.half_width)),
            ("samples", number(&|at| Some(rows[at].mean.samples as f64))),
        ];
        Frame::new(parameters.chain(own.map(|(name, column)| (name.to_owned(), column))))
    }

    fn svg(&self) -> PyResult<String> {
        figure(&self.results).svg().map_err(|error| errors::error(&error.into()))
    }
}

#[pymethods]
impl Table {
    /// The summary, as `fairpath sim --seeds … --json` prints it.
    #[getter]
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        from_json(py, &self.results.json())
    }

    /// A row for each quantity of each class of flows, path and link at each point.
    #[getter]
    fn rows(&self) -> Frame {
        Self::frame(&self.results)
    }

    /// The same rows as comma-separated values, as `fairpath sim --seeds …` writes them.
    fn to_csv(&self) -> String {
        self.results.csv()
    }

    /// The picture of all points; written to a file where one is given.
    #[pyo3(signature = (path=None))]
    fn plot(&self, path: Option<PathBuf>) -> PyResult<Picture> {
        Picture::new(self.svg()?, path)
    }

    fn __str__(&self) -> String {
        self.results.text().trim_end().to_owned()
    }

    fn __repr__(&self) -> String {
        self.__str__()
    }

    fn _repr_html_(&self) -> PyResult<String> {
        Ok(html(&self.results.text(), &self.svg()?))
    }
}
