//! The words every Fairpath crate shares: units, path ids, events, groups of paths, and the
//! estimators that turn events into delays and rates.
//!
//! Nothing here reads a clock, does I/O or owns randomness: `now` is an argument.

mod delivery_rate;
mod event;
mod groups;
mod path;
mod printable;
mod rtt;
mod units;
mod windowed_filter;

pub use delivery_rate::{DeliveryRate, LossSample, RateSample, SentState};
pub use event::{Ack, Congestion, CongestionSignal, DelaySample, Lost, LostPacket, Sent};
pub use groups::{GroupId, Groups};
pub use path::{PathId, PathMap};
pub use printable::printable;
pub use rtt::{Rtt, RttEstimator};
pub use units::{Bitrate, Bytes, Timestamp};
pub use windowed_filter::{RoundMax, WindowedMax, WindowedMin};
