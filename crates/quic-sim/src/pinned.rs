//! Everything that is random in an endpoint, from a seed: the same seed gives the same packets, byte for byte.
//! The cryptography is that of the product (or, with the feature `null` and where a run asks for it, none).
//!
//! Nothing here is secret: anyone who knows the seed can read all that is sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use fairpath_quic_core::{Application, Identity, Origin, Verify};
use noq_proto::crypto::{CryptoError, HandshakeTokenKey, HmacKey};
use noq_proto::{ClientConfig, ConnectionId, ConnectionIdGenerator, InvalidCid, ServerConfig, TimeSource};
use rand::{RngCore as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use rustls::crypto::{
    ActiveKeyExchange, CryptoProvider, GetRandomFailed, SecureRandom, SharedSecret, SupportedKxGroup,
};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::{Error, NamedGroup, PeerMisbehaved};
use x25519_dalek::{PublicKey, StaticSecret};

#[cfg(feature = "null")]
use crate::null::Null;

/// The beginning of a PKCS#8 file with an Ed25519 key, before the 32 bytes of the key [RFC8410 §7].
const ED25519: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];

/// The certificate of all servers.
pub fn identity() -> Identity {
    let key = [&ED25519[..], &[7; 32]].concat();
    Identity::from_key(&PrivatePkcs8KeyDer::from(key)).expect("a key of this form")
}

/// The protection of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cryptography {
    /// TLS 1.3, as in the product.
    #[default]
    Tls,
    /// Nothing, which takes less time.
    #[cfg(feature = "null")]
    Null,
}

/// An origin that draws everything from a seed.
#[derive(Debug)]
pub struct Pinned {
    stream: &'static Stream,
    cryptography: Cryptography,
}

impl Pinned {
    /// The origin of this seed.
    pub fn new(cryptography: Cryptography, seed: u64) -> Self {
        // rustls takes its randomness by references that live for ever. An endpoint leaks these 40 bytes.
        Self { stream: Box::leak(Box::new(Stream::new(seed))), cryptography }
    }

    /// A seed for another generator.
    pub(crate) fn seed(&self) -> [u8; 32] {
        self.stream.draw()
    }

    /// The algorithms of the product, in an order that is the same on every processor: so are the bytes.
    fn provider(&self) -> Arc<CryptoProvider> {
        let Self { stream, .. } = *self;
        let product = rustls::crypto::ring::default_provider();
        Arc::new(CryptoProvider { kx_groups: vec![stream], secure_random: stream, ..product })
    }

    #[cfg(feature = "null")]
    fn null(&self) -> Arc<Null> {
        Arc::new(Null { nonce: u64::from_be_bytes(self.stream.draw()) })
    }
}

impl Origin for Pinned {
    fn endpoint(&self) -> noq_proto::EndpointConfig {
        let mut config = noq_proto::EndpointConfig::new(Arc::new(Key(self.stream.draw())));
        let (stream, key) = (self.stream, self.stream.draw());
        config.rng_seed(Some(stream.draw())).cid_generator(Arc::new(move || Box::new(Ids { stream, key: Key(key) })));
        config
    }

    fn client(&self, expected: Verify, application: Application) -> Result<ClientConfig, Error> {
        Ok(ClientConfig::new(match self.cryptography {
            Cryptography::Tls => expected.client_crypto(application, self.provider())?,
            #[cfg(feature = "null")]
            Cryptography::Null => self.null(),
        }))
    }

    fn server(&self, identity: &Identity, application: Application) -> Result<ServerConfig, Error> {
        let crypto = match self.cryptography {
            Cryptography::Tls => identity.server_crypto(application, self.provider())?,
            #[cfg(feature = "null")]
            Cryptography::Null => self.null(),
        };
        let mut config = ServerConfig::new(crypto, Arc::new(Key(self.stream.draw())));
        config.time_source(Arc::new(NoTime));
        Ok(config)
    }

    fn first_id(&self) -> ConnectionId {
        ConnectionId::new(&self.stream.draw::<20>())
    }
}

/// Randomness from a seed. Each draw has a stream of its own, so no lock is needed.
#[derive(Debug)]
struct Stream {
    key: [u8; 32],
    draws: AtomicU64,
}

impl Stream {
    fn new(seed: u64) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        Self { key, draws: AtomicU64::new(0) }
    }

    fn fill(&self, bytes: &mut [u8]) {
        let mut generator = ChaCha8Rng::from_seed(self.key);
        generator.set_stream(self.draws.fetch_add(1, Ordering::Relaxed));
        generator.fill_bytes(bytes);
    }

    fn draw<const LENGTH: usize>(&self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        self.fill(&mut bytes);
        bytes
    }
}

impl SecureRandom for Stream {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), GetRandomFailed> {
        self.fill(bytes);
        Ok(())
    }
}

impl SupportedKxGroup for Stream {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let secret = StaticSecret::from(self.draw::<32>());
        Ok(Box::new(Exchange { public: PublicKey::from(&secret), secret }))
    }

    fn name(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}

struct Exchange {
    secret: StaticSecret,
    public: PublicKey,
}

impl ActiveKeyExchange for Exchange {
    fn complete(self: Box<Self>, peer: &[u8]) -> Result<SharedSecret, Error> {
        let peer: [u8; 32] = peer.try_into().map_err(|_| Error::from(PeerMisbehaved::InvalidKeyShare))?;
        Ok(SharedSecret::from(&self.secret.diffie_hellman(&PublicKey::from(peer)).as_bytes()[..]))
    }

    fn pub_key(&self) -> &[u8] {
        self.public.as_bytes()
    }

    fn group(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}

/// How much of a connection id is drawn, and how much proves it, as in the product: packets of strangers are
/// known by their ids.
const NONCE: usize = 3;
const PROOF: usize = 5;

struct Ids {
    stream: &'static Stream,
    key: Key,
}

impl ConnectionIdGenerator for Ids {
    fn generate_cid(&mut self) -> ConnectionId {
        let nonce = self.stream.draw::<NONCE>();
        ConnectionId::new(&[&nonce[..], &self.key.hash(&nonce)[..PROOF]].concat())
    }

    fn validate(&self, id: ConnectionId) -> Result<(), InvalidCid> {
        let (nonce, proof) = id.split_at(NONCE);
        if self.key.hash(nonce)[..PROOF] == *proof { Ok(()) } else { Err(InvalidCid) }
    }

    fn cid_len(&self) -> usize {
        NONCE + PROOF
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// The key of stateless resets, tokens and connection ids.
struct Key([u8; 32]);

impl Key {
    fn hash(&self, data: &[u8]) -> [u8; 32] {
        *blake3::keyed_hash(&self.0, data).as_bytes()
    }

    fn token_proof(&self, nonce: u128, data: &[u8]) -> [u8; 32] {
        self.hash(&[&nonce.to_le_bytes()[..], data].concat())
    }
}

impl HmacKey for Key {
    fn sign(&self, data: &[u8], signature: &mut [u8]) {
        signature.copy_from_slice(&self.hash(data));
    }

    fn signature_len(&self) -> usize {
        32
    }

    fn verify(&self, data: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        if self.hash(data) == *signature { Ok(()) } else { Err(CryptoError) }
    }
}

/// Tokens can be read by everybody, and made by nobody else.
impl HandshakeTokenKey for Key {
    fn seal(&self, nonce: u128, data: &mut Vec<u8>) -> Result<(), CryptoError> {
        let proof = self.token_proof(nonce, data);
        data.extend(proof);
        Ok(())
    }

    fn open<'a>(&self, nonce: u128, data: &'a mut [u8]) -> Result<&'a [u8], CryptoError> {
        let (token, proof) = data.split_last_chunk::<32>().ok_or(CryptoError)?;
        if self.token_proof(nonce, token) == *proof { Ok(token) } else { Err(CryptoError) }
    }
}

/// It is always 1970: the time in a token depends on nothing but the seed, and no token expires.
struct NoTime;

impl TimeSource for NoTime {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }
}
