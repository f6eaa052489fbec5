//! One part of a run: some hosts and some links, which one thread runs window by window.

use core::mem;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::sync::{Mutex, PoisonError};

use fairpath_core::{ByteCount, Timestamp};
use fairpath_net::{Moving, Outbox, RouteId};

use super::barrier::{Barrier, Present};
use super::notes::Notes;
use crate::egress::Egress;
use crate::hosts::Hosts;
use crate::limits::Limits;
use crate::packet::Packet;

/// Some hosts and some links.
#[derive(Debug)]
pub(super) struct Partition {
    pub(super) hosts: Hosts,
    pub(super) links: fairpath_net::Partition<Packet>,
    pub(super) notes: Notes,
    /// Arrivals at its hosts in this window.
    inbox: Vec<Moving<Packet>>,
    out: Outbox<Packet>,
}

/// Why and where all parts have stopped; everything by then has happened.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reached {
    /// At the time that was wanted.
    End(Timestamp),
    /// Before, because it is time to count what the run holds.
    Work(Timestamp),
    /// Before, because no time passes.
    Standstill(Timestamp),
}

impl Reached {
    pub(super) fn at(self) -> Timestamp {
        let (Self::End(at) | Self::Work(at) | Self::Standstill(at)) = self;
        at
    }
}

/// The state that a part announces before all go on.
/// Each has a cache line of its own, because all threads read what one writes.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Said {
    /// When something next happens in it.
    next: AtomicU64,
    /// Whether anything is due in the next window.
    busy: AtomicU64,
    /// Its events and packets so far.
    work: AtomicU64,
    stands_still: AtomicU64,
}

/// Packets from each part to each, which lie here while all parts wait for one another.
#[derive(Debug)]
struct Post(Vec<Vec<Mutex<Vec<Moving<Packet>>>>>);

impl Post {
    fn new(parts: usize) -> Self {
        Self((0..parts).map(|_| (0..parts).map(|_| Mutex::default()).collect()).collect())
    }

    /// Puts in what part `from` has for all; where there was room, it comes back for what is next. Whether there was
    /// anything.
    fn put(&self, from: usize, out: &mut Outbox<Packet>) -> bool {
        let mut any = false;
        for (to, packets) in out.iter_mut().enumerate().filter(|(_, packets)| !packets.is_empty()) {
            mem::swap(packets, &mut self.0[from][to].lock().unwrap_or_else(PoisonError::into_inner));
            any = true;
        }
        any
    }

    /// Takes out what all have for part `to`.
    fn take(&self, to: usize, mut take: impl FnMut(Moving<Packet>)) {
        for from in &self.0 {
            from[to].lock().unwrap_or_else(PoisonError::into_inner).drain(..).for_each(&mut take);
        }
    }
}

/// The state that the threads share while they run.
#[derive(Debug)]
pub(super) struct Meeting {
    barrier: Barrier,
    said: Vec<Said>,
    /// From hosts to links, and from links to links and hosts.
    sent: Post,
    due: Post,
    lookahead: Duration,
    end: Timestamp,
    /// The work after which it is counted what the run holds.
    enough: u64,
    standstill: u64,
}

impl Meeting {
    /// A meeting of this many parts. They run until `end` is over, or until their work exceeds
    /// `before` by the limit between two counts.
    pub(super) fn new(parts: usize, lookahead: Duration, end: Timestamp, before: u64, limits: Limits) -> Self {
        Self {
            barrier: Barrier::new(parts),
            said: (0..parts).map(|_| Said::default()).collect(),
            sent: Post::new(parts),
            due: Post::new(parts),
            lookahead,
            end,
            enough: before + limits.every,
            standstill: limits.standstill,
        }
    }

    fn any(&self, of: impl Fn(&Said) -> &AtomicU64) -> bool {
        self.said.iter().any(|said| of(said).load(Ordering::Relaxed) != 0)
    }

    fn work(&self) -> u64 {
        self.said.iter().map(|said| said.work.load(Ordering::Relaxed)).sum()
    }

    /// The last instant of a window that begins at `first`.
    fn window(&self, first: Timestamp) -> Timestamp {
        (first + (self.lookahead - Duration::from_nanos(1))).min(self.end)
    }
}

/// The way of what the hosts of a part send.
struct Outward<'a> {
    links: &'a fairpath_net::Partition<Packet>,
    out: &'a mut Outbox<Packet>,
}

impl Egress for Outward<'_> {
    #[inline]
    fn send(&mut self, now: Timestamp, route: RouteId, packet: Packet, size: ByteCount) {
        self.links.send(now, route, packet, size, self.out);
    }
}

impl Partition {
    /// One of `parts`.
    pub(super) fn new(hosts: Hosts, links: fairpath_net::Partition<Packet>, parts: usize) -> Self {
        let out = (0..parts).map(|_| Vec::new()).collect();
        Self { hosts, links, notes: Notes::default(), inbox: Vec::new(), out }
    }

    /// Runs with the other parts, as part number `own`, until all stop. Every packet is on a link then.
    pub(super) fn run(&mut self, own: usize, meeting: &Meeting) -> Reached {
        let _present = Present(&meeting.barrier);
        let said = &meeting.said[own];
        loop {
            let next = self.links.next_event().unwrap_or(Timestamp::MAX).min(self.hosts.timers.next());
            said.next.store(next.as_nanos(), Ordering::Relaxed);
            if !meeting.barrier.wait() {
                return Reached::End(meeting.end);
            }
            let first = meeting.said.iter().map(|said| said.next.load(Ordering::Relaxed)).min();
            let first = Timestamp::from_nanos(first.unwrap_or(u64::MAX));
            if first > meeting.end {
                return Reached::End(meeting.end);
            }
            let mut window = meeting.window(first);
            self.links.hand_over(window, &mut self.out);
            meeting.due.put(own, &mut self.out);
            if !meeting.barrier.wait() {
                return Reached::End(meeting.end);
            }
            loop {
                let moved = self.run_hosts(own, window, meeting);
                said.stands_still.store(u64::from(!moved), Ordering::Relaxed);
                said.work.store(self.hosts.events + self.hosts.sent, Ordering::Relaxed);
                meeting.sent.put(own, &mut self.out);
                if !meeting.barrier.wait() {
                    return Reached::End(meeting.end);
                }
                meeting.sent.take(own, |moving| {
                    let arrived = self.links.take(moving);
                    debug_assert!(arrived.is_none(), "every route has a link");
                });
                self.links.run(window);
                if meeting.any(|said| &said.stands_still) {
                    return Reached::Standstill(window);
                }
                if window == meeting.end {
                    return Reached::End(window);
                }
                if meeting.work() >= meeting.enough {
                    return Reached::Work(window);
                }
                let next = meeting.window(window + Duration::from_nanos(1));
                self.links.hand_over(next, &mut self.out);
                let any = meeting.due.put(own, &mut self.out);
                said.busy.store(u64::from(any || self.hosts.timers.next() <= next), Ordering::Relaxed);
                if !meeting.barrier.wait() {
                    return Reached::End(meeting.end);
                }
                if !meeting.any(|said| &said.busy) {
                    break;
                }
                window = next;
            }
        }
    }

    /// Runs its hosts until the time `end` is over. Whether time passes.
    fn run_hosts(&mut self, own: usize, end: Timestamp, meeting: &Meeting) -> bool {
        let Self { hosts, links, notes, inbox, out } = self;
        meeting.due.take(own, |moving| inbox.extend(links.take(moving)));
        // The sort is stable, so that packets of one link stay in order.
        inbox.sort_by_key(Moving::order);
        let mut arriving = inbox.drain(..).peekable();
        let (mut at, mut since) = (Timestamp::ZERO, hosts.events);
        loop {
            let timer = hosts.timers.next();
            let outward = &mut Outward { links, out };
            if let Some(moving) = arriving.next_if(|moving| moving.at() <= timer) {
                hosts.on_delivery(&links.delivery(moving), outward, notes);
            } else if let Some((now, timer)) = hosts.timers.pop_by(end) {
                if now != at {
                    (at, since) = (now, hosts.events);
                }
                hosts.on_timer(now, timer, outward, notes);
                if hosts.events - since > meeting.standstill {
                    return false;
                }
            } else {
                debug_assert!(arriving.peek().is_none(), "what arrives in this window is before its end");
                return true;
            }
        }
    }
}
