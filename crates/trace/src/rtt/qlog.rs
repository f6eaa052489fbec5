//! qlog: the events `metrics_updated` of QUIC stacks, as one JSON document or as a line for each
//! event (JSON-SEQ, and the NDJSON of earlier drafts).
//!
//! The round-trip time is `latest_rtt`; of a path that never says it, `smoothed_rtt`. The path is
//! the event's `path_id`, `path` or `tuple`.

mod document;

use std::collections::BTreeMap;
use std::io::BufRead;

use fairpath_core::printable;
use serde_json::Value;

use super::clock::epoch_ms;
use super::lines::{Lines, duration, time};
use super::{Format, LABEL_CHARS_MAX, Limits, RttError, RttSample, Series, TooMuch, Traces};

/// Reads a file with a line for each event.
pub(super) fn read_lines(input: impl BufRead, limits: &Limits) -> Result<Traces, RttError> {
    let mut traces = Traces::new(Format::Qlog);
    let mut lines = Lines::new(input);
    let mut connection = Connection::default();
    while let Some((number, line)) = lines.next()? {
        let value = line.and_then(|line| {
            let line = line.trim_start_matches('\u{1e}');
            serde_json::from_str::<Value>(line).map_err(|error| format!("not the JSON of an event: {error}"))
        });
        match value {
            Ok(value) if value.get("qlog_version").or(value.get("qlog_format")).is_some() => {
                connection = Connection::new(&value["trace"]);
            }
            Ok(value) => connection.add(Event::from(value), limits)?,
            Err(reason) => traces.skip(number, &reason),
        }
    }
    traces.series = connection.finish("");
    Ok(traces)
}

/// Reads a JSON document.
pub(super) fn read_document(input: impl BufRead, limits: &Limits) -> Result<Traces, RttError> {
    let mut traces = Traces::new(Format::Qlog);
    traces.series = document::read(input, limits)?;
    Ok(traces)
}

/// An event as it is kept while a file is read; most events say no round-trip time.
enum Event {
    /// An object: its time, and what it says of a path.
    Told(Option<f64>, Option<Metrics>),
    /// The values of an early draft, whose names are elsewhere in the file.
    Row(Vec<Cell>),
}

/// The figures of a path in an event, in the unit of the file.
struct Metrics {
    path: String,
    latest: Option<f64>,
    smoothed: Option<f64>,
}

/// A value of a row, as it is kept.
enum Cell {
    /// A number, or a text that is one.
    Number(f64),
    /// The name of an event that says something of a path.
    MetricsUpdated,
    /// The figures that an event of that name would have with this as its data.
    Data(Metrics),
    /// Anything else.
    Other,
}

impl From<Value> for Event {
    fn from(value: Value) -> Self {
        match value {
            Value::Array(row) => Self::Row(row.iter().map(Cell::from).collect()),
            event if is_metrics(&event["name"]) => {
                Self::Told(number(&event["time"]), Some(metrics(&event, &event["data"])))
            }
            event => Self::Told(number(&event["time"]), None),
        }
    }
}

impl From<&Value> for Cell {
    fn from(value: &Value) -> Self {
        match number(value) {
            Some(number) => Self::Number(number),
            None if is_metrics(value) => Self::MetricsUpdated,
            None if value.is_object() => Self::Data(metrics(&Value::Null, value)),
            None => Self::Other,
        }
    }
}

/// Whether this is the name of an event that says something of a path.
fn is_metrics(name: &Value) -> bool {
    name.as_str().is_some_and(|name| name.ends_with("metrics_updated"))
}

fn metrics(event: &Value, data: &Value) -> Metrics {
    let path = [&data["path_id"], &event["path_id"], &event["path"], &event["tuple"]];
    let path = path.into_iter().find_map(|id| match id {
        Value::Number(id) => Some(format!("path{id}")),
        Value::String(id) if id.bytes().all(|byte| byte.is_ascii_digit()) => Some(format!("path{id}")),
        Value::String(id) => Some(id.clone()),
        _ => None,
    });
    let path = path.map_or_else(|| "path0".to_owned(), |path| printable(&path, LABEL_CHARS_MAX));
    let [latest, smoothed] = ["latest_rtt", "smoothed_rtt"].map(|name| number(&data[name]));
    Metrics { path, latest, smoothed }
}

/// A number, also one that is written as text, as some stacks do.
fn number(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.parse().ok())
}

/// The events of one trace.
struct Connection {
    /// The unit of times in seconds.
    unit_s: f64,
    /// The time to which times are relative.
    zero: f64,
    /// Whether a time is relative to the event before.
    delta: bool,
    /// The names of the values of a row.
    fields: Vec<String>,
    /// Latest and smoothed round-trip times by path.
    paths: BTreeMap<String, [Vec<RttSample>; 2]>,
    /// How many samples these have.
    kept: usize,
}

impl Default for Connection {
    fn default() -> Self {
        Self::new(&Value::Null)
    }
}

impl Connection {
    /// A trace of which this is said: `common_fields`, and in early drafts `configuration` and
    /// `event_fields`.
    fn new(about: &Value) -> Self {
        let common = &about["common_fields"];
        let format = common["time_format"].as_str().unwrap_or("relative");
        let microseconds = about["configuration"]["time_units"] == "us";
        let reference = &common["reference_time"];
        let zero = match format {
            "absolute" => None,
            _ => number(reference).or_else(|| epoch_ms(reference["epoch"].as_str()?)),
        };
        let fields = about["event_fields"].as_array().map(|fields| fields.iter().filter_map(Value::as_str));
        let early = ["relative_time", "category", "event", "data"];
        Self {
            unit_s: if microseconds { 1e-6 } else { 1e-3 },
            zero: zero.unwrap_or(0.0),
            delta: matches!(format, "delta" | "relative_to_previous_event"),
            fields: fields.map_or(early.map(str::to_owned).into(), |fields| fields.map(str::to_owned).collect()),
            paths: BTreeMap::new(),
            kept: 0,
        }
    }

    fn add(&mut self, event: Event, limits: &Limits) -> Result<(), TooMuch> {
        let (at, metrics) = match event {
            Event::Told(at, metrics) => (at, metrics),
            Event::Row(row) => self.told(row),
        };
        let Some(at) = at else { return Ok(()) };
        let now = self.zero + at;
        if self.delta {
            self.zero = now;
        }
        let Some(metrics) = metrics else { return Ok(()) };
        let path = self.paths.entry(metrics.path).or_default();
        for (samples, rtt) in path.iter_mut().zip([metrics.latest, metrics.smoothed]) {
            let sample = rtt.and_then(|rtt| Some((time(now, self.unit_s)?, duration(rtt, self.unit_s)?)));
            self.kept += usize::from(sample.is_some());
            samples.extend(sample.map(|(at, rtt)| RttSample { at, rtt }));
        }
        limits.check_series(self.paths.len())?;
        limits.check_samples(self.kept)
    }

    /// The name and the figures in the row of an early draft.
    fn told(&self, mut row: Vec<Cell>) -> (Option<f64>, Option<Metrics>) {
        let place =
            |names: &[&str]| self.fields.iter().position(|field| names.contains(&field.to_lowercase().as_str()));
        let mut take = |names: &[&str]| {
            place(names)
                .and_then(|at| row.get_mut(at))
                .map_or(Cell::Other, |cell| core::mem::replace(cell, Cell::Other))
        };
        let at = match take(&["time", "relative_time", "delta_time"]) {
            Cell::Number(at) => Some(at),
            _ => None,
        };
        match (take(&["event", "event_type"]), take(&["data"])) {
            (Cell::MetricsUpdated, Cell::Data(metrics)) => (at, Some(metrics)),
            _ => (at, None),
        }
    }

    /// A series for each path.
    fn finish(self, prefix: &str) -> Vec<Series> {
        let series = |(path, [latest, smoothed]): (String, [Vec<RttSample>; 2])| {
            let samples = if latest.is_empty() { smoothed } else { latest };
            Series { label: Some(format!("{prefix}{path}")), samples }
        };
        self.paths.into_iter().map(series).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::read;
    use super::*;

    type Labelled = (Option<String>, Vec<(f64, f64)>);

    /// The labels of a file with the times and round-trip times in ms.
    fn found(text: &str) -> Vec<Labelled> {
        let traces = read(text.as_bytes()).unwrap();
        assert_eq!(traces.format, Format::Qlog);
        let ms = |sample: &RttSample| (sample.at.as_nanos() as f64 / 1e6, sample.rtt.as_nanos() as f64 / 1e6);
        traces.series.into_iter().map(|one| (one.label, one.samples.iter().map(ms).collect())).collect()
    }

    #[test]
    fn a_document_that_speaks_of_lines_is_none_of_lines() {
        let text = r#"{"qlog_version":"0.3","title":"from NDJSON","traces":[{"events":[
            {"time":1,"name":"recovery:metrics_updated","data":{"latest_rtt":20}}]}]}"#;
        assert_eq!(found(text), [(None, vec![(1.0, 20.0)])]);
        let lines = "{\"qlog_version\":\"draft-02\", \"qlog_format\" : \"NDJSON\"}\n\
            {\"time\":1,\"name\":\"recovery:metrics_updated\",\"data\":{\"latest_rtt\":20}}\n";
        assert_eq!(found(lines), [(None, vec![(1.0, 20.0)])]);
    }

    #[test]
    fn a_document_gives_the_latest_round_trip_times() {
        let text = r#"{"qlog_version":"0.3","traces":[{"common_fields":{"reference_time":1000,"time_format":"relative"},
            "events":[{"time":1.5,"name":"transport:packet_sent","data":{"path_id":[1]}},
                      {"time":2.5,"name":"recovery:metrics_updated","data":{"latest_rtt":20.5,"smoothed_rtt":30}},
                      {"time":3,"name":"recovery:metrics_updated","data":{"congestion_window":1}}]}]}"#;
        assert_eq!(found(text), [(None, vec![(1002.5, 20.5)])]);
    }

    #[test]
    fn a_sequence_has_a_line_for_each_event_and_the_paths_apart() {
        let text = "\u{1e}{\"qlog_format\":\"JSON-SEQ\",\"qlog_version\":\"0.4\",\"trace\":{\"common_fields\":{\"time_format\":\"relative_to_epoch\",\"reference_time\":{\"clock_type\":\"system\",\"epoch\":\"1970-01-01T00:00:02Z\"}}}}\n\
            \u{1e}{\"time\":1,\"name\":\"quic:recovery_metrics_updated\",\"data\":{\"path_id\":0,\"smoothed_rtt\":20}}\n\
            \u{1e}{\"time\":2,\"name\":\"quic:recovery_metrics_updated\",\"path\":\"lte\",\"data\":{\"latest_rtt\":30}}\n\
            \u{1e}{\"time\":3,\"na\n";
        assert_eq!(
            found(text),
            [(Some("lte".into()), vec![(2002.0, 30.0)]), (Some("path0".into()), vec![(2001.0, 20.0)])]
        );
        let bad = read(text.as_bytes()).unwrap().bad;
        assert!(bad.len() == 1 && bad[0].line == 4, "{bad:?}");
    }

    #[test]
    fn times_may_be_relative_to_the_event_before() {
        let text = r#"{"qlog_version":"0.3","traces":[{"common_fields":{"time_format":"delta"},
            "events":[{"time":1,"name":"a","data":{}},{"time":2,"name":"recovery:metrics_updated","data":{"latest_rtt":5}},
                      {"time":3,"name":"recovery:metrics_updated","data":{"latest_rtt":6}}]}]}"#;
        // 1 + 2 = 3, and 3 more are 6.
        assert_eq!(found(text), [(None, vec![(3.0, 5.0), (6.0, 6.0)])]);
    }

    #[test]
    fn the_rows_of_early_drafts_are_read_in_their_own_units() {
        let text = r#"{"qlog_version":"draft-01","traces":[{"configuration":{"time_units":"us"},
            "event_fields":["relative_time","category","event_type","data"],
            "events":[["2000","recovery","metrics_updated",{"latest_rtt":"20000"}]]}]}"#;
        assert_eq!(found(text), [(None, vec![(2.0, 20.0)])]);
    }

    #[test]
    fn a_document_that_is_cut_off_is_an_error_with_its_place() {
        let error = read("{\"qlog_version\":\"0.3\",\n\"traces\":[".as_bytes()).unwrap_err();
        assert!(matches!(error, RttError::Json { line: 2, .. }), "{error}");
        let error = read("{\"qlog_version\":\"0.3\",\"traces\":[]}".as_bytes()).unwrap_err();
        assert!(matches!(error, RttError::NoSamples(_)), "{error}");
    }
}
