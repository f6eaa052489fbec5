//! The contract of a packet scheduler.

use core::fmt::Debug;
use core::time::Duration;

use fairpath_core::{Bitrate, ByteCount, OneWayDelay, PathId, Rtt, Timestamp};

use crate::path_set::PathSet;

/// A scheduler's view of the connection. A host leaves what it does not know as it is by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionView {
    /// How much waits that was never sent; `None`: not known, and no end of it in sight.
    pub unsent: Option<ByteCount>,
    /// How much data may be between the lowest unacknowledged byte and the next new one, by the receiver's word;
    /// `None`: no bound is known.
    pub window: Option<ByteCount>,
    /// How much there is; what was passed over for a later packet has still to be sent, and is not counted.
    pub window_used: ByteCount,
    /// How much the sender may hold that is not acknowledged; `None`: no bound is known.
    pub send_buffer: Option<ByteCount>,
    /// How much it holds.
    pub buffered: ByteCount,
    /// Whether a window or a buffer keeps new data back, so that a path with room has none to send.
    pub is_blocked: bool,
    /// By when the next packet has to arrive; `None`: sooner is better, and nothing is too late.
    pub due: Option<Due>,
}

/// By when a packet has to arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// How long a packet may take in all.
    pub deadline: Duration,
    /// How much of that is left.
    pub left: Duration,
    /// How long it has been waiting for a path already.
    pub held: Duration,
}

/// How packets fare on a path, by the word of their receiver.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transit {
    /// The mean of how long they take, one way.
    pub mean: Duration,
    /// The standard deviation of that.
    pub deviation: Duration,
    /// The share of those that arrive that comes after the deadline.
    pub late: f64,
    /// The share that is lost in the long run.
    pub lost: f64,
}

/// A scheduler's view of a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathView {
    /// The path.
    pub id: PathId,
    /// Its congestion window.
    pub window: ByteCount,
    /// Whether its pacer lets nothing go now, whatever room there is.
    pub paced: bool,
    /// The bytes in flight on it.
    pub in_flight: ByteCount,
    /// The size of its datagrams.
    pub max_datagram: ByteCount,
    /// Its round-trip times; `None` before the first sample.
    pub rtt: Option<Rtt>,
    /// How long datagrams take there, less a constant that is the same for all paths; `None` where the host does not
    /// measure it.
    pub one_way: Option<OneWayDelay>,
    /// How packets fare there; `None` where the receiver does not say.
    pub transit: Option<Transit>,
    /// How fast it delivered what was acknowledged last; `None` before the first sample.
    pub delivery_rate: Option<Bitrate>,
    /// Its slow-start threshold; `None` while it is unlimited.
    pub ssthresh: Option<ByteCount>,
    /// Whether its window doubles with each round trip.
    pub in_slow_start: bool,
    /// Whether its window was full at some time since the packet left that was acknowledged last.
    pub window_limited: bool,
    /// Until when what has left would have taken, sent evenly at the pacing rate; not later than now where nothing left in
    /// a burst, or nothing is paced.
    pub burst_until: Timestamp,
    /// When the newest acknowledgement came, or the path was opened.
    pub heard_at: Timestamp,
    /// When the oldest packet left that is in flight; `None` where none is.
    pub oldest_sent: Option<Timestamp>,
    /// Whether it is validated, not being closed, and not suspected to be dead.
    pub usable: bool,
    /// To be used only where no other path is usable.
    pub backup: bool,
    /// The terms of it.
    pub terms: Terms,
}

/// The terms that a person sets for a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// How large its share is to be, beside those of the others.
    pub weight: u32,
    /// The cost of using it: a path is spared where one that costs less will do.
    pub cost: u32,
    /// Whether it is used only where no other path can be.
    pub backup: bool,
    /// How much may be sent on it in a second, at most; `None`: as much as the network takes.
    pub cap: Option<Bitrate>,
    /// How much may still be sent on it, before it is not usable any more; `None`: without bound.
    pub quota: Option<ByteCount>,
}

impl Default for Terms {
    /// All are alike, cost nothing, and have no cap and no quota.
    fn default() -> Self {
        Self { weight: 1, cost: 0, backup: false, cap: None, quota: None }
    }
}

impl Terms {
    /// The terms that keep to these and to those that the peer `asks` for: the larger cost, the smaller cap, a backup
    /// where either says so. The weight and the quota are this end's own.
    pub fn heeding(self, asks: Self) -> Self {
        let cap = self.cap.into_iter().chain(asks.cap).min();
        Self { cost: self.cost.max(asks.cost), backup: self.backup || asks.backup, cap, ..self }
    }
}

impl PathView {
    /// Whether a full datagram may leave on this path now, backup or not.
    pub fn has_room(&self) -> bool {
        self.usable && !self.paced && self.in_flight.saturating_add(self.max_datagram) <= self.window
    }

    /// Whether the host asks again as soon as it may carry a packet: an acknowledgement or its pacer will say so.
    pub(crate) fn is_worth_waiting_for(&self) -> bool {
        self.in_flight > ByteCount::ZERO || (self.paced && self.max_datagram <= self.window)
    }

    /// For how long it has owed an answer; zero where nothing is in flight.
    pub fn silent_for(&self, now: Timestamp) -> Duration {
        self.oldest_sent.map_or(Duration::ZERO, |sent| now.since(sent.max(self.heard_at)))
    }

    /// Its smoothed round-trip time; `None` before the first sample.
    pub fn smoothed(&self) -> Option<Duration> {
        Some(self.rtt?.smoothed)
    }
}

/// The decision about the next packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Send it on this path.
    Send(PathId),
    /// Send on this path the data that lies this far beyond the next data in order: the data is
    /// chosen after the path. The data in between comes next, on whichever path is picked then. A
    /// host without data that far ahead, or without a window for it, sends nothing. A host whose
    /// data need not arrive in order sends the next data.
    Ahead(PathId, ByteCount),
    /// Send all data on each of these paths. A path with room sends the oldest data that others
    /// have sent, that it has not, and that is not acknowledged. If there is none, the packet goes
    /// on the first path, which has room.
    Copies(PathSet),
    /// Send nothing until this path has room, although another one may have some.
    WaitFor(PathId),
    /// No path can take it.
    Wait,
}

impl Choice {
    /// The path that carries the packet, the first where there are several.
    pub fn path(&self) -> Option<PathId> {
        match self {
            Self::Send(path) | Self::Ahead(path, _) => Some(*path),
            Self::Copies(paths) => paths.iter().next(),
            Self::WaitFor(_) | Self::Wait => None,
        }
    }
}

/// How many packets may follow each other on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Train {
    /// At most this many.
    UpTo(u64),
    /// As many as there is room for.
    All,
}

/// A packet scheduler. It sees views only, never a transport.
///
/// `pick` is asked as often as the host likes and changes nothing; the events tell what became of it. A scheduler
/// may wait for a path as long as that path is usable and something is in flight on it: its acknowledgement, or the
/// suspicion that it is dead, makes the host ask again. So does its pacer where that alone holds it back. Where no path
/// has either, nothing would.
pub trait Scheduler: Debug + Send {
    /// The path for the next packet. `paths` is in order of the ids.
    fn pick(&self, connection: &ConnectionView, paths: &[PathView], now: Timestamp) -> Choice;
    /// How many packets may leave on the path that was chosen, one after the other, before the host asks again, if
    /// nothing else happens meanwhile and there is room. [`Train::All`] promises that each of them would be chosen so.
    fn train(&self, _chosen: &PathView) -> Train {
        Train::UpTo(1)
    }
    /// A packet of `bytes` left on `path`.
    fn on_sent(&mut self, _path: PathId, _bytes: ByteCount) {}
    /// Whether [`on_ack`](Self::on_ack) is of use: drawing up a view for each acknowledgement has its price.
    fn hears_acks(&self) -> bool {
        false
    }
    /// An acknowledgement of `bytes` was read on a path, of which this is the view after it.
    fn on_ack(&mut self, _path: &PathView, _bytes: ByteCount, _now: Timestamp) {}
    /// Whether [`on_arrived`](Self::on_arrived) is of use.
    fn hears_order(&self) -> bool {
        false
    }
    /// Data that went on `path` has arrived: whether it was awaited, all before it having arrived already, or has to
    /// wait for some. Told by hosts that hand out data in order.
    fn on_arrived(&mut self, _path: PathId, _was_awaited: bool) {}
    /// A packet of `bytes` was lost on `path`.
    fn on_lost(&mut self, _path: PathId, _bytes: ByteCount, _now: Timestamp) {}
    /// A packet that was taken for lost on `path` has arrived. Told by hosts that know it of each packet.
    fn on_spurious_loss(&mut self, _path: PathId, _now: Timestamp) {}
    /// A path is gone for good.
    fn on_path_closed(&mut self, _path: PathId) {}
    /// A path had room, and a window or a buffer of the connection had none.
    fn on_window_blocked(&mut self, _now: Timestamp) {}
}

/// The paths that may be chosen at some time: the usable ones, and backups only where no other is.
pub(crate) fn active(paths: &[PathView]) -> impl Iterator<Item = &PathView> {
    let only_backups = !paths.iter().any(|path| path.usable && !path.backup);
    paths.iter().filter(move |path| path.usable && (!path.backup || only_backups))
}

/// The paths that may be chosen now: those with room.
pub(crate) fn candidates(paths: &[PathView]) -> impl Iterator<Item = &PathView> {
    active(paths).filter(|path| path.has_room())
}
