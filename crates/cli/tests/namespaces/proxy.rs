//! `fairpath serve` and `fairpath proxy` with curl: over two links of which one fails meanwhile, and by rules of the system.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::MutexGuard;
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};

use crate::kernel::inside;
use crate::network::{End, Family, Network, TWINS, run};
use crate::transfer::{Process, Scratch};
use crate::{mbps, network, say};

/// How long anything may take that does not depend on a link.
const PATIENCE: Duration = Duration::from_secs(30);

/// Both ends of a bond between the namespaces, and a web server behind the far one, at its loopback address.
struct Bond {
    proxy: Process,
    _serve: Process,
    web: SocketAddr,
    scratch: Scratch,
    network: Network,
    _place: MutexGuard<'static, ()>,
}

impl Bond {
    fn new() -> Option<Self> {
        Self::with(&[], Ipv4Addr::LOCALHOST)
    }

    /// One whose near end has these options, with a web server at this address of the far machine.
    fn with(options: &[&str], web_at: Ipv4Addr) -> Option<Self> {
        if run(&["curl", "--version"]).is_err() {
            say("a test with curl: skipped, there is no `curl` here");
            return None;
        }
        let (place, network) = network(Family::V4, TWINS)?;
        let scratch = Scratch::with_tree(0);
        for end in [End::Sender, End::Receiver] {
            network.ip(end, "link set lo up");
        }
        network.ip(End::Receiver, &format!("addr add {web_at}/32 dev lo"));
        let [far, near] = ["far", "near"].map(|name| scratch.path().join(name).display().to_string());
        let mut serve = Process::start(network.name(End::Receiver), &["serve", "--state", &far], &scratch.path());
        serve.until("it serves", PATIENCE, |serve| serve.said().contains("serving at"));
        let program = env!("CARGO_BIN_EXE_fairpath");
        let at = |end, words: &[&str]| run(&[&["ip", "netns", "exec", network.name(end), program], words].concat());
        let invitation = at(End::Receiver, &["invite", "van", "--state", &far]).unwrap();
        at(End::Sender, &["join", invitation.trim(), "--state", &near]).unwrap();
        // The web server is on the far machine itself, which no device reaches unless its line says so.
        let authorized = format!("{far}/authorized");
        let line = fs::read_to_string(&authorized).unwrap();
        fs::write(&authorized, line.replace("reach=public", &format!("reach=public,{web_at}"))).unwrap();
        let mut proxy = Process::start(
            network.name(End::Sender),
            &[&["proxy", "--state", &near], options].concat(),
            &scratch.path(),
        );
        proxy.until("it is connected", PATIENCE, |proxy| {
            proxy.said().contains("connected to the far end as van") && proxy.said().matches("path open").count() >= 2
        });
        let web = web(network.name(End::Receiver), web_at);
        Some(Self { proxy, _serve: serve, web, scratch, network, _place: place })
    }

    /// Starts curl at the near end, through the port.
    fn curl(&self, arguments: &[&str]) -> Child {
        let proxy = ["netns", "exec", self.network.name(End::Sender), "curl", "-sS", "-x", "socks5h://127.0.0.1:1080"];
        Command::new("ip").args(proxy).args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }
}

/// The byte at this place of what the web server sends and is sent.
fn byte(at: usize) -> u8 {
    (at % 251) as u8 ^ (at / 65_521) as u8
}

fn bytes(length: usize) -> Vec<u8> {
    (0..length).map(byte).collect()
}

/// A socket that listens at this address of this thread's namespace.
pub(crate) fn listen(at: Ipv4Addr, port: u16) -> std::io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.bind(&SocketAddr::from((at, port)).into())?;
    socket.listen(16)?;
    Ok(socket)
}

/// A web server at this address of a namespace: `GET /LENGTH` has so many bytes, and `PUT` is answered by how many
/// came and whether they were right.
fn web(namespace: &str, at: Ipv4Addr) -> SocketAddr {
    let listener = TcpListener::from(inside(namespace, move || listen(at, 0)).unwrap());
    let address = listener.local_addr().unwrap();
    // The thread ends with the test program.
    std::thread::spawn(move || {
        for tcp in listener.incoming().flatten() {
            std::thread::spawn(move || drop(answer(tcp)));
        }
    });
    address
}

fn answer(tcp: TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(tcp.try_clone()?);
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first)?;
    let mut line = String::new();
    while reader.read_line(&mut line)? > 2 {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        line.clear();
    }
    let body = match first.strip_prefix("GET /").and_then(|rest| rest.split(' ').next()?.parse().ok()) {
        Some(length) => bytes(length),
        None => {
            let mut came = vec![0; length];
            reader.read_exact(&mut came)?;
            format!("{length} {}", came == bytes(length)).into_bytes()
        }
    };
    let mut tcp = tcp;
    tcp.write_all(
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len()).as_bytes(),
    )?;
    tcp.write_all(&body)
}

#[test]
fn curl_downloads_and_uploads_over_both_links_while_one_goes_down_and_comes_back() {
    const DOWN: usize = 12_000_000;
    const UP: usize = 4_000_000;
    let Some(mut bond) = Bond::new() else { return };
    let [one, two] = TWINS;
    let file = bond.scratch.path().join("file");
    let web = bond.web;
    let begun = Instant::now();
    let mut curl = bond.curl(&["-o", &file.display().to_string(), &format!("http://{web}/{DOWN}")]);
    // A quarter is there: the windows have grown.
    while fs::metadata(&file).map_or(0, |file| file.len()) < DOWN as u64 / 4 {
        assert!(begun.elapsed() < PATIENCE && curl.try_wait().unwrap().is_none(), "{}", bond.proxy.said());
        std::thread::sleep(Duration::from_millis(20));
    }
    bond.network.set_link(&two, End::Sender, "down");
    std::thread::sleep(Duration::from_secs(1));
    bond.network.set_link(&two, End::Sender, "up");
    let done = curl.wait_with_output().unwrap();
    let elapsed = begun.elapsed();
    assert!(done.status.success(), "{}\n{}", String::from_utf8_lossy(&done.stderr), bond.proxy.said());
    assert!(fs::read(&file).unwrap() == bytes(DOWN), "another file than the one that was sent");
    let goodput = mbps(DOWN as u64, elapsed);
    say(&format!("curl over two links of {} Mbit/s, one cut for a second: {goodput:.1} Mbit/s", one.mbit));
    assert!(goodput > one.mbit as f64, "{goodput:.1} Mbit/s is less than one link alone carries");

    fs::write(&file, bytes(UP)).unwrap();
    let begun = Instant::now();
    let done = bond.curl(&["-T", &file.display().to_string(), &format!("http://{web}/")]).wait_with_output().unwrap();
    let answered = String::from_utf8_lossy(&done.stdout).into_owned();
    assert_eq!(answered, format!("{UP} true"), "{}", String::from_utf8_lossy(&done.stderr));
    say(&format!("an upload meanwhile back on both: {:.1} Mbit/s", mbps(UP as u64, begun.elapsed())));
    bond.proxy.signal("TERM");
    assert!(bond.proxy.end(PATIENCE).success());
}

#[test]
fn a_backup_is_spared_by_downloads_until_the_other_link_fails() {
    const DOWN: usize = 3_000_000;
    let [one, two] = TWINS;
    let backup = format!("{}:backup", two.name);
    let Some(bond) = Bond::with(&["--path", &backup], Ipv4Addr::LOCALHOST) else { return };
    let url = format!("http://{}/{DOWN}", bond.web);
    let download = || {
        let before = bond.network.carried_to(&two, End::Sender);
        let done = bond.curl(&["-o", "/dev/null", "--max-time", "20", &url]).wait_with_output().unwrap();
        assert!(done.status.success(), "{}\n{}", String::from_utf8_lossy(&done.stderr), bond.proxy.said());
        bond.network.carried_to(&two, End::Sender) - before
    };
    let spared = download();
    assert!(spared < DOWN as u64 / 20, "{spared} bytes over the backup");
    // Both ends say so.
    for (end, state) in [(End::Sender, "near"), (End::Receiver, "far")] {
        let state = bond.scratch.path().join(state).display().to_string();
        let top = [env!("CARGO_BIN_EXE_fairpath"), "top", "--once", "--state", &state];
        let shown = run(&[&["ip", "netns", "exec", bond.network.name(end)][..], &top].concat()).unwrap();
        assert_eq!(shown.matches("a backup: used while no other works").count(), 1, "{shown}");
    }
    bond.network.set_link(&one, End::Sender, "down");
    let needed = download();
    assert!(needed >= DOWN as u64, "{needed} bytes over the only link");
}

/// A public address, which the far machine has and to which the near one has a route.
const PUBLIC: Ipv4Addr = Ipv4Addr::new(11, 0, 0, 1);

#[test]
fn every_program_is_carried_by_rules_which_are_put_back_after_a_kill_too() {
    if run(&["nft", "--version"]).is_err() {
        say("a test of rules: skipped, there is no `nft` here");
        return;
    }
    let Some(mut bond) = Bond::with(&["--transparent", "--lockdown"], PUBLIC) else { return };
    bond.network.ip(End::Sender, &format!("route add {PUBLIC}/32 dev {}", TWINS[0].name));
    let near = bond.network.name(End::Sender).to_owned();
    let inside = |words: &[&str]| run(&[&["ip", "netns", "exec", near.as_str()], words].concat());
    let url = format!("http://{}/1000000", bond.web);
    let plain = ["curl", "-sS", "--max-time", "10", "-o", "/dev/null", "-w", "%{http_code} %{size_download}", &url];
    assert_eq!(inside(&plain).unwrap(), "200 1000000");
    // Other packets do not leave: neither UDP nor questions for names that go to the own network.
    let send = |to: &str| inside(&["bash", "-c", &format!("echo x > /dev/udp/{to}")]);
    assert!(send(&format!("{PUBLIC}/9999")).is_err());
    assert!(send("10.77.1.2/853").is_err() && send("10.77.1.2/9999").is_ok());
    // A proxy that is killed leaves everything shut.
    bond.proxy.signal("KILL");
    bond.proxy.end(PATIENCE);
    assert!(inside(&plain).is_err() && inside(&["nft", "list", "tables"]).unwrap().contains("fairpath_proxy"));
    let (program, state) = (env!("CARGO_BIN_EXE_fairpath"), bond.scratch.path().join("near").display().to_string());
    inside(&[program, "proxy", "--undo", "--state", &state]).unwrap();
    assert_eq!(inside(&["nft", "list", "tables"]).unwrap().trim(), "");
    // One that is asked to end puts them back by itself.
    let mut again = Process::start(&near, &["proxy", "--transparent", "--state", &state], &bond.scratch.path());
    again.until("the rules are there", PATIENCE, |_| {
        inside(&["nft", "list", "tables"]).unwrap().contains("fairpath_proxy")
    });
    again.signal("TERM");
    assert!(again.end(PATIENCE).success());
    assert_eq!(inside(&["nft", "list", "tables"]).unwrap().trim(), "");
}
