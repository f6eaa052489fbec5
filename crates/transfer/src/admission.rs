//! Who may send: the proof of the one-time secret, and limits on those who have none.
//!
//! The secret itself never travels. Both ends derive 32 bytes from the TLS session (RFC 5705) and
//! the sender shows their keyed hash under the secret: worthless on any other connection, and to
//! anyone who does not hold the secret.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use noq::Connection;
use subtle::ConstantTimeEq;
use tokio::sync::Semaphore;

use crate::error::Fault;
use crate::protocol::{ControlReader, ControlWriter, FromReceiver, GREETING_BYTES, ProtocolError, parse_greeting};
use crate::ticket::Secret;

/// How many wrong secrets a receiver bears.
pub const MAX_WRONG_PROOFS: u32 = 3;

/// How long a peer may take to prove itself.
pub const ADMISSION_DEADLINE: Duration = Duration::from_secs(10);

/// How many peers may be unproven at the same time.
pub const MAX_UNPROVEN: usize = 4;

const EXPORTER_LABEL: &[u8] = b"EXPORTER-fairpath-transfer";
const PROOF_CONTEXT: &str = "fairpath 2025 proof of the ticket's secret 1";

/// Why a peer was not admitted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdmissionError {
    /// Its proof is wrong.
    #[error("a peer came with a wrong secret; {tries_left} more wrong tries and no transfer is accepted any more")]
    WrongSecret {
        /// How many more are borne.
        tries_left: u32,
    },
    /// Too many proofs were wrong.
    #[error("{MAX_WRONG_PROOFS} wrong secrets: no transfer is accepted any more, start again for a new ticket")]
    TooManyTries,
    /// The ticket was used.
    #[error("the ticket has been used: it is good for one transfer")]
    Used,
    /// The peer proved nothing in time.
    #[error("a peer did not prove itself within {} s", ADMISSION_DEADLINE.as_secs())]
    Deadline,
    /// Too many peers at once.
    #[error("more than {MAX_UNPROVEN} peers at once have not proved themselves")]
    Crowded,
    /// The TLS session gave no keying material.
    #[error("the connection offers no keying material to prove the secret with")]
    NoKeyingMaterial,
    /// The conversation broke.
    #[error("a peer was not admitted: {0}")]
    Protocol(#[from] ProtocolError),
}

/// The proof of `secret` on this connection.
pub fn proof(connection: &Connection, secret: &Secret) -> Result<[u8; 32], AdmissionError> {
    let mut material = [0; 32];
    let exported = connection.export_keying_material(&mut material, EXPORTER_LABEL, b"sender");
    exported.map_err(|_| AdmissionError::NoKeyingMaterial)?;
    let key = blake3::derive_key(PROOF_CONTEXT, &secret.0);
    Ok(*blake3::keyed_hash(&key, &material).as_bytes())
}

#[derive(Debug, Default)]
struct State {
    wrong: u32,
    used: bool,
}

/// A receiver's doorkeeper.
#[derive(Debug)]
pub(crate) struct Admission {
    secret: Secret,
    deadline: Duration,
    state: Mutex<State>,
    unproven: Semaphore,
}

impl Admission {
    pub(crate) fn new(secret: Secret) -> Self {
        Self::with_deadline(secret, ADMISSION_DEADLINE)
    }

    fn with_deadline(secret: Secret, deadline: Duration) -> Self {
        Self { secret, deadline, state: Mutex::default(), unproven: Semaphore::new(MAX_UNPROVEN) }
    }

    /// Whether anyone can still be admitted.
    pub(crate) fn is_open(&self) -> bool {
        let state = self.state();
        !state.used && state.wrong < MAX_WRONG_PROOFS
    }

    /// The transfer is complete: the ticket is worth nothing any more.
    pub(crate) fn use_up(&self) {
        self.state().used = true;
    }

    /// Waits for the peer's proof and answers it. A wrong one closes the connection.
    pub(crate) async fn admit(
        &self,
        connection: &Connection,
    ) -> Result<(ControlWriter, ControlReader), AdmissionError> {
        let Ok(_place) = self.unproven.try_acquire() else {
            connection.close(1u32.into(), b"too many peers at once, try again");
            return Err(AdmissionError::Crowded);
        };
        let admitted = tokio::time::timeout(self.deadline, self.converse(connection)).await;
        match admitted {
            Ok(result) => result,
            Err(_) => {
                connection.close(1u32.into(), b"no proof of the secret in time");
                Err(AdmissionError::Deadline)
            }
        }
    }

    async fn converse(&self, connection: &Connection) -> Result<(ControlWriter, ControlReader), AdmissionError> {
        let (send, recv) = connection.accept_bi().await.map_err(ProtocolError::from)?;
        // Before the lanes, which never run out of data. Fails only for a stream that is closed.
        let _ = send.set_priority(1);
        let mut writer = ControlWriter { stream: send, connection: connection.clone() };
        let mut reader = ControlReader { stream: recv, connection: connection.clone() };
        let mut frame = [0; GREETING_BYTES];
        reader.read_raw(&mut frame).await?;
        let checked = parse_greeting(&frame).map_err(AdmissionError::from).and_then(|claimed| {
            let expected = proof(connection, &self.secret)?;
            self.judge(expected.ct_eq(&claimed).into())
        });
        let Err(error) = checked else {
            writer.write(&FromReceiver::Admitted).await?;
            return Ok((writer, reader));
        };
        let (fault, text) = match &error {
            AdmissionError::WrongSecret { .. } => {
                (Fault::WrongSecret, "the secret in the ticket is wrong: use the ticket that the receiver shows")
            }
            AdmissionError::TooManyTries => {
                (Fault::Closed, "too many wrong secrets, it accepts no more transfers: start it again for a new ticket")
            }
            AdmissionError::Used => (Fault::Closed, "this ticket has been used: ask for a new one"),
            AdmissionError::Protocol(ProtocolError::Version(_)) => {
                (Fault::Version, "the two ends speak different versions: update the older one")
            }
            _ => (Fault::Protocol, "the greeting could not be understood"),
        };
        writer.write(&FromReceiver::Failed { fault, text: text.to_owned() }).await?;
        writer.finish();
        say_goodbye(connection).await;
        Err(error)
    }

    fn judge(&self, is_right: bool) -> Result<(), AdmissionError> {
        let mut state = self.state();
        if state.wrong >= MAX_WRONG_PROOFS {
            return Err(AdmissionError::TooManyTries);
        }
        if is_right {
            return if state.used { Err(AdmissionError::Used) } else { Ok(()) };
        }
        state.wrong += 1;
        match MAX_WRONG_PROOFS - state.wrong {
            0 => Err(AdmissionError::TooManyTries),
            tries_left => Err(AdmissionError::WrongSecret { tries_left }),
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives the peer time to read the last message, which it acknowledges by closing; then closes.
pub(crate) async fn say_goodbye(connection: &Connection) {
    let _ = tokio::time::timeout(Duration::from_secs(3), connection.closed()).await;
    connection.close(1u32.into(), b"refused");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_wrong_secrets_close_the_door_even_to_the_right_one() {
        let admission = Admission::new(Secret::from_bytes([1; 16]));
        assert_eq!(admission.judge(false), Err(AdmissionError::WrongSecret { tries_left: 2 }));
        assert_eq!(admission.judge(true), Ok(()));
        assert_eq!(admission.judge(false), Err(AdmissionError::WrongSecret { tries_left: 1 }));
        assert_eq!(admission.judge(false), Err(AdmissionError::TooManyTries));
        assert_eq!(admission.judge(true), Err(AdmissionError::TooManyTries));
        assert!(!admission.is_open());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_peer_that_proves_nothing_in_time_is_sent_away() {
        let net = crate::tests::Net::new();
        let (silent, receiving) = net.connect().await;
        let admission = Admission::with_deadline(Secret::from_bytes([1; 16]), Duration::from_millis(100));
        assert_eq!(admission.admit(&receiving).await.unwrap_err(), AdmissionError::Deadline);
        assert!(silent.closed().await.to_string().contains("in time"));
    }

    #[test]
    fn a_used_ticket_is_refused() {
        let admission = Admission::new(Secret::from_bytes([1; 16]));
        admission.use_up();
        assert_eq!(admission.judge(true), Err(AdmissionError::Used));
    }
}
