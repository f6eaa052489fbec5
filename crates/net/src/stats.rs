//! The counters of a link.

use core::ops::AddAssign;
use core::time::Duration;

use fairpath_core::ByteCount;

/// Packets and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// How many packets.
    pub packets: u64,
    /// How many bytes they have together, without the framing of a link.
    pub bytes: ByteCount,
}

impl Count {
    /// Counts one packet more.
    #[inline]
    pub(crate) fn add(&mut self, size: ByteCount) {
        self.packets += 1;
        self.bytes += size;
    }
}

impl AddAssign for Count {
    fn add_assign(&mut self, other: Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
    }
}

/// The counters of a link, as of the last time it was driven.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// Everything that was offered.
    pub offered: Count,
    /// Packets that came out at the far end.
    pub delivered: Count,
    /// Lost to the loss model.
    pub lost: Count,
    /// Refused because they did not fit into the queue.
    pub overflowed: Count,
    /// Dropped by the management of the queue, before it was full.
    pub early: Count,
    /// Offered while the link was down, in the queue when it went down, or cut off by a rate that
    /// fell to zero for good.
    pub down: Count,
    /// Dropped by a filter at the entrance.
    pub filtered: Count,
    /// Dropped by the policer, as they came too fast.
    pub policed: Count,
    /// Marked by the management of the queue; they are not dropped.
    pub marked: Count,
    /// Copies that the wire made. They were not offered, and are delivered like the others.
    pub duplicated: Count,
    /// Harmed on the wire; they are delivered all the same.
    pub corrupted: Count,
    /// Held back on the wire, so that others could overtake them.
    pub held_back: Count,
    /// Packets that wait in the queue now.
    pub queued: Count,
    /// Packets that are being transmitted or on their way now.
    pub in_flight: Count,
    /// The largest amount that has waited in the queue.
    pub queued_bytes_max: ByteCount,
    /// How long packets waited in the queue, all together.
    pub queueing_delay_total: Duration,
    /// The longest that a packet waited in the queue.
    pub queueing_delay_max: Duration,
}

impl LinkStats {
    /// How long a packet waited in the queue on average; `None` before the first.
    pub fn queueing_delay_mean(&self) -> Option<Duration> {
        let transmitted = self.delivered.packets + self.in_flight.packets - self.duplicated.packets;
        let nanos = self.queueing_delay_total.as_nanos().checked_div(u128::from(transmitted))?;
        Some(Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
    }

    /// Everything that was not delivered and never will be.
    pub fn dropped(&self) -> Count {
        let mut dropped = self.lost;
        dropped += self.overflowed;
        dropped += self.early;
        dropped += self.down;
        dropped += self.filtered;
        dropped += self.policed;
        dropped
    }

    /// Whether every packet that was offered, and every copy, is accounted for.
    pub fn is_conserved(&self) -> bool {
        let mut found = self.dropped();
        found += self.delivered;
        found += self.queued;
        found += self.in_flight;
        let mut made = self.offered;
        made += self.duplicated;
        found == made
    }
}
