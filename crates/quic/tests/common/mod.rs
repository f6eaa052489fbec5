//! Helpers that the tests of this crate share.
#![allow(dead_code)]

pub(crate) mod translator;

use std::net::SocketAddr;

use bytes::Bytes;
use fairpath_quic::{
    ChannelId, ConnectConfig, Connection, ConnectionError, EngineConfig, ListenConfig, Listener, RECORD, Record,
    SendError, connect,
};

/// Both ends of one connection.
pub(crate) struct Pair {
    pub(crate) listener: Listener,
    pub(crate) server: Connection,
    pub(crate) client: Connection,
}

impl Pair {
    /// Over loopback, from the given addresses.
    pub(crate) async fn connect(via: &[&str]) -> Self {
        Self::with(EngineConfig::default(), via, |addresses| addresses).await
    }

    /// With the engine, from the given addresses, to what `reach` makes of the listener's addresses.
    pub(crate) async fn with(
        engine: EngineConfig,
        via: &[&str],
        reach: impl FnOnce(Vec<SocketAddr>) -> Vec<SocketAddr>,
    ) -> Self {
        let listen = ListenConfig {
            via: vec!["127.0.0.1".into()],
            engine: engine.clone(),
            ..ListenConfig::new().expect("an identity")
        };
        let listener = Listener::bind(listen).expect("loopback");
        let remotes = reach(listener.addresses());
        let via = via.iter().map(|name| (*name).to_owned()).collect();
        let config = ConnectConfig { via, engine, ..ConnectConfig::new(remotes, listener.fingerprint()) };
        let (client, server) = tokio::join!(connect(config), listener.accept());
        Self { client: client.expect("a connection"), server: server.expect("a connection"), listener }
    }
}

/// The byte at `offset` of the test data.
fn byte_at(offset: u64) -> u8 {
    (offset.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8
}

/// Sends `total` bytes of test data, and waits until all of it has arrived.
pub(crate) async fn send(connection: &Connection, total: usize) -> Result<(), SendError> {
    let mut offset = 0;
    while offset < total {
        let length = RECORD.min(total - offset);
        let data: Bytes = (offset..offset + length).map(|at| byte_at(at as u64)).collect();
        connection.send_record(Record { object: 1, offset: offset as u64, data }).await?;
        offset += length;
    }
    Ok(connection.flushed(ChannelId::Bulk).await?)
}

/// Receives `total` bytes of test data and checks every one.
pub(crate) async fn receive(connection: Connection, total: usize) -> Result<(), ConnectionError> {
    let mut received = 0;
    while received < total {
        let record = connection.recv_record().await?;
        for (at, byte) in record.data.iter().enumerate() {
            assert_eq!(*byte, byte_at(record.offset + at as u64), "at {}", record.offset + at as u64);
        }
        received += record.data.len();
    }
    Ok(())
}
