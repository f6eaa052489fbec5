//! Packet scheduling: which path carries the next packet.
//!
//! `scheduler` is the contract, `algorithm` has one file for each scheduler, `catalogue` lists
//! them by name.
//!
//! A scheduler of one's own. It is asked for every packet, or train of them, and sees views of the paths, never a
//! transport; `Engine::new` takes it as it takes those of the catalogue.
//!
//! ```
//! use core::time::Duration;
//! use fairpath_core::{ByteCount, PathId, Rtt, Timestamp};
//! use fairpath_sched::{Choice, ConnectionView, PathView, Scheduler, Terms};
//!
//! /// Fills the path with the most room.
//! #[derive(Debug)]
//! struct MostRoom;
//!
//! impl Scheduler for MostRoom {
//!     fn pick(&self, _: &ConnectionView, paths: &[PathView], _: Timestamp) -> Choice {
//!         let room = |path: &&PathView| path.window.saturating_sub(path.in_flight);
//!         let with_room = paths.iter().filter(|path| path.has_room());
//!         with_room.max_by_key(room).map_or(Choice::Wait, |path| Choice::Send(path.id))
//!     }
//! }
//!
//! # fn path(id: u32, milliseconds: u64, window: u64) -> PathView {
//! #     PathView {
//! #         id: PathId::new(id),
//! #         window: ByteCount::new(window),
//! #         paced: false,
//! #         in_flight: ByteCount::ZERO,
//! #         max_datagram: ByteCount::new(1_200),
//! #         rtt: Some(Rtt::steady(Duration::from_millis(milliseconds))),
//! #         one_way: None,
//! #         transit: None,
//! #         delivery_rate: None,
//! #         ssthresh: None,
//! #         in_slow_start: true,
//! #         window_limited: false,
//! #         burst_until: Timestamp::ZERO,
//! #         heard_at: Timestamp::ZERO,
//! #         oldest_sent: None,
//! #         usable: true,
//! #         backup: false,
//! #         terms: Terms::default(),
//! #     }
//! # }
//! // Two paths of 20 and 100 ms, whose windows hold 10 and 30 packets.
//! let paths = [path(0, 20, 12_000), path(1, 100, 36_000)];
//! let pick = |scheduler: &dyn Scheduler| {
//!     scheduler.pick(&ConnectionView::default(), &paths, Timestamp::ZERO)
//! };
//! assert_eq!(pick(&MostRoom), Choice::Send(PathId::new(1)));
//! let min_rtt = fairpath_sched::by_name("min_rtt").expect("a name of the catalogue");
//! assert_eq!(pick(&*min_rtt), Choice::Send(PathId::new(0)));
//! ```

mod algorithm;
mod catalogue;
mod extremes;
mod losses;
mod path_set;
mod scheduler;
#[cfg(test)]
mod testing;

pub use algorithm::{
    Arrival, Blest, Deadline, DeadlineParameters, Ecf, MinRtt, Priority, Rank, Redundant, RoundRobin, Stms, Weighted,
};
pub use catalogue::{NAMES, by_name, goes_by_costs};
pub use losses::LossMemory;
pub use path_set::PathSet;
pub use scheduler::{Choice, ConnectionView, Due, PathView, Scheduler, Terms, Train, Transit};
