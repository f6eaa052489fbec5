//! `fairpath proxy --transparent`: UDP of the machine's own programs is carried, too, whatever they know of it.
//!
//! ```text
//!   programs, proxy ══ one, two ══ far end (serve), hosts at a public address
//! ```

use std::net::IpAddr;
use std::process::Stdio;
use std::time::Duration;

use crate::bond::{Bond, PATIENCE, web};
use crate::network::{End, TWINS, run};
use crate::packets::{Ask, PUBLIC, PUBLIC6, add_public6, ear, echo, hears, hears_carried, resolver};
use crate::say;
use crate::transfer::Process;

/// An address that the far end gets while it is connected to.
const LATER: &str = "198.51.100.9";

/// A program that sends packets as QUIC does: over a connected socket, ten at once of the size that a link takes (GSO). It
/// prints how many it sent, how many came back, how many of these came twice or were others, and the longest time in
/// milliseconds without any.
const STREAM: &str = "
import socket, sys, threading, time
host, port, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
LENGTH, ONCE = 1200, 10
sending = socket.socket(socket.AF_INET6 if ':' in host else socket.AF_INET, socket.SOCK_DGRAM)
sending.connect((host, port))
sending.setsockopt(socket.SOL_UDP, 103, LENGTH)
sending.settimeout(1)
came, wrong, longest, is_over = set(), 0, 0, False
def receive():
    global wrong, longest
    last = time.monotonic()
    while True:
        try:
            packet = sending.recv(1 << 16)
        except TimeoutError:
            if is_over:
                return
            continue
        longest, last = max(longest, time.monotonic() - last), time.monotonic()
        number = int.from_bytes(packet[:8], 'big')
        wrong += len(packet) != LENGTH or number in came
        came.add(number)
thread = threading.Thread(target=receive)
thread.start()
begun, sent = time.monotonic(), 0
while time.monotonic() - begun < seconds:
    packets = b''.join(number.to_bytes(8, 'big') + bytes(LENGTH - 8) for number in range(sent, sent + ONCE))
    sending.send(packets)
    sent += ONCE
    time.sleep(0.03)
is_over = True
thread.join()
print(sent, len(came), wrong, int(longest * 1000))
";

#[test]
fn udp_of_a_machines_own_programs_is_carried_and_nothing_of_it_leaks() {
    if run(&["nft", "--version"]).is_err() {
        return say("a test of a machine's own packets: skipped, there is no `nft` here");
    }
    let dns = format!("{PUBLIC}:53");
    let [one, _] = TWINS;
    let Some(mut bond) = Bond::prepared(&["--transparent", "--lockdown", "--dns", &dns], PUBLIC, |network| {
        resolver(network.name(End::Receiver));
        network.ip(End::Sender, &format!("route add {PUBLIC}/32 via 10.77.1.2 dev {}", one.name));
        add_public6(network);
    }) else {
        return;
    };
    let (near, far) = (bond.network.name(End::Sender).to_owned(), bond.network.name(End::Receiver).to_owned());
    let here = |words: &[&str]| run(&[&["ip", "netns", "exec", &near], words].concat());
    bond.let_reach(PUBLIC6);
    let url6 = format!("http://[{PUBLIC6}]:{}/1000", web(&far, PUBLIC6).port());
    let deadline = std::time::Instant::now() + PATIENCE;
    while here(&["curl", "-sS", "--max-time", "5", "-o", "/dev/null", "-w", "%{http_code}", &url6]) != Ok("200".into())
    {
        assert!(std::time::Instant::now() < deadline, "no download over IPv6: {}", bond.proxy.said());
    }

    // Each packet is answered from where it was sent to, large ones too, and where both ends have one port.
    let public: [IpAddr; 2] = [PUBLIC.into(), PUBLIC6.into()];
    for host in public {
        let port = echo(&far, host);
        for (length, own) in [(5, 0), (1_452, 0), (60_000, 0), (0, 0), (700, port)] {
            let ask = Ask { length, own, ..Ask::new(host, port) };
            let answered = ask.in_namespace(&near);
            assert_eq!(answered, format!("{host} {port} {length}\n"), "{own}: {}", bond.proxy.said());
        }
    }

    // A stream of packets goes on while each link fails in turn.
    let port = echo(&far, PUBLIC);
    let mut stream = bond.network.command(End::Sender, "python3");
    let stream = stream.args(["-c", STREAM, &PUBLIC.to_string(), &port.to_string(), "8"]);
    let stream = stream.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    for link in TWINS {
        std::thread::sleep(Duration::from_secs(1));
        bond.network.swallow(&link);
        std::thread::sleep(Duration::from_secs(2));
        bond.network.limit(&link);
    }
    let done = stream.wait_with_output().unwrap();
    let printed = String::from_utf8_lossy(&done.stdout).into_owned();
    let counts: Vec<u64> = printed.split_whitespace().map(|count| count.parse().unwrap()).collect();
    let [sent, came, wrong, longest] = counts[..] else {
        panic!("{printed}{}{}", String::from_utf8_lossy(&done.stderr), bond.proxy.said())
    };
    say(&format!(
        "packets of a program while each link fails for 2 s: {came} of {sent} came back, {longest} ms without"
    ));
    assert_eq!(wrong, 0, "each comes once, as it was sent: {printed}");
    // Without the other link it would be two seconds; busy machines need a part of them to find out.
    assert!(longest < 1_500 && came * 10 >= sent * 8, "{printed}");

    // The far end gets another interface with a public address, and a path to it is not kept back.
    bond.network.ip(End::Sender, &format!("link add three type veth peer name three netns {far}"));
    // No other address answers there.
    let strict = "echo 1 > /proc/sys/net/ipv4/conf/three/arp_ignore";
    run(&["ip", "netns", "exec", &far, "sh", "-c", strict]).unwrap();
    for (end, address, way) in [(End::Receiver, LATER, "10.78.3.0/24"), (End::Sender, "10.78.3.1", LATER)] {
        bond.network.ip(end, &format!("addr add {address}/24 dev three"));
        bond.network.ip(end, "link set three up");
        bond.network.ip(end, &format!("route add {way} dev three"));
    }
    bond.proxy.until("a path to the new address", PATIENCE, |proxy| proxy.said().contains("three: path open"));
    assert!(bond.proxy.said().contains(&format!("the far end is reached at {LATER}:")), "{}", bond.proxy.said());

    // Nothing else comes through, but to private networks: names, and programs that choose an interface by themselves.
    let (outside, private) = (ear(&far, &format!("{PUBLIC}:9999")), ear(&far, "10.77.1.2:9999"));
    let send = |to: &str| here(&["bash", "-c", &format!("echo leak > /dev/udp/{to}")]);
    let _ = send(&format!("{PUBLIC}/9999"));
    assert!(hears_carried(&outside), "a packet leaked, or was not carried");
    let _ = send("10.77.1.2/9999");
    assert!(hears(&private), "private networks stay as they were");
    for port in [53, 853] {
        let names = ear(&far, &format!("10.77.1.2:{port}"));
        let _ = send(&format!("10.77.1.2/{port}"));
        assert!(!hears(&names), "a question for a name leaked to port {port}");
    }
    let chosen = |host: IpAddr, port: u16| {
        let ask = Ask { device: one.name, ..Ask::new(host, port) };
        ask.in_namespace(&near)
    };
    for host in public {
        assert_eq!(chosen(host, echo(&far, host)), "", "a packet leaked over the interface that its program chose");
    }

    // A proxy that is killed leaves everything shut: nothing comes to another program's port either.
    bond.proxy.signal("KILL");
    bond.proxy.end(PATIENCE);
    let other = ear(&near, "0.0.0.0:9999");
    let _ = send(&format!("{PUBLIC}/9999"));
    assert!(!hears(&outside), "a packet leaked behind a dead proxy");
    assert!(!hears(&other), "a packet came to another program");
    let (program, state) = (env!("CARGO_BIN_EXE_fairpath"), bond.scratch.path().join("near").display().to_string());
    here(&[program, "proxy", "--undo", "--state", &state]).unwrap();
    let assert_put_back = || {
        assert_eq!(here(&["nft", "list", "tables"]).unwrap().trim(), "");
        for family in ["-4", "-6"] {
            assert!(!here(&["ip", family, "rule"]).unwrap().contains("fwmark"), "the rule for packets is gone, too");
            assert_eq!(here(&["ip", family, "route", "show", "table", "26209"]).unwrap_or_default().trim(), "");
        }
    };
    assert_put_back();
    let _ = send(&format!("{PUBLIC}/9999"));
    assert!(hears(&outside), "packets leave as before");

    // Without lockdown, programs that choose an interface go their way, and so do answers to strangers.
    let words = ["proxy", "--transparent", "--dns", &dns, "--state", &state];
    let mut again = Process::start(&near, &words, &bond.scratch.path());
    again.until("it is connected", PATIENCE, |again| again.said().contains("connected to the far end as van"));
    assert!(again.said().contains("all TCP, UDP and questions for names"), "{}", again.said());
    let _ = send(&format!("{PUBLIC}/9999"));
    assert!(hears_carried(&outside), "packets are carried without lockdown, too");
    for host in public {
        assert!(!chosen(host, echo(&far, host)).is_empty(), "a program that chose its interface is kept back");
    }
    let (service, stranger) = (echo(&near, [10, 77, 1, 1]), ear(&far, &format!("{PUBLIC}:0")));
    stranger.send_to(b"hello", ("10.77.1.1", service)).unwrap();
    let answered = stranger.recv_from(&mut [0; 64]).map(|(_, from)| from.to_string());
    assert_eq!(answered.unwrap(), format!("10.77.1.1:{service}"), "{}", again.said());
    again.signal("TERM");
    assert!(again.end(PATIENCE).success());
    assert_put_back();
}
