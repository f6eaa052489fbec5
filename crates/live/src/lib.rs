//! Live UDP flows over several paths: a [`Sender`] and a [`Receiver`] without clock and sockets.
//!
//! Packets of an application with a deadline are cut into *pieces*, each of which travels in one DATAGRAM on one
//! path. The sender spreads them by the rates that are TCP-friendly and bring the most in time (`fairpath-rate`),
//! protects blocks of them with Reed–Solomon repair, and sends again elsewhere what was lost while there is time. The
//! receiver puts them in order, makes up for what is missing, and hands out nothing that came after its deadline.
//!
//! ```
//! use core::time::Duration;
//! use fairpath_core::{ByteCount, Groups, PathId, Timestamp};
//! use fairpath_live::{Config, FlowId, Liveness, PathFacts, PathTerms, Receiver, Sender};
//!
//! let config = Config { deadline: Duration::from_millis(300), ..Config::default() };
//! let (mut sender, mut receiver) = (Sender::new(config), Receiver::new(config));
//! let path = PathId::new(0);
//! let facts = PathFacts {
//!     path,
//!     usable: true,
//!     liveness: Liveness::Alive,
//!     rtt: Some(Duration::from_millis(40)),
//!     least_rtt: Some(Duration::from_millis(40)),
//!     window: ByteCount::new(120_000),
//!     served: None,
//!     max_datagram: ByteCount::new(1_200),
//!     terms: PathTerms::default(),
//! };
//! let mut now = Timestamp::from_secs(1);
//! // What each path is to carry; 20 ms later that is enough for a packet.
//! sender.handle_timeout(&[facts], &Groups::singletons([path]), now);
//! now = now + Duration::from_millis(20);
//! sender.queue(FlowId(0), b"a packet of MPEG-TS", false, 1_200, now)?;
//! let outgoing = sender.next(|_| true, now).expect("a datagram for the path");
//! // It takes 20 ms.
//! now = now + Duration::from_millis(20);
//! receiver.on_datagram(&outgoing.datagram, now)?;
//! assert_eq!(&receiver.take(now).expect("in time").packet[..], b"a packet of MPEG-TS");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **A path is measured by what happens to its packets.** Losses are those that the host's acknowledgements tell; one-way
//! delays are what the peer reports. A path that does not answer carries copies only, so that its silence costs no packet:
//! which one that is, the engine says.
//!
//! **Interleaving is by time.** A block is not interleaved with others. In this code any sufficient
//! number of packets recovers a block. So one block over the whole time that the deadline leaves
//! bears longer bursts than several over the same time. The repair is spread: its packets follow
//! over a while and over all paths, not in the burst at the block's end.
//!
//! **Why `reed-solomon-simd`.** It takes any number of packets up to 32,768 in a block, is kept up (3.1.0 is of October
//! 2025) and needs no C. `reed-solomon-erasure` stops at 256 in all, needs a C compiler to be fast, and has had no
//! release since September 2022. It is quicker in large blocks, too (docs/design/repair.md).
//!
//! **Memory.** Of each flow the receiver holds the pieces of the last blocks, bounded in number; the sender holds what is
//! not past its deadline, bounded in bytes. There are as many flows as both ends have agreed on.

mod block;
mod budget;
mod config;
mod counts;
mod decoder;
mod facts;
mod flow;
mod key_frames;
mod lane;
mod parameters;
mod peer_clock;
mod receiver;
mod retained;
mod sender;
mod sharing;
mod spread;
mod track;
mod wire;

pub use budget::{Budget, BudgetParameters};
pub use config::{Config, Copies, DEADLINE_MAX, DEADLINE_MIN, FLOWS_MAX, FlowId, PACKET_MAX, Playout};
pub use counts::Counts;
pub use facts::{PathFacts, PathTerms};
pub use fairpath_engine::Liveness;
pub use key_frames::KeyFrames;
pub use parameters::LiveParameters;
pub use receiver::{Delivered, Receiver};
pub use sender::{Cargo, Outgoing, PathStatus, SendError, Sender, Status};
pub use sharing::Sharing;
pub use wire::{Malformed, Report, is_stream};
