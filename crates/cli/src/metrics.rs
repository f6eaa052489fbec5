//! Numbers for Prometheus, at an address of this machine.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::anyhow;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// The content type of [`encode`]'s output.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

type Shared = Arc<Mutex<Registry>>;

/// Answers whoever asks for `/metrics`, as long as it lives.
#[derive(Debug)]
pub(crate) struct Exporter {
    registry: Shared,
    _task: JoinSet<()>,
}

impl Exporter {
    /// Answers at `address` with what is in the registry.
    pub(crate) async fn at(address: SocketAddr, registry: Registry) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(address).await.map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => {
                anyhow!("cannot show metrics at {address}: another program uses this port; give another to --metrics")
            }
            _ => anyhow::Error::from(error).context(format!("cannot show metrics at {address}")),
        })?;
        let registry = Arc::new(Mutex::new(registry));
        let router = Router::new().route("/metrics", get(show)).with_state(registry.clone());
        let mut task = JoinSet::new();
        // It ends with the exporter only: errors of single connections are theirs.
        task.spawn(async move {
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self { registry, _task: task })
    }

    /// Changes several numbers, of which nobody sees some changed and others not.
    pub(crate) fn change(&self, change: impl FnOnce()) {
        let _nobody_reads = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        change();
    }
}

async fn show(State(registry): State<Shared>) -> Result<impl IntoResponse, StatusCode> {
    let mut text = String::new();
    let registry = registry.lock().unwrap_or_else(PoisonError::into_inner);
    encode(&mut text, &registry).map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    Ok(([(CONTENT_TYPE, OPEN_METRICS)], text))
}

/// An address of this machine that other machines do not reach: nobody is asked who they are.
pub(crate) fn local_address(text: &str) -> Result<SocketAddr, &'static str> {
    const RIGHT: &str = "a loopback address and a port are needed, such as 127.0.0.1:9464";
    let address: SocketAddr = text.parse().map_err(|_| RIGHT)?;
    (address.port() > 0 && address.ip().is_loopback()).then_some(address).ok_or(RIGHT)
}

/// A count of which only growth is passed on. Counts of a connection begin anew with the next one, and some fall by one
/// when what was counted turns out otherwise; to Prometheus any fall is a program that has begun anew.
#[derive(Debug, Default)]
pub(crate) struct Growth {
    highest: u64,
}

impl Growth {
    /// The count is so much now.
    pub(crate) fn pass_on(&mut self, count: u64, to: &Counter) {
        to.inc_by(count.saturating_sub(self.highest));
        self.highest = self.highest.max(count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_never_falls() {
        let (mut growth, counter) = (Growth::default(), Counter::default());
        let shown: Vec<u64> = [3, 5, 4, 5, 6].map(|count| (growth.pass_on(count, &counter), counter.get()).1).into();
        assert_eq!(shown, [3, 5, 5, 5, 6]);
        // The next connection.
        growth = Growth::default();
        growth.pass_on(2, &counter);
        assert_eq!(counter.get(), 8);
    }

    #[test]
    fn only_this_machine_is_answered() {
        assert!(local_address("127.0.0.1:9464").is_ok() && local_address("[::1]:9464").is_ok());
        for wrong in ["9464", "127.0.0.1", "0.0.0.0:9464", "192.0.2.1:9464", "127.0.0.1:0", "localhost:9464"] {
            assert!(local_address(wrong).unwrap_err().contains("such as 127.0.0.1:9464"), "{wrong}");
        }
    }
}
