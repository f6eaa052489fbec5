use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::process::Command;

use super::*;
use crate::{Reason, Skipped};

fn append(path: &Path) {
    OpenOptions::new().append(true).open(path).unwrap().write_all(b"more").unwrap();
}

/// By the last component of the name.
fn reasons(skipped: &[Skipped]) -> BTreeMap<String, Reason> {
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    skipped.iter().map(|one| (name(&one.path), one.reason)).collect()
}

/// Sends a selection that was made before.
async fn send(
    net: &Net,
    receiver: &Arc<Receiver>,
    selection: Selection,
) -> (Result<Sent, SendError>, Result<Received, ReceiveError>) {
    let (sending, receiving) = net.connect().await;
    let serving = serve(receiver, receiving);
    let sent = Sender::new(selection, SECRET).unwrap().send(&sending).await;
    (sent, serving.await.unwrap())
}

/// Harms a file between the list and its being read, and gives the reason why it is then left out.
fn harm(path: &Path, kind: &str) -> Reason {
    match kind {
        "grows" => append(path),
        "shrinks" => File::options().write(true).open(path).unwrap().set_len(1).unwrap(),
        "is rewritten" => fs::write(path, vec![9; fs::metadata(path).unwrap().len() as usize]).unwrap(),
        "vanishes" => fs::remove_file(path).unwrap(),
        "becomes a link" => {
            fs::remove_file(path).unwrap();
            std::os::unix::fs::symlink("/etc/hostname", path).unwrap();
        }
        "becomes a pipe" => {
            fs::remove_file(path).unwrap();
            assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
        }
        "becomes a directory" => {
            fs::remove_file(path).unwrap();
            fs::create_dir(path).unwrap();
        }
        other => unreachable!("{other}"),
    }
    match kind {
        "grows" | "shrinks" | "is rewritten" => Reason::Changed,
        "vanishes" => Reason::Vanished,
        _ => Reason::Replaced,
    }
}

const KINDS: [&str; 7] =
    ["grows", "shrinks", "is rewritten", "vanishes", "becomes a link", "becomes a pipe", "becomes a directory"];

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_changes_is_left_out_and_named_on_both_sides_and_the_rest_arrives() {
    let (from, to, net) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), Net::new());
    let root = from.path().join("d");
    fs::create_dir(&root).unwrap();
    for (size, length) in [("small", 10), ("large", 200_000)] {
        for kind in KINDS {
            fs::write(root.join(format!("{size} {kind}")), content(length, 1)).unwrap();
        }
        fs::write(root.join(format!("{size} stays")), content(length, 2)).unwrap();
    }
    let selection = Selection::collect(std::slice::from_ref(&root)).unwrap();
    let mut expected = BTreeMap::new();
    for size in ["small", "large"] {
        for kind in KINDS {
            let name = format!("{size} {kind}");
            expected.insert(name.clone(), harm(&root.join(&name), kind));
        }
    }
    let waiting = receiver(to.path());
    let (sent, received) = send(&net, &waiting, selection).await;
    let (sent, received) = (sent.unwrap(), received.unwrap());

    assert_eq!(reasons(&sent.skipped), expected);
    assert_eq!(reasons(&received.skipped), expected);
    assert_eq!(names(to.path()), ["d", "d/large stays", "d/small stays"]);
    assert_eq!((sent.files, sent.bytes.get()), (2, 200_010));
    assert_eq!((received.files, received.bytes.get()), (2, 200_010));
    let progress = waiting.progress().snapshot();
    assert_eq!((progress.bytes_done, progress.files_done), (progress.bytes_total, progress.files_total));

    assert!(waiting.is_open(), "what was left out can follow");
    let (sent, received) = net.transfer(&waiting, std::slice::from_ref(&root)).await;
    assert!(sent.unwrap().skipped.is_empty() && received.unwrap().skipped.is_empty());
    assert!(!waiting.is_open(), "and then the ticket is used up");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_grows_while_it_is_read_is_left_out_and_the_next_one_arrives() {
    let (from, to, net) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), Net::new());
    let root = from.path().join("d");
    fs::create_dir(&root).unwrap();
    let log = root.join("log");
    // Far more than what is on its way at a time, so that its end is not yet read.
    fs::write(&log, vec![1; 400_000_000]).unwrap();
    fs::write(root.join("next"), content(300_000, 1)).unwrap();
    let waiting = receiver(to.path());
    let selection = Selection::collect(std::slice::from_ref(&root)).unwrap();
    let progress = waiting.progress();
    let growing = tokio::spawn(async move {
        while progress.snapshot().bytes_done.get() < 1_000_000 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        append(&log);
    });
    let (sent, received) = send(&net, &waiting, selection).await;
    growing.await.unwrap();
    let expected = BTreeMap::from([("log".to_owned(), Reason::Changed)]);
    assert_eq!(reasons(&sent.unwrap().skipped), expected);
    assert_eq!(reasons(&received.unwrap().skipped), expected);
    assert_eq!(names(to.path()), ["d", "d/next"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_existing_file_that_the_sender_can_no_longer_compare_stays_as_it_is() {
    let (from, to, net) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), Net::new());
    for name in ["gone", "same"] {
        fs::write(from.path().join(name), "1234").unwrap();
        fs::write(to.path().join(name), "1234").unwrap();
    }
    let paths = ["gone", "same"].map(|name| from.path().join(name));
    let selection = Selection::collect(&paths).unwrap();
    fs::remove_file(&paths[0]).unwrap();
    let (sent, received) = send(&net, &receiver(to.path()), selection).await;
    let expected = BTreeMap::from([("gone".to_owned(), Reason::Vanished)]);
    assert_eq!(reasons(&sent.unwrap().skipped), expected);
    assert_eq!(reasons(&received.unwrap().skipped), expected);
    assert_eq!(names(to.path()), ["gone", "same"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_into_a_files_place_meanwhile_stays_and_the_others_arrive() {
    let (from, to, net) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), Net::new());
    let root = from.path().join("d");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("a large one"), vec![1; 100_000_000]).unwrap();
    fs::write(root.join("b"), "sent").unwrap();
    fs::write(root.join("c"), "sent").unwrap();
    let waiting = receiver(to.path());
    let (progress, directory) = (waiting.progress(), to.path().to_owned());
    let competing = tokio::spawn(async move {
        while progress.snapshot().bytes_done.get() < 1_000_000 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        fs::create_dir_all(directory.join("d/c")).unwrap();
        fs::write(directory.join("d/b"), "competing").unwrap();
    });
    let (sent, received) = net.transfer(&waiting, &[root]).await;
    competing.await.unwrap();
    let expected = BTreeMap::from(["b", "c"].map(|name| (name.to_owned(), Reason::InTheWay)));
    assert_eq!(reasons(&sent.unwrap().skipped), expected);
    assert_eq!(reasons(&received.unwrap().skipped), expected);
    assert_eq!(fs::read(to.path().join("d/b")).unwrap(), b"competing");
    assert_eq!(names(to.path()), ["d", "d/a large one", "d/b", "d/c"]);
}
