//! The data that a connection holds in memory.

use fairpath_engine::ByteCount;

use super::Connection;
use crate::bulk::{MAX_RECORD, UNSENT_MAX};
use crate::channel::ChannelId;
use crate::transport::Trust;

/// The messages and records that one end of a connection holds. Streams say themselves how much they hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeldData {
    /// The peer's: records in assembly, each as a whole, and those that the application has not taken.
    pub received: ByteCount,
    /// Its own: data never sent.
    pub unsent: ByteCount,
    /// Its own: records not fully acknowledged.
    pub unacknowledged: ByteCount,
}

impl HeldData {
    /// The upper bound, if the application writes only while there is room. Received data stays within the
    /// windows of a trusted peer, and so does data in flight to an end with the same windows. Unsent data
    /// is bounded by the queue's limit and one record on each channel.
    pub fn most() -> Self {
        let windows = ChannelId::ALL.map(|channel| Trust::Full.window(channel).bytes).iter().sum();
        let waiting = ChannelId::ALL.len() * (UNSENT_MAX + MAX_RECORD);
        Self {
            received: ByteCount::new(windows),
            unsent: ByteCount::new(waiting as u64),
            unacknowledged: ByteCount::new(windows),
        }
    }

    /// Whether none of it is more than in `most`.
    pub fn is_within(&self, most: &Self) -> bool {
        self.received <= most.received && self.unsent <= most.unsent && self.unacknowledged <= most.unacknowledged
    }
}

impl Connection {
    /// The data that this end of the connection holds.
    pub fn held(&self) -> HeldData {
        let mut held = HeldData::default();
        for channel in ChannelId::ALL.map(|id| self.lanes.channel(id)) {
            held.received += ByteCount::new(channel.held_bytes());
            held.unsent += ByteCount::new(channel.sender.unsent() as u64);
            held.unacknowledged += ByteCount::new(channel.sender.unfinished());
        }
        held
    }
}
