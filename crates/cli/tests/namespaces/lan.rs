//! Networks of any shape out of namespaces: switches, routers, hosts with several interfaces.

use std::fs;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sched::{CloneFlags, setns};

use crate::network::{is_root, run};
use crate::transfer::{Process, Scratch};

/// As in `network`.
const BURST: &str = "32kb";
const QUEUE: &str = "50ms";

/// How long anything may take that does not depend on a link.
const PATIENCE: Duration = Duration::from_secs(30);

/// Namespaces, until it is dropped.
pub(crate) struct Lan {
    prefix: String,
    made: Vec<String>,
    relays: Vec<(Arc<AtomicBool>, JoinHandle<()>)>,
}

impl Lan {
    /// Namespaces of these names. `Err` says why this machine cannot have them.
    pub(crate) fn new(names: &[&str]) -> Result<Self, String> {
        if !is_root() {
            return Err("only root may make network namespaces".to_owned());
        }
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let prefix = format!("fairpath-{}-lan{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let mut lan = Self { prefix, made: Vec::new(), relays: Vec::new() };
        for name in names {
            let full = lan.namespace(name);
            run(&["ip", "netns", "add", &full])?;
            lan.made.push(full);
        }
        Ok(lan)
    }

    /// The name of a namespace to the system.
    pub(crate) fn namespace(&self, name: &str) -> String {
        format!("{}-{name}", self.prefix)
    }

    /// Runs `ip` in a namespace.
    pub(crate) fn ip(&self, name: &str, arguments: &str) -> String {
        let namespace = self.namespace(name);
        let words: Vec<&str> = arguments.split(' ').collect();
        run(&[&["ip", "-n", &namespace][..], &words].concat()).unwrap()
    }

    /// Runs a program in a namespace.
    pub(crate) fn exec(&self, name: &str, command: &[&str]) -> Result<String, String> {
        run(&[&["ip", "netns", "exec", &self.namespace(name)][..], command].concat())
    }

    /// Writes a setting of the kernel, such as `net/ipv4/ip_forward`.
    pub(crate) fn set(&self, name: &str, setting: &str, value: &str) {
        let file = format!("/proc/sys/{setting}");
        self.exec(name, &["sh", "-c", &format!("echo {value} > {file}")]).unwrap();
    }

    /// A cable between two interfaces, each given with its namespace. Both come up.
    pub(crate) fn cable(&self, a: (&str, &str), b: (&str, &str)) {
        let [at_a, at_b] = [a.0, b.0].map(|name| self.namespace(name));
        run(&["ip", "link", "add", a.1, "netns", &at_a, "type", "veth", "peer", "name", b.1, "netns", &at_b]).unwrap();
        for (name, interface) in [a, b] {
            self.ip(name, &format!("link set {interface} up"));
        }
        let deadline = Instant::now() + PATIENCE;
        while [a, b].iter().any(|end| self.attribute(*end, "operstate") != "up") {
            assert!(Instant::now() < deadline, "{} never came up", a.1);
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Gives the interface an address.
    pub(crate) fn address(&self, name: &str, interface: &str, address: &str) {
        let nodad = if address.contains(':') { " nodad" } else { "" };
        self.ip(name, &format!("address add {address} dev {interface}{nodad}"));
    }

    /// The interface sends no faster than that, in Mbit/s.
    pub(crate) fn limit(&self, name: &str, interface: &str, mbit: u64) {
        let (namespace, rate) = (self.namespace(name), format!("{mbit}mbit"));
        let device = ["tc", "-n", &namespace, "qdisc", "replace", "dev", interface, "root"];
        run(&[&device[..], &["tbf", "rate", &rate, "burst", BURST, "latency", QUEUE]].concat()).unwrap();
    }

    /// An attribute of an interface, as the kernel has it.
    pub(crate) fn attribute(&self, (name, interface): (&str, &str), attribute: &str) -> String {
        let file = format!("/sys/class/net/{interface}/{attribute}");
        self.exec(name, &["cat", &file]).unwrap().trim().to_owned()
    }

    /// The bytes that came in at an interface.
    pub(crate) fn carried(&self, name: &str, interface: &str) -> u64 {
        self.attribute((name, interface), "statistics/rx_bytes").parse().unwrap()
    }

    /// Packets that come to the address `from` in the namespace go on to `to`, and back, as through a router that
    /// translates addresses. It is for one peer, the last that sent.
    pub(crate) fn relay(&mut self, name: &str, from: &str, to: &str) {
        let [from, to]: [SocketAddr; 2] = [from, to].map(|address| address.parse().unwrap());
        let handle = fs::File::open(format!("/run/netns/{}", self.namespace(name))).unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let (ready, is_ready) = std::sync::mpsc::channel();
        let ends = is_over.clone();
        let thread = std::thread::spawn(move || {
            setns(handle, CloneFlags::CLONE_NEWNET).unwrap();
            let inside = UdpSocket::bind(from).unwrap();
            let outside = UdpSocket::bind("0.0.0.0:0").unwrap();
            outside.connect(to).unwrap();
            ready.send(()).unwrap();
            translate(&inside, &outside, &ends);
        });
        is_ready.recv().unwrap();
        self.relays.push((is_over, thread));
    }

    /// `fairpath` in a namespace.
    pub(crate) fn start(&self, name: &str, arguments: &[&str], scratch: &Scratch) -> Process {
        Process::start(&self.namespace(name), arguments, &scratch.path())
    }

    /// The output of `fairpath` in a namespace, and whether it went well.
    pub(crate) fn fairpath(&self, name: &str, arguments: &[&str]) -> Result<String, String> {
        self.exec(name, &[&[env!("CARGO_BIN_EXE_fairpath")][..], arguments].concat())
    }

    /// A receiver in a namespace, and its ticket.
    pub(crate) fn receiver(&self, name: &str, options: &[&str], scratch: &Scratch) -> (Process, String) {
        let to = scratch.path().join("to").display().to_string();
        let mut receiver = self.start(name, &[&["recv", "--dir", &to][..], options].concat(), scratch);
        receiver.until("a ticket", PATIENCE, |receiver| receiver.printed().ends_with('\n'));
        let ticket = receiver.printed().trim_end().to_owned();
        (receiver, ticket)
    }

    /// A sender in a namespace.
    pub(crate) fn sender(&self, name: &str, ticket: &str, options: &[&str], scratch: &Scratch) -> Process {
        let from: PathBuf = scratch.path().join("from/tree");
        self.start(name, &[&["send", &from.display().to_string(), ticket][..], options].concat(), scratch)
    }
}

impl Drop for Lan {
    fn drop(&mut self) {
        self.relays.iter().for_each(|(is_over, _)| is_over.store(true, Ordering::Relaxed));
        for (_, thread) in self.relays.drain(..) {
            let _ = thread.join();
        }
        for name in &self.made {
            let _ = run(&["ip", "netns", "delete", name]);
        }
    }
}

/// Passes packets on both ways, until it is over.
fn translate(inside: &UdpSocket, outside: &UdpSocket, is_over: &AtomicBool) {
    let peer = std::sync::Mutex::new(None);
    let pump = |from: &UdpSocket, act: &dyn Fn(&[u8], SocketAddr)| {
        from.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        let mut packet = [0; 1 << 16];
        while !is_over.load(Ordering::Relaxed) {
            match from.recv_from(&mut packet) {
                Ok((length, from)) => act(&packet[..length], from),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            pump(inside, &|packet, from| {
                *peer.lock().unwrap() = Some(from);
                let _ = outside.send(packet);
            });
        });
        pump(outside, &|packet, _| {
            if let Some(peer) = *peer.lock().unwrap() {
                let _ = inside.send_to(packet, peer);
            }
        });
    });
}
