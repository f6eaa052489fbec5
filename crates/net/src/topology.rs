//! Links and the routes over them.

use std::collections::{BTreeSet, VecDeque};

use fairpath_core::{Bytes, Timestamp};

use crate::config::{LinkConfig, LinkConfigError};
use crate::link::{DropCause, Link, Offered};
use crate::rate::Rate;
use crate::schedule::Schedule;
use crate::stats::LinkStats;
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
    pub size: Bytes,
    /// The packet.
    pub packet: P,
}

/// A network that cannot be meant. The fault is the description's.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
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
    /// A link's description cannot be meant.
    #[error("link {name:?}: {source}")]
    Link {
        /// The name of the link.
        name: String,
        /// What is wrong with it.
        source: LinkConfigError,
    },
}

/// A packet between two links.
#[derive(Debug)]
struct Hop<P> {
    route: RouteId,
    /// How many links of the route it has begun.
    begun: u32,
    packet: P,
}

/// Links by id, and packets that move over chains of them. Several routes may share a link, and
/// one route may use a link twice.
///
/// Driven like a link: [`send`](Self::send), [`next_event`](Self::next_event),
/// [`poll`](Self::poll). A host that is late changes no result, only when it learns of it.
#[derive(Debug)]
pub struct Network<P> {
    streams: Streams,
    links: Vec<Link<Hop<P>>>,
    names: BTreeSet<String>,
    routes: Vec<Box<[LinkId]>>,
    schedule: Schedule,
    /// What has arrived and was not yet asked for.
    arrived: VecDeque<Delivery<P>>,
}

impl<P> Network<P> {
    /// An empty network with the randomness of `seed`.
    pub fn new(seed: u64) -> Self {
        Self {
            streams: Streams::new(seed),
            links: Vec::new(),
            names: BTreeSet::new(),
            routes: Vec::new(),
            schedule: Schedule::default(),
            arrived: VecDeque::new(),
        }
    }

    /// Adds a link. Its randomness depends on the seed and its name, on nothing else.
    ///
    /// # Errors
    ///
    /// Where the name is taken or the description cannot be meant.
    pub fn add_link(&mut self, name: &str, config: &LinkConfig) -> Result<LinkId, TopologyError> {
        config.check().map_err(|source| TopologyError::Link { name: name.to_owned(), source })?;
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
        self.routes.push(chain.into());
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
    pub fn send(&mut self, now: Timestamp, route: RouteId, packet: P, size: Bytes) -> Offered<P> {
        self.advance(now);
        match self.forward(now, Hop { route, begun: 0, packet }, size) {
            None => Offered::Queued,
            Some((cause, packet)) => Offered::Dropped(cause, packet),
        }
    }

    /// When to call [`poll`](Self::poll) next; `None` while the network is empty.
    #[inline]
    pub fn next_event(&self) -> Option<Timestamp> {
        let arrived = self.arrived.front().map(|delivery| delivery.at);
        arrived.or_else(|| self.schedule.first().map(|(at, _)| at))
    }

    /// The next packet that reached the end of its route by `now`, in order of time. Call it until
    /// it gives `None`.
    #[inline]
    pub fn poll(&mut self, now: Timestamp) -> Option<Delivery<P>> {
        if self.arrived.is_empty() {
            self.advance(now);
        }
        self.arrived.pop_front()
    }

    /// Switches a link on or off, as [`Link::set_up`] says.
    ///
    /// # Panics
    ///
    /// If `link` is another network's.
    pub fn set_link_up(&mut self, link: LinkId, up: bool, now: Timestamp) {
        self.advance(now);
        self.links[link.index()].set_up(up, now);
        self.reschedule(link);
    }

    /// Changes the rate of a link, as [`Link::set_rate`] says.
    ///
    /// # Panics
    ///
    /// If `link` is another network's.
    pub fn set_link_rate(&mut self, link: LinkId, rate: &Rate, now: Timestamp) {
        self.advance(now);
        self.links[link.index()].set_rate(rate, now);
        self.reschedule(link);
    }

    /// Whether a link is on.
    ///
    /// # Panics
    ///
    /// If `link` is another network's.
    pub fn is_link_up(&self, link: LinkId) -> bool {
        self.links[link.index()].is_up()
    }

    /// What a link has done.
    ///
    /// # Panics
    ///
    /// If `link` is another network's.
    pub fn stats(&self, link: LinkId) -> LinkStats {
        self.links[link.index()].stats()
    }

    /// The links, in the order in which they were added.
    pub fn links(&self) -> impl ExactSizeIterator<Item = LinkId> + use<P> {
        (0..self.links.len() as u32).map(LinkId)
    }

    /// Moves every packet as far as it comes by `now`.
    #[inline]
    fn advance(&mut self, now: Timestamp) {
        while let Some((at, link)) = self.schedule.first() {
            if at > now {
                break;
            }
            let delivered = self.links[link as usize].poll(at);
            self.reschedule(LinkId(link));
            if let Some(delivered) = delivered {
                // What a later link drops is counted there.
                let _ = self.forward(delivered.at, delivered.packet, delivered.size);
            }
        }
    }

    /// Offers a packet to the next link of its route, or notes that it has arrived.
    #[inline]
    fn forward(&mut self, now: Timestamp, mut hop: Hop<P>, size: Bytes) -> Option<(DropCause, P)> {
        let Some(link) = self.routes[hop.route.index()].get(hop.begun as usize).copied() else {
            self.arrived.push_back(Delivery { route: hop.route, at: now, size, packet: hop.packet });
            return None;
        };
        hop.begun += 1;
        let offered = self.links[link.index()].offer(now, hop, size);
        self.reschedule(link);
        match offered {
            Offered::Queued => None,
            Offered::Dropped(cause, hop) => Some((cause, hop.packet)),
        }
    }

    #[inline]
    fn reschedule(&mut self, link: LinkId) {
        self.schedule.set(link.0, self.links[link.index()].next_event());
    }
}
