//! The greeting: the first message of whoever connects, and the proof in it.
//!
//! ```text
//! letters  3 bytes   FPT for a transfer, FPM for a measurement, FPS for a stream
//! version  1 byte
//! sender   16 bytes  random, the same for all connections of one run
//! proof    32 bytes  BLAKE3 keyed with the secret over 32 bytes that both ends export from the
//!                    TLS session (RFC 5705), then the letters, the version and the sender
//! ```
//!
//! The secret itself never travels, and the proof is worth nothing on another connection, for
//! another purpose, or with another sender's number. It is answered with a message of one byte, or by
//! closing the connection. The form has nothing of the other messages, and letters and version come first,
//! so that versions can tell each other apart.

use std::fmt;

use fairpath_quic::Connection;

use crate::protocol::VERSION;
use crate::ticket::Secret;

/// Letters and version.
pub(crate) const HEAD_BYTES: usize = 4;

/// The answer to whom is let in.
pub(crate) const ADMITTED: &[u8] = b"A";

const EXPORTER_LABEL: &[u8] = b"EXPORTER-fairpath-greeting";
const PROOF_CONTEXT: &str = "fairpath 2026 proof of the ticket's secret 2";

/// The purpose of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Files.
    Transfer,
    /// Goodput.
    Measurement,
    /// Live UDP flows.
    Stream,
}

impl Purpose {
    fn letters(self) -> [u8; 3] {
        match self {
            Self::Transfer => *b"FPT",
            Self::Measurement => *b"FPM",
            Self::Stream => *b"FPS",
        }
    }

    /// The first bytes of a greeting for this purpose.
    pub(crate) fn head(self) -> [u8; HEAD_BYTES] {
        let [a, b, c] = self.letters();
        [a, b, c, VERSION]
    }

    /// The purpose and the version in the first bytes of a greeting; `None` where they are none.
    pub(crate) fn parse(head: [u8; HEAD_BYTES]) -> Option<(Self, u8)> {
        let purpose =
            [Self::Transfer, Self::Measurement, Self::Stream].into_iter().find(|one| one.letters() == head[..3])?;
        Some((purpose, head[3]))
    }
}

/// Tells the connections of one run from those of another that holds the same ticket. Its holder
/// may take over from a connection of that run, so `Debug` hides it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SenderId([u8; 16]);

impl SenderId {
    /// A new one from the system's randomness.
    ///
    /// # Errors
    ///
    /// The system gives no randomness.
    pub fn generate() -> std::io::Result<Self> {
        let mut id = [0; 16];
        getrandom::fill(&mut id)?;
        Ok(Self(id))
    }

    /// One with this content: that of an earlier run that was kept.
    pub const fn from_bytes(id: [u8; 16]) -> Self {
        Self(id)
    }

    /// Its content, to be kept where nobody else can read it.
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0
    }
}

impl fmt::Debug for SenderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SenderId(hidden)")
    }
}

/// The connection offers no keying material to prove the secret with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoKeyingMaterial;

/// The proof of `secret` by this sender on this connection.
pub(crate) fn proof(
    connection: &Connection,
    secret: &Secret,
    head: [u8; HEAD_BYTES],
    sender: SenderId,
) -> Result<[u8; 32], NoKeyingMaterial> {
    let mut material = [0; 32];
    connection.export_keying_material(&mut material, EXPORTER_LABEL, b"sender").map_err(|_| NoKeyingMaterial)?;
    let key = blake3::derive_key(PROOF_CONTEXT, &secret.0);
    let mut hasher = blake3::Hasher::new_keyed(&key);
    hasher.update(&material).update(&head).update(&sender.0);
    Ok(*hasher.finalize().as_bytes())
}

/// The whole greeting.
pub(crate) fn greeting(
    connection: &Connection,
    secret: &Secret,
    purpose: Purpose,
    sender: SenderId,
) -> Result<Vec<u8>, NoKeyingMaterial> {
    let head = purpose.head();
    let proof = proof(connection, secret, head, sender)?;
    Ok([&head[..], &sender.0, &proof].concat())
}

/// The sender and its claim, behind the head; `None` where it is no such thing.
pub(crate) fn parse_body(body: &[u8]) -> Option<(SenderId, [u8; 32])> {
    let (&sender, claim) = body.split_first_chunk::<16>()?;
    Some((SenderId(sender), claim.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn purpose_and_version_are_read_from_the_first_bytes() {
        assert_eq!(Purpose::parse(Purpose::Transfer.head()), Some((Purpose::Transfer, VERSION)));
        assert_eq!(Purpose::parse(*b"FPM\x09"), Some((Purpose::Measurement, 9)));
        assert_eq!(Purpose::parse(*b"GET "), None);
    }

    #[test]
    fn a_body_of_another_length_is_none() {
        assert_eq!(parse_body(&[7; 48]), Some((SenderId([7; 16]), [7; 32])));
        assert!([0, 15, 16, 47, 49].iter().all(|&length| parse_body(&vec![7; length]).is_none()));
    }

    #[test]
    fn debug_never_shows_a_sender() {
        assert_eq!(format!("{:?}", SenderId::from_bytes([9; 16])), "SenderId(hidden)");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_proof_covers_secret_purpose_sender_and_connection() {
        let net = crate::tests::Net::new();
        let (here, there) = net.connect().await;
        let (other, _other) = net.connect().await;
        let (secret, sender) = (Secret::from_bytes([1; 16]), SenderId::from_bytes([2; 16]));
        let head = Purpose::Transfer.head();
        let expected = proof(&there, &secret, head, sender).unwrap();
        assert_eq!(proof(&here, &secret, head, sender).unwrap(), expected, "both ends compute the same");
        let changed = [
            proof(&here, &Secret::from_bytes([3; 16]), head, sender),
            proof(&here, &secret, Purpose::Measurement.head(), sender),
            proof(&here, &secret, head, SenderId::from_bytes([3; 16])),
            proof(&other, &secret, head, sender),
        ];
        assert!(changed.iter().all(|one| one.unwrap() != expected));
    }
}
