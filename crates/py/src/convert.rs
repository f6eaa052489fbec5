//! Values of Python as values of a scenario file, and JSON as values of Python.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use serde_json::Value as Json;
use toml::Value;

use crate::errors::unusable;

/// A dictionary may hold others to this depth; none of a scenario's keys is deeper.
const DEPTH_MAX: usize = 16;

/// A value of Python as a scenario file has it; `key` is where it stands.
pub(crate) fn to_toml(value: &Bound<'_, PyAny>, key: &str) -> PyResult<Value> {
    nested(value, key, 0)
}

fn nested(value: &Bound<'_, PyAny>, key: &str, depth: usize) -> PyResult<Value> {
    if depth > DEPTH_MAX {
        return Err(unusable(format!("{key}: deeper than any key of a scenario")));
    }
    // `bool` is an `int`, so it comes first.
    if let Ok(flag) = value.cast::<PyBool>() {
        return Ok(Value::Boolean(flag.is_true()));
    }
    if value.is_instance_of::<PyInt>() {
        let number: i64 = value.extract().map_err(|_| unusable(format!("{key}: {value} is too large a number")))?;
        return Ok(Value::Integer(number));
    }
    if value.is_instance_of::<PyFloat>() {
        let number: f64 = value.extract()?;
        if !number.is_finite() {
            return Err(unusable(format!("{key}: {number} is no finite number")));
        }
        return Ok(Value::Float(number));
    }
    if value.is_instance_of::<PyString>() {
        return Ok(Value::String(value.extract()?));
    }
    if let Ok(entries) = value.cast::<PyDict>() {
        return Ok(Value::Table(table(entries, key, depth)?));
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let entry =
            |(at, value): (usize, PyResult<Bound<'_, PyAny>>)| nested(&value?, &format!("{key}[{at}]"), depth + 1);
        return value.try_iter()?.enumerate().map(entry).collect::<PyResult<_>>().map(Value::Array);
    }
    // Scalars of numpy are what their `item` says.
    if let Ok(plain) = value.call_method0("item") {
        return nested(&plain, key, depth + 1);
    }
    let kind = value.get_type().name()?;
    Err(PyTypeError::new_err(format!(
        "{key}: a {kind} cannot stand in a scenario; text, numbers, lists and dictionaries can"
    )))
}

/// The entries of a dictionary, whose keys are text.
pub(crate) fn table(entries: &Bound<'_, PyDict>, key: &str, depth: usize) -> PyResult<toml::Table> {
    let entry = |(name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        let name: String = name.extract().map_err(|_| unusable(format!("{key}: the key {name} is no text")))?;
        let key = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
        Ok((name, nested(&value, &key, depth + 1)?))
    };
    entries.iter().map(entry).collect()
}

/// JSON as dictionaries, lists, text and numbers.
pub(crate) fn from_json<'py>(py: Python<'py>, value: &Json) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Json::Null => py.None().into_bound(py),
        Json::Bool(flag) => PyBool::new(py, *flag).to_owned().into_any(),
        Json::String(text) => PyString::new(py, text).into_any(),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => number.into_pyobject(py)?.into_any(),
            (_, Some(number)) => number.into_pyobject(py)?.into_any(),
            _ => PyFloat::new(py, number.as_f64().unwrap_or(f64::NAN)).into_any(),
        },
        Json::Array(values) => {
            let values = values.iter().map(|value| from_json(py, value)).collect::<PyResult<Vec<_>>>()?;
            PyList::new(py, values)?.into_any()
        }
        Json::Object(entries) => {
            let dict = PyDict::new(py);
            for (name, value) in entries {
                dict.set_item(name, from_json(py, value)?)?;
            }
            dict.into_any()
        }
    })
}
