//! Two network namespaces, joined by two limited links.

use std::fs;
use std::io;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// A link; its interface has the same name at both ends.
#[derive(Clone, Copy)]
pub(crate) struct Link {
    pub(crate) name: &'static str,
    /// The third byte of its addresses.
    subnet: u8,
    /// Its rate in each direction, in Mbit/s.
    pub(crate) mbit: u64,
}

pub(crate) const SLOW: Link = Link { name: "slow", subnet: 1, mbit: 10 };
pub(crate) const FAST: Link = Link { name: "fast", subnet: 2, mbit: 20 };
pub(crate) const LINKS: [Link; 2] = [SLOW, FAST];

/// Two links alike, for faults that strike both.
pub(crate) const TWINS: [Link; 2] =
    [Link { name: "one", subnet: 1, mbit: 20 }, Link { name: "two", subnet: 2, mbit: 20 }];

/// Links with the names that the guide gives to some.
pub(crate) const NAMED: [Link; 2] =
    [Link { name: "eth0", subnet: 1, mbit: 20 }, Link { name: "wwan0", subnet: 2, mbit: 20 }];

/// The family of the interfaces' addresses.
#[derive(Clone, Copy)]
pub(crate) enum Family {
    V4,
    V6,
}

#[derive(Clone, Copy)]
pub(crate) enum End {
    Sender,
    Receiver,
}

const ENDS: [End; 2] = [End::Sender, End::Receiver];

/// The queue of a link is this long.
const QUEUE: &str = "50ms";

/// The burst size of `tbf`. It is less than a batch that the sender hands over in one piece (GSO, up to
/// 64 kB). So `tbf` cuts the batch up, and its packets wait and are lost one by one as on a real link.
/// It is enough for 13 ms at 20 Mbit/s: a kernel timer that fires late on a busy machine costs the link
/// nothing.
const BURST: &str = "32kb";

/// Packets for the address of one interface do not come in at another: a kernel would take them, and a path over one link
/// could use the other, too.
pub(crate) const STRONG_HOST: [&str; 2] = ["net.ipv4.conf.all.arp_ignore=1", "net.ipv4.conf.all.rp_filter=1"];

/// The namespaces, until it is dropped. The links go with them.
pub(crate) struct Network {
    /// The names of the sender's and the receiver's.
    names: [String; 2],
    /// How many of them exist.
    made: usize,
    links: [Link; 2],
}

impl Network {
    /// `Err` says why this machine cannot have one.
    pub(crate) fn new(family: Family, links: [Link; 2]) -> Result<Self, String> {
        if !is_root() {
            return Err("only root may make network namespaces".to_owned());
        }
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("fairpath-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let mut network = Self { names: ["sender", "receiver"].map(|end| format!("{name}-{end}")), made: 0, links };
        for at in 0..network.names.len() {
            run(&["ip", "netns", "add", &network.names[at]])?;
            network.made += 1;
            let set = ["ip", "netns", "exec", &network.names[at], "sysctl", "-q", "-w"];
            run(&[&set[..], &STRONG_HOST].concat())?;
        }
        for link in links {
            network.join(&link, family)?;
        }
        network.wait_until_up();
        Ok(network)
    }

    fn join(&self, link: &Link, family: Family) -> Result<(), String> {
        let Link { name, subnet, .. } = *link;
        let [sender, receiver] = &self.names;
        // Each interface is born where it belongs: the host never sees it.
        run(&["ip", "link", "add", name, "netns", sender, "type", "veth", "peer", "name", name, "netns", receiver])?;
        for (end, host) in ENDS.into_iter().zip(1..) {
            let address = match family {
                Family::V4 => format!("10.77.{subnet}.{host}/24"),
                Family::V6 => format!("fd77:{subnet}::{host}/64"),
            };
            // Without the search for duplicates an IPv6 address can be used at once.
            let nodad: &[&str] = if matches!(family, Family::V6) { &["nodad"] } else { &[] };
            run(&[&["ip", "-n", self.name(end), "address", "add", &address, "dev", name][..], nodad].concat())?;
            run(&["ip", "-n", self.name(end), "link", "set", name, "up"])?;
        }
        self.shape(link, &["latency", QUEUE])
    }

    /// The kernel looks at changed carriers once a second only, so a new interface may pass for down
    /// for that long.
    fn wait_until_up(&self) {
        let deadline = Instant::now() + Duration::from_secs(10);
        for (end, link) in ENDS.into_iter().flat_map(|end| self.links.map(|link| (end, link))) {
            while self.attribute(&link, end, "operstate") != "up" {
                assert!(Instant::now() < deadline, "{} never came up", link.name);
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }

    /// Runs `ip` at one end.
    pub(crate) fn ip(&self, end: End, arguments: &str) {
        let words: Vec<&str> = arguments.split(' ').collect();
        run(&[&["ip", "-n", self.name(end)], &words[..]].concat()).unwrap();
    }

    /// A command at one end.
    pub(crate) fn command(&self, end: End, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", self.name(end), program]);
        command
    }

    pub(crate) fn name(&self, end: End) -> &str {
        &self.names[end as usize]
    }

    /// Gives the link its rate, in both directions.
    pub(crate) fn limit(&self, link: &Link) {
        self.shape(link, &["latency", QUEUE]).unwrap();
    }

    /// The link loses every packet, in both directions: no packet fits a queue of one byte. The
    /// interfaces stay up.
    pub(crate) fn swallow(&self, link: &Link) {
        self.shape(link, &["limit", "1"]).unwrap();
    }

    /// The same for what one end sends.
    pub(crate) fn swallow_from(&self, link: &Link, end: End) {
        self.shape_end(link, end, &["limit", "1"]).unwrap();
    }

    /// Both ends of a link of IPv4 know each other's hardware addresses for good: asking takes both directions, and
    /// an end that is not answered sends nothing any more.
    pub(crate) fn introduce(&self, link: &Link) {
        for (end, other) in [(End::Sender, End::Receiver), (End::Receiver, End::Sender)] {
            let (name, subnet, host) = (link.name, link.subnet, other as u8 + 1);
            let hardware = self.attribute(link, other, "address");
            self.ip(end, &format!("neigh replace 10.77.{subnet}.{host} lladdr {hardware} dev {name} nud permanent"));
        }
    }

    fn shape(&self, link: &Link, queue: &[&str]) -> Result<(), String> {
        ENDS.into_iter().try_for_each(|end| self.shape_end(link, end, queue))
    }

    fn shape_end(&self, link: &Link, end: End, queue: &[&str]) -> Result<(), String> {
        let rate = format!("{}mbit", link.mbit);
        let device = ["tc", "-n", self.name(end), "qdisc", "replace", "dev", link.name, "root"];
        run(&[&device, &["tbf", "rate", &rate, "burst", BURST][..], queue].concat())?;
        Ok(())
    }

    /// Sets the interface at one end of the link "up" or "down".
    pub(crate) fn set_link(&self, link: &Link, end: End, state: &str) {
        run(&["ip", "-n", self.name(end), "link", "set", link.name, state]).unwrap();
    }

    /// Gives one end of a link of IPv4 the address that ends in `host` instead of its own.
    pub(crate) fn readdress(&self, link: &Link, end: End, host: u8) {
        let Link { name, subnet, .. } = *link;
        let own = end as u8 + 1;
        let address = |what: &str, address: String| {
            run(&["ip", "-n", self.name(end), "address", what, &address, "dev", name]).unwrap();
        };
        // The new one is there before the old one goes, and not as one of its subnet, which would go with it.
        address("add", format!("10.77.{subnet}.{host}/32"));
        address("del", format!("10.77.{subnet}.{own}/24"));
        address("add", format!("10.77.{subnet}.{host}/24"));
    }

    /// The bytes that the link has brought to the receiver.
    pub(crate) fn carried(&self, link: &Link) -> u64 {
        self.carried_to(link, End::Receiver)
    }

    /// The bytes that the link has brought to this end.
    pub(crate) fn carried_to(&self, link: &Link, end: End) -> u64 {
        self.attribute(link, end, "statistics/rx_bytes").parse().unwrap()
    }

    /// The value of an attribute of the link's interface at one end.
    fn attribute(&self, link: &Link, end: End, attribute: &str) -> String {
        let file = format!("/sys/class/net/{}/{attribute}", link.name);
        run(&["ip", "netns", "exec", self.name(end), "cat", &file]).unwrap().trim().to_owned()
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for name in &self.names[..self.made] {
            let _ = run(&["ip", "netns", "delete", name]);
        }
    }
}

/// Whether this process has the rights of root; the standard library does not tell.
pub(crate) fn is_root() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ids = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap_or_default();
    // Real, effective, saved, file system.
    ids.split_whitespace().nth(1) == Some("0")
}

/// Runs the command and returns its output.
pub(crate) fn run(command: &[&str]) -> Result<String, String> {
    let output = Command::new(command[0]).args(&command[1..]).output().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => format!("there is no `{}` here", command[0]),
        _ => format!("`{}`: {error}", command[0]),
    })?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(format!("`{}`: {}", command.join(" "), why.trim().replace('\n', " ")));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
