//! A network of single bottlenecks in virtual time, as small as it can be: senders that obey windows
//! and pacing rates, drop-tail queues, acknowledgements that are never lost.

// Each test uses a part of it.
#![allow(dead_code, unreachable_pub)]

use core::cmp::Reverse;
use core::ops::Range;
use core::time::Duration;
use std::collections::{BTreeMap, BinaryHeap};

use fairpath_cc::Controller;
use fairpath_core::{
    Ack, Bitrate, ByteCount, Congestion, CongestionSignal, DeliveryRate, LostPacket, PathId, RttEstimator, Sent,
    SentState, Timestamp,
};

pub const PACKET: ByteCount = ByteCount::new(1_250);

/// Reordering threshold: packets overtaken by this many later ones are lost [RFC9002 §6.1.1].
const REORDERING: u64 = 3;

/// Nothing arrives in order after such a silence: everything in flight is lost.
const SILENCE: Duration = Duration::from_secs(1);

/// A bottleneck.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    pub rate: Bitrate,
    /// The round-trip time without a queue.
    pub round_trip: Duration,
    pub buffer: ByteCount,
    /// The share of packets that is lost at random.
    pub loss: f64,
}

impl Link {
    /// The bytes that the link holds without a queue.
    pub fn bdp(&self) -> ByteCount {
        self.rate * self.round_trip
    }
}

/// One path of a sender.
pub struct Flow {
    sender: usize,
    path: PathId,
    link: usize,
    /// The application writes at this rate; `None`: without end.
    pub source: Option<Bitrate>,
    written_from: Timestamp,
    sent: ByteCount,
    rate: DeliveryRate,
    rtt: RttEstimator,
    outstanding: BTreeMap<u64, (Timestamp, SentState)>,
    next: u64,
    may_send_at: Timestamp,
    wakes_at: Option<Timestamp>,
    full_at: Option<Timestamp>,
    heard_at: Timestamp,
    /// Each packet that arrived: when it was acknowledged, and its round-trip time.
    pub arrivals: Vec<(Timestamp, Duration)>,
    /// Window and pacing rate after each acknowledgement.
    pub control: Vec<(Timestamp, ByteCount, Option<Bitrate>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Wake { flow: usize },
    Acknowledged { flow: usize, number: u64 },
    Silence { flow: usize },
}

#[derive(Default)]
pub struct Network {
    pub now: Timestamp,
    pub senders: Vec<Box<dyn Controller>>,
    pub links: Vec<Link>,
    /// When each link will have sent what it has queued.
    busy_until: Vec<Timestamp>,
    pub flows: Vec<Flow>,
    events: BinaryHeap<Reverse<(Timestamp, u64, Event)>>,
    scheduled: u64,
    random: u64,
}

impl Network {
    pub fn add_link(&mut self, link: Link) -> usize {
        self.links.push(link);
        self.busy_until.push(Timestamp::ZERO);
        self.links.len() - 1
    }

    pub fn add_sender(&mut self, sender: Box<dyn Controller>) -> usize {
        self.senders.push(sender);
        self.senders.len() - 1
    }

    /// Opens the path `path` of `sender` over `link`, from now on and without end of data.
    pub fn add_flow(&mut self, sender: usize, path: u32, link: usize) -> usize {
        let path = PathId::new(path);
        self.senders[sender].on_path_opened(path, PACKET, self.now);
        self.flows.push(Flow {
            sender,
            path,
            link,
            source: None,
            written_from: self.now,
            sent: ByteCount::ZERO,
            rate: DeliveryRate::new(),
            rtt: RttEstimator::new(),
            outstanding: BTreeMap::new(),
            next: 0,
            may_send_at: self.now,
            wakes_at: None,
            full_at: None,
            heard_at: self.now,
            arrivals: Vec::new(),
            control: Vec::new(),
        });
        let flow = self.flows.len() - 1;
        self.schedule(self.now, Event::Wake { flow });
        self.schedule(self.now + SILENCE, Event::Silence { flow });
        flow
    }

    /// Lets the application of `flow` write at `rate` from now on; `None`: without end.
    pub fn set_source(&mut self, flow: usize, rate: Option<Bitrate>) {
        let now = self.now;
        let flow_state = &mut self.flows[flow];
        flow_state.source = rate;
        flow_state.written_from = now;
        flow_state.sent = ByteCount::ZERO;
        self.schedule(now, Event::Wake { flow });
    }

    pub fn run_until(&mut self, end: Timestamp) {
        while let Some(Reverse((at, _, event))) = self.events.peek().copied() {
            if at > end {
                break;
            }
            self.events.pop();
            self.now = at;
            match event {
                Event::Wake { flow } => {
                    self.flows[flow].wakes_at = None;
                    self.send(flow);
                }
                Event::Acknowledged { flow, number } => {
                    self.acknowledge(flow, number);
                    self.send(flow);
                }
                Event::Silence { flow } => {
                    self.check_silence(flow);
                    self.schedule(self.now + SILENCE, Event::Silence { flow });
                }
            }
        }
        self.now = end;
    }

    /// The goodput of `flow` in a span of seconds.
    pub fn goodput(&self, flow: usize, seconds: Range<u64>) -> Bitrate {
        let (start, end) = (Timestamp::from_secs(seconds.start), Timestamp::from_secs(seconds.end));
        let arrived = self.flows[flow].arrivals.iter().filter(|(at, _)| (start..end).contains(at)).count();
        (PACKET * arrived as u64).per(end.since(start)).unwrap()
    }

    /// How much of what `flow` sent did not arrive, as a share of it.
    pub fn lost(&self, flow: usize) -> f64 {
        let flow = &self.flows[flow];
        let settled = flow.next - flow.outstanding.len() as u64;
        (settled - flow.arrivals.len() as u64) as f64 / settled as f64
    }

    /// The mean time that the packets of `flow` waited in the queue in a span of seconds.
    pub fn mean_queue(&self, flow: usize, seconds: Range<u64>) -> Duration {
        let (start, end) = (Timestamp::from_secs(seconds.start), Timestamp::from_secs(seconds.end));
        let link = self.links[self.flows[flow].link];
        let unqueued = link.round_trip + PACKET / link.rate;
        let waits: Vec<Duration> = (self.flows[flow].arrivals.iter())
            .filter(|(at, _)| (start..end).contains(at))
            .map(|(_, rtt)| rtt.saturating_sub(unqueued))
            .collect();
        waits.iter().sum::<Duration>() / waits.len().max(1) as u32
    }

    fn schedule(&mut self, at: Timestamp, event: Event) {
        self.scheduled += 1;
        self.events.push(Reverse((at, self.scheduled, event)));
    }

    /// A number from 0 to 1: a 64-bit linear congruential generator, of which the high bits are good.
    fn random(&mut self) -> f64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 11) as f64 / (1u64 << 53) as f64
    }

    fn send(&mut self, at: usize) {
        let now = self.now;
        loop {
            let flow = &mut self.flows[at];
            let sender = &mut self.senders[flow.sender];
            let in_flight = PACKET * flow.outstanding.len() as u64;
            if in_flight + PACKET > sender.window(flow.path) {
                flow.full_at = Some(now);
                return;
            }
            let written = flow.source.map_or(ByteCount::MAX, |rate| rate * now.since(flow.written_from));
            if flow.sent + PACKET > written {
                flow.rate.on_app_limited(in_flight);
                let missing = flow.sent + PACKET - written;
                let wait = missing / flow.source.unwrap() + Duration::from_nanos(1);
                return self.wake(at, now + wait);
            }
            let may_send_at = flow.may_send_at;
            if may_send_at > now {
                return self.wake(at, may_send_at);
            }
            let number = flow.next;
            flow.next += 1;
            flow.sent += PACKET;
            let state = flow.rate.on_sent(now, in_flight);
            flow.outstanding.insert(number, (now, state));
            let pacing = sender.pacing_rate(flow.path);
            sender.on_sent(flow.path, &Sent { now, bytes: PACKET, in_flight: in_flight + PACKET });
            flow.may_send_at = now + pacing.map_or(Duration::ZERO, |rate| PACKET / rate);
            self.transmit(at, number);
        }
    }

    fn wake(&mut self, flow: usize, at: Timestamp) {
        if self.flows[flow].wakes_at.is_none_or(|wakes_at| at < wakes_at || wakes_at <= self.now) {
            self.flows[flow].wakes_at = Some(at);
            self.schedule(at, Event::Wake { flow });
        }
    }

    fn transmit(&mut self, flow: usize, number: u64) {
        let at = self.flows[flow].link;
        let link = self.links[at];
        let wait = self.busy_until[at].since(self.now);
        if self.random() < link.loss || link.rate * wait + PACKET > link.buffer {
            return;
        }
        self.busy_until[at] = self.now + wait + PACKET / link.rate;
        self.schedule(self.busy_until[at] + link.round_trip, Event::Acknowledged { flow, number });
    }

    fn acknowledge(&mut self, at: usize, number: u64) {
        let now = self.now;
        let flow = &mut self.flows[at];
        let in_flight = PACKET * flow.outstanding.len() as u64;
        let Some((sent_at, state)) = flow.outstanding.remove(&number) else { return };
        flow.heard_at = now;
        let round = flow.rtt.get().map_or(Duration::ZERO, |rtt| rtt.smoothed);
        let ack = Ack {
            now,
            sent_at,
            bytes: PACKET,
            in_flight,
            window_limited: flow.full_at.is_some_and(|full_at| now.since(full_at) <= round),
            rtt: flow.rtt.get(),
            rate: flow.rate.on_ack(now, PACKET, &state),
        };
        flow.rtt.on_sample(now, now.since(sent_at), Duration::ZERO);
        flow.arrivals.push((now, now.since(sent_at)));
        let sender = &mut self.senders[flow.sender];
        sender.on_ack(flow.path, &ack);
        sender.on_ack_end(flow.path, now);
        self.lose(at, number.saturating_sub(REORDERING - 1), false);
        let flow = &mut self.flows[at];
        let sender = &self.senders[flow.sender];
        flow.control.push((now, sender.window(flow.path), sender.pacing_rate(flow.path)));
    }

    /// Everything that is outstanding below `number` is lost.
    fn lose(&mut self, at: usize, number: u64, persistent: bool) {
        let now = self.now;
        let flow = &mut self.flows[at];
        let sender = &mut self.senders[flow.sender];
        let in_flight = PACKET * flow.outstanding.len() as u64;
        let kept = flow.outstanding.split_off(&number);
        let lost = core::mem::replace(&mut flow.outstanding, kept);
        for (number, (sent_at, state)) in &lost {
            let sample = flow.rate.on_lost(PACKET, state);
            let packet = LostPacket { now, sent_at: *sent_at, number: *number, bytes: PACKET, sample };
            sender.on_lost(flow.path, &packet);
        }
        if let Some((_, (sent_at, _))) = lost.last_key_value() {
            let (sent_at, lost) = (*sent_at, PACKET * lost.len() as u64);
            let signal = CongestionSignal::Loss;
            sender.on_congestion(flow.path, &Congestion { now, sent_at, signal, lost, in_flight, persistent });
        }
    }

    fn check_silence(&mut self, at: usize) {
        let flow = &self.flows[at];
        let oldest = flow.outstanding.values().next().map(|(sent_at, _)| *sent_at);
        if oldest.is_some_and(|sent_at| self.now.since(sent_at.max(flow.heard_at)) >= SILENCE) {
            self.lose(at, u64::MAX, true);
            self.send(at);
        }
    }
}
