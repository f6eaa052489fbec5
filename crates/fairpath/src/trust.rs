//! Identities of ends, and trust in them.

use fairpath_quic as quic;

use crate::error::Error;
use crate::fingerprint::Fingerprint;

/// A certificate with its key: what makes an end the one that peers mean.
#[derive(Clone, Debug)]
pub struct Identity(pub(crate) quic::Identity);

impl Identity {
    /// A new key, and a certificate that it signs itself. Peers know it by its [`Fingerprint`].
    ///
    /// # Errors
    ///
    /// [`Error::Tls`] where the system gives no randomness.
    pub fn generate() -> Result<Self, Error> {
        quic::Identity::generate().map(Self).map_err(|error| Error::Tls(error.to_string()))
    }

    /// A certificate that an authority signed, followed by those of the authorities between, and its key as PKCS#8
    /// (`BEGIN PRIVATE KEY`), each as the text of a PEM file. Whether the two belong together is found out by
    /// [`Builder::bind`](crate::Builder::bind).
    ///
    /// # Errors
    ///
    /// [`Error::Pem`] says what is wanted in place of what the text has.
    pub fn from_pem(certificates: &str, key: &str) -> Result<Self, Error> {
        Ok(Self(quic::Identity::from_pem(certificates.as_bytes(), key.as_bytes()).map_err(pem)?))
    }

    /// The identity that [`Identity::to_bytes`] kept; `None` where the bytes are none.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        quic::Identity::from_bytes(bytes).map(Self)
    }

    /// The bytes that make a later run the same end. They hold the key: keep them where nobody else reads them.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.to_bytes()
    }

    /// The digest that peers must be told to recognise it.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint(self.0.fingerprint())
    }
}

/// The demand on the certificate that a peer shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trust(pub(crate) quic::Verify);

impl Trust {
    /// Any certificate that one of these authorities vouches for, and that has the name of `host` in it: a name or an
    /// address. `roots` is the text of a PEM file with the certificates of the authorities.
    ///
    /// # Errors
    ///
    /// [`Error::Pem`] where the text has no certificate, or `host` is no name.
    pub fn authorities(roots: &str, host: &str) -> Result<Self, Error> {
        Ok(Self(quic::Verify::Authority(quic::Authority::from_pem(roots.as_bytes(), host).map_err(pem)?)))
    }
}

/// The certificate with this fingerprint, and no other.
impl From<Fingerprint> for Trust {
    fn from(fingerprint: Fingerprint) -> Self {
        Self(quic::Verify::Fingerprint(fingerprint.0))
    }
}

fn pem(error: quic::BadPem) -> Error {
    Error::Pem(error.to_string())
}
