//! `fairpath invite`, `fairpath devices` and `fairpath revoke`: the devices of a far end.

use std::io::Write as _;
use std::net::SocketAddr;

use fairpath_core::ByteCount;
use fairpath_proxy::{DeviceName, Devices, Known};
use fairpath_report::text::{output, print_line, table, tell};
use serde_json::json;

use crate::ends::reachable_address;
use crate::far_state::{FarStateArgs, told};
use crate::host_port::HostPort;

/// Print an invitation, which lets one device join `fairpath serve` once, within a day
#[derive(Debug, clap::Args)]
#[command(
    before_help = "Common use:\n  fairpath invite laptop                      on the machine of `fairpath serve`\n  \
    fairpath invite laptop | ssh laptop fairpath join -      and join in one go\n  \
    fairpath invite laptop --address home.example:4433       where it is reached by another address"
)]
pub(crate) struct InviteArgs {
    /// The device's name: up to 32 letters, digits, dots, dashes and underscores
    name: DeviceName,
    /// Where the device finds this machine; by default where `fairpath serve` listens. May be given several times
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = reachable_address)]
    address: Vec<HostPort>,
    #[command(flatten)]
    state: FarStateArgs,
}

/// Show the devices that have joined `fairpath serve`, when they were there, and how much they have carried
#[derive(Debug, clap::Args)]
#[command(before_help = "Example:\n  fairpath devices\n  fairpath devices --json")]
pub(crate) struct DevicesArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    state: FarStateArgs,
}

/// Take a device's right to use `fairpath serve` away: its connections end within a second
#[derive(Debug, clap::Args)]
#[command(before_help = "Example:\n  fairpath revoke laptop")]
pub(crate) struct RevokeArgs {
    /// The device's name, as `fairpath devices` shows it
    name: DeviceName,
    #[command(flatten)]
    state: FarStateArgs,
}

pub(crate) async fn invite(args: InviteArgs) -> anyhow::Result<()> {
    let mut addresses: Vec<SocketAddr> = Vec::new();
    for address in &args.address {
        addresses.extend(address.resolve().await?);
    }
    let invitation = args.state.open()?.invite(&args.name, &addresses).map_err(told)?;
    print_line(&invitation.to_string())?;
    tell(format!("good once, for a day: give it to `fairpath join` on {}", args.name));
    Ok(())
}

pub(crate) fn revoke(args: &RevokeArgs) -> anyhow::Result<()> {
    args.state.open()?.revoke(&args.name).map_err(told)?;
    tell(format!("{} is revoked", args.name));
    Ok(())
}

pub(crate) fn devices(args: &DevicesArgs) -> anyhow::Result<()> {
    let devices = args.state.open()?.devices()?;
    let mut out = output();
    if args.json {
        let list: Vec<_> = devices.known.iter().map(to_json).collect();
        let invited: Vec<_> = devices.invited.iter().map(ToString::to_string).collect();
        let both = json!({ "devices": list, "invited": invited });
        writeln!(out, "{}", serde_json::to_string_pretty(&both)?)?;
        return Ok(());
    }
    let Devices { known, invited, bad } = &devices;
    if known.is_empty() {
        writeln!(
            out,
            "No device has joined. Run this where `fairpath serve` runs; `fairpath invite NAME` invites one."
        )?;
    } else {
        let rows: Vec<Vec<String>> = known.iter().map(row).collect();
        write!(out, "{}", table(&["device", "last seen (UTC)", "sent", "received", "reach", "cap"], &rows))?;
    }
    for name in invited {
        writeln!(out, "{name} is invited and has not joined.")?;
    }
    for line in bad {
        writeln!(out, "authorized: {line}")?;
    }
    Ok(())
}

fn row(known: &Known) -> Vec<String> {
    let (device, usage) = (&known.device, known.usage.unwrap_or_default());
    let seen = match usage.seen_unix_s {
        0 => "never".to_owned(),
        seconds => time::OffsetDateTime::from_unix_timestamp(i64::try_from(seconds).unwrap_or_default())
            .map(|at| format!("{} {:02}:{:02}:{:02}", at.date(), at.hour(), at.minute(), at.second()))
            .unwrap_or_default(),
    };
    let cap = device.rate.map(|rate| rate.to_string()).unwrap_or_default();
    let bytes = |bytes| ByteCount::new(bytes).to_string();
    vec![device.name.to_string(), seen, bytes(usage.up_bytes), bytes(usage.down_bytes), device.reach.to_string(), cap]
}

fn to_json(known: &Known) -> serde_json::Value {
    let (device, usage) = (&known.device, known.usage.unwrap_or_default());
    json!({
        "name": device.name.to_string(),
        "key": device.key.to_string(),
        "reach": device.reach.to_string(),
        "rate_bps": device.rate.map(fairpath_core::Bitrate::as_bps),
        "seen_unix_s": (usage.seen_unix_s > 0).then_some(usage.seen_unix_s),
        "up_bytes": usage.up_bytes,
        "down_bytes": usage.down_bytes,
    })
}
