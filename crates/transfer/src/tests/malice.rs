use std::fs;

use bytes::Bytes;
use fairpath_quic::{ChannelId, Record};

use super::*;
use crate::parcel::{Item, Packer};
use crate::proof::Seal;
use crate::protocol::{Control, FromReceiver, FromSender};
use crate::{AdmissionError, Entry, Fault, ManifestError, Purpose, Reason, Refusal, SenderId, authenticate};

/// Greets as a sender with the right secret would, and is let in.
pub(super) async fn greet_as(connection: &Connection, id: SenderId) -> Control {
    authenticate(connection, &SECRET, Purpose::Transfer, id).await.unwrap();
    let control = Control::new(connection);
    assert!(matches!(control.read::<FromReceiver>().await.unwrap(), FromReceiver::Terms { .. }));
    control
}

/// The same, for a sender that comes once.
pub(super) async fn greet(connection: &Connection) -> Control {
    greet_as(connection, SenderId::from_bytes([7; 16])).await
}

pub(super) async fn offer(control: &Control, entries: Vec<Entry>) {
    control.write(&FromSender::Entries(entries)).await.unwrap();
    // A receiver that has heard enough stops listening.
    let _ = control.write(&FromSender::EntriesEnd).await;
}

pub(super) async fn until_begin(control: &Control) {
    while control.read::<FromReceiver>().await.unwrap() != FromReceiver::Begin {}
}

pub(super) fn file(path: &str, size: u64) -> Entry {
    Entry::file(path, size)
}

/// The next message that is not a report of progress.
async fn answer(control: &Control) -> FromReceiver {
    loop {
        match control.read().await.unwrap() {
            FromReceiver::Written(_) | FromReceiver::Taken { .. } | FromReceiver::Examined(_) => {}
            other => return other,
        }
    }
}

/// A sender with the right secret that has got as far as the data.
struct Stub {
    control: Control,
    serving: JoinHandle<Result<Received, ReceiveError>>,
}

impl Stub {
    async fn start(net: &Net, receiver: &Arc<Receiver>, entries: Vec<Entry>) -> Self {
        let (sending, receiving) = net.connect().await;
        let serving = serve(receiver, receiving);
        let control = greet(&sending).await;
        offer(&control, entries).await;
        until_begin(&control).await;
        Self { control, serving }
    }

    async fn data(&self, object: u32, offset: u64, data: &[u8]) {
        self.send(Record { object, offset, data: Bytes::copy_from_slice(data) }).await;
    }

    /// The tag of an honest sender for a file with this content.
    fn tag(&self, file: u32, content: &[u8]) -> [u8; 32] {
        self.seal().tag(file, blake3::hash(content).as_bytes())
    }

    /// The answer of an honest receiver that has a file with this content.
    fn done(&self, file: u32, content: &[u8]) -> FromReceiver {
        FromReceiver::Done(vec![(file, self.seal().proof(file, blake3::hash(content).as_bytes()))])
    }

    fn seal(&self) -> Seal {
        Seal::of(&self.control.connection).unwrap()
    }

    /// Sends a parcel with one item.
    async fn pack(&self, item: &Item<'_>) {
        let mut packer = Packer::default();
        self.send(packer.pack(item).or_else(|| packer.take()).unwrap()).await;
    }

    /// Sends a record, and waits until it has come: records may overtake each other.
    async fn send(&self, record: Record) {
        let connection = &self.control.connection;
        connection.send_record(record).await.unwrap();
        // A receiver that gives up may close before it was acknowledged.
        let _ = connection.flushed(ChannelId::Bulk).await;
    }

    async fn answer(&self) -> FromReceiver {
        answer(&self.control).await
    }

    fn close(&self) {
        self.control.connection.close(0, "");
    }

    async fn refusal(self) -> (Fault, ReceiveError) {
        let FromReceiver::Failed { fault, .. } = self.answer().await else { panic!("a refusal") };
        self.close();
        (fault, self.serving.await.unwrap().unwrap_err())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_secrets_write_nothing_and_end_nothing() {
    let (from, to, net) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), Net::new());
    fs::write(from.path().join("x"), "1").unwrap();
    let directory = to.path().join("d");
    let waiting = receiver(&directory);
    let selection = Selection::collect(&[from.path().join("x")]).unwrap();
    for _ in 0..20 {
        let (sending, receiving) = net.connect().await;
        let serving = serve(&waiting, receiving);
        let sent = Sender::new(selection.clone(), Secret::from_bytes([1; 16])).unwrap().send(&sending).await;
        assert!(matches!(sent, Err(SendError::Refused { refusal: Refusal::WrongSecret, .. })), "{sent:?}");
        let refused = serving.await.unwrap().unwrap_err();
        assert!(matches!(refused, ReceiveError::Admission(AdmissionError::WrongSecret)), "{refused}");
        assert!(refused.is_retryable() && waiting.is_open());
    }
    assert!(!directory.exists());
    assert!(net.transfer(&waiting, &[from.path().join("x")]).await.0.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_secrets_during_a_transfer_do_not_disturb_it() {
    let (to, net) = (tempfile::tempdir().unwrap(), Net::new());
    let waiting = receiver(to.path());
    let stub = Stub::start(&net, &waiting, vec![file("x", 5)]).await;
    for _ in 0..5 {
        let (sending, receiving) = net.connect().await;
        let serving = serve(&waiting, receiving);
        let wrong = Secret::from_bytes([1; 16]);
        assert!(authenticate(&sending, &wrong, Purpose::Transfer, SenderId::from_bytes([7; 16])).await.is_err());
        assert!(serving.await.unwrap().is_err());
    }
    stub.data(0, 0, b"right").await;
    stub.pack(&Item::Tag { file: 0, tag: stub.tag(0, b"right") }).await;
    assert_eq!(stub.answer().await, stub.done(0, b"right"));
    assert_eq!(stub.answer().await, FromReceiver::Complete);
    stub.close();
    assert_eq!(stub.serving.await.unwrap().unwrap().files, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_crafted_name_is_refused_before_anything_is_written() {
    let (parent, net) = (tempfile::tempdir().unwrap(), Net::new());
    let to = parent.path().join("to");
    fs::create_dir(&to).unwrap();
    let long = "a".repeat(256);
    let names_to_try = ["/x", "../x", "a/../../x", "..", ".", "a//b", "a/", "", "a\0", ".fairpath-partial/x", &long];
    for name in names_to_try {
        let (sending, receiving) = net.connect().await;
        let serving = serve(&receiver(&to), receiving);
        let control = greet(&sending).await;
        offer(&control, vec![file("harmless", 1), file(name, 1)]).await;
        let FromReceiver::Failed { fault, text } = answer(&control).await else { panic!("a refusal") };
        assert_eq!(fault, Fault::Manifest);
        assert!(text.contains("the name"), "{text}");
        sending.close(0, "");
        let error = serving.await.unwrap().unwrap_err();
        assert!(
            matches!(&error, ReceiveError::Manifest(ManifestError::Name { path, .. }) if *path == *name),
            "{error}"
        );
        assert_eq!(names(parent.path()), ["to"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_data_are_asked_for_once_more_and_then_left_out() {
    let (to, net) = (tempfile::tempdir().unwrap(), Net::new());
    for second in [&b"right"[..], &b"wrong"[..]] {
        let stub = Stub::start(&net, &receiver(to.path()), vec![file("x", 5)]).await;
        stub.data(0, 0, b"wrong").await;
        let tag = stub.tag(0, b"right");
        stub.pack(&Item::Tag { file: 0, tag }).await;
        assert_eq!(stub.answer().await, FromReceiver::Again(0));
        assert!(!to.path().join("x").exists());
        stub.pack(&Item::Content { file: 0, tag, data: second }).await;
        let is_right = second == b"right";
        let expected = match is_right {
            true => stub.done(0, b"right"),
            false => FromReceiver::LeftOut(vec![(0, Reason::Damaged)]),
        };
        assert_eq!(stub.answer().await, expected);
        assert_eq!(stub.answer().await, FromReceiver::Complete);
        stub.close();
        let received = stub.serving.await.unwrap().unwrap();
        assert_eq!((received.files, received.skipped.len()), if is_right { (1, 0) } else { (0, 1) });
        assert_eq!(names(to.path()), if is_right { vec!["x"] } else { vec![] }, "nothing is left of what is wrong");
        let _ = fs::remove_file(to.path().join("x"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn data_that_do_not_belong_anywhere_end_the_transfer() {
    let (to, net) = (tempfile::tempdir().unwrap(), Net::new());
    let directory = Entry::directory("d");
    for (object, offset) in [(0, 4), (0, u64::MAX), (1, 0), (7, 0), (u32::MAX, 0)] {
        let stub = Stub::start(&net, &receiver(to.path()), vec![file("x", 5), directory.clone()]).await;
        stub.data(object, offset, b"12").await;
        let (fault, error) = stub.refusal().await;
        assert!(fault == Fault::Protocol && matches!(error, ReceiveError::Protocol(_)), "{error}");
    }
    assert!(!to.path().join("x").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_fills_up_says_what_is_missing_and_the_transfer_resumes() {
    let Some(mount) = disk::Mount::tmpfs("size=4m") else { return };
    let (from, net) = (tempfile::tempdir().unwrap(), Net::new());
    let (path, all) = (from.path().join("x"), content(3_000_000, 1));
    fs::write(&path, &all).unwrap();
    fs::File::options().write(true).open(&path).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
    let waiting = receiver(mount.path());
    let stub = Stub::start(&net, &waiting, vec![file("x", 3_000_000)]).await;
    stub.data(0, 0, &all[..1_000_000]).await;
    while waiting.progress().snapshot().bytes_done.get() < 1_000_000 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // A part of the second piece still fits, and nothing of the third.
    let other = mount.path().join("someone else's");
    fs::write(&other, vec![0; 2_500_000]).unwrap();
    for piece in [1, 2] {
        stub.data(0, piece as u64 * 1_000_000, &all[piece * 1_000_000..(piece + 1) * 1_000_000]).await;
    }
    let (fault, error) = stub.refusal().await;
    let ReceiveError::DiskFull { directory, missing } = &error else { panic!("{error}") };
    assert_eq!((directory.as_path(), fault), (mount.path(), Fault::DiskFull));
    assert!((1_000_000..=2_000_000).contains(&missing.get()), "{error}");
    assert!(!mount.path().join("x").exists());

    fs::remove_file(other).unwrap();
    let sent = net.transfer(&waiting, &[path]).await.0.unwrap();
    assert!(sent.resumed.get() >= 1_000_000, "{sent:?}");
    assert_eq!(fs::read(mount.path().join("x")).unwrap(), all);
    assert_eq!(names(mount.path()), ["x"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_enormous_names_is_refused_while_it_comes() {
    let (to, net) = (tempfile::tempdir().unwrap(), Net::new());
    let (sending, receiving) = net.connect().await;
    let serving = serve(&receiver(to.path()), receiving);
    let control = greet(&sending).await;
    let name = "x".repeat(1_000_000);
    let mut taken = 0;
    let refused = async {
        // Without a refusal it would end here, far behind where one has to come.
        while taken < 100_000_000 && control.write(&FromSender::Entries(vec![file(&name, 1)])).await.is_ok() {
            taken += name.len();
        }
        let _ = control.write(&FromSender::EntriesEnd).await;
    };
    let told = tokio::select! {
        told = answer(&control) => told,
        () = refused => answer(&control).await,
    };
    assert!(matches!(&told, FromReceiver::Failed { fault: Fault::Manifest, .. }), "{told:?}");
    sending.close(0, "");
    let error = serving.await.unwrap().unwrap_err();
    assert!(matches!(error, ReceiveError::Manifest(_)), "{error}");
    // One name is read and refused; behind it the channel holds 4.2 MB, and the sender's end one more and a bit.
    assert!(taken <= 8_000_000, "{taken} bytes of names were taken");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_file_of_another_length_and_a_parcel_of_nonsense_end_the_transfer() {
    let (to, net) = (tempfile::tempdir().unwrap(), Net::new());
    for number in 0..4 {
        let stub = Stub::start(&net, &receiver(to.path()), vec![file("x", 5)]).await;
        match number {
            0 => stub.pack(&Item::Content { file: 0, tag: stub.tag(0, b"12"), data: b"12" }).await,
            1 => stub.pack(&Item::Tag { file: 7, tag: stub.tag(7, b"12") }).await,
            2 => stub.pack(&Item::LeftOut { file: 7, reason: Reason::Changed }).await,
            _ => stub.data(crate::parcel::PARCEL, 0, &[255; 100]).await,
        }
        let (fault, error) = stub.refusal().await;
        assert!(fault == Fault::Protocol && matches!(error, ReceiveError::Protocol(_)), "{number}: {error}");
    }
    assert_eq!(names(to.path()), [""; 0]);
}

/// Every separate piece costs the receiver memory, so there is an end to them.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_in_far_too_many_pieces_ends_the_transfer() {
    let (to, net) = (tempfile::tempdir().unwrap(), Net::new());
    let stub = Stub::start(&net, &receiver(to.path()), vec![file("x", 1_000_000)]).await;
    let connection = &stub.control.connection;
    for offset in (0..1_000_000).step_by(2) {
        // Behind the last that it takes the receiver holds the sender back, and says why.
        let piece = connection.send_record(Record { object: 0, offset, data: Bytes::from_static(b"1") });
        tokio::select! {
            biased;
            sent = piece => sent.unwrap(),
            told = stub.answer() => {
                assert!(matches!(told, FromReceiver::Failed { fault: Fault::Protocol, .. }), "{told:?}");
                break;
            }
        }
    }
    stub.close();
    let error = stub.serving.await.unwrap().unwrap_err();
    assert!(matches!(&error, ReceiveError::Protocol(_)) && error.to_string().contains("pieces"), "{error}");
}

/// Whatever the bytes of a message are: what cannot be understood ends the transfer with an error that says so.
#[tokio::test(flavor = "multi_thread")]
async fn messages_of_nonsense_end_the_transfer() {
    let (to, net) = (tempfile::tempdir().unwrap(), Net::new());
    for message in [&b""[..], &[255; 100], b"GET / HTTP/1.1", &[0; 1 << 20]] {
        let (sending, receiving) = net.connect().await;
        let serving = serve(&receiver(to.path()), receiving);
        let control = greet(&sending).await;
        sending.send_message(Bytes::copy_from_slice(message)).await.unwrap();
        let told = answer(&control).await;
        assert!(matches!(told, FromReceiver::Failed { fault: Fault::Protocol, .. }), "{told:?}");
        sending.close(0, "");
        assert!(matches!(serving.await.unwrap(), Err(ReceiveError::Protocol(_))));
    }
    assert_eq!(names(to.path()), [""; 0]);
}

/// Data that are held until others come before them are bounded, and the end of a stream is its end.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_passed_on_in_order_is_bounded_whatever_the_sender_says() {
    let net = Net::new();
    let passing_on = || {
        let receiver = Arc::into_inner(receiver(Path::new("/nowhere"))).unwrap();
        Arc::new(receiver.into_pipe(std::io::sink()))
    };
    let ended = |size| Item::Ended { file: 0, size, tag: [0; 32] };
    let stream = || vec![Entry::stream("s")];
    let stub = Stub::start(&net, &passing_on(), stream()).await;
    stub.data(0, 1 << 40, b"far ahead").await;
    assert!(stub.refusal().await.1.to_string().contains("too far ahead"));
    let stub = Stub::start(&net, &passing_on(), vec![file("f", 3)]).await;
    stub.data(0, 0, b"more").await;
    assert!(stub.refusal().await.1.to_string().contains("behind the end"));
    let stub = Stub::start(&net, &passing_on(), stream()).await;
    stub.data(1, 0, b"of another").await;
    assert!(stub.refusal().await.1.to_string().contains("not wanted"));
    // A digest that is wrong, or data behind the end: nothing that was passed on is called whole.
    for (data, size) in [(&b"data"[..], 4), (b"data", 3)] {
        let stub = Stub::start(&net, &passing_on(), stream()).await;
        stub.data(0, 0, data).await;
        stub.pack(&ended(size)).await;
        let (fault, error) = stub.refusal().await;
        assert!(matches!((fault, &error), (Fault::Mismatch, ReceiveError::Mangled { .. })), "{error}");
    }
    // In a directory it has no name then.
    let to = tempfile::tempdir().unwrap();
    let stub = Stub::start(&net, &receiver(to.path()), stream()).await;
    stub.data(0, 0, b"data").await;
    stub.pack(&ended(3)).await;
    assert!(stub.refusal().await.1.to_string().contains("longer than was said"));
    let stub = Stub::start(&net, &receiver(to.path()), stream()).await;
    stub.data(0, 0, b"data").await;
    stub.pack(&ended(4)).await;
    assert_eq!(stub.answer().await, FromReceiver::LeftOut(vec![(0, Reason::Damaged)]));
    assert!(!to.path().join("s").exists());
}
