//! The contract of a packet scheduler.

use core::fmt::Debug;
use core::time::Duration;

use fairpath_core::{Bytes, PathId, Timestamp};

/// What a scheduler sees of a path.
#[derive(Clone, Copy, Debug)]
pub struct PathView {
    /// The path.
    pub id: PathId,
    /// Its congestion window.
    pub window: Bytes,
    /// What is in flight on it.
    pub in_flight: Bytes,
    /// The size of its datagrams.
    pub max_datagram: Bytes,
    /// Its smoothed round-trip time; `None` before the first sample.
    pub smoothed_rtt: Option<Duration>,
    /// Whether it is validated, not being closed, and not suspected to be dead.
    pub usable: bool,
    /// To be used only where no other path is usable.
    pub backup: bool,
}

impl PathView {
    /// Whether a full datagram may leave on this path now, backup or not.
    pub fn has_room(&self) -> bool {
        self.usable && self.in_flight.saturating_add(self.max_datagram) <= self.window
    }
}

/// What waits to be sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pending {
    /// How much; `None` where the host does not know.
    pub bytes: Option<Bytes>,
}

/// What to do with the next packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Send it on this path.
    Send(PathId),
    /// Send nothing now.
    Wait,
}

/// A packet scheduler. It sees views only, never a transport.
///
/// `pick` is asked as often as the host likes and changes nothing; `on_sent` tells what became of it.
pub trait Scheduler: Debug + Send {
    /// The path for the next packet. `paths` is in order of the ids.
    fn pick(&self, paths: &[PathView], data: &Pending, now: Timestamp) -> Choice;
    /// Whether a path, once chosen, stays the choice while nothing but packets on it happens and it has room.
    /// A host that knows need not ask for each of them.
    fn stays(&self) -> bool {
        false
    }
    /// A packet of `bytes` left on `path`.
    fn on_sent(&mut self, _path: PathId, _bytes: Bytes) {}
}

/// The paths that may be chosen: those with room, and backups only where no other path is usable.
pub(crate) fn candidates(paths: &[PathView]) -> impl Iterator<Item = &PathView> {
    let only_backups = !paths.iter().any(|path| path.usable && !path.backup);
    paths.iter().filter(move |path| path.has_room() && (!path.backup || only_backups))
}
