//! `fairpath emu`: a described network in real time, for real programs.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use fairpath_report::text::{print_line, table};
use fairpath_runs::{Described, Emulated, choose_flow, expand, too_large};
use fairpath_scenario::{Flow, Scenario};
use serde_json::json;

use super::sim;
use crate::signals::Interruption;

/// Put a described network between a real UDP program and its server, without root
///
/// The links are those of a scenario file, as `fairpath sim` reads it. Each path of one of its flows
/// becomes an address on this machine: what is sent there crosses the links of that path and comes
/// out at the server, and the answers come back. Links that change in the file change here too.
#[derive(Debug, clap::Args)]
#[command(before_help = "Example:\n  \
    fairpath emu scenarios/wifi_lte_walk.toml --to 127.0.0.1:4433\n  \
    then let the client send to the addresses that are printed, one for each path")]
pub(crate) struct Args {
    /// The scenario
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The server's address
    #[arg(long, value_name = "ADDRESS")]
    to: SocketAddr,
    /// The flow whose paths are made; without it the first of the file
    #[arg(long, value_name = "NAME")]
    flow: Option<String>,
    /// The seed of losses, jitter and impairments, instead of the file's
    #[arg(long)]
    seed: Option<u64>,
    /// Give a parameter of the file this value, in place of those of its `[sweep]`; for several, again
    #[arg(long, value_name = "NAME=VALUE", value_parser = sim::parameter)]
    set: Vec<(String, String)>,
    /// End after so many seconds; without it at Ctrl-C
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<u64>,
    /// Print JSON, one object at the start and one at the end
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let scenario = expand(&sim::only(&Described::read(&args.file, &args.set)?)?, args.seed)?;
    let flow = choose_flow(&scenario, args.flow.as_deref())?;
    let emulated = Emulated::start(&scenario, flow, args.to)?;
    say_addresses(&args, &scenario, flow, &emulated)?;
    let interruption = Interruption::listen()?;
    let patience = args.seconds.map_or(Duration::MAX, Duration::from_secs);
    tokio::select! {
        () = change_links(&scenario, &emulated) => {}
        () = tokio::time::sleep(patience) => {}
        () = interruption.asked() => {}
    }
    say_end(&args, &emulated)
}

fn say_addresses(args: &Args, scenario: &Scenario, flow: &Flow, emulated: &Emulated) -> anyhow::Result<()> {
    let through = |links: &[fairpath_scenario::LinkIndex]| -> Vec<&str> {
        links.iter().map(|link| scenario.links[link.0 as usize].name.as_str()).collect()
    };
    let paths = emulated.relays().iter().zip(&flow.paths);
    if args.json {
        let paths: Vec<_> = paths
            .map(|(relay, path)| json!({"address": relay, "there": through(&path.forward), "back": through(&path.backward)}))
            .collect();
        return print_line(&json!({"flow": flow.name, "to": args.to, "paths": paths}).to_string());
    }
    let rows: Vec<Vec<String>> = paths
        .enumerate()
        .map(|(at, (relay, path))| {
            vec![
                format!("path {at}"),
                relay.to_string(),
                through(&path.forward).join(", "),
                through(&path.backward).join(", "),
            ]
        })
        .collect();
    print_line(table(&["", "send to", "there", "back"], &rows).trim_end())?;
    match args.seconds {
        Some(seconds) => print_line(&format!("Passing on to {} for {seconds} s.", args.to)),
        None => print_line(&format!("Passing on to {} until Ctrl-C.", args.to)),
    }
}

/// Changes links when the scenario says so; does not end.
async fn change_links(scenario: &Scenario, emulated: &Emulated) {
    let begun = tokio::time::Instant::now();
    for change in &scenario.changes {
        tokio::time::sleep_until(begun + change.at).await;
        emulated.change(change);
    }
    std::future::pending().await
}

fn say_end(args: &Args, emulated: &Emulated) -> anyhow::Result<()> {
    if args.json {
        return print_line(&emulated.json().to_string());
    }
    let stats = emulated.stats();
    let too_large = too_large(&stats);
    let rows: Vec<Vec<String>> = stats
        .links
        .iter()
        .map(|link| {
            vec![
                link.name.clone(),
                link.stats.delivered.packets.to_string(),
                link.stats.delivered.bytes.to_string(),
                link.stats.dropped().packets.to_string(),
            ]
        })
        .collect();
    print_line(table(&["link", "packets", "bytes", "dropped"], &rows).trim_end())?;
    if too_large > 0 {
        print_line(&format!(
            "Dropped because links carry no packet of more than {} with the headers of IP and UDP: {too_large}.",
            fairpath_emu::MTU
        ))?;
    }
    Ok(())
}
