//! Two ends on loopback, without limits.

mod common;

use common::{Pair, receive, send};
use fairpath_quic::lanes::{LaneReceiver, LaneSender, Record};
use fairpath_quic::{ConnectConfig, Error, Fingerprint, ListenConfig, Listener, Outcome, PathState, WhyNot, connect};
use std::time::Duration;

#[tokio::test(flavor = "multi_thread")]
async fn bulk_data_crosses_two_paths_intact() {
    let pair = Pair::connect(&["127.0.1.1", "127.0.2.1"]).await;
    assert!(pair.client.paths_open(2, Duration::from_secs(5)).await, "{:#?}", pair.client.paths());
    let total = 20 << 20;
    let receiving = tokio::spawn(receive(pair.server.quic().clone(), total));
    send(pair.client.quic(), total).await.expect("the data leaves");
    receiving.await.unwrap().expect("the data arrives, byte for byte");
    tokio::time::sleep(Duration::from_millis(300)).await;
    let paths = pair.client.paths();
    assert_eq!(paths.len(), 2);
    for path in &paths {
        assert_eq!(path.state, PathState::Open);
        // How much each takes is not promised where only the processor limits them: one may still be
        // in slow start when all has been sent. Two paths that carry nothing have 2 and 4 kB acknowledged
        // after half a second.
        assert!(path.acked.get() > 128 << 10, "{path:#?}");
    }
}

/// It takes less time than passes between two looks at the paths.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_short_transfer_carried_is_counted_to_its_end() {
    let pair = Pair::connect(&["127.0.0.1"]).await;
    let total = 1 << 20;
    let receiving = tokio::spawn(receive(pair.server.quic().clone(), total));
    send(pair.client.quic(), total).await.expect("the data leaves");
    receiving.await.unwrap().expect("the data arrives");
    let received: u64 = pair.server.paths_now().await.iter().map(|path| path.received.get()).sum();
    assert!(received >= total as u64, "{received} of {total} bytes");
    // The last acknowledgements may still be on their way.
    let acked = async || pair.client.paths_now().await.iter().map(|path| path.acked.get()).sum::<u64>();
    for _ in 0..1000 {
        if acked().await >= total as u64 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    pair.client.close(0, "done");
    pair.server.quic().closed().await;
    assert!(acked().await >= total as u64, "{} of {total} bytes", acked().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_small_record_arrives_while_its_sender_waits_for_something_else() {
    let pair = Pair::connect(&["127.0.0.1"]).await;
    let mut lanes = LaneSender::open(pair.client.quic(), 2).await.unwrap();
    let mut arriving = LaneReceiver::new(pair.server.quic());
    for offset in 0..3 {
        let record = Record { object: 1, offset, data: bytes::Bytes::from_static(b"x") };
        lanes.send(record.clone()).await.unwrap();
        let arrived = lanes.while_writing(arriving.recv()).await.unwrap();
        assert_eq!(arrived.unwrap().unwrap(), record);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_acceptor_knows_its_paths_too() {
    let pair = Pair::connect(&["127.0.1.1", "127.0.2.1"]).await;
    assert!(pair.client.paths_open(2, Duration::from_secs(5)).await);
    assert!(pair.server.paths_open(2, Duration::from_secs(5)).await, "{:#?}", pair.server.paths());
}

#[tokio::test(flavor = "multi_thread")]
async fn another_certificate_is_refused_in_words() {
    let listener =
        Listener::bind(ListenConfig { via: vec!["127.0.0.1".into()], ..ListenConfig::new().unwrap() }).unwrap();
    let config = ConnectConfig::new(listener.addresses(), Fingerprint([7; 32]));
    match connect(config).await {
        Err(Error::WrongFingerprint { address, .. }) => assert_eq!(address, listener.addresses()[0]),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_there_is_told_with_the_addresses_tried() {
    // A port that was free a moment ago, and that nobody answers on.
    let address = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let config = ConnectConfig::new(vec![address], Fingerprint([7; 32]));
    let error = connect(config).await.expect_err("nobody is there");
    assert!(error.to_string().contains(&format!("no connection to {address} (refused);")), "{error}");
    let Error::Unreachable { tried } = error else { panic!("{error:?}") };
    assert_eq!(tried.len(), 1, "{tried:?}");
    assert_eq!(tried[0].outcome, Outcome::Failed(WhyNot::Refused), "the system says that nobody listens");
}
