//! Journals of unfinished files, by which an interrupted transfer resumes.

use fairpath_transfer::{Entry, fuzzing};
use serde_json::Value;

use super::{Seed, Target};
use crate::memory::{self, BUFFERS};

pub(crate) static TARGET: Target = Target {
    name: "journal",
    about: "resume state: the journals of unfinished files",
    check,
    seeds,
    words: &["{\"path\":\"", "\"size\":", "\"mtime_ns\":", "\"ranges\":[[", "],[", "]]}", "18446744073709551615"],
    also: &[],
};

/// A range takes six bytes in a journal and 16 in memory, three times where a list grows; then it is kept
/// in a tree, and given out as a list. The value that the entry is taken from needs as much again.
const MEMORY: usize = 128;

/// As many ranges are written to one journal; what is left out is sent again.
const WRITTEN_MAX: usize = 4096;

fn check(input: &[u8]) {
    memory::within(input, BUFFERS, MEMORY, || {
        let entry = meant(input);
        let size = entry.size();
        for written in [u64::MAX, size, size / 2] {
            if let Some(ranges) = fuzzing::noted(input, &entry, written) {
                holds(&ranges, written.min(size));
                let journal = fuzzing::journal(&entry, &ranges).expect("the ranges are those of the file");
                let kept = ranges[..ranges.len().min(WRITTEN_MAX)].to_vec();
                assert_eq!(fuzzing::noted(&journal, &entry, written), Some(kept), "what is written is read again");
            }
        }
    });
}

/// The file that the journal speaks of, if it can be told; a journal of another one counts for nothing.
fn meant(input: &[u8]) -> Entry {
    let journal: Value = serde_json::from_slice(input).unwrap_or_default();
    let path = journal["path"].as_str().unwrap_or("a");
    let mtime_ns = journal["mtime_ns"].as_i64().unwrap_or(1);
    Entry { mtime_ns, ..Entry::file(path, journal["size"].as_u64().unwrap_or(1000)) }
}

/// In order, apart, not empty, and within the file.
fn holds(ranges: &[(u64, u64)], limit: u64) {
    assert!(ranges.iter().all(|(start, end)| start < end && *end <= limit), "{ranges:?} of {limit}");
    assert!(ranges.windows(2).all(|pair| pair[0].1 < pair[1].0), "{ranges:?}");
}

fn seeds() -> Vec<Seed> {
    let entry = |size| Entry { mtime_ns: -5, ..Entry::file("a/ü \"b\"", size) };
    let journal = |size, ranges: &[(u64, u64)]| fuzzing::journal(&entry(size), ranges).expect("a journal");
    let overlapping = r#"{"path":"a","size":100,"mtime_ns":1,"ranges":[[50,60],[0,10],[5,20],[20,30],[60,100]]}"#;
    vec![
        Seed::new("nothing", journal(10, &[])),
        Seed::new("two_ranges", journal(1 << 40, &[(0, 1 << 20), (1 << 30, 1 << 40)])),
        Seed::new("all", journal(u64::MAX, &[(0, u64::MAX)])),
        Seed::new("many_ranges", journal(1000, &(0..60).map(|at| (at * 3, at * 3 + 1)).collect::<Vec<_>>())),
        Seed::new("overlapping", overlapping),
        Seed::new("reversed", overlapping.replace("50,60", "60,50")),
    ]
}
