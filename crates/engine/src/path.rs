//! What the engine knows of one path.

use core::time::Duration;

use fairpath_core::{Bytes, DeliveryRate, RttEstimator, Timestamp};

use crate::pacer::Pacer;
use crate::sent_packets::SentPackets;

/// A peer may hold an acknowledgement back for this long [RFC9000 §18.2, max_ack_delay].
const ACK_DELAY_MAX: Duration = Duration::from_millis(25);

/// Before the first sample a path is given this long [RFC9002 §6.2.2, kInitialRtt · 3].
const FIRST_ANSWER: Duration = Duration::from_millis(999);

/// A path that may send and does not for this long lacks data, or the scheduler keeps data off it.
/// Timers of hosts and their bursts make gaps that are shorter.
const STARVED: Duration = Duration::from_millis(5);

/// The state of one path.
#[derive(Debug)]
pub(crate) struct Path {
    pub(crate) max_datagram: Bytes,
    pub(crate) packets: SentPackets,
    pub(crate) rtt: RttEstimator,
    pub(crate) one_way: Option<Duration>,
    pub(crate) rate: DeliveryRate,
    pub(crate) pacer: Pacer,
    pub(crate) usable: bool,
    pub(crate) backup: bool,
    pub(crate) lost: Bytes,
    /// When the newest packet left.
    pub(crate) sent_at: Timestamp,
    /// When the newest acknowledgement came.
    pub(crate) heard_at: Timestamp,
    /// When the window was last full.
    pub(crate) full_at: Option<Timestamp>,
    /// The newest packet of the acknowledgement being read: number and time of sending.
    pub(crate) newest_acked: Option<(u64, Timestamp)>,
    /// The largest packet number acknowledged so far.
    pub(crate) largest_acked: Option<u64>,
    /// Losses reported since the last congestion event: what was in flight before them, and how much.
    pub(crate) losing: Option<(Bytes, Bytes)>,
}

impl Path {
    pub(crate) fn new(max_datagram: Bytes, now: Timestamp) -> Self {
        Self {
            max_datagram,
            packets: SentPackets::default(),
            rtt: RttEstimator::new(),
            one_way: None,
            rate: DeliveryRate::new(),
            pacer: Pacer::default(),
            usable: false,
            backup: false,
            lost: Bytes::ZERO,
            sent_at: now,
            heard_at: now,
            full_at: None,
            newest_acked: None,
            largest_acked: None,
            losing: None,
        }
    }

    /// Whether the path seems dead: packets wait for an answer for more than two probe timeouts,
    /// and nothing was heard in that time. An old, good round-trip time counts for nothing here.
    pub(crate) fn suspected(&self, now: Timestamp) -> bool {
        let Some(oldest) = self.packets.oldest() else { return false };
        let waited = now.since(oldest.max(self.heard_at));
        if waited <= 2 * ACK_DELAY_MAX {
            // Shorter than any patience: the usual case, and this is asked for every packet.
            return false;
        }
        let patience = match self.rtt.get() {
            Some(rtt) => 2 * (rtt.probe_timeout() + ACK_DELAY_MAX),
            None => FIRST_ANSWER,
        };
        waited > patience
    }

    /// Whether the path has carried less than it could for a while: what it delivers then says
    /// nothing of what it can deliver [BBRv3 §4.1.2.4].
    pub(crate) fn is_starved(&self, window: Bytes, now: Timestamp) -> bool {
        let has_room = self.packets.in_flight() + self.max_datagram <= window;
        has_room && now.since(self.pacer.free_at().max(self.sent_at)) > STARVED
    }

    /// Whether the window was full at some time in the last round trip.
    pub(crate) fn window_was_full(&self, now: Timestamp) -> bool {
        let round = self.rtt.get().map_or(Duration::ZERO, |rtt| rtt.smoothed);
        self.full_at.is_some_and(|at| now.since(at) <= round)
    }
}
