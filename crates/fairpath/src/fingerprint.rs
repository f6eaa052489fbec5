//! Fingerprints of certificates.

use std::fmt;
use std::str::FromStr;

use fairpath_quic as quic;

/// The BLAKE3 digest of a certificate, in text 64 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint(pub(crate) quic::Fingerprint);

impl Fingerprint {
    /// The digest.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0.0
    }
}

impl From<[u8; 32]> for Fingerprint {
    fn from(digest: [u8; 32]) -> Self {
        Self(quic::Fingerprint(digest))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Fingerprint {
    type Err = BadFingerprint;

    fn from_str(text: &str) -> Result<Self, BadFingerprint> {
        text.parse().map(Self).map_err(|_| BadFingerprint(text.into()))
    }
}

/// A text that is no fingerprint. The caller is at fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a fingerprint: 64 hexadecimal digits are wanted")]
pub struct BadFingerprint(String);
