//! An echo of 64 bytes every 100 ms beside a bulk download, and how long datagrams take over each link meanwhile: what the
//! links' own queues cost.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use fairpath_emu::{QueueConfig, QueueLimit};

use super::curl::{Downloads, Way};
use super::ends::{self, BEHIND, Ends, SOCKS, datagrams, echo_datagrams, through, web};
use super::{Form, Goal, Rows, link};
use crate::described::{Both, Described, INTERFACES, far_address, near_address};

const EVERY: Duration = Duration::from_millis(100);
const SIZE: usize = 64;

/// How long bulk data fills the queues before anything is measured.
const FILLING: Duration = Duration::from_secs(3);

/// No answer takes longer.
const LATEST: Duration = Duration::from_secs(10);

/// Our own sending may add this to the links' queues.
const OWN_MS: f64 = 30.0;

pub(super) fn rows(form: Form) -> Result<Rows, String> {
    let mut rows = Rows::default();
    let deep = |mbps, delay| {
        let config = QueueConfig::DropTail(QueueLimit::Sojourn(Duration::from_millis(300)));
        link(mbps, delay).map(|direction| direction.queue(config.clone()))
    };
    for seed in form.seeds() {
        let slow = [deep(20, 10), deep(20, 30)];
        run(&mut rows, form, seed, "20/10 ms + 20/30 ms, queues of 300 ms", &slow)?;
        run(&mut rows, form, seed, "300/10 ms + 80/30 ms", &[link(300, 10), link(80, 30)])?;
    }
    Ok(rows)
}

fn run(rows: &mut Rows, form: Form, seed: u64, name: &str, links: &[Both]) -> Result<(), String> {
    let described = Described::new(seed, links, &[0, 1])?;
    let Described { near, far, .. } = &described;
    let (ends, port, echo) = (Ends::start(near, far, &[])?, web(far), ends::echo(far));
    let _proxy = ends.proxy_over(&INTERFACES[..2]);
    let calm = echoes(near, SOCKS, (BEHIND, echo).into(), Duration::from_secs(2))?;
    rows.add(format!("{name}: echo without bulk, median"), "ms", None, calm.at(50));
    let bulk = Downloads::start(near, Way::Socks(SOCKS), (BEHIND, port).into(), 1);
    std::thread::sleep(FILLING);
    let time = form.choose(Duration::from_secs(5), Duration::from_secs(60));
    let (echoes, probes, rate) = std::thread::scope(|scope| {
        let probe = |interface| scope.spawn(move || probes(near, far, interface, time));
        let (one, two) = (probe(0), probe(1));
        let rate = scope.spawn(|| bulk.rate_over(time));
        let echoes = echoes(near, SOCKS, (BEHIND, echo).into(), time);
        let ended = "it does not panic";
        (echoes, [one.join().expect(ended), two.join().expect(ended)], rate.join().expect(ended))
    });
    let echoes = echoes?;
    rows.add(format!("{name}: bulk meanwhile"), "Mbit/s", None, rate);
    for (at, probes) in probes.iter().enumerate() {
        for share in [50, 99] {
            rows.add(format!("{name}: link {}'s own round trip, p{share}", at + 1), "ms", None, probes.at(share));
        }
    }
    for share in [50, 99] {
        rows.add(format!("{name}: echo beside bulk, p{share}"), "ms", None, echoes.at(share));
    }
    let quicker = echoes.at(99) - probes[0].at(99).min(probes[1].at(99));
    rows.add(format!("{name}: echo's p99 beyond that of the quicker link"), "ms", None, quicker);
    let own = echoes.at(99) - probes[0].at(99).max(probes[1].at(99));
    rows.add(format!("{name}: echo's p99 beyond that of the slower link"), "ms", Goal::AtMost(OWN_MS), own);
    described.assert_all_fitted();
    Ok(())
}

/// Round trips in ms, in order of their length.
pub(super) struct Times(Vec<f64>);

impl Times {
    fn of(took: impl IntoIterator<Item = Duration>) -> Self {
        let mut times: Vec<f64> = took.into_iter().map(|time| time.as_secs_f64() * 1e3).collect();
        times.sort_by(f64::total_cmp);
        Self(times)
    }

    /// The time in which this many of a hundred are back; infinite where none is.
    pub(super) fn at(&self, share: usize) -> f64 {
        self.0.get((self.0.len().max(1) - 1) * share / 100).copied().unwrap_or(f64::INFINITY)
    }
}

/// Echoes over a connection through a port that speaks SOCKS5, for so long. One that is late keeps no other from leaving.
pub(super) fn echoes(near: &str, socks: SocketAddr, to: SocketAddr, time: Duration) -> Result<Times, String> {
    let tcp = through(near, socks, to).map_err(|error| format!("an echo: {error}"))?;
    tcp.set_read_timeout(Some(LATEST)).map_err(|error| error.to_string())?;
    let (left, leaves) = mpsc::channel();
    let reader = tcp.try_clone().map_err(|error| error.to_string())?;
    let read = std::thread::spawn(move || came_back(reader, &leaves));
    let begun = Instant::now();
    while begun.elapsed() < time {
        left.send(Instant::now()).expect("the reader waits for the end");
        (&tcp).write_all(&[7; SIZE]).map_err(|error| format!("an echo: {error}"))?;
        std::thread::sleep(EVERY);
    }
    drop(left);
    read.join().expect("it does not panic").map(Times::of).map_err(|error| format!("an echo: {error}"))
}

fn came_back(mut tcp: TcpStream, leaves: &mpsc::Receiver<Instant>) -> std::io::Result<Vec<Duration>> {
    let mut took = Vec::new();
    while let Ok(left) = leaves.recv() {
        tcp.read_exact(&mut [0; SIZE])?;
        took.push(left.elapsed());
    }
    Ok(took)
}

/// Round trips of datagrams of the same size over one link, by no proxy.
pub(super) fn probes(near: &str, far: &str, interface: usize, time: Duration) -> Times {
    let to = echo_datagrams(far, far_address(interface));
    let socket = datagrams(near, near_address(interface));
    socket.set_read_timeout(Some(EVERY)).expect("it is a time");
    let (begun, is_over) = (Instant::now(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let read = scope.spawn(|| {
            let (mut took, mut block) = (Vec::new(), [0; SIZE]);
            while !is_over.load(Ordering::Relaxed) {
                if socket.recv(&mut block).is_ok() {
                    let left = Duration::from_nanos(u64::from_le_bytes(*block.first_chunk().expect("eight bytes")));
                    took.push(begun.elapsed() - left);
                }
            }
            took
        });
        while begun.elapsed() < time {
            let mut block = [0; SIZE];
            block[..8].copy_from_slice(&(begun.elapsed().as_nanos() as u64).to_le_bytes());
            // One that a full queue loses has no round trip.
            let _ = socket.send_to(&block, to);
            std::thread::sleep(EVERY);
        }
        std::thread::sleep(Duration::from_secs(1));
        is_over.store(true, Ordering::Relaxed);
        Times::of(read.join().expect("it does not panic"))
    })
}
