//! A connection over several paths, as the application has it.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fairpath_engine::{ByteCount, PairVerdict, PathSnapshot, Timestamp};
use fairpath_quic_core::bulk::{Record, RecordTooLarge};
use fairpath_quic_core::flows::{self, Config, Counts, Delivered, FlowId, Status};
use fairpath_quic_core::pairs::Tried;
use fairpath_quic_core::{ChannelId, CongestionMark, Connection as Core, PathNotice, PathReport, PathState};
use noq_proto::ConnectionError;
use noq_proto::crypto::ExportKeyingMaterialError;
use tokio::sync::{Notify, broadcast};

use crate::clock;
use crate::driver::{Awaited, Handle, Link};

/// Why a record was not taken.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SendError {
    /// The connection ended.
    #[error("the connection ended: {0}")]
    Connection(#[from] ConnectionError),
    /// It has more data than a record may have. The caller is at fault.
    #[error(transparent)]
    RecordTooLarge(#[from] RecordTooLarge),
}

/// How long the end of a connection is repeated to a peer that does not confirm it. Three probe timeouts
/// pass in it on any link of this earth, and that is how long QUIC repeats it [RFC9000 §10.2].
pub(crate) const FAREWELL: Duration = Duration::from_secs(2);

/// A connection whose paths are opened, watched and reopened behind the scenes. This is a handle to it; when
/// the last one is dropped the connection is closed with code 0.
#[derive(Clone, Debug)]
pub struct Connection(Arc<Handle>);

/// Tries until something comes of it: at once, and whenever `came` says so. Nothing is lost where it is given up.
pub(crate) async fn until<T>(link: &Link, came: &Notify, mut attempt: impl FnMut() -> Option<T>) -> T {
    // Yield to other tasks even if every attempt succeeds.
    tokio::task::coop::consume_budget().await;
    loop {
        // From here on nothing is missed.
        let notified = came.notified();
        link.core.released().await;
        if let Some(done) = attempt() {
            return done;
        }
        notified.await;
    }
}

impl Connection {
    pub(crate) fn new(handle: Arc<Handle>) -> Self {
        Self(handle)
    }

    pub(crate) fn link(&self) -> &Arc<Link> {
        &self.0.link
    }

    pub(crate) fn handle(&self) -> &Arc<Handle> {
        &self.0
    }

    /// Looks at the connection.
    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut Core, Instant) -> T) -> T {
        self.0.link.core.with(act)
    }

    /// Has its task look.
    pub(crate) fn nudge(&self) {
        self.0.link.core.nudge();
    }

    /// The same for something that ends with the connection.
    fn attempt<T, E: From<ConnectionError>>(
        &self,
        act: impl FnOnce(&mut Core) -> Option<Result<T, E>>,
    ) -> Option<Result<T, E>> {
        self.with(|connection, _| {
            act(connection).or_else(|| connection.close_reason().map(|reason| Err(reason.clone().into())))
        })
    }

    /// Waits for the end of the handshake.
    pub(crate) async fn established(&self) -> Result<(), ConnectionError> {
        let connected = |connection: &mut Core| connection.is_connected().then_some(Ok(()));
        until(&self.0.link, &self.0.link.connected, || self.attempt(connected)).await
    }

    // ---- channels

    /// Queues a message, which arrives once, after all messages before it. Waits while there is no room.
    pub async fn send_message(&self, message: Bytes) -> Result<(), SendError> {
        self.queue(ChannelId::Messages, |connection| connection.send_message(message.clone())).await
    }

    /// The next message of the peer. What came before the connection was closed is handed out first. May be
    /// given up at any time, and nothing is lost.
    pub async fn recv_message(&self) -> Result<Bytes, ConnectionError> {
        self.take(ChannelId::Messages, Core::take_message).await
    }

    /// Queues a record, which arrives once, before or after others. Waits while there is no room.
    pub async fn send_record(&self, record: Record) -> Result<(), SendError> {
        self.queue(ChannelId::Bulk, |connection| connection.send_record(record.clone())).await
    }

    /// The next record that is complete. What came before the connection was closed is handed out first. May
    /// be given up at any time, and nothing is lost.
    pub async fn recv_record(&self) -> Result<Record, ConnectionError> {
        self.take(ChannelId::Bulk, Core::take_record).await
    }

    async fn queue(
        &self,
        channel: ChannelId,
        queue: impl Fn(&mut Core) -> Result<(), RecordTooLarge>,
    ) -> Result<(), SendError> {
        let attempt = |connection: &mut Core| {
            let may = connection.close_reason().is_none() && connection.has_room(channel);
            let is_idle = connection.is_all_sent(channel);
            may.then(|| queue(connection).map(|()| is_idle).map_err(SendError::from))
        };
        // Where something waits already, the driver looks for more by itself.
        if until(&self.0.link, &self.0.link.writable[channel as usize], || self.attempt(attempt)).await? {
            self.nudge();
        }
        Ok(())
    }

    async fn take<T>(&self, channel: ChannelId, take: impl Fn(&mut Core) -> Option<T>) -> Result<T, ConnectionError> {
        let attempt = |connection: &mut Core| {
            let taken = take(connection)?;
            Some(Ok::<_, ConnectionError>((taken, connection.is_credit_due(channel))))
        };
        let (taken, is_credit_due) =
            until(&self.0.link, &self.0.link.readable[channel as usize], || self.attempt(attempt)).await?;
        if is_credit_due {
            self.nudge();
        }
        Ok(taken)
    }

    /// Waits until all that was queued on the channel is acknowledged.
    pub async fn flushed(&self, channel: ChannelId) -> Result<(), ConnectionError> {
        let awaited = &self.0.link.flushed[channel as usize];
        self.awaited(awaited, |connection| connection.is_flushed(channel).then_some(Ok(()))).await
    }

    /// Waits for something that the driver has to look for.
    pub(crate) async fn awaited<T>(
        &self,
        awaited: &Awaited,
        look: impl Fn(&mut Core) -> Option<Result<T, ConnectionError>>,
    ) -> Result<T, ConnectionError> {
        let attempt = |connection: &mut Core| {
            let done = look(connection);
            // Under the lock: the driver cannot have looked between.
            awaited.is_awaited.fetch_or(done.is_none(), Ordering::Relaxed);
            done
        };
        until(&self.0.link, &awaited.came, || self.attempt(attempt)).await
    }

    /// The bytes received on a channel, each counted once, taken or not.
    pub fn received_bytes(&self, channel: ChannelId) -> ByteCount {
        ByteCount::new(self.with(|connection, _| connection.received_bytes(channel)))
    }

    /// Queues a datagram, which arrives once or not at all: where they wait for long, some are dropped (CoDel). False where
    /// too many wait.
    pub fn send_datagram(&self, datagram: &[u8]) -> bool {
        self.queue_datagram(datagram, None)
    }

    /// The same for a datagram that is marked where another would be dropped.
    pub fn send_markable_datagram(&self, datagram: &[u8], mark: CongestionMark) -> bool {
        self.queue_datagram(datagram, Some(mark))
    }

    fn queue_datagram(&self, datagram: &[u8], mark: Option<CongestionMark>) -> bool {
        let is_queued = self.with(|connection, now| connection.send_datagram(datagram, mark, now));
        self.nudge();
        is_queued
    }

    /// Whether datagrams of the application wait to leave.
    pub fn has_datagrams(&self) -> bool {
        self.with(|connection, _| connection.has_datagrams())
    }

    /// The next datagram of the peer. Of those that nobody takes the oldest are dropped.
    pub async fn recv_datagram(&self) -> Result<Bytes, ConnectionError> {
        let link = &self.0.link;
        until(link, &link.datagram_came, || self.attempt(|_| link.take_datagram().map(Ok))).await
    }

    // ---- flows

    /// From now on packets of live flows may be sent and are taken in: as many flows as the peer has, too.
    pub fn begin_flows(&self, config: Config) {
        self.with(|connection, now| connection.begin_flows(config, now));
        self.nudge();
    }

    /// Queues a packet of a flow, which arrives by its deadline, once, or not at all. Those that are marked may leave
    /// twice.
    ///
    /// # Errors
    ///
    /// It is not taken then.
    pub fn send_packet(&self, flow: FlowId, packet: &[u8], marked: bool) -> Result<(), flows::SendError> {
        let queued = self.with(|connection, now| connection.send_packet(flow, packet, marked, now));
        self.nudge();
        queued
    }

    /// The next packet of the peer's flows that is to be handed out. May be given up at any time, and nothing is lost.
    pub async fn recv_packet(&self) -> Result<Delivered, ConnectionError> {
        let attempt = || {
            self.with(|connection, now| {
                let packet = connection.take_packet(now).map(Ok);
                if packet.is_none() {
                    // When the next is due the connection says only now, and the driver has to ask it.
                    self.nudge();
                }
                packet.or_else(|| connection.close_reason().map(|reason| Err(reason.clone())))
            })
        };
        until(&self.0.link, &self.0.link.packet_came, attempt).await
    }

    /// How long packets of flows may take that are sent from now on.
    pub fn set_flows_deadline(&self, deadline: Duration) {
        self.with(|connection, _| connection.set_flows_deadline(deadline));
    }

    /// How the flows go that are sent here, and what came of the peer's; `None` before [`Connection::begin_flows`].
    pub fn flows(&self) -> Option<(Status, Counts)> {
        self.with(|connection, _| connection.flows())
    }

    // ---- the end

    /// Ends the connection and tells the peer `code` and `reason`. What was not acknowledged may not arrive:
    /// see [`Connection::flushed`].
    pub fn close(&self, code: u32, reason: &str) {
        let reason = Bytes::copy_from_slice(reason.as_bytes());
        self.with(|connection, now| connection.close(code, reason, now));
        self.nudge();
    }

    /// As [`Connection::close`], and waits until the peer has confirmed it, at most two seconds. Meanwhile
    /// whatever the peer sends is answered with the end, so that one lost packet does not hide it.
    pub async fn end(&self, code: u32, reason: &str) {
        self.close(code, reason);
        let _ = tokio::time::timeout(FAREWELL, drained(&self.0.link)).await;
    }

    /// Why the connection ended; `None` while it is open.
    pub fn close_reason(&self) -> Option<ConnectionError> {
        close_reason(&self.0.link)
    }

    /// Waits for the end of the connection, and says why it ended.
    pub async fn closed(&self) -> ConnectionError {
        closed(&self.0.link).await
    }

    /// The same, without keeping the connection open meanwhile.
    pub fn on_closed(&self) -> impl Future<Output = ConnectionError> + Send + use<> {
        let link = self.0.link.clone();
        async move { closed(&link).await }
    }

    // ---- what is known of it

    /// Says to the peer what no end may say.
    #[cfg(feature = "simulation")]
    pub fn break_channel(&self) {
        self.with(|connection, _| connection.break_channel());
        self.nudge();
    }

    /// A view of it that does not keep it open, for observers in a simulation.
    #[cfg(feature = "simulation")]
    pub fn observer(&self) -> Observer {
        Observer(Arc::downgrade(&self.0))
    }

    /// The largest UDP payload that every path was found to carry, in bytes.
    pub fn datagram_max(&self) -> u16 {
        self.with(|connection, _| connection.quic().current_mtu())
    }

    /// How many UDP datagrams have come.
    pub fn datagrams_received(&self) -> u64 {
        self.with(|connection, _| connection.datagrams_received())
    }

    /// Fills `output` with bytes that both ends of this connection find for the same label and context, and
    /// nobody else (RFC 5705). Fails where too much is asked for.
    pub fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        self.with(|connection, _| connection.export_keying_material(output, label, context))
    }

    /// The peer has proved itself: it is no guest any more, which may hold little and has to leave for
    /// others (`ListenConfig::admission_key`). Does nothing on a connection that is none.
    pub fn welcome(&self) {
        self.0.shared.welcome(&self.0.link);
    }

    /// Every interface pair that has carried a path, in the order of first use, as it was when the paths
    /// were last looked at: up to a twentieth of a second ago.
    pub fn paths(&self) -> Vec<PathReport> {
        let reports = self.with(|connection, _| connection.paths());
        let binding = |report: PathReport| {
            let socket = report.local.and_then(|local| self.0.shared.sockets.of(local));
            PathReport { binding: socket.map(|socket| socket.binding), ..report }
        };
        reports.into_iter().map(binding).collect()
    }

    /// The same, as it is at this moment. A small transfer begins and ends between two looks.
    pub async fn paths_now(&self) -> Vec<PathReport> {
        self.with(|connection, now| connection.measure(now));
        self.paths()
    }

    /// The addresses at which the peer may be reached, for the end that connected: those it was given, and those that the
    /// peer has told of since.
    pub fn peer_addresses(&self) -> Vec<SocketAddr> {
        self.with(|connection, _| connection.peer_addresses())
    }

    /// Closes the path on a pair of addresses, which stays closed at this end; an end that opens paths may open it
    /// again. False where there is none, or no other.
    pub fn close_path(&self, local: IpAddr, remote: SocketAddr) -> bool {
        let is_closed = self.with(|connection, now| connection.close_path(local, remote, now));
        self.nudge();
        is_closed
    }

    /// The pairs of addresses that were tried, with their outcomes, in the order of the interfaces. Empty
    /// at the end that was connected to. Pairs that nobody had a reason to try are left out.
    pub fn tried(&self) -> Vec<Tried> {
        self.with(|connection, _| connection.tried().to_vec())
    }

    /// Subscribes to changes of the paths from now on.
    pub fn notices(&self) -> broadcast::Receiver<PathNotice> {
        self.0.link.notices.subscribe()
    }

    /// The engine's view of its paths, for a recorder, with the engine's time.
    pub fn snapshots(&self) -> (Timestamp, Vec<PathSnapshot>) {
        self.with(|connection, now| connection.with_engine(now, |engine, at| (at, engine.snapshots(at).collect())))
    }

    /// The evidence for the groups in which paths are coupled, pair by pair. Empty if the coupling is
    /// fixed. The times are the engine's.
    pub fn verdicts(&self) -> Vec<PairVerdict> {
        self.with(|connection, now| connection.with_engine(now, |engine, _| engine.pair_verdicts()))
    }

    /// Waits until `count` paths are open, at most for `patience`. False where that time ran out.
    pub async fn paths_open(&self, count: usize, patience: Duration) -> bool {
        let deadline = clock::now() + patience;
        while clock::now() < deadline {
            if self.paths().iter().filter(|path| path.state == PathState::Open).count() >= count {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        false
    }
}

/// A view of a connection that does not keep it open.
#[cfg(feature = "simulation")]
#[derive(Clone, Debug)]
pub struct Observer(std::sync::Weak<Handle>);

#[cfg(feature = "simulation")]
impl Observer {
    /// The data that the connection holds; `None` once it was dropped.
    pub fn held(&self) -> Option<fairpath_quic_core::HeldData> {
        Some(Connection(self.0.upgrade()?).with(|connection, _| connection.held()))
    }
}

fn close_reason(link: &Link) -> Option<ConnectionError> {
    link.core.with(|connection, _| connection.close_reason().cloned())
}

/// Waits for the end of a connection, and says why it ended.
pub(crate) async fn closed(link: &Link) -> ConnectionError {
    until(link, &link.closed, || close_reason(link)).await
}

/// Waits until the peer knows that the connection is closed, or nothing more is to be heard of it.
pub(crate) async fn drained(link: &Link) {
    let attempt = || {
        link.core.with(|connection, _| {
            let is_draining = connection.is_draining();
            link.drained.is_awaited.fetch_or(!is_draining, Ordering::Relaxed);
            is_draining.then_some(())
        })
    };
    until(link, &link.drained.came, attempt).await;
}
