//! Two paths of a noq connection under Fairpath's congestion control: `cargo run -p fairpath-noq --example two_paths`.
//!
//! Both ends are in this process, and the server has two loopback addresses.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use fairpath_noq::Coupled;
use noq::{ClientConfig, Connection, Endpoint, PathError, PathStatus, ServerConfig, TransportConfig};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};

/// The amount that the client sends, in bytes.
const TOTAL: usize = 16 << 20;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let key = rcgen::KeyPair::generate()?;
    let certificate = rcgen::CertificateParams::new(["localhost".to_owned()])?.self_signed(&key)?;
    let server = server(certificate.der().clone(), PrivatePkcs8KeyDer::from(key.serialize_der()))?;
    let port = server.local_addr()?.port();
    let receiving = tokio::spawn(async move {
        let connection = server.accept().await.context("the server is open")?.await?;
        let mut stream = connection.accept_uni().await?;
        let received = stream.read_to_end(TOTAL).await?;
        connection.close(0u8.into(), b"");
        server.wait_idle().await;
        anyhow::Ok(received.len())
    });

    // One for this connection.
    let coupled = Coupled::new();
    let mut transport = transport();
    coupled.install(&mut transport);
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate.der().clone())?;
    let mut client = ClientConfig::with_root_certificates(Arc::new(roots))?;
    client.transport_config(Arc::new(transport));
    let endpoint = Endpoint::client("127.0.0.1:0".parse()?)?;
    let connection = endpoint.connect_with(client, SocketAddr::from(([127, 0, 0, 1], port)), "localhost")?.await?;
    let second = SocketAddr::from(([127, 0, 0, 2], port));
    open(&connection, second).await.context("the second path")?;

    let mut stream = connection.open_uni().await?;
    stream.write_all(&vec![0; TOTAL]).await?;
    stream.finish()?;
    stream.stopped().await?;
    for path in coupled.paths() {
        println!("path {} in group {}: {} delivered", path.path.get(), path.group.get(), path.delivered);
    }
    println!("{} bytes came", receiving.await??);
    Ok(())
}

/// Opens a path, once the peer has said by which connection IDs it knows one. It does so right after the handshake.
async fn open(connection: &Connection, remote: SocketAddr) -> anyhow::Result<()> {
    for _ in 0..500 {
        match connection.open_path(remote, PathStatus::Available).await {
            Err(PathError::RemoteCidsExhausted) => tokio::time::sleep(Duration::from_millis(10)).await,
            opened => return Ok(opened.map(drop)?),
        }
    }
    Err(PathError::RemoteCidsExhausted.into())
}

fn transport() -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport.max_concurrent_multipath_paths(4);
    transport
}

fn server(certificate: CertificateDer<'static>, key: PrivatePkcs8KeyDer<'static>) -> anyhow::Result<Endpoint> {
    let mut config = ServerConfig::with_single_cert(vec![certificate], key.into())?;
    config.transport_config(Arc::new(transport()));
    Ok(Endpoint::server(config, "0.0.0.0:0".parse()?)?)
}
