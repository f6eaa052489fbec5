//! Copies a file over two links, and draws what each carried: `cargo run -p fairpath --example copy -- FROM TO`.
//!
//! Both ends are in this process. The sender uses two loopback addresses, one of which may carry twice as much.

use std::time::Duration;

use anyhow::Context as _;
use fairpath::{Bitrate, Connection, Endpoint, Identity, Path, PathTerms};
use tokio::fs::File;
use tokio::io::AsyncWriteExt;
use tokio::time::Instant;

/// The width of the longest bar, in characters.
const WIDTH: u64 = 40;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(from), Some(to)) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: copy FROM TO");
        std::process::exit(2);
    };
    let file = File::open(&from).await.with_context(|| format!("cannot read {from}"))?;
    let copy = File::create_new(&to).await.with_context(|| format!("cannot write {to}"))?;

    let receiver = Endpoint::builder().identity(Identity::generate()?).via(["127.0.0.1"]).bind()?;
    let links = [("127.0.0.1", 100), ("127.0.0.2", 50)];
    let cap = |mbps| PathTerms::new().cap(Bitrate::from_mbps(mbps));
    let sender = Endpoint::builder().via(links.map(|(link, _)| link));
    let sender = links.into_iter().fold(sender, |sender, (link, mbps)| sender.path(link, cap(mbps))).bind()?;
    let trust = receiver.fingerprint().expect("it has an identity");
    let (ours, theirs) = tokio::join!(sender.connect(receiver.addresses(), trust), receiver.accept());
    let (ours, theirs) = (ours?, theirs.context("the receiver is closed")?);
    ours.paths_open(2, Duration::from_secs(5)).await;

    let begun = Instant::now();
    let (sent, received) = tokio::try_join!(send(&ours, file), receive(&theirs, copy))?;
    anyhow::ensure!(sent == received, "{sent} bytes were sent, and {received} came");
    println!("{sent} bytes in {:.1?}", begun.elapsed());
    draw(&ours.stats().await.paths);
    ours.close(0, "done").await;
    Ok(())
}

async fn send(connection: &Connection, mut file: File) -> anyhow::Result<u64> {
    let (mut to, _) = connection.open_bi().await?;
    let count = tokio::io::copy(&mut file, &mut to).await?;
    to.finish()?;
    to.arrived().await?;
    Ok(count)
}

async fn receive(connection: &Connection, mut file: File) -> anyhow::Result<u64> {
    let (_, mut from) = connection.accept_bi().await?;
    let count = tokio::io::copy(&mut from, &mut file).await?;
    file.flush().await?;
    Ok(count)
}

/// A bar for each path, as long as its share.
fn draw(paths: &[Path]) {
    let most = paths.iter().map(|path| path.acked.get()).max().unwrap_or(0).max(1);
    for path in paths {
        let bar = "█".repeat((path.acked.get() * WIDTH / most) as usize);
        println!("{:<14} {bar} {}", path.name, path.acked);
    }
}
