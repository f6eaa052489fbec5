//! The end of a connection that connects.
//!
//! The handshake is tried on several pairs of addresses, one a moment after the other, and the first that
//! succeeds is the connection [RFC8305 §5]. Meanwhile the pairs are asked whether anything answers there,
//! so that a likely one is tried sooner, and one that is refused is given up at once.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use fairpath_engine::EngineConfig;
use noq::{Endpoint, MtuDiscoveryConfig};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

use crate::adapter::ConnectionEngine;
use crate::connection::Connection;
use crate::datagram::{DATAGRAM_MAX, endpoint_config, search};
use crate::endpoint::bind_all;
use crate::error::Error;
use crate::interfaces;
use crate::knock::KnockKey;
use crate::pairs::{Candidates, Pair, WhyNot};
use crate::path_manager::{Opener, Role};
use crate::probe::Questions;
use crate::socket::{Sockets, mapped};
use crate::tls::{self, Fingerprint};
use crate::train::Trains;
use crate::transport::{PATHS_MAX, Trust, transport};

/// How long a handshake is given.
const ATTEMPT: Duration = Duration::from_secs(4);

/// How long a peer that has too much to do is asked again, and how long it is left alone in between. Shorter
/// than a handshake is given, so that who reads the error knows why.
const BUSY: Duration = Duration::from_secs(3);
const BUSY_PAUSE: Duration = Duration::from_millis(100);

/// How long after one handshake the next begins, if nothing has come of the first [RFC8305 §5].
const STAGGER: Duration = Duration::from_millis(250);

/// What a connecting end needs.
#[derive(Clone, Debug)]
pub struct ConnectConfig {
    /// The addresses of the peer.
    pub remotes: Vec<SocketAddr>,
    /// The certificate the peer must show.
    pub fingerprint: Fingerprint,
    /// Interfaces or addresses to use; empty: all usable ones.
    pub via: Vec<String>,
    /// What the connection runs.
    pub engine: EngineConfig,
    /// How many paths to open at most.
    pub paths_max: usize,
    /// The largest datagrams to send and to take, in bytes of UDP payload.
    pub datagram_max: u16,
    /// What the peer knows the invited by ([`ListenConfig::knock`](crate::ListenConfig::knock)).
    pub knock: Option<KnockKey>,
}

impl ConnectConfig {
    /// Connects to `remotes` over all usable interfaces with the default engine, with datagrams as large
    /// as the first hop carries.
    pub fn new(remotes: Vec<SocketAddr>, fingerprint: Fingerprint) -> Self {
        let engine = EngineConfig::live();
        let paths_max = PATHS_MAX as usize;
        Self { remotes, fingerprint, via: Vec::new(), engine, paths_max, datagram_max: DATAGRAM_MAX, knock: None }
    }
}

/// Connects to the first address that answers and goes on to open a path per interface pair. Must be
/// called within a tokio runtime.
pub async fn connect(config: ConnectConfig) -> Result<Connection, Error> {
    config.engine.build()?;
    interfaces::check_names(&config.via, &interfaces::interfaces(&[])?)?;
    let found = interfaces::towards(&config.via, &config.remotes)?;
    if found.is_empty() {
        return Err(Error::NoUsableInterface);
    }
    let candidates = Candidates::new(&found, &config.remotes, config.paths_max.min(PATHS_MAX as usize));
    if candidates.is_empty() {
        return Err(Error::OtherFamily { peer: config.remotes });
    }
    let sockets = bind_all(&found, 0)?;
    let endpoint = Endpoint::new_with_abstract_socket(
        endpoint_config(config.datagram_max),
        None,
        Box::new(sockets.clone()),
        Arc::new(Trains),
    )?;
    let ways: Vec<_> = candidates.plan().iter().map(|pair| (pair.local.address, pair.remote)).collect();
    let datagrams = search(ways, config.datagram_max);
    let race = Race {
        config: &config,
        endpoint: endpoint.clone(),
        sockets: sockets.clone(),
        datagrams,
        candidates,
        questions: Questions::default(),
        begun: Vec::new(),
        running: Vec::new(),
        attempts: JoinSet::new(),
        failure: None,
    };
    let Won { quic, engine, pair: first, candidates, questions } = race.run().await?;
    let ConnectConfig { via, remotes, .. } = config;
    let role = Role::Opener(Box::new(Opener { candidates, questions, first, via, remotes }));
    Ok(Connection::new(quic, engine, sockets, role).with_endpoint(endpoint))
}

/// A connection that was made.
struct Won {
    quic: noq::Connection,
    engine: ConnectionEngine,
    pair: Pair,
    candidates: Candidates,
    questions: Questions,
}

/// Handshakes on several pairs.
struct Race<'a> {
    config: &'a ConnectConfig,
    endpoint: Endpoint,
    sockets: Sockets,
    datagrams: MtuDiscoveryConfig,
    candidates: Candidates,
    questions: Questions,
    /// The pairs whose turn has come.
    begun: Vec<Pair>,
    running: Vec<(Pair, AbortHandle)>,
    attempts: JoinSet<(Pair, ConnectionEngine, Result<noq::Connection, Error>)>,
    /// The first failure that tells more than that nothing answered.
    failure: Option<Error>,
}

impl Race<'_> {
    async fn run(mut self) -> Result<Won, Error> {
        if self.candidates.is_choice() {
            self.questions.ask(self.candidates.ask_all());
        }
        let mut next_at = Instant::now();
        loop {
            if self.running.is_empty() {
                next_at = Instant::now();
            }
            let left = self.candidates.next(&self.begun).is_some();
            if !left && self.running.is_empty() {
                return Err(self.failure.unwrap_or(Error::Unreachable { tried: self.candidates.tried() }));
            }
            tokio::select! {
                biased;
                Some(ended) = self.attempts.join_next() => {
                    // One that was given up brings nothing.
                    let Ok((pair, engine, result)) = ended else { continue };
                    self.running.retain(|(other, _)| *other != pair);
                    match result {
                        Ok(quic) if quic.is_multipath_enabled() => return Ok(self.won(pair, quic, engine)),
                        Ok(_) => self.failed(&pair, Error::NoMultipath(pair.remote)),
                        Err(error) => self.failed(&pair, error),
                    }
                }
                Some(((local, remote), answer)) = self.questions.answer() => match answer {
                    Ok(()) => self.candidates.answered(local, remote),
                    Err(why) => {
                        self.candidates.failed(local, remote, why);
                        self.give_up_if_certain((local, remote), why);
                    }
                },
                () = tokio::time::sleep_until(next_at) => {
                    next_at = Instant::now() + STAGGER;
                    self.begin_next()?;
                }
            }
        }
    }

    /// Begins the next handshake. Where there is none to begin, who is late is asked whether he is there.
    fn begin_next(&mut self) -> Result<(), Error> {
        let Some(pair) = self.candidates.next(&self.begun) else {
            let late: Vec<Pair> = self.running.iter().map(|(pair, _)| pair.clone()).collect();
            self.questions.ask(self.candidates.ask_unknown(late));
            return Ok(());
        };
        self.begun.push(pair.clone());
        let engine = self.config.engine.build().map(ConnectionEngine::new)?;
        let mut client = noq::ClientConfig::new(Arc::new(tls::client_crypto(self.config.fingerprint)?));
        client.transport_config(transport(&engine, self.datagrams.clone(), Trust::Full));
        if let Some(key) = &self.config.knock {
            key.put_on(&mut client);
        }
        // The packets of a handshake name no source: they leave where the connection was made.
        self.sockets.set_primary(pair.local.address);
        let Ok(connecting) = self.endpoint.connect_with(client.clone(), mapped(pair.remote), tls::SERVER_NAME) else {
            self.candidates.failed(pair.local.address, pair.remote, WhyNot::NoRoute);
            return Ok(());
        };
        let again = Again {
            endpoint: self.endpoint.clone(),
            sockets: self.sockets.clone(),
            client,
            pair: pair.clone(),
            fingerprint: self.config.fingerprint,
        };
        let attempt = self.attempts.spawn(async move {
            let result = tokio::time::timeout(ATTEMPT, again.unless_busy(connecting)).await;
            (again.pair, engine, result.unwrap_or(Err(Error::Unreachable { tried: Vec::new() })))
        });
        self.running.push((pair, attempt));
        Ok(())
    }

    fn failed(&mut self, pair: &Pair, error: Error) {
        let why = match &error {
            Error::Unreachable { .. } => WhyNot::Silent,
            _ => WhyNot::Stranger,
        };
        self.candidates.failed(pair.local.address, pair.remote, why);
        if why != WhyNot::Silent && self.failure.is_none() {
            self.failure = Some(error);
        }
    }

    /// A handshake that was refused need not be waited for.
    fn give_up_if_certain(&mut self, (local, remote): (std::net::IpAddr, SocketAddr), why: WhyNot) {
        if why.is_certain() {
            let is_meant = |pair: &Pair| pair.local.address == local && pair.remote == remote;
            self.running.iter().filter(|(pair, _)| is_meant(pair)).for_each(|(_, attempt)| attempt.abort());
            self.running.retain(|(pair, _)| !is_meant(pair));
        }
    }

    fn won(self, pair: Pair, quic: noq::Connection, engine: ConnectionEngine) -> Won {
        self.sockets.set_primary(pair.local.address);
        Won { quic, engine, pair, candidates: self.candidates, questions: self.questions }
    }
}

/// What it takes to begin the same handshake again.
struct Again {
    endpoint: Endpoint,
    sockets: Sockets,
    client: noq::ClientConfig,
    pair: Pair,
    fingerprint: Fingerprint,
}

impl Again {
    /// The end of the handshake; begins anew where the peer has too much to do, for [`BUSY`] at most.
    async fn unless_busy(&self, mut connecting: noq::Connecting) -> Result<noq::Connection, Error> {
        let until = Instant::now() + BUSY;
        loop {
            let failed = match connecting.await {
                Ok(quic) => return Ok(quic),
                Err(source) => Error::handshake(self.pair.remote, self.fingerprint, source),
            };
            if !matches!(failed, Error::Busy(_)) || Instant::now() >= until {
                return Err(failed);
            }
            tokio::time::sleep(BUSY_PAUSE).await;
            self.sockets.set_primary(self.pair.local.address);
            let again = self.endpoint.connect_with(self.client.clone(), mapped(self.pair.remote), tls::SERVER_NAME);
            connecting = again.map_err(|_| Error::Unreachable { tried: Vec::new() })?;
        }
    }
}
