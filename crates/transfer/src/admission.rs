//! Admission: who may come in, by the proof of the ticket's secret, and what the others are told.
//!
//! A secret of 128 bits cannot be found by trying, so wrong ones are borne without a limit: a
//! stranger ends nothing but its own connection. How many strangers there may be at a time is the
//! listener's business (`fairpath_quic`).

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use fairpath_quic::{Connection, ConnectionError};
use subtle::ConstantTimeEq;

use crate::greeting::{ADMITTED, HEAD_BYTES, Purpose, SenderId, greeting, parse_body, proof};
use crate::protocol::{Control, ProtocolError, VERSION};
use crate::ticket::Secret;
use crate::words::printable;

/// How long a peer may take to prove itself. Ten round trips of a satellite link at its worst.
pub const ADMISSION_DEADLINE: Duration = Duration::from_secs(10);

/// Why a peer is sent away at admission. It travels as the code with which the connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Its proof is wrong.
    WrongSecret,
    /// The ticket was used up by a complete transfer.
    Used,
    /// Another sender uses the ticket.
    Taken,
    /// It came for something else.
    WrongPurpose,
    /// It speaks another version.
    Version,
    /// It proved nothing in time.
    Late,
    /// It does not speak the protocol.
    Malformed,
    /// Another sender's transfer goes on, and this one has its turn when that has ended.
    Busy,
}

impl Refusal {
    const ALL: [Self; 8] = [
        Self::WrongSecret,
        Self::Used,
        Self::Taken,
        Self::WrongPurpose,
        Self::Version,
        Self::Late,
        Self::Malformed,
        Self::Busy,
    ];

    /// The code of the close. Far from the small ones with which both programs end connections.
    fn code(self) -> u32 {
        0x100 + self as u32
    }

    fn from_code(code: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|one| u64::from(one.code()) == code)
    }

    /// The words for the peer of an end that serves `purpose`.
    fn words(self, purpose: Purpose) -> &'static str {
        match self {
            Self::WrongSecret => "the secret in the ticket is wrong: use the ticket that the other machine shows",
            Self::Used => "this ticket has been used: ask for a new one",
            Self::Taken => "another sender uses this ticket: only when that one is gone may a second one come",
            Self::WrongPurpose => match purpose {
                Purpose::Transfer => "this is `fairpath recv`: it measures nothing",
                Purpose::Measurement => "this is `fairpath perf server`: it takes no files",
                Purpose::Stream => "this is `fairpath stream recv`: it takes live flows only",
            },
            Self::Version => "the two ends speak different versions: update the older one",
            Self::Late => "no proof of the secret came in time",
            Self::Malformed => "the greeting could not be understood",
            Self::Busy => "another sender's transfer goes on: try again when that has ended",
        }
    }
}

/// Why a peer was not admitted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdmissionError {
    /// Its proof is wrong.
    #[error("a peer came with a wrong secret")]
    WrongSecret,
    /// The ticket was used.
    #[error("the ticket has been used: it is good for one transfer")]
    Used,
    /// Another sender uses the ticket.
    #[error("a second sender came with the ticket while the first one is there: it was refused")]
    Taken,
    /// Another sender's transfer goes on, and the ticket is good for many.
    #[error("another sender came while one is served: it has its turn when that has ended")]
    Busy,
    /// The peer came for something else.
    #[error("a peer came with the ticket of another command")]
    WrongPurpose,
    /// The peer speaks another version.
    #[error("a peer speaks version {0} of the protocol, this program version {VERSION}: update the older end")]
    Version(u8),
    /// The peer proved nothing in time.
    #[error("a peer did not prove itself within {} s", ADMISSION_DEADLINE.as_secs())]
    Late,
    /// The peer does not speak the protocol.
    #[error("a peer does not speak the protocol of Fairpath")]
    NotOurs,
    /// The TLS session gave no keying material.
    #[error("the connection offers no keying material to prove the secret with")]
    NoKeyingMaterial,
    /// The peer left.
    #[error("a peer left before it was admitted: {0}")]
    Gone(#[from] ProtocolError),
}

impl AdmissionError {
    /// The refusal that the peer is told.
    fn refusal(&self) -> Refusal {
        match self {
            Self::WrongSecret => Refusal::WrongSecret,
            Self::Used => Refusal::Used,
            Self::Taken => Refusal::Taken,
            Self::Busy => Refusal::Busy,
            Self::WrongPurpose => Refusal::WrongPurpose,
            Self::Version(_) => Refusal::Version,
            Self::Late => Refusal::Late,
            Self::NotOurs | Self::NoKeyingMaterial | Self::Gone(_) => Refusal::Malformed,
        }
    }
}

/// Lets in peers that hold the secret.
#[derive(Debug)]
pub struct Admission {
    secret: Secret,
    purpose: Purpose,
    deadline: Duration,
    is_used: AtomicBool,
}

impl Admission {
    /// Admission for holders of `secret` who come for `purpose`.
    pub fn new(secret: Secret, purpose: Purpose) -> Self {
        Self::with_deadline(secret, purpose, ADMISSION_DEADLINE)
    }

    fn with_deadline(secret: Secret, purpose: Purpose, deadline: Duration) -> Self {
        Self { secret, purpose, deadline, is_used: AtomicBool::new(false) }
    }

    /// Whether anyone can still be admitted.
    pub fn is_open(&self) -> bool {
        !self.is_used.load(Ordering::Acquire)
    }

    /// The ticket is worth nothing any more.
    pub fn use_up(&self) {
        self.is_used.store(true, Ordering::Release);
    }

    /// Waits for the peer's proof. A peer without one is told why, and its connection is closed.
    ///
    /// # Errors
    ///
    /// One variant per cause.
    pub async fn hear(&self, connection: &Connection) -> Result<Guest, AdmissionError> {
        self.hear_or_know(connection, |_| false).await
    }

    /// As [`Admission::hear`], and lets in whom `knows` knows also where the ticket is used up.
    pub(crate) async fn hear_or_know(
        &self,
        connection: &Connection,
        knows: impl Fn(SenderId) -> bool,
    ) -> Result<Guest, AdmissionError> {
        let heard = tokio::time::timeout(self.deadline, self.greeted(connection)).await;
        let heard = heard
            .unwrap_or(Err(AdmissionError::Late))
            .and_then(|sender| if self.is_open() || knows(sender) { Ok(sender) } else { Err(AdmissionError::Used) });
        match heard {
            Ok(sender) => Ok(Guest { sender, connection: connection.clone() }),
            Err(error) => {
                self.send_away(connection, &error);
                Err(error)
            }
        }
    }

    /// Closes the connection with the reason.
    pub(crate) fn send_away(&self, connection: &Connection, why: &AdmissionError) {
        let refusal = why.refusal();
        connection.close(refusal.code(), refusal.words(self.purpose));
    }

    async fn greeted(&self, connection: &Connection) -> Result<SenderId, AdmissionError> {
        let greeting = connection.recv_message().await.map_err(ProtocolError::from)?;
        let Some((&head, body)) = greeting.split_first_chunk::<HEAD_BYTES>() else {
            return Err(AdmissionError::NotOurs);
        };
        match Purpose::parse(head) {
            None => return Err(AdmissionError::NotOurs),
            Some((_, version)) if version != VERSION => return Err(AdmissionError::Version(version)),
            Some((purpose, _)) if purpose != self.purpose => return Err(AdmissionError::WrongPurpose),
            Some(_) => {}
        }
        let (sender, claimed) = parse_body(body).ok_or(AdmissionError::NotOurs)?;
        let expected = proof(connection, &self.secret, head, sender).map_err(|_| AdmissionError::NoKeyingMaterial)?;
        if !bool::from(expected.ct_eq(&claimed)) {
            return Err(AdmissionError::WrongSecret);
        }
        Ok(sender)
    }
}

/// A peer that has proved the secret, and has had no answer yet.
#[derive(Debug)]
pub struct Guest {
    pub(crate) sender: SenderId,
    connection: Connection,
}

impl Guest {
    /// Tells the peer that it is in; it may then send as much as any other. The conversation on the
    /// connection begins.
    ///
    /// # Errors
    ///
    /// The peer has left.
    pub async fn welcome(self) -> Result<(), AdmissionError> {
        self.admit().await.map(drop)
    }

    pub(crate) async fn admit(self) -> Result<Control, AdmissionError> {
        self.connection.welcome();
        self.connection.send_message(Bytes::from_static(ADMITTED)).await.map_err(ProtocolError::from)?;
        Ok(Control { connection: self.connection })
    }
}

/// Why the other end did not let this one in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthenticationError {
    /// It said why.
    #[error("the other end refused: {words}")]
    Refused {
        /// The kind of reason.
        refusal: Refusal,
        /// Its words.
        words: String,
    },
    /// The connection ended.
    #[error(transparent)]
    Gone(ProtocolError),
}

impl From<ProtocolError> for AuthenticationError {
    fn from(error: ProtocolError) -> Self {
        Self::Gone(error)
    }
}

/// Greets with the proof of `secret`; returns once this end is let in, and the conversation may begin.
///
/// # Errors
///
/// The other end refused, or is gone.
pub async fn authenticate(
    connection: &Connection,
    secret: &Secret,
    purpose: Purpose,
    sender: SenderId,
) -> Result<(), AuthenticationError> {
    greet(connection, secret, purpose, sender).await.map_err(|error| refused(connection).unwrap_or(error))
}

async fn greet(
    connection: &Connection,
    secret: &Secret,
    purpose: Purpose,
    sender: SenderId,
) -> Result<(), AuthenticationError> {
    let greeting = greeting(connection, secret, purpose, sender)
        .map_err(|_| ProtocolError::Unexpected("the connection offers no keying material"))?;
    connection.send_message(Bytes::from(greeting)).await.map_err(ProtocolError::from)?;
    match &*connection.recv_message().await.map_err(ProtocolError::from)? {
        ADMITTED => Ok(()),
        _ => Err(ProtocolError::Unexpected("an answer to the greeting was expected").into()),
    }
}

/// The refusal with which the peer closed the connection, if it did.
fn refused(connection: &Connection) -> Option<AuthenticationError> {
    match connection.close_reason()? {
        ConnectionError::ApplicationClosed(close) => {
            let refusal = Refusal::from_code(close.error_code.into())?;
            Some(AuthenticationError::Refused { refusal, words: printable(&String::from_utf8_lossy(&close.reason)) })
        }
        _ => None,
    }
}

/// Gives the peer time to read the last message, which it acknowledges by closing; then closes.
pub(crate) async fn say_goodbye(connection: &Connection) {
    let _ = tokio::time::timeout(Duration::from_secs(3), connection.closed()).await;
    connection.close(1, "refused");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::Net;

    const SECRET: Secret = Secret::from_bytes([1; 16]);
    const SENDER: SenderId = SenderId::from_bytes([2; 16]);

    /// The results at both ends for a peer with this secret and purpose.
    async fn meet(
        net: &Net,
        admission: &Admission,
        secret: Secret,
        purpose: Purpose,
    ) -> (Result<(), AuthenticationError>, Result<(), AdmissionError>) {
        let (dialing, listening) = net.connect().await;
        let answering = async { admission.hear(&listening).await?.welcome().await };
        let (authenticated, answered) = tokio::join!(authenticate(&dialing, &secret, purpose, SENDER), answering);
        (authenticated, answered)
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn wrong_secrets_without_number_do_not_close_the_door() {
        let (net, admission) = (Net::new(), Admission::new(SECRET, Purpose::Transfer));
        for _ in 0..20 {
            let (authenticated, answered) =
                meet(&net, &admission, Secret::from_bytes([9; 16]), Purpose::Transfer).await;
            let Err(AuthenticationError::Refused { refusal, words }) = authenticated else {
                panic!("{authenticated:?}")
            };
            assert!(refusal == Refusal::WrongSecret && words.contains("the secret in the ticket is wrong"), "{words}");
            assert_eq!(answered, Err(AdmissionError::WrongSecret));
        }
        assert!(admission.is_open());
        assert_eq!(meet(&net, &admission, SECRET, Purpose::Transfer).await, (Ok(()), Ok(())));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_peer_that_proves_nothing_in_time_is_sent_away() {
        let net = Net::new();
        let (silent, listening) = net.connect().await;
        let admission = Admission::with_deadline(SECRET, Purpose::Transfer, Duration::from_millis(100));
        assert_eq!(admission.hear(&listening).await.unwrap_err(), AdmissionError::Late);
        assert!(silent.closed().await.to_string().contains("in time"));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_used_ticket_is_refused() {
        let (net, admission) = (Net::new(), Admission::new(SECRET, Purpose::Transfer));
        admission.use_up();
        let (authenticated, answered) = meet(&net, &admission, SECRET, Purpose::Transfer).await;
        assert!(
            matches!(authenticated, Err(AuthenticationError::Refused { refusal: Refusal::Used, .. })),
            "{authenticated:?}"
        );
        assert_eq!(answered, Err(AdmissionError::Used));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn who_comes_for_something_else_is_told_where_it_came() {
        let net = Net::new();
        let other = |purpose| match purpose {
            Purpose::Transfer => (Purpose::Measurement, "measures nothing"),
            Purpose::Measurement => (Purpose::Transfer, "takes no files"),
            Purpose::Stream => (Purpose::Transfer, "takes live flows only"),
        };
        for purpose in [Purpose::Transfer, Purpose::Measurement, Purpose::Stream] {
            let admission = Admission::new(SECRET, purpose);
            let (other, expected) = other(purpose);
            let (authenticated, answered) = meet(&net, &admission, SECRET, other).await;
            let Err(AuthenticationError::Refused { refusal, words }) = authenticated else {
                panic!("{authenticated:?}")
            };
            assert!(refusal == Refusal::WrongPurpose && words.contains(expected), "{words}");
            assert_eq!(answered, Err(AdmissionError::WrongPurpose));
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn another_version_and_no_protocol_at_all_are_told_apart() {
        let net = Net::new();
        for (head, expected) in [
            (&b"FPT\x01"[..], AdmissionError::Version(1)),
            (b"GET ", AdmissionError::NotOurs),
            (b"FP", AdmissionError::NotOurs),
            (b"", AdmissionError::NotOurs),
            (&[&Purpose::Transfer.head()[..], &[0; 47]].concat(), AdmissionError::NotOurs),
        ] {
            let (dialing, listening) = net.connect().await;
            dialing.send_message(Bytes::copy_from_slice(head)).await.unwrap();
            let admission = Admission::new(SECRET, Purpose::Transfer);
            assert_eq!(admission.hear(&listening).await.unwrap_err(), expected);
        }
    }
}
