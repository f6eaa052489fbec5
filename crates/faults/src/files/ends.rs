//! The processes: `fairpath send` and `fairpath recv` without the terminal.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use fairpath_quic::{
    ConnectConfig, Connection, Error, Fingerprint, Identity, ListenConfig, Listener, Machine, Observer, connect,
};
use fairpath_quic_core::{EngineConfig, HeldData};
use fairpath_transfer::{
    Consent, DeliveryEvent, Existing, GIVE_UP_AFTER, Lie, Limits, ReceiveConfig, ReceiveError, Received, Receiver,
    Resumption, Secret, Selection, SendError, Sender, SenderId, Sent,
};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// The secret of all tickets.
pub(super) const SECRET: Secret = Secret::from_bytes([42; 16]);

/// The port of the receiver.
pub(super) const PORT: u16 = 4433;

/// The connections of a process, for who looks on.
#[derive(Clone, Debug, Default)]
pub(super) struct Connections(Arc<Mutex<Vec<Observer>>>, Arc<AtomicUsize>);

impl Connections {
    fn note(&self, connection: &Connection) {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(connection.observer());
    }

    /// How many there have been.
    pub(super) fn count(&self) -> usize {
        self.1.load(Ordering::Relaxed)
    }

    /// Held data beyond what the windows allow, if there is any.
    pub(super) fn excess(&self) -> Option<HeldData> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|one| one.held().is_some());
        all.iter().filter_map(Observer::held).find(|held| !held.is_within(&HeldData::most()))
    }
}

/// Why a sender's process ended without having sent everything.
#[derive(Debug)]
pub(super) enum Unsent {
    /// No connection was made.
    Connect(Error),
    /// The transfer failed.
    Send(SendError),
}

/// The parameters of a sender.
#[derive(Debug)]
pub(super) struct Sending {
    pub(super) machine: Machine,
    pub(super) remotes: Vec<SocketAddr>,
    pub(super) fingerprint: Fingerprint,
    pub(super) files: PathBuf,
    pub(super) id: SenderId,
    pub(super) resumption: Resumption,
    pub(super) connections: Connections,
}

/// The sender's process.
pub(super) async fn send(sending: Sending) -> Result<Sent, Unsent> {
    let Sending { machine, remotes, fingerprint, files, id, resumption, connections } = sending;
    let selection = Selection::collect(&[files]).map_err(Unsent::Send)?;
    let admission_key = Some(SECRET.admission_key());
    let config = ConnectConfig {
        machine,
        admission_key,
        engine: EngineConfig::live(),
        ..ConnectConfig::new(remotes, fingerprint)
    };
    let mut connection = connect(config.clone()).await.map_err(Unsent::Connect)?;
    connections.note(&connection);
    let sender = Sender::simulated(selection, SECRET, id, resumption);
    let (tell, mut events) = mpsc::unbounded_channel();
    let delivering = sender.deliver(connection.clone(), &config, GIVE_UP_AFTER, &tell);
    tokio::pin!(delivering);
    let sent = loop {
        tokio::select! {
            biased;
            sent = &mut delivering => break sent,
            Some(event) = events.recv() => if let DeliveryEvent::Connected(next) = event {
                connections.note(&next);
                connection = next;
            },
        }
    };
    connection.end(0, "done").await;
    sent.map_err(Unsent::Send)
}

/// The parameters of a receiver.
#[derive(Debug)]
pub(super) struct Receiving {
    pub(super) machine: Machine,
    pub(super) identity: Identity,
    pub(super) directory: PathBuf,
    pub(super) connections: Connections,
    /// The files received so far, for observers.
    pub(super) received: Arc<Mutex<Vec<Received>>>,
    /// It lies, where it is to.
    pub(super) lie: Option<Lie>,
}

/// The receiver's process.
pub(super) async fn receive(receiving: Receiving) -> Result<(), ReceiveError> {
    let Receiving { machine, identity, directory, connections, received, lie } = receiving;
    let listener = Listener::bind(ListenConfig {
        listen: Some(SocketAddr::from(([0; 4], PORT))),
        via: Vec::new(),
        identity,
        engine: EngineConfig::live(),
        admission_key: Some(SECRET.admission_key()),
        machine,
        ..ListenConfig::new().expect("an identity")
    });
    let listener = listener.expect("addresses");
    if let Some(lie) = lie {
        return lies(&listener, lie).await;
    }
    let receiver = Arc::new(Receiver::simulated(ReceiveConfig {
        directory,
        existing: Existing::Overwrite,
        keep: false,
        secret: SECRET,
        limits: Limits { modes: true, ..Limits::default() },
        consent: Consent::always(),
    }));
    let result = desk(&listener, &receiver, &connections, &received).await;
    let (code, reason) = if result.is_ok() { (0, "done") } else { (1, "the receiver ended") };
    listener.close(code, reason).await;
    result
}

/// Lies to who comes.
async fn lies(listener: &Listener, lie: Lie) -> Result<(), ReceiveError> {
    let mut tasks = JoinSet::new();
    let mut accepted = 0;
    loop {
        tokio::select! {
            biased;
            Some(_) = tasks.join_next() => {}
            Some(connection) = listener.accept() => {
                let nth = accepted;
                accepted += 1;
                tasks.spawn(async move { fairpath_transfer::lie(&connection, &SECRET, lie, nth).await });
            }
        }
    }
}

/// Lets in and serves who comes, until all is in place and the sender knows.
async fn desk(
    listener: &Listener,
    receiver: &Arc<Receiver>,
    connections: &Connections,
    all: &Mutex<Vec<Received>>,
) -> Result<(), ReceiveError> {
    let (mut doorstep, mut tasks) = (JoinSet::new(), JoinSet::<Result<Received, ReceiveError>>::new());
    let mut lingers_until: Option<Instant> = None;
    loop {
        let lingering = async {
            match lingers_until {
                Some(until) => tokio::time::sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            Some(ended) = tasks.join_next() => match ended.expect("no panic") {
                Ok(received) => {
                    let Received { is_confirmed, is_repeat, ref skipped, .. } = received;
                    let is_last = skipped.is_empty();
                    if !is_repeat {
                        all.lock().unwrap_or_else(PoisonError::into_inner).push(received);
                    }
                    if is_last && is_confirmed {
                        return Ok(());
                    }
                    if is_last {
                        lingers_until.get_or_insert(Instant::now() + GIVE_UP_AFTER);
                    }
                }
                Err(error) if error.is_retryable() => {
                    let may_come: bool = receiver.is_open() || !tasks.is_empty() || lingers_until.is_some();
                    if !may_come {
                        return Err(error);
                    }
                }
                Err(error) => return Err(error),
            },
            Some(heard) = doorstep.join_next() => if let Ok(admitted) = heard.expect("no panic") {
                let receiver = receiver.clone();
                tasks.spawn(async move { receiver.serve(admitted).await });
            },
            () = lingering => return Ok(()),
            Some(connection) = listener.accept() => {
                connections.note(&connection);
                let receiver = receiver.clone();
                doorstep.spawn(async move { receiver.admit(&connection).await });
            }
        }
    }
}
