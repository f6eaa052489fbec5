//! A trace as a table.

use std::io::{BufRead, Write};

use crate::reader::{ReadError, Reader};
use crate::record::Record;

/// The first line of the table. The names are those of the records, except that `lost` says its
/// unit here.
pub const COLUMNS: [&str; 12] = [
    "run",
    "flow",
    "time_ns",
    "path",
    "cwnd_bytes",
    "srtt_ns",
    "rtt_min_ns",
    "in_flight_bytes",
    "rate_bps",
    "lost_bytes",
    "group",
    "state",
];

/// A trace could not be made into a table.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The trace could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The table could not be written.
    #[error("cannot write the table")]
    Write(#[from] ::csv::Error),
}

/// Writes the records of `trace` to `out` as comma-separated values and says how many there were.
///
/// A `null` in the trace is an empty cell. A record without a label for its run gets that of
/// the header. The first bad line ends the export.
pub fn export<R: BufRead, W: Write>(trace: Reader<R>, out: W) -> Result<u64, ExportError> {
    let run_of_file = trace.header().run.clone().unwrap_or_default();
    let mut table = ::csv::Writer::from_writer(out);
    table.write_record(COLUMNS)?;
    let mut rows = 0;
    for record in trace {
        table.write_record(cells(record?, &run_of_file))?;
        rows += 1;
    }
    table.flush().map_err(::csv::Error::from)?;
    Ok(rows)
}

/// The cells of a record, in the order of [`COLUMNS`].
fn cells(record: Record, run_of_file: &str) -> [String; COLUMNS.len()] {
    let optional = |number: Option<u64>| number.map(|number| number.to_string()).unwrap_or_default();
    [
        record.run.unwrap_or_else(|| run_of_file.to_owned()),
        record.flow.unwrap_or_default(),
        record.time_ns.to_string(),
        record.path.to_string(),
        record.cwnd_bytes.to_string(),
        optional(record.srtt_ns),
        optional(record.rtt_min_ns),
        record.in_flight_bytes.to_string(),
        optional(record.rate_bps),
        record.lost.to_string(),
        record.group.to_string(),
        record.state.to_string(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(trace: &str) -> Result<String, ExportError> {
        let mut out = Vec::new();
        export(Reader::new(trace.as_bytes())?, &mut out)?;
        Ok(String::from_utf8(out).expect("cells are text"))
    }

    #[test]
    fn a_trace_becomes_a_table_with_units_in_its_first_line() {
        let trace = r#"{"fairpath_trace":1,"version":"0.1.0","run":"shared/lia"}
{"time_ns":1000,"flow":"a, b","path":0,"cwnd_bytes":12000,"srtt_ns":null,"rtt_min_ns":null,"in_flight_bytes":1200,"rate_bps":null,"lost":0,"group":0,"state":"slow_start"}
{"time_ns":2000,"run":"x","path":1,"cwnd_bytes":6000,"srtt_ns":20,"rtt_min_ns":10,"in_flight_bytes":0,"rate_bps":8000,"lost":1200,"group":0,"state":"recovery"}
"#;
        let expected = "\
run,flow,time_ns,path,cwnd_bytes,srtt_ns,rtt_min_ns,in_flight_bytes,rate_bps,lost_bytes,group,state
shared/lia,\"a, b\",1000,0,12000,,,1200,,0,0,slow_start
x,,2000,1,6000,20,10,0,8000,1200,0,recovery
";
        assert_eq!(table(trace).unwrap(), expected);
    }

    #[test]
    fn a_bad_line_ends_the_export_and_is_named() {
        let error = table("{\"fairpath_trace\":1,\"version\":\"0.1.0\"}\nno\n").unwrap_err();
        assert!(error.to_string().starts_with("line 2, "), "{error}");
    }
}
