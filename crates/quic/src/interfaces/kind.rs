//! Where an interface leads, as far as the system tells: `/sys/class/net` on Linux.

use std::fs;
use std::path::Path;

use fairpath_quic_core::Kind;

/// The kind of the interface `name`, as the system tells it. Where it says nothing, it is a link.
pub(crate) fn of(name: &str) -> Kind {
    read(Path::new("/sys/class/net"), name)
}

/// The largest packets that leave through the interface, in bytes, where the system says so.
pub(crate) fn mtu(name: &str) -> Option<u32> {
    read_number(&Path::new("/sys/class/net").join(name).join("mtu")).and_then(|mtu| mtu.try_into().ok())
}

/// `root` has a directory for each interface.
fn read(root: &Path, name: &str) -> Kind {
    let directory = root.join(name);
    let number = |file: &str| read_number(&directory.join(file));
    if number("type") == Some(LOOPBACK) {
        return Kind::Loopback;
    }
    if directory.join("bridge").is_dir() {
        let ports: Vec<String> = names(&directory.join("brif"));
        return match ports.iter().all(|port| is_of_guest(root, port)) {
            _ if ports.is_empty() => Kind::EmptyBridge,
            true => Kind::GuestBridge,
            false => Kind::Link,
        };
    }
    if number("type").is_some_and(|kind| TUNNELS.contains(&kind)) && !directory.join("device").exists() {
        return Kind::Tunnel;
    }
    // An Ethernet without hardware and without neighbours. Tunnels have no neighbours either; they are
    // no Ethernet, or say what they are.
    let has_no_neighbours = number("flags").is_some_and(|flags| flags & NOARP != 0);
    let is_own_end = number("ifindex").is_some() && number("ifindex") == number("iflink");
    let is_ethernet = number("type") == Some(ETHERNET);
    match is_virtual(&directory) && has_no_neighbours && is_own_end && is_ethernet {
        true => Kind::Dummy,
        false => Kind::Link,
    }
}

/// `ARPHRD_LOOPBACK`, `ARPHRD_ETHER` and `IFF_NOARP` of Linux's `if_arp.h` and `if.h`.
const LOOPBACK: u64 = 772;
const ETHERNET: u64 = 1;
const NOARP: u64 = 0x80;

/// `ARPHRD_NONE`, of `tun` devices and WireGuard, and those of packets in packets: `ARPHRD_TUNNEL`, `ARPHRD_TUNNEL6`,
/// `ARPHRD_SIT`, `ARPHRD_IPGRE`, `ARPHRD_IP6GRE`. Modems that carry bare packets are `ARPHRD_NONE` too, and have hardware.
const TUNNELS: [u64; 6] = [65534, 768, 769, 776, 778, 823];

/// Whether a port of a bridge is one end of a cable inside this machine: a veth pair or a tap device. Both
/// are virtual, have nothing below them, and do not name their kind, as tunnels and VLANs do.
fn is_of_guest(root: &Path, port: &str) -> bool {
    is_virtual(&root.join(port))
}

fn is_virtual(directory: &Path) -> bool {
    let has_lower = names(directory).iter().any(|name| name.starts_with("lower_"));
    let uevent = fs::read_to_string(directory.join("uevent")).unwrap_or_default();
    let names_kind = uevent.lines().any(|line| line.starts_with("DEVTYPE="));
    directory.is_dir() && !directory.join("device").exists() && !has_lower && !names_kind
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// A decimal number, or a hexadecimal one after `0x`.
fn read_number(file: &Path) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    match text.trim().strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.trim().parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// Kinds of some interfaces as a system tells them; they disappear in the end.
    struct Sys(PathBuf);

    impl Sys {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("fairpath-kind-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        /// An interface with these files, `/` at the end of a directory.
        fn has(self, name: &str, files: &[(&str, &str)]) -> Self {
            for (file, content) in [("uevent", ""), ("type", "1\n"), ("ifindex", "7\n")].iter().chain(files) {
                let path = self.0.join(name).join(file);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                match file.ends_with('/') {
                    true => fs::create_dir_all(path).unwrap(),
                    false => fs::write(path, content).unwrap(),
                }
            }
            self
        }

        fn kind(&self, name: &str) -> Kind {
            read(&self.0, name)
        }
    }

    impl Drop for Sys {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_bridge_leads_where_its_ports_lead() {
        let bridge = [("bridge/", ""), ("brif/", ""), ("uevent", "DEVTYPE=bridge\nINTERFACE=x\n")];
        let with = |port: &'static str| [&bridge[..], &[(port, "")]].concat();
        let sys = Sys::new("bridges")
            .has("eth0", &[("device/", "")])
            .has("veth1", &[("iflink", "9\n")])
            .has("tap0", &[("tun_flags", "0x1002\n")])
            .has("vlan5", &[("lower_eth0/", ""), ("uevent", "DEVTYPE=vlan\n")])
            .has("vx0", &[("uevent", "DEVTYPE=vxlan\n")])
            .has("docker0", &bridge)
            .has("br-a1b2", &with("brif/veth1"))
            .has("virbr0", &with("brif/tap0"))
            .has("br0", &[&with("brif/veth1")[..], &[("brif/eth0", "")]].concat())
            .has("br5", &with("brif/vlan5"))
            .has("br6", &with("brif/vx0"));
        assert_eq!(sys.kind("docker0"), Kind::EmptyBridge);
        assert_eq!(sys.kind("br-a1b2"), Kind::GuestBridge);
        assert_eq!(sys.kind("virbr0"), Kind::GuestBridge);
        for leads_out in ["br0", "br5", "br6"] {
            assert_eq!(sys.kind(leads_out), Kind::Link, "{leads_out}");
        }
    }

    #[test]
    fn what_only_holds_addresses_is_told_from_links_without_hardware() {
        let noarp = ("flags", "0x1083\n");
        let sys = Sys::new("others")
            .has("lo", &[("type", "772\n"), ("flags", "0x9\n"), ("iflink", "7\n")])
            .has("dummy0", &[("flags", "0x83\n"), ("iflink", "7\n")])
            // The link of a container; a tunnel; a share of another interface; hardware.
            .has("eth0", &[("flags", "0x1003\n"), ("iflink", "8\n")])
            .has("tun0", &[("type", "65534\n"), noarp, ("iflink", "7\n")])
            .has("ipvlan0", &[noarp, ("iflink", "3\n"), ("lower_eno1/", "")])
            .has("wwan0", &[("type", "65534\n"), noarp, ("iflink", "7\n"), ("device/", "")]);
        assert_eq!(sys.kind("lo"), Kind::Loopback);
        assert_eq!(sys.kind("dummy0"), Kind::Dummy);
        assert_eq!(sys.kind("tun0"), Kind::Tunnel);
        for link in ["eth0", "ipvlan0", "wwan0", "there-is-none"] {
            assert_eq!(sys.kind(link), Kind::Link, "{link}");
        }
    }
}
