//! Echo over two interfaces: `cargo run -p fairpath --example echo`.
//!
//! Both ends are in this process, and the client uses two loopback addresses. Name interfaces or addresses of yours to
//! use those: `cargo run -p fairpath --example echo -- wwan0 eth0`.

use std::time::Duration;

use fairpath::{Connection, Endpoint, Identity};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut via: Vec<String> = std::env::args().skip(1).collect();
    let mut server = Endpoint::builder().identity(Identity::generate()?);
    if via.is_empty() {
        via = vec!["127.0.0.1".into(), "127.0.0.2".into()];
        server = server.via(["127.0.0.1"]);
    }
    let (server, paths) = (server.bind()?, via.len());
    let (addresses, fingerprint) = (server.addresses(), server.fingerprint().expect("it has an identity"));
    tokio::spawn(async move {
        while let Some(connection) = server.accept().await {
            tokio::spawn(echo(connection));
        }
    });

    let client = Endpoint::builder().via(via).bind()?;
    let connection = client.connect(addresses, fingerprint).await?;
    connection.paths_open(paths, Duration::from_secs(5)).await;
    let (mut send, mut recv) = connection.open_bi().await?;
    send.write_all(b"hello over all paths").await?;
    send.shutdown().await?;
    let mut answer = String::new();
    recv.read_to_string(&mut answer).await?;
    println!("the answer: {answer}");
    for path in connection.paths() {
        println!("{} to {}: {}", path.name, path.remote, path.state);
    }
    connection.close(0, "done").await;
    Ok(())
}

/// Sends back what comes, stream by stream.
async fn echo(connection: Connection) -> anyhow::Result<()> {
    loop {
        let (mut send, mut recv) = connection.accept_bi().await?;
        tokio::spawn(async move {
            tokio::io::copy(&mut recv, &mut send).await?;
            send.shutdown().await?;
            anyhow::Ok(send.arrived().await?)
        });
    }
}
