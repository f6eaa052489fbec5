//! One connection, as its task and its handles share it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use fairpath_quic_core::streams::StreamEvent;
use fairpath_quic_core::{ChannelId, Connection as Core, Event, PathNotice};
use noq_proto::{ConnectionError, ConnectionHandle};
use tokio::sync::{Notify, broadcast};

use super::guarded::Guarded;
use super::home::{Home, LinkNumber, is_lost};
use super::intake::Intake;

/// The limit of the peer's datagrams that wait to be taken, in bytes and in number. Their contents soon
/// lose their worth. It is as much as one turn reads ([`super::intake`]), or some of each turn would be
/// lost.
const DATAGRAM_BYTES: usize = 512 << 10;
const DATAGRAMS: usize = 1_024;

/// How many notices a slow listener may be behind.
const NOTICES: usize = 256;

/// One connection, and who waits for something to happen on it.
#[derive(Debug)]
pub(crate) struct Link {
    pub(super) handle: ConnectionHandle,
    pub(super) number: LinkNumber,
    /// Whether it was begun here.
    pub(super) is_dialed: bool,
    pub(crate) core: Guarded,
    /// Datagrams for it that wait for its task.
    pub(super) intake: Intake,
    pub(crate) connected: Notify,
    pub(crate) closed: Notify,
    pub(crate) readable: [Notify; 2],
    pub(crate) writable: [Notify; 2],
    pub(crate) flushed: [Awaited; 2],
    pub(crate) drained: Awaited,
    pub(crate) agreed: Awaited,
    pub(crate) datagram_came: Notify,
    /// A packet of a flow may be there.
    pub(crate) packet_came: Notify,
    /// The peer has opened a stream, and one may be opened.
    pub(crate) opened: Notify,
    pub(crate) may_open: Notify,
    home: Mutex<Arc<Home>>,
    datagrams: Mutex<Kept>,
    /// Whether the peer may hold more than little.
    is_trusted: AtomicBool,
    pub(crate) notices: broadcast::Sender<PathNotice>,
}

/// Datagrams of the peer that nobody has taken.
#[derive(Debug, Default)]
struct Kept {
    datagrams: VecDeque<Bytes>,
    bytes: usize,
}

impl Kept {
    /// Keeps one more, in place of the oldest ones where there are too many.
    fn push(&mut self, datagram: Bytes) {
        self.bytes += datagram.len();
        self.datagrams.push_back(datagram);
        while self.datagrams.len() > DATAGRAMS || self.bytes > DATAGRAM_BYTES {
            self.pop();
        }
    }

    fn pop(&mut self) -> Option<Bytes> {
        let datagram = self.datagrams.pop_front()?;
        self.bytes -= datagram.len();
        Some(datagram)
    }
}

/// Something that the connection does not tell by itself.
#[derive(Debug, Default)]
pub(crate) struct Awaited {
    pub(crate) came: Notify,
    /// Whether somebody waits: else nobody looks.
    pub(crate) is_awaited: AtomicBool,
}

impl Awaited {
    /// Wakes those who wait, if what they wait for is there.
    fn tell_if(&self, is_there: impl FnOnce() -> bool) {
        if self.is_awaited.load(Ordering::Relaxed) && is_there() {
            self.is_awaited.store(false, Ordering::Relaxed);
            self.came.notify_waiters();
        }
    }
}

impl Link {
    pub(super) fn new(handle: ConnectionHandle, core: Core, is_dialed: bool, is_trusted: bool) -> Arc<Self> {
        static LINKS: AtomicU64 = AtomicU64::new(0);
        let number = LINKS.fetch_add(1, Ordering::Relaxed);
        Arc::new(Self {
            handle,
            number,
            is_dialed,
            core: Guarded::new(core),
            intake: Intake::default(),
            connected: Notify::new(),
            closed: Notify::new(),
            readable: Default::default(),
            writable: Default::default(),
            flushed: Default::default(),
            drained: Awaited::default(),
            agreed: Awaited::default(),
            datagram_came: Notify::new(),
            packet_came: Notify::new(),
            opened: Notify::new(),
            may_open: Notify::new(),
            home: Home::of(number).into(),
            datagrams: Mutex::default(),
            is_trusted: is_trusted.into(),
            notices: broadcast::channel(NOTICES).0,
        })
    }

    /// Whether the peer has not proved itself.
    pub(super) fn is_guest(&self) -> bool {
        !self.is_trusted.load(Ordering::Relaxed)
    }

    /// It has.
    pub(super) fn trust(&self) {
        self.is_trusted.store(true, Ordering::Relaxed);
    }

    /// The home of the streams that are on the connection.
    pub(crate) fn home(&self) -> Arc<Home> {
        self.home.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Other streams are on the connection from now on.
    pub(crate) fn set_home(&self, home: Arc<Home>) {
        *self.home.lock().unwrap_or_else(PoisonError::into_inner) = home;
    }

    fn datagrams(&self) -> MutexGuard<'_, Kept> {
        self.datagrams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The oldest datagram that came and was not taken.
    pub(crate) fn take_datagram(&self) -> Option<Bytes> {
        self.datagrams().pop()
    }

    fn keep_datagram(&self, datagram: Bytes) {
        if self.is_guest() {
            return;
        }
        self.datagrams().push(datagram);
        self.datagram_came.notify_waiters();
    }

    /// Wakes those who wait for `event`.
    pub(super) fn tell(&self, event: Event) {
        match event {
            Event::Connected => self.connected.notify_waiters(),
            Event::Closed(reason) => {
                tracing::debug!(%reason, "connection closed");
                self.tell_all();
                self.keep_streams(reason);
            }
            Event::Notice(notice) => {
                tracing::info!(%notice, "path");
                // Nobody has to listen.
                let _ = self.notices.send(notice);
            }
            Event::Readable(channel) => self.readable[channel as usize].notify_waiters(),
            Event::Writable(channel) => self.writable[channel as usize].notify_waiters(),
            Event::Datagram(datagram) => self.keep_datagram(datagram),
            Event::Packet => self.packet_came.notify_waiters(),
            Event::Streams(StreamEvent::Opened) => self.opened.notify_waiters(),
            Event::Streams(StreamEvent::MayOpen) => self.may_open.notify_waiters(),
            Event::Streams(event) => self.home().tell(event),
            // Nobody uses streams of QUIC; to resume others is answered by the task.
            Event::Stream(_) | Event::StreamsAsked(_) => {}
        }
    }

    /// Wakes everybody: the connection is closed.
    pub(super) fn tell_all(&self) {
        let channels = self.readable.iter().chain(&self.writable).chain(self.flushed.iter().map(|one| &one.came));
        let others = [&self.connected, &self.closed, &self.drained.came, &self.datagram_came, &self.packet_came];
        let of_streams = [&self.opened, &self.may_open, &self.agreed.came];
        channels.chain(others).chain(of_streams).for_each(Notify::notify_waiters);
        self.home().tell_all();
    }

    /// The connection ended. Where it was lost, its streams are there for another one for a while.
    pub(crate) fn keep_streams(&self, reason: ConnectionError) {
        if is_lost(&reason) {
            let home = self.home();
            let time = home.time_kept();
            home.keep(self.number, reason, time);
        }
    }

    /// Wakes those who wait for what the connection does not tell by itself.
    pub(super) fn look(&self, connection: &Core) {
        for channel in [ChannelId::Messages, ChannelId::Bulk] {
            self.flushed[channel as usize].tell_if(|| connection.is_flushed(channel));
        }
        self.drained.tell_if(|| connection.is_draining());
        self.agreed.tell_if(|| connection.are_streams_agreed());
    }
}
