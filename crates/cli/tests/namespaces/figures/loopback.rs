//! The cost of the proxy itself, over loopback without limits. Both ends, curl and the servers share the cores of this
//! machine. So do both ends of our own `perf`, which is measured beside it.

use std::fs;
use std::io::{IoSlice, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nix::sys::socket::{ControlMessage, MsgFlags, SockaddrStorage, sendmsg, setsockopt, sockopt};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::Value;
use socket2::{Domain, Socket, Type};

use super::curl::{Way, download_for};
use super::ends::{self, BEHIND, Ends, SOCKS, connect, datagrams, web};
use super::processors::{Idle, cores};
use super::{Form, Goal, Rows};
use crate::bond::PATIENCE;
use crate::described::Described;
use crate::kernel::inside;
use crate::transfer::Process;

/// By the goals: of what `perf` brings, and in Gbit/s.
const OF_PERF: f64 = 0.6;
const GBPS: f64 = 3.0;
const PACKETS: f64 = 200_000.0;

/// Datagrams that a program sends in a second.
const OFFERED: f64 = 250_000.0;

/// The bytes of a small datagram, and how many the system sends at once (`UDP_MAX_SEGMENTS` of older ones).
const SMALL: usize = 64;
const AT_ONCE: usize = 64;

/// By the goals again: of an open connection at each end, and of how many in a second.
const KILOBYTES: f64 = 200.0;
const NEW: f64 = 1_000.0;

/// How many connections are open at once in the end.
const OPEN: u64 = 10_000;

/// The port of the near end whose datagrams go to the sink.
const FORWARD: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 9000);

/// How many programs open connections at once.
const OPENERS: usize = 16;

pub(super) fn rows(form: Form) -> Result<Rows, String> {
    let mut rows = Rows::default();
    for _ in form.seeds() {
        run(&mut rows, form)?;
    }
    Ok(rows)
}

fn run(rows: &mut Rows, form: Form) -> Result<(), String> {
    let described = Described::new(1, &[], &[])?;
    // Both ends in one namespace.
    let here = &described.near;
    let ends = Ends::start(here, here, &["--listen", "127.0.0.1:4433"])?;
    let (web, sink) = (web(here), datagrams(here, BEHIND));
    let to_sink = format!("udp:{}=127.0.0.1:{}", FORWARD.port(), sink.local_addr().map_err(|e| e.to_string())?.port());
    let proxy = ends.proxy(&["--forward", &to_sink], 1);
    let time = Duration::from_secs(form.choose(2, 10));
    let mut goodput = |what: &str, goal, measured: &dyn Fn() -> Result<f64, String>| {
        let used = Idle::begin();
        let rate = measured()?;
        let cost = used.used_nanoseconds() / (rate * 1e9 / 8.0 * time.as_secs_f64());
        rows.add(what, "Gbit/s", goal, rate);
        rows.add(format!("{what}: processors' time for a byte"), "ns", None, cost);
        Ok::<_, String>((rate, cost))
    };
    let to_web = |way, count| move || Ok(download_for(here, way, (BEHIND, web).into(), count, time)? / 1e3);
    let (perf, of_perf) = goodput("our own perf", None, &|| perf(here, &ends, time))?;
    let (_, of_tcp) = goodput("one download without a proxy", None, &to_web(Way::Direct("lo"), 1))?;
    let (one, _) = goodput("one download", Some(Goal::AtLeast(GBPS)), &to_web(Way::Socks(SOCKS), 1))?;
    let (many, _) = goodput("16 downloads", Some(Goal::AtLeast(GBPS)), &to_web(Way::Socks(SOCKS), 16))?;
    rows.add("one download, in parts of perf", "", Goal::AtLeast(OF_PERF), one / perf);
    rows.add("16 downloads, in parts of perf", "", Goal::AtLeast(OF_PERF), many / perf);
    // The bytes cross TCP twice, and our connection once: a proxy that costs nothing beyond these has this rate.
    let allowed = cores() * 8.0 / (of_perf + 2.0 * of_tcp);
    rows.add("TCP twice and perf once, on all cores", "Gbit/s", None, allowed);
    rows.add("TCP twice and perf once, in parts of perf", "", None, allowed / perf);
    let both = || proxy.processor_seconds() + ends.serve.processor_seconds();
    for (offered, goal) in [(50_000.0, None), (OFFERED, Some(Goal::AtLeast(PACKETS)))] {
        let before = both();
        let Came { rate, count } = packets(here, &sink, offered, time);
        rows.add(format!("datagrams of {SMALL} bytes, of {offered} sent"), "1/s", goal, rate);
        let what = format!("processor time of both ends for each that came, of {offered} sent");
        rows.add(what, "us", None, (both() - before) * 1e6 / count);
    }
    let (before, Came { rate, count }) = (both(), new_ones(here, time)?);
    rows.add("new connections", "1/s", Goal::AtLeast(NEW), rate);
    rows.add("processor time of both ends for each", "us", None, (both() - before) * 1e6 / count);
    memory(rows, here, form, [("near", &proxy), ("far", &ends.serve)])
}

/// The goodput of `fairpath perf` in the direction of a download, in Gbit/s.
fn perf(here: &str, ends: &Ends, time: Duration) -> Result<f64, String> {
    let at = |name: &str| ends.scratch.path().join(name);
    [at("server"), at("client")].iter().try_for_each(fs::create_dir_all).map_err(|error| error.to_string())?;
    let mut server = Process::start(here, &["perf", "server", "--once", "--via", "lo"], &at("server"));
    server.until("a ticket", PATIENCE, |server| server.printed().ends_with('\n'));
    let (ticket, seconds) = (server.printed(), time.as_secs().to_string());
    let words = ["perf", "client", ticket.trim(), "--reverse", "--json", "--via", "lo", "--seconds", &seconds];
    let mut client = Process::start(here, &words, &at("client"));
    let status = client.end(time + PATIENCE);
    let said: Value = serde_json::from_str(&client.printed()).map_err(|_| format!("{status}: {}", client.said()))?;
    said["goodput_bps"].as_f64().map(|bps| bps / 1e9).ok_or_else(|| "perf says no goodput".to_owned())
}

/// How many there were of something, in a second and in all.
struct Came {
    rate: f64,
    count: f64,
}

/// How many small datagrams arrive, of so many that are sent in a second.
fn packets(here: &str, sink: &std::net::UdpSocket, offered: f64, time: Duration) -> Came {
    let (source, is_over, arrived) = (datagrams(here, BEHIND), AtomicBool::new(false), AtomicU64::new(0));
    sink.set_read_timeout(Some(Duration::from_millis(100))).expect("it is a time");
    // The programs that measure are to take little of the processors that both ends share with them: they send and read
    // many packets with one call, as others do that have many.
    let _ = setsockopt(sink, sockopt::UdpGroSegment, &true);
    // It is to lose none that the far end has sent. This machine is root's.
    let _ = setsockopt(sink, sockopt::RcvBufForce, &(16 << 20));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut block = vec![0; 1 << 16];
            while !is_over.load(Ordering::Relaxed) {
                if let Ok(bytes) = sink.recv(&mut block) {
                    arrived.fetch_add((bytes / SMALL) as u64, Ordering::Relaxed);
                }
            }
        });
        scope.spawn(|| {
            let (begun, mut sent) = (Instant::now(), 0);
            while !is_over.load(Ordering::Relaxed) {
                // After a pause it catches up with a part only: a burst of seconds shows nothing.
                let due = (begun.elapsed().as_secs_f64() * offered) as u64;
                sent = sent.max(due.saturating_sub(1_000));
                let data = vec![7; (due - sent) as usize * SMALL];
                data.chunks(SMALL * AT_ONCE).for_each(|packets| send(&source, packets));
                sent = due;
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        std::thread::sleep(Duration::from_millis(500));
        let (before, begun) = (arrived.load(Ordering::Relaxed), Instant::now());
        std::thread::sleep(time);
        let rate = (arrived.load(Ordering::Relaxed) - before) as f64 / begun.elapsed().as_secs_f64();
        is_over.store(true, Ordering::Relaxed);
        Came { rate, count: arrived.load(Ordering::Relaxed) as f64 }
    })
}

/// Sends these small packets with one call.
fn send(source: &std::net::UdpSocket, packets: &[u8]) {
    let segments = [ControlMessage::UdpGsoSegments(&(SMALL as u16))];
    let to = SockaddrStorage::from(FORWARD);
    let _ = sendmsg(source.as_raw_fd(), &[IoSlice::new(packets)], &segments, MsgFlags::empty(), Some(&to));
}

/// How many connections are opened, used once and closed.
fn new_ones(here: &str, time: Duration) -> Result<Came, String> {
    let to = SocketAddr::from((BEHIND, ends::echo(here)));
    let begun = Instant::now();
    let open = move || {
        let mut count = 0;
        while begun.elapsed() < time {
            let mut tcp = TcpStream::connect(SOCKS)?;
            tcp.set_read_timeout(Some(PATIENCE))?;
            connect(&mut tcp, to)?;
            tcp.write_all(&[7; 64])?;
            tcp.read_exact(&mut [0; 64])?;
            count += 1;
        }
        Ok(count)
    };
    std::thread::scope(|scope| {
        let each: Vec<_> = (0..OPENERS).map(|_| scope.spawn(move || inside::<u64>(here, open))).collect();
        let opened: u64 = each.into_iter().map(|one| one.join().expect("it does not panic")).sum::<Result<_, _>>()?;
        Ok(Came { rate: opened as f64 / begun.elapsed().as_secs_f64(), count: opened as f64 })
    })
}

/// The memory that an open connection takes at each of these ends: what more of them take, over how many more they are.
fn memory(rows: &mut Rows, here: &str, form: Form, ends: [(&str, &Process); 2]) -> Result<(), String> {
    let (to, kept) = idle(here)?;
    let count = form.choose(500, (OPEN / 2).min(opens_at_most() / 2));
    let open = move || {
        let one = |_| {
            let mut tcp = TcpStream::connect(SOCKS)?;
            tcp.set_read_timeout(Some(PATIENCE))?;
            connect(&mut tcp, to)?;
            // The server sends one byte, so that the connection is whole.
            tcp.read_exact(&mut [0])?;
            Ok(tcp)
        };
        (0..count).map(one).collect::<std::io::Result<Vec<TcpStream>>>()
    };
    let resident = || ends.map(|(_, end)| end.resident_bytes() as f64);
    let _first = inside(here, open)?;
    let before = resident();
    let _second = inside(here, open)?;
    let after = resident();
    // The next run needs their files.
    kept.lock().expect("nobody panics").clear();
    rows.add("connections open at once", "", None, 2.0 * count as f64);
    for (at, (end, _)) in ends.into_iter().enumerate() {
        let kilobytes = (after[at] - before[at]) / 1e3 / count as f64;
        rows.add(format!("memory of an open connection at the {end} end"), "kB", Goal::AtMost(KILOBYTES), kilobytes);
    }
    Ok(())
}

/// How many connections both of whose ends are here this process may have open, beside what else it has. It takes as many
/// open files as the system grants.
fn opens_at_most() -> u64 {
    let limit = getrlimit(Resource::Nofile).maximum;
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit, maximum: limit });
    limit.map_or(OPEN, |files| files.saturating_sub(1_000) / 2)
}

/// The connections that a server keeps.
type Kept = Arc<Mutex<Vec<TcpStream>>>;

/// A server that sends one byte, and the connections that it keeps. Its thread ends with the program.
fn idle(here: &str) -> Result<(SocketAddr, Kept), String> {
    let listener = inside(here, || {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        socket.bind(&SocketAddr::from((BEHIND, 0)).into())?;
        socket.listen(4096).map(|()| socket)
    })?;
    let listener = TcpListener::from(listener);
    let at = listener.local_addr().map_err(|error| error.to_string())?;
    let kept = Kept::default();
    let all = kept.clone();
    std::thread::spawn(move || {
        for mut tcp in listener.incoming().flatten() {
            let _ = tcp.write_all(&[7]);
            all.lock().expect("nobody panics").push(tcp);
        }
    });
    Ok((at, kept))
}
