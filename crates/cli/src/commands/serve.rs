//! `fairpath serve`: the far end of `fairpath proxy`.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::anyhow;
use fairpath_proxy::{Far, FarConfig, FarError};
use fairpath_report::text::tell;

use crate::ends::{Via, listen_address, own_address, reachable_address};
use crate::far_state::FarStateArgs;
use crate::host_port::HostPort;
use crate::signals::Interruption;

/// The port where devices find the far end, where none is given.
const PORT: u16 = 4433;

/// Let the programs of other devices out here: the far end of `fairpath proxy`
#[derive(Debug, clap::Args)]
#[command(
    before_help = "Common use:\n  fairpath serve                              on a machine that others reach, at UDP port 4433\n  \
    fairpath serve --listen 0.0.0.0:443         at another port\n  \
    fairpath invite laptop                      then: prints an invitation for a device\n  \
    fairpath devices                            the devices that have joined, and what they have carried",
    after_help = "Devices reach public addresses only. The file `authorized` in the state directory has a line for each: add \
    reach=public,192.168.1.0/24 to let one reach more, and rate=20Mbit/s to cap it. It is read again when it changes."
)]
pub(crate) struct Args {
    /// Listen on this address only; 0.0.0.0:PORT listens on every address of this machine, on that port
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = listen_address)]
    listen: Option<HostPort>,
    /// Put this address into invitations, before the machine's own: where a NAT or a firewall passes UDP on to this
    /// machine; may be given several times
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = reachable_address)]
    advertise: Vec<HostPort>,
    #[command(flatten)]
    via: Via,
    #[command(flatten)]
    state: FarStateArgs,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let interruption = Interruption::listen()?;
    let listen = match &args.listen {
        Some(listen) => own_address(listen).await?,
        None => SocketAddr::from((Ipv4Addr::UNSPECIFIED, PORT)),
    };
    let mut advertise = Vec::new();
    for advertised in &args.advertise {
        advertise.extend(advertised.resolve().await?);
    }
    let state = args.state.directory()?;
    let mut far = Far::bind(FarConfig { state, listen, advertise, via: args.via.via }).map_err(with_advice)?;
    let addresses: Vec<String> = far.addresses().iter().map(ToString::to_string).collect();
    tell(format!("serving at {}", addresses.join(", ")));
    tokio::select! {
        () = far.run(tell) => {}
        () = interruption.asked() => {}
    }
    far.close().await;
    Ok(())
}

/// Ways out where a port cannot be had.
fn with_advice(error: FarError) -> anyhow::Error {
    match &error {
        FarError::Endpoint(fairpath::Error::Bind { source, .. }) if source.kind() == std::io::ErrorKind::AddrInUse => {
            anyhow!("{error}; another program uses this port: give another to --listen, as in --listen 0.0.0.0:4434")
        }
        _ => error.into(),
    }
}
