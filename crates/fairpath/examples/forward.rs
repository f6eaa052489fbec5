//! Forwards TCP over all paths to another machine, a stream for each connection.
//!
//! ```console
//! there$ cargo run -p fairpath --example forward -- serve 127.0.0.1:22
//! here$  cargo run -p fairpath --example forward -- dial 127.0.0.1:2222 FINGERPRINT ADDRESS…
//! here$  ssh -p 2222 127.0.0.1
//! ```
//!
//! `VIA=eth0,wwan0` names the interfaces, at either end.

use std::net::SocketAddr;

use fairpath::{Builder, Endpoint, Fingerprint, Identity, RecvStream, SendStream};
use tokio::net::{TcpListener, TcpStream};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", target] => serve(target.parse()?).await,
        ["dial", listen, fingerprint, ref addresses @ ..] if !addresses.is_empty() => {
            let addresses: Result<Vec<SocketAddr>, _> = addresses.iter().map(|address| address.parse()).collect();
            dial(listen.parse()?, fingerprint.parse()?, addresses?).await
        }
        _ => {
            eprintln!("usage: forward serve TARGET | forward dial LISTEN FINGERPRINT ADDRESS…");
            std::process::exit(2);
        }
    }
}

fn builder() -> Builder {
    let via = std::env::var("VIA").unwrap_or_default();
    Endpoint::builder().alpn(b"tcp-forward/1").via(via.split(',').filter(|name| !name.is_empty()))
}

/// Connects each stream that comes to `target`.
async fn serve(target: SocketAddr) -> anyhow::Result<()> {
    let endpoint = builder().identity(Identity::generate()?).bind()?;
    let addresses: Vec<String> = endpoint.addresses().iter().map(ToString::to_string).collect();
    println!("{} {}", endpoint.fingerprint().expect("it has an identity"), addresses.join(" "));
    while let Some(connection) = endpoint.accept().await {
        tokio::spawn(async move {
            while let Ok((send, recv)) = connection.accept_bi().await {
                tokio::spawn(async move {
                    match TcpStream::connect(target).await {
                        Ok(tcp) => join(tcp, send, recv).await,
                        // The dropped halves tell the other end.
                        Err(error) => eprintln!("{target}: {error}"),
                    }
                });
            }
        });
    }
    Ok(())
}

/// Opens a stream for each connection that comes to `listen`.
async fn dial(listen: SocketAddr, fingerprint: Fingerprint, addresses: Vec<SocketAddr>) -> anyhow::Result<()> {
    let connection = builder().bind()?.connect(addresses, fingerprint).await?;
    let listener = TcpListener::bind(listen).await?;
    println!("listening on {}", listener.local_addr()?);
    loop {
        tokio::select! {
            reason = connection.closed() => return Err(reason.into()),
            accepted = listener.accept() => {
                let ((tcp, _), (send, recv)) = (accepted?, connection.open_bi().await?);
                tokio::spawn(join(tcp, send, recv));
            }
        }
    }
}

/// Carries both directions until both have ended.
async fn join(mut tcp: TcpStream, send: SendStream, recv: RecvStream) {
    let mut stream = tokio::io::join(recv, send);
    if let Err(error) = tokio::io::copy_bidirectional(&mut tcp, &mut stream).await {
        eprintln!("a connection broke off: {error}");
    }
}
