//! One direction of one wire: filters, loss, queue, transmission, propagation with its impairments.
//!
//! The queue holds packets that wait for transmission. When a transmission begins, its end and the
//! time of arrival at the far end are known. The packet then joins the link's list of packets in
//! flight, in order of arrival. Hence a link needs one pending event, whatever the number of
//! packets on it. The host may drive it late without changing any result: every step is taken with
//! the time at which it was due.
//!
//! Features that only some links have (jitter, impairments, filters) lie apart, behind one check
//! that each packet passes anyway.

use core::time::Duration;
use std::collections::VecDeque;

use fairpath_core::{Bitrate, ByteCount, Timestamp};

use crate::config::LinkConfig;
use crate::filter::{Filter, Gate};
use crate::impair::{Impairments, Wire};
use crate::loss::{Loss, LossConfig};
use crate::packet::Packet;
use crate::queue::{Arrival, EnqueueAction, Queue, QueueConfig, Waiting};
use crate::rate::{Rate, Transmitter};
use crate::stats::{Count, LinkStats};
use crate::stream::{Owner, Streams};

/// Why a link refused a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropCause {
    /// The loss model took it.
    Lost,
    /// It did not fit into the queue.
    Overflow,
    /// The management of the queue dropped it before the queue was full.
    Early,
    /// The link was down.
    Down,
    /// A filter at its entrance took it.
    Filtered,
    /// It came faster than its policer allows.
    Policed,
}

/// The fate of a packet that was offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Offered<P> {
    /// The link has it.
    Queued,
    /// It is dropped, and given back.
    Dropped(DropCause, P),
}

/// A packet at the far end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivered<P> {
    /// When it was due there.
    pub at: Timestamp,
    /// Its size.
    pub size: ByteCount,
    /// The packet.
    pub packet: P,
}

/// One direction of one wire. Time must not run backwards from call to call.
#[derive(Debug)]
pub struct Link<P> {
    // Fields that every packet touches stand first, so that they are in few cache lines.
    /// When the first packet of what is in flight is due; never, if there is none.
    first_due: Timestamp,
    /// When the transmission of the packet at the head of the queue begins; never, if there is none.
    next_start: Timestamp,
    /// When the last packet is or was due, but for what was held back.
    last_due: Timestamp,
    delay_ns: u64,
    /// Packets in transmission or under way, in the order of delivery.
    in_flight: VecDeque<Delivered<P>>,
    offered: Count,
    delivered: Count,
    waited_ns: u64,
    waited_ns_max: u64,
    transmitter: Transmitter,
    overhead: ByteCount,
    /// Where packets differ on their way; `None` where all take the delay and nothing befalls them.
    wire: Option<Box<Wire>>,
    loss: Loss,
    queue: Queue<P>,
    /// Whether what is transmitted later may arrive earlier.
    reorders: bool,
    /// Whether it is known that packets only take the delay: nothing is lost, and nothing waits.
    is_mere_delay: bool,
    /// Whether the gate lets everything in.
    open: bool,
    gate: Box<Gate>,
    owner: Box<Owner>,
    /// All counters but those above.
    counters: LinkStats,
}

impl<P: Packet> Link<P> {
    /// A link as described. Its randomness is that of `name` in `streams`.
    pub fn new(name: &str, config: &LinkConfig, streams: &Streams) -> Self {
        let owner = Owner::new(streams, name);
        let wire = Wire::new(&config.jitter, &config.impairments, &owner);
        let gate = Gate::new(config.policer, streams.stream(name, "filter"));
        Self {
            loss: Loss::new(&config.loss, name, streams),
            queue: Queue::new(&config.queue, config.overhead, name, streams),
            transmitter: Transmitter::new(&config.rate, Timestamp::ZERO),
            delay_ns: u64::try_from(config.delay.as_nanos()).unwrap_or(u64::MAX),
            reorders: wire.as_ref().is_some_and(|wire| wire.reorders()),
            is_mere_delay: wire.is_none()
                && gate.is_open()
                && matches!(config.rate, Rate::Unlimited)
                && matches!(config.loss, LossConfig::None)
                && matches!(config.queue, QueueConfig::DropTail(_)),
            wire,
            owner: Box::new(owner),
            overhead: config.overhead,
            open: gate.is_open(),
            gate: Box::new(gate),
            next_start: Timestamp::MAX,
            in_flight: VecDeque::new(),
            first_due: Timestamp::MAX,
            last_due: Timestamp::ZERO,
            offered: Count::default(),
            delivered: Count::default(),
            counters: LinkStats::default(),
            waited_ns: 0,
            waited_ns_max: 0,
        }
    }

    /// Hands the link a packet of `size`.
    // A call would copy the packet twice more.
    #[inline(always)]
    pub fn offer(&mut self, now: Timestamp, mut packet: P, size: ByteCount) -> Offered<P> {
        if self.is_mere_delay {
            self.offered.add(size);
            self.depart(now, size, packet);
            return Offered::Queued;
        }
        self.transmit_until(now);
        self.offered.add(size);
        if !self.open
            && let Some(cause) = self.refuse(now, size)
        {
            return Offered::Dropped(cause, packet);
        }
        if self.loss.loses() {
            self.counters.lost.add(size);
            return Offered::Dropped(DropCause::Lost, packet);
        }
        // While something waits, the wire is not free.
        let nothing_waits = self.queue.is_empty();
        let start = if nothing_waits { self.transmitter.next_start(now) } else { Timestamp::MAX };
        let idle = start <= now;
        if self.queue.is_managed() {
            match self.judge(now, idle, size) {
                EnqueueAction::Pass => {}
                EnqueueAction::Signal if mark(&mut packet) => self.counters.marked.add(size),
                EnqueueAction::Signal | EnqueueAction::Drop => {
                    self.counters.early.add(size);
                    return Offered::Dropped(DropCause::Early, packet);
                }
                EnqueueAction::Overflow => return self.overflow(packet, size),
            }
        } else if !idle && !self.queue.has_room(size.saturating_add(self.overhead), self.transmitter.rate_at(now)) {
            return self.overflow(packet, size);
        }
        if idle {
            self.transmit(start, Waiting { arrival: now, size, packet });
            return Offered::Queued;
        }
        self.queue.push(Waiting { arrival: now, size, packet });
        self.counters.queued_bytes_max = self.counters.queued_bytes_max.max(self.queue.waiting().bytes);
        if nothing_waits {
            self.next_start = start;
        }
        Offered::Queued
    }

    /// When to call [`poll`](Self::poll) next; `None` while nothing is due. Seldom there is then
    /// nothing to deliver yet, where a transmission begins that could not be foreseen.
    #[inline]
    pub fn next_event(&self) -> Option<Timestamp> {
        let next = self.next_due();
        (next != Timestamp::MAX).then_some(next)
    }

    /// The same; the end of time while nothing is due.
    #[inline]
    pub(crate) fn next_due(&self) -> Timestamp {
        // In order nothing arrives before what is under way; otherwise the next transmission may be for it.
        if (self.first_due == Timestamp::MAX) | self.reorders {
            self.next_start.min(self.first_due)
        } else {
            self.first_due
        }
    }

    /// Whether [`next_due`](Self::next_due) stays, whatever is offered.
    #[inline]
    pub(crate) fn is_settled(&self) -> bool {
        (self.first_due != Timestamp::MAX) & !self.reorders
    }

    /// The next packet that is due by `now`, with the time at which it was due. Call it until it
    /// gives `None`.
    #[inline]
    pub fn poll(&mut self, now: Timestamp) -> Option<Delivered<P>> {
        if self.next_start <= now {
            self.begin_transmissions(now);
        }
        self.take_due(now)
    }

    /// The next packet that is due by `by`, of those whose transmission has begun: none begins.
    #[inline]
    pub(crate) fn take_due(&mut self, by: Timestamp) -> Option<Delivered<P>> {
        if self.first_due > by {
            return None;
        }
        let delivered = self.in_flight.pop_front()?;
        self.first_due = match self.in_flight.front() {
            Some(first) => first.at,
            None => {
                // The next one goes where this one was: a ring would wander through the cache.
                self.in_flight.clear();
                Timestamp::MAX
            }
        };
        self.delivered.add(delivered.size);
        Some(delivered)
    }

    /// Switches the link on or off. When it goes down what waits in its queue is dropped, and so
    /// is everything that is offered until it comes up; what is being transmitted or on its way
    /// still arrives.
    pub fn set_up(&mut self, up: bool, now: Timestamp) {
        self.transmit_until(now);
        self.is_mere_delay = false;
        self.gate.set_up(up);
        self.open = self.gate.is_open();
        if !up {
            self.counters.down += self.queue.clear();
            self.next_start = Timestamp::MAX;
        }
    }

    /// Whether the link is on.
    pub fn is_up(&self) -> bool {
        self.gate.is_up()
    }

    /// Puts filters into the entrance, one behind the other, in place of those before. What is on the link
    /// already goes on.
    pub fn set_filters(&mut self, filters: &[Filter], now: Timestamp) {
        self.transmit_until(now);
        self.is_mere_delay = false;
        self.gate.set_filters(filters);
        self.open = self.gate.is_open();
    }

    /// Changes the rate, for every packet whose transmission has not begun. Tables and traces
    /// start with the run, not with the change.
    pub fn set_rate(&mut self, rate: &Rate, now: Timestamp) {
        self.transmit_until(now);
        self.is_mere_delay = false;
        let under_way = self.transmitter.free_at();
        // A packet that a rate of zero has cut off for good does not hold up the rest.
        let free_at = if under_way == Timestamp::MAX { now } else { under_way.max(now) };
        self.transmitter = Transmitter::new(rate, free_at);
        self.find_next_start();
    }

    /// Changes the propagation delay, for every packet whose transmission has not begun. Where packets keep their
    /// order, none arrives before one that left earlier with a longer delay.
    pub fn set_delay(&mut self, delay: Duration, now: Timestamp) {
        self.transmit_until(now);
        self.delay_ns = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
    }

    /// Changes the impairments, for every packet whose transmission has not begun. A share outside 0 to 1 counts as
    /// the nearer of the two.
    pub fn set_impairments(&mut self, impairments: &Impairments, now: Timestamp) {
        self.transmit_until(now);
        self.is_mere_delay = false;
        let wire = self.wire.get_or_insert_with(|| Box::new(Wire::plain()));
        wire.set_impairments(impairments, &self.owner);
        self.reorders = wire.reorders();
    }

    /// The link's counters, as of the last time it was driven.
    pub fn stats(&self) -> LinkStats {
        // Added up where it is asked for, and not at every packet.
        let bytes = self.in_flight.iter().map(|packet| packet.size).sum();
        let in_flight = Count { packets: self.in_flight.len() as u64, bytes };
        LinkStats {
            offered: self.offered,
            delivered: self.delivered,
            queued: self.queue.waiting(),
            in_flight,
            queueing_delay_total: Duration::from_nanos(self.waited_ns),
            queueing_delay_max: Duration::from_nanos(self.waited_ns_max),
            ..self.counters
        }
    }

    /// The packets that wait in the queue at `now`. This is cheap, and asking changes no result.
    #[inline]
    pub fn queued(&mut self, now: Timestamp) -> Count {
        self.transmit_until(now);
        self.queue.waiting()
    }

    /// How long a packet of `size` takes from end to end when nothing is before it: transmission at
    /// the mean rate, and propagation without jitter.
    pub fn unloaded_delay(&self, size: ByteCount) -> Duration {
        let transmission = match self.transmitter.mean() {
            Some(rate) => size.saturating_add(self.overhead) / rate,
            None => Duration::ZERO,
        };
        transmission.saturating_add(self.delay())
    }

    /// The propagation delay, without jitter.
    pub fn delay(&self) -> Duration {
        Duration::from_nanos(self.delay_ns)
    }

    /// The least that any packet takes for the propagation.
    pub(crate) fn delay_least(&self) -> Duration {
        let takes_all = self.wire.as_ref().is_some_and(|wire| wire.may_be_early());
        if takes_all { Duration::ZERO } else { self.delay() }
    }

    /// The rate in the long run, as [`Rate::mean`] says.
    pub fn rate(&self) -> Option<Bitrate> {
        self.transmitter.mean()
    }

    /// Whether the gate refuses a packet of `size`, and why.
    #[cold]
    fn refuse(&mut self, now: Timestamp, size: ByteCount) -> Option<DropCause> {
        if !self.gate.is_up() {
            self.counters.down.add(size);
            return Some(DropCause::Down);
        }
        if self.gate.drops(size) {
            self.counters.filtered.add(size);
            return Some(DropCause::Filtered);
        }
        self.gate.polices(now, size).then(|| {
            self.counters.policed.add(size);
            DropCause::Policed
        })
    }

    fn overflow(&mut self, packet: P, size: ByteCount) -> Offered<P> {
        self.counters.overflowed.add(size);
        Offered::Dropped(DropCause::Overflow, packet)
    }

    /// The decision of a managed queue about a packet of `size`. An idle link will take it at once.
    #[inline]
    fn judge(&mut self, now: Timestamp, idle: bool, size: ByteCount) -> EnqueueAction {
        let arrival = Arrival {
            now,
            on_wire: size.saturating_add(self.overhead),
            rate: self.transmitter.rate_at(now),
            idle_since: idle.then(|| self.transmitter.free_at()),
        };
        self.queue.judge(&arrival, &mut self.counters)
    }

    /// Begins every transmission that is due by `now`, each at its own time.
    #[inline]
    pub(crate) fn transmit_until(&mut self, now: Timestamp) {
        if self.next_start <= now {
            self.transmit_waiting(now);
        }
    }

    /// Apart from the question whether there is anything to begin, which every call asks and most
    /// deny.
    #[inline(never)]
    fn transmit_waiting(&mut self, now: Timestamp) {
        self.begin_transmissions(now);
    }

    #[inline(always)]
    fn begin_transmissions(&mut self, now: Timestamp) {
        while self.next_start <= now && self.next_start != Timestamp::MAX {
            let start = self.next_start;
            if let Some(next) = self.queue.pop(start, &mut self.counters) {
                self.transmit(start, next);
            }
            self.find_next_start();
        }
    }

    #[inline]
    fn find_next_start(&mut self) {
        self.next_start = match self.queue.head_arrival() {
            Some(arrival) => self.transmitter.next_start(arrival),
            None => Timestamp::MAX,
        };
    }

    // A call would cost a quarter of what it calls.
    #[inline(always)]
    fn transmit(&mut self, start: Timestamp, Waiting { arrival, size, packet }: Waiting<P>) {
        let end = self.transmitter.transmit(start, size.saturating_add(self.overhead));
        if end == Timestamp::MAX {
            // The rate falls to zero for good before the packet is through: it is cut off.
            self.counters.down.add(size);
            return;
        }
        // Nanoseconds as numbers: a `Duration` is seconds and nanoseconds, and this is every packet.
        let waited_ns = start.as_nanos() - arrival.as_nanos();
        self.waited_ns += waited_ns;
        self.waited_ns_max = self.waited_ns_max.max(waited_ns);
        if self.wire.is_some() {
            self.pass_the_wire(end, size, packet);
            return;
        }
        self.depart(end, size, packet);
    }

    /// A packet whose transmission ends at `end` takes the delay, behind those before it.
    #[inline(always)]
    fn depart(&mut self, end: Timestamp, size: ByteCount, packet: P) {
        let due = Timestamp::from_nanos(end.as_nanos().saturating_add(self.delay_ns));
        self.last_due = due.max(self.last_due);
        self.first_due = self.first_due.min(self.last_due);
        self.in_flight.push_back(Delivered { at: self.last_due, size, packet });
    }

    /// A packet whose transmission ends at `end` goes over a wire that treats packets differently.
    #[inline(never)]
    fn pass_the_wire(&mut self, end: Timestamp, size: ByteCount, packet: P) {
        if self.wire.as_mut().is_some_and(|wire| wire.duplicates()) {
            self.counters.duplicated.add(size);
            self.set_out(end, size, packet.clone());
        }
        self.set_out(end, size, packet);
    }

    /// A packet, or a copy of one, sets out on such a wire.
    fn set_out(&mut self, end: Timestamp, size: ByteCount, mut packet: P) {
        let Some(wire) = &mut self.wire else { return };
        if let Some(random) = wire.corrupts() {
            packet.corrupt(random);
            self.counters.corrupted.add(size);
        }
        let mut due = Timestamp::from_nanos(end.as_nanos().saturating_add(wire.delay_ns(self.delay_ns)));
        if !wire.overtakes() {
            due = due.max(self.last_due);
            self.last_due = due;
        }
        if let Some(by_ns) = wire.holds_back_ns() {
            due = Timestamp::from_nanos(due.as_nanos().saturating_add(by_ns));
            self.counters.held_back.add(size);
        }
        self.first_due = self.first_due.min(due);
        // Mostly at the end, or near it.
        let place = self.in_flight.partition_point(|before| before.at <= due);
        self.in_flight.insert(place, Delivered { at: due, size, packet });
    }
}

/// Marks a packet if it can be. Seldom, and a call: what is looked into here would be copied in odd
/// pieces everywhere else, which no processor forwards from store to load.
#[inline(never)]
fn mark<P: Packet>(packet: &mut P) -> bool {
    let capable = packet.is_ecn_capable();
    if capable {
        packet.mark();
    }
    capable
}
