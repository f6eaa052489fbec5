//! The result of one run.

use std::path::PathBuf;

use fairpath_runs::{Kept, json, text};
use fairpath_scenario::Scenario;
use fairpath_trace::{LinkRecord, Record};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use serde_json::Value;

use crate::convert::from_json;
use crate::errors;
use crate::frame::{Column, Frame};
use crate::picture::{Picture, html};

/// The result of one run.
#[pyclass(module = "fairpath", name = "Result", frozen)]
pub(crate) struct RunResult {
    scenario: Scenario,
    kept: Kept,
    summary: Value,
    text: String,
}

impl RunResult {
    pub(crate) fn new(scenario: Scenario, kept: Kept, outcome: &fairpath_runs::Outcome) -> Self {
        let (summary, text) = (json(&scenario, outcome), text(&scenario, outcome));
        Self { scenario, kept, summary, text }
    }

    fn svg(&self) -> PyResult<String> {
        self.kept.picture.svg().map_err(|error| errors::error(&error))
    }
}

#[pymethods]
impl RunResult {
    /// The summary, as `fairpath sim --json` prints it.
    #[getter]
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        from_json(py, &self.summary)
    }

    /// Each path at each sample.
    #[getter]
    fn paths(&self) -> Frame {
        let records = &self.kept.paths;
        let whole = |of: fn(&Record) -> u64| Column::Whole(records.iter().map(of).collect());
        let known = |of: fn(&Record) -> Option<u64>| {
            Column::Number(records.iter().map(|record| of(record).map(|value| value as f64)).collect())
        };
        Frame::new([
            ("time_ns", whole(|record| record.time_ns)),
            ("flow", Column::Text(records.iter().map(|record| record.flow.clone().unwrap_or_default()).collect())),
            ("path", Column::Small(records.iter().map(|record| record.path).collect())),
            ("cwnd_bytes", whole(|record| record.cwnd_bytes)),
            ("srtt_ns", known(|record| record.srtt_ns)),
            ("rtt_min_ns", known(|record| record.rtt_min_ns)),
            ("in_flight_bytes", whole(|record| record.in_flight_bytes)),
            ("rate_bps", known(|record| record.rate_bps)),
            ("lost_bytes", whole(|record| record.lost)),
            ("group", Column::Small(records.iter().map(|record| record.group).collect())),
            ("state", Column::Text(records.iter().map(|record| record.state.to_string()).collect())),
        ])
    }

    /// Each link at each sample; what is counted is counted since the start.
    #[getter]
    fn links(&self) -> Frame {
        let records = &self.kept.links;
        let whole = |of: fn(&LinkRecord) -> u64| Column::Whole(records.iter().map(of).collect());
        Frame::new([
            ("time_ns", whole(|record| record.time_ns)),
            ("link", Column::Text(records.iter().map(|record| record.link.clone()).collect())),
            ("queued_packets", whole(|record| record.queued_packets)),
            ("queued_bytes", whole(|record| record.queued_bytes)),
            ("delivered_bytes", whole(|record| record.delivered_bytes)),
            ("dropped_packets", whole(|record| record.dropped_packets)),
            ("marked_packets", whole(|record| record.marked_packets)),
        ])
    }

    /// The rate at which a flow delivered in order after the warm-up, without headers, in bits per second.
    fn goodput_bps(&self, flow: &str) -> PyResult<u64> {
        let flows = self.summary["flows"].as_array().map_or(&[][..], Vec::as_slice);
        let found = flows.iter().find(|entry| entry["name"] == flow).and_then(|entry| entry["goodput_bps"].as_u64());
        found.ok_or_else(|| {
            let names: Vec<&str> = flows.iter().filter_map(|entry| entry["name"].as_str()).take(20).collect();
            PyKeyError::new_err(format!("there is no flow {flow:?}; there are {}", names.join(", ")))
        })
    }

    /// The picture of the run; written to a file where one is given.
    #[pyo3(signature = (path=None))]
    fn plot(&self, path: Option<PathBuf>) -> PyResult<Picture> {
        Picture::new(self.svg()?, path)
    }

    /// Writes the files of `fairpath sim --out`, the same to the byte; returns the folder.
    fn save(&self, folder: PathBuf) -> PyResult<String> {
        let saved = self.kept.save(&folder, &self.scenario, &self.summary).map_err(|error| errors::error(&error))?;
        Ok(saved.display().to_string())
    }

    fn __str__(&self) -> &str {
        self.text.trim_end()
    }

    fn __repr__(&self) -> &str {
        self.text.trim_end()
    }

    fn _repr_html_(&self) -> PyResult<String> {
        Ok(html(&self.text, &self.svg()?))
    }
}
