//! Columns of equal length, for numpy and, by way of Arrow, for all others.

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, Float64Array, RecordBatch, RecordBatchIterator, StringArray, UInt32Array, UInt64Array};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyList};

use crate::errors;

/// The values of a column, one for each row.
pub(crate) enum Column {
    /// Names.
    Text(Vec<String>),
    /// Numbers of paths and the like.
    Small(Vec<u32>),
    /// Times and amounts.
    Whole(Vec<u64>),
    /// Quantities, some of which may not be known: NaN in numpy, null in Arrow.
    Number(Vec<Option<f64>>),
}

impl Column {
    fn len(&self) -> usize {
        match self {
            Self::Text(values) => values.len(),
            Self::Small(values) => values.len(),
            Self::Whole(values) => values.len(),
            Self::Number(values) => values.len(),
        }
    }

    fn arrow(&self) -> ArrayRef {
        match self {
            Self::Text(values) => Arc::new(StringArray::from_iter_values(values)),
            Self::Small(values) => Arc::new(UInt32Array::from_iter_values(values.iter().copied())),
            Self::Whole(values) => Arc::new(UInt64Array::from_iter_values(values.iter().copied())),
            Self::Number(values) => Arc::new(Float64Array::from_iter(values.iter().copied())),
        }
    }

    fn numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let numpy = py.import("numpy")?;
        let view = |bytes: Vec<u8>, kind: &str| numpy.call_method1("frombuffer", (PyBytes::new(py, &bytes), kind));
        match self {
            Self::Text(values) => numpy.call_method1("array", (PyList::new(py, values)?,)),
            Self::Small(values) => view(values.iter().flat_map(|value| value.to_le_bytes()).collect(), "<u4"),
            Self::Whole(values) => view(values.iter().flat_map(|value| value.to_le_bytes()).collect(), "<u8"),
            Self::Number(values) => {
                view(values.iter().flat_map(|value| value.unwrap_or(f64::NAN).to_le_bytes()).collect(), "<f8")
            }
        }
    }
}

/// Columns of equal length.
#[pyclass(module = "fairpath", subclass, frozen)]
pub(crate) struct Frame {
    columns: Vec<(String, Column)>,
}

impl Frame {
    pub(crate) fn new<N: Into<String>>(columns: impl IntoIterator<Item = (N, Column)>) -> Self {
        Self { columns: columns.into_iter().map(|(name, column)| (name.into(), column)).collect() }
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|(name, _)| name.as_str())
    }

    fn stream<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let arrays = self.columns.iter().map(|(name, column)| (name, column.arrow(), true));
        let whole = RecordBatch::try_from_iter_with_nullable(arrays)
            .map_err(|error| errors::error(&anyhow::Error::new(error)))?;
        let schema = whole.schema();
        let stream = FFI_ArrowArrayStream::new(Box::new(RecordBatchIterator::new([Ok(whole)], schema)));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}

#[pymethods]
impl Frame {
    /// The names of the columns, in order.
    #[getter]
    fn columns(&self) -> Vec<&str> {
        self.names().collect()
    }

    fn __len__(&self) -> usize {
        self.columns.first().map_or(0, |(_, column)| column.len())
    }

    fn __getitem__<'py>(&self, py: Python<'py>, column: &str) -> PyResult<Bound<'py, PyAny>> {
        match self.columns.iter().find(|(name, _)| name == column) {
            Some((_, column)) => column.numpy(py),
            None => {
                let names: Vec<&str> = self.names().collect();
                Err(PyKeyError::new_err(format!("there is no column {column:?}; there are {}", names.join(", "))))
            }
        }
    }

    fn __contains__(&self, column: &str) -> bool {
        self.names().any(|name| name == column)
    }

    /// The columns as an Arrow stream. They have one schema, and no other is offered.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        self.stream(py)
    }

    fn __repr__(&self) -> String {
        format!("Frame of {} rows: {}", self.__len__(), self.names().collect::<Vec<_>>().join(", "))
    }
}
