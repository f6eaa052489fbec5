//! Emulated networks for real programs: the links of [`fairpath_net`] in real time, in one
//! process, without privileges.
//!
//! Each path is a UDP relay on the loopback interface. A client sends to the relay instead of the
//! server; the relay passes every datagram through the path's chain of links and on to the
//! server, and the answers back through the other chain. Paths may share links.
//!
//! A datagram's content, its boundaries and its ECN bits are preserved, except that a managed queue
//! may mark it, and that links with [`Impairments`] may send it twice or with a wrong bit. It counts on the links with its IP and UDP headers (28 bytes more over IPv4, 48 over
//! IPv6), so that rates are those of IP packets. What is larger than [`MTU`] is dropped, as on Ethernet
//! where fragments are not allowed: loopback itself carries datagrams that no link would.
//!
//! On Linux [`Bridge`] does the same between interfaces, for programs of any kind, where the process may read and write
//! their frames.
//!
//! One thread does all the work. It sleeps in `ppoll` until the next datagram is due or comes, and
//! measures how late it was ([`EmulatorStats::timing`]). If the process may, the thread runs at the
//! lowest real-time priority, so that other work on the machine does not delay it. Without that
//! right everything works, and is late when the machine is busy.
//!
//! ```
//! use core::time::Duration;
//! use std::net::UdpSocket;
//! use fairpath_core::Bitrate;
//! use fairpath_emu::{Emulator, LinkConfig};
//!
//! let server = UdpSocket::bind("127.0.0.1:0")?;
//! let mut builder = Emulator::builder(1);
//! let up = builder.link("up", &LinkConfig::new(Bitrate::from_mbps(20)).delay(Duration::from_millis(5)))?;
//! let down = builder.link("down", &LinkConfig::new(Bitrate::from_mbps(50)).delay(Duration::from_millis(5)))?;
//! let path = builder.path(&[up], &[down], server.local_addr()?)?;
//! let emulator = builder.start()?;
//!
//! let client = UdpSocket::bind("127.0.0.1:0")?;
//! client.send_to(b"hello", emulator.relay(path))?;
//! let mut buffer = [0; 16];
//! let (length, relay) = server.recv_from(&mut buffer)?;
//! server.send_to(&buffer[..length], relay)?;
//! assert_eq!(client.recv(&mut buffer)?, 5);
//! assert_eq!(emulator.stats().path(path).backward.released.packets, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(target_os = "linux")]
mod bridge;
mod builder;
#[cfg(target_os = "linux")]
mod checksum;
mod emulator;
mod error;
mod event_loop;
mod outbox;
mod relay;
mod socket;
mod stats;
mod timing;

#[cfg(target_os = "linux")]
pub use bridge::{Bridge, BridgeBuilder, Port};
pub use builder::EmulatorBuilder;
pub use emulator::Emulator;
pub use error::EmulatorError;
use fairpath_core::ByteCount;
pub use fairpath_net::{
    CoDelConfig, Count, Filter, GilbertElliott, Impairments, Jitter, JitterDistribution, LinkConfig, LinkId, LinkStats,
    LossConfig, MahimahiTrace, QueueConfig, QueueLimit, Rate, RateTable, RateTableEnd, RedConfig, RedSpacing, Reorder,
    TopologyError,
};
pub use stats::{DirectionStats, EmulatorStats, LinkReport, PathStats};
pub use timing::TimingReport;

/// The largest packet that the links carry, with its IP and UDP headers.
pub const MTU: ByteCount = ByteCount::new(1_500);
