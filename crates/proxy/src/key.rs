//! Keys of devices: a pair made on the device, whose private half never leaves it.

use std::fmt;
use std::str::FromStr;

use data_encoding::HEXLOWER_PERMISSIVE as HEX;
use ring::rand::SystemRandom;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};

/// How public keys begin as text.
const PREFIX: &str = "ed25519:";

/// The pair of keys of a device (Ed25519, RFC 8032).
pub struct DeviceKey {
    pair: Ed25519KeyPair,
    /// The document that makes the same pair again.
    document: Vec<u8>,
}

/// A device's public key, by which the far end knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PublicKey(pub(crate) [u8; Self::LEN]);

/// A text or a file that is no key. The caller is at fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadKey {
    /// The text is no public key.
    #[error("a public key is `ed25519:` and 64 hexadecimal digits")]
    Public,
    /// The bytes are no pair of keys.
    #[error("this is no pair of keys of a device")]
    Pair,
    /// The system gives no randomness.
    #[error("the system gives no randomness to make a key from")]
    NoRandomness,
}

impl DeviceKey {
    /// A new pair.
    ///
    /// # Errors
    ///
    /// [`BadKey::NoRandomness`].
    pub fn generate() -> Result<Self, BadKey> {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).map_err(|_| BadKey::NoRandomness)?;
        Self::from_bytes(document.as_ref())
    }

    /// The pair that [`DeviceKey::to_bytes`] kept.
    ///
    /// # Errors
    ///
    /// [`BadKey::Pair`].
    pub fn from_bytes(document: &[u8]) -> Result<Self, BadKey> {
        let pair = Ed25519KeyPair::from_pkcs8(document).map_err(|_| BadKey::Pair)?;
        Ok(Self { pair, document: document.to_vec() })
    }

    /// The bytes of the pair, to be kept where nobody else can read them.
    pub fn to_bytes(&self) -> &[u8] {
        &self.document
    }

    /// The public half.
    pub fn public(&self) -> PublicKey {
        let mut key = [0; PublicKey::LEN];
        key.copy_from_slice(self.pair.public_key().as_ref());
        PublicKey(key)
    }

    pub(crate) fn sign(&self, words: &[u8]) -> [u8; PublicKey::SIGNATURE] {
        let mut signature = [0; PublicKey::SIGNATURE];
        signature.copy_from_slice(self.pair.sign(words).as_ref());
        signature
    }
}

impl fmt::Debug for DeviceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceKey({})", self.public())
    }
}

impl PublicKey {
    pub(crate) const LEN: usize = 32;
    pub(crate) const SIGNATURE: usize = 64;

    /// Whether the holder of this key's private half signed `words`.
    pub(crate) fn has_signed(&self, words: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, &self.0).verify(words, signature).is_ok()
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", HEX.encode(&self.0))
    }
}

impl FromStr for PublicKey {
    type Err = BadKey;

    fn from_str(text: &str) -> Result<Self, BadKey> {
        let digits = text.strip_prefix(PREFIX).ok_or(BadKey::Public)?;
        let bytes = HEX.decode(digits.as_bytes()).map_err(|_| BadKey::Public)?;
        bytes.try_into().map(Self).map_err(|_| BadKey::Public)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_key_is_the_same_and_signs_for_itself_only() {
        let key = DeviceKey::generate().unwrap();
        let kept = DeviceKey::from_bytes(key.to_bytes()).unwrap();
        assert_eq!(kept.public(), key.public());
        let signature = kept.sign(b"words");
        assert!(key.public().has_signed(b"words", &signature));
        assert!(!key.public().has_signed(b"other words", &signature));
        assert!(!DeviceKey::generate().unwrap().public().has_signed(b"words", &signature));
    }

    #[test]
    fn public_keys_survive_text_and_private_ones_are_not_shown() {
        let key = DeviceKey::generate().unwrap();
        assert_eq!(key.public().to_string().parse(), Ok(key.public()));
        for text in ["", "ed25519:", "ed25519:12", "rsa:00", &key.public().to_string()[..70]] {
            assert_eq!(text.parse::<PublicKey>(), Err(BadKey::Public));
        }
        assert_eq!(format!("{key:?}"), format!("DeviceKey({})", key.public()));
        assert!(DeviceKey::from_bytes(b"x").is_err());
    }
}
