//! `fairpath serve`: the far end of `fairpath proxy`.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};

use anyhow::anyhow;
use fairpath_proxy::{Far, FarConfig, FarError};
use fairpath_report::text::tell;

use crate::ends::{Advertise, Via, listen_address, own_address, retried};
use crate::far_state::FarStateArgs;
use crate::host_port::HostPort;
use crate::open_files;
use crate::signals::Interruption;

/// The port where devices find the far end, where none is given.
const PORT: u16 = 4433;

/// Let the programs of other devices out here: the far end of `fairpath proxy`
#[derive(Debug, clap::Args)]
#[command(
    before_help = "Common use:\n  fairpath serve                              on a machine that others reach, at UDP port 4433\n  \
    fairpath serve --listen 0.0.0.0:4433 --listen 0.0.0.0:443     at two: where a network blocks one, the other serves\n  \
    fairpath invite laptop                      then: prints an invitation for a device\n  \
    fairpath devices                            the devices that have joined, and what they have carried",
    after_help = "Devices reach public addresses only. The file `authorized` in the state directory has a line for each: add \
    reach=public,192.168.1.0/24 to let one reach more, and rate=20Mbit/s to cap it. It is read again when it changes."
)]
pub(crate) struct Args {
    /// Listen on this address only; 0.0.0.0:PORT listens on every address of this machine, on that port. May be given
    /// several times, with other ports: to devices each port is a path of its own, and they use those that work
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = listen_address)]
    listen: Vec<HostPort>,
    #[command(flatten)]
    advertise: Advertise,
    /// Show connections, paths and rates to Prometheus at this loopback address, as /metrics
    #[cfg(feature = "metrics")]
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = crate::metrics::local_address)]
    metrics: Option<SocketAddr>,
    #[command(flatten)]
    via: Via,
    #[command(flatten)]
    state: FarStateArgs,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let interruption = Interruption::listen()?;
    open_files::as_many_as_granted();
    let mut listens = Vec::new();
    for listen in &args.listen {
        listens.push(own_address(listen).await?);
    }
    let mut listens = listens.into_iter();
    let config = FarConfig {
        state: args.state.directory()?,
        listen: listens.next().unwrap_or(SocketAddr::from((Ipv4Addr::UNSPECIFIED, PORT))),
        also_listen: listens.collect(),
        advertise: args.advertise.resolve().await?,
        via: args.via.via,
    };
    let mut far = retried(is_early, async || Far::bind(config.clone())).await.map_err(with_advice)?;
    let addresses: Vec<String> = far.addresses().iter().map(ToString::to_string).collect();
    tell(format!("serving at {}", addresses.join(", ")));
    #[cfg(feature = "metrics")]
    let _shown = match args.metrics {
        Some(address) => Some(crate::proxy_metrics::show(address, far.watch()).await?),
        None => None,
    };
    tokio::select! {
        () = far.run(tell) => {}
        () = interruption.asked() => {}
    }
    far.close().await;
    Ok(())
}

/// Whether an interface may just be coming up, as when the machine starts.
fn is_early(error: &FarError) -> bool {
    match error {
        FarError::Endpoint(fairpath::Error::NoUsableInterface | fairpath::Error::OtherFamily { .. }) => true,
        FarError::Endpoint(fairpath::Error::Bind { source, .. }) | FarError::Listen { source, .. } => {
            source.kind() == ErrorKind::AddrNotAvailable
        }
        _ => false,
    }
}

/// Ways out where a port cannot be had.
fn with_advice(error: FarError) -> anyhow::Error {
    let source = match &error {
        FarError::Endpoint(fairpath::Error::Bind { source, .. }) | FarError::Listen { source, .. } => source.kind(),
        _ => return error.into(),
    };
    match source {
        ErrorKind::AddrInUse => {
            anyhow!("{error}; another program uses this port: give another to --listen, as in --listen 0.0.0.0:4434")
        }
        ErrorKind::PermissionDenied => {
            anyhow!("{error}; ports below 1024 need root, or CAP_NET_BIND_SERVICE: give another to --listen")
        }
        _ => error.into(),
    }
}
