//! Links and the routes over them.

use core::time::Duration;
use std::collections::{BTreeSet, VecDeque};

use fairpath_core::{Bitrate, ByteCount, Timestamp};

use crate::config::LinkConfig;
use crate::error::LinkConfigError;
use crate::filter::Filter;
use crate::impair::Impairments;
use crate::link::{Delivered, Link, Offered};
use crate::packet::Packet;
use crate::rate::Rate;
use crate::schedule::Schedule;
use crate::stats::{Count, LinkStats};
use crate::stream::Streams;

/// A link of a [`Network`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(u32);

impl LinkId {
    /// Its position in the order in which links were added.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A chain of links of a [`Network`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouteId(u32);

impl RouteId {
    /// Its position in the order in which routes were added.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The two routes of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathRoutes {
    /// From the side that opens the connection to the other.
    pub forward: RouteId,
    /// And back.
    pub backward: RouteId,
}

/// A packet at the end of its route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery<P> {
    /// The route it came on.
    pub route: RouteId,
    /// When it was due.
    pub at: Timestamp,
    /// Its size.
    pub size: ByteCount,
    /// The packet.
    pub packet: P,
}

/// A network that cannot be meant. The fault is the description's.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TopologyError {
    /// Two links have one name. They would draw the same random numbers.
    #[error("there are two links of the name {name:?}")]
    DuplicateLink {
        /// The name.
        name: String,
    },
    /// A route names a link that the network does not have.
    #[error("a route goes over link number {}, and there are only {links} links", link.index())]
    UnknownLink {
        /// The link.
        link: LinkId,
        /// How many links there are.
        links: usize,
    },
    /// There are as many links as there can be.
    #[error("there can be no more than {max} links")]
    TooManyLinks {
        /// How many.
        max: usize,
    },
    /// A link's description cannot be meant.
    #[error("link {name:?}: {source}")]
    Link {
        /// The name of the link.
        name: String,
        /// The reason.
        source: LinkConfigError,
    },
}

/// The next step of a packet on a route.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Cross(LinkId),
    Arrive(RouteId),
}

/// A packet on a link.
#[derive(Clone, Debug)]
pub(crate) struct Hop<P> {
    /// The step after this link: a position among the steps of all routes.
    pub(crate) next: u32,
    pub(crate) packet: P,
}

impl<P: Packet> Packet for Hop<P> {
    #[inline]
    fn is_ecn_capable(&self) -> bool {
        self.packet.is_ecn_capable()
    }

    #[inline]
    fn mark(&mut self) {
        self.packet.mark();
    }

    /// Every route has steps of its own.
    #[inline]
    fn flow(&self) -> u64 {
        self.packet.flow() ^ u64::from(self.next) << 32
    }

    fn corrupt(&mut self, random: u64) {
        self.packet.corrupt(random);
    }
}

/// Links by id, and packets that move over chains of them. Several routes may share a link, and
/// one route may use a link twice.
///
/// Driven like a link: [`send`](Self::send), [`next_event`](Self::next_event),
/// [`poll`](Self::poll). A host that is late changes no result, only when it learns of it.
///
/// If several links deliver at the very same instant, they do so in the order in which these
/// deliveries became the next of their links. Packets sent at that instant come after them.
#[derive(Debug)]
pub struct Network<P> {
    streams: Streams,
    pub(crate) links: Vec<Link<Hop<P>>>,
    names: BTreeSet<String>,
    /// The steps of all routes, one route after the other, each with its end, and where each begins.
    pub(crate) steps: Vec<Step>,
    pub(crate) routes: Vec<u32>,
    schedule: Schedule,
    /// Packets that have arrived and were not yet asked for.
    arrived: VecDeque<Delivery<P>>,
}

impl<P: Packet> Network<P> {
    /// An empty network with the randomness of `seed`.
    pub fn new(seed: u64) -> Self {
        Self {
            streams: Streams::new(seed),
            links: Vec::new(),
            names: BTreeSet::new(),
            steps: Vec::new(),
            routes: Vec::new(),
            schedule: Schedule::default(),
            arrived: VecDeque::new(),
        }
    }

    /// Adds a link. Its randomness depends on the seed and its name, on nothing else.
    ///
    /// # Errors
    ///
    /// Where the name is taken, the description cannot be meant, or there are a million links.
    pub fn add_link(&mut self, name: &str, config: &LinkConfig) -> Result<LinkId, TopologyError> {
        config.check().map_err(|source| TopologyError::Link { name: name.to_owned(), source })?;
        if self.links.len() == Schedule::LINKS_MAX {
            return Err(TopologyError::TooManyLinks { max: Schedule::LINKS_MAX });
        }
        if !self.names.insert(name.to_owned()) {
            return Err(TopologyError::DuplicateLink { name: name.to_owned() });
        }
        let id = LinkId(self.links.len() as u32);
        self.links.push(Link::new(name, config, &self.streams));
        self.schedule.add_link();
        Ok(id)
    }

    /// Adds a chain of links. An empty chain delivers at once.
    ///
    /// # Errors
    ///
    /// Where the network does not have one of the links.
    pub fn add_route(&mut self, chain: &[LinkId]) -> Result<RouteId, TopologyError> {
        let links = self.links.len();
        if let Some(link) = chain.iter().find(|link| link.index() >= links) {
            return Err(TopologyError::UnknownLink { link: *link, links });
        }
        let id = RouteId(self.routes.len() as u32);
        self.routes.push(self.steps.len() as u32);
        self.steps.extend(chain.iter().map(|link| Step::Cross(*link)));
        self.steps.push(Step::Arrive(id));
        Ok(id)
    }

    /// Adds both directions of a path.
    ///
    /// # Errors
    ///
    /// Where the network does not have one of the links.
    pub fn add_path(&mut self, forward: &[LinkId], backward: &[LinkId]) -> Result<PathRoutes, TopologyError> {
        Ok(PathRoutes { forward: self.add_route(forward)?, backward: self.add_route(backward)? })
    }

    /// Sends a packet of `size` on `route`. It is given back where the first link drops it; what a
    /// later link drops is in that link's [`stats`](Self::stats).
    ///
    /// # Panics
    ///
    /// If `route` is another network's.
    #[inline]
    pub fn send(&mut self, now: Timestamp, route: RouteId, packet: P, size: ByteCount) -> Offered<P> {
        self.advance(now);
        let first = self.routes[route.index()];
        match self.steps[first as usize] {
            Step::Arrive(route) => {
                self.arrived.push_back(Delivery { route, at: now, size, packet });
                Offered::Queued
            }
            Step::Cross(link) => match self.offer(now, link, Hop { next: first + 1, packet }, size) {
                Offered::Queued => Offered::Queued,
                Offered::Dropped(cause, hop) => Offered::Dropped(cause, hop.packet),
            },
        }
    }

    /// When to call [`poll`](Self::poll) next; `None` while the network is empty.
    #[inline]
    pub fn next_event(&self) -> Option<Timestamp> {
        let arrived = self.arrived.front().map(|delivery| delivery.at);
        arrived.or_else(|| Some(self.schedule.first_at()).filter(|at| *at != Timestamp::MAX))
    }

    /// The next packet that reached the end of its route by `now`, in order of time. Call it until
    /// it gives `None`. Nothing that happens after the arrival has happened yet: the host may answer
    /// at the time of the arrival, though that is before `now`.
    #[inline]
    pub fn poll(&mut self, now: Timestamp) -> Option<Delivery<P>> {
        match self.arrived.pop_front() {
            // Here and not called: what is handed out need not be copied once more.
            None if self.schedule.first_at() <= now => self.find_arrival(now),
            arrived => arrived,
        }
    }

    /// Switches a link on or off, as [`Link::set_up`] says.
    ///
    /// # Panics
    ///
    /// If `link` is another network's.
    pub fn set_link_up(&mut self, link: LinkId, up: bool, now: Timestamp) {
        self.advance(now);
        self.act_on(link, |link| link.set_up(up, now));
    }

    /// Changes the rate of a link, as [`Link::set_rate`] says.
    ///
    /// # Panics
    ///
    /// If `link` is another network's.
    pub fn set_link_rate(&mut self, link: LinkId, rate: &Rate, now: Timestamp) {
        self.advance(now);
        self.act_on(link, |link| link.set_rate(rate, now));
    }

    /// Changes the propagation delay of a link, as [`Link::set_delay`] says.
    ///
    /// # Panics
    ///
    /// If `link` is another network's.
    pub fn set_link_delay(&mut self, link: LinkId, delay: Duration, now: Timestamp) {
        self.advance(now);
        self.act_on(link, |link| link.set_delay(delay, now));
    }

    /// Changes the impairments of a link, as [`Link::set_impairments`] says.
    ///
    /// # Panics
    ///
    /// If `link` is another network's.
    pub fn set_impairments(&mut self, link: LinkId, impairments: &Impairments, now: Timestamp) {
        self.advance(now);
        self.act_on(link, |link| link.set_impairments(impairments, now));
    }

    /// Puts filters into the entrance of a link, as [`Link::set_filters`] says.
    ///
    /// # Panics
    ///
    /// If `link` is another network's.
    pub fn set_filters(&mut self, link: LinkId, filters: &[Filter], now: Timestamp) {
        self.advance(now);
        self.act_on(link, |link| link.set_filters(filters, now));
    }

    /// Whether a link is on.
    ///
    /// # Panics
    ///
    /// If `link` is another network's.
    pub fn is_link_up(&self, link: LinkId) -> bool {
        self.links[link.index()].is_up()
    }

    /// The counters of a link, as of the last time something happened on it.
    ///
    /// # Panics
    ///
    /// If `link` is another network's.
    pub fn stats(&self, link: LinkId) -> LinkStats {
        self.links[link.index()].stats()
    }

    /// The packets that wait in a link's queue at `now`. This is cheap, and asking changes no result.
    ///
    /// # Panics
    ///
    /// If `link` is another network's.
    pub fn queued(&mut self, link: LinkId, now: Timestamp) -> Count {
        self.advance(now);
        self.links[link.index()].queued(now)
    }

    /// A link's propagation delay, without jitter.
    ///
    /// # Panics
    ///
    /// If `link` is another network's.
    pub fn delay(&self, link: LinkId) -> Duration {
        self.links[link.index()].delay()
    }

    /// A link's rate in the long run, as [`Rate::mean`] says.
    ///
    /// # Panics
    ///
    /// If `link` is another network's.
    pub fn rate(&self, link: LinkId) -> Option<Bitrate> {
        self.links[link.index()].rate()
    }

    /// How long a packet of `size` takes over a route when nothing else is on it: the sum of its
    /// links' [`unloaded_delay`](Link::unloaded_delay)s. There and back again, that is the base
    /// round-trip time.
    ///
    /// # Panics
    ///
    /// If `route` is another network's.
    pub fn unloaded_delay(&self, route: RouteId, size: ByteCount) -> Duration {
        let delay = |link: LinkId| self.links[link.index()].unloaded_delay(size);
        self.route(route).map(delay).fold(Duration::ZERO, Duration::saturating_add)
    }

    /// The links of a route.
    ///
    /// # Panics
    ///
    /// If `route` is another network's.
    pub fn route(&self, route: RouteId) -> impl Iterator<Item = LinkId> + use<'_, P> {
        let steps = &self.steps[self.routes[route.index()] as usize..];
        steps.iter().map_while(|step| match step {
            Step::Cross(link) => Some(*link),
            Step::Arrive(_) => None,
        })
    }

    /// The links, in the order in which they were added.
    pub fn links(&self) -> impl ExactSizeIterator<Item = LinkId> + use<P> {
        (0..self.links.len() as u32).map(LinkId)
    }

    /// Moves every packet as far as it comes by `now`.
    #[inline]
    fn advance(&mut self, now: Timestamp) {
        if self.schedule.first_at() <= now {
            self.move_packets(now);
        }
    }

    /// Apart from the question whether there is anything to move, which every call asks and most
    /// deny.
    #[inline(never)]
    fn move_packets(&mut self, now: Timestamp) {
        while let Some(arrived) = self.find_arrival(now) {
            self.arrived.push_back(arrived);
        }
    }

    /// Moves packets until one arrives at the end of its route, or all are as far as they come by
    /// `now`.
    #[inline(always)]
    fn find_arrival(&mut self, now: Timestamp) -> Option<Delivery<P>> {
        loop {
            let at = self.schedule.first_at();
            if at > now || at == Timestamp::MAX {
                return None;
            }
            let from = &mut self.links[self.schedule.first_link() as usize];
            let delivered = from.poll(at);
            let next = from.next_due();
            if next != at {
                self.schedule.move_first(next);
            }
            let Some(Delivered { at, size, packet: Hop { next, packet } }) = delivered else { continue };
            match self.steps[next as usize] {
                Step::Arrive(route) => return Some(Delivery { route, at, size, packet }),
                // A drop at a later link is counted there.
                Step::Cross(link) => drop(self.offer(at, link, Hop { next: next + 1, packet }, size)),
            }
        }
    }

    #[inline(always)]
    fn offer(&mut self, now: Timestamp, link: LinkId, hop: Hop<P>, size: ByteCount) -> Offered<Hop<P>> {
        let state = &mut self.links[link.index()];
        let before = state.next_due();
        let may_change = !state.is_settled();
        let result = state.offer(now, hop, size);
        if may_change {
            let after = state.next_due();
            if after != before {
                self.schedule.set(link.0, before, after);
            }
        }
        result
    }

    /// Does something with a link, after which it may have another next event.
    #[inline(always)]
    fn act_on<T>(&mut self, link: LinkId, act: impl FnOnce(&mut Link<Hop<P>>) -> T) -> T {
        let state = &mut self.links[link.index()];
        let before = state.next_due();
        let result = act(state);
        let after = state.next_due();
        if after != before {
            self.schedule.set(link.0, before, after);
        }
        result
    }
}
