//! `fairpath proxy --transparent --for-clients` on a router: what a machine behind it sends is carried, though that knows of
//! nothing.
//!
//! ```text
//!   client ── lan0 ── router (proxy) ══ one, two ══ far end (serve), a web server and a resolver at a public address
//! ```

use std::fs;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::bond::{Bond, PATIENCE, web};
use crate::lan::Lan;
use crate::network::{End, Network, TWINS, run};
use crate::packets::{Ask, PUBLIC, PUBLIC6, add_public6, ear, echo, hears, hears_carried, resolver};
use crate::transfer::Process;
use crate::{mbps, say};

/// Where the client looks for names. Nobody has this address.
const RESOLVER: &str = "9.9.9.9";
const ROUTER: &str = "192.168.50.1";
const CLIENT: &str = "192.168.50.2";

/// A machine behind the near end.
struct Client {
    lan: Lan,
    /// Programs in its namespace find this as `/etc/resolv.conf`.
    settings: PathBuf,
}

impl Client {
    fn new() -> Result<Self, String> {
        let lan = Lan::new(&["client"])?;
        let settings = PathBuf::from("/etc/netns").join(lan.namespace("client"));
        Ok(Self { lan, settings })
    }

    /// Joins it to the router.
    fn join(&self, network: &Network) {
        let (client, router) = (self.lan.namespace("client"), network.name(End::Sender));
        run(&["ip", "link", "add", "lan0", "netns", router, "type", "veth", "peer", "name", "lan0", "netns", &client])
            .unwrap();
        network.ip(End::Sender, &format!("addr add {ROUTER}/24 dev lan0"));
        network.ip(End::Sender, "link set lan0 up");
        network.ip(End::Sender, &format!("route add {PUBLIC}/32 via 10.77.1.2 dev {}", TWINS[0].name));
        network.ip(End::Receiver, &format!("route add 192.168.50.0/24 via 10.77.1.1 dev {}", TWINS[0].name));
        run(&["ip", "netns", "exec", router, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"]).unwrap();
        // Over IPv6, too.
        network.ip(End::Sender, "addr add fd50::1/64 dev lan0 nodad");
        add_public6(network);
        network.ip(End::Receiver, "route add fd50::/64 via fd77:1::1");
        run(&["ip", "netns", "exec", router, "sh", "-c", "echo 1 > /proc/sys/net/ipv6/conf/all/forwarding"]).unwrap();
        self.lan.address("client", "lan0", "fd50::2/64");
        self.lan.address("client", "lan0", &format!("{CLIENT}/24"));
        self.lan.ip("client", "link set lan0 up");
        self.lan.ip("client", &format!("route add default via {ROUTER}"));
        self.lan.ip("client", "-6 route add default via fd50::1");
        fs::create_dir_all(&self.settings).unwrap();
        fs::write(self.settings.join("resolv.conf"), format!("nameserver {RESOLVER}\n")).unwrap();
    }

    /// Downloads so many bytes as any program would; its status and how many came.
    fn curl(&self, host: &str, port: u16, bytes: usize) -> Result<String, String> {
        let (url, shown) = (format!("http://{host}:{port}/{bytes}"), "%{http_code} %{size_download}");
        self.lan.exec("client", &["curl", "-sS", "--max-time", "15", "-o", "/dev/null", "-w", shown, &url])
    }

    /// The answer to a packet of UDP that it sends, behind the address from where it came.
    fn ask(&self, ask: Ask) -> String {
        ask.in_namespace(&self.lan.namespace("client"))
    }

    /// Sends a packet of UDP.
    fn send(&self, to: &str) {
        let _ = self.lan.exec("client", &["bash", "-c", &format!("echo leak > /dev/udp/{to}")]);
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.settings);
    }
}

/// The ports to which the rules lead what clients send.
fn gates(router: &str) -> Vec<u16> {
    let chain =
        |name| run(&["ip", "netns", "exec", router, "nft", "list", "chain", "inet", "fairpath_proxy", name]).unwrap();
    let rules = chain("clients") + &chain("packets");
    let first = |rest: &str| rest.split_whitespace().next()?.parse().ok();
    rules.split(" to :").skip(1).filter_map(first).collect()
}

#[test]
fn a_machine_behind_a_router_is_carried_and_nothing_of_it_leaks() {
    const MEGABYTES: usize = 6_000_000;
    if run(&["nft", "--version"]).is_err() {
        return say("a test of a router's clients: skipped, there is no `nft` here");
    }
    let client = match Client::new() {
        Ok(client) => client,
        Err(reason) => return say(&format!("a test of a router's clients: skipped, {reason}")),
    };
    let dns = format!("{PUBLIC}:53");
    let options = ["--transparent", "--for-clients", "lan0", "--lockdown", "--dns", &dns];
    let prepare = |network: &Network| {
        resolver(network.name(End::Receiver));
        client.join(network);
    };
    let Some(mut bond) = Bond::prepared(&options, PUBLIC, prepare) else { return };
    let (router, far) = (bond.network.name(End::Sender).to_owned(), bond.network.name(End::Receiver).to_owned());
    let port = bond.web.port();

    // By address and by name, while each link fails in turn.
    assert_eq!(client.curl(&PUBLIC.to_string(), port, 100_000).unwrap(), "200 100000", "{}", bond.proxy.said());
    assert_eq!(client.curl("www.example.com", port, 100_000).unwrap(), "200 100000", "{}", bond.proxy.said());
    for link in TWINS {
        std::thread::scope(|scope| {
            let download = scope.spawn(|| {
                let begun = std::time::Instant::now();
                (client.curl("www.example.com", port, MEGABYTES).unwrap(), begun.elapsed())
            });
            std::thread::sleep(Duration::from_millis(700));
            bond.network.swallow(&link);
            std::thread::sleep(Duration::from_secs(1));
            bond.network.limit(&link);
            let (answer, took) = download.join().unwrap();
            assert_eq!(answer, format!("200 {MEGABYTES}"), "without {}", link.name);
            say(&format!("a client's download while {} fails: {:.1} Mbit/s", link.name, mbps(MEGABYTES as u64, took)));
        });
    }

    // Packets of UDP, each answered from where it was sent to; and all of it over IPv6.
    bond.let_reach(PUBLIC6);
    let port6 = web(&far, PUBLIC6).port();
    let deadline = std::time::Instant::now() + PATIENCE;
    while client.curl(&format!("[{PUBLIC6}]"), port6, 100_000).ok().as_deref() != Some("200 100000") {
        assert!(std::time::Instant::now() < deadline, "no download over IPv6: {}", bond.proxy.said());
    }
    let public: [IpAddr; 2] = [PUBLIC.into(), PUBLIC6.into()];
    for host in public {
        for port in [echo(&far, host), echo(&far, host)] {
            assert_eq!(client.ask(Ask::new(host, port)), format!("{host} {port} 5\n"), "{}", bond.proxy.said());
        }
        // Large ones too, and also where a program of the router has that port at all of its addresses.
        let port = echo(&far, host);
        let _other = ear(&router, &format!("{}:{port}", if host.is_ipv4() { "0.0.0.0" } else { "[::]" }));
        for (length, own) in [(5, 0), (60_000, 0), (700, port)] {
            let answered = client.ask(Ask { length, own, ..Ask::new(host, port) });
            assert_eq!(answered, format!("{host} {port} {length}\n"), "{own}: {}", bond.proxy.said());
        }
    }

    // Nothing else of it comes through, but to private networks.
    let (outside, private) = (ear(&far, &format!("{PUBLIC}:9999")), ear(&far, "10.77.1.2:9999"));
    client.send(&format!("{PUBLIC}/9999"));
    assert!(hears_carried(&outside), "a packet leaked, or was not carried");
    client.send("10.77.1.2/9999");
    assert!(hears(&private), "private networks stay as they were");
    let names = ear(&far, "10.77.1.2:853");
    client.send("10.77.1.2/853");
    assert!(!hears(&names), "a question for a name leaked");

    // A stranger in front of the router gets nothing from the gates, by whatever address of it.
    let ports = gates(&router);
    assert!(ports.len() >= 2, "{ports:?}");
    let stranger = ear(&far, "10.77.1.2:0");
    let question = b"\0\x01\x01\0\0\x01\0\0\0\0\0\0\x01a\0\0\x01\0\x01";
    for address in ["10.77.1.1", ROUTER] {
        for port in &ports {
            let _ = stranger.send_to(question, (address, *port));
            assert!(!hears(&stranger), "an answer from {address}:{port}");
            let tcp = ["bash", "-c", &format!("exec 3<>/dev/tcp/{address}/{port}")];
            let connected = run(&[&["ip", "netns", "exec", &far, "timeout", "2"][..], &tcp].concat());
            assert!(connected.is_err(), "{address}:{port} is open");
        }
    }

    // A proxy that is killed leaves everything shut, and an undo puts it back.
    bond.proxy.signal("KILL");
    bond.proxy.end(PATIENCE);
    assert!(client.curl(&PUBLIC.to_string(), port, 10).is_err());
    client.send(&format!("{PUBLIC}/9999"));
    assert!(!hears(&outside), "a packet leaked behind a dead proxy");
    let (program, state) = (env!("CARGO_BIN_EXE_fairpath"), bond.scratch.path().join("near").display().to_string());
    let at_router = |words: &[&str]| run(&[&["ip", "netns", "exec", &router], words].concat());
    at_router(&[program, "proxy", "--undo", "--state", &state]).unwrap();
    assert_eq!(at_router(&["nft", "list", "tables"]).unwrap().trim(), "");
    assert!(!at_router(&["ip", "rule"]).unwrap().contains("fwmark"), "the rule for packets is gone, too");
    client.send(&format!("{PUBLIC}/9999"));
    assert!(hears(&outside), "packets pass as before");
    assert_eq!(client.ask(Ask::new(PUBLIC6, echo(&far, PUBLIC6))).split(' ').next(), Some(&*PUBLIC6.to_string()));

    // Without lockdown what is not carried passes, and the rules go with the proxy.
    let words = ["proxy", "--transparent", "--for-clients", "lan0", "--dns", &dns, "--state", &state];
    let mut again = Process::start(&router, &words, &bond.scratch.path());
    again.until("it is connected", PATIENCE, |again| again.said().contains("connected to the far end as van"));
    assert_eq!(client.curl("www.example.com", port, 100_000).unwrap(), "200 100000", "{}", again.said());
    client.send(&format!("{PUBLIC}/9999"));
    assert!(hears_carried(&outside), "packets are carried without lockdown, too");
    again.signal("TERM");
    assert!(again.end(PATIENCE).success());
    assert_eq!(at_router(&["nft", "list", "tables"]).unwrap().trim(), "");
    assert!(!at_router(&["ip", "rule"]).unwrap().contains("fwmark"));
}
