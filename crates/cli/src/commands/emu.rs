//! `fairpath emu`: a described network in real time, for real programs.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use fairpath_emu::{Emulator, LinkId};
use fairpath_report::text::{print_line, table};
use fairpath_runs::{Described, expand};
use fairpath_scenario::{ChangeKind, Flow, Scenario};
use serde_json::json;

use super::sim;
use crate::error::UsageError;
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
    let flow = choose(&scenario, args.flow.as_deref())?;
    let mut builder = Emulator::builder(scenario.seed);
    let mut links = Vec::new();
    for link in &scenario.links {
        links.push(builder.link(&link.name, &link.config)?);
    }
    for path in &flow.paths {
        let chain = |chain: &[fairpath_scenario::LinkIndex]| -> Vec<LinkId> {
            chain.iter().map(|link| links[link.0 as usize]).collect()
        };
        builder.path(&chain(&path.forward), &chain(&path.backward), args.to)?;
    }
    let emulator = builder.start()?;
    say_addresses(&args, &scenario, flow, &emulator)?;
    let interruption = Interruption::listen()?;
    let patience = args.seconds.map_or(Duration::MAX, Duration::from_secs);
    tokio::select! {
        () = change_links(&scenario, &links, &emulator) => {}
        () = tokio::time::sleep(patience) => {}
        () = interruption.asked() => {}
    }
    say_end(&args, &emulator)
}

fn choose<'a>(scenario: &'a Scenario, name: Option<&str>) -> anyhow::Result<&'a Flow> {
    let found = match name {
        Some(name) => scenario.flows.iter().find(|flow| flow.name == name || flow.class == name),
        None => scenario.flows.first(),
    };
    Ok(found.ok_or_else(|| {
        let mut known: Vec<&str> = scenario.flows.iter().map(|flow| flow.class.as_str()).collect();
        known.dedup();
        UsageError(match name {
            Some(name) => format!("the scenario has no flow '{name}'; it has {}", known.join(", ")),
            None => "the scenario has no flow, so there is no path to make".to_owned(),
        })
    })?)
}

fn say_addresses(args: &Args, scenario: &Scenario, flow: &Flow, emulator: &Emulator) -> anyhow::Result<()> {
    let through = |links: &[fairpath_scenario::LinkIndex]| -> Vec<&str> {
        links.iter().map(|link| scenario.links[link.0 as usize].name.as_str()).collect()
    };
    let paths = emulator.relays().iter().zip(&flow.paths);
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
async fn change_links(scenario: &Scenario, links: &[LinkId], emulator: &Emulator) {
    let begun = tokio::time::Instant::now();
    for change in &scenario.changes {
        tokio::time::sleep_until(begun + change.at).await;
        let link = links[change.link.0 as usize];
        match &change.kind {
            ChangeKind::Up(up) => emulator.set_link_up(link, *up),
            ChangeKind::Rate(rate) => emulator.set_link_rate(link, rate.clone()),
            ChangeKind::Filter(filter) => emulator.set_filter(link, *filter),
        }
    }
    std::future::pending().await
}

fn say_end(args: &Args, emulator: &Emulator) -> anyhow::Result<()> {
    let stats = emulator.stats();
    let too_large: u64 =
        stats.paths.iter().map(|path| path.forward.too_large.packets + path.backward.too_large.packets).sum();
    if args.json {
        let links: Vec<_> = stats
            .links
            .iter()
            .map(|link| {
                json!({
                    "name": link.name,
                    "offered_packets": link.stats.offered.packets,
                    "delivered_packets": link.stats.delivered.packets,
                    "delivered_bytes": link.stats.delivered.bytes.get(),
                    "dropped_packets": link.stats.dropped().packets,
                    "marked_packets": link.stats.marked.packets,
                })
            })
            .collect();
        return print_line(&json!({"links": links, "too_large_packets": too_large}).to_string());
    }
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
