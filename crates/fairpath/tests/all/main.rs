//! The library as its users have it, over loopback; and its examples, as they run.

mod examples;
mod resume;
mod signatures;

use std::net::UdpSocket;
use std::time::Duration;

use fairpath::live::{LiveConfig, LivePacket};
use fairpath::{
    Amount, Congestion, Connection, ConnectionError, Coupling, Detector, Endpoint, Error, Event, Identity, PathState,
    RECORD_MAX, Record, Scheduler, SendError, StreamError, StreamLimits, Trust,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Both ends of a connection, the first of which dialed over two addresses.
async fn pair() -> (Endpoint, Connection, Connection) {
    let server = Endpoint::builder().identity(Identity::generate().unwrap()).via(["127.0.0.1"]).bind().unwrap();
    let client = Endpoint::builder().via(["127.0.51.1", "127.0.52.1"]).bind().unwrap();
    let (ours, theirs) = meet(&client, &server).await;
    (server, ours, theirs)
}

async fn meet(from: &Endpoint, to: &Endpoint) -> (Connection, Connection) {
    let (ours, theirs) = tokio::join!(from.connect(to.addresses(), to.fingerprint().unwrap()), to.accept());
    (ours.unwrap(), theirs.unwrap())
}

#[tokio::test]
async fn streams_end_as_their_programs_say() {
    let (_server, ours, theirs) = pair().await;
    let (mut send, mut recv) = ours.open_bi().await.unwrap();
    send.write_all(b"there").await.unwrap();
    let (mut back, mut came) = theirs.accept_bi().await.unwrap();
    assert_eq!(send.id().to_string(), came.id().to_string());
    let mut heard = [0; 5];
    came.read_exact(&mut heard).await.unwrap();
    assert_eq!(&heard, b"there");
    // Each direction ends by itself, and the code of an end is found in an error of the standard library.
    back.write_all(b"back").await.unwrap();
    back.finish().unwrap();
    let mut answer = Vec::new();
    recv.read_to_end(&mut answer).await.unwrap();
    back.arrived().await.unwrap();
    assert_eq!(answer, b"back");
    send.reset(9);
    let error = came.read(&mut heard).await.unwrap_err();
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<StreamError>());
    assert_eq!(inner, Some(&StreamError::Reset(9)), "{error}");
    let (mut send, recv) = ours.open_bi().await.unwrap();
    send.write_all(b"more").await.unwrap();
    let (_, mut came) = theirs.accept_bi().await.unwrap();
    came.stop(4);
    assert_eq!(send.arrived().await, Err(StreamError::Stopped(4)));
    drop((send, recv));
    theirs.close(3, "enough").await;
    assert_eq!(ours.closed().await, ConnectionError::Closed { code: 3, reason: "enough".into() });
    assert!(matches!(ours.open_bi().await, Err(ConnectionError::Closed { code: 3, .. })));
}

#[tokio::test]
async fn messages_records_datagrams_and_live_packets_arrive_and_figures_say_so() {
    let (_server, ours, theirs) = pair().await;
    ours.send_message("a message").await.unwrap();
    let record = Record { object: 1, offset: 7, data: vec![5; 70_000].into() };
    ours.send_record(record.clone()).await.unwrap();
    ours.flushed().await.unwrap();
    assert_eq!(&theirs.recv_message().await.unwrap()[..], b"a message");
    assert_eq!(theirs.recv_record().await.unwrap(), record);
    let error = ours.send_record(Record { data: vec![0; RECORD_MAX + 1].into(), ..record }).await.unwrap_err();
    assert_eq!(error, SendError::TooLarge { bytes: RECORD_MAX + 1, most: RECORD_MAX });
    ours.send_datagram(b"a datagram").unwrap();
    assert_eq!(&theirs.recv_datagram().await.unwrap()[..], b"a datagram");
    for end in [&ours, &theirs] {
        end.begin_live(LiveConfig::new(Duration::from_millis(500)));
    }
    let mut ticks = tokio::time::interval(Duration::from_millis(10));
    let live = async {
        loop {
            ticks.tick().await;
            let _ = ours.send_live(LivePacket { flow: 0, data: b"a picture", marked: false });
        }
    };
    tokio::select! {
        () = live => {}
        packet = theirs.recv_live() => assert_eq!(&packet.unwrap().data[..], b"a picture"),
    }
    assert!(ours.paths_open(2, Duration::from_secs(5)).await);
    let stats = ours.stats().await;
    assert!(stats.acked > Amount::new(70_000) && stats.paths.len() == 2, "{stats:?}");
    assert!(stats.paths.iter().all(|path| path.state == PathState::Open && path.group.is_some()), "{stats:?}");
    assert!(stats.live.is_some_and(|live| live.packets > 0));
    let mut keys = [[0; 16]; 2];
    assert!(
        ours.export_keying_material(&mut keys[0], b"label", b"")
            && theirs.export_keying_material(&mut keys[1], b"label", b"")
    );
    assert!(keys[0] == keys[1] && keys[0] != [0; 16]);
}

#[tokio::test]
async fn an_endpoint_dials_and_accepts_over_sockets_of_the_program() {
    let bind = |address: &str| UdpSocket::bind(address).unwrap();
    let identity = Identity::generate().unwrap();
    let kept = Identity::from_bytes(&identity.to_bytes()).unwrap();
    assert_eq!(kept.fingerprint(), identity.fingerprint());
    let builder =
        Endpoint::builder().alpn(b"test/1").identity(kept).sockets([bind("127.0.53.1:0"), bind("127.0.54.1:0")]);
    let builder = builder.congestion(Congestion::Olia).scheduler(Scheduler::MinRtt).coupling(Coupling::Always);
    let builder = builder.detector(Detector::Trendline).streams(StreamLimits::default().open_max(4));
    let one = builder.bind().unwrap();
    assert_eq!(one.addresses().len(), 2);
    let other = Endpoint::builder().alpn(b"test/1").identity(Identity::generate().unwrap()).via(["127.0.55.1"]);
    let other = other.bind().unwrap();
    for (from, to) in [(&one, &other), (&other, &one)] {
        let (ours, theirs) = meet(from, to).await;
        assert!(ours.paths_open(2, Duration::from_secs(5)).await);
        let port = one.addresses()[0].port();
        let reports = if from.addresses() == one.addresses() { theirs.paths() } else { ours.paths() };
        assert!(reports.iter().any(|path| path.remote.port() == port), "{reports:?}");
    }
    let stranger = Endpoint::builder().via(["127.0.56.1"]).bind().unwrap();
    let error = stranger.connect(one.addresses(), one.fingerprint().unwrap()).await.unwrap_err();
    assert!(matches!(&error, Error::Handshake { reason, .. } if reason.contains("ALPN")), "{error}");
    assert!(stranger.accept().await.is_none());
}

#[tokio::test]
async fn errors_say_what_to_do_and_name_no_command() {
    let bind = |builder: fairpath::Builder| builder.bind().unwrap_err();
    let identity = || Endpoint::builder().identity(Identity::generate().unwrap());
    let unknown = bind(identity().via(["wwan9"]));
    let everywhere = bind(Endpoint::builder().sockets([UdpSocket::bind("0.0.0.0:0").unwrap()]));
    let taken = UdpSocket::bind("127.0.57.1:0").unwrap().local_addr().unwrap();
    let _taken = UdpSocket::bind(taken).unwrap();
    let in_use = bind(identity().listen(taken));
    let client = Endpoint::builder().via(["127.0.58.1"]).bind().unwrap();
    let fingerprint = Identity::generate().unwrap().fingerprint();
    let family = client.connect(["[2001:db8::1]:9".parse().unwrap()], fingerprint).await.unwrap_err();
    let nobody = client.connect([taken], fingerprint);
    drop(_taken);
    let nobody = nobody.await.unwrap_err();
    let pem = Trust::authorities("", "host.example").unwrap_err();
    let text = "12".parse::<fairpath::Fingerprint>().unwrap_err();
    let none = Error::NoUsableInterface;
    for (error, word) in [
        (unknown, "'wwan9'"),
        (everywhere, "bind it to an address"),
        (in_use, "cannot listen on 127.0.57.1"),
        (family, "2001:db8::1"),
        (nobody, "(refused)"),
        (pem, "BEGIN CERTIFICATE"),
        (text.into(), "64 hexadecimal digits"),
        (none, "interfaces()"),
    ] {
        let error = error.to_string();
        assert!(error.contains(word) && !error.contains("fairpath ") && !error.contains("--"), "{error}");
    }
    assert!(fairpath::interfaces().unwrap().iter().all(|one| !one.unused.as_deref().unwrap_or("").contains("--")));
}

#[tokio::test]
async fn events_end_with_the_connection_and_do_not_keep_it_open() {
    let (_server, ours, theirs) = pair().await;
    let mut events = ours.events();
    drop(ours);
    let end = tokio::time::timeout(Duration::from_secs(5), async {
        let mut last = None;
        while let Some(event) = events.next().await {
            last = Some(event);
        }
        last
    });
    assert_eq!(end.await.unwrap(), Some(Event::Closed(ConnectionError::LocallyClosed)));
    assert_eq!(theirs.closed().await, ConnectionError::Closed { code: 0, reason: String::new() });
}
