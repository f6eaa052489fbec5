use std::fs;

use fairpath_quic::lanes::{LaneSender, Record};

use super::*;
use crate::parcel::{Item, Packer};
use crate::protocol::{ControlReader, ControlWriter, FromReceiver, FromSender};
use crate::{AdmissionError, Entry, Fault, ManifestError, Purpose, Reason, Refusal, SenderId, knock};

/// Greets as a sender with the right secret would, and is let in.
pub(super) async fn greet_as(connection: &Connection, id: SenderId) -> (ControlWriter, ControlReader) {
    let (send, recv) = knock(connection, &SECRET, Purpose::Transfer, id).await.unwrap();
    let writer = ControlWriter { stream: send, connection: connection.clone() };
    let mut reader = ControlReader { stream: recv, connection: connection.clone() };
    assert!(matches!(reader.read::<FromReceiver>().await.unwrap(), FromReceiver::Terms { .. }));
    (writer, reader)
}

/// The same, for a sender that comes once.
pub(super) async fn greet(connection: &Connection) -> (ControlWriter, ControlReader) {
    greet_as(connection, SenderId::from_bytes([7; 16])).await
}

pub(super) async fn offer(writer: &mut ControlWriter, entries: Vec<Entry>) {
    writer.write(&FromSender::Entries(entries)).await.unwrap();
    // A receiver that has heard enough stops listening.
    let _ = writer.write(&FromSender::EntriesEnd).await;
}

pub(super) async fn until_begin(reader: &mut ControlReader) {
    while reader.read::<FromReceiver>().await.unwrap() != FromReceiver::Begin {}
}

pub(super) fn file(path: &str, size: u64) -> Entry {
    Entry::File { path: path.to_owned(), size, mtime_ns: 0, executable: false }
}

/// The next message that is not a report of progress.
async fn answer(reader: &mut ControlReader) -> FromReceiver {
    loop {
        match reader.read().await.unwrap() {
            FromReceiver::Written(_) => {}
            other => return other,
        }
    }
}

/// A sender with the right secret that has got as far as the data.
struct Stub {
    writer: ControlWriter,
    reader: ControlReader,
    lanes: LaneSender,
    serving: JoinHandle<Result<Received, ReceiveError>>,
}

impl Stub {
    async fn start(net: &Net, receiver: &Arc<Receiver>, entries: Vec<Entry>) -> Self {
        let (sending, receiving) = net.connect().await;
        let serving = serve(receiver, receiving);
        let (mut writer, mut reader) = greet(&sending).await;
        offer(&mut writer, entries).await;
        until_begin(&mut reader).await;
        let lanes = LaneSender::open(&sending, 2).await.unwrap();
        Self { writer, reader, lanes, serving }
    }

    async fn data(&mut self, object: u32, offset: u64, data: &[u8]) {
        self.lanes.send(Record { object, offset, data: data.to_vec().into() }).await.unwrap();
        self.lanes.flush().await.unwrap();
    }

    async fn digest(&mut self, file: u32, digest: [u8; 32]) {
        self.pack(&Item::Digest { file, digest }).await;
    }

    /// Sends a parcel with one item.
    async fn pack(&mut self, item: &Item<'_>) {
        let mut packer = Packer::default();
        let parcel = packer.pack(item).or_else(|| packer.take()).unwrap();
        self.lanes.send(parcel).await.unwrap();
        self.lanes.flush().await.unwrap();
    }

    async fn refusal(mut self) -> (Fault, ReceiveError) {
        let FromReceiver::Failed { fault, .. } = answer(&mut self.reader).await else { panic!("a refusal") };
        self.writer.connection.close(0u32.into(), b"");
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
    let mut stub = Stub::start(&net, &waiting, vec![file("x", 5)]).await;
    for _ in 0..5 {
        let (sending, receiving) = net.connect().await;
        let serving = serve(&waiting, receiving);
        let wrong = Secret::from_bytes([1; 16]);
        assert!(knock(&sending, &wrong, Purpose::Transfer, SenderId::from_bytes([7; 16])).await.is_err());
        assert!(serving.await.unwrap().is_err());
    }
    stub.data(0, 0, b"right").await;
    stub.digest(0, *blake3::hash(b"right").as_bytes()).await;
    assert_eq!(answer(&mut stub.reader).await, FromReceiver::Done(vec![0]));
    assert_eq!(answer(&mut stub.reader).await, FromReceiver::Complete);
    stub.writer.connection.close(0u32.into(), b"");
    assert_eq!(stub.serving.await.unwrap().unwrap().files, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_crafted_name_is_refused_before_anything_is_written() {
    let (parent, net) = (tempfile::tempdir().unwrap(), Net::new());
    let to = parent.path().join("to");
    fs::create_dir(&to).unwrap();
    let long = "a".repeat(256);
    let names_to_try =
        ["/x", "../x", "a/../../x", "..", ".", "a//b", "a/", "", "a\0", "..\\x", "C:x", ".fairpath-partial/x", &long];
    for name in names_to_try {
        let (sending, receiving) = net.connect().await;
        let serving = serve(&receiver(&to), receiving);
        let (mut writer, mut reader) = greet(&sending).await;
        offer(&mut writer, vec![file("harmless", 1), file(name, 1)]).await;
        let FromReceiver::Failed { fault, text } = answer(&mut reader).await else { panic!("a refusal") };
        assert_eq!(fault, Fault::Manifest);
        assert!(text.contains("the name"), "{text}");
        sending.close(0u32.into(), b"");
        let error = serving.await.unwrap().unwrap_err();
        assert!(matches!(&error, ReceiveError::Manifest(ManifestError::Name { path, .. }) if path == name), "{error}");
        assert_eq!(names(parent.path()), ["to"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_data_are_asked_for_once_more_and_then_left_out() {
    let (to, net) = (tempfile::tempdir().unwrap(), Net::new());
    let right = *blake3::hash(b"right").as_bytes();
    for second in [&b"right"[..], &b"wrong"[..]] {
        let mut stub = Stub::start(&net, &receiver(to.path()), vec![file("x", 5)]).await;
        stub.data(0, 0, b"wrong").await;
        stub.digest(0, right).await;
        assert_eq!(answer(&mut stub.reader).await, FromReceiver::Again(0));
        assert!(!to.path().join("x").exists());
        stub.pack(&Item::Content { file: 0, digest: right, data: second }).await;
        let is_right = second == b"right";
        let expected = match is_right {
            true => FromReceiver::Done(vec![0]),
            false => FromReceiver::LeftOut(vec![(0, Reason::Damaged)]),
        };
        assert_eq!(answer(&mut stub.reader).await, expected);
        assert_eq!(answer(&mut stub.reader).await, FromReceiver::Complete);
        stub.writer.connection.close(0u32.into(), b"");
        let received = stub.serving.await.unwrap().unwrap();
        assert_eq!((received.files, received.skipped.len()), if is_right { (1, 0) } else { (0, 1) });
        assert_eq!(names(to.path()), if is_right { vec!["x"] } else { vec![] }, "nothing is left of what is wrong");
        let _ = fs::remove_file(to.path().join("x"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn data_that_do_not_belong_anywhere_end_the_transfer() {
    let (to, net) = (tempfile::tempdir().unwrap(), Net::new());
    let directory = Entry::Directory { path: "d".into() };
    for (object, offset) in [(0, 4), (0, u64::MAX), (1, 0), (7, 0), (u32::MAX, 0)] {
        let mut stub = Stub::start(&net, &receiver(to.path()), vec![file("x", 5), directory.clone()]).await;
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
    let mut stub = Stub::start(&net, &waiting, vec![file("x", 3_000_000)]).await;
    stub.data(0, 0, &all[..1_000_000]).await;
    while waiting.progress().snapshot().bytes_done.get() < 1_000_000 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // A part of the second piece still fits, and nothing of the third.
    let other = mount.path().join("someone else's");
    fs::write(&other, vec![0; 2_500_000]).unwrap();
    for piece in [1, 2] {
        // The receiver stops the lanes when it gives up, which may be before the last piece.
        let data = all[piece * 1_000_000..(piece + 1) * 1_000_000].to_vec().into();
        let _ = stub.lanes.send(Record { object: 0, offset: piece as u64 * 1_000_000, data }).await;
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
    let (mut writer, mut reader) = greet(&sending).await;
    let name = "x".repeat(1_000_000);
    let mut taken = 0;
    let refused = async {
        // Without a refusal it would end here, far behind where one has to come.
        while taken < 100_000_000 && writer.write(&FromSender::Entries(vec![file(&name, 1)])).await.is_ok() {
            taken += name.len();
        }
        let _ = writer.write(&FromSender::EntriesEnd).await;
    };
    let told = tokio::select! {
        told = answer(&mut reader) => told,
        () = refused => answer(&mut reader).await,
    };
    assert!(matches!(&told, FromReceiver::Failed { fault: Fault::Manifest, .. }), "{told:?}");
    sending.close(0u32.into(), b"");
    let error = serving.await.unwrap().unwrap_err();
    assert!(matches!(error, ReceiveError::Manifest(_)), "{error}");
    // One name is read and refused; a stream's window of noq, 1.25 MB, is on its way behind it.
    assert!(taken <= 4_000_000, "{taken} bytes of names were taken");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_file_of_another_length_and_a_parcel_of_nonsense_end_the_transfer() {
    let (to, net) = (tempfile::tempdir().unwrap(), Net::new());
    let digest = *blake3::hash(b"12").as_bytes();
    for number in 0..4 {
        let mut stub = Stub::start(&net, &receiver(to.path()), vec![file("x", 5)]).await;
        match number {
            0 => stub.pack(&Item::Content { file: 0, digest, data: b"12" }).await,
            1 => stub.pack(&Item::Digest { file: 7, digest }).await,
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
    let mut stub = Stub::start(&net, &receiver(to.path()), vec![file("x", 1_000_000)]).await;
    let mut offset = 0;
    let pieces = async {
        // The lanes are stopped when the receiver gives up.
        while offset < 1_000_000
            && stub.lanes.send(Record { object: 0, offset, data: b"1"[..].into() }).await.is_ok()
            && (offset % 1000 != 0 || stub.lanes.flush().await.is_ok())
        {
            offset += 2;
        }
    };
    pieces.await;
    let (fault, error) = stub.refusal().await;
    assert!(fault == Fault::Protocol && error.to_string().contains("pieces"), "{error}");
}
