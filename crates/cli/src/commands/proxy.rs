//! `fairpath proxy`: the port where programs enter.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use fairpath_proxy::{
    Forward, Led, Near, NearConfig, NearError, NearNotice, NearState, NearStateError, Password, Reverse, Target,
};
use fairpath_report::text::tell;

use crate::ends::Via;
use crate::error::UsageError;
use crate::far_state::NearStateArgs;
use crate::leading::{self, Leading, Rules};
use crate::open_files;
use crate::path_args::PathArgs;
use crate::path_facts::Books;
use crate::signals::Interruption;

/// How often the count of quotas is written down.
const COUNTED: Duration = Duration::from_secs(1);

/// Open a port whose connections go over all links and leave at `fairpath serve`: SOCKS5 and HTTP
#[derive(Debug, clap::Args)]
#[command(
    before_help = "Common use:\n  fairpath proxy                              a port for programs, 127.0.0.1:1080\n  \
    fairpath run -- curl -O https://example.com/file         one program through it\n  \
    curl -x socks5h://127.0.0.1:1080 https://example.com/    the same by hand\n  \
    fairpath proxy --via eth0 --via wwan0       over these links only\n  \
    fairpath proxy --path wwan0:backup          the modem only where all others fail\n  \
    fairpath proxy --forward udp:51820=192.0.2.1:51820       WireGuard over all links",
    after_help = "For browsers: http://127.0.0.1:1080/proxy.pac is the address of automatic settings, and \
    http://127.0.0.1:1080/ says whether it works. Other users of this machine can use the port, too, unless a password is \
    set. Without a far end yet: `fairpath serve` and `fairpath invite` on a machine that is reachable, `fairpath join` here."
)]
pub(crate) struct Args {
    /// The port for programs; other machines reach it where this is no loopback address, and should need a password
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:1080")]
    listen: SocketAddr,
    /// Answer programs before the far end has connected, which saves a round trip; a connection that fails is reset then
    #[arg(long)]
    fast_open: bool,
    /// Want the name and the password in this file from programs; it has one line, `name:password`
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Let a port of this machine lead to a target, such as tcp:8080=example.com:80 or udp:51820=192.0.2.1:51820; may be
    /// given several times
    #[arg(long, value_name = "PROTOCOL:PORT=HOST:PORT")]
    forward: Vec<Forward>,
    /// Let a port of the far end lead to a target of this machine's, such as tcp:8080=127.0.0.1:80, where the
    /// device's line there has listen=8080; may be given several times
    #[arg(long, value_name = "PROTOCOL:PORT=HOST:PORT")]
    reverse: Vec<Reverse>,
    /// Carry the TCP connections of all programs of this machine, their questions for names and their other UDP, whatever
    /// they know of proxies; needs root and nftables. Private networks stay outside
    #[arg(long)]
    transparent: bool,
    /// With --transparent: carry what machines behind this interface send, too, such as lan0 of a router; may be given
    /// several times
    #[arg(long, value_name = "IF", requires = "transparent")]
    for_clients: Vec<String>,
    /// With --transparent: let nothing leave this machine, nor pass through it, but what is carried, and what goes to
    /// private networks
    #[arg(long, requires = "transparent")]
    lockdown: bool,
    /// With --transparent: ask this resolver for names; the far end must reach it
    #[arg(long, value_name = "HOST:PORT", default_value = "1.1.1.1:53", requires = "transparent")]
    dns: Target,
    /// Put the rules of --transparent back that a proxy left which was killed, and end
    #[arg(long, conflicts_with_all = ["transparent", "for_clients", "lockdown", "forward", "reverse"])]
    undo: bool,
    /// Show connections, paths and rates to Prometheus at this loopback address, as /metrics
    #[cfg(feature = "metrics")]
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = crate::metrics::local_address)]
    metrics: Option<SocketAddr>,
    #[command(flatten)]
    via: Via,
    #[command(flatten)]
    paths: PathArgs,
    #[command(flatten)]
    state: NearStateArgs,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let interruption = Interruption::listen()?;
    let password = args.password_file.as_deref().map(password).transpose()?;
    if password.is_none() && !args.listen.ip().is_loopback() {
        tell(format!("warning: everybody who reaches {} can use it: set a password with --password-file", args.listen));
    }
    open_files::as_many_as_granted();
    let state = args.state.directory()?;
    if args.undo {
        let was_there = leading::undo(&state)?;
        tell(if was_there { "the rules are put back" } else { "there are no rules to put back" });
        return Ok(());
    }
    if leading::is_marked(&state) && leading::undo(&state)? {
        tell("the rules that an earlier proxy left are put back");
    }
    check_clients(&args)?;
    args.paths.check(&fairpath_engine::EngineConfig::live().scheduler)?;
    let mut books = Books::open(args.paths.all())?;
    books.announce(|line| tell(line));
    let config = NearConfig {
        terms: args.paths.library_terms(),
        allowances: books.meters.allowances(),
        state: state.clone(),
        listen: args.listen,
        via: args.via.via,
        fast_open: args.fast_open,
        password,
        forwards: args.forward,
        reverses: args.reverse,
        transparent: args.transparent.then_some(Led {
            dns: args.dns,
            clients: args.for_clients.clone(),
            answers: leading::ANSWERS,
        }),
    };
    let mut near = Near::bind(config).await.map_err(told)?;
    tell(format!("SOCKS5 and HTTP proxy at {}", near.address()?));
    #[cfg(feature = "metrics")]
    let _shown = match args.metrics {
        Some(address) => Some(crate::proxy_metrics::show(address, near.watch()).await?),
        None => None,
    };
    let far = || NearState::open(&state).and_then(|state| state.far_addresses());
    let mut leading = None;
    if let Some(gates) = near.gates() {
        let far = far()?.into_iter().collect();
        let rules = Rules { gates, clients: args.for_clients.clone(), far, lockdown: args.lockdown };
        let leads = leading.insert(Leading::begin(&state, rules)?);
        let others = match args.for_clients.as_slice() {
            [] => String::new(),
            clients => format!(" and of machines behind {}", clients.join(" and ")),
        };
        let udp = if leads.leads_packets { ", UDP" } else { "" };
        tell(format!("all TCP{udp} and questions for names of this machine{others} are carried, until this ends"));
    }
    let heard = |notice: NearNotice| {
        // It may have got other addresses.
        if let (NearNotice::Connected(_) | NearNotice::Addresses(_), Some(leading), Ok(addresses)) =
            (&notice, &mut leading, far())
        {
            leading.allow(addresses);
        }
        tell(notice);
    };
    let ended = tokio::select! {
        () = near.run(heard) => Ok(()),
        () = interruption.asked() => Ok(()),
        error = keep(&mut books) => Err(error),
    };
    drop(leading);
    books.meters.allow_goodbye();
    near.close().await;
    ended
}

/// Checks that machines can be behind the interfaces of --for-clients, and that these are no links.
fn check_clients(args: &Args) -> anyhow::Result<()> {
    if args.for_clients.is_empty() {
        return Ok(());
    }
    let found = fairpath::interfaces().context("cannot list the interfaces of this machine")?;
    let mut names: Vec<&str> =
        found.iter().filter(|one| !one.address.is_loopback()).map(|one| one.name.as_str()).collect();
    names.dedup();
    for name in &args.for_clients {
        if !names.contains(&name.as_str()) {
            let there = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            let words = format!(
                "--for-clients {name}: no interface of this machine with this name has an address: there is {there}"
            );
            return Err(UsageError(words).into());
        }
        if args.via.via.contains(name) {
            let words = format!("{name} is in --via and in --for-clients: it leads to the far end, or to clients");
            return Err(UsageError(words).into());
        }
    }
    Ok(())
}

/// Writes down what goes over metered interfaces, and tells of quotas that are used up. Ends where the count cannot be
/// kept.
async fn keep(books: &mut Books) -> anyhow::Error {
    let mut tick = tokio::time::interval(COUNTED);
    loop {
        tick.tick().await;
        if let Err(error) = books.enforce(&[], |line| tell(line)) {
            return error;
        }
    }
}

fn password(file: &Path) -> anyhow::Result<Password> {
    let shown = file.display();
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {shown}"))?;
    crate::ticket_args::warn_if_open(file, "password");
    Password::parse(&text).map_err(|error| UsageError(format!("{shown}: {error}")).into())
}

fn told(error: NearError) -> anyhow::Error {
    match &error {
        NearError::State(NearStateError::NotJoined) => UsageError(error.to_string()).into(),
        NearError::Listen { source, .. } if source.kind() == std::io::ErrorKind::AddrInUse => {
            anyhow!("{error}; another program uses this port: give another to --listen")
        }
        NearError::Listen { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => {
            UsageError(format!("{error}; this needs root: run it with sudo")).into()
        }
        _ => error.into(),
    }
}
