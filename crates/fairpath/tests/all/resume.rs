//! Connections that are made again by themselves.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fairpath::{Connection, ConnectionError, Endpoint, Event, Events, Identity, RecvStream, SendStream, StreamError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UdpSocket;
use tokio::time::Instant;

/// A busy machine takes its time.
const PATIENCE: Duration = Duration::from_secs(40);

/// Passes datagrams on to a server and back, as long as it is not cut.
struct Relay {
    address: SocketAddr,
    is_cut: Arc<AtomicBool>,
    tries: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Relay {
    async fn start(server: SocketAddr) -> Self {
        let (inside, outside) =
            (UdpSocket::bind("127.0.0.1:0").await.unwrap(), UdpSocket::bind("127.0.0.1:0").await.unwrap());
        let (address, is_cut) = (inside.local_addr().unwrap(), Arc::new(AtomicBool::new(false)));
        let tries = Arc::new(Mutex::new(Vec::new()));
        let (cut, in_the_dark) = (is_cut.clone(), tries.clone());
        tokio::spawn(async move {
            let (mut client, mut there, mut back) = (None, [0; 1 << 16], [0; 1 << 16]);
            loop {
                let sent = tokio::select! {
                    Ok((length, from)) = inside.recv_from(&mut there) => {
                        client = Some(from);
                        (&outside, &there[..length], Some(server))
                    }
                    Ok((length, _)) = outside.recv_from(&mut back) => (&inside, &back[..length], client),
                };
                match (sent, cut.load(Ordering::Relaxed)) {
                    ((by, datagram, Some(to)), false) => _ = by.send_to(datagram, to).await,
                    ((_, datagram, _), true) => in_the_dark.lock().unwrap().extend(handshake_of(datagram)),
                    _ => {}
                }
            }
        });
        Self { address, is_cut, tries }
    }

    fn cut(&self, is_cut: bool) {
        self.is_cut.store(is_cut, Ordering::Relaxed);
    }

    /// Whether a try to connect, of those that it kept back, went on after another had begun.
    fn has_tries_side_by_side(&self) -> bool {
        let tries = self.tries.lock().unwrap();
        let goes_on_later =
            |at: usize| tries[at..].iter().skip_while(|id| **id == tries[at]).any(|id| *id == tries[at]);
        (0..tries.len()).any(goes_on_later)
    }
}

/// The connection that a packet of a handshake is meant for: the packets of one try have one ID [RFC9000 §17.2].
fn handshake_of(datagram: &[u8]) -> Option<Vec<u8>> {
    let is_long = datagram.first()? & 0x80 != 0;
    let length = usize::from(*datagram.get(5)?);
    datagram.get(6..6 + length).filter(|_| is_long).map(<[u8]>::to_vec)
}

/// Both ends of a connection through a relay in front of the server.
async fn behind_relay(within: Duration) -> (Endpoint, Relay, Connection, Connection) {
    let server = Endpoint::builder().identity(Identity::generate().unwrap()).via(["127.0.0.1"]).resume_within(within);
    let server = server.bind().unwrap();
    let relay = Relay::start(server.addresses()[0]).await;
    let client = Endpoint::builder().via(["127.0.61.1"]).resume_within(within).bind().unwrap();
    let trust = server.fingerprint().unwrap();
    let (ours, theirs) = tokio::join!(client.connect([relay.address], trust), server.accept());
    (server, relay, ours.unwrap(), theirs.unwrap())
}

async fn seen(events: &mut Events, wanted: impl Fn(&Event) -> bool) -> Event {
    let found = async {
        loop {
            let event = events.next().await.expect("it did not come");
            if wanted(&event) {
                return event;
            }
        }
    };
    tokio::time::timeout(PATIENCE, found).await.expect("in time")
}

/// Both ends of a connection that was cut off, and is interrupted.
struct CutOff {
    server: Endpoint,
    relay: Relay,
    ours: Connection,
    theirs: Connection,
    events: Events,
    send: SendStream,
    recv: RecvStream,
    /// Dropped, they would be reset.
    _halves: (SendStream, RecvStream),
}

impl CutOff {
    async fn new(within: Duration) -> Self {
        let (server, relay, ours, theirs) = behind_relay(within).await;
        let (mut send, recv) = ours.open_bi().await.unwrap();
        send.write_all(b"hello").await.unwrap();
        let _halves = theirs.accept_bi().await.unwrap();
        let mut events = ours.events();
        relay.cut(true);
        let reason = seen(&mut events, |event| matches!(event, Event::Interrupted(_))).await;
        assert_eq!(reason, Event::Interrupted(ConnectionError::TimedOut));
        Self { server, relay, ours, theirs, events, send, recv, _halves }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_lost_all_paths_is_made_again_and_its_streams_go_on() {
    let (server, relay, ours, theirs) = behind_relay(Duration::from_secs(60)).await;
    let (mut at_ours, mut at_theirs) = (ours.events(), theirs.events());
    let (mut send, mut recv) = ours.open_bi().await.unwrap();
    send.write_all(b"before ").await.unwrap();
    let (mut back, mut came) = theirs.accept_bi().await.unwrap();
    let mut read = [0; 7];
    came.read_exact(&mut read).await.unwrap();
    // Waits for the next stream across the interruption.
    let accepting = tokio::spawn({
        let theirs = theirs.clone();
        async move { theirs.accept_bi().await.map(|(_, recv)| recv) }
    });
    relay.cut(true);
    send.write_all(b"meanwhile ").await.unwrap();
    let reason = seen(&mut at_ours, |event| matches!(event, Event::Interrupted(_))).await;
    assert_eq!(reason, Event::Interrupted(ConnectionError::TimedOut));
    assert!(ours.is_interrupted() && ours.close_reason().is_none());
    relay.cut(false);
    // A stream that is opened meanwhile waits, too.
    let (mut more, _recv) = tokio::time::timeout(PATIENCE, ours.open_bi()).await.expect("in time").unwrap();
    more.write_all(b"more").await.unwrap();
    seen(&mut at_ours, |event| *event == Event::Resumed).await;
    seen(&mut at_theirs, |event| *event == Event::Resumed).await;
    assert!(!ours.is_interrupted());
    send.write_all(b"after").await.unwrap();
    send.finish().unwrap();
    let mut rest = String::new();
    came.read_to_string(&mut rest).await.unwrap();
    assert_eq!((&read[..], rest.as_str()), (&b"before "[..], "meanwhile after"));
    back.write_all(b"back").await.unwrap();
    back.finish().unwrap();
    let mut answer = String::new();
    recv.read_to_string(&mut answer).await.unwrap();
    assert_eq!(answer, "back");
    let mut opened = accepting.await.unwrap().unwrap();
    let mut read = [0; 4];
    opened.read_exact(&mut read).await.unwrap();
    assert_eq!(&read, b"more");
    // It is no other connection for the program that accepted it, and it ends as any.
    let other = tokio::time::timeout(Duration::from_millis(50), server.accept()).await;
    assert!(other.is_err(), "nobody new came");
    ours.close(5, "done").await;
    assert_eq!(theirs.closed().await, ConnectionError::Closed { code: 5, reason: "done".into() });
    seen(&mut at_theirs, |event| matches!(event, Event::Closed(ConnectionError::Closed { code: 5, .. }))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_that_was_out_of_reach_hears_that_the_connection_was_closed_meanwhile() {
    let CutOff { server, relay, ours, theirs, send, _halves, .. } = CutOff::new(Duration::from_secs(60)).await;
    // The program is done with all of it. The peer is out of reach as long as it waits.
    let begun = Instant::now();
    ours.close(7, "gone").await;
    assert!(begun.elapsed() >= Duration::from_secs(2), "given up after {:?}", begun.elapsed());
    assert_eq!(ours.closed().await, ConnectionError::LocallyClosed);
    drop((send, ours));
    relay.cut(false);
    let heard = tokio::time::timeout(PATIENCE, theirs.closed()).await.expect("within the time of resuming");
    assert_eq!(heard, ConnectionError::Closed { code: 7, reason: "gone".into() });
    drop(server);
}

/// A try that began in the dark sends again one second after it began, and then two seconds later.
#[tokio::test(flavor = "multi_thread")]
async fn a_try_to_go_on_begins_beside_one_that_began_in_the_dark() {
    let CutOff { relay, events, .. } = &mut CutOff::new(Duration::from_secs(60)).await;
    let begun = Instant::now();
    while !relay.has_tries_side_by_side() {
        assert!(begun.elapsed() < PATIENCE, "each try waited for the end of the one before");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    relay.cut(false);
    seen(events, |event| *event == Event::Resumed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_not_made_again_in_time_has_ended() {
    let CutOff { server: _server, ours, theirs, mut events, mut recv, .. } =
        CutOff::new(Duration::from_millis(300)).await;
    let error = recv.read_u8().await.unwrap_err();
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<StreamError>());
    assert_eq!(inner, Some(&StreamError::Connection(ConnectionError::TimedOut)), "{error}");
    assert_eq!(ours.closed().await, ConnectionError::TimedOut);
    assert_eq!(theirs.closed().await, ConnectionError::TimedOut);
    assert!(matches!(ours.open_bi().await, Err(ConnectionError::TimedOut)));
    seen(&mut events, |event| *event == Event::Closed(ConnectionError::TimedOut)).await;
}

/// A guest has no streams that could go on, and its place is wanted.
#[tokio::test(flavor = "multi_thread")]
async fn a_guest_that_is_lost_is_not_waited_for() {
    let builder = || Endpoint::builder().guard([7; 32]);
    let server = builder().identity(Identity::generate().unwrap()).via(["127.0.0.1"]).bind().unwrap();
    let relay = Relay::start(server.addresses()[0]).await;
    let client = builder().via(["127.0.62.1"]).bind().unwrap();
    let trust = server.fingerprint().unwrap();
    let (_ours, theirs) = tokio::join!(client.connect([relay.address], trust), server.accept());
    relay.cut(true);
    let ended = tokio::time::timeout(PATIENCE, theirs.unwrap().closed()).await;
    assert_eq!(ended.expect("in time"), ConnectionError::TimedOut);
}
