//! The part of the policy that finds out which pairs of addresses a path can be opened on.
//!
//! [`Candidates`] knows which pairs should have a path. A pair that waits for its path too long puts its
//! interface in doubt; then everything is asked that the interface could reach, and where another address
//! answers, the path is opened there instead.
//!
//! A path that is closed before the peer ever saw it uses up for good one of the path ids that the peer
//! allows. noq confirms the end of a path, and allows another, only if it knows the path. So a path
//! that is being opened is given up only for a pair that has answered, and only while ids are left.
//! Otherwise it stays, and noq repeats its challenge at most two seconds apart.

use std::net::{IpAddr, SocketAddr};
use web_time::{Duration, Instant};

use fairpath_engine::health::PathHealth;

use super::{Paths, Policy};
use crate::interface::Interface;
use crate::pairs::{Candidates, Pair, Tried, WhyNot, in_vain};
use crate::paths::notice::PathNotice;
use crate::paths::slot::Slot;
use crate::transport::PATHS_MAX;

/// A pair whose path is not there after this long puts its interface in doubt: three challenges may be
/// lost until then where the round-trip time is not known yet [RFC9002 §6.2.2].
const DOUBT_AFTER: Duration = Duration::from_secs(2);

/// A path that is not validated by then, although something answers there, never will be.
const DESPAIR_AFTER: Duration = Duration::from_secs(8);

/// The most addresses that are tried in the life of a connection because datagrams came from them. Anybody may copy a datagram
/// and send it from elsewhere, and each address may cost a path id.
const HEARD_MAX: usize = 4;

/// The pairs of addresses that could reach the peer, and what was learnt of them.
#[derive(Debug)]
pub(super) struct Ways {
    pub(super) candidates: Candidates,
    /// The plan and the tried pairs, both as of `revision` of the candidates.
    plan: Vec<Pair>,
    tried: Vec<Tried>,
    revision: Option<u64>,
    /// Paths that were closed before the peer can have seen them.
    wasted: usize,
    /// Addresses here that were reported to lead nowhere.
    told: Vec<IpAddr>,
    /// Whether no path answers: the peer may have moved.
    pub(super) is_lost: bool,
    /// How many addresses only the source of a datagram named.
    heard: usize,
}

impl Ways {
    pub(super) fn new(candidates: Candidates) -> Self {
        let (plan, tried, told) = (Vec::new(), Vec::new(), Vec::new());
        Self { candidates, plan, tried, revision: None, wasted: 0, told, is_lost: false, heard: 0 }
    }

    fn refresh(&mut self) {
        if self.revision != Some(self.candidates.revision()) {
            self.plan = self.candidates.plan();
            self.tried = self.candidates.tried();
            self.revision = Some(self.candidates.revision());
        }
    }

    /// A path on the pair was validated.
    pub(super) fn succeeded(&mut self, local: IpAddr, remote: SocketAddr) {
        self.candidates.succeeded(local, remote);
        self.told.retain(|told| *told != local);
    }
}

impl Policy {
    /// The pairs to ask now.
    pub(crate) fn questions(&mut self, now: Instant) -> Vec<Pair> {
        self.ways.refresh();
        self.ways.candidates.questions(&self.ways.plan, now)
    }

    /// Takes in the answer of a probe between these addresses.
    pub(crate) fn on_answer(&mut self, local: IpAddr, remote: SocketAddr, answer: Result<(), WhyNot>) {
        let is_open = self.slots.iter().any(|slot| slot.is_pair(local, remote) && slot.is_open());
        match answer {
            Ok(()) => self.ways.candidates.answered(local, remote),
            // A path that is open knows better.
            Err(_) if is_open => self.ways.candidates.answered(local, remote),
            Err(why) => self.ways.candidates.failed(local, remote, why),
        }
    }

    /// The interfaces there are now.
    pub(crate) fn on_interfaces(&mut self, found: &[Interface], now: Instant) {
        self.ways.candidates.set_locals(found, now);
    }

    /// The peer says at which addresses it is reached now. A pair with another that does not answer is given up.
    pub(crate) fn on_peer_addresses(&mut self, addresses: &[SocketAddr]) {
        for address in addresses {
            self.ways.candidates.add_remote(*address);
        }
        let stale = self.slots.iter().filter(|slot| !slot.answers() && !addresses.contains(&slot.remote()));
        for slot in stale {
            self.ways.candidates.failed(slot.local(), slot.remote(), WhyNot::Silent);
        }
    }

    /// A datagram of the connection came from this address. While no path answers, it may be that the peer has another one
    /// now, so that is tried; a path there opens only where the peer has the keys.
    pub(crate) fn on_source(&mut self, remote: SocketAddr) {
        let is_hint = self.ways.is_lost && self.ways.heard < HEARD_MAX;
        if is_hint && self.ways.candidates.add_remote(remote) {
            self.ways.heard += 1;
            tracing::debug!(%remote, "the peer may be here now");
        }
    }

    /// The addresses at which the peer may be reached.
    pub(crate) fn peer_addresses(&self) -> &[SocketAddr] {
        self.ways.candidates.remotes()
    }

    /// The pairs of addresses that were tried, with their outcomes.
    pub(crate) fn tried(&self) -> &[Tried] {
        &self.ways.tried
    }

    /// Chooses the pairs that are to have a path.
    pub(super) fn find_ways(&mut self, paths: &mut dyn Paths, now: Instant) {
        let at = self.engine.at(now);
        for slot in self.slots.iter().filter(|slot| slot.is_wanted) {
            let Some(waits) = slot.health.waits_for(at) else { continue };
            let candidates = &mut self.ways.candidates;
            if waits > DESPAIR_AFTER && slot.id().is_some() && candidates.answers(slot.local(), slot.remote()) {
                candidates.failed(slot.local(), slot.remote(), WhyNot::NoPath);
            }
            if waits > DOUBT_AFTER {
                candidates.doubt(slot.local(), now);
            }
        }
        self.ways.refresh();
        let plan = std::mem::take(&mut self.ways.plan);
        for slot in &mut self.slots {
            slot.is_wanted = plan.iter().any(|pair| slot.is_pair(pair.local.local(), pair.remote));
        }
        for index in 0..self.slots.len() {
            self.give_up(paths, index, &plan, now);
        }
        self.slots.retain(|slot| slot.is_wanted || slot.was_ever_opened() || slot.id().is_some());
        for pair in &plan {
            let known = self.slots.iter().any(|slot| slot.is_pair(pair.local.local(), pair.remote));
            if !known && self.ids_spare() > 0 {
                self.slots.push(Slot::of_pair(pair, PathHealth::new(&self.health, at)));
            }
        }
        self.ways.plan = plan;
        self.tell_of_interfaces_without_a_way();
    }

    /// Gives up a path that is being opened where another pair of its interface has answered.
    fn give_up(&mut self, paths: &mut dyn Paths, at: usize, plan: &[Pair], now: Instant) {
        let slot = &self.slots[at];
        let Some(id) = slot.id().filter(|_| !slot.is_wanted && !slot.is_open()) else { return };
        let candidates = &self.ways.candidates;
        let instead = candidates.alternatives(slot.local());
        let better = |pair: &&Pair| {
            let (local, remote) = (pair.local.local(), pair.remote);
            let is_open = self.slots.iter().any(|other| other.is_pair(local, remote) && other.is_open());
            instead.contains(&local) && candidates.answers(local, remote) && !is_open
        };
        if plan.iter().find(better).is_some() && self.ids_spare() > 0 && paths.close(id) {
            self.ways.wasted += 1;
            let time = self.engine.at(now);
            self.slots[at].closed(time);
            self.ways.candidates.closed(self.slots[at].local(), self.slots[at].remote());
        }
    }

    /// How many path ids are neither in use, nor wanted, nor wasted.
    pub(super) fn ids_spare(&self) -> usize {
        let used = self.slots.iter().filter(|slot| slot.is_wanted || slot.id().is_some());
        let used: usize = used.map(|slot| 1 + usize::from(slot.spare.is_some())).sum();
        (PATHS_MAX as usize).saturating_sub(used + self.ways.wasted)
    }

    /// An interface that was left without a path is worth a word, once.
    fn tell_of_interfaces_without_a_way(&mut self) {
        for slot in &self.slots {
            let local = slot.local();
            let of_start = self.ways.candidates.alternatives(local);
            let of_start = |other: &IpAddr| of_start.contains(other);
            let has_path = self.slots.iter().any(|other| of_start(&other.local()) && other.was_ever_opened());
            if has_path || self.ways.told.iter().any(of_start) || !self.ways.candidates.is_exhausted(local) {
                continue;
            }
            self.ways.told.push(local);
            let own: Vec<Tried> = self.ways.tried.iter().filter(|one| of_start(&one.local)).cloned().collect();
            self.notices.push(PathNotice::no_way(slot.name(), in_vain(&own)));
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use fairpath_engine::{EngineConfig, PathId as EnginePath};
    use noq_proto::{FourTuple, PathError, PathId, PathStats};
    use proptest::prelude::*;

    use super::*;
    use crate::adapter::ConnectionEngine;
    use crate::address::unmapped;

    /// A stack on which paths are opened, and none is validated by itself.
    #[derive(Default)]
    pub(in crate::paths) struct Stack {
        pub(in crate::paths) opened: Vec<(PathId, IpAddr, SocketAddr)>,
        closed: Vec<PathId>,
        /// The paths that the peer opened.
        pub(in crate::paths) accepted: Vec<(PathId, FourTuple)>,
        /// The paths that were made backups, or no longer are, in this order.
        pub(in crate::paths) backups: Vec<(PathId, bool)>,
    }

    impl Stack {
        /// The paths that are being opened.
        fn opening(&self) -> Vec<String> {
            let open = self.opened.iter().filter(|(id, ..)| !self.closed.contains(id));
            open.map(|(_, local, remote)| format!("{local}>{}", remote.ip())).collect()
        }
    }

    impl Paths for Stack {
        fn has_flows(&self) -> bool {
            false
        }

        fn stats(&mut self, _: PathId) -> Option<PathStats> {
            None
        }

        fn ids(&mut self) -> Vec<PathId> {
            self.opened.iter().map(|(id, ..)| *id).chain(self.accepted.iter().map(|(id, _)| *id)).collect()
        }

        fn network_path(&mut self, id: PathId) -> Option<FourTuple> {
            self.accepted.iter().find(|(accepted, _)| *accepted == id).map(|(_, way)| *way)
        }

        fn engine_path(&mut self, _: PathId) -> Option<EnginePath> {
            None
        }

        fn arrived_at(&self, _: PathId) -> Option<Instant> {
            None
        }

        fn ping(&mut self, _: PathId) {}

        fn resend(&mut self, _: EnginePath) {}

        fn set_backup(&mut self, id: PathId, backup: bool) {
            self.backups.push((id, backup));
        }

        fn close_with(&mut self, id: PathId, _: u32) -> bool {
            self.closed.push(id);
            true
        }

        fn open(&mut self, network_path: FourTuple, _backup: bool) -> Result<PathId, PathError> {
            let id = PathId::from(self.opened.len() as u32 + 1);
            let local = network_path.local_ip().expect("every path is given its address here");
            self.opened.push((id, local, unmapped(network_path.remote())));
            Ok(id)
        }

        fn interface(&self, local: Option<IpAddr>) -> Option<(String, IpAddr)> {
            Some(("here".into(), local?))
        }
    }

    pub(in crate::paths) fn local(name: &str, address: &str) -> Interface {
        Interface { name: name.into(), address: address.parse().unwrap(), twin: 0, prefix_bits: 24, unusable: None }
    }

    pub(in crate::paths) fn policy(
        locals: &[Interface],
        remotes: &[SocketAddr],
        stack: &mut Stack,
        now: Instant,
    ) -> Policy {
        let engine = EngineConfig::default().build().map(ConnectionEngine::new).unwrap();
        let first = Pair { local: locals[0].clone(), remote: remotes[0] };
        Policy::opener(engine, Candidates::new(locals, remotes, PATHS_MAX as usize), &first, stack, now)
    }

    pub(in crate::paths) fn peer(addresses: &[&str]) -> Vec<SocketAddr> {
        addresses.iter().map(|address| SocketAddr::new(address.parse().unwrap(), 7)).collect()
    }

    pub(in crate::paths) const STEP: Duration = Duration::from_millis(50);

    #[test]
    fn a_path_that_does_not_open_gives_way_to_one_that_answers() {
        let locals = [local("a", "10.0.1.1"), local("b", "10.0.2.1")];
        let remotes = peer(&["10.0.1.2", "10.0.9.2"]);
        let (mut stack, begun) = (Stack::default(), Instant::now());
        let mut policy = policy(&locals, &remotes, &mut stack, begun);
        assert_eq!(stack.opening(), ["10.0.2.1>10.0.1.2", "10.0.1.1>10.0.9.2"], "the first guess");
        for step in 0..60 {
            let now = begun + STEP * step;
            policy.look(&mut stack, now);
            for pair in policy.questions(now) {
                assert!(now - begun > DOUBT_AFTER, "{pair:?} was asked too soon");
                // Each interface reaches one of the two.
                let is_reached = (pair.local.name == "a") == (pair.remote == remotes[0]);
                let answer = if is_reached { Ok(()) } else { Err(WhyNot::Silent) };
                policy.on_answer(pair.local.local(), pair.remote, answer);
            }
        }
        assert!(stack.opening().contains(&"10.0.2.1>10.0.9.2".to_owned()), "{:?}", stack.opening());
        assert!(!stack.opening().contains(&"10.0.2.1>10.0.1.2".to_owned()), "{:?}", stack.opening());
    }

    #[test]
    fn an_interface_without_a_way_is_told_once() {
        let locals = [local("a", "10.0.1.1"), local("b", "10.0.2.1")];
        let remotes = peer(&["10.0.1.2"]);
        let (mut stack, begun) = (Stack::default(), Instant::now());
        let mut policy = policy(&locals, &remotes, &mut stack, begun);
        let mut notices = Vec::new();
        for step in 0..2_000 {
            let now = begun + STEP * step;
            policy.look(&mut stack, now);
            for pair in policy.questions(now) {
                policy.on_answer(pair.local.local(), pair.remote, Err(WhyNot::NoRoute));
            }
            notices.extend(policy.take_notices().iter().map(ToString::to_string));
        }
        assert_eq!(notices, ["b: no way to the peer: 10.0.1.2:7 (no route)"]);
        // The first path, on which nothing ever comes here, has a second one beside it.
        assert_eq!(stack.opening(), ["10.0.2.1>10.0.1.2", "10.0.1.1>10.0.1.2"], "and yet it is not given up");
    }

    #[test]
    fn datagrams_from_elsewhere_name_few_addresses_and_only_while_no_path_answers() {
        let locals = [local("a", "10.0.1.1")];
        let remotes = peer(&["10.0.1.2"]);
        let (mut stack, begun) = (Stack::default(), Instant::now());
        let mut policy = policy(&locals, &remotes, &mut stack, begun);
        let elsewhere: Vec<SocketAddr> = (1..20).flat_map(|at| peer(&[&format!("192.0.2.{at}")])).collect();
        elsewhere.iter().for_each(|remote| policy.on_source(*remote));
        assert_eq!(policy.peer_addresses(), remotes, "a path answers");
        // Nothing ever comes in on this stack.
        (0..200).for_each(|step| policy.look(&mut stack, begun + STEP * step));
        elsewhere.iter().for_each(|remote| policy.on_source(*remote));
        assert_eq!(policy.peer_addresses(), [&remotes[..], &elsewhere[..HEARD_MAX]].concat());
        // The peer's own word is worth more.
        policy.on_peer_addresses(&elsewhere[10..12]);
        assert_eq!(policy.peer_addresses().len(), 1 + HEARD_MAX + 2);
    }

    proptest! {
        /// Whatever is answered, and however often that changes: tries never use up the path ids.
        #[test]
        fn tries_never_use_up_the_path_ids(
            starts in 1..5_u8,
            addresses in 1..6_u8,
            answers in prop::collection::vec(prop_oneof![
                Just(Ok(())), Just(Err(WhyNot::Silent)), Just(Err(WhyNot::Refused))
            ], 1..40),
        ) {
            let locals: Vec<_> = (1..=starts).map(|at| local(&format!("if{at}"), &format!("10.0.{at}.1"))).collect();
            let remotes: Vec<_> = (1..=addresses).flat_map(|at| peer(&[&format!("192.0.2.{at}")])).collect();
            let (mut stack, begun) = (Stack::default(), Instant::now());
            let mut policy = policy(&locals, &remotes, &mut stack, begun);
            let mut answers = answers.iter().cycle();
            for step in 0..2_000 {
                let now = begun + STEP * step;
                policy.look(&mut stack, now);
                for pair in policy.questions(now) {
                    let answer = answers.next().expect("they begin again");
                    policy.on_answer(pair.local.local(), pair.remote, *answer);
                }
            }
            // The path of the handshake has an id too.
            prop_assert!(stack.opened.len() < PATHS_MAX as usize, "{:?}", stack.opened);
        }
    }
}
