//! The same transfer by noq as it is: its own controllers, default windows, one stream.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use noq::congestion::NewRenoConfig;
use noq::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use noq::{
    ClientConfig, Endpoint, EndpointConfig, MtuDiscoveryConfig, PathStatus, ServerConfig, TokioRuntime, TransportConfig,
};
use rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::{Moved, Span};

/// The congestion controller of noq, and the cipher.
#[derive(Clone, Copy)]
pub(crate) enum Stack {
    /// noq's default: CUBIC.
    Default,
    /// NewReno.
    NewReno,
    /// NewReno, and the cipher that Fairpath likes best where the processor has AES: what that alone gains.
    NewRenoAes128,
}

fn transport(stack: Stack, datagram_max: u16) -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    let mut search = MtuDiscoveryConfig::default();
    search.upper_bound(datagram_max);
    transport.mtu_discovery_config(Some(search));
    transport.max_concurrent_multipath_paths(8);
    if let Stack::NewReno | Stack::NewRenoAes128 = stack {
        transport.congestion_controller_factory(Arc::new(NewRenoConfig::default()));
    }
    Arc::new(transport)
}

/// noq's own endpoint and socket, which take in datagrams of up to `datagram_max` bytes.
fn endpoint(datagram_max: u16, server: Option<ServerConfig>, address: SocketAddr) -> Option<Endpoint> {
    let mut config = EndpointConfig::default();
    // noq's default of 1,472 is more than it sends by default.
    config.max_udp_payload_size(datagram_max.max(1_472)).ok()?;
    Endpoint::new(config, server, UdpSocket::bind(address).ok()?, Arc::new(TokioRuntime)).ok()
}

pub(crate) async fn goodput(
    stack: Stack,
    datagram_max: u16,
    server: SocketAddr,
    relays: Vec<SocketAddr>,
    span: Span,
) -> Option<Moved> {
    let (server_config, client_config) = configs(stack, datagram_max).ok()?;
    let listener = endpoint(datagram_max, Some(server_config), server)?;
    let endpoint = endpoint(datagram_max, None, "127.0.0.1:0".parse().ok()?)?;
    let connecting = endpoint.connect_with(client_config, relays[0], "raw").ok()?;
    let accepting = async { listener.accept().await?.await.ok() };
    let (client, accepted) = tokio::join!(connecting, accepting);
    let (client, accepted) = (client.ok()?, accepted?);
    for relay in &relays[1..] {
        for _ in 0..20 {
            tokio::time::sleep(Duration::from_millis(50)).await;
            if client.open_path(*relay, PathStatus::Available).await.is_ok() {
                break;
            }
        }
    }
    let received = Arc::new(AtomicU64::new(0));
    let counter = received.clone();
    let reading = tokio::spawn(async move {
        let mut stream = accepted.accept_uni().await.ok()?;
        while let Ok(Some(chunk)) = stream.read_chunk(usize::MAX).await {
            counter.fetch_add(chunk.len() as u64, Ordering::Relaxed);
        }
        Some(())
    });
    let mut stream = client.open_uni().await.ok()?;
    let writing = tokio::spawn(async move {
        let data = bytes::Bytes::from(vec![7u8; 64 << 10]);
        while stream.write_chunk(data.clone()).await.is_ok() {}
    });
    let rate = crate::measure(span, || received.load(Ordering::Relaxed)).await;
    let alive = client.close_reason().is_none();
    writing.abort();
    reading.abort();
    endpoint.close(0u32.into(), b"");
    let _ = tokio::time::timeout(Duration::from_secs(3), endpoint.wait_idle()).await;
    alive.then_some(rate)
}

fn configs(stack: Stack, datagram_max: u16) -> anyhow::Result<(ServerConfig, ClientConfig)> {
    let made = rcgen::generate_simple_self_signed(["raw".to_owned()])?;
    let certificate: CertificateDer<'static> = made.cert.into();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let mut provider = rustls::crypto::ring::default_provider();
    if let Stack::NewRenoAes128 = stack {
        provider.cipher_suites.sort_by_key(|suite| *suite != TLS13_AES_128_GCM_SHA256);
    }
    let provider = Arc::new(provider);
    let server = rustls::ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)?;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate)?;
    let client = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut server = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(server)?));
    server.transport_config(transport(stack, datagram_max));
    let mut client = ClientConfig::new(Arc::new(QuicClientConfig::try_from(client)?));
    client.transport_config(transport(stack, datagram_max));
    Ok((server, client))
}
