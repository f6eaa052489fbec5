use std::fs;

use fairpath_quic::ChannelId;

use super::*;
use crate::parcel::{self, Item, PARCEL};
use crate::proof::Seal;
use crate::protocol::{Control, FromReceiver, FromSender};
use crate::{Admission, Purpose};

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
async fn pretend(connection: &Connection) -> (Control, usize) {
    let guest = Admission::new(SECRET, Purpose::Transfer).hear(connection).await.unwrap();
    let control = guest.admit().await.unwrap();
    control.write(&FromReceiver::Terms { hidden: true, has_all: false, in_order: false }).await.unwrap();
    let mut files = 0;
    while let FromSender::Entries(entries) = control.read().await.unwrap() {
        files += entries.iter().filter(|entry| entry.is_file()).count();
    }
    control.write(&FromReceiver::Compare(vec![])).await.unwrap();
    control.write(&FromReceiver::Begin).await.unwrap();
    (control, files)
}

/// Data that a receiver leaves unread for as long as its disk takes must not end the connection.
#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_reads_nothing_for_a_while_loses_nothing() {
    let (from, net) = (directory(), Net::new());
    let root = tree(from.path(), 20_000, |number| vec![1; number % 2]);
    let (sending, receiving) = net.connect().await;
    let sender = Sender::new(Selection::collect(&[root]).unwrap(), SECRET).unwrap();
    let connection = sending.clone();
    let sent = tokio::spawn(async move { sender.send(&connection).await });
    let (control, files) = pretend(&receiving).await;
    tokio::time::sleep(Duration::from_secs(2)).await;

    let seal = Seal::of(&receiving).unwrap();
    let mut seen = std::collections::BTreeMap::new();
    while seen.len() < files {
        let record = receiving.recv_record().await.expect("the connection lives");
        assert_eq!(record.object, PARCEL, "small files come in parcels");
        for item in parcel::items(&record.data) {
            let Ok(Item::Content { file, tag, data }) = item else { panic!("{item:?}") };
            let digest = *blake3::hash(data).as_bytes();
            assert_eq!(tag, seal.tag(file, &digest));
            assert!(seen.insert(file, seal.proof(file, &digest)).is_none(), "{file} came twice");
        }
    }
    control.write(&FromReceiver::Done(seen.into_iter().collect())).await.unwrap();
    control.write(&FromReceiver::Complete).await.unwrap();
    assert_eq!(sent.await.unwrap().unwrap().files, files as u64);
}

/// However slow its disk is, a receiver holds no more than the channel's window; and messages still pass.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_receiver_does_not_take_stays_with_the_sender() {
    let (from, net) = (directory(), Net::new());
    let path = from.path().join("large");
    // No zeros: those would not be sent.
    fs::write(&path, vec![1; 200_000_000]).unwrap();
    let (sending, receiving) = net.connect().await;
    let sender = Sender::new(Selection::collect(&[path]).unwrap(), SECRET).unwrap();
    let progress = sender.progress();
    let sent = tokio::spawn(async move { sender.send(&sending).await });
    let (control, _) = pretend(&receiving).await;
    let came = || receiving.received_bytes(ChannelId::Bulk).get();
    let mut last = (0, 0);
    while last.1 < 10 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        last = if came() > last.0 { (came(), 0) } else { (last.0, last.1 + 1) };
    }
    assert!((1_000_000..=32 << 20).contains(&last.0), "{last:?}");
    control.write(&FromReceiver::Written(12_345)).await.unwrap();
    while progress.snapshot().bytes_done.get() != 12_345 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    // Taken data makes room for as much.
    for _ in 0..500 {
        receiving.recv_record().await.unwrap();
    }
    while came() <= last.0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    receiving.close(1, "that is enough");
    assert!(matches!(sent.await.unwrap(), Err(SendError::PeerGone(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_calls_complete_what_is_not_is_refused() {
    let (from, net) = (directory(), Net::new());
    let root = tree(from.path(), 3, |_| vec![1]);
    let (sending, receiving) = net.connect().await;
    let sender = Sender::new(Selection::collect(&[root]).unwrap(), SECRET).unwrap();
    let sent = tokio::spawn(async move { sender.send(&sending).await });
    let (control, _) = pretend(&receiving).await;
    control.write(&FromReceiver::Complete).await.unwrap();
    let told = tokio::spawn(async move { receiving.closed().await });
    assert!(matches!(sent.await.unwrap(), Err(SendError::Protocol(_))));
    told.await.unwrap();
}
