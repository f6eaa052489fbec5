//! Recorded rates of links: Mahimahi's traces, and tables.

use core::time::Duration;

use fairpath_net::{LinkConfig, MahimahiTrace, RateTable, RateTableEnd};

use super::{Seed, Target};
use crate::memory::{self, BUFFERS};
use crate::said;

pub(crate) static TARGET: Target = Target {
    name: "rates",
    about: "recorded rates of links: Mahimahi's traces, and tables of times and rates",
    check,
    seeds,
    words: &["time_s,", "time_ms,", "time_ns,", "rate_bps\n", "rate_kbps\n", "rate_mbps\n", "1e18", "inf", "nan"],
    also: &[],
};

/// A line of two bytes becomes a number of eight, one of four an entry of 16, three times where a list grows.
const MEMORY: usize = 64;

fn check(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    memory::within(input, BUFFERS, MEMORY, || mahimahi(&text));
    memory::within(input, BUFFERS, MEMORY, || {
        table(&text, RateTableEnd::Hold);
        table(&text, RateTableEnd::Repeat(Duration::from_secs(10)));
    });
}

fn mahimahi(text: &str) {
    match MahimahiTrace::parse(text) {
        Ok(trace) => {
            assert!(trace.period() > Duration::ZERO && trace.at_ms().is_sorted());
            let lines: Vec<String> = trace.at_ms().iter().map(u64::to_string).collect();
            assert_eq!(MahimahiTrace::parse(&lines.join("\n")).as_ref(), Ok(&trace));
            trace.mean();
            assert!(LinkConfig::new(trace).check().is_ok());
        }
        Err(error) => names_a_line(&error.to_string(), text),
    }
}

fn table(text: &str, end: RateTableEnd) {
    match RateTable::parse(text, end) {
        Ok(table) => {
            let row = |(at, rate): &(fairpath_core::Timestamp, fairpath_core::Bitrate)| (at.as_nanos(), rate.as_bps());
            let rows: Vec<(u64, u64)> = table.entries().iter().map(row).collect();
            assert!(rows[0].0 == 0 && rows.windows(2).all(|pair| pair[0].0 < pair[1].0));
            // Numbers are read as those of 64 bits with a fraction, which are exact up to 2^53.
            if rows.iter().all(|(at, rate)| (*at).max(*rate) < 1 << 53) {
                let lines = rows.iter().map(|(at, rate)| format!("{at},{rate}\n"));
                let written: String = core::iter::once("time_ns,rate_bps\n".to_owned()).chain(lines).collect();
                assert_eq!(RateTable::parse(&written, end).as_ref(), Ok(&table));
            }
            table.mean();
            assert!(LinkConfig::new(table).check().is_ok());
        }
        Err(error) => names_a_line(&error.to_string(), text),
    }
}

/// An error about a line names one of the file.
fn names_a_line(error: &str, text: &str) {
    said::words(&error, 500);
    if let Some(rest) = error.strip_prefix("line ") {
        let line: usize = rest.split(':').next().and_then(|line| line.parse().ok()).expect("a line is a number");
        assert!((1..=text.lines().count()).contains(&line), "{error}");
    }
}

fn seeds() -> Vec<Seed> {
    vec![
        Seed::new("mahimahi", "0\n1\n1\n4\n12\n"),
        Seed::new("mahimahi_falling", "5\n3\n"),
        Seed::new("seconds", "# a walk\ntime_s,rate_mbps\n0,20\n1.5,4.25\n\n3,0\n"),
        Seed::new("nanoseconds", "time_ns,rate_bps\n0,0\n1,9007199254740991\n"),
        Seed::new("late", "time_ms,rate_kbps\n5,20\n"),
    ]
}
