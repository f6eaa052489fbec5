//! Invariants of round-trip times, whatever kind of file they come from.

use fairpath_core::ByteCount;
use fairpath_trace::rtt::{BAD_LINES_KEPT, Limits, RttError, Series, Traces, read_within};

use crate::{memory, said};

/// Limits that a small file exceeds.
pub(crate) const LIMITS: Limits = Limits {
    unpacked: ByteCount::new(1_000_000),
    samples: 5_000,
    series: 50,
    connections: 100,
    waiting: ByteCount::new(500_000),
};

/// A value of JSON takes two bytes in a file and 32 in memory, three times where a list grows. What a
/// connection of a capture waits for takes less.
const MEMORY: usize = 128;

/// The reader of captures has a buffer of 8 MB.
const READER: usize = 9_000_000;

/// How gzip begins.
pub(crate) const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Limit of exactness: up to 13 days a number with a fraction resolves nanoseconds in any unit.
pub(crate) const EXACT_NS: u64 = 1 << 50;

/// Reads a file of any kind, and checks what comes out.
pub(crate) fn read(input: &[u8]) -> Result<Traces, RttError> {
    let found = memory::within(input, READER, MEMORY, || read_within(input, &LIMITS));
    match &found {
        Ok(traces) => holds(traces),
        Err(error) => {
            let said = said::words(error, 1_000);
            if let RttError::Json { line, column, .. } = error {
                // A place is one in what was unpacked.
                let bytes = if input.starts_with(&GZIP) { LIMITS.unpacked.get() as usize } else { input.len() };
                assert!(*line >= 1 && *column <= bytes + 1, "{said}");
            }
        }
    }
    found
}

fn holds(traces: &Traces) {
    let samples: usize = traces.series.iter().map(|series| series.samples.len()).sum();
    assert!((1..=LIMITS.samples).contains(&samples) && traces.series.len() <= LIMITS.series);
    assert!(traces.bad_count <= samples as u64, "more bad than good");
    assert_eq!(traces.bad.len() as u64, traces.bad_count.min(BAD_LINES_KEPT as u64));
    for bad in &traces.bad {
        said::words(bad, 2_100);
        assert!(bad.line >= 1);
    }
    for note in &traces.notes {
        said::words(note, 500);
    }
    for series in &traces.series {
        assert!(!series.samples.is_empty());
        assert!(series.samples.is_sorted_by_key(|sample| sample.at));
        assert_eq!(series.label.is_none(), traces.series.len() == 1, "a label tells it from the others");
        series.label.iter().for_each(|label| drop(said::words(label, 2_100)));
    }
}

/// The part of a result that two files with the same content must have in common; of an error its words.
pub(crate) fn said(found: Result<Traces, RttError>) -> Result<Vec<Series>, String> {
    found.map(|traces| traces.series).map_err(|error| error.to_string())
}
