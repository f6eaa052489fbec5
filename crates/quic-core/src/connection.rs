//! One end of a connection over several paths: the stack, the engine, the path policy and the channels, as
//! functions of time.
//!
//! It owns all of them. So what leaves next is decided here, packet by packet: the engine picks a path, the
//! packet's contents are chosen for that path, its gate is opened, and the stack is asked for one packet.

mod amplification;
mod datagrams;
mod end;
mod flows;
mod held;
mod intake;
mod lanes;
mod live;
mod output;
mod pending_copies;
mod pending_frames;
mod probes;
mod queue;
mod rescue;
mod silence;
#[cfg(feature = "simulation")]
mod strays;
mod streams;

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use web_time::{Duration, Instant};

use bytes::Bytes;
use fairpath_engine::{Engine, PathId as EnginePath, PathSnapshot, Terms, TermsChanges, Timestamp};
use noq_proto::crypto::ExportKeyingMaterialError;
use noq_proto::{ConnectionError, ConnectionId, PathId, StreamEvent};

use crate::adapter::{ConnectionEngine, Fate};
use crate::announcement::Announcement;
use crate::arrival::Counted;
use crate::bulk::{Record, RecordTooLarge};
use crate::channel::ChannelId;
use crate::farewell::Farewell;
use crate::forged;
use crate::interface::Interface;
use crate::one_way::OneWay;
use crate::pairs::{Candidates, Pair, Tried, WhyNot};
use crate::paths::policy::Policy;
use crate::paths::{PathNotice, PathReport};
use crate::receipts::{self, Receipts};
use crate::streams::{StreamEvent as StreamsEvent, StreamsToken};
use crate::tls::Application;
use crate::transport::{Trust, trust};
use crate::{peer_addresses, peer_terms};
use amplification::Amplification;
pub use datagrams::CongestionMark;
pub use end::{VIOLATION, violation};
use flows::Flows;
pub use held::HeldData;
use lanes::Lanes;
use live::Live;
use output::Output;
pub use output::TRAIN_MAX;
use silence::Silence;

/// How often the paths are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The number of the object that messages are pieces of. Theirs is the only one on their channel.
const MESSAGES: u32 = 0;

/// An event of a connection.
#[derive(Debug)]
pub enum Event {
    /// The handshake is complete.
    Connected,
    /// The connection ended.
    Closed(ConnectionError),
    /// Something happened to a path.
    Notice(PathNotice),
    /// Something came on a channel: see [`Connection::take_message`], [`Connection::take_record`].
    Readable(ChannelId),
    /// A channel that had no room has some again.
    Writable(ChannelId),
    /// A datagram of the application came.
    Datagram(Bytes),
    /// A packet of a flow may be there: see [`Connection::take_packet`].
    Packet,
    /// Something happened to a stream of QUIC.
    Stream(StreamEvent),
    /// Something happened to the streams: see [`Connection::streams`].
    Streams(StreamsEvent),
    /// The client asks for the streams of another connection, by their token: answer with
    /// [`Connection::resume_streams`] or [`Connection::refuse_streams`]. The other connection may seem to live.
    StreamsAsked(StreamsToken),
}

/// The addresses here, by the names of their interfaces.
pub type Interfaces = Arc<[(String, IpAddr)]>;

/// One end of a connection.
pub struct Connection {
    quic: noq_proto::Connection,
    engine: ConnectionEngine,
    application: Application,
    policy: Option<Policy>,
    look_at: Instant,
    interfaces: Interfaces,
    /// The address that packets leave from which name none.
    primary: Option<IpAddr>,
    is_server: bool,
    lanes: Lanes,
    messages_taken: u64,
    messages_sent: u64,
    /// Channels that had no room when it was asked for.
    full: [bool; 2],
    one_way: OneWay,
    receipts: Receipts,
    receipt_at: Instant,
    /// The counts of the last receipts.
    receipted: Vec<(PathId, u64)>,
    announcement: Option<Announcement>,
    /// The terms of paths that the peer was told last, and how far that is.
    told_terms: (Vec<(PathId, Terms)>, Option<Announcement>),
    output: Output,
    flows: Option<Box<Flows>>,
    /// The room in the stack's datagram queue while it is empty.
    queue_space: usize,
    fates: Vec<Fate>,
    events: VecDeque<Event>,
    is_connected: bool,
    is_draining: bool,
    silence: Silence,
    /// An acknowledgement from this time on looks again for streams that wait for a late path.
    rescue_at: Instant,
    /// The addresses of the peer that have shown that it receives there.
    amplification: Amplification,
    /// The id that the first packet is addressed to, at the end that connects.
    first_id: Option<ConnectionId>,
    closed: Option<ConnectionError>,
    farewell: Option<Farewell>,
    /// The peer has not proved itself yet, and counts as long as it has not.
    guest: Option<Counted>,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("connected", &self.is_connected).field("closed", &self.closed).finish()
    }
}

impl Connection {
    pub(crate) fn new(
        mut quic: noq_proto::Connection,
        engine: ConnectionEngine,
        trust: Trust,
        interfaces: Interfaces,
        primary: Option<IpAddr>,
        now: Instant,
    ) -> Self {
        let observes = engine.with(now, |engine, _| engine.observes());
        Self {
            is_server: quic.side().is_server(),
            queue_space: quic.datagrams().send_buffer_space(),
            lanes: Lanes::new(trust, quic.side().is_server()),
            quic,
            engine,
            application: Application::Fairpath,
            policy: None,
            look_at: now,
            interfaces,
            primary,
            messages_taken: 0,
            messages_sent: 0,
            full: [false; 2],
            one_way: OneWay::new(observes, now),
            receipts: Receipts::default(),
            receipt_at: now,
            receipted: Vec::new(),
            announcement: None,
            told_terms: (Vec::new(), None),
            output: Output::default(),
            flows: None,
            fates: Vec::new(),
            events: VecDeque::new(),
            is_connected: false,
            is_draining: false,
            silence: Silence::new(now),
            rescue_at: now,
            amplification: Amplification::default(),
            first_id: None,
            closed: None,
            farewell: None,
            guest: None,
        }
    }

    // ---- what the application does

    /// Queues a message: it arrives once, after all messages before it. As many may be queued as the caller
    /// likes; see [`Connection::has_room`].
    pub fn send_message(&mut self, message: Bytes) -> Result<(), RecordTooLarge> {
        let record = Record { object: MESSAGES, offset: self.messages_sent, data: message };
        self.lanes.channel_mut(ChannelId::Messages).queue(record)?;
        self.messages_sent += 1;
        Ok(())
    }

    /// The next message of the peer, if it has come.
    pub fn take_message(&mut self) -> Option<Bytes> {
        let record = self.lanes.channel_mut(ChannelId::Messages).take_at(self.messages_taken)?;
        self.messages_taken += 1;
        Some(record.data)
    }

    /// Queues a record: it arrives once, before or after others.
    pub fn send_record(&mut self, record: Record) -> Result<(), RecordTooLarge> {
        self.lanes.channel_mut(ChannelId::Bulk).queue(record)
    }

    /// The next record that is complete.
    pub fn take_record(&mut self) -> Option<Record> {
        self.lanes.channel_mut(ChannelId::Bulk).take()
    }

    /// Whether more should be queued on a channel now. Where not, [`Event::Writable`] follows.
    pub fn has_room(&mut self, channel: ChannelId) -> bool {
        let has_room = self.lanes.channel(channel).sender.has_room();
        self.full[channel as usize] = !has_room;
        has_room
    }

    /// Whether nothing of what was queued on a channel waits to be sent. What is queued then, nobody sends before
    /// the next [`Connection::poll_transmit`].
    pub fn is_all_sent(&self, channel: ChannelId) -> bool {
        self.lanes.channel(channel).sender.unsent() == 0
    }

    /// Whether what waits on a channel waits for the peer's credit alone.
    pub fn is_blocked(&self, channel: ChannelId) -> bool {
        self.lanes.channel(channel).sender.is_blocked()
    }

    /// Whether the peer is to be told on a channel that it may send more.
    pub fn is_credit_due(&self, channel: ChannelId) -> bool {
        self.lanes.channel(channel).is_credit_due()
    }

    /// Whether all that was queued on a channel has been acknowledged.
    pub fn is_flushed(&self, channel: ChannelId) -> bool {
        self.lanes.channel(channel).sender.is_idle()
    }

    /// The bytes received on a channel, each counted once, taken or not.
    pub fn received_bytes(&self, channel: ChannelId) -> u64 {
        self.lanes.channel(channel).received_bytes()
    }

    /// The stack's connection, for its streams.
    pub fn quic(&mut self) -> &mut noq_proto::Connection {
        self.output.look_again();
        &mut self.quic
    }

    /// Fills `output` with what only the two ends of this connection know [RFC5705 §4].
    pub fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        self.quic.crypto_session().export_keying_material(output, label, context)
    }

    /// The peer has proved itself: it may send as much as any other.
    pub fn trust(&mut self, now: Instant) {
        self.guest = None;
        trust(&mut self.quic, now);
        self.output.look_again();
        for id in ChannelId::ALL {
            self.lanes.channel_mut(id).set_window(Trust::Full.window(id));
        }
    }

    /// Whether the handshake is complete.
    pub fn is_connected(&self) -> bool {
        self.is_connected
    }

    /// Whether nobody is left to be told that the connection ended: the peer knows, or is gone.
    pub fn is_draining(&self) -> bool {
        self.is_draining || self.quic.is_drained()
    }

    /// How many datagrams have come.
    pub fn datagrams_received(&mut self) -> u64 {
        self.quic.stats().udp_rx.datagrams
    }

    /// Says what no end may say: that a message of 16 MB begins.
    #[cfg(feature = "simulation")]
    pub fn break_channel(&mut self) {
        // A fragment of the messages: a record's number, the length of its body, and where in it the data begins.
        let datagram = Bytes::from_static(b"\x22\0\0\0\0\xff\xff\xff\0\0\0x");
        let paths: Vec<_> = self.policy.iter().flat_map(Policy::open_paths).filter_map(|(_, path)| path).collect();
        paths.into_iter().for_each(|path| self.output.say_on(path, datagram.clone()));
    }

    // ---- what the host does

    /// Sets the protocol of a connection that has just begun.
    pub(crate) fn speak(&mut self, application: Application) {
        self.application = application;
        self.output.is_mute = !application.is_fairpath();
    }

    /// The id that the first packet of this end is addressed to.
    pub(crate) fn begin_with(&mut self, first_id: ConnectionId) {
        self.first_id = Some(first_id);
    }

    /// The peer is a guest.
    pub(crate) fn be_counted(&mut self, guest: Counted) {
        self.guest = Some(guest);
    }

    /// Whether a Retry packet answers the first packet of this end.
    fn expects(&self, retry: &[u8]) -> bool {
        self.first_id.is_some_and(|id| forged::is_of_server(self.quic.crypto_session(), id, retry))
    }

    /// From now on this end opens paths, on the pairs among `candidates`. The connection was made on `first`.
    pub fn open_paths(&mut self, candidates: Candidates, first: &Pair, now: Instant) {
        let (engine, application) = (self.engine.clone(), self.application);
        let (policy, mut live) = self.policy_and_live(now);
        *policy = Some(Policy::opener(engine, candidates, first, &mut live, now).speaking(application));
    }

    /// Closes the path on a pair, which stays closed at this end; an end that opens paths may open it again.
    /// False where there is none, or no other.
    pub fn close_path(&mut self, local: IpAddr, remote: SocketAddr, now: Instant) -> bool {
        self.with_policy(now, |policy, live| policy.shut(live, local, remote, now)).unwrap_or(false)
    }

    /// Closes the paths from an address here for good, but for the last of the connection, and tells the peer not to
    /// open them again.
    pub fn shut_address(&mut self, local: IpAddr, why: &str, now: Instant) {
        self.with_policy(now, |policy, live| policy.shut_address(live, local, why, now));
    }

    /// Keeps data off the path on a pair as long as another works, or no longer does so, and tells the peer.
    /// False where no such pair is known.
    pub fn set_path_backup(&mut self, local: IpAddr, remote: SocketAddr, backup: bool, now: Instant) -> bool {
        self.with_policy(now, |policy, live| policy.keep_back(live, local, remote, backup, now)).unwrap_or(false)
    }

    /// A person at this end has changed terms of paths: `changes` is all that they have changed so far. The peer is told.
    pub fn change_terms(&mut self, changes: TermsChanges, now: Instant) {
        match &mut self.policy {
            Some(policy) => policy.change_terms(changes, now),
            // Paths are named later.
            None => self.engine.with(now, |engine, _| engine.change_terms(changes)),
        }
        self.output.look_again();
    }

    /// The addresses here.
    pub fn set_interfaces(&mut self, interfaces: Interfaces) {
        self.interfaces = interfaces;
    }

    /// The interfaces that are usable now, for an end that opens paths. `absence` says why an address in use is
    /// not there any more.
    pub fn on_interfaces(
        &mut self,
        found: &[Interface],
        absence: impl Fn(&str, IpAddr) -> Option<String>,
        now: Instant,
    ) {
        self.with_policy(now, |policy, live| {
            policy.on_addresses(live, absence, now);
            policy.on_interfaces(found, now);
        });
    }

    /// The addresses at which peers reach this end have changed to these: the peer is told.
    pub fn announce(&mut self, addresses: &[SocketAddr], now: Instant) {
        self.announcement = Some(Announcement::new(peer_addresses::write(addresses), now));
    }

    /// The addresses at which the peer may be reached, for an end that opens paths: those it was given, and those that
    /// the peer has told of since.
    pub fn peer_addresses(&self) -> Vec<SocketAddr> {
        self.policy.as_ref().map(|policy| policy.peer_addresses().to_vec()).unwrap_or_default()
    }

    /// The pairs to ask now whether anything answers there.
    pub fn questions(&mut self, now: Instant) -> Vec<Pair> {
        self.policy.as_mut().map(|policy| policy.questions(now)).unwrap_or_default()
    }

    /// The result of asking whether the peer can be reached between these addresses.
    pub fn on_answer(&mut self, local: IpAddr, remote: SocketAddr, answer: Result<(), WhyNot>) {
        if let Some(policy) = &mut self.policy {
            policy.on_answer(local, remote, answer);
        }
    }

    /// Every pair of addresses that has carried a path, in the order of first use. How its socket is bound,
    /// the host adds.
    pub fn paths(&self) -> Vec<PathReport> {
        let slots = self.policy.as_ref().map(Policy::slots).unwrap_or_default();
        slots.iter().filter(|slot| slot.was_ever_opened()).map(|slot| slot.report()).collect()
    }

    /// The addresses here that pairs in use or wanted begin at.
    pub fn local_addresses(&self) -> Vec<IpAddr> {
        let slots = self.policy.as_ref().map(Policy::slots).unwrap_or_default();
        slots.iter().map(|slot| slot.local()).collect()
    }

    /// Brings [`Connection::paths`] up to date.
    pub fn measure(&mut self, now: Instant) {
        self.with_policy(now, |policy, live| policy.measure(live, now));
    }

    /// The pairs of addresses that were tried, with their outcomes.
    pub fn tried(&self) -> &[Tried] {
        self.policy.as_ref().map(Policy::tried).unwrap_or_default()
    }

    /// Looks at the engine.
    pub fn with_engine<T>(&self, now: Instant, look: impl FnOnce(&mut Engine, Timestamp) -> T) -> T {
        self.engine.with(now, look)
    }

    /// The engine's state of each path.
    pub fn snapshots(&self, now: Instant) -> Vec<PathSnapshot> {
        self.engine.with(now, |engine, at| engine.snapshots(at).collect())
    }

    /// When [`Connection::handle_timeout`] is to be called.
    pub fn next_timeout(&self, now: Instant) -> Option<Instant> {
        let quic = self.quic.poll_timeout();
        if self.closed.is_some() {
            return quic.into_iter().chain(self.farewell.as_ref().map(Farewell::next)).min();
        }
        let look = self.policy.is_some().then_some(self.look_at);
        let delays = self.is_connected.then(|| self.one_way.next_timeout(now)).flatten();
        let paced = if self.output.is_held_back || self.are_flows_held_back() { self.paced_until(now) } else { None };
        let due = quic.into_iter().chain(look).chain(delays).chain(paced).chain(self.engine.loss_due());
        let asked = self.engine.probe_due().map(|(at, _)| at);
        due.chain(self.next_of_flows(now)).chain(asked).min()
    }

    fn paced_until(&self, now: Instant) -> Option<Instant> {
        let at = self.engine.with(now, |engine, at| engine.paced_until(at))?;
        self.engine.instant(at)
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.quic.poll_timeout().is_some_and(|at| at <= now) {
            self.quic.handle_timeout(now);
            self.output.look_again();
        }
        self.engine.give_up_late(now);
        self.absorb(now);
        if self.closed.is_some() {
            return self.bid_farewell(now);
        }
        if self.policy.is_some() && self.look_at <= now {
            self.look_at = now + LOOK_EVERY;
            self.output.is_sweep_due = true;
            self.end_if_silent(now);
            self.with_policy(now, |policy, live| policy.look(live, now));
            self.give_receipts(now);
            self.tell_addresses(now);
            self.tell_terms(now);
            self.size_windows(now);
            self.rescue_streams(now);
        }
        if self.is_connected && self.one_way.next_timeout(now).is_some_and(|at| at <= now) {
            let room = self.quic.datagrams().max_size().unwrap_or(0);
            let said = self.one_way.say(room, now);
            said.into_iter().for_each(|datagram| self.output.say(datagram));
        }
        self.probe(now);
        self.drive_flows(now);
    }

    /// The oldest event that was not polled yet.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front().or_else(|| self.lanes.streams.poll_event().map(Event::Streams))
    }

    /// Whether nothing is left to do for it, nor to be told of it.
    pub fn is_over(&self) -> bool {
        self.quic.is_drained() && self.events.is_empty()
    }

    /// Whether it is of use to know exactly when datagrams come.
    pub fn notes_arrivals(&self, now: Instant) -> bool {
        self.one_way.is_reporting(now)
    }

    /// These datagrams left at `left`, after [`Connection::poll_transmit`] had made them; `None`: nobody knows when. A host
    /// that may be interrupted between the two says so before it hands over what came since, or what it waited for counts
    /// as a delay of the network.
    pub fn note_left<'a>(&mut self, datagrams: impl Iterator<Item = &'a [u8]>, left: Option<Instant>) {
        self.one_way.on_left(datagrams, left);
    }

    /// Whether the stack knows nothing of it any more.
    pub fn is_drained(&self) -> bool {
        self.quic.is_drained()
    }

    // ---- inside

    /// The policy, and what it acts on.
    fn policy_and_live(&mut self, now: Instant) -> (&mut Option<Policy>, Live<'_>) {
        let has_flows = self.flows.is_some();
        let Self { quic, policy, interfaces, primary, receipts, output, lanes, .. } = self;
        (policy, Live { quic, interfaces, primary: *primary, receipts, output, lanes, has_flows, now })
    }

    fn with_policy<T>(&mut self, now: Instant, act: impl FnOnce(&mut Policy, &mut Live<'_>) -> T) -> Option<T> {
        let (policy, mut live) = self.policy_and_live(now);
        let policy = policy.as_mut()?;
        live.output.look_again();
        let done = act(policy, &mut live);
        let notices = policy.take_notices();
        self.events.extend(notices.into_iter().map(Event::Notice));
        Some(done)
    }

    /// Says on every path at which addresses this end is reached now, where they changed.
    fn tell_addresses(&mut self, now: Instant) {
        if let Some(said) = self.announcement.as_mut().and_then(|announcement| announcement.say(now)) {
            self.tell_on_all_paths(&said);
        }
    }

    /// Says on every path what a person at this end has said of each, where that or the paths have changed.
    fn tell_terms(&mut self, now: Instant) {
        let Some(policy) = self.policy.as_ref().filter(|_| self.application.is_fairpath()) else { return };
        let open = policy.open_paths().filter_map(|(id, path)| Some((id, path?)));
        let terms: Vec<(PathId, Terms)> = self
            .engine
            .with(now, |engine, _| open.filter_map(|(id, path)| Some((id, engine.own_terms(path)?))).collect());
        let (told, announcement) = &mut self.told_terms;
        if *told != terms {
            *announcement = Some(Announcement::new(peer_terms::write(&terms), now));
            *told = terms;
        }
        if let Some(said) = announcement.as_mut().and_then(|announcement| announcement.say(now)) {
            self.tell_on_all_paths(&said);
        }
    }

    fn tell_on_all_paths(&mut self, said: &Bytes) {
        let Some(policy) = &self.policy else { return };
        for path in policy.open_paths().filter_map(|(_, path)| path) {
            self.output.add_on(path, said.clone());
        }
    }

    /// Says on every path what came on each, while that is of use.
    fn give_receipts(&mut self, now: Instant) {
        let Some(policy) = &self.policy else { return };
        if now < self.receipt_at || !policy.is_alert(now) {
            return;
        }
        self.receipt_at = now + receipts::EVERY;
        let open: Vec<(PathId, Option<EnginePath>)> = policy.open_paths().collect();
        let counts: Vec<(PathId, u64)> =
            open.iter().filter_map(|(id, _)| Some((*id, self.quic.path_stats(*id)?.udp_rx.datagrams))).collect();
        let receipt = receipts::write(&counts);
        for (id, path) in open.into_iter().filter_map(|(id, path)| Some((id, path?))) {
            // An address translator may have given this end another port: the peer may only ask there whether this end is
            // there once enough has come.
            let is_silent = counts.iter().any(|count| count.0 == id && self.receipted.contains(count));
            let is_padded = is_silent && !self.is_server && self.bears_padding(path, now);
            let receipt = if is_padded { receipts::padded(&receipt) } else { receipt.clone() };
            self.output.say_on(path, receipt);
        }
        self.receipted = counts;
    }

    /// Whether a padded receipt may go on a path though nothing else may: not for ever, where nothing is acknowledged.
    fn bears_padding(&self, path: EnginePath, now: Instant) -> bool {
        let snapshot = self.engine.with(now, |engine, at| engine.snapshot(path, at));
        snapshot.is_none_or(|path| path.in_flight < path.window + receipts::PADDED_BEYOND)
    }
}

/// The first byte of a datagram of the application.
const APPLICATION: u8 = 0;
