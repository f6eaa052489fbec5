//! `fairpath top`: what runs over which paths at this moment, as the end tells it that runs.

mod keys;
mod terminal;

use std::collections::BTreeMap;
use std::io::{ErrorKind, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::anyhow;
use fairpath_core::{Bitrate, ByteCount};
use fairpath_proxy::{Answer, Carried, End, PathNow, Request, Snapshot, change, snapshot};
use fairpath_report::text::{is_unread, output, print_line, safe, table};

use self::keys::{Chosen, HELP, Key};
use self::terminal::{Terminal, fitted};
use super::control::terms;
use crate::running::EndArgs;
use crate::signals::Interruption;

/// The time between two looks.
const PERIOD: Duration = Duration::from_secs(1);

/// The connections that are shown: the busiest.
const ROWS: usize = 20;

/// Moves the cursor to the first place, and clears what is behind it.
const CLEAR: &str = "\x1b[H\x1b[J";

/// Show the paths and connections of `proxy`, `serve`, `send`, `recv` or `stream` while it runs
#[derive(Debug, clap::Args)]
#[command(
    before_help = "Common use:\n  fairpath top                                the proxy of this user, or else the far end\n  \
    fairpath top serve                          the far end: devices, their paths and connections\n  \
    fairpath top send                           a transfer\n  \
    fairpath top --once                         one look, for scripts\n  \
    fairpath top --json                         a line each second, for programs",
    after_help = "In a terminal, keys choose a path and change what it carries, as `fairpath control` does; the last line says which. \
    It asks at a socket that only the user who runs the end can open."
)]
pub(crate) struct Args {
    /// The end to show, such as proxy, serve, send, recv, stream, or send-4711 where several send; by default the first of
    /// them that runs here
    #[arg(value_name = "END")]
    end: Option<String>,
    /// The same, as `control` takes it
    #[arg(long = "end", value_name = "END", hide = true, conflicts_with = "end")]
    as_control: Option<String>,
    /// The state directory of the end
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// Look once
    #[arg(long)]
    once: bool,
    /// Print JSON, a line for each look
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let interruption = Interruption::listen()?;
    let directory =
        EndArgs { end: args.end.clone().or(args.as_control.clone()), state: args.state.clone() }.first().await?;
    let watched = watch(&args, &directory);
    tokio::select! {
        shown = watched => shown,
        () = interruption.asked() => Ok(()),
    }
}

async fn watch(args: &Args, directory: &Path) -> anyhow::Result<()> {
    let is_terminal = std::io::stdout().is_terminal() && !args.once;
    let mut before = asked(directory).await?;
    if args.json {
        loop {
            print_line(&serde_json::to_string(&before)?)?;
            if args.once || is_unread() {
                return Ok(());
            }
            tokio::time::sleep(PERIOD).await;
            before = asked(directory).await?;
        }
    }
    if is_terminal && let Some(terminal) = Terminal::open() {
        return with_keys(terminal, directory, before).await;
    }
    loop {
        tokio::time::sleep(PERIOD).await;
        let now = asked(directory).await?;
        let page = shown(&before, &now, None);
        draw(&if is_terminal { format!("{CLEAR}{}", fitted(&page)) } else { page })?;
        if args.once || is_unread() {
            return Ok(());
        }
        before = now;
    }
}

fn draw(page: &str) -> anyhow::Result<()> {
    let mut out = output();
    write!(out, "{page}")?;
    Ok(out.flush()?)
}

/// Shows pages, and does what keys ask.
async fn with_keys(mut terminal: Terminal, directory: &Path, first: Snapshot) -> anyhow::Result<()> {
    let (mut chosen, mut said) = (Chosen::default(), String::new());
    let (mut before, mut now) = (first.clone(), first);
    let mut tick = tokio::time::interval_at(tokio::time::Instant::now() + PERIOD, PERIOD);
    loop {
        let page = shown(&before, &now, Some(chosen));
        draw(&format!("{CLEAR}{}", fitted(&format!("{said}\n{HELP}\n\n{page}"))))?;
        let pressed = tokio::select! {
            _ = tick.tick() => {
                let next = asked(directory).await?;
                before = std::mem::replace(&mut now, next);
                continue;
            }
            bytes = terminal.pressed() => keys::read(&bytes),
        };
        for key in pressed {
            if key == Key::End {
                return Ok(());
            }
            if let Some(wish) = chosen.press(key, &now) {
                said = match wish {
                    Ok(request) => changed(directory, &request).await,
                    Err(why) => why.to_owned(),
                };
                // The rates stay those of a whole period.
                let terms = asked(directory).await?;
                now.peers = terms.peers;
                now.preferred = terms.preferred;
            }
        }
    }
}

/// The answer to a change, in words.
async fn changed(directory: &Path, request: &Request) -> String {
    match change(directory, request).await {
        Ok(Answer::Done(words) | Answer::Error(words)) => safe(&words),
        Err(error) => format!("the end does not answer: {error}"),
    }
}

async fn asked(directory: &Path) -> anyhow::Result<Snapshot> {
    snapshot(directory).await.map_err(|error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => anyhow!(
            "no end runs with the state directory {}: start one, or name another with --state",
            directory.display()
        ),
        _ => anyhow::Error::from(error).context(format!("cannot ask the end at {}", directory.display())),
    })
}

/// The page of a moment, with rates since another one, and a mark at the path that is chosen.
fn shown(before: &Snapshot, now: &Snapshot, chosen: Option<Chosen>) -> String {
    let elapsed = Duration::from_millis(now.time_unix_ms.saturating_sub(before.time_unix_ms).max(1));
    let up = rate(before.up_bytes, now.up_bytes, elapsed);
    let down = rate(before.down_bytes, now.down_bytes, elapsed);
    let mut page = format!(
        "{} connections open, {} since the start; {up} up, {down} down; {} up and {} down in all\n",
        now.connections_open,
        now.connections_total,
        ByteCount::new(now.up_bytes),
        ByteCount::new(now.down_bytes)
    );
    if now.peers.is_empty() {
        page += "No device is connected.\n";
    }
    let mut rows = Vec::new();
    for peer in &now.peers {
        page += &format!("{}: {}\n", safe(&peer.name), safe(&peer.state));
        rows.extend(peer.paths.iter().map(|path| path_row(&peer.name, path, now.preferred.as_deref())));
    }
    // At the far end what leaves is what comes down to the device.
    let mut head = vec!["path", "to", "round trip", "out", "in", "lost", "terms", "state"];
    // One peer is named above; a narrow terminal has better use for the column.
    if now.peers.len() > 1 {
        head.insert(0, "peer");
    } else {
        rows.iter_mut().for_each(|row| drop(row.remove(0)));
    }
    if let Some(chosen) = chosen {
        let place = chosen.among(rows.len());
        head.insert(0, "");
        for (at, row) in rows.iter_mut().enumerate() {
            row.insert(0, if Some(at) == place { ">" } else { "" }.to_owned());
        }
    }
    if !rows.is_empty() {
        page += &format!("\n{}", table(&head, &rows));
    }
    page + &connections(before, now, elapsed)
}

/// The rate at which a count of bytes grew.
fn rate(before: u64, after: u64, elapsed: Duration) -> Bitrate {
    Bitrate::from_bps((after.saturating_sub(before) as f64 * 8.0 / elapsed.as_secs_f64()) as u64)
}

fn path_row(peer: &str, path: &PathNow, preferred: Option<&str>) -> Vec<String> {
    let sent = path.acked_bytes + path.lost_bytes;
    let lost = if sent == 0 { 0.0 } else { path.lost_bytes as f64 * 100.0 / sent as f64 };
    vec![
        safe(peer),
        safe(&path.name),
        path.remote.clone(),
        path.rtt_ms.map(|rtt| format!("{rtt:.1} ms")).unwrap_or_default(),
        Bitrate::from_bps(path.send_rate_bps).to_string(),
        Bitrate::from_bps(path.receive_rate_bps).to_string(),
        format!("{lost:.1} %"),
        terms(path, preferred),
        safe(&path.state),
    ]
}

/// The busiest connections.
fn connections(before: &Snapshot, now: &Snapshot, elapsed: Duration) -> String {
    let then: BTreeMap<u64, &Carried> = before.connections.iter().map(|one| (one.id, one)).collect();
    let rates = |one: &Carried| {
        let (up, down) = then.get(&one.id).map_or((0, 0), |then| (then.up_bytes, then.down_bytes));
        (rate(up, one.up_bytes, elapsed), rate(down, one.down_bytes, elapsed))
    };
    let mut busiest: Vec<_> = now.connections.iter().map(|one| (rates(one), one)).collect();
    busiest.sort_by_key(|((up, down), one)| (std::cmp::Reverse(up.as_bps() + down.as_bps()), one.id));
    let row = |((up, down), one): &((Bitrate, Bitrate), &Carried)| {
        let mut row = vec![
            safe(&one.target),
            format!("{:?}", one.kind).to_lowercase(),
            format!("{} s", one.age_ms / 1_000),
            up.to_string(),
            down.to_string(),
            ByteCount::new(one.up_bytes).to_string(),
            ByteCount::new(one.down_bytes).to_string(),
        ];
        if now.end == End::Serve {
            row.insert(0, safe(&one.device));
        }
        row
    };
    let rows: Vec<Vec<String>> = busiest.iter().take(ROWS).map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    let mut head = vec!["target", "kind", "age", "up", "down", "sent", "received"];
    if now.end == End::Serve {
        head.insert(0, "device");
    }
    let more = (now.connections_open as usize).saturating_sub(rows.len());
    let rest = if more > 0 { format!("and {more} more\n") } else { String::new() };
    format!("\n{}{rest}", table(&head, &rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(time_unix_ms: u64, down_bytes: u64) -> Snapshot {
        serde_json::from_value(serde_json::json!({
            "end": "serve",
            "time_unix_ms": time_unix_ms,
            "peers": [{ "name": "van", "state": "connected", "paths": [{
                "name": "eth0", "interface": "eth0", "local": "192.0.2.1", "remote": "198.51.100.7:4433", "is_open": true,
                "state": "open", "reason": null, "is_backup": false, "is_parked": false, "cost": 2, "cap_bps": 5_000_000,
                "rtt_ms": 20.25, "send_rate_bps": 8_000_000, "receive_rate_bps": 0,
                "acked_bytes": 90, "lost_bytes": 10, "received_bytes": 5
            }] }],
            "connections": [
                { "id": 1, "device": "van", "target": "still:80", "kind": "tcp", "age_ms": 9_000, "up_bytes": 5, "down_bytes": 5 },
                { "id": 2, "device": "van", "target": "busy:\u{1b}80", "kind": "udp", "age_ms": 2_500, "up_bytes": 0,
                  "down_bytes": down_bytes }
            ],
            "preferred": "192.0.2.1",
            "connections_open": 40,
            "connections_total": 50,
            "up_bytes": 0,
            "down_bytes": down_bytes
        }))
        .unwrap()
    }

    #[test]
    fn a_page_has_rates_since_the_last_one_and_the_busiest_come_first() {
        let page = shown(&at(1_000, 1_000_000), &at(3_000, 3_000_000), None);
        assert!(page.contains("8.0 Mbit/s down"), "{page}");
        assert!(page.contains("20.2 ms") && page.contains("10.0 %") && page.contains("van: connected"), "{page}");
        assert!(!page.contains("peer"), "the only peer stands above its paths: {page}");
        assert!(HELP.lines().all(|line| line.len() <= 60), "narrow terminals show all keys");
        assert!(page.contains("first, cost 2, cap 5.0 Mbit/s"), "{page}");
        assert!(page.find("busy") < page.find("still") && page.contains("and 38 more"), "{page}");
        assert!(!page.contains('>'), "{page}");
        let chosen = shown(&at(1_000, 0), &at(3_000, 0), Some(Chosen::default()));
        assert!(chosen.lines().any(|line| line.starts_with('>') && line.contains("eth0")), "{chosen}");
        assert!(!page.contains('\u{1b}'), "a name from outside moves no cursor: {page:?}");
    }
}
