//! Traces of Fairpath: NDJSON, read as records and as round-trip times, and made into a table.

use fairpath_trace::rtt::RttError;
use fairpath_trace::{Header, LinkHeader, LinkRecord, ReadError, Reader, Record, State, Writer, csv};

use super::{Seed, Target, rtt};
use crate::memory::{self, BUFFERS};
use crate::said;

pub(crate) static TARGET: Target = Target {
    name: "ndjson",
    about: "traces of Fairpath: the reader of records, the table made of them, their round-trip times",
    check,
    seeds,
    words: &[
        "{\"fairpath_trace\":1,\"version\":\"0.1.0\"}\n",
        "{\"time_ns\":",
        "\"run\":\"",
        "\"srtt_ns\":null",
        "\"state\":\"closed\"",
        "18446744073709551615",
        "\\u001b",
    ],
    also: &[],
};

/// A reader keeps one line, and gives one record at a time. A list of them takes more than their lines.
const MEMORY: usize = 64;

fn check(input: &[u8]) {
    let _ = rtt::read(input);
    let Some((header, records)) = memory::within(input, BUFFERS, MEMORY, || records(input)) else { return };
    let file = written(&header, &records);
    let reader = Reader::new(file.as_slice()).expect("a header that was written");
    assert_eq!(reader.header(), &header);
    let again: Vec<Record> = reader.map(|record| record.expect("a record that was written")).collect();
    assert_eq!(again, records, "what is written is read as the same");

    let mut table = Vec::new();
    let rows = csv::export(Reader::new(file.as_slice()).expect("a header"), &mut table).expect("a table");
    assert_eq!(rows, records.len() as u64);
    if header.run.is_none() {
        as_a_table(&header, records);
    }
}

/// The header and all good records. Bad lines are named.
fn records(input: &[u8]) -> Option<(Header, Vec<Record>)> {
    let lines = input.split(|byte| *byte == b'\n').count() as u64;
    let reader = Reader::new(input).map_err(|error| said::words(&error, 2_500)).ok()?;
    let header = reader.header().clone();
    let mut records = Vec::new();
    for record in reader {
        match record {
            Ok(record) => records.push(record),
            Err(error) => {
                said::words(&error, 2_500);
                match error {
                    ReadError::Record { line, column, .. } => {
                        let text = input.split(|byte| *byte == b'\n').nth(line as usize - 1);
                        let length = text.map(<[u8]>::len).expect("the line is there");
                        assert!(column <= length + 1, "column {column} of {length}");
                    }
                    ReadError::LineTooLong { line } => assert!((2..=lines).contains(&line)),
                    other => panic!("no such error can come behind a header: {other}"),
                }
            }
        }
    }
    Some((header, records))
}

/// The table of a trace has the same round-trip times as the trace, where they are those of one path.
fn as_a_table(header: &Header, records: Vec<Record>) {
    let is_plain = |record: &Record| {
        let exact = |number: u64| number < rtt::EXACT_NS;
        record.state != State::Closed && exact(record.time_ns) && record.srtt_ns.is_none_or(exact)
    };
    let plain: Vec<Record> = records
        .into_iter()
        .filter(is_plain)
        .map(|record| Record { run: None, flow: None, path: 0, ..record })
        .collect();
    let file = written(header, &plain);
    let mut table = Vec::new();
    csv::export(Reader::new(file.as_slice()).expect("a header"), &mut table).expect("a table");
    match (rtt::read(&file), rtt::read(&table)) {
        (Ok(trace), Ok(table)) => assert_eq!(trace.series, table.series),
        (Err(RttError::NoSamples(_)), Err(RttError::NoSamples(_))) => {}
        (Err(RttError::TooMuch(_)), Err(RttError::TooMuch(_))) => {}
        (trace, table) => panic!("as a trace {trace:?}, as a table {table:?}"),
    }
}

fn written(header: &Header, records: &[Record]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), header).expect("memory");
    records.iter().for_each(|record| writer.write(record).expect("memory"));
    writer.finish().expect("memory")
}

fn seeds() -> Vec<Seed> {
    let record = |time_ns, path, srtt_ns, state| Record {
        time_ns,
        run: None,
        flow: Some("up".into()),
        path,
        cwnd_bytes: 12_000,
        srtt_ns,
        rtt_min_ns: srtt_ns,
        in_flight_bytes: 1_200,
        rate_bps: Some(8_000),
        lost: 0,
        group: 0,
        state,
    };
    let states = (0..).zip(State::ALL);
    let every: Vec<Record> = states
        .map(|(at, state)| record(at * 1_000_000, at as u32 % 2, (at > 0).then_some(20_000_000), state))
        .collect();
    // The version is no part of what is tried.
    let header = |run: Option<&str>| Header { version: "0.1.0".into(), ..Header::new(run) };
    let file = written(&header(None), &every);
    let links = LinkHeader { version: "0.1.0".into(), ..LinkHeader::new(None) };
    let mut writer = Writer::of_links(Vec::new(), &links).expect("memory");
    let link = LinkRecord {
        time_ns: 1,
        link: "a".into(),
        queued_packets: 1,
        queued_bytes: 1,
        delivered_bytes: 1,
        dropped_packets: 1,
        marked_packets: 1,
    };
    writer.write_link(&link).expect("memory");
    vec![
        Seed::new("every_state", file.clone()),
        Seed::new("named_run", written(&header(Some("shared/\"lia\"\n")), &every[..2])),
        Seed::new("cut", &file[..file.len() - 30]),
        Seed::new("bad_line", [&file[..], b"{\"time_ns\":-1}\n\n", &file[..0]].concat()),
        Seed::new("links", writer.finish().expect("memory")),
    ]
}
