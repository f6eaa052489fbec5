//! Do two lists of delays come from one queue? `cargo run -p fairpath-sbd --example two_lists`.
//!
//! The delays are synthetic: sawtooths of 40 ms, like those of a queue that fills and overflows. In
//! the first case both paths see the same one. In the second each has its own, of another period.

use std::time::Duration;

use fairpath_core::{DelaySample, PathId, Timestamp};
use fairpath_sbd::by_name;

/// The delay at a moment: 20 ms of propagation, and a queue that fills over `period` seconds.
fn delay(seconds: f64, period: f64) -> Duration {
    Duration::from_secs_f64(0.020 + 0.040 * (seconds / period).fract())
}

/// The detector's verdict on two paths after a minute of samples, one each 20 ms.
fn verdict(periods: [f64; 2]) -> Result<(bool, f64), Box<dyn std::error::Error>> {
    let mut detector = by_name("concordance")?;
    let paths = [PathId::new(0), PathId::new(1)];
    paths.iter().for_each(|path| detector.on_path_opened(*path, Timestamp::ZERO));
    for tick in 0..3_000_u64 {
        let now = Timestamp::from_millis(tick * 20);
        for (path, period) in paths.iter().zip(periods) {
            let rtt = delay(now.as_secs_f64(), period);
            detector.on_sample(*path, &DelaySample { now, rtt, one_way: None });
        }
        detector.poll(now);
    }
    let verdict = detector.verdicts();
    let pair = verdict.first().ok_or("the detector says nothing about two paths")?;
    Ok((pair.together, pair.confidence))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for (case, periods) in [("one queue", [3.0, 3.0]), ("two queues", [3.0, 4.1])] {
        let (together, confidence) = verdict(periods)?;
        let said = if together { "one group" } else { "two groups" };
        println!("{case}: {said}, confidence {confidence:.2}");
    }
    Ok(())
}
