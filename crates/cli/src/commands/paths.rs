//! `fairpath paths`: the interfaces and addresses that paths can start from.

use std::io::Write as _;

use anyhow::Context as _;
use fairpath_quic::interfaces::{self, Advice, Interface};
use fairpath_report::text::{output, table};
use fairpath_transfer::MAX_ADDRESSES;
use serde_json::json;

use crate::ends::Via;

/// Show the interfaces and addresses that would be used and stand in a ticket, and why others are not
#[derive(Debug, clap::Args)]
#[command(before_help = "Example:\n  fairpath paths\n  fairpath paths --via wlan0 --via wwan0 --json")]
pub(crate) struct Args {
    #[command(flatten)]
    via: Via,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let via = &args.via.via;
    let all = interfaces::interfaces(via).context("cannot read the network interfaces")?;
    interfaces::check_names(via, &all).map_err(fairpath_quic::Error::from)?;
    // Loopback addresses named with --via are usable without being configured.
    let mut shown = all;
    for one in interfaces::usable(via)? {
        if !shown.iter().any(|known| known.address == one.address) {
            shown.push(one);
        }
    }
    let mut out = output();
    if args.json {
        let is_in_ticket = |one: &Interface| in_ticket(&shown).any(|other| other == one);
        let list: Vec<_> = shown.iter().map(|one| to_json(one, is_in_ticket(one))).collect();
        writeln!(out, "{}", serde_json::to_string_pretty(&list)?)?;
        return Ok(());
    }
    let rows: Vec<Vec<String>> = shown
        .iter()
        .map(|one| {
            let verdict = match &one.unusable {
                None => "used".to_owned(),
                Some(why) => format!("not used: {why}"),
            };
            vec![one.name.clone(), one.address.to_string(), binding(one).to_owned(), verdict]
        })
        .collect();
    write!(out, "{}", table(&["interface", "address", "bound by", ""], &rows))?;
    let advice = interfaces::advice(&shown);
    // A VPN that is not named starts none beside what it runs over.
    let is_beside = |one: &Interface| {
        via.is_empty() && advice.iter().any(|advice| matches!(advice, Advice::Vpn { name } if *name == one.name))
    };
    let counted: Vec<Interface> = shown.iter().filter(|one| !is_beside(one)).cloned().collect();
    match interfaces::starts(&counted) {
        0 => writeln!(out, "No path can start here.")?,
        1 => writeln!(out, "One path can start here: there is nothing to bond it with.")?,
        paths => writeln!(out, "{paths} paths can start here.")?,
    }
    for advice in &advice {
        writeln!(out, "Note: {advice}.")?;
    }
    let mut in_ticket: Vec<String> = in_ticket(&shown).map(|one| one.address.to_string()).collect();
    // Two modems may give the same address.
    in_ticket.dedup();
    if !in_ticket.is_empty() {
        writeln!(out, "A ticket would name {}.", in_ticket.join(", "))?;
    }
    Ok(())
}

/// The addresses that `recv` and `perf server` would put into a ticket.
fn in_ticket(shown: &[Interface]) -> impl Iterator<Item = &Interface> {
    shown.iter().filter(|one| one.unusable.is_none()).take(MAX_ADDRESSES)
}

/// How a path from here would be tied to its interface.
fn binding(one: &Interface) -> &'static str {
    match &one.unusable {
        Some(_) => "-",
        None => match fairpath_quic::binding_of(one) {
            Ok(fairpath_quic::Binding::Device) => "device",
            Ok(fairpath_quic::Binding::Address) => "source address",
            Err(_) => "cannot be bound",
        },
    }
}

fn to_json(one: &Interface, in_ticket: bool) -> serde_json::Value {
    json!({
        "interface": one.name,
        "address": one.address,
        "prefix_bits": one.prefix_bits,
        "used": one.unusable.is_none(),
        "in_ticket": in_ticket,
        "bound_by": binding(one),
        "reason": one.unusable.as_ref().map(ToString::to_string),
    })
}
