//! Prints what happens to a connection: `cargo run -p fairpath --example events`.
//!
//! Both ends are in this process. A path is closed by hand, and then the connection.

use std::time::Duration;

use anyhow::Context as _;
use fairpath::{Endpoint, Event, Identity};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let server = Endpoint::builder().identity(Identity::generate()?).via(["127.0.0.1"]).bind()?;
    let client = Endpoint::builder().via(["127.0.0.1", "127.0.0.2"]).bind()?;
    let trust = server.fingerprint().expect("it has an identity");
    let (ours, theirs) = tokio::join!(client.connect(server.addresses(), trust), server.accept());
    let (ours, _theirs) = (ours?, theirs.context("the server is closed")?);
    let mut events = ours.events();
    ours.paths_open(2, Duration::from_secs(5)).await;
    if let Some(path) = ours.paths().last() {
        ours.close_path(path.local.context("the path is gone")?, path.remote);
    }
    while let Some(event) = events.next().await {
        println!("{event}");
        if matches!(event, Event::PathClosed { .. }) {
            // It would be opened again in a while.
            server.close(7, "that was all").await;
        }
    }
    Ok(())
}
