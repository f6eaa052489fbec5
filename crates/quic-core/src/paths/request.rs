//! What the application asks of single paths, and the policy does not undo.

use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use super::policy::{Paths, Policy};

impl Policy {
    /// Closes the path on the pair for good. False where there is none, or no other to stay.
    pub(crate) fn shut(&mut self, paths: &mut dyn Paths, local: IpAddr, remote: SocketAddr, now: Instant) -> bool {
        let Some(at) = self.slots.iter().position(|slot| slot.is_pair(local, remote) && slot.is_open()) else {
            return false;
        };
        // A second path of the pair would take the place of the first.
        if let Some(spare) = self.slots[at].spare.take() {
            paths.close(spare);
        }
        self.close(paths, at, "it was asked for", now);
        self.slots[at].is_shut = !self.slots[at].is_open();
        self.slots[at].is_shut
    }

    /// Keeps data off the path on the pair, also when it is opened again. False where the pair is not known.
    pub(crate) fn keep_back(
        &mut self,
        paths: &mut dyn Paths,
        local: IpAddr,
        remote: SocketAddr,
        backup: bool,
        now: Instant,
    ) -> bool {
        let Some(slot) = self.slots.iter_mut().find(|slot| slot.is_pair(local, remote)) else { return false };
        slot.is_kept_back = backup;
        self.nurse(paths, now);
        true
    }
}
