//! Offers, and how much of them is taken.

use std::fs;

use tokio::sync::oneshot;

use super::*;
use crate::{Fault, ManifestError, NameFault, Phase, SenderId};

fn careful(directory: &Path) -> Arc<Receiver> {
    receiver_with(directory, |config| (config.limits.hidden, config.limits.modes) = (false, false))
}

#[tokio::test(flavor = "multi_thread")]
async fn hidden_names_are_left_out_and_named_at_both_ends() {
    let (from, to, net) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), Net::new());
    let root = from.path().join("d");
    fs::create_dir_all(root.join(".git/hooks")).unwrap();
    for name in ["a", ".profile", ".git/hooks/run", "b"] {
        fs::write(root.join(name), name).unwrap();
    }
    let waiting = careful(to.path());
    let (sending, receiving) = net.connect().await;
    let sender = Sender::new(Selection::collect(&[root]).unwrap(), SECRET).unwrap();
    let serving = serve(&waiting, receiving);
    let sent = sender.send(&sending).await.unwrap();
    assert_eq!((sent.files, serving.await.unwrap().unwrap().files), (2, 2));
    assert_eq!(names(to.path()), ["d", "d/a", "d/b"]);
    assert_eq!(sender.not_taken(), waiting.offer().unwrap().left_out);
    assert!(sender.not_taken().names.contains(&"d/.profile".to_owned()) && sender.not_taken().count >= 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sender_that_offers_hidden_names_all_the_same_is_refused() {
    let (to, net) = (tempfile::tempdir().unwrap(), Net::new());
    for name in [".ssh/authorized_keys", "d/.bashrc"] {
        let (sending, receiving) = net.connect().await;
        let serving = serve(&careful(to.path()), receiving);
        let control = malice::greet_as(&sending, SenderId::from_bytes([7; 16])).await;
        malice::offer(&control, vec![malice::file(name, 1)]).await;
        let error = serving.await.unwrap().unwrap_err();
        let hidden = |error: &ManifestError| matches!(error, ManifestError::Name { fault: NameFault::Hidden, .. });
        assert!(matches!(&error, ReceiveError::Manifest(inner) if hidden(inner)), "{error}");
    }
    assert_eq!(names(to.path()), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn executable_files_are_not_so_at_a_careful_receiver() {
    use std::os::unix::fs::PermissionsExt as _;
    let (from, to, net) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), Net::new());
    let path = from.path().join("run");
    fs::write(&path, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    net.transfer(&careful(to.path()), &[path]).await.0.unwrap();
    assert_eq!(fs::metadata(to.path().join("run")).unwrap().permissions().mode() & 0o111, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_written_before_the_offer_is_taken() {
    let (from, to, net) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), Net::new());
    let path = from.path().join("x");
    fs::write(&path, content(1000, 1)).unwrap();
    let directory = to.path().join("d");
    let (asked, mut questions) = tokio::sync::mpsc::unbounded_channel();
    let waiting = receiver_with(&directory, |config| {
        config.consent = Consent::ask(move |offer| {
            let (answer, given) = oneshot::channel();
            asked.send((offer.clone(), answer)).unwrap();
            given
        });
    });
    for is_taken in [false, true] {
        let (receiver, directory) = (waiting.clone(), directory.clone());
        let answering = async {
            let (offer, answer) = questions.recv().await.unwrap();
            assert_eq!((offer.files, offer.shown.len(), offer.more()), (1, 1, 0));
            assert_eq!(offer.shown[0].0, "x");
            assert!(!directory.exists());
            answer.send(is_taken).unwrap();
        };
        let ((sent, received), ()) = tokio::join!(net.transfer(&receiver, std::slice::from_ref(&path)), answering);
        if is_taken {
            assert_eq!(received.unwrap().files, 1);
        } else {
            assert!(matches!(received, Err(ReceiveError::Declined)), "{received:?}");
            assert!(matches!(sent, Err(SendError::Receiver { fault: Fault::Declined, .. })), "{sent:?}");
            assert!(!directory.exists());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sender_knows_that_a_person_is_asked_and_the_time_counts_at_neither_end() {
    const ASKED: Duration = Duration::from_millis(300);
    let (from, to, net) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), Net::new());
    let path = from.path().join("x");
    fs::write(&path, content(1000, 1)).unwrap();
    let (asked, mut questions) = tokio::sync::mpsc::unbounded_channel();
    let waiting = receiver_with(to.path(), |config| {
        config.consent = Consent::ask(move |_| {
            let (answer, given) = oneshot::channel();
            asked.send(answer).unwrap();
            given
        });
    });
    let (sending, receiving) = net.connect().await;
    let sender = Sender::new(Selection::collect(&[path]).unwrap(), SECRET).unwrap();
    let serving = serve(&waiting, receiving);
    let phases = [sender.progress(), waiting.progress()];
    let phase = |end: usize| phases[end].snapshot().phase;
    let answering = async {
        let answer = questions.recv().await.unwrap();
        while [phase(0), phase(1)] != [Phase::Asking; 2] {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        tokio::time::sleep(ASKED).await;
        assert_eq!([phase(0), phase(1)], [Phase::Asking; 2]);
        answer.send(true).unwrap();
    };
    let start = tokio::time::Instant::now();
    let (sent, ()) = tokio::join!(sender.send(&sending), answering);
    let (sent, received) = (sent.unwrap(), serving.await.unwrap().unwrap());
    let most = start.elapsed() - ASKED;
    assert!(sent.elapsed <= most && received.elapsed <= most, "{sent:?} {received:?}, {most:?}");
}
