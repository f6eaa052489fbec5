//! `fairpath serve` and `fairpath proxy` at the two ends of described links, and the servers behind the far one.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};

use socket2::{Domain, Socket, Type};

use crate::bond::PATIENCE;
use crate::kernel::inside;
use crate::network::run;
use crate::transfer::{Process, Scratch};

/// The port of the near end.
pub(super) const SOCKS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 1080);

/// Where the far machine's own servers are found from it: no device reaches them unless its line says so.
pub(super) const BEHIND: Ipv4Addr = Ipv4Addr::LOCALHOST;

/// A far end, to which a near end has joined.
pub(super) struct Ends {
    near: String,
    state: String,
    pub(super) serve: Process,
    pub(super) scratch: Scratch,
}

impl Ends {
    /// In these namespaces, with these options of the far end.
    pub(super) fn start(near: &str, far: &str, options: &[&str]) -> Result<Self, String> {
        let scratch = Scratch::with_tree(0);
        let [far_state, state] = ["far", "near"].map(|name| scratch.path().join(name).display().to_string());
        let words = [&["serve", "--state", &far_state], options].concat();
        let mut serve = Process::start(far, &words, &scratch.path());
        serve.until("it serves", PATIENCE, |serve| serve.said().contains("serving at"));
        let program = env!("CARGO_BIN_EXE_fairpath");
        let at = |end: &str, words: &[&str]| run(&[&["ip", "netns", "exec", end, program], words].concat());
        let invitation = at(far, &["invite", "van", "--state", &far_state])?;
        at(near, &["join", invitation.trim(), "--state", &state])?;
        let authorized = format!("{far_state}/authorized");
        let line = fs::read_to_string(&authorized).map_err(|error| error.to_string())?;
        fs::write(&authorized, line.replace("reach=public", &format!("reach=public,{BEHIND}")))
            .map_err(|error| error.to_string())?;
        Ok(Self { near: near.to_owned(), state, serve, scratch })
    }

    /// A near end with these options, once it has so many paths.
    pub(super) fn proxy(&self, options: &[&str], paths: usize) -> Process {
        let words = [&["proxy", "--state", &self.state], options].concat();
        let mut proxy = Process::start(&self.near, &words, &self.scratch.path());
        proxy.until("it is connected", PATIENCE, |proxy| {
            proxy.said().contains("connected to the far end as van")
                && proxy.said().matches("path open").count() >= paths
        });
        proxy
    }

    /// Whether the far end takes paths for those of one link now.
    pub(super) fn is_together(&self) -> bool {
        let far = self.scratch.path().join("far").display().to_string();
        let listed = run(&[env!("CARGO_BIN_EXE_fairpath"), "control", "--state", &far, "list"]);
        listed.is_ok_and(|paths| paths.contains("together as one"))
    }

    /// One over these interfaces.
    pub(super) fn proxy_over(&self, interfaces: &[&str]) -> Process {
        let options: Vec<&str> = interfaces.iter().flat_map(|interface| ["--via", interface]).collect();
        self.proxy(&options, interfaces.len())
    }
}

/// Listens at every address of a namespace. What it sends goes by CUBIC, whatever this machine prefers.
fn listener(namespace: &str) -> TcpListener {
    let socket = inside(namespace, || {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        socket.bind(&SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)).into())?;
        socket.set_tcp_congestion(b"cubic")?;
        socket.listen(4096).map(|()| socket)
    });
    socket.expect("a socket that listens").into()
}

/// A web server in a namespace: `GET /LENGTH` has so many bytes. Gives its port. Its threads end with the program.
pub(super) fn web(namespace: &str) -> u16 {
    serve_each(namespace, |tcp| {
        let mut reader = BufReader::new(tcp.try_clone()?);
        let mut first = String::new();
        reader.read_line(&mut first)?;
        let mut line = String::new();
        while reader.read_line(&mut line)? > 2 {
            line.clear();
        }
        let path = first.split(' ').nth(1).unwrap_or_default().trim_start_matches('/');
        let length: u64 = path.split('?').next().unwrap_or_default().parse().unwrap_or(0);
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
        (&tcp).write_all(head.as_bytes())?;
        let (block, mut left) = (vec![b'x'; 1 << 17], length);
        while left > 0 {
            let part = left.min(block.len() as u64);
            (&tcp).write_all(&block[..part as usize])?;
            left -= part;
        }
        tcp.shutdown(Shutdown::Write)
    })
}

/// A server in a namespace that sends back what it is sent. Gives its port.
pub(super) fn echo(namespace: &str) -> u16 {
    serve_each(namespace, |mut tcp| {
        tcp.set_nodelay(true)?;
        let mut block = [0; 4096];
        while let count @ 1.. = tcp.read(&mut block)? {
            tcp.write_all(&block[..count])?;
        }
        Ok(())
    })
}

fn serve_each(namespace: &str, answer: fn(TcpStream) -> std::io::Result<()>) -> u16 {
    let listener = listener(namespace);
    let port = listener.local_addr().expect("it is bound").port();
    std::thread::spawn(move || {
        for tcp in listener.incoming().flatten() {
            // A client that goes away is no fault here.
            let small = std::thread::Builder::new().stack_size(256 << 10);
            let _ = small.spawn(move || drop(answer(tcp)));
        }
    });
    port
}

/// A socket for datagrams at an address of a namespace.
pub(super) fn datagrams(namespace: &str, at: Ipv4Addr) -> UdpSocket {
    let socket = inside(namespace, move || {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, None)?;
        socket.bind(&SocketAddr::from((at, 0)).into()).map(|()| socket)
    });
    socket.expect("a socket for datagrams").into()
}

/// Sends back each datagram that comes at an address of a namespace. Gives where.
pub(super) fn echo_datagrams(namespace: &str, at: Ipv4Addr) -> SocketAddr {
    let socket = datagrams(namespace, at);
    let address = socket.local_addr().expect("it is bound");
    std::thread::spawn(move || {
        let mut block = [0; 2048];
        while let Ok((length, from)) = socket.recv_from(&mut block) {
            let _ = socket.send_to(&block[..length], from);
        }
    });
    address
}

/// A connection from a namespace to a server behind the far end, through a port that speaks SOCKS5.
pub(super) fn through(namespace: &str, socks: SocketAddr, to: SocketAddr) -> std::io::Result<TcpStream> {
    let opened = inside(namespace, move || {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        socket.connect_timeout(&socks.into(), PATIENCE)?;
        Ok(socket)
    });
    let mut tcp: TcpStream = opened.map_err(std::io::Error::other)?.into();
    tcp.set_nodelay(true)?;
    tcp.set_read_timeout(Some(PATIENCE))?;
    connect(&mut tcp, to)?;
    Ok(tcp)
}

/// Asks for a connection to `to`, without a password.
pub(super) fn connect(tcp: &mut TcpStream, to: SocketAddr) -> std::io::Result<()> {
    let SocketAddr::V4(to) = to else { return Err(std::io::Error::other("an address of IPv4")) };
    let [high, low] = to.port().to_be_bytes();
    tcp.write_all(&[&[5, 1, 0, 5, 1, 0, 1][..], &to.ip().octets(), &[high, low]].concat())?;
    let mut answer = [0; 2 + 10];
    tcp.read_exact(&mut answer)?;
    match answer {
        [5, 0, 5, 0, ..] => Ok(()),
        _ => Err(std::io::Error::other(format!("the answer was {answer:?}"))),
    }
}
