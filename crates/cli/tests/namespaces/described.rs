//! Two namespaces, joined by links as a scenario describes them: with delays, queues, losses and jitter, for programs of
//! any kind. The kernel here has no `netem`, so our own links carry the frames.
//!
//! ```text
//!   near ── one ──┐                       ┌── one ── far      10.77.1.1, 10.77.1.2
//!        └─ two ──┤ links, of a `Bridge`  ├── two ──┘         10.77.2.1, 10.77.2.2
//!                 └───────────────────────┘
//! ```

use std::net::Ipv4Addr;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use fairpath_emu::{Bridge, BridgeBuilder, LinkConfig, LinkId, Port};

use crate::kernel::inside;
use crate::network::{STRONG_HOST, is_root, run};

/// The interfaces, of one name at both ends.
pub(crate) const INTERFACES: [&str; 3] = ["one", "two", "three"];

/// Nothing but what the programs say is on the links.
const SETTINGS: [&str; 2] = ["net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1"];

/// A link in both directions, from the near end and back.
pub(crate) type Both = [LinkConfig; 2];

/// The namespaces, until it is dropped.
pub(crate) struct Described {
    pub(crate) near: String,
    pub(crate) far: String,
    router: String,
    bridge: Option<Bridge>,
    links: Vec<[LinkId; 2]>,
}

impl Described {
    /// With an interface for each of `through`, which says the link that it leads through. `Err` says why this machine
    /// cannot have one.
    pub(crate) fn new(seed: u64, links: &[Both], through: &[usize]) -> Result<Self, String> {
        if !is_root() {
            return Err("only root may make network namespaces".to_owned());
        }
        sweep();
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("fairpath-{}-described-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let [near, far, router] = ["near", "far", "router"].map(|end| format!("{name}-{end}"));
        let mut described = Self { near, far, router, bridge: None, links: Vec::new() };
        for namespace in [&described.near, &described.far, &described.router] {
            run(&["ip", "netns", "add", namespace])?;
            run(&[&["ip", "netns", "exec", namespace, "sysctl", "-q", "-w"][..], &SETTINGS, &STRONG_HOST].concat())?;
            run(&["ip", "-n", namespace, "link", "set", "lo", "up"])?;
        }
        let mut builder = Bridge::builder(seed);
        for (at, link) in links.iter().enumerate() {
            let direction = |builder: &mut BridgeBuilder, name: &str, config| {
                builder.link(&format!("{at} {name}"), config).map_err(|error| error.to_string())
            };
            let ids = [direction(&mut builder, "up", &link[0])?, direction(&mut builder, "down", &link[1])?];
            described.links.push(ids);
        }
        for (interface, link) in INTERFACES.into_iter().zip(through) {
            described.wire(interface)?;
            let name = interface.to_owned();
            let open = move || Ok([Port::open(&format!("{name}-near"))?, Port::open(&format!("{name}-far"))?]);
            let ports = inside(&described.router, open)?;
            let [up, down] = described.links[*link];
            builder.connect(ports, &[up], &[down]).map_err(|error| error.to_string())?;
        }
        described.wait_until_up(through.len());
        described.bridge = Some(builder.start().map_err(|error| error.to_string())?);
        Ok(described)
    }

    /// An interface at each end, whose other ends are in the router.
    fn wire(&self, interface: &str) -> Result<(), String> {
        let subnet = subnet(interface);
        for (end, namespace, host) in [("near", &self.near, 1), ("far", &self.far, 2)] {
            let port = format!("{interface}-{end}");
            let pair = ["type", "veth", "peer", "name", &port, "netns", &self.router];
            run(&[&["ip", "link", "add", "name", interface, "netns", namespace][..], &pair].concat())?;
            let address = format!("10.77.{subnet}.{host}/24");
            run(&["ip", "-n", namespace, "address", "add", &address, "dev", interface])?;
            // Each packet has a frame of its own, as on a cable.
            run(&["ip", "-n", namespace, "link", "set", interface, "up", "gso_max_segs", "1"])?;
            run(&["ip", "-n", &self.router, "link", "set", &port, "up"])?;
        }
        // Both know each other's hardware addresses for good: a question that is lost would take a second.
        for (namespace, other, host) in [(&self.near, &self.far, 2), (&self.far, &self.near, 1)] {
            let file = format!("/sys/class/net/{interface}/address");
            let hardware = run(&["ip", "netns", "exec", other, "cat", &file])?;
            let (address, hardware) = (format!("10.77.{subnet}.{host}"), hardware.trim());
            let neighbour = ["neigh", "replace", &address, "lladdr", hardware, "dev", interface, "nud", "permanent"];
            run(&[&["ip", "-n", namespace][..], &neighbour].concat())?;
        }
        Ok(())
    }

    /// The kernel looks at changed carriers once a second only.
    fn wait_until_up(&self, count: usize) {
        let deadline = Instant::now() + Duration::from_secs(10);
        for (namespace, interface) in
            [&self.near, &self.far].into_iter().flat_map(|end| INTERFACES.map(|one| (end, one)).into_iter().take(count))
        {
            let file = format!("/sys/class/net/{interface}/operstate");
            while run(&["ip", "netns", "exec", namespace, "cat", &file]).is_ok_and(|state| state.trim() != "up") {
                assert!(Instant::now() < deadline, "{interface} never came up");
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }

    /// Switches a link on or off, both ways. Nothing tells but the silence.
    pub(crate) fn set_link_up(&self, link: usize, up: bool) {
        let bridge = self.bridge.as_ref().expect("it runs until it is dropped");
        self.links[link].iter().for_each(|direction| bridge.set_link_up(*direction, up));
    }

    /// Asserts that no frame was larger than a link carries.
    pub(crate) fn assert_all_fitted(&self) {
        let too_large = self.bridge.as_ref().map_or(0, Bridge::too_large);
        assert_eq!(too_large, 0, "frames larger than a link carries");
    }
}

fn subnet(interface: &str) -> usize {
    1 + INTERFACES.iter().position(|one| *one == interface).expect("one of them")
}

/// The far end's address behind an interface.
pub(crate) fn far_address(interface: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 1 + interface as u8, 2)
}

/// The near end's address of an interface.
pub(crate) fn near_address(interface: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 77, 1 + interface as u8, 1)
}

impl Drop for Described {
    fn drop(&mut self) {
        self.bridge = None;
        for name in [&self.near, &self.far, &self.router] {
            remove(name);
        }
    }
}

/// Removes what runs that were killed have left: namespaces of processes that are gone, and who is still in them.
fn sweep() {
    let names = run(&["ip", "netns", "list"]).unwrap_or_default();
    for name in names.lines().filter_map(|line| line.split(' ').next()) {
        let owner = name.strip_prefix("fairpath-").and_then(|rest| rest.split_once("-described-")).map(|(id, _)| id);
        if owner.is_some_and(|id| !std::path::Path::new("/proc").join(id).exists()) {
            remove(name);
        }
    }
}

fn remove(namespace: &str) {
    for id in run(&["ip", "netns", "pids", namespace]).unwrap_or_default().split_whitespace() {
        // This process itself is in none of them, but for threads that enter one.
        if id != std::process::id().to_string() {
            let _ = Command::new("kill").args(["-KILL", id]).status();
        }
    }
    let _ = run(&["ip", "netns", "delete", namespace]);
}
