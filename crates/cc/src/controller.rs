//! The contract of a congestion controller: one per connection, so that a coupled rule sees every
//! path and nothing has to be shared behind a lock.

use core::fmt::Debug;

use fairpath_core::{Ack, Bitrate, ByteCount, Congestion, Groups, LostPacket, PathId, Sent, Timestamp};

/// The part of its life that a path's window is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Doubling each round trip.
    SlowStart,
    /// Growing by the rule of the algorithm.
    CongestionAvoidance,
    /// Waiting for the packets sent before the last reduction to be accounted for.
    Recovery,
}

/// The state of a path's control, for a recorder.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ControlState {
    /// The congestion window.
    pub window: ByteCount,
    /// The slow-start threshold; `None` while it is unlimited.
    pub ssthresh: Option<ByteCount>,
    /// The part of its life.
    pub phase: Phase,
    /// How often a measured delay, and not a loss or a mark, has made the window smaller.
    pub delay_cuts: u64,
}

/// A congestion controller for all paths of one connection.
///
/// It reads no clock and cannot fail. Events for a path that is not open are ignored. Windows are
/// in bytes, never below the configured minimum, and always finite.
pub trait Controller: Debug + Send {
    /// A path was opened; its datagrams carry up to `max_datagram`.
    fn on_path_opened(&mut self, path: PathId, max_datagram: ByteCount, now: Timestamp);
    /// A path is gone; it takes part in no coupling from now on.
    fn on_path_closed(&mut self, path: PathId);
    /// The size of the path's datagrams changed.
    fn on_max_datagram(&mut self, path: PathId, max_datagram: ByteCount);
    /// A packet left.
    fn on_sent(&mut self, _path: PathId, _sent: &Sent) {}
    /// Whether it makes anything of [`on_sent`](Self::on_sent). Where it does not, it need not be told.
    fn hears_sent(&self) -> bool {
        true
    }
    /// Whether it reads the delivery rates of acknowledgements. Where it does not, they need not be worked out, and
    /// [`Ack::rate`] may be `None`.
    fn reads_rates(&self) -> bool {
        true
    }
    /// A packet was acknowledged.
    fn on_ack(&mut self, path: PathId, ack: &Ack);
    /// An acknowledgement, whose packets were reported one by one, has been read whole.
    fn on_ack_end(&mut self, _path: PathId, _now: Timestamp) {}
    /// A packet was lost. [`on_congestion`](Self::on_congestion) follows, once for all that were
    /// found lost at the same moment.
    fn on_lost(&mut self, _path: PathId, _lost: &LostPacket) {}
    /// The network signalled congestion.
    fn on_congestion(&mut self, path: PathId, event: &Congestion);
    /// Every packet whose loss led to the last reduction was acknowledged after all: what was late was taken
    /// for lost. Not called for marks, which mean what they say.
    fn on_spurious_congestion(&mut self, _path: PathId, _now: Timestamp) {}
    /// The detector has a new partition. Windows are kept; only the coupling changes.
    fn on_groups(&mut self, _groups: &Groups) {}
    /// The delay that the path's own window makes calls for one of `window` at most; the slow-start threshold
    /// follows it. What keeps a model of the path has no window of its own to cut, and leaves it as it is.
    fn clamp(&mut self, _path: PathId, _window: ByteCount) {}
    /// The path has held up all the others: its window is halved, and its slow-start threshold unless slow start is
    /// going on. What keeps a model of the path leaves it as it is.
    fn penalise(&mut self, _path: PathId) {}
    /// How much may be in flight on the path. Zero for a path that is not open.
    fn window(&self, path: PathId) -> ByteCount;
    /// How fast the path may send; `None`: as the host likes.
    fn pacing_rate(&self, _path: PathId) -> Option<Bitrate> {
        None
    }
    /// The rate at which the bottleneck of the path served it of late while packets waited there, where nobody else
    /// fills that queue. `None` where that is not known, and for controllers that do not ask whose a queue is.
    fn served(&self, _path: PathId) -> Option<Bitrate> {
        None
    }

    /// The state for a recorder; `None` for a path that is not open.
    fn state(&self, path: PathId) -> Option<ControlState>;
}
