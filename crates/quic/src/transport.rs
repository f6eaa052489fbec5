//! The settings of QUIC that both ends share.

use std::sync::Arc;
use std::time::Duration;

use noq::{IdleTimeout, MtuDiscoveryConfig, TransportConfig, VarInt};

use crate::adapter::ConnectionEngine;
use crate::lanes::{LANES, STREAM_WINDOW};

/// How many paths a connection may have at once.
pub const PATHS_MAX: u32 = 8;

/// How long a connection survives without a word from the peer. A peer that is gone is to be known within
/// ten seconds, and QUIC may begin to count a little late. Where the links were gone, not the peer, a new
/// connection costs one round trip; a longer life would not help an old one, since what it asks for a
/// sign of life it asks at growing intervals.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(8);

/// How often an idle path asks the peer for a sign of life. What makes a dead idle path known.
const PATH_KEEP_ALIVE: Duration = Duration::from_secs(1);

/// Unidirectional streams the peer may have open: the lanes, four times over.
const UNI_STREAMS: u32 = 4 * LANES as u32;

/// Bidirectional streams the peer may have open.
const BIDI_STREAMS: u32 = 8;

/// What all lanes together may hold, in bytes.
const ALL_LANES: u32 = LANES as u32 * STREAM_WINDOW;

/// Unread data that the peer may send, in bytes. More than all lanes may hold: where the connection is the
/// limit, every bit of credit wakes all lanes that wait, and all but one in vain.
const RECEIVE_WINDOW: u32 = ALL_LANES / 4 * 5;

/// Unacknowledged data that we keep, in bytes. Never the limit either: the peer's window of a lane is.
const SEND_WINDOW: u64 = 2 * ALL_LANES as u64;

/// What a guest may send that nobody has read, and what is kept for it until it is acknowledged, in bytes
/// each: a greeting and its answer, many times over.
const GUEST_WINDOW: u32 = 8_000;

/// Reports of delays that nobody has read, in bytes. They are read every 50 ms, and an old one is worth little.
const DATAGRAMS: usize = 24_000;

/// How much of a peer's data is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// So much that data flows as fast as it can.
    Full,
    /// Little: together with the 16 kB of handshake data that may be out of order, less than 64 kB.
    Guest,
}

/// Gives a guest's connection the windows of any other.
pub(crate) fn trust(quic: &noq::Connection) {
    quic.set_receive_window(VarInt::from_u32(RECEIVE_WINDOW));
    quic.set_send_window(SEND_WINDOW);
    quic.set_max_concurrent_uni_streams(VarInt::from_u32(UNI_STREAMS));
    quic.set_max_concurrent_bi_streams(VarInt::from_u32(BIDI_STREAMS));
}

pub(crate) fn transport(
    engine: &ConnectionEngine,
    datagrams: MtuDiscoveryConfig,
    trust: Trust,
) -> Arc<TransportConfig> {
    let (receive, send, uni, bidi) = match trust {
        Trust::Full => (RECEIVE_WINDOW, SEND_WINDOW, UNI_STREAMS, BIDI_STREAMS),
        Trust::Guest => (GUEST_WINDOW, GUEST_WINDOW.into(), 0, 1),
    };
    let mut config = TransportConfig::default();
    config
        .max_concurrent_multipath_paths(PATHS_MAX)
        .max_concurrent_uni_streams(VarInt::from_u32(uni))
        .max_concurrent_bidi_streams(VarInt::from_u32(bidi))
        .stream_receive_window(VarInt::from_u32(STREAM_WINDOW))
        .receive_window(VarInt::from_u32(receive))
        .send_window(send)
        .datagram_receive_buffer_size(Some(DATAGRAMS))
        // One lane after the other rather than a piece of each in turn: records arrive whole sooner,
        // and packets carry one stream each. Streams that must not wait have a higher priority.
        .send_fairness(false)
        .max_idle_timeout(IdleTimeout::try_from(IDLE_TIMEOUT).ok())
        .default_path_keep_alive_interval(Some(PATH_KEEP_ALIVE))
        .mtu_discovery_config(Some(datagrams))
        .congestion_controller_factory(engine.factory());
    Arc::new(config)
}
