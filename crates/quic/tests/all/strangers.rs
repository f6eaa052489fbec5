//! A listener under hostile load, over loopback: invited peers come in all the same.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fairpath_quic::{AdmissionKey, ConnectConfig, Connection, Error, ListenConfig, Listener, connect};
use noq::crypto::rustls::QuicClientConfig;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};

use crate::common::{receive, send};

const KEY: AdmissionKey = AdmissionKey::from_bytes([7; 32]);

/// How long the hostile load lasts, and how much of it there is.
const LOAD: Duration = Duration::from_secs(3);
const PER_SECOND: u32 = 1_000;

/// The extra time that an invited peer may take under load. The load runs on the same machine, which
/// may have little to spare: so the machine's own slowness is measured and added.
const PATIENCE: Duration = Duration::from_secs(1);

fn listen(connections_max: usize, admission_key: Option<AdmissionKey>) -> Listener {
    let config = ListenConfig {
        via: vec!["127.0.0.1".into()],
        connections_max,
        admission_key,
        ..ListenConfig::new().expect("an identity")
    };
    Listener::bind(config).expect("loopback")
}

fn invited(listener: &Listener) -> ConnectConfig {
    ConnectConfig { admission_key: Some(KEY), ..ConnectConfig::new(listener.addresses(), listener.fingerprint()) }
}

/// Accepts all connections and keeps them, as an application does that waits for a proof. Peers
/// that send a message are residents.
fn serve(listener: Arc<Listener>) {
    tokio::spawn(async move {
        while let Some(connection) = listener.accept().await {
            tokio::spawn(async move {
                if connection.recv_message().await.is_ok() {
                    connection.welcome();
                    let _ = receive(connection.clone(), 1 << 20).await;
                    connection.closed().await;
                }
            });
        }
    });
}

/// Connects as an invited peer does, is let in, and moves a megabyte. How long it took to be let in.
async fn come_in(listener: &Listener) -> Result<Duration, Error> {
    let begun = Instant::now();
    let connection: Connection = connect(invited(listener)).await?;
    let elapsed = begun.elapsed();
    connection.send_message(b"x"[..].into()).await.expect("the proof leaves");
    send(&connection, 1 << 20).await.expect("a guest that is welcome has all the room there is");
    connection.close(0, "");
    Ok(elapsed)
}

/// The median of five attempts, one after the other.
async fn median(listener: &Listener) -> Duration {
    let mut times = Vec::new();
    for _ in 0..5 {
        times.push(come_in(listener).await.expect("the invited come in"));
    }
    times.sort();
    times[2]
}

/// Sends these packets over and over from many sources, the address of the invited among them, and never
/// answers.
fn throw(packets: Vec<Vec<u8>>, at: SocketAddr) -> std::thread::JoinHandle<()> {
    let sources: Vec<_> =
        (1..=20).map(|last| UdpSocket::bind((Ipv4Addr::new(127, 0, 0, last), 0)).expect("loopback")).collect();
    std::thread::spawn(move || {
        let begun = Instant::now();
        for (count, packet) in packets.iter().cycle().enumerate() {
            let due = begun + Duration::from_secs(1) * count as u32 / PER_SECOND;
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            if begun.elapsed() > LOAD {
                return;
            }
            let _ = sources[count % sources.len()].send_to(packet, at);
        }
    })
}

/// Takes any certificate.
#[derive(Debug)]
struct Blind;

impl ServerCertVerifier for Blind {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ECDSA_NISTP256_SHA256, SignatureScheme::ED25519]
    }
}

fn stranger() -> noq::ClientConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS 1.3")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Blind))
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"fairpath/1".to_vec()];
    noq::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).expect("an initial cipher suite")))
}

/// The first packets of connections that are never continued.
async fn first_packets(count: usize) -> Vec<Vec<u8>> {
    let sink = UdpSocket::bind("127.0.0.1:0").expect("loopback");
    sink.set_read_timeout(Some(Duration::from_secs(5))).expect("a timeout");
    let endpoint = noq::Endpoint::client(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).expect("loopback");
    let mut packets = Vec::new();
    while packets.len() < count {
        let _connecting = endpoint.connect_with(stranger(), sink.local_addr().expect("bound"), "x").expect("a try");
        let mut packet = [0; 2000];
        let sink = sink.try_clone().expect("a socket");
        let read = tokio::task::spawn_blocking(move || sink.recv(&mut packet).map(|length| packet[..length].to_vec()));
        let packet = read.await.expect("no panic").expect("a first packet");
        // Repetitions of earlier ones, and ends of connections, are in between.
        if packet.len() >= 1200 && !packets.contains(&packet) {
            packets.push(packet);
        }
    }
    packets
}

#[tokio::test(flavor = "multi_thread")]
async fn lone_first_packets_keep_nobody_out() {
    let listener = Arc::new(listen(64, Some(KEY)));
    serve(listener.clone());
    let alone = median(&listener).await;
    let thrower = throw(first_packets(200).await, listener.addresses()[0]);
    tokio::time::sleep(Duration::from_millis(300)).await;
    let crowded = median(&listener).await;
    println!("alone {alone:?}, under {PER_SECOND} first packets a second {crowded:?}, {:?}", listener.accept_stats());
    assert!(crowded < alone * 5 + PATIENCE, "{alone:?} and {crowded:?}");
    assert!(listener.accept_stats().asked_again > 100, "{:?}", listener.accept_stats());
    thrower.join().expect("no panic");
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_connections_keep_nobody_out() {
    let listener = Arc::new(listen(64, Some(KEY)));
    serve(listener.clone());
    let alone = median(&listener).await;
    let at = listener.addresses()[0];
    let crowd = tokio::spawn(async move {
        let source = |last| noq::Endpoint::client(SocketAddr::from((Ipv4Addr::new(127, 0, 0, last), 0)));
        let sources: Vec<_> = (1..=20).map(|last| source(last).expect("loopback")).collect();
        let (begun, config, mut held) = (Instant::now(), stranger(), Vec::new());
        let mut due = tokio::time::interval(Duration::from_secs(1) / PER_SECOND);
        while begun.elapsed() < LOAD {
            due.tick().await;
            let connecting = sources[held.len() % sources.len()].connect_with(config.clone(), at, "x").expect("a try");
            // The admitted connection stays open and sends nothing.
            held.push(tokio::spawn(async move {
                if let Ok(connection) = connecting.await {
                    connection.closed().await;
                }
            }));
        }
        held.len()
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    let crowded = median(&listener).await;
    let count = crowd.await.expect("no panic");
    println!("alone {alone:?}, under {count} connections in 3 s {crowded:?}, {:?}", listener.accept_stats());
    assert!(crowded < alone * 5 + PATIENCE, "{alone:?} and {crowded:?}");
    assert!(listener.accept_stats().refused > 0, "{:?}", listener.accept_stats());
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_max_admits_no_more_than_it_says() {
    let listener = listen(2, None);
    let config = ConnectConfig::new(listener.addresses(), listener.fingerprint());
    let _first = connect(config.clone()).await.expect("one");
    let second = connect(config.clone()).await.expect("two");
    match connect(config.clone()).await {
        Err(Error::Busy(address)) => assert_eq!(address, listener.addresses()[0]),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("a third of two"),
    }
    // A client that keeps trying gets the place of one that leaves.
    let (third, ()) = tokio::join!(connect(config), async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        second.close(0, "");
    });
    third.expect("a place");
}
