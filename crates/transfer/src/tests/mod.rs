//! Whole transfers over two plain endpoints on loopback.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use noq::{ClientConfig, Connection, Endpoint, ServerConfig, TransportConfig};
use rustls::pki_types::PrivateKeyDer;
use tokio::task::JoinHandle;

use crate::{
    Consent, Limits, ReceiveConfig, ReceiveError, Received, Receiver, Secret, Selection, SendError, Sender, Sent,
};

mod changing;
mod disk;
mod interrupted;
mod malice;
mod many;
mod offers;
mod outcome;
mod roundtrip;
mod trust;

const SECRET: Secret = Secret::from_bytes([42; 16]);

/// Two endpoints that know each other.
pub(crate) struct Net {
    server: Endpoint,
    client: Endpoint,
    address: SocketAddr,
}

impl Net {
    pub(crate) fn new() -> Self {
        let certified = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
        let certificate = certified.cert.der().clone();
        let key = PrivateKeyDer::Pkcs8(certified.signing_key.serialize_der().into());
        let mut transport = TransportConfig::default();
        transport.max_idle_timeout(Some(Duration::from_secs(5).try_into().unwrap()));
        transport.keep_alive_interval(Some(Duration::from_secs(1)));
        let transport = Arc::new(transport);
        let mut server = ServerConfig::with_single_cert(vec![certificate.clone()], key).unwrap();
        server.transport_config(transport.clone());
        let mut roots = rustls::RootCertStore::empty();
        roots.add(certificate).unwrap();
        let mut config = ClientConfig::with_root_certificates(Arc::new(roots)).unwrap();
        config.transport_config(transport);
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let server = Endpoint::server(server, any).unwrap();
        let client = Endpoint::client(any).unwrap();
        client.set_default_client_config(config);
        let address = server.local_addr().unwrap();
        Self { server, client, address }
    }

    /// A new connection: the sender's end and the receiver's end.
    pub(crate) async fn connect(&self) -> (Connection, Connection) {
        let connecting = self.client.connect(self.address, "localhost").unwrap();
        let accepting = async { self.server.accept().await.unwrap().await.unwrap() };
        let (sending, receiving) = tokio::join!(connecting, accepting);
        (sending.unwrap(), receiving)
    }

    /// One transfer of `paths`.
    async fn transfer(
        &self,
        receiver: &Arc<Receiver>,
        paths: &[PathBuf],
    ) -> (Result<Sent, SendError>, Result<Received, ReceiveError>) {
        let (sending, receiving) = self.connect().await;
        let sender = Sender::new(Selection::collect(paths).unwrap(), SECRET).unwrap();
        let serving = serve(receiver, receiving);
        let sent = sender.send(&sending).await;
        (sent, serving.await.unwrap())
    }
}

fn serve(receiver: &Arc<Receiver>, connection: Connection) -> JoinHandle<Result<Received, ReceiveError>> {
    let receiver = receiver.clone();
    tokio::spawn(async move {
        let admitted = receiver.admit(&connection).await?;
        receiver.serve(admitted).await
    })
}

fn receiver_with(directory: &Path, change: impl FnOnce(&mut ReceiveConfig)) -> Arc<Receiver> {
    let mut config = ReceiveConfig {
        directory: directory.to_owned(),
        force: false,
        keep: false,
        secret: SECRET,
        limits: Limits::default(),
        consent: Consent::always(),
    };
    change(&mut config);
    Arc::new(Receiver::new(config))
}

fn receiver(directory: &Path) -> Arc<Receiver> {
    receiver_with(directory, |_| {})
}

/// Bytes that look random and are the same every time.
fn content(length: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; length];
    blake3::Hasher::new_derive_key("test content").update(&seed.to_be_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}

/// Every name below a directory, sorted.
fn names(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut stack = vec![directory.to_owned()];
    while let Some(next) = stack.pop() {
        for item in std::fs::read_dir(next).unwrap() {
            let path = item.unwrap().path();
            found.push(path.strip_prefix(directory).unwrap().to_str().unwrap().to_owned());
            if path.is_dir() && !path.is_symlink() {
                stack.push(path);
            }
        }
    }
    found.sort();
    found
}
