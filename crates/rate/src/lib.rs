//! TCP-friendly rates for streams over several paths: what is fair, what arrives in time, and what repair it takes.
//!
//! A stream with a deadline wants goodput, not throughput. Each path has a loss rate and round-trip
//! times. `equation` gives the rate of a TCP there. `region` bounds the rates on all paths that are
//! no more aggressive than one TCP wherever bottlenecks are shared [Pluntke2011, eq. 1]. `lateness`
//! estimates the share that misses the deadline. `optimum` finds the rates that bring the most in
//! time, and `fec` the part of them that must be repair.
//!
//! ```
//! use core::time::Duration;
//! use fairpath_rate::{Bound, Delays, PathModel, Plan};
//!
//! // The example of the paper: three paths with exponential round-trip times, a deadline of 300 ms.
//! let paths = [(0.10, 20), (0.02, 100), (0.01, 300)].map(|(loss, rtt)| {
//!     PathModel::new(loss, Delays::exponential(Duration::from_millis(rtt)))
//! });
//! let plan = Plan::best(&paths, Duration::from_millis(300), &Bound::Cantelli)?;
//! let [first, second, third] = plan.rates[..] else { panic!("a rate for each path") };
//! assert!(first.per_second() > 190.0 && second.per_second() < 16.0 && third.per_second() < 16.0);
//! # Ok::<(), fairpath_rate::NotARate>(())
//! ```
//!
//! No I/O, no clock, no randomness.

mod concave;
mod coupled;
mod delays;
mod equation;
mod fec;
mod lateness;
mod loss_intervals;
mod optimum;
mod packet_rate;
mod plan;
mod region;

pub use concave::fair_shares;
pub use coupled::{capped, printed};
pub use delays::{DelayWindow, Delays};
pub use equation::{simple, tfrc, without_timeouts};
pub use fec::{Repair, repair_packets, residual};
pub use lateness::Bound;
pub use loss_intervals::LossIntervals;
pub use optimum::{floors, greedy, greedy_within};
pub use packet_rate::{NotARate, PacketRate};
pub use plan::{MARGIN, PROBING, PathModel, Plan};
pub use region::Region;
