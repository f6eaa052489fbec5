use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::{Fault, Phase};

/// A tree with everything odd in it; answers its root.
fn tree(parent: &Path) -> PathBuf {
    let root = parent.join("a tree");
    fs::create_dir_all(root.join("empty directory")).unwrap();
    fs::create_dir_all(root.join("deep/er/日本語")).unwrap();
    fs::write(root.join("empty"), "").unwrap();
    fs::write(root.join(".hidden"), "x").unwrap();
    fs::write(root.join("deep/er/日本語/ü"), content(100_001, 1)).unwrap();
    fs::write(root.join("big"), content(5_000_000, 2)).unwrap();
    fs::write(root.join("run.sh"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(root.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    for number in 0..300 {
        fs::write(root.join(format!("deep/small {number}")), content(number * 7, number as u64)).unwrap();
    }
    root
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tree_arrives_as_it_was() {
    let (from, to, net) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), Net::new());
    let root = tree(from.path());
    let directory = to.path().join("not/there yet");
    let receiver = receiver(&directory);
    let (sent, received) = net.transfer(&receiver, std::slice::from_ref(&root)).await;
    let (sent, received) = (sent.unwrap(), received.unwrap());

    assert_eq!(names(from.path()), names(&directory), "the same names, and nothing left behind");
    for name in names(from.path()) {
        let (original, copy) = (from.path().join(&name), directory.join(&name));
        if original.is_file() {
            assert_eq!(fs::read(&original).unwrap(), fs::read(&copy).unwrap(), "{name}");
            let of = |path: &Path| fs::metadata(path).unwrap();
            assert_eq!(of(&original).modified().unwrap(), of(&copy).modified().unwrap(), "{name}");
            assert_eq!(of(&original).permissions().mode() & 0o111, of(&copy).permissions().mode() & 0o111, "{name}");
        }
    }
    assert_eq!((sent.files, sent.bytes, sent.sent), (received.files, received.bytes, received.bytes));
    let progress = receiver.progress().snapshot();
    assert_eq!((progress.phase, progress.bytes_done), (Phase::Done, received.bytes));
    assert!(!receiver.is_open(), "one ticket, one transfer");
    let (again, _) = net.transfer(&receiver, &[root]).await;
    assert!(again.unwrap_err().to_string().contains("has been used"));
}

#[tokio::test(flavor = "multi_thread")]
async fn identical_files_are_skipped_and_others_never_overwritten() {
    let (from, to, net) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), Net::new());
    let root = from.path().join("d");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("same"), content(70_000, 1)).unwrap();
    fs::write(root.join("new"), content(10, 2)).unwrap();
    fs::create_dir(to.path().join("d")).unwrap();
    fs::write(to.path().join("d/same"), content(70_000, 1)).unwrap();
    let paths = [root.clone()];

    let first = net.transfer(&receiver(to.path()), &paths).await.0.unwrap();
    assert_eq!((first.sent.get(), first.resumed.get()), (10, 70_000));

    for other in [content(10, 3), content(11, 3)] {
        fs::write(root.join("new"), &other).unwrap();
        let (sent, received) = net.transfer(&receiver(to.path()), &paths).await;
        let refusal = received.unwrap_err();
        assert!(matches!(&refusal, ReceiveError::Conflicts(all) if all[0].path == "d/new"), "{refusal}");
        assert!(refusal.is_retryable(), "it may be moved away");
        assert!(matches!(sent, Err(SendError::Receiver { fault: Fault::Exists, text }) if text.contains("d/new")));
        assert_eq!(fs::read(to.path().join("d/new")).unwrap(), content(10, 2));
        assert_eq!(names(to.path()), ["d", "d/new", "d/same"]);
    }
    let forced = receiver_with(to.path(), |config| config.existing = Existing::Overwrite);
    assert_eq!(net.transfer(&forced, &paths).await.0.unwrap().sent.get(), 11);
    assert_eq!(fs::read(to.path().join("d/new")).unwrap(), content(11, 3));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_is_never_replaced_by_a_file() {
    let (from, to, net) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), Net::new());
    fs::write(from.path().join("x"), "1").unwrap();
    fs::create_dir(to.path().join("x")).unwrap();
    let forced = receiver_with(to.path(), |config| config.existing = Existing::Overwrite);
    let (_, received) = net.transfer(&forced, &[from.path().join("x")]).await;
    assert!(matches!(received, Err(ReceiveError::Conflicts(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_written_through_a_link_in_the_directory() {
    let (from, to, net) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), Net::new());
    let outside = tempfile::tempdir().unwrap();
    fs::create_dir(from.path().join("d")).unwrap();
    fs::write(from.path().join("d/x"), "1").unwrap();
    std::os::unix::fs::symlink(outside.path(), to.path().join("d")).unwrap();
    let forced = receiver_with(to.path(), |config| config.existing = Existing::Overwrite);
    let (_, received) = net.transfer(&forced, &[from.path().join("d")]).await;
    let error = received.unwrap_err();
    assert!(matches!(error, ReceiveError::Conflicts(_)), "{error}");
    assert_eq!(names(outside.path()), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kept_ticket_serves_again() {
    let (from, to, net) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), Net::new());
    let receiver = receiver_with(to.path(), |config| config.keep = true);
    for name in ["a", "b"] {
        fs::write(from.path().join(name), name).unwrap();
        let (sent, received) = net.transfer(&receiver, &[from.path().join(name)]).await;
        assert!(sent.is_ok() && received.is_ok());
    }
    assert_eq!(names(to.path()), ["a", "b"]);
}
