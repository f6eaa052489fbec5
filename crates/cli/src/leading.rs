//! Rules of nftables that lead what programs send to `fairpath proxy --transparent`, those of this machine and of machines
//! behind it.
//!
//! All of them are in one table, which is made and taken away as a whole.

use std::collections::BTreeSet;
use std::io::{ErrorKind, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, anyhow, bail};
use fairpath_proxy::{GatePorts, Gates};
use fairpath_report::text::tell;

/// The name of the table.
const TABLE: &str = "inet fairpath_proxy";

/// The file in the state directory that says that there are rules.
const MARK: &str = "transparent";

/// The mark of packets that are led here, and that of answers to programs of this machine.
const ROUTED: &str = "0x66616972";
pub(crate) const ANSWERS: u32 = 0x6661_6973;
/// Both of them, and the table of routes that keeps what has them in this machine.
const KEPT: &str = "0x66616972/0xfffffffe";
const ROUTES: &str = "26209";

/// Addresses that are no others' business: of this machine, of its links, and private ones.
const LOCAL_V4: &str =
    "0.0.0.0/8, 10.0.0.0/8, 100.64.0.0/10, 127.0.0.0/8, 169.254.0.0/16, 172.16.0.0/12, 192.168.0.0/16, 224.0.0.0/3";
const LOCAL_V6: &str = "::1/128, fc00::/7, fe80::/10, ff00::/8";

/// The contents of the table.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) gates: Gates,
    /// The interfaces behind which machines are carried, too.
    pub(crate) clients: Vec<String>,
    /// The addresses of the far end, to which packets go as they are.
    pub(crate) far: BTreeSet<SocketAddr>,
    /// Whether nothing else leaves this machine but to these and to its own networks.
    pub(crate) lockdown: bool,
}

/// Rules that hold, until this is dropped.
#[derive(Debug)]
pub(crate) struct Leading {
    mark: PathBuf,
    /// The addresses of the far end, to which packets go as they are.
    far: BTreeSet<SocketAddr>,
    /// Whether UDP other than names is led, too.
    pub(crate) leads_packets: bool,
}

impl Leading {
    /// Makes the rules.
    pub(crate) fn begin(state: &Path, mut rules: Rules) -> anyhow::Result<Self> {
        let mark = state.join(MARK);
        std::fs::write(&mark, TABLE).with_context(|| format!("cannot write {}", mark.display()))?;
        // From here on a drop puts everything back.
        let mut leading = Self { mark, far: rules.far.clone(), leads_packets: true };
        if let Err(why) = rules.make() {
            // A kernel may not have what packets of UDP take. All else works without it.
            if !rules.gives_up_packets() || rules.make().is_err() {
                return Err(why);
            }
            leading.leads_packets = false;
            tell(format!("UDP other than names is not carried: this system cannot lead it here ({why:#})"));
        }
        Ok(leading)
    }

    /// Knows further addresses of the far end.
    pub(crate) fn allow(&mut self, addresses: impl IntoIterator<Item = SocketAddr>) {
        let new: BTreeSet<SocketAddr> = addresses.into_iter().filter(|address| self.far.insert(*address)).collect();
        if new.is_empty() {
            return;
        }
        if let Err(error) = nft(&allowed(&new)) {
            tell(format!("new addresses of the far end cannot be allowed: {error:#}"));
        }
    }
}

impl Drop for Leading {
    fn drop(&mut self) {
        match take_away() {
            Ok(()) => drop(std::fs::remove_file(&self.mark)),
            Err(error) => {
                tell(format!("the rules could not be put back: {error:#}; `fairpath proxy --undo` tries again"))
            }
        }
    }
}

/// Takes away what a proxy left that was killed. True where there was something.
pub(crate) fn undo(state: &Path) -> anyhow::Result<bool> {
    let mark = state.join(MARK);
    let was_there = is_there()?;
    if was_there {
        take_away()?;
    }
    let _ = std::fs::remove_file(mark);
    Ok(was_there)
}

/// Whether a proxy with this state directory has made rules and not put them back.
pub(crate) fn is_marked(state: &Path) -> bool {
    state.join(MARK).exists()
}

fn is_there() -> anyhow::Result<bool> {
    let listed = command(&["list", "tables"]).output().map_err(missing)?;
    if !listed.status.success() {
        bail!("nft: {}", String::from_utf8_lossy(&listed.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&listed.stdout).lines().any(|line| line.trim() == format!("table {TABLE}")))
}

fn take_away() -> anyhow::Result<()> {
    release_marked();
    // Adding it before makes it no error where there is none.
    nft(&format!("add table {TABLE}\ndelete table {TABLE}\n"))
}

/// Has packets with these marks delivered here, whatever their address: where the rules lead them, the system would pass them on.
fn keep_marked(has_v6: bool) -> anyhow::Result<()> {
    release_marked();
    for family in ["-4", "-6"].into_iter().take(if has_v6 { 2 } else { 1 }) {
        ip(&[family, "rule", "add", "fwmark", KEPT, "lookup", ROUTES])?;
        ip(&[family, "route", "replace", "local", "default", "dev", "lo", "table", ROUTES])?;
    }
    Ok(())
}

/// Takes all of that away, how often it was ever made.
fn release_marked() {
    for family in ["-4", "-6"] {
        while ip(&[family, "rule", "del", "fwmark", KEPT, "lookup", ROUTES]).is_ok() {}
        // Where there is no such table, there is nothing to take away.
        let _ = ip(&[family, "route", "flush", "table", ROUTES]);
    }
}

fn ip(arguments: &[&str]) -> anyhow::Result<()> {
    let output = Command::new("ip").args(arguments).output().map_err(|error| match error.kind() {
        ErrorKind::NotFound => anyhow!("there is no program `ip` here: install iproute2"),
        _ => anyhow::Error::from(error).context("cannot run ip"),
    })?;
    let said = String::from_utf8_lossy(&output.stderr);
    match output.status.success() {
        true => Ok(()),
        false if said.contains("not up") => bail!("the loopback interface is down: `ip link set lo up` puts it right"),
        false => bail!("ip {}: {}", arguments.join(" "), said.lines().next().unwrap_or_default()),
    }
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new("nft");
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn missing(error: std::io::Error) -> anyhow::Error {
    match error.kind() {
        ErrorKind::NotFound => anyhow!("there is no program `nft` here: install nftables"),
        _ => anyhow::Error::from(error).context("cannot run nft"),
    }
}

/// Has nft do all of this, or nothing.
fn nft(script: &str) -> anyhow::Result<()> {
    let mut child = command(&["-f", "-"]).spawn().map_err(missing)?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(script.as_bytes()).context("cannot talk to nft")?;
    }
    let output = child.wait_with_output().context("cannot talk to nft")?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let first = said.lines().next().unwrap_or_default();
    match first.contains("ermitted") {
        true => bail!("rules of the firewall need root: run it with sudo, or without --transparent"),
        false => bail!("nft: {first}"),
    }
}

impl Rules {
    /// Has the system follow them.
    fn make(&self) -> anyhow::Result<()> {
        let Gates { own, clients } = self.gates;
        match clients.unwrap_or(own).udp {
            Some(_) => keep_marked(own.tcp_v6.is_some())?,
            None => release_marked(),
        }
        nft(&self.to_string())
    }

    /// Leads no packets of UDP any more, where only those of this machine are led.
    fn gives_up_packets(&mut self) -> bool {
        self.gates.clients.is_none() && self.gates.own.udp.take().is_some()
    }

    /// The chains for packets of UDP other than names. Those of this machine are turned round to come in again.
    fn packets(&self, f: &mut std::fmt::Formatter<'_>, inside: &str) -> std::fmt::Result {
        const OTHERS: &str = "fib daddr type { local, broadcast, multicast } return";
        let Gates { own, clients } = self.gates;
        let families = [("ipv4", "ip", "127.0.0.1"), ("ipv6", "ip6", "[::1]")];
        let families = || families.into_iter().take(if own.tcp_v6.is_some() { 2 } else { 1 });
        if own.udp.is_some() {
            // A program that answers strangers has to answer from the address that they know.
            writeln!(f, "  chain own {{\n    type route hook output priority -150; policy accept;")?;
            writeln!(f, "    meta l4proto != udp return\n    oifname \"lo\" return\n    ct direction reply return")?;
            writeln!(f, "    udp dport {{ 53, 67 }} return\n    {OTHERS}")?;
            writeln!(f, "    ip daddr @local4 return\n    ip6 daddr @local6 return")?;
            writeln!(f, "    ip daddr . udp dport @far4 return\n    ip6 daddr . udp dport @far6 return")?;
            for (family, ..) in families() {
                writeln!(f, "    meta nfproto {family} meta mark set {ROUTED}")?;
            }
            writeln!(f, "  }}")?;
        }
        let (own, clients) = (own.udp, clients.and_then(|ports| ports.udp));
        if own.or(clients).is_none() {
            return Ok(());
        }
        // Behind a proxy that was killed they are dropped: none may come to another program's port.
        writeln!(f, "  chain packets {{\n    type filter hook prerouting priority -150; policy accept;")?;
        if let Some(port) = own {
            let led = format!("iifname \"lo\" meta mark {ROUTED}");
            for (family, ip, here) in families() {
                let tproxy = format!("tproxy {ip} to {here}:{port} accept");
                writeln!(f, "    {led} meta nfproto {family} meta l4proto udp {tproxy}")?;
            }
            writeln!(f, "    {led} drop")?;
        }
        if let Some(port) = clients {
            writeln!(f, "    iifname != {inside} return\n    {OTHERS}")?;
            writeln!(f, "    udp dport 53 return\n    ip daddr @local4 return\n    ip6 daddr @local6 return")?;
            for (family, ip, _) in families() {
                let tproxy = format!("meta mark set {ROUTED} tproxy {ip} to :{port} accept");
                writeln!(f, "    meta nfproto {family} meta l4proto udp {tproxy}")?;
            }
            writeln!(f, "    meta mark {ROUTED} drop")?;
        }
        writeln!(f, "  }}")
    }
}

impl std::fmt::Display for Rules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { gates, clients, far, lockdown } = self;
        writeln!(f, "add table {TABLE}\ndelete table {TABLE}\ntable {TABLE} {{")?;
        writeln!(f, "  set local4 {{ type ipv4_addr; flags interval; elements = {{ {LOCAL_V4} }}; }}")?;
        writeln!(f, "  set local6 {{ type ipv6_addr; flags interval; elements = {{ {LOCAL_V6} }}; }}")?;
        writeln!(f, "  set far4 {{ type ipv4_addr . inet_service; }}")?;
        writeln!(f, "  set far6 {{ type ipv6_addr . inet_service; }}")?;
        writeln!(f, "  chain lead {{\n    type nat hook output priority -100; policy accept;")?;
        writeln!(f, "    oifname \"lo\" return\n{}  }}", redirected(gates.own))?;
        let quoted: Vec<String> = clients.iter().map(|name| format!("\"{name}\"")).collect();
        let inside = format!("{{ {} }}", quoted.join(", "));
        if let Some(ports) = gates.clients {
            // This machine answers what clients ask of itself. Its resolver asks on, and the chain above leads that.
            writeln!(f, "  chain clients {{\n    type nat hook prerouting priority -100; policy accept;")?;
            writeln!(f, "    iifname != {inside} return\n    fib daddr type {{ local, broadcast, multicast }} return")?;
            writeln!(f, "{}  }}", redirected(ports))?;
        }
        self.packets(f, &inside)?;
        if *lockdown {
            writeln!(f, "  chain keep {{\n    type filter hook postrouting priority 0; policy drop;")?;
            writeln!(f, "    oifname \"lo\" accept")?;
            writeln!(f, "    ip daddr . udp dport @far4 accept\n    ip6 daddr . udp dport @far6 accept")?;
            writeln!(f, "    udp dport {{ 53, 853 }} drop\n    tcp dport {{ 53, 853 }} drop")?;
            if gates.clients.is_some() {
                writeln!(f, "    oifname {inside} accept")?;
            }
            writeln!(f, "    ip daddr @local4 accept\n    ip6 daddr @local6 accept\n  }}")?;
        }
        if *lockdown && gates.clients.is_some() {
            // The chain above drops it, too. Clients that are told so try TCP at once.
            writeln!(f, "  chain refuse {{\n    type filter hook forward priority 0; policy accept;")?;
            writeln!(
                f,
                "    iifname != {inside} accept\n    meta l4proto {{ tcp, udp }} th dport {{ 53, 853 }} reject"
            )?;
            writeln!(f, "    oifname {inside} accept\n    ip daddr @local4 accept\n    ip6 daddr @local6 accept")?;
            writeln!(f, "    reject with icmpx admin-prohibited\n  }}")?;
        }
        f.write_str("}\n")?;
        f.write_str(&allowed(far))
    }
}

/// The rules that turn questions for names and connections round to these ports.
fn redirected(ports: GatePorts) -> String {
    let GatePorts { tcp_v4, tcp_v6, dns, .. } = ports;
    let v6 = tcp_v6.map(|port| format!("    meta nfproto ipv6 meta l4proto tcp redirect to :{port}\n"));
    format!(
        "    meta l4proto {{ tcp, udp }} th dport 53 redirect to :{dns}\n    \
         ip daddr @local4 return\n    ip6 daddr @local6 return\n    \
         meta nfproto ipv4 meta l4proto tcp redirect to :{tcp_v4}\n{}",
        v6.unwrap_or_default()
    )
}

/// Adds addresses of the far end.
fn allowed(far: &BTreeSet<SocketAddr>) -> String {
    let element = |address: &SocketAddr| {
        let set = if address.is_ipv4() { "far4" } else { "far6" };
        format!("add element {TABLE} {set} {{ {} . {} }}\n", address.ip(), address.port())
    };
    far.iter().map(element).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PORTS: GatePorts = GatePorts { tcp_v4: 4001, tcp_v6: Some(4002), dns: 4003, udp: Some(4004) };

    fn rules(own: GatePorts, clients: &[&str], far: &[&str]) -> String {
        let far: BTreeSet<SocketAddr> = far.iter().map(|address| address.parse().unwrap()).collect();
        let clients: Vec<String> = clients.iter().map(|name| (*name).to_owned()).collect();
        let led = (!clients.is_empty()).then_some(GatePorts { tcp_v4: 4011, tcp_v6: None, dns: 4013, udp: Some(4014) });
        let lockdown = !far.is_empty();
        Rules { gates: Gates { own, clients: led }, clients, far, lockdown }.to_string()
    }

    #[test]
    fn nothing_is_kept_back_without_lockdown_and_names_never_leave_with_it() {
        let open = rules(PORTS, &[], &[]);
        assert!(
            open.contains("ipv4 meta l4proto tcp redirect to :4001") && open.contains("redirect to :4002"),
            "{open}"
        );
        assert!(!open.contains("policy drop") && open.contains("th dport 53 redirect to :4003"), "{open}");
        assert!(!open.contains("chain clients") && !open.contains("to :4014"), "nobody else is led: {open}");
        let far = ["192.0.2.1:443", "[2001:db8::1]:4433"];
        let shut = rules(GatePorts { tcp_v6: None, ..PORTS }, &[], &far);
        assert!(shut.contains("policy drop") && !shut.contains("ipv6 meta l4proto tcp redirect"), "{shut}");
        assert!(shut.contains("far4 { 192.0.2.1 . 443 }") && shut.contains("far6 { 2001:db8::1 . 4433 }"), "{shut}");
        let (names, local) = (shut.find("udp dport { 53, 853 } drop"), shut.find("ip daddr @local4 accept"));
        assert!(names < local, "a resolver of the own network is not asked either: {shut}");
    }

    #[test]
    fn packets_of_this_machine_come_in_again_but_for_those_to_the_far_end() {
        let far = ["192.0.2.1:443".parse().unwrap()].into();
        let mut led = Rules { gates: Gates { own: PORTS, clients: None }, clients: Vec::new(), far, lockdown: false };
        let open = led.to_string();
        let [own, packets] = ["chain own", "chain packets"].map(|name| open.find(name).unwrap());
        let (own, packets) = (&open[own..packets], &open[packets..]);
        let far = own.find("ip daddr . udp dport @far4 return");
        assert!(far.is_some() && far < own.find("ipv4 meta mark set 0x66616972"), "{own}");
        assert!(
            packets.contains("tproxy ip to 127.0.0.1:4004") && packets.contains("tproxy ip6 to [::1]:4004"),
            "{packets}"
        );
        assert!(packets.contains("meta mark 0x66616972 drop"), "nobody else gets what is led here: {packets}");
        // A kernel that cannot do it has all other rules.
        assert!(led.gives_up_packets() && !led.gives_up_packets());
        assert!(!led.to_string().contains("tproxy") && led.to_string().contains("redirect to :4001"), "{led}");
        let v4 = rules(GatePorts { tcp_v6: None, ..PORTS }, &[], &[]);
        assert!(!v4.contains("tproxy ip6") && !v4.contains("ipv6 meta mark"), "{v4}");
    }

    #[test]
    fn clients_are_led_to_ports_of_their_own_and_refused_only_in_lockdown() {
        let open = rules(PORTS, &["lan0", "lan1"], &[]);
        assert!(open.contains("iifname != { \"lan0\", \"lan1\" } return"), "{open}");
        assert!(open.contains("th dport 53 redirect to :4013") && open.contains("tcp redirect to :4011"), "{open}");
        assert!(!open.contains("reject") && !open.contains("policy drop"), "{open}");
        let packets = &open[open.find("chain packets").unwrap()..];
        let packets = &packets[packets.find("iifname !=").unwrap()..];
        let (own, led) = (packets.find("ip daddr @local4 return"), packets.find("tproxy ip to :4014"));
        assert!(own < led && own.is_some() && packets.contains("tproxy ip6 to :4014"), "{open}");
        let shut = rules(PORTS, &["lan0"], &["192.0.2.1:443"]);
        assert!(shut.contains("hook forward") && shut.contains("reject with icmpx admin-prohibited"), "{shut}");
        let keep = &shut[shut.find("chain keep").unwrap()..];
        let (names, lan) = (keep.find("{ 53, 853 } drop"), keep.find("oifname { \"lan0\" } accept"));
        assert!(names < lan && lan.is_some(), "answers reach clients, whatever addresses they have: {shut}");
    }
}
