//! What a connection holds of its data.

use fairpath_engine::ByteCount;

use super::Connection;
use crate::bulk::{MAX_RECORD, UNSENT_MAX};
use crate::channel::ChannelId;
use crate::transport::Trust;

/// The messages and records that one end of a connection holds. Streams say themselves how much they hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeldData {
    /// Of the peer's: records that are not complete, as a whole, and those that the application has not taken.
    pub received: ByteCount,
    /// Of its own: what was never sent.
    pub unsent: ByteCount,
    /// Of its own: records of which not all is acknowledged.
    pub unacknowledged: ByteCount,
}

impl HeldData {
    /// The most that is held, where the application writes only while there is room: what comes in, and what is on
    /// its way to an end with the same windows, within those of a trusted peer; what waits within what one may put
    /// ahead, and one record more on each channel.
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
    /// What this end holds of the connection's data.
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
