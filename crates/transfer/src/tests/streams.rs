//! Streams of unknown length, and receivers that pass on what comes.

use std::fs::{self, File};
use std::io::{self, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use fairpath_core::ByteCount;
use rustix::fs::{CWD, FileType, Mode};

use super::*;
use crate::feed::WINDOW;
use crate::{Choice, Fault, INTERRUPTED_CODE, Name};

/// A named pipe; what is written to it comes from a thread.
fn pipe(parent: &Path, write: impl FnOnce(File) + Send + 'static) -> PathBuf {
    let path = parent.join("pipe");
    rustix::fs::mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let named = path.clone();
    std::thread::spawn(move || write(File::options().write(true).open(named).unwrap()));
    path
}

/// The reader of what is passed on: it takes nothing while it is held.
#[derive(Clone, Default)]
struct Reader {
    read: Arc<Mutex<Vec<u8>>>,
    is_held: Arc<AtomicBool>,
}

impl Write for Reader {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        while self.is_held.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.read.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn passing_on(output: impl Write + Send + 'static) -> Arc<Receiver> {
    let receiver = Arc::into_inner(receiver(Path::new("/nowhere"))).unwrap();
    Arc::new(receiver.into_pipe(output))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_arrives_whole_under_the_name_that_it_is_given() {
    let (from, to, net) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), Net::new());
    let path = pipe(from.path(), |mut pipe| {
        pipe.write_all(&content(3_000_001, 1)).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        pipe.write_all(&content(10, 2)).unwrap();
    });
    let choice = Choice { name: Some(Name::from("backup.tar")), ..Choice::default() };
    let selection = Selection::collect_with(&[path], &choice).unwrap();
    assert_eq!(selection.streams(), 1);
    let (sending, receiving) = net.connect().await;
    let serving = serve(&receiver(to.path()), receiving);
    let sent = Sender::new(selection, SECRET).unwrap().send(&sending).await.unwrap();
    let received = serving.await.unwrap().unwrap();
    let size = ByteCount::new(3_000_011);
    assert_eq!((sent.files, sent.bytes, received.files, received.bytes), (1, size, 1, size));
    assert_eq!(received.arrived, [("backup.tar".to_owned(), size)]);
    assert_eq!(fs::read(to.path().join("backup.tar")).unwrap(), [content(3_000_001, 1), content(10, 2)].concat());
    assert_eq!(names(to.path()), ["backup.tar"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_stream_is_an_empty_file_and_one_that_exists_is_a_conflict() {
    let (from, to, net) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), Net::new());
    let path = pipe(from.path(), drop);
    let (sent, received) = net.transfer(&receiver(to.path()), std::slice::from_ref(&path)).await;
    assert_eq!((sent.unwrap().bytes, received.unwrap().files), (ByteCount::ZERO, 1));
    assert_eq!(fs::read(to.path().join("pipe")).unwrap(), b"");
    let (sent, received) = net.transfer(&receiver(to.path()), &[path]).await;
    assert!(matches!(sent, Err(SendError::Receiver { fault: Fault::Exists, .. })), "{sent:?}");
    assert!(matches!(received, Err(ReceiveError::Conflicts(_))));
}

/// The end of the connection is not the end of the stream.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_breaks_off_is_never_taken_for_whole_and_leaves_nothing_for_ever() {
    let (from, to, net) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), Net::new());
    let path = pipe(from.path(), |mut pipe| {
        pipe.write_all(&content(5_000_000, 1)).unwrap();
        std::thread::sleep(Duration::from_secs(3600));
    });
    let (sending, receiving) = net.connect().await;
    let waiting = receiver(to.path());
    let serving = serve(&waiting, receiving);
    let sender = Sender::new(Selection::collect(&[path]).unwrap(), SECRET).unwrap();
    let connection = sending.clone();
    let sent = tokio::spawn(async move { sender.send(&connection).await });
    while waiting.progress().snapshot().bytes_done.get() < 5_000_000 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let progress = waiting.progress().snapshot();
    assert!(progress.is_open && progress.is_patient);
    sending.close(INTERRUPTED_CODE, "enough");
    assert!(sent.await.unwrap().is_err());
    let error = serving.await.unwrap().unwrap_err();
    assert!(matches!(error, ReceiveError::StreamGone(_)) && error.is_retryable(), "{error}");
    assert!(!to.path().join("pipe").exists());
    // The next transfer finds that nobody can go on with it.
    fs::write(from.path().join("x"), "x").unwrap();
    net.transfer(&waiting, &[from.path().join("x")]).await.0.unwrap();
    assert_eq!(names(to.path()), ["x"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_goes_on_over_another_connection_of_the_same_run() {
    let (from, to, net) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), Net::new());
    let is_cut = Arc::new(AtomicBool::new(false));
    let waits = is_cut.clone();
    let path = pipe(from.path(), move |mut pipe| {
        pipe.write_all(&content(40_000_000, 1)).unwrap();
        while !waits.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(1));
        }
        pipe.write_all(&content(7_000_000, 2)).unwrap();
    });
    let sender = Arc::new(Sender::new(Selection::collect(&[path]).unwrap(), SECRET).unwrap());
    let whole = [content(40_000_000, 1), content(7_000_000, 2)].concat();
    let waiting = receiver(to.path());
    let (sending, receiving) = net.connect().await;
    let serving = serve(&waiting, receiving);
    let (first, connection) = (sender.clone(), sending.clone());
    let sent = tokio::spawn(async move { first.send(&connection).await });
    while waiting.progress().snapshot().bytes_done.get() < 30_000_000 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    sending.close(9, "the cable was cut");
    assert!(sent.await.unwrap().is_err() && serving.await.unwrap().is_err());
    is_cut.store(true, Ordering::Relaxed);
    let (sending, receiving) = net.connect().await;
    let serving = serve(&waiting, receiving);
    let sent = sender.send(&sending).await.unwrap();
    assert_eq!(
        (sent.bytes, serving.await.unwrap().unwrap().bytes),
        (ByteCount::new(47_000_000), ByteCount::new(47_000_000))
    );
    assert!(sent.sent < ByteCount::new(20_000_000), "what was there was not sent again: {sent:?}");
    assert!(fs::read(to.path().join("pipe")).unwrap() == whole);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_or_a_stream_is_passed_on_in_order() {
    let (from, net) = (tempfile::tempdir().unwrap(), Net::new());
    let mut sparse = content(1_000_000, 1);
    sparse.resize(70_000_000, 0);
    sparse.extend(content(3_000_000, 2));
    let small = content(100, 3);
    for (name, whole) in [("sparse", &sparse), ("small", &small), ("empty", &Vec::new())] {
        let path = from.path().join(name);
        fs::write(&path, whole).unwrap();
        let output = Reader::default();
        let (sent, received) = net.transfer(&passing_on(output.clone()), &[path]).await;
        let size = ByteCount::new(whole.len() as u64);
        assert_eq!((sent.unwrap().bytes, received.unwrap().bytes), (size, size), "{name}");
        assert!(*output.read.lock().unwrap() == *whole, "{name}");
    }
    let written = sparse.clone();
    let path = pipe(from.path(), move |mut pipe| pipe.write_all(&written).unwrap());
    let output = Reader::default();
    let (sent, received) = net.transfer(&passing_on(output.clone()), &[path]).await;
    assert_eq!(sent.unwrap().bytes, received.unwrap().bytes);
    assert!(*output.read.lock().unwrap() == sparse);
}

#[tokio::test(flavor = "multi_thread")]
async fn several_things_are_not_passed_on() {
    let (from, net) = (tempfile::tempdir().unwrap(), Net::new());
    fs::write(from.path().join("x"), "x").unwrap();
    let output = Reader::default();
    let waiting = passing_on(output.clone());
    let (sent, received) = net.transfer(&waiting, &[from.path().to_owned()]).await;
    assert!(matches!(received, Err(ReceiveError::NotOne(2))), "{received:?}");
    assert!(matches!(&sent, Err(SendError::Receiver { text, .. }) if text.contains("only one file")), "{sent:?}");
    assert!(output.read.lock().unwrap().is_empty() && waiting.is_open());
    net.transfer(&waiting, &[from.path().join("x")]).await.0.unwrap();
    assert_eq!(*output.read.lock().unwrap(), b"x");
}

/// However slow its reader is, neither end holds more than the window.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_reader_holds_the_sender_back() {
    let (from, net) = (tempfile::tempdir().unwrap(), Net::new());
    let path = pipe(from.path(), |mut pipe| {
        let piece = vec![7; 1 << 20];
        while pipe.write_all(&piece).is_ok() {}
    });
    let output = Reader::default();
    output.is_held.store(true, Ordering::Relaxed);
    let waiting = passing_on(output.clone());
    let (sending, receiving) = net.connect().await;
    let serving = serve(&waiting, receiving);
    let sender = Sender::new(Selection::collect(&[path]).unwrap(), SECRET).unwrap();
    let (progress, connection) = (sender.progress(), sending.clone());
    let sent = tokio::spawn(async move { sender.send(&connection).await });
    let mut last = (0, 0);
    while last.1 < 10 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let read = progress.snapshot().bytes_total.get();
        last = if read > last.0 { (read, 0) } else { (last.0, last.1 + 1) };
    }
    assert!((1 << 20..=WINDOW).contains(&last.0), "{last:?}");
    output.is_held.store(false, Ordering::Relaxed);
    while output.read.lock().unwrap().len() < 2 * WINDOW as usize {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(waiting.half_passed_on().is_some());
    sending.close(INTERRUPTED_CODE, "enough");
    assert!(sent.await.unwrap().is_err());
    let error = serving.await.unwrap().unwrap_err();
    assert!(matches!(error, ReceiveError::BrokeOff { .. }) && !error.is_retryable(), "{error}");
}

/// An output that takes this many bytes and is then closed, like `head`.
struct Head(usize);

impl Write for Head {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(self.0);
        self.0 -= taken;
        if taken == 0 { Err(io::ErrorKind::BrokenPipe.into()) } else { Ok(taken) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_is_gone_ends_both_ends() {
    let (from, net) = (tempfile::tempdir().unwrap(), Net::new());
    let path = pipe(from.path(), |mut pipe| while pipe.write_all(&[7; 10_000]).is_ok() {});
    let (sent, received) = net.transfer(&passing_on(Head(100_000)), &[path]).await;
    assert!(
        matches!(received, Err(ReceiveError::Pipe { written, .. }) if written == ByteCount::new(100_000)),
        "{received:?}"
    );
    assert!(matches!(&sent, Err(SendError::Receiver { text, .. }) if text.contains("is gone")), "{sent:?}");
}
