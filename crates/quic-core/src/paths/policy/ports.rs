//! The part of the policy that tries other ports of the peer's host.
//!
//! A firewall may drop what goes to a port, and a provider may throttle it: the link is well, and its path is not. The plan
//! gives each interface one path, and each port one ([`Candidates`](crate::pairs::Candidates)). So where a path of an
//! interface does not answer, or is much slower than the fastest, another port of the same host is tried from there, and
//! the faster of the two stays. Both would cost more than one: they fill the queue of one link twice.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use web_time::Instant;

use fairpath_engine::{Bitrate, ByteCount, Timestamp};

use super::{Paths, Policy};
use crate::paths::slot::Slot;

/// A path is slow whose rate is below this share of the fastest one's: links of one user seldom differ by as much.
const SLOW: f64 = 0.25;

/// No path is slow where the fastest is below this: it may be that there is no more to carry.
const FAST_MIN: Bitrate = Bitrate::from_mbps(4);

/// A path has to be slow for this long. Slow start is over by then, and an outage that a path survives too.
const SLOW_FOR: Duration = Duration::from_secs(3);

/// How long two ports are compared. Only the second half counts: by then the new path's window has
/// grown.
const COMPARED: Duration = Duration::from_secs(4);

/// How much faster another port is to be. Two paths that share a link carry the same on average.
const WORTH: f64 = 2.0;

/// The first wait before a slow path is compared with another port again; it doubles up to [`AGAIN_MAX`].
const AGAIN: Duration = Duration::from_secs(60);

/// The longest wait before a slow path is compared again.
const AGAIN_MAX: Duration = Duration::from_secs(3600);

/// The ports that are tried, and when others may be.
#[derive(Debug, Default)]
pub(super) struct Ports {
    trials: Vec<Trial>,
    slow: Vec<Slow>,
}

/// A path to another port beside one of the plan.
#[derive(Clone, Copy, Debug)]
struct Trial {
    local: IpAddr,
    /// The address that the plan has a path to.
    planned: SocketAddr,
    /// The address that is tried.
    other: SocketAddr,
    /// Since when both paths have answered.
    both_since: Option<Timestamp>,
    /// The bytes of the planned one and of the other when the first half of the time was over. Over a second or less two
    /// paths of one link differ by more than [`WORTH`].
    half_way: Option<[ByteCount; 2]>,
}

/// A path that is slow, or was when it was looked at last.
#[derive(Clone, Copy, Debug)]
struct Slow {
    local: IpAddr,
    remote: SocketAddr,
    since: Option<Timestamp>,
    not_before: Timestamp,
    wait: Duration,
}

impl Policy {
    /// Begins and ends trials of other ports.
    pub(super) fn try_ports(&mut self, paths: &mut dyn Paths, now: Instant) {
        let at = self.engine.at(now);
        self.end_trials(paths, now);
        if !self.slots.iter().any(Slot::answers) {
            // The ids that are left are for the paths that there were.
            return;
        }
        let fastest = self.slots.iter().filter(|slot| slot.answers()).map(rate).max().unwrap_or_default();
        for index in 0..self.slots.len() {
            let slot = &self.slots[index];
            let (local, remote) = (slot.local(), slot.remote());
            if !slot.is_wanted || !slot.was_ever_opened() || self.is_served(index) {
                continue;
            }
            let is_dark = match slot.is_open() {
                true => !slot.answers(),
                false => slot.health.waits_for(at).is_some(),
            };
            let is_slow = slot.answers() && fastest >= FAST_MIN && rate(slot) < fastest.scaled(SLOW);
            if (is_dark || self.ports.is_slow_for_long((local, remote), is_slow, at))
                && self.ids_spare() > 0
                && let Some(pair) = self.ways.candidates.other_port(local, remote)
            {
                self.ports.trials.push(Trial {
                    local,
                    planned: remote,
                    other: pair.remote,
                    both_since: None,
                    half_way: None,
                });
                self.ways.candidates.want_beside(pair);
            }
        }
    }

    /// Whether another path of the same interface to the same host answers, or is being tried.
    fn is_served(&self, index: usize) -> bool {
        let slot = &self.slots[index];
        let is_same = |local, ip| local == slot.local() && ip == slot.remote().ip();
        let mut others = self.slots.iter().enumerate().filter(|(other, _)| *other != index);
        others.any(|(_, other)| other.answers() && is_same(other.local(), other.remote().ip()))
            || self.ports.trials.iter().any(|trial| is_same(trial.local, trial.other.ip()))
    }

    /// Ends the trials that were long enough. A port that is no better than the planned one is left, and otherwise the
    /// planned one is.
    fn end_trials(&mut self, paths: &mut dyn Paths, now: Instant) {
        let at = self.engine.at(now);
        for mut trial in std::mem::take(&mut self.ports.trials) {
            if !self.ways.candidates.is_beside(trial.local, trial.other) {
                // The interface was gone for a while.
                continue;
            }
            let answering =
                |remote| self.slots.iter().position(|slot| slot.is_pair(trial.local, remote) && slot.answers());
            let (Some(planned), Some(other)) = (answering(trial.planned), answering(trial.other)) else {
                (trial.both_since, trial.half_way) = (None, None);
                self.ports.trials.push(trial);
                continue;
            };
            let since = *trial.both_since.get_or_insert(at);
            let carried = [planned, other].map(|index| self.slots[index].carried());
            if at.since(since) < COMPARED {
                if at.since(since) >= COMPARED / 2 {
                    trial.half_way.get_or_insert(carried);
                }
                self.ports.trials.push(trial);
                continue;
            }
            let before = trial.half_way.unwrap_or_default();
            let [by_planned, by_other] = [0, 1].map(|one| carried[one].saturating_sub(before[one]).as_f64());
            let left = if by_other > WORTH * by_planned { planned } else { other };
            self.leave_port(paths, left, now);
        }
    }

    /// Closes a path beside which another leads to the same host, unless the plan has it for its port.
    fn leave_port(&mut self, paths: &mut dyn Paths, index: usize, now: Instant) {
        let (local, remote) = (self.slots[index].local(), self.slots[index].remote());
        self.ways.candidates.forget_beside(local, remote);
        let plan = self.ways.candidates.plan();
        match plan.iter().any(|pair| self.slots[index].is_pair(pair.local.local(), pair.remote)) {
            true => self.ways.succeeded(local, remote),
            false => self.close(paths, index, "another port of the same host does as well", now),
        }
    }
}

impl Ports {
    /// Whether a path has been slow long enough to try another port now.
    fn is_slow_for_long(&mut self, (local, remote): (IpAddr, SocketAddr), is_slow: bool, now: Timestamp) -> bool {
        let place = self.slow.iter().position(|slow| (slow.local, slow.remote) == (local, remote));
        let place = place.unwrap_or_else(|| {
            self.slow.push(Slow { local, remote, since: None, not_before: now, wait: AGAIN });
            self.slow.len() - 1
        });
        let slow = &mut self.slow[place];
        if !is_slow {
            slow.since = None;
            return false;
        }
        let since = *slow.since.get_or_insert(now);
        if now.since(since) < SLOW_FOR || now < slow.not_before {
            return false;
        }
        (slow.since, slow.not_before) = (None, now + slow.wait);
        slow.wait = (2 * slow.wait).min(AGAIN_MAX);
        true
    }
}

/// The rate of a path, in the direction in which it carries more.
fn rate(slot: &Slot) -> Bitrate {
    let (sent, received) = slot.rates();
    sent.max(received)
}
