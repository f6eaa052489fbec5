//! The end of a connection that connects.
//!
//! The handshake is tried on several pairs of addresses, one a moment after the other, and the first that
//! succeeds is the connection [RFC8305 §5]. Meanwhile the pairs are asked whether anything answers there,
//! so that a likely one is tried sooner, and one that is refused is given up at once.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use fairpath_engine::{EngineConfig, TermsChanges};
use fairpath_quic_core::pairs::{Candidates, Pair, WhyNot};
use fairpath_quic_core::{
    AdmissionKey, Application, BeginError, Connecting, DATAGRAM_MAX, EndpointConfig, Fingerprint, PATHS_MAX, Verify,
};
use noq_proto::MtuDiscoveryConfig;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

use crate::allowance::{Allowance, Allowances};
use crate::connection::Connection;
use crate::driver::{self, Owner, Shared};
use crate::error::Error;
use crate::interfaces::Interface;
use crate::machine::Machine;
use crate::manager::{self, Plan};
use crate::path_control::PathControl;
use crate::probe::Questions;
use crate::sockets::Sockets;

/// How long a handshake is given.
const ATTEMPT: Duration = Duration::from_secs(4);

/// How long a busy peer is asked again, and the pause in between. Shorter than the time for a
/// handshake, so that the error names the reason.
const BUSY: Duration = Duration::from_secs(3);
const BUSY_PAUSE: Duration = Duration::from_millis(100);

/// How long after one handshake the next begins, if nothing has come of the first [RFC8305 §5].
const STAGGER: Duration = Duration::from_millis(250);

/// The same where another pair has answered the question whether anybody is there, and none of those with a handshake has.
/// So soon the answer of one that is a little slower is there, too.
const STAGGER_ANSWERED: Duration = Duration::from_millis(50);

/// The configuration of an end that connects.
#[derive(Clone, Debug)]
pub struct ConnectConfig {
    /// The addresses of the peer.
    pub remotes: Vec<SocketAddr>,
    /// The demand on the peer's certificate.
    pub verify: Verify,
    /// The protocol, and its name in TLS (ALPN). Both ends must say the same.
    pub application: Application,
    /// Interfaces or addresses to use; empty: all usable ones.
    pub via: Vec<String>,
    /// The algorithms of the connection.
    pub engine: EngineConfig,
    /// How many paths to open at most.
    pub paths_max: usize,
    /// The largest datagrams to send and to take, in bytes of UDP payload.
    pub datagram_max: u16,
    /// The key of the mark by which the peer knows those who were invited ([`ListenConfig::admission_key`](crate::ListenConfig::admission_key)).
    pub admission_key: Option<AdmissionKey>,
    /// How much may go over which interfaces; those of which it is spent are not used.
    pub allowances: Vec<Allowance>,
    /// Changes the terms of its paths while it runs.
    pub control: PathControl,
    /// Where it runs.
    pub machine: Machine,
}

impl ConnectConfig {
    /// Connects to `remotes` over all usable interfaces with the default engine, with datagrams as large
    /// as the first hop carries.
    pub fn new(remotes: Vec<SocketAddr>, fingerprint: Fingerprint) -> Self {
        let engine = EngineConfig::live();
        let paths_max = PATHS_MAX as usize;
        let (via, allowances) = (Vec::new(), Vec::new());
        let (admission_key, machine, datagram_max) = (None, Machine::default(), DATAGRAM_MAX);
        let (verify, application) = (Verify::Fingerprint(fingerprint), Application::Fairpath);
        Self {
            remotes,
            verify,
            application,
            via,
            engine,
            paths_max,
            datagram_max,
            admission_key,
            allowances,
            control: PathControl::new(),
            machine,
        }
    }
}

/// Connects to the first address that answers and goes on to open a path per interface pair, with sockets of its own.
/// Must be called within a tokio runtime.
pub async fn connect(config: ConnectConfig) -> Result<Connection, Error> {
    let dialer = Dialer::new(DialConfig {
        application: config.application,
        datagram_max: config.datagram_max,
        allowances: config.allowances.clone(),
        control: config.control.clone(),
        machine: config.machine.clone(),
    })?;
    dialer.connect(config).await
}

/// The settings that connections have in common which an end makes over the same sockets.
#[derive(Clone, Debug)]
pub struct DialConfig {
    /// The protocol, and its name in TLS (ALPN).
    pub application: Application,
    /// The largest datagrams to send and to take, in bytes of UDP payload.
    pub datagram_max: u16,
    /// Bounds of the traffic over single interfaces.
    pub allowances: Vec<Allowance>,
    /// Changes the terms of their paths while they run.
    pub control: PathControl,
    /// The machine that it runs on.
    pub machine: Machine,
}

/// Makes connections over sockets that they share: they are bound where a connection needs one. Where it is dropped,
/// connections that were made live on. Clones use the same sockets.
#[derive(Clone, Debug)]
pub struct Dialer {
    shared: Arc<Shared>,
    application: Application,
    datagram_max: u16,
    _owner: Owner,
}

impl Dialer {
    /// Without a socket. Must be called within a tokio runtime.
    pub fn new(config: DialConfig) -> Result<Self, Error> {
        let DialConfig { application, datagram_max, allowances, control, machine } = config;
        let router = machine.router(EndpointConfig { datagram_max, identity: None, application })?;
        let sockets = Sockets::new(machine, Allowances::from(allowances), Vec::new());
        let shared = Shared::new(router, sockets, None, control);
        let dialer = Self::of(&shared, application, datagram_max);
        driver::spawn(&shared);
        Ok(dialer)
    }

    /// One that makes connections over the sockets of an endpoint that there is.
    pub(crate) fn of(shared: &Arc<Shared>, application: Application, datagram_max: u16) -> Self {
        Self { shared: shared.clone(), application, datagram_max, _owner: shared.owner() }
    }

    /// As [`connect()`] does. Where it runs, what it speaks and how much may go over which interfaces was said when it was
    /// made: what `config` says of these does not count.
    pub async fn connect(&self, config: ConnectConfig) -> Result<Connection, Error> {
        config.engine.build()?;
        let (shared, sockets) = (&self.shared, &self.shared.sockets);
        let machine = sockets.machine().clone();
        machine.check_names(&config.via)?;
        let mut found = machine.towards(&config.via, &config.remotes, &sockets.interfaces())?;
        if found.is_empty() {
            return Err(Error::NoUsableInterface);
        }
        let spent = sockets.allowances().take_spent(&mut found);
        let candidates = candidates(&config, &found, &shared.control.all());
        if candidates.is_empty() {
            if !spent.is_empty() {
                return Err(Error::UsedUp { interfaces: spent });
            }
            return Err(Error::OtherFamily { peer: config.remotes });
        }
        sockets.extend(&found)?;
        shared.sockets_changed();
        let ways: Vec<_> = candidates.plan().iter().map(|pair| (pair.local.address, pair.remote)).collect();
        let ConnectConfig { via, remotes, verify, engine, datagram_max, admission_key, .. } = config;
        let datagrams = machine.search(ways, datagram_max.min(self.datagram_max));
        let application = self.application;
        let caller = Arc::new(Caller { shared: shared.clone(), verify, application, engine, datagrams, admission_key });
        let race = Race {
            caller,
            candidates,
            questions: Questions::new(machine),
            begun: Vec::new(),
            running: Vec::new(),
            attempts: JoinSet::new(),
            failure: None,
        };
        let Won { connection, pair, candidates, questions } = race.run().await?;
        connection.with(|core, now| core.open_paths(candidates, &pair, now));
        manager::spawn(shared, connection.link(), questions, Plan { via, remotes });
        Ok(connection)
    }
}

/// The pairs of addresses that may be tried.
fn candidates(config: &ConnectConfig, found: &[Interface], changes: &TermsChanges) -> Candidates {
    let is_dear = |one: &&Interface| {
        let address = one.address.to_string();
        let names = [one.name.as_str(), address.as_str()];
        let said = config.engine.terms.iter().find(|said| names.contains(&said.of.as_str()));
        let terms = changes.apply(&names, said.map(|said| said.terms).unwrap_or_default());
        terms.backup || terms.cost > 0
    };
    let dear = found.iter().filter(is_dear).map(|one| one.address.to_string());
    Candidates::new(found, &config.remotes, config.paths_max.min(PATHS_MAX as usize)).sparing(dear.collect())
}

/// A connection that was made.
struct Won {
    connection: Connection,
    pair: Pair,
    candidates: Candidates,
    questions: Questions,
}

/// Handshakes on several pairs.
struct Race {
    caller: Arc<Caller>,
    candidates: Candidates,
    questions: Questions,
    /// The pairs whose turn has come.
    begun: Vec<Pair>,
    running: Vec<(Pair, AbortHandle)>,
    attempts: JoinSet<(Pair, Result<Connection, Error>)>,
    /// The first failure that tells more than that nothing answered.
    failure: Option<Error>,
}

impl Race {
    async fn run(mut self) -> Result<Won, Error> {
        // With one pair there is nothing to choose, and to wait for.
        if self.candidates.all().nth(1).is_some() {
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
                    let Ok((pair, result)) = ended else { continue };
                    self.running.retain(|(other, _)| *other != pair);
                    match result {
                        Ok(connection) if is_multipath(&connection) => return Ok(self.won(pair, connection)),
                        Ok(_) => self.failed(&pair, Error::NoMultipath(pair.remote)),
                        Err(error) => self.failed(&pair, error),
                    }
                }
                Some(((local, remote), answer)) = self.questions.answer() => match answer {
                    Ok(()) => {
                        self.candidates.answered(local, remote);
                        if self.is_hastened() {
                            next_at = next_at.min(Instant::now() + STAGGER_ANSWERED);
                        }
                    }
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

    /// Whether the next pair has answered, and none of those whose turn has come. One over a link that is to be spared is not
    /// hastened: the others may be slower.
    fn is_hastened(&self) -> bool {
        let answers = |pair: &Pair| self.candidates.answers(pair.local.local(), pair.remote);
        let next = self.candidates.next(&self.begun);
        next.is_some_and(|pair| answers(&pair) && !self.candidates.is_spared(&pair.local))
            && !self.begun.iter().any(answers)
    }

    /// Begins the next handshake. If there is none to begin, peers that are late are asked whether
    /// they are there.
    fn begin_next(&mut self) -> Result<(), Error> {
        let Some(pair) = self.candidates.next(&self.begun) else {
            let late: Vec<Pair> = self.running.iter().map(|(pair, _)| pair.clone()).collect();
            self.questions.ask(self.candidates.ask_unknown(late));
            return Ok(());
        };
        self.begun.push(pair.clone());
        let connection = match self.caller.call(&pair) {
            Ok(connection) => connection,
            Err(BeginError::Connect(error)) => {
                tracing::debug!(%error, remote = %pair.remote, "not begun");
                self.candidates.failed(pair.local.local(), pair.remote, WhyNot::NoRoute);
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        let (caller, of) = (self.caller.clone(), pair.clone());
        let attempt = self.attempts.spawn(async move {
            let result = tokio::time::timeout(ATTEMPT, caller.unless_busy(connection, &of)).await;
            (of, result.unwrap_or(Err(Error::Unreachable { tried: Vec::new() })))
        });
        self.running.push((pair, attempt));
        Ok(())
    }

    fn failed(&mut self, pair: &Pair, error: Error) {
        let why = match &error {
            Error::Unreachable { .. } => WhyNot::Silent,
            _ => WhyNot::Stranger,
        };
        self.candidates.failed(pair.local.local(), pair.remote, why);
        if why != WhyNot::Silent && self.failure.is_none() {
            self.failure = Some(error);
        }
    }

    /// A handshake that was refused need not be waited for.
    fn give_up_if_certain(&mut self, (local, remote): (std::net::IpAddr, SocketAddr), why: WhyNot) {
        if why.is_certain() {
            let is_meant = |pair: &Pair| pair.local.local() == local && pair.remote == remote;
            self.running.iter().filter(|(pair, _)| is_meant(pair)).for_each(|(_, attempt)| attempt.abort());
            self.running.retain(|(pair, _)| !is_meant(pair));
        }
    }

    fn won(self, pair: Pair, connection: Connection) -> Won {
        Won { connection, pair, candidates: self.candidates, questions: self.questions }
    }
}

fn is_multipath(connection: &Connection) -> bool {
    connection.with(|core, _| core.quic().is_multipath_negotiated())
}

/// Everything needed to begin a handshake.
struct Caller {
    shared: Arc<Shared>,
    verify: Verify,
    application: Application,
    engine: EngineConfig,
    datagrams: MtuDiscoveryConfig,
    admission_key: Option<AdmissionKey>,
}

impl Caller {
    fn call(&self, pair: &Pair) -> Result<Connection, BeginError> {
        let link = self.shared.begin(Connecting {
            local: pair.local.local(),
            remote: pair.remote,
            verify: self.verify.clone(),
            admission_key: self.admission_key.as_ref(),
            engine: &self.engine,
            datagrams: self.datagrams.clone(),
        })?;
        Ok(Connection::new(self.shared.handle(&link)))
    }

    /// The end of the handshake; begins anew where the peer has too much to do, for [`BUSY`] at most.
    async fn unless_busy(&self, mut connection: Connection, pair: &Pair) -> Result<Connection, Error> {
        let until = Instant::now() + BUSY;
        loop {
            let failed = match connection.established().await {
                Ok(()) => return Ok(connection),
                Err(source) => Error::handshake(pair.remote, &self.verify, self.application, source),
            };
            if !matches!(failed, Error::Busy(_)) || Instant::now() >= until {
                return Err(failed);
            }
            tokio::time::sleep(BUSY_PAUSE).await;
            connection = self.call(pair).map_err(|_| Error::Unreachable { tried: Vec::new() })?;
        }
    }
}
