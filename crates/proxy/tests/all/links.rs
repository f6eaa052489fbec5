//! The way between the two ends: several ports, and links that fail.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fairpath_proxy::NearNotice;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UdpSocket;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::ends::{Ends, FarEnd, LIMIT, late_echo, near_config, server};

fn told(words: &str) -> impl Fn(&NearNotice) -> bool {
    move |notice| matches!(notice, NearNotice::Path(path) if path.contains(words))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_is_a_path_and_one_that_swallows_everything_costs_little() {
    // Nothing ever answers at the first port.
    let dead = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let free = UdpSocket::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let far = FarEnd::listening(folder.path().join("far"), "127.0.0.1:0".parse().unwrap(), vec![free]).await;
    let mut addresses = vec![dead.local_addr().unwrap()];
    addresses.extend(&far.addresses);
    assert_eq!(addresses.len(), 3);
    let begun = Instant::now();
    let one_link = |state| fairpath_proxy::NearConfig { via: vec!["127.0.0.1".to_owned()], ..near_config(state) };
    let mut ends = Ends::join(folder, far, &addresses, one_link).await;
    ends.near_told(|notice| matches!(notice, NearNotice::Connected(_))).await;
    // Two handshakes: that of the device which joins, and that of its proxy. Each would wait for four seconds, where one
    // address were tried after the other. With the race they take a moment, and seconds where the processors are busy.
    assert!(begun.elapsed() < Duration::from_secs(7), "{:?}", begun.elapsed());
    println!("joined and connected after {:?}", begun.elapsed());
    for _ in 0..2 {
        ends.near_told(told("path open")).await;
    }
    let echo = late_echo().await;
    let (mut tcp, code) = ends.socks(&echo).await;
    assert_eq!(code, 0);
    let sent = vec![7; 2_000_000];
    tcp.write_all(&sent).await.unwrap();
    tcp.shutdown().await.unwrap();
    let mut all = Vec::new();
    timeout(LIMIT, tcp.read_to_end(&mut all)).await.expect("in time").unwrap();
    assert!(all == sent);
}

/// Passes datagrams on between a port of IPv4 and the far end, as long as it is not cut.
async fn link(far: SocketAddr) -> (SocketAddr, Arc<AtomicBool>) {
    let outside = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let inside = UdpSocket::bind("[::1]:0").await.unwrap();
    let (address, is_cut) = (outside.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
    let cut = is_cut.clone();
    tokio::spawn(async move {
        let (mut there, mut back, mut near) = ([0; 1 << 16], [0; 1 << 16], None);
        loop {
            tokio::select! {
                Ok((length, from)) = outside.recv_from(&mut there) => {
                    near = Some(from);
                    if !cut.load(Ordering::Relaxed) {
                        let _ = inside.send_to(&there[..length], far).await;
                    }
                }
                Ok((length, _)) = inside.recv_from(&mut back) => {
                    if let Some(near) = near.filter(|_| !cut.load(Ordering::Relaxed)) {
                        let _ = outside.send_to(&back[..length], near).await;
                    }
                }
            }
        }
    });
    (address, is_cut)
}

/// Two ends with a link between them that can be cut; `None` where this machine has no IPv6.
async fn over_a_link() -> Option<(Ends, Arc<AtomicBool>)> {
    if std::net::UdpSocket::bind("[::1]:0").is_err() {
        eprintln!("skipped: this machine has no IPv6");
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    // The near end has IPv4 only: no way leads around the link.
    let far = FarEnd::listening(folder.path().join("far"), "[::1]:0".parse().unwrap(), Vec::new()).await;
    let (link, is_cut) = link(far.addresses[0]).await;
    let one_link = |state| fairpath_proxy::NearConfig { via: vec!["127.0.0.1".to_owned()], ..near_config(state) };
    Some((Ends::join(folder, far, &[link], one_link).await, is_cut))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_far_end_that_was_away_for_seconds_is_found_soon_after_it_is_back() {
    let Some((mut ends, is_cut)) = over_a_link().await else { return };
    let is_there = |notice: &NearNotice| *notice == NearNotice::Connected("van".to_owned());
    ends.near_told(is_there).await;
    let (state, address) = (ends.far.state.clone(), ends.far.addresses[0]);
    ends.far.stop().await;
    ends.near_told(|notice| matches!(notice, NearNotice::Lost(_))).await;
    // Its host is away too. The first try sends its first packets again after one and three seconds.
    is_cut.store(true, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_millis(1300)).await;
    ends.far = FarEnd::listening(state, address, Vec::new()).await;
    is_cut.store(false, Ordering::Relaxed);
    let back = Instant::now();
    ends.near_told(is_there).await;
    // The first try alone would take 1.7 s.
    assert!(back.elapsed() < Duration::from_millis(1500), "found again after {:?}", back.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_download_goes_on_where_it_was_when_all_links_were_gone() {
    let Some((mut ends, is_cut)) = over_a_link().await else { return };
    let half = vec![9; 300_000];
    let (go_on, first) = (Arc::new(Notify::new()), half.clone());
    let more = go_on.clone();
    let web = server(move |mut tcp| {
        let (first, more) = (first.clone(), more.clone());
        async move {
            let _ = tcp.write_all(&first).await;
            more.notified().await;
            let _ = tcp.write_all(&first).await;
        }
    })
    .await;
    let (mut tcp, code) = ends.socks(&web).await;
    assert_eq!(code, 0);
    let mut came = vec![0; half.len()];
    timeout(LIMIT, tcp.read_exact(&mut came)).await.expect("in time").unwrap();
    is_cut.store(true, Ordering::Relaxed);
    ends.near_told(told("interrupted")).await;
    go_on.notify_one();
    is_cut.store(false, Ordering::Relaxed);
    let mut rest = Vec::new();
    timeout(LIMIT, tcp.read_to_end(&mut rest)).await.expect("in time").unwrap();
    assert!(came == half && rest == half, "the same connection, every byte once");
}
