//! The application's requests about single paths, which the policy does not undo.

use std::net::{IpAddr, SocketAddr};
use web_time::Instant;

use fairpath_engine::{BackupReason, Engine, PathId as EnginePath, Terms, TermsChanges};
use noq_proto::PathId;

use super::{FOR_GOOD, LOST, Paths, Policy, Slot};
use crate::address::own_address;

impl Policy {
    /// Closes the path on the pair for good. False where there is none, or no other to stay.
    pub(crate) fn shut(&mut self, paths: &mut dyn Paths, local: IpAddr, remote: SocketAddr, now: Instant) -> bool {
        let Some(at) = self.slots.iter().position(|slot| slot.is_pair(local, remote) && slot.is_open()) else {
            return false;
        };
        self.shut_at(paths, at, "it was asked for", now)
    }

    /// Closes the paths from an address here for good, but for the last one.
    pub(crate) fn shut_address(&mut self, paths: &mut dyn Paths, local: IpAddr, why: &str, now: Instant) {
        for at in 0..self.slots.len() {
            if self.slots[at].local() == local && self.slots[at].is_open() {
                self.shut_at(paths, at, why, now);
            }
        }
    }

    fn shut_at(&mut self, paths: &mut dyn Paths, at: usize, why: &str, now: Instant) -> bool {
        // A second path of the pair would take the place of the first.
        if let Some(spare) = self.slots[at].spare.take() {
            paths.close_with(spare, FOR_GOOD);
        }
        self.close_with(paths, at, FOR_GOOD, why, now);
        let is_shut = !self.slots[at].is_open();
        self.slots[at].health.set_shut(is_shut);
        is_shut
    }

    /// The peer has closed a path for good.
    pub(super) fn on_shut(&mut self, paths: &mut dyn Paths, id: PathId, now: Instant) {
        let is_meant = |slot: &&mut Slot| slot.id() == Some(id) || slot.spare == Some(id);
        let Some(slot) = self.slots.iter_mut().find(is_meant) else { return };
        slot.health.set_shut(true);
        // The peer closes the other path of the pair, too.
        if let Some(spare) = slot.spare.take_if(|spare| *spare != id) {
            paths.close(spare);
            self.set_use(paths, spare, LOST, now);
        }
    }

    /// A person at this end has changed terms of paths: `changes` is all that they have changed so far.
    pub(crate) fn change_terms(&mut self, changes: TermsChanges, now: Instant) {
        self.engine.with(now, |engine, _| {
            engine.change_terms(changes);
            for slot in &self.slots {
                if let Some(path) = slot.engine_path() {
                    name_path(engine, path, slot);
                }
            }
        });
    }

    /// The peer's terms of paths.
    pub(crate) fn on_peer_terms(&mut self, paths: &mut dyn Paths, told: &[(PathId, Terms)], now: Instant) {
        for (id, terms) in told {
            if let Some(slot) = self.slots.iter_mut().find(|slot| slot.id() == Some(*id)) {
                slot.peer_terms = *terms;
                self.tell_engine(paths, *id, now, |engine, path| engine.set_peer_terms(path, *terms));
            }
        }
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
        slot.health.keep_off(BackupReason::Asked, backup);
        self.treat_paths(paths, now);
        true
    }
}

/// Tells the engine where the path of a slot begins, as people call it.
pub(super) fn name_path(engine: &mut Engine, path: EnginePath, slot: &Slot) {
    engine.name_path(path, &[slot.name(), &own_address(slot.local()).to_string()]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths::policy::ways::tests::{STEP, Stack, local, peer, policy};
    use crate::tls::Application;

    /// The policy of an end with two addresses, whose path from the first is open; and where that begins and ends.
    fn two(stack: &mut Stack, now: Instant) -> (Policy, IpAddr, SocketAddr) {
        let locals = [local("a", "10.0.1.1"), local("b", "10.0.2.1")];
        let remotes = peer(&["192.0.2.1"]);
        (policy(&locals, &remotes, stack, now), locals[0].address, remotes[0])
    }

    #[test]
    fn a_path_that_was_closed_on_request_is_not_opened_again() {
        let (mut stack, begun) = (Stack::default(), Instant::now());
        let (mut policy, local, remote) = two(&mut stack, begun);
        assert!(!policy.shut(&mut stack, local, "192.0.2.9:7".parse().unwrap(), begun), "there is no such path");
        assert!(policy.shut(&mut stack, local, remote, begun));
        for step in 0..2_000 {
            let now = begun + STEP * step;
            policy.look(&mut stack, now);
            for pair in policy.questions(now) {
                policy.on_answer(pair.local.local(), pair.remote, Ok(()));
            }
        }
        assert!(stack.opened.iter().all(|(_, from, _)| *from != local), "{:?}", stack.opened);
        assert!(!policy.shut(&mut stack, local, remote, begun), "it is closed already");
    }

    #[test]
    fn a_path_is_kept_back_until_that_is_taken_back() {
        let (mut stack, begun) = (Stack::default(), Instant::now());
        let (mut policy, local, remote) = two(&mut stack, begun);
        assert!(policy.keep_back(&mut stack, local, remote, true, begun));
        (0..20).for_each(|step| policy.look(&mut stack, begun + STEP * step));
        assert_eq!(stack.backups, [(PathId::ZERO, true)]);
        assert!(policy.keep_back(&mut stack, local, remote, false, begun + STEP * 20));
        assert_eq!(stack.backups, [(PathId::ZERO, true), (PathId::ZERO, false)]);
    }

    /// Nothing ever comes in on the stack of these tests. A path of Fairpath gets another beside it then.
    #[test]
    fn a_peer_that_is_not_fairpath_may_be_silent_on_a_path() {
        for (application, paths_more) in [(Application::Fairpath, 1), (Application::Other(b"other"), 0)] {
            let (mut stack, begun) = (Stack::default(), Instant::now());
            let (policy, local, _) = two(&mut stack, begun);
            let mut policy = policy.speaking(application);
            (0..200).for_each(|step| policy.look(&mut stack, begun + STEP * step));
            let more = stack.opened.iter().filter(|(_, from, _)| *from == local).count();
            assert_eq!(more, paths_more, "{application:?}");
        }
    }
}
