//! Figures of streams: shares of what records carry, outages of a path, fairness among a thousand, a sparse stream
//! beside a bulk one, and how they open. In virtual time, and on loopback in real time with both in turn.
//!
//! On loopback each form is told by its rate, and by the processors' time that a byte takes at both ends together, which
//! other programs on the machine hardly change.
//!
//! `FAIRPATH_STREAMS=quick` takes a short form of each, `FAIRPATH_STREAMS=loopback` the short form of what runs there alone. `FAIRPATH_STREAMS_JSON=FILE` writes the table there, too.

mod crowd;

use std::time::Duration;

use bytes::Bytes;
use fairpath_faults::{Wire, World};
use fairpath_quic::bulk::{Sink, Source};
use fairpath_quic::{ConnectConfig, Connection, ListenConfig, Listener, RECORD, Record, StreamsConfig, connect};
use fairpath_quic_core::streams::{Read, StreamKind};
use rayon::prelude::*;
use tokio::io::AsyncWriteExt as _;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use crate::bulk::{Bulk, LOOK, Outage, ends, jain, outage, sparse};

/// Pairs of links, in Mbit/s.
const BONDS: [[u64; 2]; 3] = [[100, 20], [50, 10], [20, 5]];

/// One line of the table.
struct Row {
    what: String,
    value: f64,
    unit: &'static str,
    /// The most or the least that is wanted.
    goal: Option<Goal>,
    /// The values of several runs, whose mean it is.
    samples: Vec<f64>,
}

#[derive(Clone, Copy)]
enum Goal {
    AtLeast(f64),
    AtMost(f64),
}

impl Row {
    fn new(what: impl Into<String>, value: f64, unit: &'static str, goal: impl Into<Option<Goal>>) -> Self {
        Self { what: what.into(), value, unit, goal: goal.into(), samples: Vec::new() }
    }

    /// The mean of several runs, and the worst of them, which has to hold to the goal.
    fn of_runs(what: &str, samples: Vec<f64>, unit: &'static str, most: f64) -> [Self; 2] {
        let mean = samples.iter().sum::<f64>() / samples.len() as f64;
        let worst = samples.iter().copied().fold(0.0, f64::max);
        let longest = Self::new(format!("{what}, the longest of {}", samples.len()), worst, unit, Goal::AtMost(most));
        [Self { samples, ..Self::new(what, mean, unit, None) }, longest]
    }

    fn holds(&self) -> Option<bool> {
        Some(match self.goal? {
            Goal::AtLeast(least) => self.value >= least,
            Goal::AtMost(most) => self.value <= most,
        })
    }

    fn print(&self) {
        let goal = match self.goal {
            Some(Goal::AtLeast(least)) => format!("at least {least}"),
            Some(Goal::AtMost(most)) => format!("at most {most:.0}"),
            None => String::new(),
        };
        let verdict = self.holds().map_or("", |holds| if holds { "holds" } else { "MISSED" });
        println!("  {:<62} {:>9.3} {:<6} {goal:<14} {verdict}", self.what, self.value, self.unit);
    }

    fn as_json(&self) -> serde_json::Value {
        let goal = self.goal.map(|goal| match goal {
            Goal::AtLeast(least) => serde_json::json!({ "at_least": least }),
            Goal::AtMost(most) => serde_json::json!({ "at_most": most }),
        });
        let Self { what, value, unit, samples, .. } = self;
        let holds = self.holds();
        serde_json::json!({ "what": what, "value": value, "samples": samples, "unit": unit, "goal": goal, "holds": holds })
    }
}

pub(crate) fn table() {
    if crowd::be_clients() {
        return;
    }
    let form = std::env::var("FAIRPATH_STREAMS").unwrap_or_default();
    let (is_quick, is_loopback) = (form == "quick" || form == "loopback", form == "loopback");
    let mut rows = Vec::new();
    let mut add = |row: Row| {
        row.print();
        rows.push(row);
    };
    println!("Streams, in virtual time where nothing else is said{}", if is_quick { ", short form" } else { "" });
    on_loopback(is_quick).into_iter().for_each(&mut add);
    crowd::rows(is_quick).into_iter().for_each(&mut add);
    if !is_loopback {
        BONDS.into_iter().flat_map(|bond| beside_records(bond, is_quick)).for_each(&mut add);
        outages(is_quick).into_iter().for_each(&mut add);
        thousand(is_quick).into_iter().for_each(&mut add);
        beside_bulk(is_quick).into_iter().for_each(&mut add);
        opening(is_quick).into_iter().for_each(&mut add);
    }
    if let Some(file) = std::env::var_os("FAIRPATH_STREAMS_JSON") {
        let all: Vec<_> = rows.iter().map(Row::as_json).collect();
        let text = serde_json::to_string_pretty(&all).expect("it is plain data");
        std::fs::write(&file, text + "\n").unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    }
}

/// The goodput of one stream and of sixteen over a pair of links, in parts of what records do.
fn beside_records(bond: [u64; 2], is_quick: bool) -> Vec<Row> {
    let wires = [Wire::new(bond[0], 10), Wire::new(bond[1], 30)];
    let (warm_up, time) = (Duration::from_secs(2), Duration::from_secs(if is_quick { 2 } else { 10 }));
    let mut world = ends(&wires, 1);
    world.client.send(u64::MAX);
    world.run_for(warm_up);
    let before = world.server.received();
    world.run_for(time);
    let records = (world.server.received() - before) as f64;
    let of = |count: usize| {
        let mut world = ends(&wires, 1);
        let mut bulk = Bulk::open(&mut world, count);
        bulk.look_for(&mut world, warm_up);
        let share = bulk.look_for(&mut world, time) as f64 / records;
        let what = format!("{} over {} + {} Mbit/s, in parts of records", streams(count), bond[0], bond[1]);
        Row::new(what, share, "", Goal::AtLeast(0.95))
    };
    [1, 16].map(of).into()
}

fn streams(count: usize) -> String {
    if count == 1 { "1 stream".into() } else { format!("{count} streams") }
}

/// Where the data lies that is sent on loopback.
#[derive(Clone, Copy)]
enum Origin {
    /// One buffer for all, which is handed over and not copied: it stays in a processor's cache.
    Shared,
    /// Each writer's own memory, which it keeps: what is sent is copied out of it.
    Kept,
}

impl Origin {
    fn said(self) -> &'static str {
        match self {
            Self::Shared => "handed over",
            Self::Kept => "copied",
        }
    }
}

/// The same over two paths of loopback in real time, with medians of rounds in which each had its turn. Streams are beside
/// records that come out of as much memory in the same way: to read 4 MB, or to copy it, costs records as much.
///
/// Sixteen streams that are copied take more than records. Their unsent data does not fit into a core's own cache, and
/// sixteen readers are woken in each turn. Remedies were tried in pairs without gain: chunks whose memory is used again,
/// copies outside of the connection's lock, and blocks as large as the last piece that was read. Turns as long as a train,
/// readers woken only when nothing more waits, and a yield after each turn halve the wakes, and gain little.
fn on_loopback(is_quick: bool) -> Vec<Row> {
    let (rounds, time) = if is_quick { (3, Duration::from_millis(500)) } else { (7, Duration::from_millis(1500)) };
    let ends = Programs::new();
    let cases = [(Origin::Shared, 1), (Origin::Shared, 16), (Origin::Kept, 1), (Origin::Kept, 16)];
    let mut runs: [Vec<[Measured; 2]>; 4] = Default::default();
    for _ in 0..rounds {
        for ((origin, count), runs) in cases.into_iter().zip(&mut runs) {
            let records = ends.client.block_on(loopback(None, origin, count, time, &ends.server));
            let streams = ends.client.block_on(loopback(Some(count), origin, count, time, &ends.server));
            runs.push([records, streams]);
        }
    }
    let mut rows = Vec::new();
    for ((origin, count), runs) in cases.into_iter().zip(runs) {
        let of = |value: fn(&[Measured; 2]) -> Option<f64>| {
            let values: Vec<f64> = runs.iter().filter_map(value).collect();
            (!values.is_empty()).then(|| median(values))
        };
        let (origin, streams) = (origin.said(), streams(count));
        let mut add = |what: String, value: Option<f64>, unit, goal: Option<Goal>| {
            rows.extend(value.map(|value| Row::new(what, value, unit, goal)));
        };
        let records = format!("records on loopback, {origin}, as {streams}");
        add(format!("{records}: rate"), of(|[records, _]| Some(records.rate * 8.0 / 1e9)), "Gbit/s", None);
        add(format!("{records}: processors' time for a byte"), of(|[records, _]| records.work()), "ns", None);
        let what = format!("{streams} on loopback, {origin}, in parts of records");
        let goal = Some(Goal::AtLeast(0.95));
        add(format!("{what}: rate"), of(|[records, streams]| Some(streams.rate / records.rate)), "", goal);
        add(
            format!("{what}: processors' time for a byte"),
            of(|[records, streams]| Some(streams.work()? / records.work()?)),
            "",
            None,
        );
    }
    rows
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The two ends, each with one thread, as two programs have them (docs/design/threads.md).
struct Programs {
    client: Runtime,
    server: Runtime,
}

impl Programs {
    fn new() -> Self {
        let one = || Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
        Self { client: one(), server: one() }
    }
}

/// Streams on loopback, or records out of as much memory as `count` streams have. Runs at the client.
async fn loopback(
    streams: Option<usize>,
    origin: Origin,
    count: usize,
    time: Duration,
    at_server: &Runtime,
) -> Measured {
    let warm_up = Duration::from_millis(300);
    let bound = at_server.spawn(async {
        let listen = ListenConfig { via: vec!["127.0.0.1".into()], ..ListenConfig::new().expect("an identity") };
        Listener::bind(listen).expect("loopback")
    });
    let listener = bound.await.expect("it ends");
    let via = vec!["127.0.1.1".to_owned(), "127.0.2.1".to_owned()];
    let config = ConnectConfig { via, ..ConnectConfig::new(listener.addresses(), listener.fingerprint()) };
    let accepted = at_server.spawn(async move { (listener.accept().await, listener) });
    let (client, server) = tokio::join!(connect(config), accepted);
    let (client, (server, _listener)) = (client.expect("a connection"), server.expect("it ends"));
    let server = server.expect("a connection");
    client.paths_open(2, Duration::from_secs(3)).await;
    let (mut writers, mut readers) = (JoinSet::new(), JoinSet::new());
    let Some(streams) = streams else {
        let sink = {
            let _there = at_server.enter();
            Sink::start(&server)
        };
        let _source = matches!(origin, Origin::Shared).then(|| Source::start(&client));
        if matches!(origin, Origin::Kept) {
            writers.spawn(send_records(client.clone(), count * KEPT));
        }
        return measure(warm_up, time, || sink.received().get()).await;
    };
    let received = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    for end in [&client, &server] {
        end.begin_streams(StreamsConfig::default());
    }
    let shared = Bytes::from(vec![0; RECORD]);
    for _ in 0..streams {
        match origin {
            Origin::Shared => writers.spawn(hand_over(client.clone(), shared.clone())),
            Origin::Kept => writers.spawn(write(client.clone())),
        };
        readers.spawn_on(read(server.clone(), received.clone()), at_server.handle());
    }
    measure(warm_up, time, || received.load(std::sync::atomic::Ordering::Relaxed)).await
}

/// The outcome of connections between two endpoints.
struct Measured {
    /// All that they carried together, in bytes per second.
    rate: f64,
    /// How many cores both ends kept busy, where the system says.
    cores: Option<f64>,
}

impl Measured {
    /// The processors' time that a byte took at both ends, in nanoseconds.
    fn work(&self) -> Option<f64> {
        Some(self.cores? / self.rate * 1e9)
    }
}

/// Measures `so_far`, in bytes, for some time after a warm-up.
async fn measure(warm_up: Duration, time: Duration, so_far: impl Fn() -> u64) -> Measured {
    tokio::time::sleep(warm_up).await;
    let (before, begun, cpu) = (so_far(), tokio::time::Instant::now(), cpu_seconds("self"));
    tokio::time::sleep(time).await;
    let took = begun.elapsed().as_secs_f64();
    let cores = cpu.zip(cpu_seconds("self")).map(|(before, after)| (after - before) / took);
    Measured { rate: (so_far() - before) as f64 / took, cores }
}

/// The processors' time that a process has taken, in seconds.
fn cpu_seconds(process: &str) -> Option<f64> {
    /// Linux counts this time for processes in hundredths of a second, whatever its own clock.
    const TICKS: f64 = 100.0;
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program, in brackets, may have spaces in it; user and system time are the 12th and 13th after.
    let mut fields = text.rsplit(')').next()?.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<f64>().ok();
    Some((next()? + next()?) / TICKS)
}

/// The memory of a writer that keeps what it sends, in bytes.
const KEPT: usize = 256 << 10;

/// Sends records that are copied out of so much memory.
async fn send_records(connection: Connection, memory: usize) {
    let memory = vec![0; memory];
    let records = (0_u64..).zip(memory.chunks(RECORD).cycle());
    for (number, data) in records {
        let (offset, data) = (number * RECORD as u64, Bytes::copy_from_slice(data));
        if connection.send_record(Record { object: 0, offset, data }).await.is_err() {
            return;
        }
    }
}

/// Writes the same bytes without a copy.
async fn hand_over(connection: Connection, data: Bytes) {
    let Ok((mut send, _recv)) = connection.open_bi(StreamKind(0)).await else { return };
    while send.write_chunk(data.clone()).await.is_ok() {}
}

async fn write(connection: Connection) {
    let Ok((mut send, _recv)) = connection.open_bi(StreamKind(0)).await else { return };
    let data = vec![0; KEPT];
    while send.write_all(&data).await.is_ok() {}
}

async fn read(connection: Connection, received: std::sync::Arc<std::sync::atomic::AtomicU64>) {
    let Ok((_, _send, mut recv)) = connection.accept_bi().await else { return };
    while let Ok(Some(data)) = recv.read_chunk(1 << 20).await {
        received.fetch_add(data.len() as u64, std::sync::atomic::Ordering::Relaxed);
    }
}

/// One path of two goes dark under sixteen streams and comes back, each path in turn, at a time that differs by seed.
fn outages(is_quick: bool) -> Vec<Row> {
    let seeds = if is_quick { 3 } else { 20 };
    let of = |dark| {
        let run = |seed| outage(16, dark, seed, Duration::from_millis(seed * 37 % 1_000));
        let runs: Vec<Outage> = (0..seeds).into_par_iter().map(run).collect();
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let standstills = runs.iter().map(|run| ms(run.standstill)).collect();
        let recoveries = runs.iter().map(|run| run.recovery.map_or(5_000.0, ms)).collect();
        let which = if dark == 0 { "path of acknowledgements" } else { "other path" };
        let standstills = Row::of_runs(&format!("16 streams, {which} dark: standstill"), standstills, "ms", 500.0);
        let what = format!("16 streams, {which} back: full rate after");
        standstills.into_iter().chain(Row::of_runs(&what, recoveries, "ms", 2_000.0)).collect::<Vec<_>>()
    };
    [0, 1].into_iter().flat_map(of).collect()
}

/// A thousand streams at once: how even their shares are, and the memory that both ends took for them.
fn thousand(is_quick: bool) -> Vec<Row> {
    const COUNT: usize = 1_000;
    let time = Duration::from_secs(if is_quick { 5 } else { 20 });
    let mut world = ends(&[Wire::new(40, 10), Wire::new(40, 10)], 2);
    let before = resident_kb();
    let mut bulk = Bulk::open(&mut world, COUNT);
    bulk.look_for(&mut world, time);
    let took = before.zip(resident_kb()).map(|(before, after)| (after - before) / COUNT as f64);
    let mut rows =
        vec![Row::new(format!("{COUNT} streams: Jain's index of their bytes"), jain(&bulk), "", Goal::AtLeast(0.98))];
    let what = format!("{COUNT} streams: memory of both ends for each, while all are busy");
    rows.extend(took.map(|took| Row::new(what, took, "kB", None)));
    rows
}

/// The memory of this process, where the system says.
fn resident_kb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse().ok()
}

/// 64 bytes every 100 ms, echoed, beside a stream that fills links with queues of 300 ms.
fn beside_bulk(is_quick: bool) -> Vec<Row> {
    let (delay, queue) = (Duration::from_millis(10), Duration::from_millis(300));
    let took = sparse(delay, queue, if is_quick { 100 } else { 400 });
    let links = 2 * delay + queue + 3 * LOOK;
    let at = |share: usize| took[(took.len() - 1) * share / 100].as_secs_f64() * 1e3;
    let most = links.as_secs_f64() * 1e3 + 30.0;
    let own = (at(99) - links.as_secs_f64() * 1e3).max(0.0);
    vec![
        Row::new("sparse beside bulk over queues of 300 ms: echo, p99", at(99), "ms", Goal::AtMost(most)),
        Row::new("sparse beside bulk over queues of 300 ms: echo, median", at(50), "ms", None),
        Row::new("sparse beside bulk: p99 beyond delay and queue of the links", own, "ms", Goal::AtMost(30.0)),
    ]
}

/// A thousand streams opened each second, of 64 bytes each: how many are read, and how long their first bytes take.
fn opening(is_quick: bool) -> Vec<Row> {
    let (delay, every) = (20, Duration::from_millis(1));
    let seconds = if is_quick { 2 } else { 10 };
    let mut world: World = ends(&[Wire::new(50, delay), Wire::new(50, delay)], 5);
    let (mut begun, mut took, mut read) = (std::collections::BTreeMap::new(), Vec::new(), 0_u32);
    let opened = seconds * 1_000;
    let end = world.now + Duration::from_secs(u64::from(seconds) + 1);
    while world.now < end {
        let now = world.now;
        let streams = world.client.connection().expect("it is there").streams(now);
        if (begun.len() as u32) < opened
            && let Some(id) = streams.open(StreamKind(0))
        {
            begun.insert(id, now);
            streams.write(id, Bytes::from_static(&[0; 64])).expect("a stream begins with credit");
            streams.finish(id).expect("it is open");
        }
        let streams = world.server.connection().expect("it is there").streams(now);
        while let Some((id, _)) = streams.accept() {
            took.push((now - begun[&id]).as_secs_f64() * 1e3);
            if let Ok(Read::Data(data)) = streams.read(id, 64) {
                read += u32::from(data.len() == 64);
            }
            let _ = streams.read(id, 64);
            streams.finish(id).expect("the way back is open");
        }
        world.run_for(every);
    }
    took.sort_by(f64::total_cmp);
    let at = |share: usize| took.get((took.len().max(1) - 1) * share / 100).copied().unwrap_or(f64::INFINITY);
    let rate = f64::from(read) / f64::from(seconds);
    // One way, and what one look at each end adds.
    let one_way = delay as f64 + 3.0;
    vec![
        Row::new("opened, written and read a second, of 64 bytes", rate, "", Goal::AtLeast(1_000.0)),
        Row::new(format!("first byte of a stream, median, {delay} ms one way"), at(50), "ms", Goal::AtMost(one_way)),
        Row::new(format!("first byte of a stream, p99, {delay} ms one way"), at(99), "ms", Goal::AtMost(one_way)),
    ]
}
