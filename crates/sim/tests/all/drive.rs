//! Over recorded links.

use crate::drives::*;

/// The sum of single-path runs is what two paths could carry; ours has more of it than the odd couple has.
#[test]
fn over_recorded_links_arrival_carries_more_than_the_odd_couple() {
    for pair in PAIRS {
        let Some(traces) = traces(pair, "down") else { return };
        let [odd, ours] =
            [Sender("reno", "min_rtt", NONE), Sender("reno", "arrival", NONE)].map(|who| drive(&traces, who).0);
        assert!(ours > 0.99 * odd, "{pair:?}: {ours:.1} with arrival and {odd:.1} with min_rtt, Mbit/s");
    }
}
