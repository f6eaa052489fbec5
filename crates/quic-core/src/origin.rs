//! Where an endpoint has from what it cannot compute: what is random, and the cryptography that rests on it.
//!
//! The product has one origin, the system, and no way to name another: [`Endpoint::new`](crate::Endpoint::new)
//! asks for none. A simulation needs the same run from the same seed, and turns on the feature
//! `simulation` for a constructor that asks.

use std::fmt;

use noq_proto::{ClientConfig, ConnectionId, ConnectionIdGenerator as _, RandomConnectionIdGenerator, ServerConfig};

use crate::admission_key;
use crate::tls::{self, Application, Identity, Verify};

/// The source of an endpoint's randomness and cryptography.
pub trait Origin: fmt::Debug + Send + Sync {
    /// The stack's settings: the seed of what it draws, its connection ids, the key of its stateless resets.
    fn endpoint(&self) -> noq_proto::EndpointConfig;

    /// The cryptography of an end that connects, and what it demands of the other's certificate.
    fn client(&self, expected: Verify, application: Application) -> Result<ClientConfig, rustls::Error>;

    /// That of an end that is connected to, and the key of its tokens.
    fn server(&self, identity: &Identity, application: Application) -> Result<ServerConfig, rustls::Error>;

    /// The connection ID that the first packet is addressed to: 20 bytes that nobody can predict, and new
    /// for each connection [RFC9000 §7.2].
    fn first_id(&self) -> ConnectionId;
}

/// The system's randomness, and TLS.
#[derive(Debug)]
pub(crate) struct System;

impl Origin for System {
    fn endpoint(&self) -> noq_proto::EndpointConfig {
        noq_proto::EndpointConfig::default()
    }

    fn client(&self, expected: Verify, application: Application) -> Result<ClientConfig, rustls::Error> {
        Ok(ClientConfig::new(expected.client_crypto(application, tls::provider())?))
    }

    fn server(&self, identity: &Identity, application: Application) -> Result<ServerConfig, rustls::Error> {
        Ok(ServerConfig::with_crypto(identity.server_crypto(application, tls::provider())?))
    }

    fn first_id(&self) -> ConnectionId {
        RandomConnectionIdGenerator::new(admission_key::ID).generate_cid()
    }
}
