//! Tables of round-trip times: CSV and the like.

use fairpath_trace::rtt::{Format, RttSample, Traces};

use super::{Seed, Target, rtt};

pub(crate) static TARGET: Target = Target {
    name: "table",
    about: "tables of round-trip times: CSV, with any separator and unit",
    check,
    seeds,
    words: &["time_s", "time_ms", "rtt_ms", "rtt_us", "delay", "\u{feff}", "1e300", "-0", "inf", "NaN", ";", "\t", "#"],
    also: &[],
};

fn check(input: &[u8]) {
    let Ok(traces) = rtt::read(input) else { return };
    if traces.format != Format::Table {
        return;
    }
    let samples = &traces.series[0].samples;
    let lines = input.split(|byte| *byte == b'\n').count() as u64;
    assert!(samples.len() as u64 + traces.bad_count <= lines, "a line is one sample at most");
    assert!(traces.bad.iter().all(|bad| bad.line <= lines));
    let is_exact =
        |sample: &RttSample| sample.at.as_nanos() < rtt::EXACT_NS && sample.rtt.as_nanos() < u128::from(rtt::EXACT_NS);
    if samples.iter().all(is_exact) {
        let written = written(samples);
        let again: Traces = rtt::read(written.as_bytes()).expect("what was read is written as a table");
        assert_eq!(again.series, traces.series, "what is written is read as the same");
    }
}

fn written(samples: &[RttSample]) -> String {
    let row = |sample: &RttSample| format!("{},{}\n", sample.at.as_nanos(), sample.rtt.as_nanos());
    core::iter::once("time_ns,rtt_ns\n".to_owned()).chain(samples.iter().map(row)).collect()
}

fn seeds() -> Vec<Seed> {
    vec![
        Seed::new("plain", "time_s,rtt_ms\n0.5,20.0\n0.6,21.5\n"),
        Seed::new("semicolons", "# by hand\n\"time_ms\";\"n\";\"rtt_us\"\r\n500;1;20000\r\n600;2;21500"),
        Seed::new("tabs", "rtt_s\ttime_s\n0.02\t0.5\n0.0215\t0.6\n"),
        Seed::new("no_header", "  0.5   20\n  0.6   21.5\n"),
        Seed::new("wireshark", "frame.time_epoch,tcp.analysis.ack_rtt\n1,\n2,0.020\n"),
        Seed::new("bad_lines", "time_s,rtt_ms\n1,20\n2,abc\n3\n4,-1\n5,20\n6,20\n7,20\n"),
        Seed::new("out_of_order", "\u{feff}time_s,rtt_ms\n0.6,21.5\n0.5,20\n"),
    ]
}
