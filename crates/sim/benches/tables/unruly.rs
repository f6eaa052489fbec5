//! How long a transfer takes where packets come late.

use fairpath_net::Impairments;

use crate::common::ms;
use crate::reordering::*;

pub(crate) fn table() {
    for (congestion, paths) in [("reno", 1), ("cubic", 1), ("lia", 1), ("lia", 2)] {
        let (clean, _) = eight_megabytes(congestion, paths, Impairments::default());
        println!("{congestion}, {paths} paths: {:.2} s without", clean.as_secs_f64());
        for by in [2, 10, 30, 60] {
            for share in [0.01, 0.05] {
                let (took, outcome) = eight_megabytes(congestion, paths, reordering(share, ms(by)));
                let path = outcome.flows[0].paths[0].count;
                println!(
                    "    {by:2} ms, {:.0} %: {:6.2} s, {:5.2} x; lost {} of {}, {} episodes, {} timeouts, {} duplicates",
                    share * 100.0,
                    took.as_secs_f64(),
                    took.as_secs_f64() / clean.as_secs_f64(),
                    path.lost,
                    path.sent,
                    path.episodes,
                    path.timeouts,
                    outcome.flows[0].duplicates,
                );
            }
        }
    }
}
