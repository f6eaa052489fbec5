//! The part of the policy about paths that the peer opens: what is sent on new ones, and which of them are kept.

use std::collections::BTreeSet;
use web_time::{Duration, Instant};

use fairpath_engine::ByteCount as Size;
use fairpath_engine::health::{Action, CloseReason, PathHealth};
use noq_proto::PathId;

use super::{Paths, Policy, Side};
use crate::address::unmapped;
use crate::paths::slot::Slot;

/// For how long a path is kept at least that the peer may not open again: longer than most outages.
const KEPT: Duration = Duration::from_secs(6);

/// The most in flight on a path that is kept for longer, in bytes: probes and signs of life, no data. The stack sends
/// the data of streams again only where a path is closed, or heard again.
const KEPT_WITH: Size = Size::new(1_200);

impl Policy {
    /// The stack may have paths that it did not have before. On one that the peer opens between the addresses of another it
    /// would send data and all acknowledgements at once. Perhaps nothing of it arrives: somebody may have passed the peer's
    /// packet on, with its source as it was. The peer takes nothing that comes from elsewhere than it sent to. So such a
    /// path is a backup until the peer has answered on it.
    pub(crate) fn on_new_paths(&mut self, paths: &mut dyn Paths) {
        if self.side == Side::Opener || !self.application.is_fairpath() {
            return;
        }
        let ids: BTreeSet<PathId> = paths.ids().into_iter().collect();
        let has_slot = |id: PathId| self.slots.iter().any(|slot| slot.id() == Some(id) || slot.spare == Some(id));
        for id in ids.difference(&self.known).filter(|id| !has_slot(**id)) {
            let Some(remote) = paths.network_path(*id).map(|way| way.remote()) else { continue };
            let mut others = ids.iter().filter(|other| *other != id);
            if others.any(|other| paths.network_path(*other).is_some_and(|way| way.remote() == remote)) {
                paths.set_backup(*id, true);
            }
        }
        self.known = ids;
    }

    /// Whether a path is kept that is to be closed. A peer that is no Fairpath may not open it again, and this end cannot.
    pub(super) fn is_kept(&self, at: usize, action: &Action, now: Instant) -> bool {
        let Action::Close(reason) = action else { return false };
        if self.side == Side::Opener || self.application.is_fairpath() {
            return false;
        }
        let path = self.slots[at].engine_path();
        let snapshot = path.and_then(|path| self.engine.with(now, |engine, at| engine.snapshot(path, at)));
        is_worth_keeping(reason, snapshot.map_or(Size::ZERO, |path| path.in_flight))
    }
}

/// A slot for a path that the peer opened.
pub(super) fn accepted_slot(paths: &mut dyn Paths, id: PathId, health: PathHealth<PathId>) -> Option<Slot> {
    let network_path = paths.network_path(id)?;
    let (interface, local) = paths.interface(network_path.local_ip().map(|ip| ip.to_canonical()))?;
    Some(Slot::accepted(interface, local, unmapped(network_path.remote()), health))
}

/// Whether a path may be as it is for a while, as a backup.
fn is_worth_keeping(reason: &CloseReason, in_flight: Size) -> bool {
    match reason {
        CloseReason::Unacknowledged(time) | CloseReason::Unheard(time) => *time < KEPT || in_flight < KEPT_WITH,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use noq_proto::FourTuple;

    use super::*;
    use crate::adapter::ConnectionEngine;
    use crate::paths::policy::ways::tests::Stack;
    use crate::tls::Application;

    #[test]
    fn a_path_that_the_peer_opens_between_addresses_in_use_is_a_backup_until_the_peer_has_answered_on_it() {
        let (now, [second, third]) = (Instant::now(), [PathId::from(1_u32), PathId::from(2_u32)]);
        let way = |last| FourTuple::new(SocketAddr::from(([192, 0, 2, last], 7)), Some([10, 0, 0, 1].into()));
        for (application, expected) in
            [(Application::Fairpath, &[(second, true), (second, false)][..]), (Application::Other(b"other"), &[])]
        {
            let engine = fairpath_engine::EngineConfig::default().build().map(ConnectionEngine::new).unwrap();
            let mut stack = Stack::default();
            stack.accepted.push((PathId::ZERO, way(1)));
            let mut policy = Policy::acceptor(engine, &mut stack, now).speaking(application);
            stack.accepted.extend([(second, way(1)), (third, way(2))]);
            (0..2).for_each(|_| policy.on_new_paths(&mut stack));
            policy.on_established(&mut stack, second, now);
            policy.on_new_paths(&mut stack);
            assert_eq!(stack.backups, expected, "{application:?}");
        }
    }

    #[test]
    fn a_path_that_cannot_be_opened_again_outlives_an_outage_but_holds_no_data_for_long() {
        let silent = |seconds| CloseReason::Unacknowledged(Duration::from_secs(seconds));
        assert!(is_worth_keeping(&silent(2), Size::new(1 << 20)));
        assert!(!is_worth_keeping(&silent(7), Size::new(1 << 20)), "its data goes over the others");
        assert!(is_worth_keeping(&silent(60), Size::new(100)));
        assert!(!is_worth_keeping(&CloseReason::Unvalidated, Size::ZERO));
    }
}
