//! The two ends of a connection as the command line has them: who listens and prints a ticket, and
//! who connects with one.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use fairpath_core::Bitrate;
use fairpath_quic::interfaces::{Advice, advice, interfaces};
use fairpath_quic::{ConnectConfig, Connection, EngineConfig, Error, Fingerprint, ListenConfig, Listener};
use fairpath_report::text::tell;
use fairpath_transfer::{MAX_ADDRESSES, Ticket};

use crate::engine_args::EngineArgs;
use crate::error::UsageError;
use crate::host_port::HostPort;
use crate::lasting::Being;
use crate::later::Later;
use crate::path_args::PathArgs;
use crate::path_facts::Books;

/// The interfaces to use.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Via {
    /// Use only this interface or address; may be given several times
    #[arg(long, value_name = "IF")]
    pub(crate) via: Vec<String>,
}

/// The options of an end that listens.
#[derive(Debug, clap::Args)]
pub(crate) struct ListenArgs {
    /// Listen on this address only, given by number or by the name of a host; 0.0.0.0:PORT listens on every address of
    /// this machine, on that port
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = listen_address)]
    listen: Option<HostPort>,
    #[command(flatten)]
    advertise: Advertise,
    #[command(flatten)]
    via: Via,
    #[command(flatten)]
    paths: PathArgs,
    #[command(flatten)]
    engine: EngineArgs,
}

/// Addresses at which others find an end that listens, beside those of the machine.
#[derive(Debug, clap::Args)]
pub(crate) struct Advertise {
    /// Tell others this address, before the machine's own: where a NAT or a firewall passes UDP on to this machine. The
    /// name of a host stands for all its addresses; may be given several times
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = reachable_address)]
    advertise: Vec<HostPort>,
}

impl Advertise {
    pub(crate) async fn resolve(&self) -> anyhow::Result<Vec<SocketAddr>> {
        let mut addresses = Vec::new();
        for advertised in &self.advertise {
            addresses.extend(advertised.resolve().await?);
        }
        Ok(addresses)
    }
}

/// An end that listens, and what its peers must know.
pub(crate) struct Host {
    pub(crate) listener: Listener,
    pub(crate) ticket: Ticket,
    /// The tickets that follow where the machine gets other addresses.
    pub(crate) later: Later,
}

impl ListenArgs {
    /// The terms of single paths.
    pub(crate) fn paths(&self) -> &PathArgs {
        &self.paths
    }

    /// Refuses what has no effect on live flows.
    pub(crate) fn check_live_flows(&self) -> Result<(), UsageError> {
        self.engine.check_live_flows(&self.paths)
    }

    /// Binds the sockets and makes a ticket with a new key and a new secret.
    pub(crate) async fn open(&self, books: &Books) -> anyhow::Result<Host> {
        self.open_as(Being::new()?, books).await
    }

    /// The same with a key and a secret that are given.
    pub(crate) async fn open_as(&self, being: Being, books: &Books) -> anyhow::Result<Host> {
        let engine = self.engine.config_with(&self.paths)?;
        let names_one = |listen: &&HostPort| listen.ip().is_none_or(|ip| !ip.is_unspecified());
        if let Some(address) = self.listen.as_ref().filter(names_one).filter(|_| !self.via.via.is_empty()) {
            return Err(UsageError(format!(
                "--listen {address} names one address already; for a port on the interfaces of --via use --listen 0.0.0.0:{}",
                address.port()
            ))
            .into());
        }
        let listen = match &self.listen {
            Some(listen) => Some(own_address(listen).await?),
            None => None,
        };
        let advertise = self.advertise.resolve().await?;
        let Being { identity, secret, port } = being;
        let listener = once_up(async || {
            let config = ListenConfig {
                admission_key: Some(secret.admission_key()),
                listen,
                port,
                identity: identity.clone(),
                advertise: advertise.clone(),
                via: self.via.via.clone(),
                engine: engine.clone(),
                allowances: books.meters.allowances(),
                control: books.running.control.clone(),
                ..ListenConfig::new()?
            };
            Listener::bind(config)
        });
        let listener = listener.await.map_err(with_advice)?;
        // A VPN may well be meant, so only `fairpath paths` tells of it.
        warn(&self.via.via, |advice| !matches!(advice, Advice::Vpn { .. }))?;
        let mut addresses = listener.addresses();
        addresses.truncate(MAX_ADDRESSES);
        let ticket = Ticket { addresses, fingerprint: listener.fingerprint().0, secret };
        let later = Later::new(listener.watch_addresses(), ticket.clone());
        Ok(Host { listener, ticket, later })
    }
}

/// Says what should be changed on this machine, of what `concerns` this end.
fn warn(via: &[String], concerns: impl Fn(&Advice) -> bool) -> anyhow::Result<()> {
    let advice = advice(&interfaces(via)?);
    advice.iter().filter(|advice| concerns(advice)).for_each(|advice| tell(format!("warning: {advice}")));
    Ok(())
}

pub(crate) fn listen_address(text: &str) -> Result<HostPort, String> {
    HostPort::parse(
        text,
        "an address and a port are needed, such as 192.0.2.1:4433, [2001:db8::1]:4433 or 0.0.0.0:4433",
    )
}

/// The first address of this machine that is meant.
pub(crate) async fn own_address(listen: &HostPort) -> anyhow::Result<SocketAddr> {
    let addresses = listen.resolve().await?;
    let own = interfaces(&[])?;
    let is_own = |address: &&SocketAddr| own.iter().any(|one| one.address == address.ip());
    Ok(*addresses.iter().find(is_own).unwrap_or(&addresses[0]))
}

/// A total rate that lets something through.
fn limit(text: &str) -> Result<Bitrate, String> {
    match fairpath_scenario::units::rate(text) {
        Ok(rate) if rate == Bitrate::ZERO => Err("nothing could be sent; a rate such as 20Mbit/s is needed".into()),
        result => result.map_err(|error| error.to_string()),
    }
}

/// An address that others can send to.
pub(crate) fn reachable_address(text: &str) -> Result<HostPort, String> {
    let right = "an address and a port are needed, such as 203.0.113.7:4433, [2001:db8::1]:4433 or nas.example:4433";
    let address = HostPort::parse(text, right)?;
    match address.ip() {
        _ if address.port() == 0 => {
            Err("a port is needed that packets are passed on from, such as 203.0.113.7:4433".into())
        }
        Some(ip) if ip.is_unspecified() || ip.is_multicast() => {
            Err("nobody can connect to this address: give the one by which others reach this machine".into())
        }
        _ => Ok(address),
    }
}

/// Adds advice to the error of a port that cannot be bound.
fn with_advice(error: Error) -> anyhow::Error {
    let advice = match &error {
        Error::Bind { source, .. } => match source.kind() {
            io::ErrorKind::AddrInUse => "another program uses this port: give another to --listen, or 0 for any",
            io::ErrorKind::PermissionDenied => "ports below 1024 need root: give another to --listen, or 0 for any",
            _ => return error.into(),
        },
        _ => return error.into(),
    };
    anyhow!("{error}; {advice}")
}

/// The options of an end that connects.
#[derive(Debug, clap::Args)]
pub(crate) struct ConnectArgs {
    #[command(flatten)]
    via: Via,
    #[command(flatten)]
    paths: PathArgs,
    /// Send no more than this on all paths together, such as 20Mbit/s
    #[arg(long, value_name = "RATE", value_parser = limit)]
    limit: Option<Bitrate>,
    #[command(flatten)]
    engine: EngineArgs,
}

impl ConnectArgs {
    /// Refuses what says how to send, where this end receives.
    pub(crate) fn check_receiving(&self) -> Result<(), UsageError> {
        match self.limit {
            Some(rate) => {
                Err(UsageError(format!("--limit {rate} says what is sent, and this end receives; leave it out")))
            }
            None => self.paths.check_receiving(),
        }
    }

    /// The terms of single paths.
    pub(crate) fn paths(&self) -> &PathArgs {
        &self.paths
    }

    /// Refuses what has no effect on live flows.
    pub(crate) fn check_live_flows(&self) -> Result<(), UsageError> {
        self.engine.check_live_flows(&self.paths)
    }

    /// The scheduler of what this end sends.
    pub(crate) fn scheduler(&self) -> String {
        self.engine.config().scheduler
    }

    /// The configuration to connect to whoever printed the ticket. Says what should be changed on this machine for that.
    pub(crate) fn config(&self, ticket: &Ticket, books: &Books) -> anyhow::Result<ConnectConfig> {
        // Others send acknowledgements only: the interface that these come in on matters little.
        warn(&self.via.via, |advice| matches!(advice, Advice::ReversePath { .. }))?;
        Ok(ConnectConfig {
            via: self.via.via.clone(),
            engine: EngineConfig { limit: self.limit, ..self.engine.config_with(&self.paths)? },
            admission_key: Some(ticket.secret.admission_key()),
            allowances: books.meters.allowances(),
            control: books.running.control.clone(),
            ..ConnectConfig::new(ticket.addresses.clone(), Fingerprint(ticket.fingerprint))
        })
    }
}

/// Connects to whoever printed the ticket.
pub(crate) async fn connect(config: &ConnectConfig) -> Result<Connection, Error> {
    once_up(async || fairpath_quic::connect(config.clone()).await).await
}

/// How long an interface that was just switched on may take to be usable: the kernel says so late.
const LINK_UP: Duration = Duration::from_secs(2);

/// Tries again, for a moment, while there is no usable interface.
async fn once_up<T>(attempt: impl AsyncFn() -> Result<T, Error>) -> Result<T, Error> {
    let is_early = |error: &Error| matches!(error, Error::NoUsableInterface | Error::OtherFamily { .. });
    retried(is_early, attempt).await
}

/// Tries again, for a moment, while the error may be that an interface is not up yet.
pub(crate) async fn retried<T, E>(
    is_early: impl Fn(&E) -> bool,
    attempt: impl AsyncFn() -> Result<T, E>,
) -> Result<T, E> {
    let deadline = Instant::now() + LINK_UP;
    loop {
        match attempt().await {
            Err(error) if is_early(&error) && Instant::now() < deadline => {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            result => return result,
        }
    }
}

/// Ends a connection in peace, and waits until the peer has heard of it.
pub(crate) async fn say_goodbye(connection: &Connection) {
    connection.end(0, "done").await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_a_port_is_told_what_would_be_right() {
        assert!(listen_address("127.0.0.1").unwrap_err().contains("192.0.2.1:4433"));
        assert!(listen_address("[::]:0").is_ok());
        assert!(reachable_address("203.0.113.7").unwrap_err().contains("203.0.113.7:4433"));
        assert!(reachable_address("0.0.0.0:4433").unwrap_err().contains("nobody can connect"));
        assert!(reachable_address("203.0.113.7:0").unwrap_err().contains("a port is needed"));
        assert!(reachable_address("[2001:db8::1]:4433").is_ok());
    }
}
