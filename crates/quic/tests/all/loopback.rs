//! Two ends on loopback, without limits.

use fairpath_quic::{
    ChannelId, ConnectConfig, ConnectionError, Error, Fingerprint, ListenConfig, Listener, Outcome, PathState, Record,
    WhyNot, connect,
};
use std::time::Duration;

use crate::common::{Pair, receive, send};

#[tokio::test(flavor = "multi_thread")]
async fn bulk_data_crosses_two_paths_intact() {
    let pair = Pair::connect(&["127.0.1.1", "127.0.2.1"]).await;
    assert!(pair.client.paths_open(2, Duration::from_secs(5)).await, "{:#?}", pair.client.paths());
    let total = 20 << 20;
    let receiving = tokio::spawn(receive(pair.server.clone(), total));
    send(&pair.client, total).await.expect("the data leaves");
    receiving.await.unwrap().expect("the data arrives, byte for byte");
    tokio::time::sleep(Duration::from_millis(300)).await;
    let paths = pair.client.paths();
    assert_eq!(paths.len(), 2);
    for path in &paths {
        assert_eq!(path.state, PathState::Open);
        // How much each takes is not promised where only the processor limits them: one may still be in slow start
        // when all has been sent. Paths that carry nothing have at most 4 kB acknowledged after half a second.
        assert!(path.acked.get() > 8 << 10, "{path:#?}");
    }
}

/// It takes less time than passes between two looks at the paths.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_short_transfer_carried_is_counted_to_its_end() {
    let pair = Pair::connect(&["127.0.0.1"]).await;
    let total = 1 << 20;
    let receiving = tokio::spawn(receive(pair.server.clone(), total));
    send(&pair.client, total).await.expect("the data leaves");
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
    pair.server.closed().await;
    assert!(acked().await >= total as u64, "{} of {total} bytes", acked().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_come_in_order_both_ways_beside_records() {
    let pair = Pair::connect(&["127.0.1.1", "127.0.2.1"]).await;
    let bulk = (tokio::spawn(receive(pair.server.clone(), 4 << 20)), pair.client.clone());
    let sending = tokio::spawn(async move { send(&bulk.1, 4 << 20).await.map(|()| bulk.0) });
    for number in 0_u32..500 {
        pair.client.send_message(number.to_be_bytes().to_vec().into()).await.unwrap();
    }
    for number in 0_u32..500 {
        let message = pair.server.recv_message().await.unwrap();
        assert_eq!(message, number.to_be_bytes().as_slice());
        pair.server.send_message(message).await.unwrap();
    }
    for number in 0_u32..500 {
        assert_eq!(pair.client.recv_message().await.unwrap(), number.to_be_bytes().as_slice());
    }
    pair.client.flushed(ChannelId::Messages).await.unwrap();
    sending.await.unwrap().expect("the data leaves").await.unwrap().expect("the data arrives");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_came_before_the_end_is_handed_out_before_the_end_is_told() {
    let pair = Pair::connect(&["127.0.0.1"]).await;
    for number in 0..3_u8 {
        pair.client.send_message(vec![number].into()).await.unwrap();
        let data = vec![number; 100_000].into();
        pair.client.send_record(Record { object: 1, offset: number.into(), data }).await.unwrap();
    }
    for channel in [ChannelId::Messages, ChannelId::Bulk] {
        pair.client.flushed(channel).await.unwrap();
    }
    pair.client.end(7, "enough").await;
    let ConnectionError::ApplicationClosed(close) = pair.server.closed().await else { panic!("another end") };
    assert_eq!((close.error_code.into_inner(), &close.reason[..]), (7, &b"enough"[..]));
    // Long after the connection is forgotten otherwise.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let mut records = Vec::new();
    for number in 0..3_u8 {
        assert_eq!(pair.server.recv_message().await.unwrap(), vec![number]);
        records.push(pair.server.recv_record().await.unwrap().offset);
    }
    records.sort_unstable();
    assert_eq!(records, [0, 1, 2]);
    assert!(pair.server.recv_message().await.is_err() && pair.server.recv_record().await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_handle_that_is_dropped_ends_the_connection() {
    let pair = Pair::connect(&["127.0.0.1"]).await;
    let (client, other) = (pair.client.clone(), pair.client);
    drop(client);
    other.send_message(b"still there"[..].into()).await.unwrap();
    assert_eq!(pair.server.recv_message().await.unwrap(), &b"still there"[..]);
    // Not even the runtime is needed for it.
    std::thread::spawn(move || drop(other)).join().unwrap();
    let ConnectionError::ApplicationClosed(close) = pair.server.closed().await else { panic!("another end") };
    assert_eq!(close.error_code.into_inner(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn datagrams_come_and_waiting_for_one_may_be_given_up() {
    let pair = Pair::connect(&["127.0.0.1"]).await;
    let waiting = tokio::time::timeout(Duration::from_millis(20), pair.server.recv_datagram());
    assert!(waiting.await.is_err(), "nothing was sent");
    assert!(pair.client.send_datagram(b"hello"));
    assert_eq!(pair.server.recv_datagram().await.unwrap(), &b"hello"[..]);
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
