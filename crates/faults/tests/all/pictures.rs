//! Pictures over two links, one of which goes bad.

use fairpath_quic_core::EngineConfig;

use crate::trial::while_bad;

/// Data in flight on a link that turns bad is lost there, or stands in its queue for half a second.
/// If only losses and silence count, both are known too late to react.
#[test]
fn what_a_link_held_that_turns_bad_comes_in_time_on_the_other() {
    let (_, in_the_turn) = while_bad(&EngineConfig::live().congestion, 24);
    // The first bad second has 260 packets. 19 were lost when only losses and silence counted, 0.85
    // when pieces cut for larger datagrams were dropped. One run in ten loses one or two, one in
    // thirty up to eight. The mean of 48 is 0.17, and three times that is the bound; of twelve runs
    // a single one could exceed it.
    assert!(in_the_turn < 0.5, "{in_the_turn} packets of 260");
}
