//! Both ends agree on the outcome, whatever is lost at the end.

use std::fs;

use fairpath_core::Bitrate;
use fairpath_emu::{Emulator, LinkConfig, LinkId};
use fairpath_quic::EngineConfig;
use tokio::sync::mpsc;

use super::*;
use crate::proof::Seal;
use crate::protocol::FromReceiver;
use crate::{Admission, DeliveryEvent, Purpose, Refusal};

#[tokio::test(flavor = "multi_thread")]
async fn a_sender_that_did_not_hear_that_all_is_in_place_is_told_so_when_it_comes_back() {
    let (from, to, net) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), Net::new());
    let path = from.path().join("x");
    fs::write(&path, content(100_000, 1)).unwrap();
    let waiting = receiver(to.path());
    let sender = Sender::new(Selection::collect(std::slice::from_ref(&path)).unwrap(), SECRET).unwrap();
    let (sending, receiving) = net.connect().await;
    let serving = serve(&waiting, receiving);
    sender.send(&sending).await.unwrap();
    let received = serving.await.unwrap().unwrap();
    assert!(received.is_confirmed && !received.is_repeat, "{received:?}");
    assert!(!waiting.is_open(), "the ticket is used up");

    // The same sender, as if the word had been lost; and another one with the same ticket.
    let (sending, receiving) = net.connect().await;
    let serving = serve(&waiting, receiving);
    let sent = sender.send(&sending).await.unwrap();
    let repeated = serving.await.unwrap().unwrap();
    assert_eq!((sent.sent.get(), sent.bytes.get()), (0, 100_000));
    assert!(repeated.is_confirmed && repeated.is_repeat, "{repeated:?}");
    assert_eq!(repeated.elapsed, received.elapsed);

    // Another process with the number of that sender, for example the same command started again, is told so too.
    // It reads its own files to check the proof. Of other files nothing is said to be in place.
    let again = |paths: &[PathBuf]| Sender::with_id(Selection::collect(paths).unwrap(), SECRET, sender.id());
    let (sending, receiving) = net.connect().await;
    let serving = serve(&waiting, receiving);
    let sent = again(std::slice::from_ref(&path)).send(&sending).await.unwrap();
    assert_eq!((sent.sent.get(), sent.files), (0, 1));
    assert!(serving.await.unwrap().unwrap().is_repeat);
    let other = from.path().join("other");
    fs::write(&other, content(100_000, 2)).unwrap();
    let (sending, receiving) = net.connect().await;
    let serving = serve(&waiting, receiving);
    let sent = again(&[other]).send(&sending).await;
    assert!(matches!(sent, Err(SendError::OtherFiles)), "{sent:?}");
    assert!(serving.await.unwrap().unwrap().is_repeat);

    let (refused, _) = net.transfer(&waiting, &[path]).await;
    assert!(matches!(refused, Err(SendError::Refused { refusal: Refusal::Used, .. })), "{refused:?}");
}

/// The word with which a receiver closes proves nothing; what it proved before counts, also without that word.
#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_closes_in_peace_is_believed_only_what_it_has_proved() {
    let (from, net) = (tempfile::tempdir().unwrap(), Net::new());
    let path = from.path().join("x");
    fs::write(&path, content(1_000, 1)).unwrap();
    let collect = || Selection::collect(std::slice::from_ref(&path)).unwrap();
    for (code, word, is_proved) in
        [(0u32, "done", true), (0, "done", false), (0, "", true), (1, "done", true), (0, "gone", true)]
    {
        let (sending, receiving) = net.connect().await;
        let closing = tokio::spawn(async move {
            let admission = Admission::new(SECRET, Purpose::Transfer);
            let control = admission.hear(&receiving).await.unwrap().admit().await.unwrap();
            control.write(&FromReceiver::Terms { hidden: true, has_all: false, in_order: false }).await.unwrap();
            control.write(&FromReceiver::Compare(vec![])).await.unwrap();
            control.write(&FromReceiver::Begin).await.unwrap();
            // Data flows.
            receiving.recv_record().await.unwrap();
            if is_proved {
                let proof = Seal::of(&receiving).unwrap().proof(0, blake3::hash(&content(1_000, 1)).as_bytes());
                control.write(&FromReceiver::Done(vec![(0, proof)])).await.unwrap();
                receiving.flushed(fairpath_quic::ChannelId::Messages).await.unwrap();
            }
            receiving.close(code, word);
            receiving.closed().await
        });
        let sent = Sender::new(collect(), SECRET).unwrap().send(&sending).await;
        match sent {
            Ok(_) => assert!(is_proved && (code, word) == (0, "done"), "{code} {word}"),
            Err(SendError::Unproved) => assert!(!is_proved),
            Err(error) => assert!(matches!(error, SendError::PeerGone(_)) && (code, word) != (0, "done"), "{error}"),
        }
        closing.await.unwrap();
    }
}

/// The connection is cut while the last words are on their way: the receiver has everything, and says so.
#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_has_everything_succeeds_whatever_becomes_of_the_connection() {
    let (to, net) = (tempfile::tempdir().unwrap(), Net::new());
    let waiting = receiver(to.path());
    let (sending, receiving) = net.connect().await;
    let serving = serve(&waiting, receiving);
    let control = malice::greet(&sending).await;
    malice::offer(&control, vec![]).await;
    malice::until_begin(&control).await;
    while waiting.progress().snapshot().phase != crate::Phase::Done {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    sending.close(9, "the cable was cut");
    // Whether the sender may know depends on which of the two was faster.
    let received = serving.await.unwrap();
    assert!(received.is_ok(), "{received:?}");
}

/// A listener behind two emulated links of 10 Mbit/s.
struct TwoLinks {
    listener: Listener,
    emulator: Emulator,
    /// The links of each: there, and back.
    links: Vec<[LinkId; 2]>,
    redial: ConnectConfig,
}

fn two_links() -> TwoLinks {
    let config = ListenConfig { via: vec!["127.0.0.1".into()], ..ListenConfig::new().unwrap() };
    let listener = Listener::bind(config).unwrap();
    let mut builder = Emulator::builder(1);
    let link = LinkConfig::new(Bitrate::from_mbps(10)).delay(Duration::from_millis(10));
    let links = (0..2).map(|path| {
        let links = ["there", "back"].map(|way| builder.link(&format!("{way} {path}"), &link).unwrap());
        builder.path(&links[..1], &links[1..], listener.addresses()[0]).unwrap();
        links
    });
    let links = links.collect();
    let emulator = builder.start().unwrap();
    let redial = ConnectConfig {
        via: vec!["127.0.0.1".into()],
        engine: EngineConfig::default(),
        ..ConnectConfig::new(emulator.relays().to_vec(), listener.fingerprint())
    };
    TwoLinks { listener, emulator, links, redial }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transfer_goes_on_over_a_new_connection_when_all_links_come_back() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = from.path().join("big");
    fs::write(&path, content(20_000_000, 1)).unwrap();
    let TwoLinks { listener, emulator, links, redial } = two_links();

    let waiting = receiver(to.path());
    let desk = waiting.clone();
    let received = tokio::spawn(async move {
        let mut tasks = tokio::task::JoinSet::new();
        loop {
            tokio::select! {
                Some(connection) = listener.accept() => {
                    let waiting = desk.clone();
                    tasks.spawn(async move { waiting.serve(waiting.admit(&connection).await?).await });
                }
                Some(ended) = tasks.join_next() => {
                    if let Ok(received) = ended.unwrap() {
                        return received;
                    }
                }
            }
        }
    });
    let first = connect(redial.clone()).await.unwrap();
    let sender = Arc::new(Sender::new(Selection::collect(&[path]).unwrap(), SECRET).unwrap());
    let (tell, mut events) = mpsc::unbounded_channel();
    let delivering = sender.clone();
    let sent = tokio::spawn(async move { delivering.deliver(first, &redial, Duration::from_secs(120), &tell).await });
    while sender.progress().snapshot().bytes_done.get() < 3_000_000 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    links.iter().flatten().for_each(|&link| emulator.set_link_up(link, false));
    // Longer than a connection lives.
    let lost = events.recv().await.unwrap();
    assert!(matches!(&lost, DeliveryEvent::Lost { .. }), "{lost:?}");
    assert!(!sent.is_finished());
    links[0].iter().for_each(|&link| emulator.set_link_up(link, true));
    let (sent, received) = (sent.await.unwrap().unwrap(), received.await.unwrap());
    assert!(sent.reconnections >= 1 && received.reconnections >= 1, "{sent:?} {received:?}");
    assert_eq!((sent.resumed.get(), received.resumed.get()), (0, 0), "what it brought itself was not there before");
    assert!(sent.sent.get() < 18_500_000, "what was in place was not sent again: {sent:?}");
    assert!(received.elapsed > Duration::from_secs(5), "{received:?}");
    assert_eq!(fs::read(to.path().join("big")).unwrap(), content(20_000_000, 1));
}

/// A listener on loopback, how to reach it, and the two ends of a connection to it.
async fn one_link() -> (Listener, ConnectConfig, Connection, Connection) {
    let config = ListenConfig { via: vec!["127.0.0.1".into()], ..ListenConfig::new().unwrap() };
    let listener = Listener::bind(config).unwrap();
    let redial = ConnectConfig::new(listener.addresses(), listener.fingerprint());
    let (first, receiving) = tokio::join!(connect(redial.clone()), listener.accept());
    (listener, redial, first.unwrap(), receiving.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn who_gives_up_at_once_does_not_connect_again() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = from.path().join("x");
    fs::write(&path, content(1_000, 1)).unwrap();
    let (_listener, redial, first, receiving) = one_link().await;
    let waiting = receiver(to.path());
    let sender = Sender::new(Selection::collect(&[path]).unwrap(), SECRET).unwrap();
    let (tell, mut events) = mpsc::unbounded_channel();
    let cut = async {
        let _admitted = waiting.admit(&receiving).await.unwrap();
        receiving.close(9, "the cable was cut");
    };
    let (sent, ()) = tokio::join!(sender.deliver(first, &redial, Duration::ZERO, &tell), cut);
    assert!(matches!(&sent, Err(SendError::PeerGone(why)) if why.contains("cut")), "{sent:?}");
    assert!(events.try_recv().is_err(), "nothing was tried");
}

/// As a receiver of a lasting ticket does when it is stopped and started again.
#[tokio::test(flavor = "multi_thread")]
async fn a_sender_comes_back_to_a_receiver_that_says_it_will_be_there_again() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = from.path().join("x");
    fs::write(&path, content(1_000, 1)).unwrap();
    let (listener, redial, first, receiving) = one_link().await;
    let sender = Sender::new(Selection::collect(&[path]).unwrap(), SECRET).unwrap();
    let (tell, mut events) = mpsc::unbounded_channel();
    let restarted = async {
        let _admitted = receiver(to.path()).admit(&receiving).await.unwrap();
        receiving.close(crate::COMES_BACK, "the receiver is being restarted");
        let (connection, again) = (listener.accept().await.unwrap(), receiver(to.path()));
        again.serve(again.admit(&connection).await?).await
    };
    let (sent, received) = tokio::join!(sender.deliver(first, &redial, Duration::from_secs(60), &tell), restarted);
    assert_eq!((sent.unwrap().reconnections, received.unwrap().files), (1, 1));
    let lost = events.recv().await.unwrap();
    assert!(matches!(&lost, DeliveryEvent::Lost { why } if why.contains("restarted")), "{lost:?}");
}

/// Existing files are read before anything is sent, and a slow disk takes its time for that.
#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_says_how_far_its_reading_is_is_not_given_up() {
    let from = tempfile::tempdir().unwrap();
    let path = from.path().join("x");
    fs::write(&path, content(1_000, 1)).unwrap();
    let (_listener, redial, first, receiving) = one_link().await;
    let sender = Sender::new(Selection::collect(&[path]).unwrap(), SECRET).unwrap();
    let (tell, _events) = mpsc::unbounded_channel();
    let patience = Duration::from_secs(3);
    let slow_receiver = async {
        let admission = Admission::new(SECRET, Purpose::Transfer);
        let control = admission.hear(&receiving).await.unwrap().admit().await.unwrap();
        control.write(&FromReceiver::Terms { hidden: true, has_all: false, in_order: false }).await.unwrap();
        control.write(&FromReceiver::Compare(vec![0])).await.unwrap();
        control.write(&FromReceiver::Compare(vec![])).await.unwrap();
        for read in 1..=12 {
            control.write(&FromReceiver::Examined(read * 1_000_000)).await.unwrap();
            tokio::time::sleep(patience / 6).await;
        }
        // The sender has read its own as well.
        assert_eq!(sender.progress().snapshot().bytes_examined.get(), 12_001_000);
        let proof = Seal::of(&receiving).unwrap().proof(0, blake3::hash(&content(1_000, 1)).as_bytes());
        control.write(&FromReceiver::Same(vec![(0, proof)])).await.unwrap();
        control.write(&FromReceiver::Begin).await.unwrap();
        control.write(&FromReceiver::Complete).await.unwrap();
        receiving.closed().await
    };
    let (sent, _) = tokio::join!(sender.deliver(first, &redial, patience, &tell), slow_receiver);
    assert_eq!(sent.unwrap().sent.get(), 0);
}

/// Each direction has one path of its own from a while after the beginning on. What was on its way when the
/// other directions failed has to go elsewhere, over the same connection: no new one can be made, since a
/// handshake needs one path both ways.
async fn goes_on_with_one_direction_each(there: usize, back: usize) {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = from.path().join("big");
    fs::write(&path, content(12_000_000, 1)).unwrap();
    let TwoLinks { listener, emulator, links, redial } = two_links();
    let waiting = receiver(to.path());
    let desk = waiting.clone();
    let received = tokio::spawn(async move {
        let connection = listener.accept().await.unwrap();
        desk.serve(desk.admit(&connection).await?).await
    });
    let first = connect(redial.clone()).await.unwrap();
    assert!(first.paths_open(2, Duration::from_secs(10)).await);
    let sender = Sender::new(Selection::collect(std::slice::from_ref(&path)).unwrap(), SECRET).unwrap();
    let (events, mut happened) = mpsc::unbounded_channel();
    let progress = sender.progress();
    let sending = tokio::spawn(async move { sender.deliver(first, &redial, Duration::from_secs(120), &events).await });
    while progress.snapshot().bytes_done.get() < 3_000_000 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    [links[1 - there][0], links[1 - back][1]].into_iter().for_each(|link| emulator.set_link_up(link, false));
    // The rest takes 8 s over one link; more time is for machines that do other work.
    let sent = tokio::time::timeout(Duration::from_secs(60), sending).await.expect("in time").unwrap().unwrap();
    let received = received.await.unwrap().unwrap();
    assert_eq!((sent.bytes, sent.reconnections, received.reconnections), (received.bytes, 0, 0));
    assert!(happened.recv().await.is_none(), "the connection lived on");
    assert_eq!(fs::read(to.path().join("big")).unwrap(), fs::read(&path).unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transfer_goes_on_there_by_the_first_path_and_back_by_the_second() {
    goes_on_with_one_direction_each(0, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transfer_goes_on_there_by_the_second_path_and_back_by_the_first() {
    goes_on_with_one_direction_each(1, 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transfer_goes_on_by_the_first_path_alone() {
    goes_on_with_one_direction_each(0, 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transfer_goes_on_by_the_second_path_alone() {
    goes_on_with_one_direction_each(1, 1).await;
}
