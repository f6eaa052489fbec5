//! TLS 1.3 without a certificate authority: the receiver makes a key for itself, and the sender
//! accepts exactly the certificate whose fingerprint it was given. Programs that have authorities name them.

mod authority;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use noq_proto::crypto::rustls::{NoInitialCipherSuite, QuicClientConfig, QuicServerConfig};
use noq_proto::crypto::{ClientConfig as ClientCrypto, ServerConfig as ServerCrypto};
use noq_proto::{ConnectionError, TransportErrorCode};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring::cipher_suite::{
    TLS13_AES_128_GCM_SHA256, TLS13_AES_256_GCM_SHA384, TLS13_CHACHA20_POLY1305_SHA256,
};
use rustls::crypto::{CryptoProvider, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme, SupportedCipherSuite};

pub use authority::{Authority, BadPem};

/// The name of Fairpath's own protocol in TLS.
const ALPN: &[u8] = b"fairpath/1";

/// The name in the certificate. It proves nothing; the fingerprint does.
pub(crate) const SERVER_NAME: &str = "fairpath";

/// The protocol on the connections of an endpoint. Both ends must name the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Application {
    /// Fairpath's own protocol.
    #[default]
    Fairpath,
    /// The same under a name of the program's own in TLS (ALPN): both ends are its.
    Named(&'static [u8]),
    /// Another one of this name in TLS (ALPN), over streams, with peers that may be of any make: they are sent no
    /// DATAGRAM frames and are not held to the habits of this policy.
    Other(&'static [u8]),
}

impl Application {
    fn alpn(self) -> Vec<u8> {
        match self {
            Self::Fairpath => ALPN.to_vec(),
            Self::Named(name) | Self::Other(name) => name.to_vec(),
        }
    }

    pub(crate) fn is_fairpath(self) -> bool {
        !matches!(self, Self::Other(_))
    }

    /// Why a connection of this application ended, in words: of TLS's alerts noq knows the numbers only.
    pub fn words_for(self, reason: &ConnectionError) -> String {
        let code = match reason {
            ConnectionError::TransportError(error) => error.code,
            ConnectionError::ConnectionClosed(close) => close.error_code,
            _ => return reason.to_string(),
        };
        match code == TransportErrorCode::crypto(NO_APPLICATION_PROTOCOL) {
            true => {
                let offered = String::from_utf8_lossy(&self.alpn()).into_owned();
                format!("the peer speaks another protocol: '{offered}' was offered (ALPN), and it takes none of that")
            }
            false => reason.to_string(),
        }
    }
}

/// The alert `no_application_protocol`, of a peer that speaks none of the protocols that are offered.
const NO_APPLICATION_PROTOCOL: u8 = 120;

/// The connecting end's check of the certificate it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verify {
    /// It has this fingerprint.
    Fingerprint(Fingerprint),
    /// A trusted authority vouches for it and for the name in it.
    Authority(Authority),
    /// Nothing: whoever sits in between can read and change everything. For interoperability runs, and refused
    /// where Fairpath's own protocol is spoken.
    AnyCertificate,
}

impl Verify {
    /// TLS for an end that connects, with the algorithms and the randomness of `provider`.
    pub fn client_crypto(
        self,
        application: Application,
        provider: Arc<CryptoProvider>,
    ) -> Result<Arc<dyn ClientCrypto>, rustls::Error> {
        let verifier: Arc<dyn ServerCertVerifier> = match self {
            Self::Authority(authority) => authority.verifier(provider.clone())?,
            expected => Arc::new(Pinned { expected, provider: provider.clone() }),
        };
        let mut config = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        config.alpn_protocols = vec![application.alpn()];
        Ok(Arc::new(QuicClientConfig::try_from(config).map_err(no_initial_suite)?))
    }

    /// The name that the peer is asked for in TLS.
    pub(crate) fn server_name(&self) -> &str {
        match self {
            Self::Authority(authority) => &authority.name,
            Self::Fingerprint(_) | Self::AnyCertificate => SERVER_NAME,
        }
    }
}

/// The BLAKE3 digest of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint(pub [u8; 32]);

impl Fingerprint {
    fn of(certificate: &CertificateDer<'_>) -> Self {
        Self(*blake3::hash(certificate).as_bytes())
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A text that is not 64 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a fingerprint: 64 hexadecimal digits are wanted")]
pub struct BadFingerprint(String);

impl FromStr for Fingerprint {
    type Err = BadFingerprint;

    fn from_str(text: &str) -> Result<Self, BadFingerprint> {
        let bad = || BadFingerprint(text.into());
        if text.len() != 64 || !text.is_ascii() {
            return Err(bad());
        }
        let mut digest = [0; 32];
        for (byte, digits) in digest.iter_mut().zip(text.as_bytes().chunks(2)) {
            let digits = std::str::from_utf8(digits).map_err(|_| bad())?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| bad())?;
        }
        Ok(Self(digest))
    }
}

/// A key and its certificate.
pub struct Identity {
    certificate: CertificateDer<'static>,
    /// The certificates of its authorities, each signed by the next. A certificate of ours has
    /// none.
    authorities: Vec<CertificateDer<'static>>,
    key: PrivatePkcs8KeyDer<'static>,
}

impl Clone for Identity {
    fn clone(&self) -> Self {
        let (certificate, authorities) = (self.certificate.clone(), self.authorities.clone());
        Self { certificate, authorities, key: self.key.clone_key() }
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({})", self.fingerprint())
    }
}

impl Identity {
    /// A new key from the system's randomness.
    pub fn generate() -> Result<Self, rcgen::Error> {
        Self::with_key(rcgen::KeyPair::generate()?)
    }

    /// The identity of a key that is kept. That of an Ed25519 key is the same each time: its signatures have
    /// nothing random.
    pub fn from_key(key: &PrivatePkcs8KeyDer<'_>) -> Result<Self, rcgen::Error> {
        Self::with_key(rcgen::KeyPair::try_from(key)?)
    }

    fn with_key(key: rcgen::KeyPair) -> Result<Self, rcgen::Error> {
        let certificate = rcgen::CertificateParams::new([SERVER_NAME.to_owned()])?.self_signed(&key)?;
        Ok(Self::of_chain(certificate.into(), Vec::new(), PrivatePkcs8KeyDer::from(key.serialize_der())))
    }

    /// The bytes that make a later run the same end, to be kept where nobody else can read them: the length of the
    /// certificate in 4 bytes, the certificate, the key. The certificates of authorities are left out.
    pub fn to_bytes(&self) -> Vec<u8> {
        let length = (self.certificate.len() as u32).to_be_bytes();
        [&length[..], &self.certificate, self.key.secret_pkcs8_der()].concat()
    }

    /// The identity that was kept so; `None` where this is none. Whether certificate and key belong together is found
    /// out where an endpoint is made.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (&length, rest) = bytes.split_first_chunk::<4>()?;
        let (certificate, key) = rest.split_at_checked(u32::from_be_bytes(length) as usize)?;
        let is_whole = !certificate.is_empty() && !key.is_empty();
        let (certificate, key) = (CertificateDer::from(certificate.to_vec()), PrivatePkcs8KeyDer::from(key.to_vec()));
        is_whole.then(|| Self::of_chain(certificate, Vec::new(), key))
    }

    /// The identity of a key whose certificate somebody else has made. Whether the two belong together is found
    /// out where an endpoint is made.
    pub fn of_chain(
        certificate: CertificateDer<'static>,
        authorities: Vec<CertificateDer<'static>>,
        key: PrivatePkcs8KeyDer<'static>,
    ) -> Self {
        Self { certificate, authorities, key }
    }

    /// The fingerprint by which a peer recognises this key.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.certificate)
    }

    /// TLS for an end that shows this certificate, with the algorithms and the randomness of `provider`.
    pub fn server_crypto(
        &self,
        application: Application,
        provider: Arc<CryptoProvider>,
    ) -> Result<Arc<dyn ServerCrypto>, rustls::Error> {
        let chain = [&[self.certificate.clone()][..], &self.authorities].concat();
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_no_client_auth()
            .with_single_cert(chain, PrivateKeyDer::Pkcs8(self.key.clone_key()))?;
        config.alpn_protocols = vec![application.alpn()];
        Ok(Arc::new(QuicServerConfig::try_from(config).map_err(no_initial_suite)?))
    }
}

fn no_initial_suite(_: NoInitialCipherSuite) -> rustls::Error {
    rustls::Error::General("no initial cipher suite".into())
}

/// The system's randomness.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    let cipher_suites = suites(has_aes()).to_vec();
    Arc::new(CryptoProvider { cipher_suites, ..rustls::crypto::ring::default_provider() })
}

/// The ciphers, in order of preference; the client's order decides. Keys come from X25519, whose
/// strength is that of AES-128 [RFC7748 §1]. A longer key costs four more rounds for each block and
/// protects no better. Without AES in hardware ChaCha20 is about three times as fast [RFC8439 §1].
fn suites(has_aes: bool) -> [SupportedCipherSuite; 3] {
    match has_aes {
        true => [TLS13_AES_128_GCM_SHA256, TLS13_CHACHA20_POLY1305_SHA256, TLS13_AES_256_GCM_SHA384],
        false => [TLS13_CHACHA20_POLY1305_SHA256, TLS13_AES_128_GCM_SHA256, TLS13_AES_256_GCM_SHA384],
    }
}

/// Whether the processor has instructions for AES.
fn has_aes() -> bool {
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    return std::is_x86_feature_detected!("aes");
    #[cfg(target_arch = "aarch64")]
    return std::arch::is_aarch64_feature_detected!("aes");
    #[cfg(not(any(target_arch = "x86", target_arch = "x86_64", target_arch = "aarch64")))]
    return false;
}

/// The error that rustls gets if the certificate has another fingerprint.
pub const WRONG_FINGERPRINT: &str = "certificate has another fingerprint";

/// Accepts what is expected of a certificate, and checks that the peer has its key.
#[derive(Debug)]
struct Pinned {
    expected: Verify,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match self.expected {
            Verify::Fingerprint(expected) if Fingerprint::of(end_entity) != expected => {
                Err(rustls::Error::General(WRONG_FINGERPRINT.into()))
            }
            Verify::Fingerprint(_) | Verify::AnyCertificate => Ok(ServerCertVerified::assertion()),
            // It has a verifier of its own.
            Verify::Authority(_) => Err(rustls::Error::General("not a pinned certificate".into())),
        }
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("QUIC has no TLS 1.2".into()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_survives_text() {
        let fingerprint = Identity::generate().unwrap().fingerprint();
        assert_eq!(fingerprint.to_string().parse(), Ok(fingerprint));
        assert!("12ab".parse::<Fingerprint>().is_err());
        assert!("é".repeat(32).parse::<Fingerprint>().is_err());
    }

    #[test]
    fn the_identity_of_a_key_that_is_kept_is_the_same_each_time() {
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        let [one, again] = [Identity::from_key(&key).unwrap(), Identity::from_key(&key).unwrap()];
        assert_eq!(one.fingerprint(), again.fingerprint());
    }

    #[test]
    fn the_cipher_is_the_one_that_costs_least_on_this_processor() {
        let key = |suite: &SupportedCipherSuite| suite.suite();
        assert_eq!(key(&suites(true)[0]), rustls::CipherSuite::TLS13_AES_128_GCM_SHA256);
        assert_eq!(key(&suites(false)[0]), rustls::CipherSuite::TLS13_CHACHA20_POLY1305_SHA256);
        let flags = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        if !flags.is_empty() {
            let has_aes = flags.split_whitespace().any(|flag| flag == "aes");
            assert_eq!(provider().cipher_suites.iter().map(key).next(), suites(has_aes).first().map(key));
        }
        // None of TLS 1.3 is left out that a peer may insist on.
        let all = rustls::crypto::ring::default_provider().cipher_suites;
        let is_left_out = |suite: &&SupportedCipherSuite| suite.tls13().is_some() && !suites(true).contains(suite);
        assert_eq!(all.iter().find(is_left_out), None);
    }

    #[test]
    fn an_identity_that_was_kept_is_the_same_and_a_part_of_one_is_none() {
        let identity = Identity::generate().unwrap();
        let kept = identity.to_bytes();
        assert_eq!(Identity::from_bytes(&kept).unwrap().fingerprint(), identity.fingerprint());
        assert_eq!(Identity::from_bytes(&kept).unwrap().to_bytes(), kept);
        let certificate_ends = 4 + identity.certificate.len();
        assert!((0..=certificate_ends).all(|length| Identity::from_bytes(&kept[..length]).is_none()));
    }

    #[test]
    fn two_identities_differ() {
        let one = Identity::generate().unwrap().fingerprint();
        assert_ne!(one, Identity::generate().unwrap().fingerprint());
    }
}
