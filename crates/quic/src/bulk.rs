//! Endless bulk data and a receiver that counts it, for measurements.

use bytes::Bytes;
use fairpath_engine::ByteCount;
use fairpath_quic_core::ChannelId;
use fairpath_quic_core::bulk::Record;
use tokio::task::JoinHandle;

use crate::RECORD;
use crate::connection::Connection;

/// Sends records of zeros until it is dropped or the connection ends.
#[derive(Debug)]
pub struct Source(JoinHandle<()>);

impl Source {
    /// Starts sending, in records of the usual size. Must be called within a tokio runtime.
    pub fn start(connection: &Connection) -> Self {
        Self::start_with(connection, RECORD)
    }

    /// Starts sending in records of `record` bytes: smaller ones arrive whole sooner.
    pub fn start_with(connection: &Connection, record: usize) -> Self {
        let connection = connection.clone();
        Self(tokio::spawn(async move {
            let data = Bytes::from(vec![0; record]);
            let mut offset = 0;
            while connection.send_record(Record { object: 0, offset, data: data.clone() }).await.is_ok() {
                offset += record as u64;
            }
        }))
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Takes records, and counts, until it is dropped or the connection ends.
#[derive(Debug)]
pub struct Sink {
    connection: Connection,
    before: u64,
    task: JoinHandle<()>,
}

impl Sink {
    /// Starts counting. Must be called within a tokio runtime.
    pub fn start(connection: &Connection) -> Self {
        let taking = connection.clone();
        let task = tokio::spawn(async move { while taking.recv_record().await.is_ok() {} });
        let before = connection.received_bytes(ChannelId::Bulk).get();
        Self { connection: connection.clone(), before, task }
    }

    /// The bytes received so far, each counted once, with a header of 12 bytes for each record.
    pub fn received(&self) -> ByteCount {
        ByteCount::new(self.connection.received_bytes(ChannelId::Bulk).get() - self.before)
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.task.abort();
    }
}
