//! Pictures over two links, of which one goes bad.

use fairpath_quic_core::EngineConfig;

use crate::trial::while_bad;

/// What is on its way on a link that turns bad is lost there, or stands in its queue for half a second. Where only losses
/// and silence count, both are known too late to do anything about it.
#[test]
fn what_a_link_held_that_turns_bad_comes_in_time_on_the_other() {
    let (_, in_the_turn) = while_bad(&EngineConfig::live().congestion, 24);
    // Of 260; it was 19 where only losses and silence counted, and 0.85 where what was cut for larger datagrams than could
    // leave was dropped. One run in ten loses one or two, one in thirty up to eight: the mean of 48 is 0.17, and three times
    // that is the bound. Of twelve runs a single one could exceed it.
    assert!(in_the_turn < 0.5, "{in_the_turn} packets of 260");
}
