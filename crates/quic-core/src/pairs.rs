//! The choice of pairs: one path for each pair of a local address and an address of the peer.
//!
//! A ticket names every address of the peer, and nobody can say beforehand which of them an
//! interface reaches: that of a bridge of containers looks like any other. So the results of
//! earlier attempts decide which paths to open. [`Candidates`] keeps them, and has neither sockets
//! nor a clock of its own.

mod tried;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use web_time::{Duration, Instant};

use crate::address::{is_link_local, scope};
use crate::interface::Interface;

pub use tried::in_vain;
pub use tried::{Outcome, Tried, WhyNot};

/// The first wait before the addresses of an interface without a path are asked again; it doubles up
/// to [`ASK_AGAIN_MAX`].
const ASK_AGAIN: Duration = Duration::from_secs(4);

/// The longest wait before they are asked again: a link that comes back is found within this time.
const ASK_AGAIN_MAX: Duration = Duration::from_secs(30);

/// The most addresses of the peer that are known: those of a ticket, and as many that it tells of later.
const REMOTES_MAX: usize = 64;

/// Where a path begins and ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The interface it leaves through.
    pub local: Interface,
    /// The peer's address.
    pub remote: SocketAddr,
}

impl Pair {
    fn key(&self) -> Key {
        (self.local.local(), self.remote)
    }
}

type Key = (IpAddr, SocketAddr);

/// The state of a pair.
#[derive(Clone, Debug, Default)]
struct Known {
    /// Something answered there.
    answers: bool,
    /// A path on it was validated, and nothing spoke against it since.
    works: bool,
    /// A path on it was validated once.
    is_proven: bool,
    /// A path on it is being opened.
    is_opening: bool,
    /// It is being asked.
    is_asked: bool,
    /// Why it was tried in vain, if it did not answer since.
    failed: Option<WhyNot>,
}

/// An interface here or an address of the peer that waits for a path too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Doubted {
    Start(usize),
    Remote(SocketAddr),
}

/// When it is asked again what could be reached from there.
#[derive(Clone, Copy, Debug)]
struct Doubt {
    ask_at: Instant,
    wait: Duration,
}

/// The places where a path can start, and what is known of the ways from there to the peer.
///
/// A *start* is an interface, with its address of either family or both. Every start wants a path, and
/// so does every address of the peer; the larger number decides how many paths there are.
#[derive(Clone, Debug)]
pub struct Candidates {
    starts: Vec<Vec<Interface>>,
    remotes: Vec<SocketAddr>,
    paths_max: usize,
    /// Interfaces or addresses that a connection is made over last.
    spared: Vec<String>,
    prefers_ipv4: bool,
    known: BTreeMap<Key, Known>,
    doubts: BTreeMap<Doubted, Doubt>,
    /// Pairs that are to have a path beside those that are planned anyway.
    beside: Vec<Pair>,
    /// Counts what was learnt.
    revision: u64,
}

impl Candidates {
    /// All plausible pairs of `locals` and `remotes`, nothing known of any. `paths_max` bounds the plan.
    pub fn new(locals: &[Interface], remotes: &[SocketAddr], paths_max: usize) -> Self {
        let mut seen = BTreeSet::new();
        let remotes = remotes.iter().copied().filter(|remote| seen.insert(*remote)).collect();
        let (starts, known, doubts) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        let (spared, beside) = (Vec::new(), Vec::new());
        let mut candidates =
            Self { starts, remotes, paths_max, spared, prefers_ipv4: true, known, doubts, beside, revision: 0 };
        candidates.change_locals(locals);
        candidates
    }

    /// The same, with a connection made over these interfaces or addresses only where none of the others gives one: the
    /// peer's acknowledgements ride on its first path.
    pub fn sparing(self, spared: Vec<String>) -> Self {
        Self { spared, ..self }
    }

    /// Whether a connection is made from there last.
    pub fn is_spared(&self, local: &Interface) -> bool {
        self.spared.iter().any(|name| *name == local.name || *name == local.address.to_string())
    }

    /// The candidates of an end that opens no paths.
    pub fn none() -> Self {
        Self::new(&[], &[], 0)
    }

    /// The interfaces there are now. What was known of an address that is gone is forgotten: when it comes
    /// back, it may be in another network. Where a new one has a choice, it is to be asked.
    pub fn set_locals(&mut self, locals: &[Interface], now: Instant) {
        let before: BTreeSet<IpAddr> = self.starts.iter().flatten().map(Interface::local).collect();
        if starts(locals) == self.starts {
            return;
        }
        self.change_locals(locals);
        if self.is_choice() {
            let new = locals.iter().filter(|local| !before.contains(&local.local()));
            new.for_each(|local| self.doubt(local.local(), now));
        }
    }

    /// The peer may be reached at this address, too. False where that is known, or too many are.
    pub fn add_remote(&mut self, remote: SocketAddr) -> bool {
        let is_new = !self.remotes.contains(&remote) && self.remotes.len() < REMOTES_MAX;
        if is_new {
            self.remotes.push(remote);
            self.revision += 1;
        }
        is_new
    }

    /// The peer's addresses.
    pub fn remotes(&self) -> &[SocketAddr] {
        &self.remotes
    }

    fn change_locals(&mut self, locals: &[Interface]) {
        self.starts = starts(locals);
        self.revision += 1;
        self.doubts.clear();
        let present: BTreeSet<IpAddr> = locals.iter().map(Interface::local).collect();
        self.known.retain(|(local, _), _| present.contains(local));
        self.beside.retain(|pair| present.contains(&pair.local.local()));
        let reaching = |ipv4: bool| {
            let reaches = |start: &&Vec<Interface>| {
                let of_family = |local: &Interface| local.address.is_ipv4() == ipv4;
                start
                    .iter()
                    .any(|local| of_family(local) && self.remotes.iter().any(|remote| plausible(local, *remote)))
            };
            self.starts.iter().filter(reaches).count()
        };
        self.prefers_ipv4 = reaching(true) >= reaching(false);
    }

    /// Another number than before where something was learnt: the plan may have changed.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The state of a pair, to be changed.
    fn learn(&mut self, local: IpAddr, remote: SocketAddr) -> &mut Known {
        self.revision += 1;
        self.known.entry((local, remote)).or_default()
    }

    /// No pair could ever be a path.
    pub fn is_empty(&self) -> bool {
        (0..self.starts.len()).all(|start| self.of_start(start).next().is_none())
    }

    /// Whether there are more pairs than paths to open, so that it has to be found out which are right.
    pub fn is_choice(&self) -> bool {
        self.all().count() > self.plan().len()
    }

    /// Every plausible pair.
    pub fn all(&self) -> impl Iterator<Item = Pair> {
        (0..self.starts.len()).flat_map(|start| self.of_start(start))
    }

    /// The pairs that should have a path, as far as is known: one for each start, then one more for each
    /// address of the peer that has none, unless it failed from everywhere. Pairs that work stay.
    pub fn plan(&self) -> Vec<Pair> {
        let mut plan: Vec<Pair> = self.all().filter(|pair| self.known(pair).works).collect();
        let mut chosen: BTreeMap<usize, bool> = BTreeMap::new();
        for start in 0..self.starts.len() {
            let own = plan.iter().find(|pair| self.starts[start].contains(&pair.local)).map(|pair| pair.remote);
            let remote = own.or_else(|| {
                let best = self.of_start(start).min_by_key(|pair| self.rank(pair, &plan))?;
                plan.push(best.clone());
                Some(best.remote)
            });
            if let Some(remote) = remote {
                chosen.insert(start, remote.is_ipv4());
            }
        }
        for remote in &self.remotes {
            // An interface with addresses of both families uses one of them.
            let same_family = chosen.iter().filter(|(_, ipv4)| **ipv4 == remote.is_ipv4());
            let eligible =
                same_family.flat_map(|(start, _)| self.of_start(*start)).filter(|pair| pair.remote == *remote);
            // A pair that worked once may come back. One that never did and failed is opened when it answers.
            let hopeful = eligible.filter(|pair| self.known(pair).failed.is_none() || self.known(pair).is_proven);
            if !plan.iter().any(|pair| pair.remote == *remote)
                && let Some(best) = hopeful.min_by_key(|pair| self.rank(pair, &plan))
            {
                plan.push(best);
            }
        }
        for pair in &self.beside {
            if !plan.contains(pair) {
                plan.push(pair.clone());
            }
        }
        plan.truncate(self.paths_max);
        plan
    }

    /// The pair from the same address here to another port of the same host that is likeliest to work, of those that are
    /// not planned.
    pub fn other_port(&self, local: IpAddr, remote: SocketAddr) -> Option<Pair> {
        let plan = self.plan();
        let is_other = |pair: &Pair| {
            let is_here = pair.local.local() == local && pair.remote.ip() == remote.ip();
            is_here && pair.remote != remote && !plan.contains(pair) && self.known(pair).failed.is_none()
        };
        self.all().filter(is_other).min_by_key(|pair| self.rank(pair, &plan))
    }

    /// The pair is to have a path, whatever else is planned.
    pub fn want_beside(&mut self, pair: Pair) {
        self.revision += 1;
        self.beside.push(pair);
    }

    /// Whether the pair is to have a path whatever else is planned.
    pub fn is_beside(&self, local: IpAddr, remote: SocketAddr) -> bool {
        self.beside.iter().any(|pair| pair.key() == (local, remote))
    }

    /// The pair is not to have a path beside others any more. It counts as one that is not known to work, so that
    /// the plan leaves it out.
    pub fn forget_beside(&mut self, local: IpAddr, remote: SocketAddr) {
        self.beside.retain(|pair| pair.key() != (local, remote));
        self.learn(local, remote).works = false;
    }

    /// The pair to make the connection on, after those in `begun`: likely ones first, and no start or
    /// address twice before the others. Those that surely lead nowhere are left out.
    pub fn next(&self, begun: &[Pair]) -> Option<Pair> {
        let is_ruled_out = |pair: &Pair| self.known(pair).failed.is_some_and(WhyNot::is_certain);
        let left = self.all().filter(|pair| !begun.contains(pair) && !is_ruled_out(pair));
        left.min_by_key(|pair| {
            let from_here = begun.iter().filter(|other| other.local == pair.local).count();
            let known = self.known(pair);
            (self.is_spared(&pair.local), !known.answers, known.failed, from_here, self.rank(pair, begun))
        })
    }

    /// Something answered at the other end of the pair. Where somebody else was found there, that says
    /// nothing.
    pub fn answered(&mut self, local: IpAddr, remote: SocketAddr) {
        let known = self.learn(local, remote);
        known.is_asked = false;
        if !known.failed.is_some_and(WhyNot::outlasts_an_answer) {
            (known.answers, known.failed) = (true, None);
        }
    }

    /// A path on the pair is being opened: it stays in the plan unless another pair of the start is known
    /// to be better.
    pub fn opening(&mut self, local: IpAddr, remote: SocketAddr) {
        self.learn(local, remote).is_opening = true;
    }

    /// A path on the pair is not being opened any more.
    pub fn closed(&mut self, local: IpAddr, remote: SocketAddr) {
        self.learn(local, remote).is_opening = false;
    }

    /// A path on the pair was validated.
    pub fn succeeded(&mut self, local: IpAddr, remote: SocketAddr) {
        let known = Known { answers: true, works: true, is_proven: true, ..Known::default() };
        *self.learn(local, remote) = known;
        if let Some(start) = self.start_of(local) {
            self.doubts.remove(&Doubted::Start(start));
        }
        self.doubts.remove(&Doubted::Remote(remote));
    }

    /// The pair was tried in vain.
    pub fn failed(&mut self, local: IpAddr, remote: SocketAddr, why: WhyNot) {
        let known = self.learn(local, remote);
        let Known { is_proven, is_opening, failed, .. } = *known;
        // Silence says less than what was found out.
        let why = match failed {
            Some(WhyNot::TooSmall) if why == WhyNot::Silent => WhyNot::TooSmall,
            _ => why,
        };
        *known = Known { is_proven, is_opening, failed: Some(why), ..Known::default() };
    }

    /// The interface with this address has waited for its path too long: all that it could reach is to be
    /// asked, now and from time to time until a path is there.
    pub fn doubt(&mut self, local: IpAddr, now: Instant) {
        if let Some(start) = self.start_of(local) {
            self.doubts.entry(Doubted::Start(start)).or_insert(Doubt { ask_at: now, wait: ASK_AGAIN });
        }
    }

    /// Every pair, to be asked.
    pub fn ask_all(&mut self) -> Vec<Pair> {
        let all: Vec<Pair> = self.all().collect();
        self.asking(all)
    }

    /// Those of `pairs` of which nothing is known yet, to be asked.
    pub fn ask_unknown(&mut self, pairs: Vec<Pair>) -> Vec<Pair> {
        self.asking(pairs.into_iter().filter(|pair| !self.known.contains_key(&pair.key())).collect())
    }

    fn asking(&mut self, pairs: Vec<Pair>) -> Vec<Pair> {
        for pair in &pairs {
            self.known.entry(pair.key()).or_default().is_asked = true;
            self.revision += 1;
        }
        pairs
    }

    /// Whether the pair is being asked.
    pub fn is_asking(&self, local: IpAddr, remote: SocketAddr) -> bool {
        self.known.get(&(local, remote)).is_some_and(|known| known.is_asked)
    }

    /// The pairs to ask now: those of the interfaces in doubt, and from time to time those of addresses of
    /// the peer that `plan` leaves out because they failed.
    pub fn questions(&mut self, plan: &[Pair], now: Instant) -> Vec<Pair> {
        for remote in &self.remotes {
            let failed = self.known.iter().any(|((_, other), known)| other == remote && known.failed.is_some());
            if failed && !plan.iter().any(|pair| pair.remote == *remote) {
                let doubt = Doubt { ask_at: now + ASK_AGAIN, wait: 2 * ASK_AGAIN };
                self.doubts.entry(Doubted::Remote(*remote)).or_insert(doubt);
            }
        }
        let mut due = Vec::new();
        for (doubted, doubt) in &mut self.doubts {
            if now >= doubt.ask_at {
                due.push(*doubted);
                doubt.ask_at = now + doubt.wait;
                doubt.wait = (2 * doubt.wait).min(ASK_AGAIN_MAX);
            }
        }
        let is_due = |pair: &Pair| {
            let start = self.start_of(pair.local.local());
            due.contains(&Doubted::Remote(pair.remote)) || start.is_some_and(|at| due.contains(&Doubted::Start(at)))
        };
        let pairs = self.all().filter(is_due).collect();
        self.asking(pairs)
    }

    /// Whether something answered there.
    pub fn answers(&self, local: IpAddr, remote: SocketAddr) -> bool {
        self.known.get(&(local, remote)).is_some_and(|known| known.answers)
    }

    /// Whether everything that the interface with this address could reach was tried in vain.
    pub fn is_exhausted(&self, local: IpAddr) -> bool {
        let Some(start) = self.start_of(local) else { return false };
        let mut pairs = self.of_start(start).peekable();
        pairs.peek().is_some() && pairs.all(|pair| self.known(&pair).failed.is_some())
    }

    /// The addresses that stand in for each other at the interface with this one, itself among them.
    pub fn alternatives(&self, local: IpAddr) -> Vec<IpAddr> {
        let start = self.start_of(local).map(|start| &self.starts[start]);
        start.into_iter().flatten().map(Interface::local).collect()
    }

    /// The pairs that were tried, with their outcomes, in the order of the interfaces.
    pub fn tried(&self) -> Vec<Tried> {
        let tried = |pair: Pair| {
            let known = self.known.get(&pair.key())?;
            let outcome = match known.failed {
                Some(why) => Outcome::Failed(why),
                None if known.works => Outcome::Works,
                None if known.answers => Outcome::Answers,
                None if known.is_asked => Outcome::Asked,
                None => return None,
            };
            Some(Tried { local: pair.local.local(), interface: pair.local.name, remote: pair.remote, outcome })
        };
        self.all().filter_map(tried).collect()
    }

    fn start_of(&self, local: IpAddr) -> Option<usize> {
        self.starts.iter().position(|start| start.iter().any(|one| one.local() == local))
    }

    fn of_start(&self, start: usize) -> impl Iterator<Item = Pair> {
        let locals = self.starts.get(start).into_iter().flatten();
        locals.flat_map(|local| {
            let remotes = self.remotes.iter().filter(|remote| plausible(local, **remote));
            remotes.map(|remote| Pair { local: local.clone(), remote: *remote })
        })
    }

    fn known(&self, pair: &Pair) -> Known {
        self.known.get(&pair.key()).cloned().unwrap_or_default()
    }

    /// The smaller, the likelier to be right beside `others`.
    fn rank(&self, pair: &Pair, others: &[Pair]) -> impl Ord + use<> {
        let known = self.known(pair);
        let answers_elsewhere = self.known.iter().any(|((_, remote), other)| *remote == pair.remote && other.answers);
        (
            known.failed.is_some(),
            !known.answers,
            !known.is_proven,
            !known.is_opening,
            pair.local.address.is_ipv4() != self.prefers_ipv4,
            !pair.local.same_subnet(pair.remote.ip()),
            scope(pair.local.address) != scope(pair.remote.ip()),
            !answers_elsewhere,
            others.iter().filter(|other| other.remote == pair.remote).count(),
            others.iter().filter(|other| other.local == pair.local).count(),
        )
    }
}

/// The interfaces, each with its addresses that stand in for each other: the first of one family and the
/// first of the other, the second and the second, and so on.
fn starts(locals: &[Interface]) -> Vec<Vec<Interface>> {
    let mut starts: Vec<Vec<Interface>> = Vec::new();
    for local in locals {
        let joins = |start: &&mut Vec<Interface>| {
            start.len() == 1 && start[0].name == local.name && start[0].address.is_ipv4() != local.address.is_ipv4()
        };
        match starts.iter_mut().find(joins) {
            Some(start) => start.push(local.clone()),
            None => starts.push(vec![local.clone()]),
        }
    }
    starts
}

/// Whether packets from here could arrive there at all: both of one family, and a loopback address, or one of the
/// local link, is reached from another one only.
fn plausible(local: &Interface, remote: SocketAddr) -> bool {
    let remote = remote.ip();
    local.address.is_ipv4() == remote.is_ipv4()
        && local.address.is_loopback() == remote.is_loopback()
        && local.is_link_local() == is_link_local(remote)
}

#[cfg(test)]
mod tests;
