//! Whole transfers over loopback.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fairpath_quic::{ConnectConfig, Connection, ListenConfig, Listener, connect};
use tokio::task::JoinHandle;

use crate::{
    Consent, Existing, Limits, ReceiveConfig, ReceiveError, Received, Receiver, Secret, Selection, SendError, Sender,
    Sent,
};

mod archive;
mod changing;
mod disk;
mod interrupted;
mod malice;
mod many;
mod offers;
mod outcome;
mod roundtrip;
mod streams;
mod tree;
mod trust;

const SECRET: Secret = Secret::from_bytes([42; 16]);

/// Two ends that know each other.
pub(crate) struct Net {
    listener: Listener,
    redial: ConnectConfig,
}

impl Net {
    pub(crate) fn new() -> Self {
        // The invited may come oftener than strangers.
        let admission_key = Some(SECRET.admission_key());
        let via = vec!["127.0.0.1".to_owned()];
        let config =
            ListenConfig { via: via.clone(), admission_key: admission_key.clone(), ..ListenConfig::new().unwrap() };
        let listener = Listener::bind(config).unwrap();
        let redial =
            ConnectConfig { via, admission_key, ..ConnectConfig::new(listener.addresses(), listener.fingerprint()) };
        Self { listener, redial }
    }

    /// A new connection: the sender's end and the receiver's end.
    pub(crate) async fn connect(&self) -> (Connection, Connection) {
        let (sending, receiving) = tokio::join!(connect(self.redial.clone()), self.listener.accept());
        (sending.unwrap(), receiving.unwrap())
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
        existing: Existing::default(),
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
