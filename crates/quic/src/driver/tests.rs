use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use fairpath_quic_core::ChannelId;

use super::*;
use crate::{ConnectConfig, Connection, DialConfig, Dialer, ListenConfig, Listener, PathControl, connect};

/// How long a busy machine may take over what takes some round trips.
const PATIENCE: Duration = Duration::from_secs(20);

async fn pair() -> (Listener, Connection, Connection) {
    let via = vec!["127.0.0.1".to_owned()];
    let listener = Listener::bind(ListenConfig { via, ..ListenConfig::new().unwrap() }).unwrap();
    let config = ConnectConfig::new(listener.addresses(), listener.fingerprint());
    let (client, server) = tokio::join!(connect(config), listener.accept());
    (listener, client.unwrap(), server.unwrap())
}

async fn is_gone(shared: Weak<Shared>) {
    let gone = async {
        while shared.strong_count() > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.expect("the endpoint is let go");
}

#[tokio::test(flavor = "multi_thread")]
async fn endpoints_end_when_nobody_uses_them_any_more() {
    let (listener, client, server) = pair().await;
    let [at_client, at_server] = [&client, &server].map(|end| Arc::downgrade(&end.handle().shared));
    drop(listener);
    client.send_message(b"still"[..].into()).await.unwrap();
    assert_eq!(server.recv_message().await.unwrap(), &b"still"[..], "without the listener");
    drop(client);
    server.closed().await;
    drop(server);
    is_gone(at_client).await;
    is_gone(at_server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_panics_with_the_lock_in_its_hands_stops_nobody() {
    let (_listener, client, server) = pair().await;
    let clumsy = client.clone();
    let panicked = std::thread::spawn(move || clumsy.with(|_, _| panic!("on purpose"))).join();
    assert!(panicked.is_err());
    client.send_message(b"all the same"[..].into()).await.unwrap();
    assert_eq!(server.recv_message().await.unwrap(), &b"all the same"[..]);
}

#[test]
fn nobody_waits_for_ever_where_the_runtime_of_an_endpoint_ended() {
    let runtime = || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let first = runtime();
    let (listener, client, server) = first.block_on(pair());
    let waiting = std::thread::spawn({
        let server = server.clone();
        move || runtime().block_on(async { tokio::join!(server.recv_record(), server.closed()).0 })
    });
    std::thread::sleep(Duration::from_millis(50));
    first.shutdown_background();
    assert!(waiting.join().unwrap().is_err());
    runtime().block_on(async {
        // Each endpoint's driver ends by itself, the one a moment after the other.
        client.closed().await;
        assert!(client.send_message(b"x"[..].into()).await.is_err());
        assert!(client.flushed(ChannelId::Bulk).await.is_ok(), "nothing was queued");
        assert!(listener.accept().await.is_none());
        client.end(0, "").await;
        listener.close(0, "").await;
    });
}

/// The peer's messages come while waiting for them is given up again and again, after times as they happen.
#[tokio::test(flavor = "multi_thread")]
async fn waiting_that_is_given_up_loses_nothing() {
    const COUNT: u32 = 3_000;
    let (_listener, client, server) = pair().await;
    let sending = tokio::spawn(async move {
        for number in 0..COUNT {
            client.send_message(Bytes::copy_from_slice(&number.to_be_bytes())).await.unwrap();
            if number % 7 == 0 {
                tokio::task::yield_now().await;
            }
        }
        client.flushed(ChannelId::Messages).await.unwrap();
        client
    });
    let receiving = async {
        let mut expected = 0;
        while expected < COUNT {
            tokio::select! {
                biased;
                message = server.recv_message() => {
                    assert_eq!(message.unwrap(), expected.to_be_bytes().as_slice());
                    expected += 1;
                }
                _ = server.recv_record() => panic!("nobody sent any"),
                () = tokio::task::yield_now() => {}
            }
        }
    };
    tokio::time::timeout(PATIENCE, receiving).await.expect("all messages");
    sending.await.unwrap();
}

/// Two connections over one dialer, of which the first is held until the second was looked at, and made ready to send.
#[test]
fn a_connection_that_is_held_keeps_no_other_of_its_endpoint_waiting() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (_listener, first, second) = runtime.block_on(async {
        let via = vec!["127.0.0.1".to_owned()];
        let listener = Listener::bind(ListenConfig { via, ..ListenConfig::new().unwrap() }).unwrap();
        let (application, machine) = (crate::Application::Fairpath, crate::Machine::default());
        let datagram_max = crate::DATAGRAM_MAX;
        let (allowances, control) = (Vec::new(), PathControl::new());
        let dialer = Dialer::new(DialConfig { application, datagram_max, allowances, control, machine }).unwrap();
        let config = || ConnectConfig::new(listener.addresses(), listener.fingerprint());
        let (first, _) = tokio::join!(dialer.connect(config()), listener.accept());
        let (second, _) = tokio::join!(dialer.connect(config()), listener.accept());
        (listener, first.unwrap(), second.unwrap())
    });
    assert!(Arc::ptr_eq(&first.handle().shared, &second.handle().shared), "of one endpoint");
    let (done, is_done) = std::sync::mpsc::channel();
    let is_in_time = first.with(|_, _| {
        std::thread::spawn(move || {
            second.with(|connection, _| connection.send_message(b"x"[..].into())).unwrap();
            done.send(()).unwrap();
        });
        is_done.recv_timeout(PATIENCE).is_ok()
    });
    assert!(is_in_time, "the second waited for the first");
}
