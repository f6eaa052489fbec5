//! Certificates that authorities vouch for, as programs have them in PEM files.

use std::sync::Arc;

use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName};

use super::Identity;

/// Authorities that are trusted to vouch for certificates, and the name that the peer's certificate must have.
#[derive(Clone, Debug)]
pub struct Authority {
    roots: Arc<RootCertStore>,
    pub(super) name: String,
}

/// Two are equal that trust the very same store for the same name.
impl PartialEq for Authority {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.roots, &other.roots) && self.name == other.name
    }
}

impl Eq for Authority {}

/// A certificate, key or name that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadPem {
    /// The text has no certificate.
    #[error("there is no certificate in the text: a section `BEGIN CERTIFICATE` is wanted")]
    NoCertificate,
    /// The text has no key in the wanted form.
    #[error("there is no private key in the text: a section `BEGIN PRIVATE KEY` (PKCS#8) is wanted")]
    NoKey,
    /// A section cannot be read.
    #[error("a section of the text cannot be read: {0}")]
    Section(String),
    /// A certificate cannot be that of an authority.
    #[error("a certificate cannot be that of an authority: {0}")]
    Root(String),
    /// The name is no name of a host.
    #[error("'{0}' is no name of a host, and no address of one")]
    Name(String),
}

impl Authority {
    /// Trusts the authorities whose certificates are in `pem` to vouch for an end called `name`: a host's name, or
    /// its address.
    pub fn from_pem(pem: &[u8], name: &str) -> Result<Self, BadPem> {
        if ServerName::try_from(name).is_err() {
            return Err(BadPem::Name(name.into()));
        }
        let mut roots = RootCertStore::empty();
        for certificate in certificates(pem)? {
            roots.add(certificate).map_err(|error| BadPem::Root(error.to_string()))?;
        }
        Ok(Self { roots: Arc::new(roots), name: name.into() })
    }

    pub(super) fn verifier(self, provider: Arc<CryptoProvider>) -> Result<Arc<dyn ServerCertVerifier>, rustls::Error> {
        let builder = WebPkiServerVerifier::builder_with_provider(self.roots, provider);
        Ok(builder.build().map_err(|error| rustls::Error::General(error.to_string()))?)
    }
}

impl Identity {
    /// The identity of a certificate and its key, as they stand in PEM files. The certificates of
    /// its authorities follow it. Whether certificate and key belong together is found out when an
    /// endpoint is made.
    pub fn from_pem(certificates_pem: &[u8], key_pem: &[u8]) -> Result<Self, BadPem> {
        let mut chain = certificates(certificates_pem)?;
        let key = PrivatePkcs8KeyDer::from_pem_slice(key_pem).map_err(|_| BadPem::NoKey)?;
        let certificate = chain.remove(0);
        Ok(Self::of_chain(certificate, chain, key))
    }
}

/// The certificates in the text, at least one.
fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, BadPem> {
    let sections: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let found = sections.map_err(|error| BadPem::Section(error.to_string()))?;
    if found.is_empty() { Err(BadPem::NoCertificate) } else { Ok(found) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pem(label: &str, der: &[u8]) -> Vec<u8> {
        format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", data_encoding::BASE64.encode(der)).into_bytes()
    }

    #[test]
    fn text_that_holds_no_certificate_or_key_is_told_as_such() {
        let key = rcgen::KeyPair::generate().unwrap();
        let own = rcgen::CertificateParams::new(["host.example".to_owned()]).unwrap().self_signed(&key).unwrap();
        let (own, key) = (pem("CERTIFICATE", own.der()), pem("PRIVATE KEY", &key.serialize_der()));
        assert!(Identity::from_pem(&own, &key).is_ok());
        assert_eq!(Identity::from_pem(b"", &key).unwrap_err(), BadPem::NoCertificate);
        assert_eq!(Identity::from_pem(&own, &own).unwrap_err(), BadPem::NoKey);
        assert!(matches!(Identity::from_pem(&own[..60], &key), Err(BadPem::Section(_))));
        let authority = Authority::from_pem(&own, "host.example").unwrap();
        assert_eq!(authority, authority.clone());
        assert_eq!(Authority::from_pem(b"", "host.example").unwrap_err(), BadPem::NoCertificate);
        assert_eq!(Authority::from_pem(&own, "no host").unwrap_err(), BadPem::Name("no host".into()));
    }
}
