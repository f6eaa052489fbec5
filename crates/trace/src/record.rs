//! The lines of a trace: one header, then one record per path and time.

use core::fmt;
use core::time::Duration;

use fairpath_core::{Bitrate, ByteCount, GroupId, PathId, Timestamp};
use serde::{Deserialize, Serialize};

/// The number of the format. It changes when an old reader would misread a new file; a new field
/// does not change it.
pub const FORMAT: u32 = 1;

/// The first line of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// The number of the format, [`FORMAT`]. Its name also says what kind of file this is.
    pub fairpath_trace: u32,
    /// The version of Fairpath that wrote the file.
    pub version: String,
    /// A label for the whole file, such as `separate/olia`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
}

impl Header {
    /// The header that this version writes.
    pub fn new(run: Option<&str>) -> Self {
        Self { fairpath_trace: FORMAT, version: env!("CARGO_PKG_VERSION").to_owned(), run: run.map(str::to_owned) }
    }
}

/// The part of its life that a path is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Its window doubles each round trip.
    SlowStart,
    /// Its window grows by the rule of the algorithm.
    CongestionAvoidance,
    /// Its window was reduced, and packets sent before that are still unaccounted for.
    Recovery,
    /// It has not answered for so long that it may be dead.
    Suspected,
    /// It is gone.
    Closed,
}

impl State {
    /// Every state.
    pub const ALL: [Self; 5] =
        [Self::SlowStart, Self::CongestionAvoidance, Self::Recovery, Self::Suspected, Self::Closed];

    /// The word that stands for it in a file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SlowStart => "slow_start",
            Self::CongestionAvoidance => "congestion_avoidance",
            Self::Recovery => "recovery",
            Self::Suspected => "suspected",
            Self::Closed => "closed",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The state of a path at one time as its host knows it, in types that carry their units.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// When, since the start of the run.
    pub now: Timestamp,
    /// The path.
    pub path: PathId,
    /// Its congestion window.
    pub cwnd: ByteCount,
    /// Its smoothed round-trip time; `None` before the first sample.
    pub srtt: Option<Duration>,
    /// Its smallest round-trip time; `None` before the first sample.
    pub rtt_min: Option<Duration>,
    /// The bytes in flight on it.
    pub in_flight: ByteCount,
    /// Its delivery rate; `None` before the first sample.
    pub rate: Option<Bitrate>,
    /// The bytes that it has lost since it was opened.
    pub lost: ByteCount,
    /// Its group.
    pub group: GroupId,
    /// The part of its life.
    pub state: State,
}

/// One line of a trace: a path at one time. Raw numbers, each with its unit in its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Nanoseconds since the start of the run.
    pub time_ns: u64,
    /// A label for the run, where one file holds several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// A label for the flow, where one run has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// The path.
    pub path: u32,
    /// The congestion window, in bytes.
    pub cwnd_bytes: u64,
    /// The smoothed round-trip time; `null` before the first sample.
    #[serde(deserialize_with = "present")]
    pub srtt_ns: Option<u64>,
    /// The smallest round-trip time; `null` before the first sample.
    #[serde(deserialize_with = "present")]
    pub rtt_min_ns: Option<u64>,
    /// The bytes in flight.
    pub in_flight_bytes: u64,
    /// The delivery rate, in bits per second; `null` before the first sample.
    #[serde(deserialize_with = "present")]
    pub rate_bps: Option<u64>,
    /// Bytes lost since the path was opened.
    pub lost: u64,
    /// The group: the lowest path of those that are coupled with this one.
    pub group: u32,
    /// The part of its life.
    pub state: State,
}

/// Accepts a number or `null`, but not a missing field, as serde alone would for an `Option`.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Option::deserialize(deserializer)
}

impl From<Sample> for Record {
    /// The sample without labels.
    fn from(sample: Sample) -> Self {
        Self {
            time_ns: sample.now.as_nanos(),
            run: None,
            flow: None,
            path: sample.path.get(),
            cwnd_bytes: sample.cwnd.get(),
            srtt_ns: sample.srtt.map(nanos),
            rtt_min_ns: sample.rtt_min.map(nanos),
            in_flight_bytes: sample.in_flight.get(),
            rate_bps: sample.rate.map(Bitrate::as_bps),
            lost: sample.lost.get(),
            group: sample.group.get(),
            state: sample.state,
        }
    }
}

/// Whole nanoseconds, at most what a file can hold (584 years).
fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairpath_core::Groups;

    #[test]
    fn a_sample_becomes_numbers_in_the_units_that_the_names_say() {
        let paths = [PathId::new(1), PathId::new(3)];
        let record = Record::from(Sample {
            now: Timestamp::from_millis(1_500),
            path: paths[1],
            cwnd: ByteCount::from_kilobytes(12),
            srtt: Some(Duration::from_millis(20)),
            rtt_min: Some(Duration::from_micros(19_500)),
            in_flight: ByteCount::new(1_200),
            rate: Some(Bitrate::from_mbps(20)),
            lost: ByteCount::new(2_400),
            group: Groups::one(paths).of(paths[1]),
            state: State::Recovery,
        });
        assert_eq!(record.time_ns, 1_500_000_000);
        assert_eq!((record.path, record.group), (3, 1));
        assert_eq!((record.srtt_ns, record.rtt_min_ns), (Some(20_000_000), Some(19_500_000)));
        assert_eq!((record.rate_bps, record.lost), (Some(20_000_000), 2_400));
    }

    #[test]
    fn a_state_is_written_as_it_is_displayed() {
        for state in State::ALL {
            assert_eq!(serde_json::to_string(&state).unwrap(), format!("\"{state}\""));
        }
    }
}
