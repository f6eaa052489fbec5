//! A network in parts that several cores move at once.
//!
//! A packet reaches the far end of a link its delay after it left, at the earliest. So in a window
//! no longer than the least delay of all links, no event on one link can reach another, or a host.
//! The parts may run through a window side by side, and at its end hand over the packets that are
//! due in the next. This is conservative synchronization, with the delay as lookahead
//! [Fujimoto1990].
//!
//! Packets that reach one link at one instant from several places need an order that does not
//! depend on which part handed them over first. It is a number drawn from the place and the
//! instant. If it were drawn from the place alone, the same place would win every tie at a full
//! queue.

use core::time::Duration;
use std::sync::Arc;

use fairpath_core::{ByteCount, Timestamp};

use crate::filter::Filter;
use crate::link::{Delivered, Link};
use crate::packet::Packet;
use crate::rate::Rate;
use crate::stats::LinkStats;
use crate::topology::{Delivery, Hop, LinkId, Network, RouteId, Step};

/// The part to which each link and each end of a route belongs.
#[derive(Debug)]
struct Map {
    /// The steps of all routes, one route after the other, each with its end, and where each begins.
    steps: Vec<Step>,
    routes: Vec<u32>,
    /// The part of a link, and its place there.
    links: Vec<(u32, u32)>,
    /// The part to which a route leads.
    ends: Vec<u32>,
}

impl Map {
    #[inline]
    fn part_of(&self, step: u32) -> usize {
        let part = match self.steps[step as usize] {
            Step::Cross(link) => self.links[link.index()].0,
            Step::Arrive(route) => self.ends[route.index()],
        };
        part as usize
    }
}

/// A packet between two links, or between a link and a host.
#[derive(Clone, Debug)]
pub struct Moving<P> {
    at: Timestamp,
    /// Orders what comes at one instant.
    order: u64,
    /// The step that it takes next: a position among the steps of all routes.
    step: u32,
    size: ByteCount,
    packet: P,
}

impl<P> Moving<P> {
    /// A packet that comes at `at` from the place numbered `from`.
    #[inline]
    fn new(at: Timestamp, from: u64, step: u32, size: ByteCount, packet: P) -> Self {
        Self { at, order: mix(at.as_nanos() ^ from << 40), step, size, packet }
    }

    /// When it comes.
    #[inline]
    pub fn at(&self) -> Timestamp {
        self.at
    }

    /// By time, then by a number that is drawn from the time and the place it comes from.
    #[inline]
    pub fn order(&self) -> (Timestamp, u64) {
        (self.at, self.order)
    }
}

/// The finalizer of SplitMix64 [Steele2014]: every bit of the result depends on every bit of the number.
#[inline]
fn mix(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

/// Packets on their way to each part. Those from one place are in the order in which they were handed over.
pub type Outbox<P> = Vec<Vec<Moving<P>>>;

/// Some of the links of a network.
///
/// For each window of time its host hands it every packet that comes to one of its links in that
/// window ([`take`](Self::take)). Then it lets the part run ([`run`](Self::run)), and has it hand
/// over the packets that are due in the next window ([`hand_over`](Self::hand_over)). Between
/// windows every packet is on a link.
#[derive(Debug)]
pub struct Partition<P> {
    map: Arc<Map>,
    /// The links of the network that are in this part.
    ids: Vec<LinkId>,
    links: Vec<Link<Hop<P>>>,
    /// The packets that come to each of them in this window.
    inputs: Vec<Vec<Moving<P>>>,
}

impl<P: Packet> Network<P> {
    /// How far parts of it may run ahead of each other: the least delay of all links.
    ///
    /// # Errors
    ///
    /// The link that has none, or whose jitter may take it all.
    pub fn lookahead(&self) -> Result<Duration, LinkId> {
        let mut least = Duration::MAX;
        for (link, id) in self.links.iter().zip(self.links()) {
            match link.delay_least() {
                Duration::ZERO => return Err(id),
                delay => least = least.min(delay),
            }
        }
        Ok(least)
    }

    /// Cuts it into `parts`. Link number i goes to part `links[i]`, and what arrives on route number i is for part
    /// `ends[i]`. A route has one link at least.
    ///
    /// # Panics
    ///
    /// Unless there is a part for each link and each route, and all are below `parts`.
    pub fn divide(self, parts: usize, links: &[usize], ends: &[usize]) -> Vec<Partition<P>> {
        assert_eq!((links.len(), ends.len()), (self.links.len(), self.routes.len()));
        let mut ids: Vec<Vec<LinkId>> = vec![Vec::new(); parts];
        let mut place_of = Vec::with_capacity(links.len());
        for (id, part) in self.links().zip(links) {
            place_of.push((*part as u32, ids[*part].len() as u32));
            ids[*part].push(id);
        }
        let ends = ends.iter().map(|part| *part as u32).collect();
        let map = Arc::new(Map { steps: self.steps, routes: self.routes, links: place_of, ends });
        let mut cut: Vec<Partition<P>> = ids
            .into_iter()
            .map(|ids| Partition {
                map: Arc::clone(&map),
                links: Vec::with_capacity(ids.len()),
                inputs: ids.iter().map(|_| Vec::new()).collect(),
                ids,
            })
            .collect();
        for (link, part) in self.links.into_iter().zip(links) {
            cut[*part].links.push(link);
        }
        cut
    }
}

impl<P: Packet> Partition<P> {
    /// A host sends a packet of `size` on `route`, which may begin in another part.
    ///
    /// # Panics
    ///
    /// If `route` is another network's.
    #[inline]
    pub fn send(&self, now: Timestamp, route: RouteId, packet: P, size: ByteCount, out: &mut Outbox<P>) {
        let step = self.map.routes[route.index()];
        let from = 1 << 23 | route.index() as u64;
        out[self.map.part_of(step)].push(Moving::new(now, from, step, size, packet));
    }

    /// Takes a packet for one of its links, or gives it back where it has arrived.
    #[inline]
    pub fn take(&mut self, moving: Moving<P>) -> Option<Moving<P>> {
        match self.map.steps[moving.step as usize] {
            Step::Cross(link) => {
                self.inputs[self.map.links[link.index()].1 as usize].push(moving);
                None
            }
            Step::Arrive(_) => Some(moving),
        }
    }

    /// The packets that have arrived, as hosts get them.
    ///
    /// # Panics
    ///
    /// If it has a link before it still.
    #[inline]
    pub fn delivery(&self, moving: Moving<P>) -> Delivery<P> {
        let Moving { at, step, size, packet, .. } = moving;
        match self.map.steps[step as usize] {
            Step::Arrive(route) => Delivery { route, at, size, packet },
            Step::Cross(link) => panic!("it goes to link number {}", link.index()),
        }
    }

    /// Runs every link through all that happens on it by `end`. What its hosts and the other parts send it until
    /// then it has been given.
    pub fn run(&mut self, end: Timestamp) {
        for (link, input) in self.links.iter_mut().zip(&mut self.inputs) {
            if input.len() > 1 {
                // Packets from one place stay in order.
                input.sort_by_key(Moving::order);
            }
            for Moving { at, step, size, packet, .. } in input.drain(..) {
                // A drop is counted by the link.
                drop(link.offer(at, Hop { next: step + 1, packet }, size));
            }
            link.transmit_until(end);
        }
    }

    /// Hands over what is due at the far ends of its links by `end`, which is no later than the lookahead after the
    /// end of the window that was run.
    pub fn hand_over(&mut self, end: Timestamp, out: &mut Outbox<P>) {
        for (link, id) in self.links.iter_mut().zip(&self.ids) {
            while let Some(Delivered { at, size, packet: Hop { next, packet } }) = link.take_due(end) {
                out[self.map.part_of(next)].push(Moving::new(at, id.index() as u64, next, size, packet));
            }
        }
    }

    /// When something next happens on one of its links.
    pub fn next_event(&self) -> Option<Timestamp> {
        self.links.iter().filter_map(Link::next_event).min()
    }

    /// The counters of the link in a place: they stand in the order in which the network had them.
    ///
    /// # Panics
    ///
    /// If the part has fewer links.
    pub fn stats_at(&self, place: usize) -> LinkStats {
        self.links[place].stats()
    }

    /// Switches a link on or off, as [`Link::set_up`] says, if it is one of its own.
    pub fn set_link_up(&mut self, link: LinkId, up: bool, now: Timestamp) {
        self.act_on(link, |link| link.set_up(up, now));
    }

    /// Changes the rate of a link, as [`Link::set_rate`] says, if it is one of its own.
    pub fn set_link_rate(&mut self, link: LinkId, rate: &Rate, now: Timestamp) {
        self.act_on(link, |link| link.set_rate(rate, now));
    }

    /// Puts filters into the entrance of a link, as [`Link::set_filters`] says, if it is one of its own.
    pub fn set_filters(&mut self, link: LinkId, filters: &[Filter], now: Timestamp) {
        self.act_on(link, |link| link.set_filters(filters, now));
    }

    fn act_on(&mut self, link: LinkId, act: impl FnOnce(&mut Link<Hop<P>>)) {
        if let Some(place) = self.ids.iter().position(|id| *id == link) {
            act(&mut self.links[place]);
        }
    }
}
