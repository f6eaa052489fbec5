//! Reports of one-way delays: their form, and what they do to an engine. The input is how many datagrams were
//! marked, and then reports, each behind two bytes with its length.

use std::time::Instant;

use fairpath_quic_core::fuzzing;

use super::{Seed, Target};
use crate::memory::{self, BUFFERS};

pub(crate) static TARGET: Target = Target {
    name: "delays",
    about: "one-way delays: requests, reports and the marks in them",
    check,
    seeds,
    words: &[],
    also: &[],
};

/// An entry of a report has 12 bytes, and takes 16.
const MEMORY: usize = 64;

fn check(input: &[u8]) {
    memory::within(input, BUFFERS, MEMORY, || form(input));
    let Some((marks, mut rest)) = input.split_first() else { return };
    let mut reports = Vec::new();
    while let Some((length, behind)) = rest.split_first_chunk() {
        let (report, behind) = behind.split_at(behind.len().min(u16::from_be_bytes(*length).into()));
        form(report);
        reports.push(report);
        rest = behind;
    }
    let shown =
        memory::within(input, BUFFERS, MEMORY, || fuzzing::reported(&reports, 4 * u64::from(*marks), Instant::now()));
    assert!(!shown.contains("NaN") && !shown.contains("inf"), "{shown}");
}

fn form(datagram: &[u8]) {
    if let Some(written) = fuzzing::delay_message(datagram) {
        assert_eq!(written.len(), datagram.len());
        assert_eq!(fuzzing::delay_message(&written).as_ref(), Some(&written), "what is written is read as the same");
    }
}

fn report(number: u32, first: u64, entries: &[(u64, u32)]) -> Vec<u8> {
    let entries = entries.iter().flat_map(|(mark, later)| [&mark.to_be_bytes()[..], &later.to_be_bytes()].concat());
    [2].into_iter().chain(number.to_be_bytes()).chain(first.to_be_bytes()).chain(entries).collect()
}

fn seeds() -> Vec<Seed> {
    let steady: Vec<_> = (0..60).map(|at| (4 * at, 1_000 * at as u32)).collect();
    let with = |marks: u8, reports: &[Vec<u8>]| {
        let said = reports.iter().flat_map(|report| [&(report.len() as u16).to_be_bytes()[..], report].concat());
        [marks].into_iter().chain(said).collect::<Vec<u8>>()
    };
    vec![
        Seed::new("request", [1]),
        Seed::new("report", report(7, 5_000_000, &steady[..3])),
        Seed::new("steady", with(60, &[report(0, 9_000_000, &steady[..30]), report(1, 9_030_000, &steady[30..])])),
        Seed::new(
            "extreme",
            with(9, &[report(0, u64::MAX, &[(0, 9), (4, u32::MAX)]), report(1, 0, &[(8, 0), (12, 1)])]),
        ),
        Seed::new("again", with(9, &[report(5, 1, &[(0, 0)]), report(4, 1, &[(4, 0)]), report(6, 1, &[(0, 0)])])),
    ]
}
