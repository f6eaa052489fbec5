//! Other proxies beside ours over one link in one run: a download alone, and an echo beside a bulk download. What is not
//! installed is left out, and that is said.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::json;
use socket2::{Domain, Socket, Type};

use super::curl::{Downloads, Way, download};
use super::echo::echoes;
use super::ends::{self, BEHIND, Ends, SOCKS, web};
use super::{Form, Rows, link};
use crate::described::{Described, INTERFACES, far_address};
use crate::kernel::inside;
use crate::network::run;
use crate::say;

/// Rate in Mbit/s, and delay one way in ms.
const LINK: (u64, u64) = (80, 30);

/// Where a peer's near end speaks SOCKS5.
const PEER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 1081);

/// Ends of a peer in two namespaces, until they are dropped.
struct Peer(Vec<Child>);

impl Drop for Peer {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A program in a namespace.
fn start(namespace: &str, words: &[&str]) -> Child {
    let mut command = Command::new("ip");
    command
        .args(["netns", "exec", namespace])
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.spawn().expect("ip is here")
}

/// The programs of a peer, and how it is started in the near and the far namespace, with a folder for its files.
type Known = (&'static str, &'static [&'static str], fn(&str, &str, &Path) -> Result<Peer, String>);

const PEERS: &[Known] = &[
    ("shadowsocks-rust over TCP", &["ssserver", "sslocal"], shadowsocks),
    ("sing-box, Hysteria 2", &["sing-box"], hysteria),
];

fn shadowsocks(near: &str, far: &str, _: &Path) -> Result<Peer, String> {
    let server = format!("{}:8388", far_address(0));
    let secret = ["-k", "a password for a measurement", "-m", "aes-128-gcm"];
    let far = start(far, &[&["ssserver", "-s", &server][..], &secret].concat());
    let at = PEER.to_string();
    let near = start(near, &[&["sslocal", "-b", &at, "-s", &server][..], &secret].concat());
    Ok(Peer(vec![far, near]))
}

/// By its congestion control for networks whose rates nobody tells it.
fn hysteria(near: &str, far: &str, folder: &Path) -> Result<Peer, String> {
    let pair = run(&["sing-box", "generate", "tls-keypair", "fairpath.test"])?;
    let certificate = pair.find("-----BEGIN CERTIFICATE").ok_or("sing-box made no certificate")?;
    let keep = |name: &str, text: &str| {
        let file = folder.join(name);
        fs::write(&file, text).map(|()| file.display().to_string()).map_err(|error| error.to_string())
    };
    let (key, certificate) = (keep("key.pem", &pair[..certificate])?, keep("certificate.pem", &pair[certificate..])?);
    let (password, port) = ("a password for a measurement", 8443);
    let server = json!({
        "inbounds": [{
            "type": "hysteria2", "listen": "0.0.0.0", "listen_port": port, "users": [{ "password": password }],
            "tls": { "enabled": true, "key_path": key, "certificate_path": certificate },
        }],
        "outbounds": [{ "type": "direct" }],
    });
    let client = json!({
        "inbounds": [{ "type": "socks", "listen": PEER.ip(), "listen_port": PEER.port() }],
        "outbounds": [{
            "type": "hysteria2", "server": far_address(0), "server_port": port, "password": password,
            "tls": { "enabled": true, "server_name": "fairpath.test", "certificate_path": certificate },
        }],
    });
    let [server, client] =
        [("server.json", server), ("client.json", client)].map(|(name, all)| keep(name, &all.to_string()));
    let far = start(far, &["sing-box", "run", "-c", &server?]);
    Ok(Peer(vec![far, start(near, &["sing-box", "run", "-c", &client?])]))
}

pub(super) fn rows(form: Form) -> Result<Rows, String> {
    let mut rows = Rows::default();
    for seed in form.seeds() {
        let described = Described::new(seed, &[link(LINK.0, LINK.1)], &[0])?;
        let Described { near, far, .. } = &described;
        let (web, echo) = (web(far), ends::echo(far));
        let measured = Measured { near, web: (BEHIND, web).into(), echo: (BEHIND, echo).into(), form };
        let bytes = LINK.0 * 125_000 * form.choose(2, 10);
        let plain = download(near, Way::Direct(INTERFACES[0]), (far_address(0), web).into(), 1, bytes)?;
        rows.add("without a proxy: one download", "Mbit/s", None, plain);
        let ends = Ends::start(near, far, &[])?;
        let proxy = ends.proxy_over(&INTERFACES[..1]);
        measured.through(&mut rows, "fairpath", SOCKS, bytes)?;
        drop(proxy);
        let preferred = run(&["ip", "netns", "exec", far, "cat", "/proc/sys/net/ipv4/tcp_congestion_control"])?;
        for (name, programs, begin) in PEERS {
            // A peer over TCP goes by the congestion control that this machine prefers: an echo depends on it.
            let name = &name.replace("TCP", &format!("TCP by {}", preferred.trim()));
            let missing = programs.iter().find(|one| run(&["sh", "-c", &format!("command -v {one}")]).is_err());
            if let Some(program) = missing {
                say(&format!("{name}: left out, there is no `{program}` here"));
                continue;
            }
            let _peer = begin(near, far, &ends.scratch.path())?;
            if let Err(reason) = wait_for(near, PEER) {
                say(&format!("{name}: left out, its near end does not listen: {reason}"));
                continue;
            }
            measured.through(&mut rows, name, PEER, bytes)?;
        }
        described.assert_all_fitted();
    }
    Ok(rows)
}

/// The same for each of them.
struct Measured<'a> {
    near: &'a str,
    web: SocketAddr,
    echo: SocketAddr,
    form: Form,
}

impl Measured<'_> {
    fn through(&self, rows: &mut Rows, name: &str, socks: SocketAddr, bytes: u64) -> Result<(), String> {
        let Self { near, web, echo, form } = *self;
        let rate = download(near, Way::Socks(socks), web, 1, bytes).map_err(|error| format!("{name}: {error}"))?;
        rows.add(format!("{name}: one download"), "Mbit/s", None, rate);
        let bulk = Downloads::start(near, Way::Socks(socks), web, 1);
        std::thread::sleep(Duration::from_secs(3));
        let echoes = echoes(near, socks, echo, Duration::from_secs(form.choose(4, 60)))?;
        drop(bulk);
        rows.add(format!("{name}: echo beside bulk, p50"), "ms", None, echoes.at(50));
        rows.add(format!("{name}: echo beside bulk, p99"), "ms", None, echoes.at(99));
        Ok(())
    }
}

/// How long a peer may take to listen.
const LISTENS: Duration = Duration::from_secs(10);

/// Waits until something accepts connections there.
fn wait_for(namespace: &str, port: SocketAddr) -> Result<(), String> {
    let tried = inside(namespace, move || {
        let begun = std::time::Instant::now();
        loop {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
            match socket.connect_timeout(&port.into(), Duration::from_secs(1)) {
                Err(error) if begun.elapsed() > LISTENS => return Err(error),
                Err(_) => std::thread::sleep(Duration::from_millis(50)),
                Ok(()) => return Ok(()),
            }
        }
    });
    tried.map_err(|error| format!("{port}: {error}"))
}
