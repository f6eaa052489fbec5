//! Series of round-trip times, and which of them share a bottleneck.

use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

use fairpath_core::Timestamp;
use fairpath_judge::{DETECTORS, Named, Report, judge, named, warnings};
use fairpath_trace::rtt::{RttError, RttSample, read};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::convert::from_json;
use crate::errors::{self, wrong};
use crate::frame::{Column, Frame};
use crate::picture::{Picture, html};

/// The verdict on several series.
#[pyclass(module = "fairpath", name = "Shared", frozen)]
pub(crate) struct Shared {
    report: Report,
}

#[pymethods]
impl Shared {
    /// The names of the series, group by group.
    #[getter]
    fn groups(&self) -> Vec<Vec<&str>> {
        let name = |at: &usize| self.report.series[*at].name.as_str();
        self.report.judgement.groups.iter().map(|group| group.iter().map(name).collect()).collect()
    }

    /// Everything, as `fairpath detect --json` prints it.
    #[getter]
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        from_json(py, &self.report.json())
    }

    /// The delays, with the build-ups that match; written to a file where one is given.
    #[pyo3(signature = (path=None))]
    fn plot(&self, path: Option<PathBuf>) -> PyResult<Picture> {
        Picture::new(self.report.svg().map_err(|error| errors::error(&error))?, path)
    }

    fn __repr__(&self) -> String {
        self.report.text().trim_end().to_owned()
    }

    fn _repr_html_(&self) -> PyResult<String> {
        Ok(html(&self.report.text(), &self.report.svg().map_err(|error| errors::error(&error))?))
    }
}

/// Reads the series of a file: by name a frame each, and what should be told of the file.
#[pyfunction]
pub(crate) fn read_series<'py>(py: Python<'py>, path: PathBuf) -> PyResult<(Bound<'py, PyDict>, Vec<String>)> {
    let name = path.display().to_string();
    let io = |cause: std::io::Error| {
        errors::error(&anyhow::Error::new(cause).context(format!("cannot read the trace {name}")))
    };
    let traces = py.detach(|| read(File::open(&path)?)).map_err(|cause| match cause {
        RttError::Io(cause) => io(cause),
        cause => wrong(format!("{name}: {cause}")),
    })?;
    let told = warnings(&name, &traces);
    let series = PyDict::new(py);
    for one in named(&name, traces) {
        let nanoseconds = |of: fn(&RttSample) -> u64| Column::Whole(one.samples.iter().map(of).collect());
        let columns = [
            ("time_ns", nanoseconds(|sample| sample.at.as_nanos())),
            ("rtt_ns", nanoseconds(|sample| sample.rtt.as_nanos() as u64)),
        ];
        series.set_item(&one.name, Frame::new(columns))?;
    }
    Ok((series, told))
}

/// Judges series, each with its times and round-trip times in nanoseconds, eight bytes each, in order of time.
#[pyfunction]
pub(crate) fn judge_series(
    py: Python<'_>,
    series: Vec<(String, Vec<u8>, Vec<u8>)>,
    detector: &str,
    hold_ns: u64,
) -> PyResult<Shared> {
    let series = series.into_iter().map(|(name, times, delays)| {
        let sample =
            |(at, rtt): (u64, u64)| RttSample { at: Timestamp::from_nanos(at), rtt: Duration::from_nanos(rtt) };
        Named { name, kind: "array", samples: numbers(&times).zip(numbers(&delays)).map(sample).collect() }
    });
    let series: Vec<Named> = series.collect();
    if let Some(empty) = series.iter().find(|one| one.samples.is_empty()) {
        return Err(wrong(format!("{}: there is no round-trip time", empty.name)));
    }
    let judged = py.detach(|| judge(series, detector, Duration::from_nanos(hold_ns), Vec::new(), || {}));
    judged.map(|report| Shared { report }).map_err(|error| wrong(error.to_string()))
}

/// The names of the detectors, the default first.
#[pyfunction]
pub(crate) fn detectors() -> Vec<&'static str> {
    DETECTORS.to_vec()
}

fn numbers(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.as_chunks::<8>().0.iter().map(|chunk| u64::from_le_bytes(*chunk))
}
