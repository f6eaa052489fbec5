use std::fs;

use super::*;

use crate::manifest::PARTIAL;
use crate::{AdmissionError, DeliveryEvent, Progress, Refusal, SenderId};

const SIZE: usize = 48_000_000;

/// A second sender is refused no sooner than this, because packets of the first may be queued for
/// as long.
const SILENCE_MIN: Duration = Duration::from_secs(3);

async fn until_done(progress: &Progress, bytes: u64) {
    while progress.snapshot().bytes_done.get() < bytes {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Starts a transfer and cuts the connection when about half is written.
async fn cut_in_the_middle(net: &Net, receiver: &Arc<Receiver>, path: &Path) -> ReceiveError {
    let (sending, receiving) = net.connect().await;
    let sender = Sender::new(Selection::collect(&[path.to_owned()]).unwrap(), SECRET).unwrap();
    let serving = serve(receiver, receiving);
    let connection = sending.clone();
    let sent = tokio::spawn(async move { sender.send(&connection).await });
    until_done(&receiver.progress(), SIZE as u64 / 3).await;
    sending.close(9, "the cable was cut");
    assert!(matches!(sent.await.unwrap(), Err(SendError::PeerGone(_))));
    serving.await.unwrap().unwrap_err()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_transfer_resumes_and_sends_only_what_is_missing() {
    let (from, to, net) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), Net::new());
    let path = from.path().join("big");
    fs::write(&path, content(SIZE, 1)).unwrap();
    let waiting = receiver(to.path());
    let error = cut_in_the_middle(&net, &waiting, &path).await;
    assert!(matches!(&error, ReceiveError::PeerGone(why) if why.contains("cut")), "{error}");
    assert!(error.is_retryable() && waiting.is_open(), "the ticket is still good");
    assert_eq!(names(to.path()).len(), 3, "nothing under the final name: {:?}", names(to.path()));

    let (sent, received) = net.transfer(&waiting, &[path]).await;
    let (sent, received) = (sent.unwrap(), received.unwrap());
    assert!(sent.resumed.get() >= SIZE as u64 / 3, "{sent:?}");
    assert_eq!(sent.sent + sent.resumed, sent.bytes);
    assert_eq!(received.resumed, sent.resumed);
    assert_eq!(fs::read(to.path().join("big")).unwrap(), content(SIZE, 1));
    assert_eq!(names(to.path()), ["big"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lie_of_the_disk_is_found_by_the_digest_and_everything_sent_again() {
    let (from, to, net) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), Net::new());
    let path = from.path().join("big");
    fs::write(&path, content(SIZE, 1)).unwrap();
    let waiting = receiver(to.path());
    cut_in_the_middle(&net, &waiting, &path).await;
    let part = names(to.path()).into_iter().find(|name| name.ends_with(".part")).unwrap();
    let mut data = fs::read(to.path().join(&part)).unwrap();
    data[1000] ^= 1;
    fs::write(to.path().join(&part), data).unwrap();

    let sent = net.transfer(&waiting, &[path]).await.0.unwrap();
    assert!(sent.sent >= sent.bytes, "all of it again: {sent:?}");
    assert_eq!(fs::read(to.path().join("big")).unwrap(), content(SIZE, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_changed_in_between_starts_from_nothing() {
    let (from, to, net) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), Net::new());
    let path = from.path().join("big");
    fs::write(&path, content(SIZE, 1)).unwrap();
    let waiting = receiver(to.path());
    cut_in_the_middle(&net, &waiting, &path).await;
    fs::write(&path, content(SIZE, 2)).unwrap();
    let sent = net.transfer(&waiting, &[path]).await.0.unwrap();
    assert_eq!(sent.resumed.get(), 0);
    assert_eq!(fs::read(to.path().join("big")).unwrap(), content(SIZE, 2));
}

/// A sender that got as far as the data and then says nothing more.
struct Halted {
    connection: Connection,
    serving: JoinHandle<Result<Received, ReceiveError>>,
}

impl Halted {
    async fn start(net: &Net, receiver: &Arc<Receiver>, id: SenderId) -> Self {
        let (connection, receiving) = net.connect().await;
        let serving = serve(receiver, receiving);
        let control = malice::greet_as(&connection, id).await;
        malice::offer(&control, vec![malice::file("x", 1_000_000)]).await;
        malice::until_begin(&control).await;
        Self { connection, serving }
    }

    async fn leave(self) -> ReceiveError {
        self.connection.close(0, "");
        self.serving.await.unwrap().unwrap_err()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sender_that_came_back_takes_over_from_its_own_connection() {
    let (to, net) = (tempfile::tempdir().unwrap(), Net::new());
    let waiting = receiver(to.path());
    let id = SenderId::from_bytes([1; 16]);
    let first = Halted::start(&net, &waiting, id).await;
    let second = Halted::start(&net, &waiting, id).await;
    assert!(matches!(first.serving.await.unwrap(), Err(ReceiveError::Superseded)));
    assert!(matches!(second.leave().await, ReceiveError::PeerGone(_)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_sender_is_refused_while_the_first_is_there() {
    let (from, to, net) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), Net::new());
    let path = from.path().join("x");
    fs::write(&path, content(1000, 1)).unwrap();
    let waiting = receiver(to.path());
    let first = Halted::start(&net, &waiting, SenderId::from_bytes([1; 16])).await;

    let (sent, received) = net.transfer(&waiting, std::slice::from_ref(&path)).await;
    assert!(matches!(&sent, Err(SendError::Refused { refusal: Refusal::Taken, .. })), "{sent:?}");
    assert!(matches!(&received, Err(ReceiveError::Admission(AdmissionError::Taken))), "{received:?}");
    assert!(first.connection.close_reason().is_none(), "the first one is left alone");

    first.leave().await;
    assert!(net.transfer(&waiting, &[path]).await.0.is_ok(), "the ticket is free again");
}

#[tokio::test(flavor = "multi_thread")]
async fn senders_of_one_lasting_ticket_have_their_turn_one_after_another() {
    let (from, to, net) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), Net::new());
    let path = from.path().join("x");
    fs::write(&path, content(1000, 1)).unwrap();
    let lasting = receiver_with(to.path(), |config| config.keep = true);
    let first = Halted::start(&net, &lasting, SenderId::from_bytes([1; 16])).await;

    let serving = async {
        let refused = serve(&lasting, net.listener.accept().await.unwrap()).await.unwrap();
        assert!(matches!(&refused, Err(ReceiveError::Admission(AdmissionError::Busy))), "{refused:?}");
        let next = net.listener.accept().await.unwrap();
        first.leave().await;
        serve(&lasting, next).await.unwrap()
    };
    let sender = Sender::new(Selection::collect(&[path]).unwrap(), SECRET).unwrap();
    let (events_sender, mut events) = tokio::sync::mpsc::unbounded_channel();
    let connection = fairpath_quic::connect(net.redial.clone());
    let sending = async {
        let first_try = connection.await.unwrap();
        sender.deliver(first_try, &net.redial, Duration::from_secs(60), &events_sender).await
    };
    let (sent, received) = tokio::join!(sending, serving);
    assert_eq!((sent.as_ref().unwrap().reconnections, received.unwrap().files), (0, 1));
    assert!(sent.unwrap().elapsed < SILENCE_MIN, "the time before its turn does not count");
    assert!(matches!(events.try_recv(), Ok(DeliveryEvent::Busy)));
    assert!(matches!(events.try_recv(), Ok(DeliveryEvent::Connected(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vanished_receiver_is_one_clear_error() {
    let (from, to, net) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), Net::new());
    let path = from.path().join("big");
    fs::write(&path, content(SIZE, 1)).unwrap();
    let waiting = receiver(to.path());
    let (sending, receiving) = net.connect().await;
    let serving = serve(&waiting, receiving.clone());
    let sender = Sender::new(Selection::collect(&[path]).unwrap(), SECRET).unwrap();
    let sent = tokio::spawn(async move { sender.send(&sending).await });
    until_done(&waiting.progress(), 1_000_000).await;
    receiving.close(0, "interrupted by the user");
    let error = sent.await.unwrap().unwrap_err().to_string();
    assert!(error.contains("interrupted by the user") && error.contains("resume"), "{error}");
    assert!(serving.await.unwrap().is_err());
    assert!(to.path().join(PARTIAL).exists());
}
