//! The part of the policy that finds out which pairs of addresses a path can be opened on.
//!
//! [`Candidates`] knows which pairs should have a path. A pair that waits for its path too long puts its
//! interface in doubt; then everything is asked that the interface could reach, and where another address
//! answers, the path is opened there instead.
//!
//! A path that is closed before the peer ever saw it uses up one of the path ids that the peer allows, for
//! good: noq answers the end of a path, and allows another, only where it knows the path. So a path that
//! is being opened is given up only for a pair that has answered, and only while there are ids to spare;
//! else it stays, and noq asks for its validation again and again, at most two seconds apart.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use super::notice::PathNotice;
use super::policy::{Paths, Policy};
use super::slot::Slot;
use crate::interfaces::Interface;
use crate::pairs::{Candidates, Pair, Tried, WhyNot, in_vain};
use crate::transport::PATHS_MAX;

/// A pair whose path is not there after this long puts its interface in doubt: three challenges may be
/// lost until then where the round-trip time is not known yet [RFC9002 §6.2.2].
const DOUBT_AFTER: Duration = Duration::from_secs(2);

/// A path that is not validated by then, although something answers there, never will be.
const DESPAIR_AFTER: Duration = Duration::from_secs(8);

/// What is known of the ways to the peer.
#[derive(Debug)]
pub(super) struct Ways {
    pub(super) candidates: Candidates,
    /// What is planned and was tried, and the revision of the candidates that it is of.
    plan: Vec<Pair>,
    tried: Vec<Tried>,
    revision: Option<u64>,
    /// Paths that were closed before the peer can have seen them.
    wasted: usize,
    /// The addresses here of which it was said that they lead nowhere.
    told: Vec<IpAddr>,
}

impl Ways {
    pub(super) fn new(candidates: Candidates) -> Self {
        let (plan, tried, told) = (Vec::new(), Vec::new(), Vec::new());
        Self { candidates, plan, tried, revision: None, wasted: 0, told }
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

    /// What came of asking there.
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

    /// What was tried to reach the peer.
    pub(crate) fn tried(&self) -> &[Tried] {
        &self.ways.tried
    }

    /// Chooses the pairs that are to have a path.
    pub(super) fn find_ways(&mut self, paths: &mut dyn Paths, now: Instant) {
        for slot in self.slots.iter().filter(|slot| slot.is_wanted) {
            let Some(waits) = slot.waits_for(now) else { continue };
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
            slot.is_wanted = plan.iter().any(|pair| slot.is_pair(pair.local.address, pair.remote));
        }
        for at in 0..self.slots.len() {
            self.give_up(paths, at, &plan, now);
        }
        self.slots.retain(|slot| slot.is_wanted || slot.was_ever_opened() || slot.id().is_some());
        for pair in &plan {
            let known = self.slots.iter().any(|slot| slot.is_pair(pair.local.address, pair.remote));
            if !known && self.ids_spare() > 0 {
                self.slots.push(Slot::of_pair(pair, now));
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
            let (local, remote) = (pair.local.address, pair.remote);
            let is_open = self.slots.iter().any(|other| other.is_pair(local, remote) && other.is_open());
            instead.contains(&local) && candidates.answers(local, remote) && !is_open
        };
        if plan.iter().find(better).is_some() && self.ids_spare() > 0 && paths.close(id) {
            self.ways.wasted += 1;
            self.slots[at].closed(now);
            self.ways.candidates.closed(self.slots[at].local(), self.slots[at].remote());
        }
    }

    /// How many path ids are neither in use, nor wanted, nor wasted.
    fn ids_spare(&self) -> usize {
        let used = self.slots.iter().filter(|slot| slot.is_wanted || slot.id().is_some()).count();
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
            self.notices.push(PathNotice::no_way(slot, in_vain(&own)));
        }
    }
}
