//! The connection to the far end: made, watched, and made again where it is lost.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fairpath::{
    Allowance, Builder, Connection, Endpoint, PathControl, PathState, PathTerms, RecvStream, SendStream, internal,
};
use fairpath_quic::Pauses;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use super::NearError;
use super::NearNotice;
use super::arrival::{Arrivals, arrive};
use super::forward::{Protocol, Reverse};
use super::state::{JoinError, Joined, NearState, enter};
use crate::far::ALPN;
use crate::greeting::{self, Denial};
use crate::key::DeviceKey;
use crate::packets::{Association, Opener, Packets};
use crate::refusal::{Refusal, RefusalKind};
use crate::snapshot::{End, Entry, Kind, Ledger, Peer, Snapshot};
use crate::target::Target;
use crate::wire::{self, Purpose};

/// How long programs wait for a connection that is being made.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long the far end may take to connect to a target.
const CONNECTED: Duration = Duration::from_secs(60);

/// How long packets of programs that wait may still leave where this end is closed.
const LEFT: Duration = Duration::from_millis(500);

/// How often is looked whether they have.
const LOOK: Duration = Duration::from_millis(1);

/// The interval of looks whether the far end has told of further addresses.
const ADDRESSES: Duration = Duration::from_millis(500);

/// The pause where the far end does not let this device in. Longer than [`Pauses`]: a person has to change that there,
/// and each try costs that end a handshake.
const PAUSE_DENIED: Duration = Duration::from_secs(30);

/// How the connection to the far end is doing.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum LinkState {
    /// It is being made. Why the last one is not there any more, or the last attempt failed, in words.
    Connecting(Option<String>),
    /// It is there.
    Up(Connection),
    /// It was ended at this end.
    Closed,
}

/// The ways that the connection may take.
#[derive(Debug)]
pub(super) struct Ways {
    /// Interfaces or addresses that paths start from; empty: all usable ones.
    pub(super) via: Vec<String>,
    /// The terms of their paths.
    pub(super) terms: Vec<(String, PathTerms)>,
    /// How much may go over which of them.
    pub(super) allowances: Vec<Allowance>,
    /// Changes their terms while the connection is there, and for those to come.
    pub(super) control: PathControl,
}

#[derive(Debug)]
pub(crate) struct Link {
    state: watch::Sender<LinkState>,
    /// The packets of the connection that is there.
    packets: Mutex<Option<(Connection, Arc<Packets>)>>,
    notices: mpsc::Sender<NearNotice>,
    /// The last refusal of a forward that was told.
    refused: Mutex<String>,
    /// Why the last try failed, as it was told.
    failed: Mutex<Option<NearNotice>>,
    /// The connections of programs.
    pub(crate) ledger: Arc<Ledger>,
}

impl Link {
    /// Begins to connect to the far end that the state names.
    pub(crate) fn begin(
        state: NearState,
        ways: Ways,
        reverses: Arc<[Reverse]>,
        notices: mpsc::Sender<NearNotice>,
    ) -> Result<Arc<Self>, NearError> {
        let (key, joined) = (state.key()?, state.joined()?);
        let builder = Endpoint::builder()
            .alpn(ALPN)
            .guard(joined.guard_key()?)
            .via(ways.via)
            .without_tunnels()
            .control(ways.control);
        let builder = ways.allowances.into_iter().fold(builder, Builder::allowance);
        let builder = ways.terms.into_iter().fold(builder, |builder, (of, terms)| builder.path(of, terms));
        let endpoint = builder.bind()?;
        joined.fingerprint()?;
        let link = Arc::new(Self {
            state: watch::Sender::new(LinkState::Connecting(None)),
            packets: Mutex::default(),
            notices,
            refused: Mutex::default(),
            failed: Mutex::default(),
            ledger: Arc::default(),
        });
        tokio::spawn(Keeper { link: link.clone(), endpoint, state, key: Arc::new(key), joined, reverses }.run());
        Ok(link)
    }

    pub(crate) fn state(&self) -> watch::Receiver<LinkState> {
        self.state.subscribe()
    }

    pub(crate) async fn close(&self) {
        let last = self.state.send_replace(LinkState::Closed);
        if let LinkState::Up(connection) = last {
            let left = async {
                while internal::connection(&connection).has_datagrams() {
                    tokio::time::sleep(LOOK).await;
                }
            };
            let _ = timeout(LEFT, left).await;
            connection.close(0, "the near end has ended").await;
        }
    }

    /// Notes a connection of a program.
    pub(crate) fn enter(&self, target: &Target, kind: Kind) -> Entry {
        self.ledger.enter("", target, kind)
    }

    /// This end at this moment.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let name = "far end".to_owned();
        let peer = match &*self.state.borrow() {
            LinkState::Up(connection) => Peer::of(name, connection),
            LinkState::Connecting(None) => Peer::without_paths(name, "connecting"),
            LinkState::Connecting(Some(why)) => Peer::without_paths(name, &format!("connecting again: {why}")),
            LinkState::Closed => Peer::without_paths(name, "ended"),
        };
        self.ledger.snapshot(End::Proxy, vec![peer])
    }

    /// The connection. Waits for one that is being made, for a while.
    async fn connection(&self) -> Result<Connection, Refusal> {
        let mut state = self.state.subscribe();
        let is_settled = |state: &LinkState| !matches!(state, LinkState::Connecting(_));
        let settled = timeout(PATIENCE, state.wait_for(is_settled)).await;
        let why = match settled {
            Ok(Ok(settled)) => match &*settled {
                LinkState::Up(connection) => return Ok(connection.clone()),
                _ => None,
            },
            _ => None,
        };
        let why = why.or(match &*self.state.borrow() {
            LinkState::Connecting(why) => why.clone(),
            _ => Some("the near end is ending".to_owned()),
        });
        let words = format!("no connection to the far end: {}", why.as_deref().unwrap_or("it does not answer"));
        Err(Refusal::new(RefusalKind::NotConnected, words))
    }

    /// Opens a stream for this purpose. The answer is still to come.
    pub(crate) async fn open(&self, purpose: Purpose, target: &Target) -> Result<(SendStream, RecvStream), Refusal> {
        Self::open_on(&self.connection().await?, purpose, target, None).await
    }

    /// The same on a connection, with a number behind the target where the purpose has one.
    pub(super) async fn open_on(
        connection: &Connection,
        purpose: Purpose,
        target: &Target,
        id: Option<u32>,
    ) -> Result<(SendStream, RecvStream), Refusal> {
        let lost = |error: String| Refusal::new(RefusalKind::NotConnected, format!("the far end is gone: {error}"));
        let many = |_| Refusal::new(RefusalKind::TooMany, "the far end takes no more connections of this device");
        let opened = timeout(PATIENCE, connection.open_bi()).await.map_err(many)?;
        let (mut send, recv) = opened.map_err(|error| lost(error.to_string()))?;
        let mut words = wire::header(purpose, target);
        words.extend(id.into_iter().flat_map(u32::to_be_bytes));
        send.write_all(&words).await.map_err(|error| lost(error.to_string()))?;
        Ok((send, recv))
    }

    /// A stream that the far end has joined to a TCP connection with this target.
    pub(crate) async fn connect(&self, target: &Target) -> Result<(SendStream, RecvStream), Refusal> {
        let (send, mut recv) = self.open(Purpose::Connect, target).await?;
        Self::answered(&mut recv, target).await?;
        Ok((send, recv))
    }

    /// Packets of one program to this target, or to any; they end with the stream.
    pub(crate) async fn associate(
        &self,
        target: Option<&Target>,
    ) -> Result<(Association, (SendStream, RecvStream)), Refusal> {
        self.connection().await?;
        let now = self.packets.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let gone = || Refusal::new(RefusalKind::NotConnected, "the far end is gone");
        let (connection, packets) = now.ok_or_else(gone)?;
        let many = || Refusal::new(RefusalKind::TooMany, "there are too many associations");
        let association = packets.open_new(Opener::Near).ok_or_else(many)?;
        let any = Target::from(SocketAddr::from(([0, 0, 0, 0], 0)));
        let target = target.unwrap_or(&any);
        let mut stream = Self::open_on(&connection, Purpose::Packets, target, Some(association.id())).await?;
        Self::answered(&mut stream.1, target).await?;
        Ok((association, stream))
    }

    /// Asks the far end to listen at a port, whose connections come with this number.
    pub(crate) async fn listen(&self, id: u32, port: &Reverse) -> Result<(SendStream, RecvStream), Refusal> {
        let target = Target::from(port.listen);
        let purpose = match port.protocol {
            Protocol::Tcp => Purpose::Reverse,
            Protocol::Udp => Purpose::ReversePackets,
        };
        let mut stream = Self::open_on(&self.connection().await?, purpose, &target, Some(id)).await?;
        Self::answered(&mut stream.1, &target).await?;
        Ok(stream)
    }

    /// Tells why a forward does not work. The same words again and again would tell nothing new.
    pub(crate) fn tell_refused(&self, of: impl std::fmt::Display, refusal: &Refusal) {
        let words = format!("forward {of}: {refusal}");
        let mut last = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if *last != words {
            self.tell(NearNotice::Forward(words.clone()));
            *last = words;
        }
    }

    fn tell(&self, notice: NearNotice) {
        let _ = self.notices.try_send(notice);
    }

    /// Tells why the far end was not reached. The same words again and again would tell nothing new.
    fn fail(&self, words: String, notice: NearNotice) {
        let before = self.failed.lock().unwrap_or_else(PoisonError::into_inner).replace(notice.clone());
        if before.as_ref() != Some(&notice) {
            self.tell(notice);
        }
        self.become_now(LinkState::Connecting(Some(words)));
    }

    /// Another state, unless this end was closed meanwhile.
    fn become_now(&self, state: LinkState) -> bool {
        self.state.send_if_modified(|now| match now {
            LinkState::Closed => false,
            _ => {
                *now = state;
                true
            }
        })
    }

    /// Waits for the far end's answer on a stream that was opened.
    pub(crate) async fn answered(recv: &mut RecvStream, target: &Target) -> Result<(), Refusal> {
        let late = |_| Refusal::new(RefusalKind::TimedOut, format!("{target} does not answer"));
        timeout(CONNECTED, wire::read_answer(recv)).await.map_err(late)?
    }
}

/// Keeps the connection.
struct Keeper {
    link: Arc<Link>,
    endpoint: Endpoint,
    state: NearState,
    key: Arc<DeviceKey>,
    joined: Joined,
    reverses: Arc<[Reverse]>,
}

/// The far end's word on this device: a connection on which it was let in, or why it was not.
type Answer = Result<(Connection, Joined), Denial>;

impl Keeper {
    async fn run(mut self) {
        let mut state = self.link.state();
        loop {
            let answer = tokio::select! {
                answer = Pauses::DEFAULT.until(|| self.attempt()) => answer,
                _ = state.wait_for(|state| matches!(state, LinkState::Closed)) => return,
            };
            match answer {
                Ok((connection, joined)) => {
                    self.note(joined);
                    self.link.failed.lock().unwrap_or_else(PoisonError::into_inner).take();
                    self.tell(NearNotice::Connected(self.joined.name.clone()));
                    let packets = Packets::begin(connection.clone());
                    let now = Some((connection.clone(), packets.clone()));
                    *self.link.packets.lock().unwrap_or_else(PoisonError::into_inner) = now;
                    if !self.link.become_now(LinkState::Up(connection.clone())) {
                        connection.close(0, "the near end has ended").await;
                        return;
                    }
                    self.watch(&connection, packets).await;
                }
                Err(denial) => {
                    self.link.fail(denial.to_string(), NearNotice::Denied(denial));
                    tokio::time::sleep(PAUSE_DENIED).await;
                }
            }
        }
    }

    /// One try; `None` where the far end did not answer.
    fn attempt(&self) -> impl Future<Output = Option<Answer>> + use<> {
        let (endpoint, key, link) = (self.endpoint.clone(), self.key.clone(), self.link.clone());
        let (addresses, fingerprint) = (self.joined.addresses.clone(), self.joined.fingerprint());
        let tried = async move {
            let fingerprint = fingerprint?;
            let connection = endpoint.connect(addresses, fingerprint).await?;
            let greeting = greeting::greet(&connection, &key, None);
            let admitted = enter(&connection, greeting).await?;
            Ok((connection, Joined::of(fingerprint, admitted)))
        };
        async move {
            match tried.await {
                Ok(found) => Some(Ok(found)),
                Err(JoinError::Denied(denial)) => Some(Err(denial)),
                Err(error) => {
                    let words = error.to_string();
                    link.fail(words.clone(), NearNotice::Failed(words));
                    None
                }
            }
        }
    }

    /// Keeps the addresses that the far end has now, and those that reached it before.
    fn note(&mut self, mut now: Joined) {
        if now.addresses.is_empty() {
            now.addresses = self.joined.addresses.clone();
        }
        let before = self.joined.addresses.iter().filter(|address| !now.addresses.contains(address)).take(8);
        let before: Vec<_> = before.copied().collect();
        now.addresses.extend(before);
        let is_news =
            now.addresses != self.joined.addresses || now.name != self.joined.name || now.guard != self.joined.guard;
        if is_news {
            // A state that cannot be written is as it was at the next start.
            let _ = self.state.note_joined(&now);
            self.joined = now;
        }
    }

    /// Keeps the addresses that the far end has told of since it was connected to.
    fn note_addresses(&mut self, connection: &Connection) {
        let mut new = internal::connection(connection).peer_addresses();
        new.retain(|address| !self.joined.addresses.contains(address));
        if !new.is_empty() {
            let addresses = [&self.joined.addresses[..], &new[..]].concat();
            self.note(Joined { addresses, ..self.joined.clone() });
            self.tell(NearNotice::Addresses(new));
        }
    }

    /// Tells what becomes of the paths, until the connection has ended.
    async fn watch(&mut self, connection: &Connection, packets: Arc<Packets>) {
        let (reverses, ledger) = (self.reverses.clone(), self.link.ledger.clone());
        let arrivals = Arrivals { reverses, packets, ledger };
        let mut events = connection.events();
        let mut look = tokio::time::interval(ADDRESSES);
        // Those that were opened before anybody could hear of it.
        for path in connection.paths().iter().filter(|path| path.state == PathState::Open) {
            self.tell(NearNotice::Path(format!("{}: path open", path.name)));
        }
        let reason = loop {
            let event = tokio::select! {
                event = events.next() => event,
                Ok(stream) = connection.accept_bi() => {
                    tokio::spawn(arrive(arrivals.clone(), stream));
                    continue;
                }
                _ = look.tick() => {
                    self.note_addresses(connection);
                    continue;
                }
            };
            match event {
                Some(fairpath::Event::Closed(reason)) => break reason,
                Some(event) => self.tell(NearNotice::Path(event.to_string())),
                None => break connection.closed().await,
            }
        };
        self.link.packets.lock().unwrap_or_else(PoisonError::into_inner).take();
        let words = match Denial::of(&reason) {
            Some(denial) => denial.to_string(),
            None => reason.to_string(),
        };
        if self.link.become_now(LinkState::Connecting(Some(words.clone()))) {
            self.tell(NearNotice::Lost(words));
        }
    }

    fn tell(&self, notice: NearNotice) {
        self.link.tell(notice);
    }
}
