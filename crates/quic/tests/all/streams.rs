//! Streams over loopback, as a program of tokio has them.

use std::time::Duration;

use bytes::Bytes;
use fairpath_quic::{
    ConnectConfig, Connection, ConnectionError, DROPPED, RecvStream, ResumeError, SendStream, StreamError, StreamFault,
    StreamKind, StreamsConfig, connect,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::common::Pair;

/// Two ends on two paths that both may open streams.
async fn ends() -> Pair {
    let pair = Pair::connect(&["127.0.1.1", "127.0.2.1"]).await;
    assert!(pair.client.paths_open(2, Duration::from_secs(10)).await, "{:?}", pair.client.paths());
    [&pair.client, &pair.server].into_iter().for_each(|end| end.begin_streams(StreamsConfig::default()));
    pair
}

fn content(length: usize, salt: u8) -> Vec<u8> {
    (0..length).map(|at| (at.wrapping_mul(0x9E37_79B9) >> 13) as u8 ^ salt).collect()
}

/// Sends back what comes on each stream of the peer, whose kind is 7.
async fn echo(server: Connection) {
    while let Ok((kind, mut send, mut recv)) = server.accept_bi().await {
        assert_eq!(kind, StreamKind(7));
        tokio::spawn(async move {
            tokio::io::copy(&mut recv, &mut send).await.expect("the peer ends well");
            send.shutdown().await.expect("open");
            send.arrived().await.expect("all arrives");
        });
    }
}

async fn call((mut send, mut recv): (SendStream, RecvStream), content: &[u8]) -> std::io::Result<Vec<u8>> {
    let (first, rest) = content.split_at(content.len() / 2);
    let (mut back, write) = (Vec::new(), async {
        send.write_all(first).await?;
        send.write_chunk(Bytes::copy_from_slice(rest)).await?;
        send.shutdown().await
    });
    let (written, read) = tokio::join!(write, recv.read_to_end(&mut back));
    written.and(read).map(|_| back)
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_carry_bytes_both_ways_over_two_paths() {
    let pair = ends().await;
    let server = tokio::spawn(echo(pair.server.clone()));
    let calls = (0..20_u8).map(|salt| {
        let client = pair.client.clone();
        tokio::spawn(async move {
            let content = content(if salt == 0 { 8 << 20 } else { usize::from(salt) * 1_000 }, salt);
            let stream = client.open_bi(StreamKind(7)).await.expect("allowed");
            assert!(call(stream, &content).await.expect("echoed") == content, "stream {salt} is damaged");
        })
    });
    for call in calls.collect::<Vec<_>>() {
        call.await.expect("no panic");
    }
    let carried: Vec<_> = pair.client.snapshots().1.iter().map(|path| path.delivered.get()).collect();
    assert!(carried.len() == 2 && carried.iter().all(|bytes| *bytes > 100_000), "{carried:?}");
    pair.client.close(0, "done");
    server.await.expect("it ends with the connection");
}

#[tokio::test]
async fn each_end_of_a_stream_reaches_the_other_side() {
    let pair = ends().await;
    let open = || async {
        let (mut send, recv) = pair.client.open_bi(StreamKind(1)).await.expect("allowed");
        send.write_all(b"hello").await.expect("open");
        let (_, theirs, mut read) = pair.server.accept_bi().await.expect("opened");
        assert_eq!(&read.read_chunk(100).await.expect("open").expect("data")[..], b"hello");
        (send, recv, theirs, read)
    };
    let fault = |error: std::io::Error| {
        error.get_ref().and_then(|inner| inner.downcast_ref::<StreamFault>()).cloned().expect("a fault of streams")
    };

    // A writer that gives up.
    let (mut send, _recv, _theirs, mut read) = open().await;
    send.reset(9);
    let error = read.read_u8().await.expect_err("reset");
    assert!(matches!(fault(error), StreamFault::Stream(StreamError::Reset(9))));

    // A writer that is dropped.
    let (send, _recv, _theirs, mut read) = open().await;
    drop(send);
    let error = read.read_u8().await.expect_err("reset");
    assert!(matches!(fault(error), StreamFault::Stream(StreamError::Reset(DROPPED))));

    // A reader that wants no more, and a writer that waits for all to arrive.
    let (mut send, _recv, _theirs, mut read) = open().await;
    let (arrived, ()) = tokio::join!(send.arrived(), async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        read.stop(5);
    });
    assert!(matches!(arrived, Err(StreamFault::Stream(StreamError::Stopped(5)))), "{arrived:?}");

    // The end of the connection.
    let (mut send, mut recv, ..) = open().await;
    pair.server.close(3, "enough");
    let error = recv.read_u8().await.expect_err("closed");
    let StreamFault::Connection(ConnectionError::ApplicationClosed(close)) = fault(error) else {
        panic!("another fault")
    };
    assert_eq!(close.error_code.into_inner(), 3);
    assert!(send.write_all(b"more").await.is_err());
}

#[tokio::test]
async fn giving_up_on_a_stream_that_has_not_come_loses_none() {
    let pair = ends().await;
    for _ in 0..20 {
        let soon = Duration::from_millis(1);
        assert!(tokio::time::timeout(soon, pair.server.accept_bi()).await.is_err(), "none was opened");
    }
    let (mut send, _recv) = pair.client.open_bi(StreamKind(2)).await.expect("allowed");
    let (kind, _send, mut recv) = pair.server.accept_bi().await.expect("opened");
    assert_eq!(kind, StreamKind(2));
    let mut byte = [0];
    let early = tokio::time::timeout(Duration::from_millis(5), recv.read(&mut byte)).await;
    assert!(early.is_err(), "nothing was written");
    send.write_all(b"x").await.expect("open");
    assert_eq!(recv.read_u8().await.expect("written"), b'x');
}

/// Another connection to the same listener, of which both ends have their handles.
async fn again(pair: &Pair) -> (Connection, Connection) {
    let config = ConnectConfig {
        via: vec!["127.0.0.1".into()],
        ..ConnectConfig::new(pair.listener.addresses(), pair.listener.fingerprint())
    };
    let (client, server) = tokio::join!(connect(config), pair.listener.accept());
    let (client, server) = (client.expect("a connection"), server.expect("a connection"));
    server.begin_streams(StreamsConfig::default());
    (client, server)
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_go_on_on_another_connection_and_no_half_notices() {
    let pair = ends().await;
    tokio::spawn(echo(pair.server.clone()));
    let content = content(16 << 20, 1);
    let (mut send, mut recv) = pair.client.open_bi(StreamKind(7)).await.expect("allowed");
    let (mut back, write) = (vec![0; content.len()], async {
        send.write_all(&content).await.expect("no half notices");
        send.shutdown().await.expect("no half notices");
        send.arrived().await.expect("no half notices");
    });
    let (first, rest) = back.split_at_mut(1 << 20);
    let read = async {
        recv.read_exact(first).await.expect("echoed");
        let next = again(&pair).await;
        next.0.resume_streams(&pair.client).expect("it was just made");
        assert_eq!(next.0.resume_streams(&pair.client), Err(ResumeError::Gone), "they are not there any more");
        assert_eq!(next.1.resume_streams(&pair.server), Err(ResumeError::Accepted), "it needs not");
        recv.read_exact(rest).await.expect("no half notices");
        assert_eq!(recv.read(&mut [0]).await.expect("no half notices"), 0, "the end");
        next
    };
    let ((), (client, server)) = tokio::join!(write, read);
    assert!(back == content, "it is damaged");
    assert!(client.close_reason().is_none() && pair.client.close_reason().is_some());
    // On the next connection streams are opened as on any.
    tokio::spawn(echo(server));
    let stream = client.open_bi(StreamKind(7)).await.expect("allowed");
    assert_eq!(call(stream, b"more").await.expect("echoed"), b"more");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_that_does_not_know_the_streams_ends_them_and_takes_new_ones() {
    let (pair, other) = tokio::join!(ends(), Pair::connect(&["127.0.0.1"]));
    let (mut send, mut recv) = pair.client.open_bi(StreamKind(7)).await.expect("allowed");
    send.write_all(b"hello").await.expect("open");
    let (_, _theirs, mut read) = pair.server.accept_bi().await.expect("opened");
    assert_eq!(read.read_u8().await.expect("written"), b'h');
    other.server.begin_streams(StreamsConfig::default());
    other.client.resume_streams(&pair.client).expect("it is not known yet");
    let error = recv.read_u8().await.expect_err("another server");
    let fault = error.get_ref().and_then(|inner| inner.downcast_ref::<StreamFault>());
    assert!(matches!(fault, Some(StreamFault::Lost)), "{fault:?}");
    tokio::spawn(echo(other.server.clone()));
    let stream = other.client.open_bi(StreamKind(7)).await.expect("allowed");
    assert_eq!(call(stream, b"anew").await.expect("echoed"), b"anew");
    other.client.close(0, "done");
    let (next, _server) = again(&other).await;
    assert_eq!(next.resume_streams(&other.client), Err(ResumeError::Gone), "it was closed, not lost");
}
