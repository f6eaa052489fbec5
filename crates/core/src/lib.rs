//! The words every Fairpath crate shares: units, path ids, events, groups of paths, and the
//! estimators that turn events into delays and rates.
//!
//! Nothing here reads a clock, does I/O or owns randomness: `now` is an argument.
//!
//! ```
//! use core::time::Duration;
//! use fairpath_core::{Bitrate, ByteCount, DeliveryRate, RttEstimator, Timestamp};
//!
//! // A packet of 1,250 bytes, acknowledged after 20 ms.
//! let (sent, heard) = (Timestamp::from_millis(100), Timestamp::from_millis(120));
//! let mut rate = DeliveryRate::new();
//! let packet = rate.on_sent(sent, ByteCount::ZERO);
//! let sample = rate.on_ack(heard, ByteCount::new(1_250), &packet).expect("time has passed");
//! assert_eq!(sample.rate, Bitrate::from_kbps(500));
//!
//! let mut rtt = RttEstimator::new();
//! rtt.on_sample(heard, heard.since(sent), Duration::ZERO);
//! assert_eq!(rtt.get().map(|rtt| rtt.smoothed), Some(Duration::from_millis(20)));
//! ```

mod chance;
mod delivery_rate;
mod estimate;
mod event;
mod groups;
mod one_way;
mod path;
mod printable;
mod rtt;
mod units;
mod windowed_filter;

pub use chance::share_above;
pub use delivery_rate::{DeliveryRate, LossSample, RateSample, SentState};
pub use estimate::{Estimate, t_95};
pub use event::{Ack, Congestion, CongestionSignal, DelaySample, Lost, LostPacket, Sent};
pub use groups::{GroupId, Groups};
pub use one_way::{OneWayDelay, OneWayEstimator};
pub use path::{PathId, PathMap};
pub use printable::printable;
pub use rtt::{Rtt, RttEstimator};
pub use units::{Bitrate, ByteCount, Timestamp};
pub use windowed_filter::{RoundMax, WindowedMax, WindowedMin};
