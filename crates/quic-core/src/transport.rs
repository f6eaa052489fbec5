//! The settings of QUIC that both ends share.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;
use web_time::Instant;

use noq_proto::{IdleTimeout, MtuDiscoveryConfig, TransportConfig, VarInt};

use crate::adapter::{ConnectionEngine, GIVEN_UP_AFTER, GIVEN_UP_BEHIND};
use crate::channel::{ChannelId, Window};
use crate::tls::Application;

/// How many paths a connection may have at once.
pub const PATHS_MAX: u32 = 8;

/// How many path ids the stack gives out at once. A path that was closed keeps its own until three probe timeouts have
/// passed, and those of a peer that stood still are long: 18 s after a pause of 2 s. Why no more: docs/testing.md.
pub(crate) const PATH_IDS: u32 = PATHS_MAX + PATHS_MAX / 2;

/// The same for a guest. What the engine and its detector keep grows with the square of the paths, and a guest has nothing
/// to send but a greeting: its third path waits one round trip for the answer.
const GUEST_PATH_IDS: u32 = 2;

/// How long a connection survives without a packet from the peer. A dead peer is to be noticed within
/// ten seconds, and QUIC may begin to count a little late. If the links failed and not the peer, a new
/// connection costs one round trip. A longer timeout would not help the old one, since it probes at
/// growing intervals.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(8);

/// How often an idle path asks the peer for a sign of life. What makes a dead idle path known.
pub(crate) const PATH_KEEP_ALIVE: Duration = Duration::from_secs(1);

/// Streams of each kind that a trusted peer may have open. Transfers need none.
const STREAMS: u32 = 64;

/// The limit of unread data of a stream, in bytes. noq ends a connection if a stream holds more than
/// 2,048 unread frames. Even in the smallest datagrams, of 1,200 bytes, this limit is half of that.
const STREAM_WINDOW: u32 = 1_250_000;

/// The limit of unread data of all streams, and of our data not yet acknowledged, in bytes.
const STREAMS_WINDOW: u32 = 16 * STREAM_WINDOW;

/// Datagrams that were not taken yet, in bytes. They are taken with each packet that brings them.
const DATAGRAMS: usize = 256 << 10;

/// How much of a peer's data is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Enough for full speed.
    Full,
    /// Little: together with the 16 kB of handshake data that may be out of order, less than 64 kB.
    Guest,
}

impl Trust {
    /// The receive window of a channel. For bulk it is 200 Mbit/s for 1.3 s. A guest only sends a greeting.
    pub(crate) fn window(self, channel: ChannelId) -> Window {
        match (self, channel) {
            (Self::Full, ChannelId::Messages) => Window { bytes: 4 << 20, records: 16_384 },
            (Self::Full, ChannelId::Bulk) => Window { bytes: 32 << 20, records: 65_536 },
            (Self::Guest, ChannelId::Messages) => Window { bytes: 16_000, records: 16 },
            (Self::Guest, ChannelId::Bulk) => Window { bytes: 0, records: 0 },
        }
    }
}

/// Gives a guest's connection the paths and the streams of any other.
pub(crate) fn trust(quic: &mut noq_proto::Connection, now: Instant) {
    // A peer without multipath has one path.
    let _ = quic.set_max_concurrent_paths(now, NonZeroU32::new(PATH_IDS).unwrap_or(NonZeroU32::MIN));
    quic.set_receive_window(VarInt::from_u32(STREAMS_WINDOW));
    quic.set_max_concurrent_streams(noq_proto::Dir::Uni, VarInt::from_u32(STREAMS));
    quic.set_max_concurrent_streams(noq_proto::Dir::Bi, VarInt::from_u32(STREAMS));
}

pub(crate) fn transport(
    engine: &ConnectionEngine,
    datagrams: MtuDiscoveryConfig,
    trust: Trust,
    application: Application,
) -> Arc<TransportConfig> {
    let (window, streams, paths) = match trust {
        Trust::Full => (STREAMS_WINDOW, STREAMS, PATH_IDS),
        Trust::Guest => (0, 0, GUEST_PATH_IDS),
    };
    let mut config = TransportConfig::default();
    config
        .max_concurrent_multipath_paths(paths)
        .max_concurrent_uni_streams(VarInt::from_u32(streams))
        .max_concurrent_bidi_streams(VarInt::from_u32(streams))
        .stream_receive_window(VarInt::from_u32(STREAM_WINDOW))
        .receive_window(VarInt::from_u32(window))
        .send_window(STREAMS_WINDOW.into())
        .datagram_receive_buffer_size(application.is_fairpath().then_some(DATAGRAMS))
        .max_idle_timeout(IdleTimeout::try_from(IDLE_TIMEOUT).ok())
        .default_path_keep_alive_interval(Some(PATH_KEEP_ALIVE))
        .mtu_discovery_config(Some(datagrams))
        .congestion_controller_factory(engine.factory());
    if application.is_fairpath() {
        config.packet_threshold(GIVEN_UP_BEHIND).time_threshold(GIVEN_UP_AFTER);
    }
    Arc::new(config)
}
