//! Endless bulk data and somebody who counts it: what measurements send.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use fairpath_engine::Bytes as Amount;
use tokio::task::JoinHandle;

use crate::connection::Connection;
use crate::lanes::{self, LANES, LaneError, LaneSender, RECORD, Record};

/// Sends zeros over lanes until it is dropped or the connection ends.
#[derive(Debug)]
pub struct Source(JoinHandle<()>);

impl Source {
    /// Starts sending, in records of the usual size.
    pub async fn start(connection: &Connection) -> Result<Self, LaneError> {
        Self::start_with(connection, RECORD).await
    }

    /// Starts sending in records of `record` bytes: smaller ones arrive whole sooner.
    pub async fn start_with(connection: &Connection, record: usize) -> Result<Self, LaneError> {
        let mut lanes = LaneSender::open(connection.quic(), LANES).await?;
        let task = tokio::spawn(async move {
            let data = Bytes::from(vec![0; record]);
            let mut offset = 0;
            while lanes.send(Record { object: 0, offset, data: data.clone() }).await.is_ok() {
                offset += record as u64;
            }
        });
        Ok(Self(task))
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Counts what comes over lanes, until it is dropped or the connection ends.
#[derive(Debug)]
pub struct Sink {
    received: Arc<AtomicU64>,
    task: JoinHandle<()>,
}

impl Sink {
    /// Starts counting.
    pub fn start(connection: &Connection) -> Self {
        let received = Arc::new(AtomicU64::new(0));
        let task = tokio::spawn(lanes::count(connection.quic().clone(), received.clone()));
        Self { received, task }
    }

    /// What has come so far: application data, each byte once.
    pub fn received(&self) -> Amount {
        Amount::new(self.received.load(Ordering::Relaxed))
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.task.abort();
    }
}
