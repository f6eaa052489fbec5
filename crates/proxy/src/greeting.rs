//! The first message of a device and the answer to it.
//!
//! ```text
//! letters    4 bytes    FPX and the version
//! purpose    1 byte     1: enters, as a device that is known; 2: joins, with an invitation
//! key        32 bytes   the device's public key
//! signature  64 bytes   by that key, of the letters, the purpose and the connection's binding
//! label      32 bytes   names the invitation, where it joins
//! proof      32 bytes   of the invitation, for the binding and the key, where it joins
//! ```
//!
//! The binding are 32 bytes that the two ends of this connection export from TLS (RFC 5705), and nobody else. So nothing
//! here is worth anything on another connection, and neither a private key nor a secret travels. The answer is a message
//! with [`Admitted`] as JSON; a device that is not let in is told by the code with which its connection is closed.

use std::net::SocketAddr;

use fairpath::Connection;
use serde::{Deserialize, Serialize};

use crate::invitations::{LABEL, ProofKey};
use crate::key::{DeviceKey, PublicKey};

const HEAD: [u8; 4] = *b"FPX\x01";
const ENTER: u8 = 1;
const JOIN: u8 = 2;
const EXPORTER: &[u8] = b"EXPORTER-fairpath-proxy";
const PLAIN: usize = HEAD.len() + 1 + PublicKey::LEN + PublicKey::SIGNATURE;

/// The largest answer that is read, in bytes.
const ANSWER_MAX: usize = 16 << 10;

/// A device that has shown that it holds a key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Greeting {
    pub(crate) key: PublicKey,
    pub(crate) invitation: Option<Proof>,
}

/// The proof of an invitation.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Proof {
    pub(crate) label: String,
    pub(crate) proof: [u8; 32],
    /// The words that it has to prove.
    pub(crate) words: Vec<u8>,
}

/// The answer to a device that is let in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Admitted {
    /// Its name at the far end.
    pub(crate) name: String,
    /// The addresses of the far end, as they are now.
    pub(crate) addresses: Vec<SocketAddr>,
    /// The key that lets its first packets go before those of strangers, in hexadecimal digits.
    pub(crate) guard: String,
    /// The address from which the device is seen.
    #[serde(default)]
    pub(crate) seen: Option<SocketAddr>,
}

/// Why a device is not let in. It travels as the code with which its connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denial {
    /// The key is not among those authorized.
    #[error("the far end does not know this device's key: it was revoked, or never joined; join with a new invitation")]
    UnknownKey,
    /// The invitation was used, has ended or never was.
    #[error("the invitation was used, is older than a day or was taken back: ask for a new one")]
    Invitation,
    /// The greeting is of another version.
    #[error("the two ends speak different versions: update the older one")]
    Version,
    /// The first message was no greeting, or its signature is wrong.
    #[error("the greeting was not understood")]
    Malformed,
    /// No greeting came in time.
    #[error("no greeting came in time")]
    Late,
    /// The device was revoked while it was connected.
    #[error("the far end has revoked this device: join with a new invitation")]
    Revoked,
    /// The far end could not read or write its state.
    #[error("the far end cannot read or write its state")]
    Broken,
}

impl Denial {
    const ALL: [Self; 7] =
        [Self::UnknownKey, Self::Invitation, Self::Version, Self::Malformed, Self::Late, Self::Revoked, Self::Broken];

    pub(crate) fn code(self) -> u32 {
        0x300 + self as u32
    }

    /// The denial with which the peer closed a connection, if it did.
    pub(crate) fn of(reason: &fairpath::ConnectionError) -> Option<Self> {
        let fairpath::ConnectionError::Closed { code, .. } = reason else { return None };
        Self::ALL.into_iter().find(|one| u64::from(one.code()) == *code)
    }
}

/// Makes the greeting of a device that holds `key`, for this connection; `None` where it gives no binding.
pub(crate) fn greet(
    connection: &Connection,
    key: &DeviceKey,
    invitation: Option<&fairpath_transfer::Secret>,
) -> Option<Vec<u8>> {
    let purpose = if invitation.is_some() { JOIN } else { ENTER };
    let binding = binding(connection, purpose)?;
    let mut greeting = [&HEAD[..], &[purpose], &key.public().0, &key.sign(&signed(purpose, &binding))].concat();
    if let Some(secret) = invitation {
        greeting.extend(secret.label().as_bytes());
        greeting.extend(ProofKey::of(secret).prove(&proved(&binding, &key.public())));
    }
    Some(greeting)
}

/// Reads a greeting that came on this connection.
pub(crate) fn read(connection: &Connection, greeting: &[u8]) -> Result<Greeting, Denial> {
    parse(greeting, |purpose| binding(connection, purpose))
}

fn parse(greeting: &[u8], binding: impl Fn(u8) -> Option<[u8; 32]>) -> Result<Greeting, Denial> {
    let head = greeting.get(..HEAD.len()).filter(|head| head[..3] == HEAD[..3]).ok_or(Denial::Malformed)?;
    if head != HEAD {
        return Err(Denial::Version);
    }
    let (plain, more) = greeting.split_at_checked(PLAIN).ok_or(Denial::Malformed)?;
    let purpose = plain[HEAD.len()];
    let (key, signature) = plain[HEAD.len() + 1..].split_at(PublicKey::LEN);
    let key = PublicKey(key.try_into().map_err(|_| Denial::Malformed)?);
    let binding = binding(purpose).ok_or(Denial::Malformed)?;
    if !key.has_signed(&signed(purpose, &binding), signature) {
        return Err(Denial::Malformed);
    }
    let invitation = match (purpose, more.split_at_checked(LABEL)) {
        (ENTER, _) if more.is_empty() => None,
        (JOIN, Some((label, proof))) => Some(Proof {
            label: String::from_utf8(label.to_vec()).map_err(|_| Denial::Malformed)?,
            proof: proof.try_into().map_err(|_| Denial::Malformed)?,
            words: proved(&binding, &key),
        }),
        _ => return Err(Denial::Malformed),
    };
    Ok(Greeting { key, invitation })
}

fn binding(connection: &Connection, purpose: u8) -> Option<[u8; 32]> {
    let mut binding = [0; 32];
    connection.export_keying_material(&mut binding, EXPORTER, &[purpose]).then_some(binding)
}

/// The words that a device signs.
fn signed(purpose: u8, binding: &[u8; 32]) -> Vec<u8> {
    [&HEAD[..], &[purpose], binding].concat()
}

/// The words for which an invitation is proved.
fn proved(binding: &[u8; 32], key: &PublicKey) -> Vec<u8> {
    [&binding[..], &key.0].concat()
}

impl Admitted {
    pub(crate) fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    pub(crate) fn decode(answer: &[u8]) -> Option<Self> {
        let answer = answer.get(..answer.len().min(ANSWER_MAX))?;
        serde_json::from_slice(answer).ok().filter(|answer: &Self| answer.addresses.len() <= 64)
    }

    /// The key, where it is one.
    pub(crate) fn guard_key(&self) -> Option<[u8; 32]> {
        data_encoding::HEXLOWER.decode(self.guard.as_bytes()).ok()?.try_into().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BINDING: [u8; 32] = [5; 32];

    fn made(key: &DeviceKey, purpose: u8, binding: &[u8; 32], more: &[u8]) -> Vec<u8> {
        [&HEAD[..], &[purpose], &key.public().0, &key.sign(&signed(purpose, binding)), more].concat()
    }

    fn read(greeting: &[u8]) -> Result<Greeting, Denial> {
        parse(greeting, |_| Some(BINDING))
    }

    #[test]
    fn a_greeting_is_good_on_its_own_connection_and_for_its_own_purpose() {
        let key = DeviceKey::generate().unwrap();
        let greeting = made(&key, ENTER, &BINDING, b"");
        assert_eq!(read(&greeting), Ok(Greeting { key: key.public(), invitation: None }));
        assert_eq!(read(&made(&key, ENTER, &[6; 32], b"")), Err(Denial::Malformed));
        let mut other = greeting.clone();
        other[HEAD.len()] = JOIN;
        assert_eq!(read(&other), Err(Denial::Malformed));
    }

    #[test]
    fn an_invitation_is_bound_to_the_key_that_joins() {
        let key = DeviceKey::generate().unwrap();
        let joined = made(&key, JOIN, &BINDING, &[b'a'; LABEL + 32]);
        let invitation = read(&joined).unwrap().invitation.unwrap();
        assert_eq!((invitation.label.as_str(), invitation.proof), ("a".repeat(LABEL).as_str(), [b'a'; 32]));
        assert_eq!(invitation.words, proved(&BINDING, &key.public()));
        for more in [0, LABEL, LABEL + 31, LABEL + 33] {
            assert_eq!(read(&made(&key, JOIN, &BINDING, &vec![b'a'; more])), Err(Denial::Malformed), "{more}");
        }
    }

    #[test]
    fn other_versions_and_other_words_are_told_apart() {
        let key = DeviceKey::generate().unwrap();
        let mut newer = made(&key, ENTER, &BINDING, b"");
        newer[3] = 2;
        assert_eq!(read(&newer), Err(Denial::Version));
        for words in [&b""[..], b"FPX", b"GET / HTTP/1.1\r\n", &made(&key, ENTER, &BINDING, b"x"), &newer[..4]] {
            assert_ne!(read(words).err(), None, "{words:?}");
        }
    }

    #[test]
    fn the_answer_survives_the_wire() {
        let answer = Admitted {
            name: "van".into(),
            addresses: vec!["192.0.2.1:4433".parse().unwrap()],
            guard: "00".repeat(32),
            seen: None,
        };
        assert_eq!(Admitted::decode(&answer.encode()), Some(answer.clone()));
        assert_eq!(answer.guard_key(), Some([0; 32]));
        assert_eq!(Admitted::decode(b"{}"), None);
    }
}
