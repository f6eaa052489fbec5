//! Client and server of `hq-interop`, the protocol with which QUIC stacks are tried against each other: how a host
//! drives `quic-core` with sockets of the standard library and no runtime. The cases are those of multipath in the
//! QUIC interop runner.
//!
//! ```text
//! hq_interop server --listen 127.0.0.1:4433 --root /www [--cert cert.pem --key key.pem] [--retry] [--act abandon]
//! hq_interop client --case transfer --bind 127.0.0.1 --bind 127.0.0.2 --out /tmp/files https://127.0.0.1:4433/file
//! ```
//!
//! The client accepts any certificate, as interoperability runs do: it is no example of how to be safe.

#![expect(clippy::disallowed_methods, reason = "a host has a clock")]

mod act;
mod client;
mod host;
mod server;

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use fairpath_quic_core::{
    Connecting, DATAGRAM_ETHERNET, Endpoint, EndpointConfig, EngineConfig, Identity, Verify, search,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};

use act::Act;
use client::{Case, Client};
use host::{HQ, Host, Leaving, Role};
use server::Server;

/// How long the sockets are left alone where nothing came. No path waits longer than that for its turn.
const NAP: Duration = Duration::from_millis(1);

/// How long the client goes on after its verdict, so that the server hears of the end.
const LINGER: Duration = Duration::from_millis(100);

#[derive(Parser)]
enum Args {
    /// Gives out the files of a directory.
    Server {
        /// The address to listen on; one for each address that clients may come to.
        #[arg(long, required = true)]
        listen: Vec<SocketAddr>,
        /// The directory.
        #[arg(long)]
        root: PathBuf,
        /// The certificate, followed by those that vouch for it, as PEM; one is made where none is named.
        #[arg(long, requires = "key")]
        cert: Option<PathBuf>,
        /// Its key, PKCS #8 as PEM.
        #[arg(long, requires = "cert")]
        key: Option<PathBuf>,
        /// Ask each client to show that it receives at its address, before anything else.
        #[arg(long)]
        retry: bool,
        /// An act on the first path of each connection, once two have carried data.
        #[arg(long)]
        act: Option<Act>,
    },
    /// Fetches files.
    Client {
        /// What is tried meanwhile.
        #[arg(long)]
        case: Case,
        /// An address here that a path begins at; the handshake leaves from the first.
        #[arg(long, required = true)]
        bind: Vec<IpAddr>,
        /// Where the files go.
        #[arg(long)]
        out: PathBuf,
        /// The files, all of one server: https://HOST:PORT/NAME.
        #[arg(required = true)]
        urls: Vec<String>,
    },
}

fn main() -> ExitCode {
    let result = match Args::parse() {
        Args::Server { listen, root, cert, key, retry, act } => serve(&listen, (root, act), cert.zip(key), retry),
        Args::Client { case, bind, out, urls } => fetch(case, &bind, &out, &urls),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(
    listen: &[SocketAddr],
    (root, act): (PathBuf, Option<Act>),
    pem: Option<(PathBuf, PathBuf)>,
    retry: bool,
) -> Result<(), String> {
    let identity = match pem {
        Some((cert, key)) => read_identity(&cert, &key)?,
        None => Identity::generate().map_err(|error| format!("no certificate: {error}"))?,
    };
    let sockets = Sockets::bind(listen)?;
    let mut endpoint = endpoint(Some(identity))?;
    endpoint.set_interfaces(listen.iter().map(|at| (at.ip().to_string(), at.ip())).collect());
    let find = move |name: &str| {
        let file = std::fs::File::open(server::under(&root, name)?).ok()?;
        file.metadata().ok()?.is_file().then(|| Box::new(file) as server::File)
    };
    let mut host = Host::new(endpoint, Server::new(find).acting(act));
    host.asks_for_addresses = retry;
    sockets.run(&mut host, |server| {
        server.verdicts.drain(..).for_each(|line| println!("{line}"));
        false
    })
}

fn read_identity(cert: &Path, key: &Path) -> Result<Identity, String> {
    let bad = |path: &Path| format!("{}: no PEM of the kind that is needed", path.display());
    let chain = CertificateDer::pem_file_iter(cert).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let mut chain = chain.map_err(|error| format!("{}: {error}", cert.display()))?.into_iter();
    let key = PrivatePkcs8KeyDer::from_pem_file(key).map_err(|error| format!("{}: {error}", key.display()))?;
    let certificate = chain.next().ok_or_else(|| bad(cert))?;
    Ok(Identity::of_chain(certificate, chain.collect(), key))
}

fn fetch(case: Case, bind: &[IpAddr], out: &Path, urls: &[String]) -> Result<(), String> {
    let (remote, names) = parse(urls)?;
    let locals: Vec<_> = bind.iter().map(|address| SocketAddr::new(*address, 0)).collect();
    let sockets = Sockets::bind(&locals)?;
    let client = Client::new(case, bind, remote, names);
    let mut endpoint = endpoint(None)?;
    endpoint.set_interfaces(client.interfaces().into());
    let connecting = Connecting {
        local: bind[0],
        remote,
        verify: Verify::AnyCertificate,
        admission_key: None,
        engine: &EngineConfig::live(),
        datagrams: search([], DATAGRAM_ETHERNET),
    };
    endpoint.connect(connecting, Instant::now()).map_err(|error| error.to_string())?;
    let mut host = Host::new(endpoint, client);
    let mut over = None;
    sockets.run(&mut host, |client| {
        client.verdict.is_some() && over.get_or_insert_with(Instant::now).elapsed() > LINGER
    })?;
    for remark in &host.role.remarks {
        eprintln!("{remark}");
    }
    for path in &host.role.paths {
        println!("{}: {}, {} received", path.interface, path.state, path.received);
    }
    for (name, data) in &host.role.files {
        let path = server::under(out, name).ok_or_else(|| format!("{name} leads out of {}", out.display()))?;
        let folder = path.parent().unwrap_or(out);
        let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, data));
        written.map_err(|error| format!("{}: {error}", path.display()))?;
    }
    host.role.verdict.unwrap_or(Ok(()))
}

fn endpoint(identity: Option<Identity>) -> Result<Endpoint, String> {
    let config = EndpointConfig { datagram_max: DATAGRAM_ETHERNET, identity, application: HQ };
    Endpoint::new(config).map_err(|error| format!("TLS: {error}"))
}

/// The server of all the addresses, and the names of the files.
fn parse(urls: &[String]) -> Result<(SocketAddr, Vec<String>), String> {
    let (mut host, mut names) = (None, Vec::new());
    for url in urls {
        let bad = || format!("'{url}' is not of the form https://HOST:PORT/NAME");
        let rest = url.strip_prefix("https://").ok_or_else(bad)?;
        let (of, _) = rest.split_once('/').ok_or_else(bad)?;
        if *host.get_or_insert(of) != of {
            return Err(format!("'{url}' is of another server than {}", urls[0]));
        }
        names.push(rest[of.len()..].to_owned());
    }
    let host = host.unwrap_or_default();
    let mut found = host.to_socket_addrs().map_err(|error| format!("{host}: {error}"))?;
    Ok((found.next().ok_or_else(|| format!("{host} has no address"))?, names))
}

/// A socket for each address here.
struct Sockets(Vec<(IpAddr, UdpSocket)>);

impl Sockets {
    fn bind(addresses: &[SocketAddr]) -> Result<Self, String> {
        let bind = |address: &SocketAddr| {
            let socket = UdpSocket::bind(address).map_err(|error| format!("cannot bind to {address}: {error}"))?;
            socket.set_nonblocking(true).map_err(|error| error.to_string())?;
            Ok((address.ip(), socket))
        };
        addresses.iter().map(bind).collect::<Result<_, _>>().map(Self)
    }

    fn send(&self, leaving: &Leaving) {
        let from = leaving.from.map(|ip| ip.to_canonical());
        let of = self.0.iter().find(|(local, _)| from.is_none_or(|from| from == *local));
        // A datagram that cannot be sent counts as lost, and the stack retransmits it.
        let _ = of.map(|(_, socket)| socket.send_to(&leaving.contents, leaving.to));
    }

    /// Drives the host until it is done.
    fn run<R: Role>(&self, host: &mut Host<R>, mut is_done: impl FnMut(&mut R) -> bool) -> Result<(), String> {
        let mut buffer = vec![0; usize::from(u16::MAX)];
        while !is_done(&mut host.role) {
            let mut is_idle = true;
            for (local, socket) in &self.0 {
                match socket.recv_from(&mut buffer) {
                    Ok((length, from)) => {
                        is_idle = false;
                        if let Some(answer) = host.receive(from, *local, &buffer[..length], Instant::now()) {
                            self.send(&answer);
                        }
                    }
                    // An earlier datagram found nobody at its port; the stack notices by itself.
                    Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionRefused) => {}
                    Err(error) => return Err(format!("{local}: {error}")),
                }
            }
            host.drive(Instant::now(), &mut |leaving| self.send(&leaving));
            if is_idle {
                let now = Instant::now();
                let due = host.next_timeout(now).map_or(NAP, |at| at.saturating_duration_since(now));
                std::thread::sleep(due.min(NAP));
            }
        }
        Ok(())
    }
}
