//! `fairpath doctor`: what each link brings, what all bring together, and why.

use std::io::Write as _;
use std::time::Duration;

use anyhow::bail;
use fairpath_core::Bitrate;
use fairpath_proxy::{Examination, ExamineConfig, Finding, NearError, NearStateError, Shared, examine};
use fairpath_report::text::{output, safe, table, tell};
use serde_json::json;

use crate::ends::Via;
use crate::error::{Interrupted, UsageError};
use crate::far_state::NearStateArgs;
use crate::kernel_mptcp::KernelMptcp;
use crate::signals::Interruption;

/// Examine each link against the far end of `fairpath proxy`, alone and together, and say what it means
#[derive(Debug, clap::Args)]
#[command(
    before_help = "Common use:\n  fairpath doctor                             every usable interface\n  \
    fairpath doctor --via eth0 --via wwan0      these only\n  \
    fairpath doctor --seconds 8                 longer measurements, for slow links\n  \
    fairpath doctor --json                      for programs",
    after_help = "It sends and receives as fast as it can, twice for each link, once more for each further port of the far end, \
    and twice for all together: on a metered link that costs. How long it takes at most is said at the beginning. On a machine \
    whose kernel speaks MPTCP it looks at that, too."
)]
pub(crate) struct Args {
    /// How long each measurement takes, in seconds
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=60))]
    seconds: u32,
    #[command(flatten)]
    via: Via,
    /// The far end that was joined, which is asked without this, too
    #[arg(long, value_name = "HOST", num_args = 0..=1, hide = true)]
    server: Option<Option<String>>,
    #[command(flatten)]
    state: NearStateArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    if let Some(Some(host)) = &args.server {
        let host = safe(host);
        let words = "doctor examines the links to the far end that was joined";
        return Err(UsageError(format!("{words}; join {host} first, and leave the name out here")).into());
    }
    let interruption = Interruption::listen()?;
    let time = Duration::from_secs(args.seconds.into());
    let config = ExamineConfig { state: args.state.directory()?, via: args.via.via, time };
    let progress = |step: String| tell(format!("examining {step} …"));
    let examined = tokio::select! {
        examined = examine(config, progress) => examined.map_err(told)?,
        () = interruption.asked() => bail!(Interrupted("interrupted before the examination had ended".into())),
    };
    let kernel = KernelMptcp::look();
    let mut out = output();
    if args.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&to_json(&examined, kernel.as_ref()))?)?;
        return has_reached(&examined);
    }
    let rows: Vec<Vec<String>> = examined.interfaces.iter().map(row).collect();
    let head = ["link", "address", "seen as", "packets", "round trip", "under load", "lost", "in", "out"];
    write!(out, "{}", table(&head, &rows))?;
    if let Some(together) = &examined.together {
        writeln!(out, "All together: {} in, {} out.", together.down, together.up)?;
    }
    for (name, why) in &examined.unused {
        writeln!(out, "Not used: {name}: {why}.")?;
    }
    for words in examined.words().into_iter().chain(kernel.iter().flat_map(KernelMptcp::words)) {
        writeln!(out, "{words}")?;
    }
    has_reached(&examined)
}

fn has_reached(examined: &Examination) -> anyhow::Result<()> {
    match examined.interfaces.iter().any(|one| one.unreached.is_none()) {
        true => Ok(()),
        false => bail!("no link reaches the far end, so nothing was measured"),
    }
}

fn told(error: NearError) -> anyhow::Error {
    match &error {
        NearError::State(NearStateError::NotJoined) | NearError::Endpoint(fairpath::Error::UnknownInterface { .. }) => {
            UsageError(error.to_string()).into()
        }
        _ => error.into(),
    }
}

fn row(one: &Finding) -> Vec<String> {
    let time = |time: Option<Duration>| time.map(|time| format!("{} ms", time.as_millis())).unwrap_or_default();
    let rate = |rate: Option<Bitrate>| rate.map(|rate| rate.to_string()).unwrap_or_default();
    let seen = match (one.is_translated(), one.seen) {
        (Some(true), Some(seen)) => seen.to_string(),
        (Some(false), _) => "the same".to_owned(),
        _ => String::new(),
    };
    vec![
        one.name.clone(),
        one.local.map(|local| local.to_string()).unwrap_or_default(),
        seen,
        one.mtu.map(|mtu| format!("{mtu} bytes")).unwrap_or_default(),
        time(one.rtt_idle),
        time(one.rtt_loaded),
        one.loss.map(|loss| format!("{:.1} %", loss * 100.0)).unwrap_or_default(),
        rate(one.down),
        rate(one.up),
    ]
}

fn to_json(examined: &Examination, kernel: Option<&KernelMptcp>) -> serde_json::Value {
    let millis = |time: Option<Duration>| time.map(|time| time.as_secs_f64() * 1e3);
    let bps = |rate: Option<Bitrate>| rate.map(Bitrate::as_bps);
    let interface = |one: &Finding| {
        json!({
            "name": one.name,
            "address": one.local.map(|local| local.to_string()),
            "seen_as": one.seen.map(|seen| seen.to_string()),
            "is_translated": one.is_translated(),
            "is_one_mapping": one.is_one_mapping,
            "mtu_bytes": one.mtu,
            "ports": one.ports.iter().map(|(address, rate)| json!({ "address": address.to_string(), "down_bps": rate.as_bps() })).collect::<Vec<_>>(),
            "far_end": one.answers.iter().map(|(address, took)| json!({ "address": address.to_string(), "answered_ms": millis(*took) })).collect::<Vec<_>>(),
            "unreached": one.unreached,
            "rtt_idle_ms": millis(one.rtt_idle),
            "rtt_loaded_ms": millis(one.rtt_loaded),
            "loss": one.loss,
            "down_bps": bps(one.down),
            "up_bps": bps(one.up),
        })
    };
    let together = examined.together.as_ref().map(|together| {
        let bottleneck = |one: &Shared| {
            json!({ "paths": one.links, "held_s": one.held.as_secs_f64(), "of_s": one.of.as_secs_f64(), "confidence": one.confidence })
        };
        json!({
            "down_bps": together.down.as_bps(),
            "up_bps": together.up.as_bps(),
            "shared": together.shared.iter().map(|one| &one.links).collect::<Vec<_>>(),
            "bottlenecks": together.shared.iter().map(bottleneck).collect::<Vec<_>>(),
        })
    });
    let unused: Vec<_> = examined.unused.iter().map(|(name, why)| json!({ "name": name, "reason": why })).collect();
    json!({
        "interfaces": examined.interfaces.iter().map(interface).collect::<Vec<_>>(),
        "together": together,
        "unused": unused,
        "words": examined.words(),
        "kernel_mptcp": kernel,
        "kernel_mptcp_words": kernel.map(KernelMptcp::words),
    })
}
