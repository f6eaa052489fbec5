//! The near end's state directory: the device's key, and the far end that it has joined.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use fairpath::{Endpoint, Fingerprint};
use fairpath_transfer::Ticket;
use serde::{Deserialize, Serialize};

use crate::far::ALPN;
use crate::greeting::{self, Admitted, Denial};
use crate::key::{BadKey, DeviceKey};
use crate::store::{Store, StoreError};

const KEY: &str = "device";
const JOINED: &str = "joined.json";
const LISTENING: &str = "listening.json";

/// The bytes that what is kept of a far end may take.
const STATE_MAX: usize = 16 * 1024;

/// How long the far end may take to answer a greeting.
pub(crate) const ANSWERED: Duration = Duration::from_secs(10);

/// The state of a near end.
#[derive(Clone, Debug)]
pub struct NearState {
    store: Store,
}

/// Something that could not be done with the state.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NearStateError {
    /// A file could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A key could not be made or read.
    #[error(transparent)]
    Key(#[from] BadKey),
    /// The device has joined no far end.
    #[error("this device has joined no far end yet: `fairpath invite NAME` there, then `fairpath join` here")]
    NotJoined,
    /// A file does not hold what it should.
    #[error("the file `{0}` of the state directory is damaged: join again with a new invitation")]
    Damaged(&'static str),
}

/// Why a device could not join.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JoinError {
    /// Its state.
    #[error(transparent)]
    State(#[from] NearStateError),
    /// No connection to the far end.
    #[error(transparent)]
    Connect(#[from] fairpath::Error),
    /// The far end said no.
    #[error("{0}")]
    Denied(Denial),
    /// The connection ended before the answer.
    #[error("the far end did not answer: {0}; where the invitation does not do any more, ask for a new one")]
    Gone(String),
}

/// The far end that a device has joined.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Joined {
    /// The name of this device there.
    pub(crate) name: String,
    pub(crate) addresses: Vec<SocketAddr>,
    pub(crate) fingerprint: String,
    /// The key that lets its packets go before those of strangers.
    pub(crate) guard: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct Listening {
    address: SocketAddr,
}

impl NearState {
    /// The state in this directory, which is made where it does not exist.
    ///
    /// # Errors
    ///
    /// [`NearStateError::Store`].
    pub fn open(directory: &Path) -> Result<Self, NearStateError> {
        Ok(Self { store: Store::open(directory)? })
    }

    /// The addresses of the far end that this device has joined.
    ///
    /// # Errors
    ///
    /// [`NearStateError::NotJoined`], or where the state cannot be read.
    pub fn far_addresses(&self) -> Result<Vec<SocketAddr>, NearStateError> {
        Ok(self.joined()?.addresses)
    }

    pub(crate) fn directory(&self) -> &Path {
        self.store.directory()
    }

    /// The address of the port where the last near end served programs; `None` where there was none.
    ///
    /// # Errors
    ///
    /// [`NearStateError::Store`].
    pub fn listening(&self) -> Result<Option<SocketAddr>, NearStateError> {
        let Some(text) = self.store.read(LISTENING)? else { return Ok(None) };
        let listening: Listening = serde_json::from_slice(&text).map_err(|_| NearStateError::Damaged(LISTENING))?;
        Ok(Some(listening.address))
    }

    pub(crate) fn note_listening(&self, address: SocketAddr) -> Result<(), NearStateError> {
        let text = serde_json::to_vec(&Listening { address }).unwrap_or_default();
        Ok(self.store.write(LISTENING, &text)?)
    }

    pub(crate) fn key(&self) -> Result<DeviceKey, NearStateError> {
        let kept = self.store.read(KEY)?.ok_or(NearStateError::NotJoined)?;
        DeviceKey::from_bytes(&kept).map_err(|_| NearStateError::Damaged(KEY))
    }

    pub(crate) fn joined(&self) -> Result<Joined, NearStateError> {
        let text = self.store.read(JOINED)?.ok_or(NearStateError::NotJoined)?;
        serde_json::from_slice(&text).map_err(|_| NearStateError::Damaged(JOINED))
    }

    pub(crate) fn note_joined(&self, joined: &Joined) -> Result<(), NearStateError> {
        Ok(self.store.write(JOINED, &serde_json::to_vec_pretty(joined).unwrap_or_default())?)
    }
}

impl Joined {
    pub(crate) fn of(fingerprint: Fingerprint, admitted: Admitted) -> Self {
        let Admitted { name, addresses, guard, .. } = admitted;
        Self { name, addresses, fingerprint: fingerprint.to_string(), guard }
    }

    pub(crate) fn fingerprint(&self) -> Result<Fingerprint, NearStateError> {
        self.fingerprint.parse().map_err(|_| NearStateError::Damaged(JOINED))
    }

    pub(crate) fn guard_key(&self) -> Result<[u8; 32], NearStateError> {
        let decoded = data_encoding::HEXLOWER.decode(self.guard.as_bytes()).ok();
        decoded.and_then(|key| key.try_into().ok()).ok_or(NearStateError::Damaged(JOINED))
    }
}

/// Joins the far end of an invitation with a new key, which is kept in `directory`; the name of this device there. Must be
/// called within a tokio runtime.
///
/// # Errors
///
/// [`JoinError`] says whom to blame. What was kept before stays as it was.
pub async fn join(directory: &Path, invitation: &Ticket, via: &[String]) -> Result<String, JoinError> {
    let state = NearState::open(directory)?;
    // The invitation is good once: a full or closed disk has to show before it is used.
    state.store.try_out(STATE_MAX).map_err(NearStateError::from)?;
    let key = DeviceKey::generate().map_err(NearStateError::from)?;
    let fingerprint = Fingerprint::from(invitation.fingerprint);
    let endpoint = Endpoint::builder().alpn(ALPN).via(via.to_vec()).bind()?;
    let connection = endpoint.connect(invitation.addresses.clone(), fingerprint).await?;
    let greeting = greeting::greet(&connection, &key, Some(&invitation.secret));
    let admitted = enter(&connection, greeting).await;
    connection.close(0, "joined").await;
    let mut joined = Joined::of(fingerprint, admitted?);
    // Those of the invitation were reached.
    let known = std::mem::take(&mut joined.addresses);
    joined.addresses = invitation.addresses.clone();
    joined.addresses.extend(known.into_iter().filter(|address| !invitation.addresses.contains(address)));
    state.store.write(KEY, key.to_bytes()).map_err(NearStateError::from)?;
    state.note_joined(&joined)?;
    Ok(joined.name)
}

/// Sends a greeting and waits for the answer.
pub(crate) async fn enter(connection: &fairpath::Connection, greeting: Option<Vec<u8>>) -> Result<Admitted, JoinError> {
    let greeting = greeting.ok_or_else(|| JoinError::Gone("the connection gives no binding".to_owned()))?;
    let exchange = async {
        let sent = connection.send_message(greeting).await.map_err(|error| error.to_string());
        match sent {
            Ok(()) => connection.recv_message().await.map_err(|error| error.to_string()),
            Err(error) => Err(error),
        }
    };
    let answer = tokio::time::timeout(ANSWERED, exchange).await.unwrap_or_else(|_| Err("no answer in time".to_owned()));
    let denial = connection.close_reason().as_ref().and_then(Denial::of);
    match (answer, denial) {
        (_, Some(denial)) => Err(JoinError::Denied(denial)),
        (Ok(answer), None) => Admitted::decode(&answer)
            .filter(|admitted| admitted.guard_key().is_some())
            .ok_or_else(|| JoinError::Gone("its answer is not understood".to_owned())),
        (Err(error), None) => Err(JoinError::Gone(error)),
    }
}
