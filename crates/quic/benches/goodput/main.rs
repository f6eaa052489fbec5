//! Goodput of bulk data beside the QUIC stack as it is, in the same run: on loopback without
//! limits, and over emulated bonds of unequal links.
//!
//! `cargo bench -p fairpath-quic`; with words after `--`, only the measurements whose name contains
//! one of them.

mod fairpath;
mod raw;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use fairpath_core::Bitrate;
use fairpath_emu::{Emulator, LinkConfig, QueueConfig, QueueLimit};
use fairpath_quic::{DATAGRAM_ETHERNET, DATAGRAM_MAX};
use raw::Stack;

/// The implementation that moves the data.
#[derive(Clone, Copy)]
enum Mover {
    /// noq with its own controller and one stream.
    Raw(Stack),
    /// This crate, with a congestion control and a coupling.
    Fairpath(&'static str, &'static str),
}

/// Datagrams with which noq's own socket is at its best: it gives ten of them to the kernel at once, which
/// takes no more than 65,507 bytes.
const DATAGRAM_LARGE: u16 = 6_000;

/// How long to wait before measuring, and how long to measure.
#[derive(Clone, Copy)]
struct Span {
    warm_up: Duration,
    measured: Duration,
}

/// The result of a transfer.
#[derive(Clone, Copy, Default)]
struct Moved {
    /// Application data, in Mbit/s.
    mbps: f64,
    /// The processors' time that both ends took, in seconds for each gigabyte; `None` where the system does not say.
    cpu_per_gb: Option<f64>,
}

/// The goodput of one transfer over the given relays; `None` where the connection died. No datagram is larger than `datagram_max`, in bytes of UDP payload.
async fn goodput(
    mover: Mover,
    datagram_max: u16,
    server: SocketAddr,
    relays: Vec<SocketAddr>,
    span: Span,
) -> Option<Moved> {
    match mover {
        Mover::Raw(stack) => raw::goodput(stack, datagram_max, server, relays, span).await,
        Mover::Fairpath(congestion, coupling) => {
            fairpath::goodput(congestion, coupling, datagram_max, server, relays, span).await
        }
    }
}

/// Measures the bytes received during the measured span.
async fn measure(span: Span, received_bytes: impl Fn() -> u64) -> Moved {
    tokio::time::sleep(span.warm_up).await;
    let (from, start, cpu) = (received_bytes(), Instant::now(), cpu_seconds());
    tokio::time::sleep(span.measured).await;
    let bytes = (received_bytes() - from) as f64;
    let cpu_per_gb = cpu.zip(cpu_seconds()).map(|(before, after)| (after - before) * 1e9 / bytes);
    Moved { mbps: bytes * 8.0 / 1e6 / start.elapsed().as_secs_f64(), cpu_per_gb }
}

/// The processors' time that this process has taken, in seconds.
fn cpu_seconds() -> Option<f64> {
    /// Linux counts this time for processes in hundredths of a second, whatever its own clock.
    const TICKS: f64 = 100.0;
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program, in brackets, may have spaces in it; user and system time are the 12th and 13th after.
    let mut fields = text.rsplit(')').next()?.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<f64>().ok();
    Some((next()? + next()?) / TICKS)
}

fn free_address() -> SocketAddr {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port on loopback");
    socket.local_addr().expect("an address")
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let want = |name: &str| wanted.is_empty() || wanted.iter().any(|word| name.contains(word.as_str()));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    if want("loopback") {
        let large = wanted.is_empty() || wanted.iter().any(|word| word == "loopback");
        runtime.block_on(loopback(large));
    }
    if want("startup") {
        runtime.block_on(startup());
    }
    if want("bonds") {
        for bond in BONDS {
            runtime.block_on(unequal(bond));
        }
    }
}

/// Loopback, no emulated limits: what the engine costs, and what `large` datagrams save.
/// `FAIRPATH_GOODPUT_JSON=FILE` writes the figures there, too.
async fn loopback(large: bool) {
    const ROUNDS: usize = 7;
    let span = Span { warm_up: Duration::from_millis(500), measured: Duration::from_millis(1500) };
    println!("Goodput on loopback, no limits: medians of {ROUNDS} rounds, each with all in turn");
    println!("  {:55} {:>8} {:>8}  ratios to the better raw one of its round that", "", "Mbit/s", "CPU s/GB");
    println!(
        "  {:55} {:>8} {:>8}  has the same datagrams (goals {FASTER}, CPU {CHEAPER}) | is as noq comes",
        "", "", ""
    );
    let (raw, reno, lia) =
        (Mover::Raw(Stack::NewReno), Mover::Fairpath("reno", "never"), Mover::Fairpath("lia", "always"));
    let movers = [
        ("raw noq, NewReno", raw, DATAGRAM_ETHERNET),
        ("raw noq, NewReno, AES-128", Mover::Raw(Stack::NewRenoAes128), DATAGRAM_ETHERNET),
        ("raw noq, NewReno", raw, DATAGRAM_LARGE),
        ("fairpath, reno or lia", reno, DATAGRAM_ETHERNET),
        ("fairpath, reno or lia", reno, DATAGRAM_LARGE),
        ("fairpath, reno or lia, as it comes", reno, DATAGRAM_MAX),
    ];
    let one_and_two = |(name, mover, size)| {
        let both = if matches!(mover, Mover::Raw(_)) { mover } else { lia };
        [(name, mover, size, 1), (name, both, size, 2)]
    };
    let movers = movers.into_iter().filter(|(_, _, size)| large || *size == DATAGRAM_ETHERNET);
    let movers: Vec<_> = movers.flat_map(one_and_two).collect();
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let mut rates = Vec::new();
        for &(_, mover, datagram_max, paths) in &movers {
            let server = free_address();
            rates.push(goodput(mover, datagram_max, server, vec![server; paths], span).await.unwrap_or_default());
        }
        rounds.push(rates);
    }
    // The machine's speed drifts: only what was measured together is compared. The peer has the cipher that it
    // takes by itself.
    let better = |round: &[Moved], size: u16| {
        let is_peer = |peer: &usize| matches!(movers[*peer].1, Mover::Raw(Stack::NewReno)) && movers[*peer].2 == size;
        (0..movers.len()).filter(is_peer).map(|peer| round[peer]).max_by(|a, b| a.mbps.total_cmp(&b.mbps))
    };
    let ratios = |of: &dyn Fn(Moved) -> Option<f64>, at: usize, size: u16| -> Vec<f64> {
        rounds.iter().filter_map(|round| Some(of(round[at])? / of(better(round, size)?)?)).collect()
    };
    let ratio = |of: &dyn Fn(Moved) -> Option<f64>, at: usize, size: u16| {
        let ratios = ratios(of, at, size);
        if ratios.is_empty() { "   -".to_owned() } else { format!("{:.2}", median(ratios)) }
    };
    let mut figures = Vec::new();
    let mbps = |moved: Moved| Some(moved.mbps);
    let cpu = |moved: Moved| moved.cpu_per_gb;
    for (at, &(name, mover, size, paths)) in movers.iter().enumerate() {
        let all =
            |of: &dyn Fn(Moved) -> Option<f64>| rounds.iter().filter_map(|round| of(round[at])).collect::<Vec<_>>();
        let seconds = all(&cpu);
        let seconds = if seconds.is_empty() { "-".to_owned() } else { format!("{:.2}", median(seconds)) };
        let name = format!("{name}, {size} bytes, {paths} path{}", if paths == 1 { "" } else { "s" });
        let is_ours = matches!(mover, Mover::Fairpath(..));
        figures.push(serde_json::json!({ "what": name, "unit": "Mbit/s", "samples": all(&mbps) }));
        // The stack alone has no datagrams of some sizes: there is nothing to divide by.
        for (what, samples, goal) in [
            ("goodput", ratios(&mbps, at, size), serde_json::json!({ "at_least": FASTER })),
            ("processors' time", ratios(&cpu, at, size), serde_json::json!({ "at_most": CHEAPER })),
        ] {
            let (what, goal) = (format!("{name}: {what}, of the better raw one's"), is_ours.then_some(goal));
            if !samples.is_empty() {
                figures.push(serde_json::json!({ "what": what, "unit": "", "samples": samples, "goal": goal }));
            }
        }
        println!(
            "  {name:55} {:8.0} {seconds:>8}  {}, CPU {} | {}",
            median(all(&mbps)),
            ratio(&mbps, at, size),
            ratio(&cpu, at, size),
            ratio(&mbps, at, DATAGRAM_ETHERNET)
        );
    }
    if let Some(file) = std::env::var_os("FAIRPATH_GOODPUT_JSON") {
        let text = serde_json::to_string_pretty(&figures).expect("it is plain data");
        std::fs::write(&file, text + "\n").unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    }
}

/// The goals on loopback, beside the better raw one with datagrams of the same size: goodput, and processors' time.
const FASTER: f64 = 1.2;
const CHEAPER: f64 = 0.8;

/// The first moments of a connection, over links of 100 Mbit/s and 60 ms.
async fn startup() {
    const ROUNDS: usize = 7;
    let span = Span { warm_up: Duration::ZERO, measured: Duration::from_millis(700) };
    let bond = Bond { mbps: [100, 100], rtt_ms: [60, 60] };
    println!("First 0.7 s over links of 100 Mbit/s and 60 ms: medians of {ROUNDS} rounds");
    let movers = [
        ("raw noq, CUBIC, 1 path", Mover::Raw(Stack::Default), vec![0]),
        ("fairpath, reno, 1 path", Mover::Fairpath("reno", "never"), vec![0]),
        ("fairpath, lia, auto, 2 paths", Mover::Fairpath("lia", "auto"), vec![0, 1]),
    ];
    for (name, mover, paths) in movers {
        let mut rates = Vec::new();
        for _ in 0..ROUNDS {
            let server = free_address();
            let emulator = emulate(&bond, &paths, server);
            let moved = goodput(mover, DATAGRAM_ETHERNET, server, emulator.relays().to_vec(), span).await;
            rates.push(moved.unwrap_or_default().mbps);
        }
        println!("  {name:28} {:5.2} MB", median(rates) * span.measured.as_secs_f64() / 8.0);
    }
}

/// Two links.
struct Bond {
    mbps: [u64; 2],
    rtt_ms: [u64; 2],
}

const BONDS: &[Bond] = &[
    Bond { mbps: [100, 20], rtt_ms: [20, 60] },
    Bond { mbps: [50, 10], rtt_ms: [20, 60] },
    Bond { mbps: [20, 5], rtt_ms: [20, 60] },
];

/// The share of application data in a full packet on the wire. Of 1,452 bytes of UDP payload it has
/// about 1,412: the short header takes 12, the tag 16, the stream header 12. IP and UDP add 28.
const PAYLOAD_SHARE: f64 = 1412.0 / 1480.0;

/// How often each is measured.
const BOND_ROUNDS: usize = 3;

fn emulate(bond: &Bond, paths: &[usize], server: SocketAddr) -> Emulator {
    let mut builder = Emulator::builder(1);
    for &path in paths {
        let delay = Duration::from_millis(bond.rtt_ms[path] / 2);
        let queue = QueueConfig::DropTail(QueueLimit::Sojourn(Duration::from_millis(bond.rtt_ms[path].max(50))));
        let link = LinkConfig::new(Bitrate::from_mbps(bond.mbps[path])).delay(delay).queue(queue);
        let there = builder.link(&format!("there {path}"), &link).expect("a link");
        let back = builder.link(&format!("back {path}"), &link).expect("a link");
        builder.path(&[there], &[back], server).expect("a path");
    }
    builder.start().expect("an emulation")
}

/// An unequal bond: raw noq on it, raw noq on its better link, and ours.
async fn unequal(bond: &Bond) {
    let span = Span { warm_up: Duration::from_secs(4), measured: Duration::from_secs(10) };
    let sum: u64 = bond.mbps.iter().sum();
    let ceiling = sum as f64 * PAYLOAD_SHARE;
    println!(
        "Bond of {} + {} Mbit/s, {} and {} ms; application data can be {ceiling:.1} Mbit/s",
        bond.mbps[0], bond.mbps[1], bond.rtt_ms[0], bond.rtt_ms[1]
    );
    println!("  {:36} {:>6}  share of that; medians of {BOND_ROUNDS} rounds, least and most", "", "Mbit/s");
    let movers = [
        ("raw noq, CUBIC, better link alone", Mover::Raw(Stack::Default), vec![0]),
        ("raw noq, CUBIC", Mover::Raw(Stack::Default), vec![0, 1]),
        ("fairpath, reno, better link alone", Mover::Fairpath("reno", "never"), vec![0]),
        ("fairpath, uncoupled reno", Mover::Fairpath("reno", "never"), vec![0, 1]),
        ("fairpath, uncoupled cubic", Mover::Fairpath("cubic", "never"), vec![0, 1]),
        ("fairpath, lia", Mover::Fairpath("lia", "always"), vec![0, 1]),
        ("fairpath, olia", Mover::Fairpath("olia", "always"), vec![0, 1]),
        ("fairpath, lia, auto", Mover::Fairpath("lia", "auto"), vec![0, 1]),
    ];
    let mut rates = vec![Vec::new(); movers.len()];
    for _ in 0..BOND_ROUNDS {
        for ((_, mover, paths), rates) in movers.iter().zip(&mut rates) {
            let server = free_address();
            let emulator = emulate(bond, paths, server);
            // A connection that died moved nothing.
            let moved = goodput(*mover, DATAGRAM_ETHERNET, server, emulator.relays().to_vec(), span).await;
            rates.push(moved.unwrap_or_default().mbps);
        }
    }
    for ((name, ..), rates) in movers.iter().zip(&rates) {
        let rate = median(rates.clone());
        let least = rates.iter().copied().fold(f64::INFINITY, f64::min) / ceiling;
        let most = rates.iter().copied().fold(0.0, f64::max) / ceiling;
        println!("  {name:36} {rate:6.1}  {:.2}  ({least:.2} to {most:.2})", rate / ceiling);
    }
}
