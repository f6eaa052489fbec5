//! Simulated networks: links with a rate, a queue, a delay and losses, and routes over them.
//!
//! Nothing here reads a clock, opens a socket or knows what congestion control is: the host says
//! what time it is. In virtual time this is a simulator's network, in real time an emulator's.
//!
//! - [`Link`] is one direction of one wire: loss, then queue, then transmission at the rate, then
//!   propagation, with its [`Jitter`] and [`Impairments`]. Times are whole nanoseconds and the fractions are carried over, so that a link
//!   of 1 Gbit/s carries 1.000 Gbit/s.
//! - A queue refuses what does not fit; a managed one ([`RedConfig`], [`CoDelConfig`], [`FqCoDelConfig`]) signals
//!   congestion before, by marks where a [`Packet`] can carry one and by drops where it cannot.
//! - A [`Policer`] lets no more than a rate into a link, and nothing waits for it.
//! - A [`Filter`] is a fault that a host puts into a link in mid-run.
//! - [`Network`] moves packets through chains of links; several routes may share one link.
//! - [`Partition`]s of one let several cores move its packets at once.
//! - Every random element draws from a [stream](Streams) of its own, named after it: adding an
//!   element changes no other element's randomness.
//!
//! ```
//! use core::time::Duration;
//! use fairpath_core::{Bitrate, ByteCount, Timestamp};
//! use fairpath_net::{LinkConfig, Network};
//!
//! let mut network = Network::new(7);
//! let config = LinkConfig::new(Bitrate::from_mbps(12)).delay(Duration::from_millis(10));
//! let uplink = network.add_link("uplink", &config)?;
//! let route = network.add_route(&[uplink])?;
//! network.send(Timestamp::ZERO, route, "hello", ByteCount::new(1500));
//! let at = network.next_event().unwrap();
//! // 1500 B at 12 Mbit/s take 1 ms; the propagation takes 10 ms.
//! assert_eq!(at, Timestamp::from_millis(11));
//! assert_eq!(network.poll(at).unwrap().packet, "hello");
//! # Ok::<(), fairpath_net::TopologyError>(())
//! ```

mod config;
mod error;
mod filter;
mod impair;
mod jitter;
mod link;
mod loss;
mod packet;
mod part;
mod policer;
mod queue;
mod rate;
mod schedule;
mod stats;
mod stream;
mod topology;

pub use config::LinkConfig;
pub use error::LinkConfigError;
pub use filter::Filter;
pub use impair::{Impairments, Reorder};
pub use jitter::{Jitter, JitterDistribution};
pub use link::{Delivered, DropCause, Link, Offered};
pub use loss::{GilbertElliott, LossConfig};
pub use packet::{Datagram, Packet};
pub use part::{Moving, Outbox, Partition};
pub use policer::Policer;
pub use queue::{CoDelConfig, FqCoDelConfig, QueueConfig, QueueLimit, RedConfig, RedSpacing};
pub use rate::{MahimahiError, MahimahiTrace, Rate, RateTable, RateTableEnd, RateTableError};
pub use stats::{Count, LinkStats};
pub use stream::Streams;
pub use topology::{Delivery, LinkId, Network, PathRoutes, RouteId, TopologyError};
