//! Two paths of ours beside TCP of the kernel, over one link or over two: what they take of it, beside what one flow in
//! their place would, ours or the kernel's, and MPTCP.
//!
//! ```text
//!   sender ── one ──┐                ┌── narrow ── receiver         over one link all go through the first; where there
//!         └── two ──┤ router (tbf) ──┤                              are two, `one` leads to the first only, and `two`
//!   rival ──────────┘                └── second ── receiver         to the second
//! ```
//!
//! A router, because TCP of a host that has the queue itself is told when it is full. The kernel here has no `netem`, so
//! round trips are those of queues.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, setns};
use serde_json::Value;
use socket2::{Domain, Protocol, Socket, Type};

use crate::network::{is_root, run};
use crate::transfer::Process;
use crate::{detection, place, say};

/// The rate of each narrow link, in Mbit/s below.
const RATE: &str = "20mbit";
const MBPS: f64 = 20.0;
/// Less than a batch of packets, as in `network`, and less than the shortest queue.
const BURST: &str = "16kb";

/// The receiver's, behind each of the narrow links.
pub(crate) const RECEIVERS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 79, 1, 2), Ipv4Addr::new(10, 79, 2, 2)];
pub(crate) const RIVALS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 78, 0, 1), Ipv4Addr::new(10, 78, 0, 2)];
pub(crate) const OURS: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 77, 1, 1), Ipv4Addr::new(10, 77, 2, 1)];

/// When is measured, from the start of who comes to the rivals.
const FROM: Duration = Duration::from_secs(10);
const UNTIL: Duration = Duration::from_secs(30);

/// How long anything may take that does not depend on a link.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// The namespaces, until it is dropped.
pub(crate) struct Crossing {
    pub(crate) sender: String,
    pub(crate) rival: String,
    router: String,
    receiver: String,
    directory: PathBuf,
}

impl Crossing {
    /// With queues of so long, and with one narrow link for all or two. `Err` says why this machine cannot have one.
    pub(crate) fn new(queue_ms: u64, is_shared: bool) -> Result<Self, String> {
        if !is_root() {
            return Err("only root may make network namespaces".to_owned());
        }
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("fairpath-{}-kernel-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let [sender, rival, router, receiver] =
            ["sender", "rival", "router", "receiver"].map(|end| format!("{name}-{end}"));
        let crossing = Self { sender, rival, router, receiver, directory: std::env::temp_dir().join(&name) };
        std::fs::create_dir_all(&crossing.directory).map_err(|error| error.to_string())?;
        for namespace in crossing.names() {
            run(&["ip", "netns", "add", namespace])?;
        }
        crossing.build(queue_ms, is_shared)?;
        Ok(crossing)
    }

    fn names(&self) -> [&String; 4] {
        [&self.sender, &self.rival, &self.router, &self.receiver]
    }

    fn build(&self, queue_ms: u64, is_shared: bool) -> Result<(), String> {
        let Self { sender, rival, router, receiver, .. } = self;
        let ip = |namespace: &str, arguments: &str| {
            let words: Vec<&str> = arguments.split(' ').collect();
            run(&[&["ip", "-n", namespace], &words[..]].concat()).map(drop)
        };
        let wire = |name: &str, from: (&str, &[&str]), to: (&str, &[&str])| {
            run(&["ip", "link", "add", name, "netns", from.0, "type", "veth", "peer", "name", name, "netns", to.0])?;
            for (namespace, addresses) in [from, to] {
                for address in addresses {
                    ip(namespace, &format!("address add {address} dev {name}"))?;
                }
                // Packets, as on a wire: a queue takes or drops what the kernel sends at once, of up to 64 kB, as a whole.
                ip(namespace, &format!("link set {name} up gso_max_segs 1"))?;
            }
            Ok::<(), String>(())
        };
        wire("one", (sender, &["10.77.1.1/24"]), (router, &["10.77.1.254/24"]))?;
        wire("two", (sender, &["10.77.2.1/24"]), (router, &["10.77.2.254/24"]))?;
        wire("rival", (rival, &["10.78.0.1/24", "10.78.0.2/24"]), (router, &["10.78.0.254/24"]))?;
        wire("narrow", (router, &["10.79.1.1/24"]), (receiver, &["10.79.1.2/24"]))?;
        ip(sender, "route add default via 10.77.1.254 dev one metric 100")?;
        ip(sender, "route add default via 10.77.2.254 dev two metric 200")?;
        ip(sender, "rule add from 10.77.2.1 lookup 102")?;
        ip(sender, "route add default via 10.77.2.254 dev two table 102")?;
        ip(rival, "route add default via 10.78.0.254")?;
        ip(receiver, "route add default via 10.79.1.1")?;
        if !is_shared {
            wire("second", (router, &["10.79.2.1/24"]), (receiver, &["10.79.2.2/24"]))?;
            ip(receiver, "route add default via 10.79.2.1 dev second metric 200")?;
            ip(receiver, "rule add from 10.79.2.2 lookup 102")?;
            ip(receiver, "route add default via 10.79.2.1 dev second table 102")?;
            for (from, other) in [("10.77.1.1", 2), ("10.77.2.1", 1)] {
                ip(router, &format!("rule add from {from} lookup 10{other}"))?;
                ip(router, &format!("route add unreachable 10.79.{other}.0/24 table 10{other}"))?;
            }
        }
        let latency = format!("{queue_ms}ms");
        for narrow in if is_shared { &["narrow"][..] } else { &["narrow", "second"] } {
            let device = ["tc", "-n", router, "qdisc", "replace", "dev", narrow, "root"];
            run(&[&device[..], &["tbf", "rate", RATE, "burst", BURST, "latency", &latency]].concat())?;
        }
        let set = |namespace: &str, key: &str| run(&["ip", "netns", "exec", namespace, "sysctl", "-q", "-w", key]);
        set(router, "net.ipv4.ip_forward=1")?;
        // MPTCP opens a path from the second address, too. A kernel without it has no such row.
        for end in [sender, receiver] {
            let _ = set(end, "net.mptcp.enabled=1");
            let _ = ip(end, "mptcp limits set subflow 2 add_addr_accepted 2");
        }
        let _ = ip(sender, "mptcp endpoint add 10.77.2.1 dev two subflow");
        Ok(())
    }

    /// `fairpath perf` at both ends, for so long, with these options of the client: the server, and the client.
    pub(crate) fn perf(&self, time: Duration, options: &[&str]) -> (Process, Process) {
        let [server_at, client_at] = ["server", "client"].map(|end| self.directory.join(end));
        [&server_at, &client_at].into_iter().for_each(|at| std::fs::create_dir_all(at).expect("a directory"));
        let mut server = Process::start(&self.receiver, &["perf", "server", "--once"], &server_at);
        server.until("a ticket", PATIENCE, |server| server.printed().ends_with('\n'));
        let (ticket, seconds) = (server.printed().trim_end().to_owned(), time.as_secs().to_string());
        let client = [&["perf", "client", &ticket, "--seconds", &seconds, "--json"], options].concat();
        let client = Process::start(&self.sender, &client, &client_at);
        (server, client)
    }
}

impl Drop for Crossing {
    fn drop(&mut self) {
        for name in self.names() {
            let _ = run(&["ip", "netns", "delete", name]);
        }
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// Opens a socket, or several, in a namespace: they stay there, whoever uses them.
pub(crate) fn inside<T: Send + 'static>(
    namespace: &str,
    open: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, String> {
    let handle = File::open(format!("/run/netns/{namespace}")).map_err(|error| error.to_string())?;
    // A thread enters it, and no other has to come back.
    let thread = std::thread::spawn(move || {
        setns(handle, CloneFlags::CLONE_NEWNET)?;
        open()
    });
    thread.join().expect("it does not panic").map_err(|error| format!("a socket of the kernel: {error}"))
}

/// A flow of the kernel's, until it is dropped.
pub(crate) struct Tcp {
    received: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Tcp {
    /// From an address in a namespace to one of the receiver's, by this congestion control. `Err` says what the kernel
    /// does not have.
    pub(crate) fn start(
        crossing: &Crossing,
        namespace: &str,
        [from, to]: [Ipv4Addr; 2],
        congestion: &'static str,
        is_multipath: bool,
    ) -> Result<Self, String> {
        let protocol = if is_multipath { Protocol::MPTCP } else { Protocol::TCP };
        let socket_at = move |address: Ipv4Addr| {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(protocol))?;
            socket.bind(&SocketAddr::from((address, 0)).into())?;
            Ok::<Socket, io::Error>(socket)
        };
        let listener = inside(&crossing.receiver, move || {
            let socket = socket_at(to)?;
            socket.listen(1).map(|()| socket)
        })?;
        let at = listener.local_addr().map_err(|error| error.to_string())?;
        let mut source = inside(namespace, move || {
            let socket = socket_at(from)?;
            socket.set_tcp_congestion(congestion.as_bytes())?;
            socket.connect_timeout(&at, PATIENCE)?;
            socket.set_write_timeout(Some(Duration::from_secs(1))).map(|()| socket)
        })?;
        let (mut sink, _) = listener.accept().map_err(|error| error.to_string())?;
        let (received, is_over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (counted, is_done) = (Arc::clone(&received), Arc::clone(&is_over));
        let reads = std::thread::spawn(move || {
            let mut block = vec![0; 1 << 16];
            while let Ok(bytes @ 1..) = sink.read(&mut block) {
                counted.fetch_add(bytes as u64, Ordering::Relaxed);
            }
        });
        let writes = std::thread::spawn(move || {
            let block = vec![0; 1 << 14];
            // A write that takes too long is tried again: a flow may be starved for seconds.
            while !is_done.load(Ordering::Relaxed) {
                let _ = source.write(&block);
            }
        });
        Ok(Self { received, is_over, threads: vec![writes, reads] })
    }

    pub(crate) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }
}

impl Drop for Tcp {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| _ = thread.join());
    }
}

/// The flow that joins the rivals.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Who {
    /// `fairpath perf`, over these interfaces.
    Ours(&'static [&'static str]),
    /// One path of it by CUBIC.
    OurCubic(&'static str),
    Kernel,
    /// MPTCP of the kernel, both of whose paths go by CUBIC.
    Mptcp,
}

/// The goodput of a flow beside rivals, and theirs, in Mbit/s from [`FROM`] to [`UNTIL`].
#[derive(Clone, Copy, Debug)]
struct Got {
    mbps: f64,
    theirs: f64,
    /// After how many seconds the paths were found to share a link.
    found: Option<f64>,
}

/// Measures `who` in a network with queues of `queue_ms`, with a flow by `rival` on each narrow link.
fn measured(who: Who, rival: &'static str, queue_ms: u64, is_shared: bool) -> Result<Got, String> {
    let crossing = Crossing::new(queue_ms, is_shared)?;
    let rivals: Vec<Tcp> = RIVALS[..if is_shared { 1 } else { 2 }]
        .iter()
        .zip(RECEIVERS)
        .map(|(from, to)| Tcp::start(&crossing, &crossing.rival, [*from, to], rival, false))
        .collect::<Result<_, String>>()?;
    // They are under way.
    std::thread::sleep(Duration::from_secs(2));
    let theirs = || rivals.iter().map(Tcp::received).sum::<u64>();
    let between = |count: &dyn Fn() -> u64| {
        let begun = Instant::now();
        std::thread::sleep(FROM.saturating_sub(begun.elapsed()));
        let before = (count(), theirs());
        std::thread::sleep(UNTIL.saturating_sub(begun.elapsed()));
        let mbps = |bytes: u64| bytes as f64 * 8e-6 / (UNTIL - FROM).as_secs_f64();
        (mbps(count() - before.0), mbps(theirs() - before.1))
    };
    let (via, congestion): (&[&str], _) = match who {
        Who::Kernel | Who::Mptcp => {
            let flow = Tcp::start(&crossing, &crossing.sender, [OURS[0], RECEIVERS[0]], "cubic", who == Who::Mptcp)?;
            let (mbps, theirs) = between(&|| flow.received());
            return Ok(Got { mbps, theirs, found: None });
        }
        Who::Ours(via) => (via, None),
        Who::OurCubic(ref via) => (core::slice::from_ref(via), Some("cubic")),
    };
    let mut options: Vec<&str> = via.iter().flat_map(|via| ["--via", *via]).collect();
    options.extend(congestion.into_iter().flat_map(|name| ["--congestion", name]));
    let (_server, mut client) = crossing.perf(UNTIL, &options);
    let (_, theirs) = between(&|| 0);
    let status = client.end(PATIENCE);
    assert!(status.success(), "{}", client.said());
    let said = serde_json::from_str(&client.printed()).expect("JSON");
    Ok(Got { mbps: arrived(&said), theirs, found: detection::first_found(&said) })
}

/// The goodput by the account of `fairpath perf`, in Mbit/s from [`FROM`] to [`UNTIL`]. It counts whole
/// datagrams, which have three hundredths more bytes than their data.
fn arrived(said: &Value) -> f64 {
    let (mut last, mut bits) = (0.0_f64, 0.0_f64);
    for interval in said["intervals"].as_array().expect("intervals") {
        let end = interval["end_s"].as_f64().expect("a time");
        let rate = |path: &Value| path["rate_bps"].as_f64().expect("a rate");
        let rates = interval["paths"].as_array().expect("paths").iter().map(rate);
        bits += rates.sum::<f64>() * (end.min(UNTIL.as_secs_f64()) - last.max(FROM.as_secs_f64())).max(0.0);
        last = end;
    }
    bits * 1e-6 / (UNTIL - FROM).as_secs_f64()
}

/// That the program works through a router beside TCP, and that neither starves. One run of twenty seconds does not tell
/// what one flow takes from what two do: that is for the table.
#[test]
fn beside_cubic_of_the_kernel_over_one_link_neither_starves() {
    let _place = place();
    match measured(Who::Ours(&["one", "two"]), "cubic", 50, true) {
        Err(reason) => say(&format!("beside the kernel: skipped, {reason}")),
        Ok(Got { mbps, theirs, found }) => {
            say(&format!("beside CUBIC of the kernel: {mbps:.1} Mbit/s, and {theirs:.1} of it, of {MBPS}"));
            let share = mbps / (mbps + theirs);
            assert!((0.2..0.67).contains(&share), "{mbps:.1} and {theirs:.1} Mbit/s");
            assert!(mbps + theirs > 0.8 * MBPS, "{mbps:.1} and {theirs:.1} Mbit/s");
            assert!(found.is_some(), "the paths were never found to share a link");
        }
    }
}

/// For people.
#[test]
#[ignore = "a table; eighteen minutes of real time"]
fn table_of_the_kernel() {
    const BOTH: Who = Who::Ours(&["one", "two"]);
    for (is_shared, queue_ms) in [(true, 50), (true, 200), (false, 50)] {
        for rival in ["reno", "cubic", "bbr"] {
            let alone: &[Who] = match is_shared {
                true => &[Who::OurCubic("one"), Who::Kernel, Who::Mptcp],
                false => &[Who::OurCubic("one"), Who::OurCubic("two")],
            };
            for who in core::iter::once(&BOTH).chain(alone) {
                let network = if is_shared { "one link" } else { "two links" };
                let row = format!("{network} of 20 Mbit/s, queue of {queue_ms} ms, beside {rival}: {who:?}");
                match measured(*who, rival, queue_ms, is_shared) {
                    Ok(Got { mbps, theirs, .. }) => say(&format!("{row} {mbps:.2}, they {theirs:.2}")),
                    Err(reason) => say(&format!("{row}: skipped, {reason}")),
                }
            }
        }
    }
}
