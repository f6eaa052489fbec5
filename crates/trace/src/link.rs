//! The lines of a trace of links: one header, then one record per link and time.

use serde::{Deserialize, Serialize};

/// The number of the format. It changes when an old reader would misread a new file; a new field
/// does not change it.
pub const LINK_FORMAT: u32 = 1;

/// The first line of a trace of links.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkHeader {
    /// The number of the format, [`LINK_FORMAT`]. Its name also says what kind of file this is.
    pub fairpath_links: u32,
    /// The version of Fairpath that wrote the file.
    pub version: String,
    /// A label for the whole file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
}

impl LinkHeader {
    /// The header that this version writes.
    pub fn new(run: Option<&str>) -> Self {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Self { fairpath_links: LINK_FORMAT, version, run: run.map(str::to_owned) }
    }
}

/// One line of a trace of links: a link at one time. What is counted is counted since the start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkRecord {
    /// Nanoseconds since the start of the run.
    pub time_ns: u64,
    /// The name of the link.
    pub link: String,
    /// How many packets wait for transmission.
    pub queued_packets: u64,
    /// How many bytes they are.
    pub queued_bytes: u64,
    /// Bytes delivered at the far end.
    pub delivered_bytes: u64,
    /// Packets dropped, for whatever cause.
    pub dropped_packets: u64,
    /// Packets marked instead of dropped.
    pub marked_packets: u64,
}
