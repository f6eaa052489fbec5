//! The traces that this crate writes: the smoothed round-trip time of every path of every flow.

use core::time::Duration;
use std::collections::BTreeMap;
use std::io::BufRead;

use fairpath_core::{Timestamp, printable};

use super::{Format, LABEL_CHARS_MAX, Limits, RttError, RttSample, Series, Traces};
use crate::reader::{ReadError, Reader};
use crate::record::{Record, State};

/// Reads a trace of this crate.
pub(super) fn read(input: impl BufRead, limits: &Limits) -> Result<Traces, RttError> {
    let mut traces = Traces::new(Format::Ndjson);
    let reader = Reader::new(input).map_err(|error| match error {
        ReadError::Io(error) => RttError::Io(error),
        other => RttError::Header(other),
    })?;
    let mut places = BTreeMap::new();
    let mut kept = 0;
    for record in reader {
        match record {
            Ok(record) => {
                let Some((label, sample)) = sample(&record) else { continue };
                let at = *places.entry(label).or_insert_with_key(|label| {
                    traces.series.push(Series { label: Some(label.clone()), samples: Vec::new() });
                    traces.series.len() - 1
                });
                traces.series[at].samples.push(sample);
                kept += 1;
                limits.check_series(traces.series.len())?;
                limits.check_samples(kept)?;
            }
            Err(ReadError::Record { line, column, reason }) => {
                traces.skip(line, &format!("column {column}: not a record of a Fairpath trace: {reason}"));
            }
            Err(ReadError::Io(error)) => return Err(error.into()),
            Err(ReadError::LineTooLong { line }) => {
                traces.skip(line, "too long for a record; what follows is left out");
            }
            Err(other) => return Err(RttError::Header(other)),
        }
    }
    Ok(traces)
}

/// The round-trip time of a record, and the path it is of; `None`: it says none.
fn sample(record: &Record) -> Option<(String, RttSample)> {
    let rtt_ns = record.srtt_ns.filter(|_| record.state != State::Closed)?;
    let labels = [record.run.as_deref(), record.flow.as_deref()].into_iter().flatten();
    let path = format!("path{}", record.path);
    let label =
        labels.chain([path.as_str()]).map(|part| printable(part, LABEL_CHARS_MAX)).collect::<Vec<_>>().join("/");
    let at = Timestamp::from_nanos(record.time_ns);
    Some((label, RttSample { at, rtt: Duration::from_nanos(rtt_ns) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(time_ns: u64, flow: &str, path: u32, srtt_ns: &str, state: &str) -> String {
        format!(
            r#"{{"time_ns":{time_ns},"flow":"{flow}","path":{path},"cwnd_bytes":1,"srtt_ns":{srtt_ns},"rtt_min_ns":1,"in_flight_bytes":0,"rate_bps":null,"lost":0,"group":0,"state":"{state}"}}"#
        ) + "\n"
    }

    #[test]
    fn every_path_of_every_flow_is_a_series() {
        let text = "{\"fairpath_trace\":1,\"version\":\"0.1.0\"}\n".to_owned()
            + &line(1, "up", 0, "null", "slow_start")
            + &line(2, "up", 0, "20", "slow_start")
            + &line(2, "up", 1, "30", "recovery")
            + &line(3, "down", 0, "40", "suspected")
            + "broken\n"
            + &line(4, "down", 0, "40", "closed");
        let traces = super::super::read(text.as_bytes()).unwrap();
        let found: Vec<_> =
            traces.series.iter().map(|series| (series.label.as_deref().unwrap(), series.samples.len())).collect();
        assert_eq!(found, [("up/path0", 1), ("up/path1", 1), ("down/path0", 1)]);
        assert_eq!((traces.format, traces.bad_count, traces.bad[0].line), (Format::Ndjson, 1, 6));
    }

    #[test]
    fn a_trace_of_links_is_refused() {
        let error = super::super::read("{\"fairpath_links\":1,\"version\":\"0.1.0\"}\n".as_bytes()).unwrap_err();
        assert!(matches!(error, RttError::Links), "{error}");
    }
}
