use std::fs;

use fairpath_quic::lanes::LaneReceiver;

use super::*;
use crate::parcel::{self, Item, PARCEL};
use crate::protocol::{ControlReader, ControlWriter, FromReceiver, FromSender};
use crate::{Door, Purpose};

/// A tree of many files: `content(number)` is what is in each.
fn tree(parent: &Path, count: usize, content: impl Fn(usize) -> Vec<u8>) -> PathBuf {
    let root = parent.join("many");
    for number in 0..count {
        let directory = root.join(format!("{:02}", number / 500));
        if number % 500 == 0 {
            fs::create_dir_all(&directory).unwrap();
        }
        fs::write(directory.join(number.to_string()), content(number)).unwrap();
    }
    root
}

/// A directory in memory where there is one: thousands of files that were synced take a disk longer to
/// remove than to write.
fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_files_that_are_empty_or_tiny_arrive() {
    let (from, to, net) = (directory(), directory(), Net::new());
    let root = tree(from.path(), 12_000, |number| content(number % 3, number as u64));
    let (sent, received) = net.transfer(&receiver(to.path()), &[root]).await;
    let (sent, received) = (sent.unwrap(), received.unwrap());
    assert_eq!((sent.files, received.files), (12_000, 12_000));
    assert_eq!(names(to.path()), names(from.path()));
    for number in [0, 1, 2, 5_999, 11_999] {
        let name = format!("many/{:02}/{number}", number / 500);
        assert_eq!(fs::read(to.path().join(name)).unwrap(), content(number % 3, number as u64));
    }
}

/// Does as a receiver that has nothing, up to the data.
async fn pretend(connection: &Connection) -> (ControlWriter, ControlReader, usize) {
    let guest = Door::new(SECRET, Purpose::Transfer).hear(connection).await.unwrap();
    let (mut writer, mut reader) = guest.admit().await.unwrap();
    writer.write(&FromReceiver::Terms { hidden: true }).await.unwrap();
    let mut files = 0;
    while let FromSender::Entries(entries) = reader.read().await.unwrap() {
        files += entries.iter().filter(|entry| entry.is_file()).count();
    }
    writer.write(&FromReceiver::Compare(vec![])).await.unwrap();
    writer.write(&FromReceiver::Begin).await.unwrap();
    (writer, reader, files)
}

/// What a receiver leaves unread for as long as its disk takes must not end the connection: neither
/// gaps nor pieces in the streams may pile up.
#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_reads_nothing_for_a_while_loses_nothing() {
    let (from, net) = (directory(), Net::new());
    let root = tree(from.path(), 20_000, |number| vec![1; number % 2]);
    let (sending, receiving) = net.connect().await;
    let sender = Sender::new(Selection::collect(&[root]).unwrap(), SECRET).unwrap();
    let connection = sending.clone();
    let sent = tokio::spawn(async move { sender.send(&connection).await });
    let (mut writer, _reader, files) = pretend(&receiving).await;
    tokio::time::sleep(Duration::from_secs(2)).await;

    let mut lanes = LaneReceiver::new(&receiving);
    let mut seen = std::collections::BTreeSet::new();
    while seen.len() < files {
        let record = lanes.recv().await.expect("the connection lives").unwrap();
        assert_eq!(record.object, PARCEL, "small files come in parcels");
        for item in parcel::items(&record.data) {
            let Ok(Item::Content { file, digest, data }) = item else { panic!("{item:?}") };
            assert_eq!(digest, *blake3::hash(data).as_bytes());
            assert!(seen.insert(file), "{file} came twice");
        }
    }
    writer.write(&FromReceiver::Done(seen.into_iter().collect())).await.unwrap();
    writer.write(&FromReceiver::Complete).await.unwrap();
    assert_eq!(sent.await.unwrap().unwrap().files, files as u64);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_calls_complete_what_is_not_is_refused() {
    let (from, net) = (directory(), Net::new());
    let root = tree(from.path(), 3, |_| vec![1]);
    let (sending, receiving) = net.connect().await;
    let sender = Sender::new(Selection::collect(&[root]).unwrap(), SECRET).unwrap();
    let sent = tokio::spawn(async move { sender.send(&sending).await });
    let (mut writer, _reader, _) = pretend(&receiving).await;
    writer.write(&FromReceiver::Complete).await.unwrap();
    let told = tokio::spawn(async move { receiving.closed().await });
    assert!(matches!(sent.await.unwrap(), Err(SendError::Protocol(_))));
    told.await.unwrap();
}
