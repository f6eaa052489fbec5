//! Both ends of a bond between two namespaces, and a web server behind the far one.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::MutexGuard;
use std::time::Duration;

use socket2::{Domain, Socket, Type};

use crate::kernel::inside;
use crate::network::{End, Family, Network, TWINS, run};
use crate::transfer::{Process, Scratch};
use crate::{network, say};

/// How long anything may take that does not depend on a link.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Both ends of a bond between the namespaces, and a web server behind the far one, at its loopback address.
pub(crate) struct Bond {
    pub(crate) proxy: Process,
    _serve: Process,
    pub(crate) web: SocketAddr,
    pub(crate) scratch: Scratch,
    pub(crate) network: Network,
    _place: MutexGuard<'static, ()>,
}

impl Bond {
    pub(crate) fn new() -> Option<Self> {
        Self::with(&[], Ipv4Addr::LOCALHOST)
    }

    /// One whose near end has these options, with a web server at this address of the far machine.
    pub(crate) fn with(options: &[&str], web_at: Ipv4Addr) -> Option<Self> {
        Self::prepared(options, web_at, |_| {})
    }

    /// The same, where the namespaces are prepared before anything runs in them.
    pub(crate) fn prepared(options: &[&str], web_at: Ipv4Addr, prepare: impl FnOnce(&Network)) -> Option<Self> {
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
        prepare(&network);
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

    /// Lets the device reach an address more.
    pub(crate) fn let_reach(&self, address: Ipv6Addr) {
        let authorized = self.scratch.path().join("far/authorized");
        let line = fs::read_to_string(&authorized).unwrap();
        fs::write(&authorized, line.replace("reach=public,", &format!("reach=public,[{address}],"))).unwrap();
    }

    /// Starts curl at the near end, through the port.
    pub(crate) fn curl(&self, arguments: &[&str]) -> Child {
        let proxy = ["netns", "exec", self.network.name(End::Sender), "curl", "-sS", "-x", "socks5h://127.0.0.1:1080"];
        Command::new("ip").args(proxy).args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }
}

/// The byte at this place of what the web server sends and is sent.
fn byte(at: usize) -> u8 {
    (at % 251) as u8 ^ (at / 65_521) as u8
}

pub(crate) fn bytes(length: usize) -> Vec<u8> {
    (0..length).map(byte).collect()
}

/// A socket that listens at this address of this thread's namespace.
pub(crate) fn listen(at: impl Into<IpAddr>, port: u16) -> std::io::Result<Socket> {
    let address = SocketAddr::new(at.into(), port);
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.bind(&address.into())?;
    socket.listen(16)?;
    Ok(socket)
}

/// A web server at this address of a namespace: `GET /LENGTH` has so many bytes, and `PUT` is answered by how many
/// came and whether they were right.
pub(crate) fn web(namespace: &str, at: impl Into<IpAddr>) -> SocketAddr {
    let at = at.into();
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
