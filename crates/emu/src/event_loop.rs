//! The thread that runs an emulation: release what is due, read what has come, sleep until the
//! next of either.

use std::io::{PipeReader, Read};
use std::os::fd::AsFd;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use fairpath_core::{ByteCount, Timestamp};
use fairpath_net::{Filter, LinkId, Network, Offered, Rate, RouteId};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use thread_priority::unix::{set_thread_priority_and_policy, thread_native_id};
use thread_priority::{RealtimeThreadSchedulePolicy, ScheduleParams, ThreadPriority, ThreadSchedulePolicy};

use crate::MTU;
use crate::outbox::{Due, Outbox};
use crate::relay::{Datagram, Direction, Relay, count};
use crate::socket::{BUFFERS, ReadBuffers, Received};
use crate::stats::{EmulatorStats, LinkReport};
use crate::timing::Histogram;

/// Something to do between two events.
pub(crate) type Command = Box<dyn FnOnce(&mut EventLoop) + Send>;

/// The shortest time between two wake-ups. Each has a cost, and the endpoints share the cores with
/// this thread: at high rates what comes or is due in this time is served together, at most this
/// late. What comes after a longer silence is served at once.
pub(crate) const WAKE_GAP: Duration = Duration::from_micros(120);

/// How often one socket is read before the others: what comes faster than that waits in the
/// kernel.
const READS_MAX: usize = 64;

/// Everything that the thread owns.
pub(crate) struct EventLoop {
    started: Instant,
    network: Network<Datagram>,
    relays: Vec<Relay>,
    link_names: Vec<String>,
    /// The path and the direction of each route.
    routes: Vec<(usize, Direction)>,
    commands: mpsc::Receiver<Command>,
    woken: PipeReader,
    read_buffers: ReadBuffers,
    outbox: Outbox,
    late: Histogram,
    last_wake: Timestamp,
    /// The sockets that have something: the path, and the number within it.
    ready: Vec<(usize, usize)>,
    /// Datagrams that were read and are about to be offered to the links.
    arrivals: Vec<Arrival>,
    /// The latest time that the links know of.
    served: Timestamp,
}

/// A datagram that is about to be offered to its first link.
struct Arrival {
    at: Timestamp,
    route: RouteId,
    size: ByteCount,
    datagram: Datagram,
}

/// Whether the emulation goes on.
#[derive(PartialEq, Eq)]
enum Wake {
    Work,
    Stop,
}

impl EventLoop {
    pub(crate) fn new(
        network: Network<Datagram>,
        relays: Vec<Relay>,
        link_names: Vec<String>,
        commands: mpsc::Receiver<Command>,
        woken: PipeReader,
    ) -> Self {
        let mut routes: Vec<_> = relays
            .iter()
            .enumerate()
            .flat_map(|(path, relay)| {
                let routes = relay.routes;
                [(routes.forward, (path, Direction::Forward)), (routes.backward, (path, Direction::Backward))]
            })
            .collect();
        routes.sort_by_key(|(route, _)| *route);
        Self {
            started: Instant::now(),
            network,
            relays,
            link_names,
            routes: routes.into_iter().map(|(_, end)| end).collect(),
            commands,
            woken,
            read_buffers: ReadBuffers::new(),
            outbox: Outbox::default(),
            late: Histogram::new(),
            last_wake: Timestamp::ZERO,
            ready: Vec::new(),
            arrivals: Vec::new(),
            served: Timestamp::ZERO,
        }
    }

    /// Runs until the other end of the pipe closes.
    pub(crate) fn run(mut self) {
        prepare_thread();
        loop {
            self.release();
            if self.sleep() == Wake::Stop {
                return;
            }
            while let Ok(command) = self.commands.try_recv() {
                command(&mut self);
            }
            self.read();
        }
    }

    fn now(&self) -> Timestamp {
        Timestamp::ZERO + self.started.elapsed()
    }

    /// Now, from where on nothing earlier can be told to the links.
    fn advance(&mut self) -> Timestamp {
        self.served = self.served.max(self.now());
        self.served
    }

    /// Sends everything that is due.
    fn release(&mut self) {
        let now = self.advance();
        while let Some(delivery) = self.network.poll(now) {
            let (path, direction) = self.routes[delivery.route.index()];
            self.outbox.push(Due { path, direction, at: delivery.at, datagram: delivery.packet });
        }
        let started = self.started;
        self.outbox.flush(&mut self.relays, &mut self.late, || Timestamp::ZERO + started.elapsed());
    }

    /// Waits until something is due or comes, and notes which sockets are ready.
    fn sleep(&mut self) -> Wake {
        self.ready.clear();
        let pause = (self.last_wake + WAKE_GAP).since(self.now());
        if pause > Duration::ZERO {
            thread::sleep(pause);
        }
        self.last_wake = self.now();
        let timeout = self.network.next_event().map(|at| {
            let wait = at.since(self.now());
            Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: i64::from(wait.subsec_nanos()) }
        });
        let readable = |socket| PollFd::from_borrowed_fd(socket, PollFlags::IN);
        let mut waiting = vec![PollFd::new(&self.woken, PollFlags::IN)];
        for relay in &self.relays {
            waiting.extend(relay.sockets().map(|socket| readable(socket.as_fd())));
        }
        // Only an interruption by a signal can fail here, and then there is nothing ready.
        if poll(&mut waiting, timeout.as_ref()).unwrap_or(0) == 0 {
            return Wake::Work;
        }
        let mut states = waiting.iter().map(|fd| !fd.revents().is_empty());
        let asked = states.next().unwrap_or(false);
        for (path, relay) in self.relays.iter().enumerate() {
            let numbers = 0..relay.sockets().len();
            self.ready.extend(numbers.zip(&mut states).filter(|(_, ready)| *ready).map(|(number, _)| (path, number)));
        }
        // One byte per command: reading fewer than there are only means to come back at once.
        if asked && !matches!((&self.woken).read(&mut [0; 64]), Ok(1..)) {
            return Wake::Stop;
        }
        Wake::Work
    }

    /// Reads the ready sockets, and offers the datagrams to the links in the order and at the times
    /// of their arrival. If this thread was kept from running, no datagram is lost to a queue that
    /// was empty when it was sent.
    fn read(&mut self) {
        let (now, clock) = (self.now(), SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default());
        let mut arrivals = core::mem::take(&mut self.arrivals);
        for (path, number) in core::mem::take(&mut self.ready) {
            for _ in 0..READS_MAX {
                let filled = self.read_buffers.fill(self.relays[path].socket(number));
                for received in self.read_buffers.received(filled) {
                    let age = received.came.map_or(Duration::ZERO, |came| clock.saturating_sub(came));
                    let at = Timestamp::ZERO + now.since(Timestamp::ZERO + age);
                    let relay = &mut self.relays[path];
                    arrivals.extend(accept(relay, number, &received, at, &mut self.outbox));
                }
                if filled < BUFFERS {
                    break;
                }
            }
        }
        // Stable: what came at one time stays in order.
        arrivals.sort_by_key(|arrival| arrival.at);
        for Arrival { at, route, size, datagram } in arrivals.drain(..) {
            // The links have been served up to here.
            self.served = self.served.max(at);
            if let Offered::Dropped(_, datagram) = self.network.send(self.served, route, datagram, size) {
                self.outbox.recycle(datagram.contents);
            }
        }
        self.arrivals = arrivals;
    }

    pub(crate) fn set_link_up(&mut self, link: LinkId, up: bool) {
        let now = self.advance();
        self.network.set_link_up(link, up, now);
    }

    pub(crate) fn set_link_rate(&mut self, link: LinkId, rate: &Rate) {
        let now = self.advance();
        self.network.set_link_rate(link, rate, now);
    }

    pub(crate) fn set_filter(&mut self, link: LinkId, filter: Filter) {
        let now = self.advance();
        self.network.set_filters(link, &[filter], now);
    }

    pub(crate) fn set_path_up(&mut self, path: usize, up: bool) {
        self.relays[path].up = up;
    }

    pub(crate) fn reset_timing(&mut self) {
        self.late = Histogram::new();
    }

    pub(crate) fn stats(&self) -> EmulatorStats {
        let report = |(link, name): (LinkId, &String)| LinkReport {
            name: name.clone(),
            up: self.network.is_link_up(link),
            stats: self.network.stats(link),
        };
        EmulatorStats {
            links: self.network.links().zip(&self.link_names).map(report).collect(),
            paths: self.relays.iter().map(Relay::stats).collect(),
            timing: self.late.report(),
        }
    }
}

/// The route of a datagram that came at a socket of a relay; `None` where the path is down, there are
/// too many clients, or it is too large for any link.
fn accept(
    relay: &mut Relay,
    number: usize,
    received: &Received<'_>,
    at: Timestamp,
    outbox: &mut Outbox,
) -> Option<Arrival> {
    let (direction, route) = match number {
        0 => (Direction::Forward, relay.routes.forward),
        _ => (Direction::Backward, relay.routes.backward),
    };
    let payload = received.contents.len();
    count(&mut relay.direction_stats(direction).received, payload);
    let up = relay.up;
    let Some(client) = relay.client_of(number, received.from, at).filter(|_| up) else {
        let stats = relay.direction_stats(direction);
        count(if up { &mut stats.failed } else { &mut stats.down }, payload);
        return None;
    };
    let size = relay.size_on_link(payload);
    if size > MTU {
        count(&mut relay.direction_stats(direction).too_large, payload);
        return None;
    }
    let datagram = Datagram { contents: outbox.buffer(received.contents), ecn: received.ecn, client };
    Some(Arrival { at, route, size, datagram })
}

/// Makes this thread wake up on time. All of it is best effort: where the process may not have the
/// lowest real-time priority, other work can delay a release, and the timing report shows it.
pub(crate) fn prepare_thread() {
    // By default Linux may wake a thread 50 µs late in order to wake several at once.
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    let lowest = ThreadPriority::from_posix(ScheduleParams { sched_priority: 1 });
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::RoundRobin);
    let _ = set_thread_priority_and_policy(thread_native_id(), lowest, policy);
}
