//! The settings of QUIC that both ends share.

use std::sync::Arc;
use std::time::Duration;

use noq::{IdleTimeout, TransportConfig, VarInt};

use crate::adapter::ConnectionEngine;
use crate::lanes::{LANES, STREAM_WINDOW};

/// How many paths a connection may have at once.
pub const PATHS_MAX: u32 = 8;

/// How long a connection survives without a word from the peer.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// How often an idle path asks the peer for a sign of life. What makes a dead idle path known.
const PATH_KEEP_ALIVE: Duration = Duration::from_secs(1);

/// Unidirectional streams the peer may have open: the lanes, four times over.
const UNI_STREAMS: u32 = 4 * LANES as u32;

/// Bidirectional streams the peer may have open.
const BIDI_STREAMS: u32 = 8;

/// Unread data that the peer may send, and unacknowledged data that we keep, in bytes: what all
/// lanes together may hold.
const CONNECTION_WINDOW: u32 = LANES as u32 * STREAM_WINDOW;

pub(crate) fn transport(engine: &ConnectionEngine) -> Arc<TransportConfig> {
    let mut config = TransportConfig::default();
    config
        .max_concurrent_multipath_paths(PATHS_MAX)
        .max_concurrent_uni_streams(VarInt::from_u32(UNI_STREAMS))
        .max_concurrent_bidi_streams(VarInt::from_u32(BIDI_STREAMS))
        .stream_receive_window(VarInt::from_u32(STREAM_WINDOW))
        .receive_window(VarInt::from_u32(CONNECTION_WINDOW))
        .send_window(CONNECTION_WINDOW.into())
        // One lane after the other rather than a piece of each in turn: records arrive whole sooner,
        // and packets carry one stream each. Streams that must not wait have a higher priority.
        .send_fairness(false)
        .max_idle_timeout(IdleTimeout::try_from(IDLE_TIMEOUT).ok())
        .default_path_keep_alive_interval(Some(PATH_KEEP_ALIVE))
        .congestion_controller_factory(engine.factory());
    Arc::new(config)
}
