//! An archive keeps more than other transfers do.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::time::{Duration, SystemTime};

use super::*;
use crate::attributes::{self, Attribute};
use crate::{Choice, Name, Reason};

/// Sends a directory with all that is kept, into `to`.
async fn archived(net: &Net, root: &Path, waiting: &Arc<Receiver>) -> (Result<Sent, SendError>, Received) {
    let choice = Choice { archive: true, ..Choice::default() };
    let selection = Selection::collect_with(&[root.to_owned()], &choice).unwrap();
    let (sending, receiving) = net.connect().await;
    let serving = serve(waiting, receiving);
    let sent = Sender::new(selection, SECRET).unwrap().send(&sending).await;
    (sent, serving.await.unwrap().unwrap())
}

fn inode(path: &Path) -> (u64, u64) {
    let there = fs::symlink_metadata(path).unwrap();
    (there.ino(), there.nlink())
}

#[tokio::test(flavor = "multi_thread")]
async fn hard_links_stay_links_and_travel_once() {
    let (from, to, net) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), Net::new());
    let root = from.path().join("d");
    fs::create_dir_all(root.join("deep")).unwrap();
    fs::write(root.join("a"), content(300_000, 1)).unwrap();
    fs::write(root.join("alone"), "x").unwrap();
    for name in ["b", "deep/c"] {
        fs::hard_link(root.join("a"), root.join(name)).unwrap();
    }
    let (sent, _) = archived(&net, &root, &receiver(to.path())).await;
    let sent = sent.unwrap();
    assert_eq!((sent.files, sent.sent.get()), (2, 300_001));
    let at = |name: &str| to.path().join("d").join(name);
    assert_eq!(inode(&at("a")).1, 3);
    assert!(["b", "deep/c"].iter().all(|name| inode(&at(name)) == inode(&at("a"))) && inode(&at("alone")).1 == 1);
    assert!(fs::read(at("deep/c")).unwrap() == content(300_000, 1));
    // Sent again, nothing is in the way; what is another file is.
    archived(&net, &root, &receiver(to.path())).await.0.unwrap();
    fs::remove_file(at("b")).unwrap();
    fs::write(at("b"), "other").unwrap();
    let renaming = receiver_with(to.path(), |config| config.existing = Existing::Rename);
    archived(&net, &root, &renaming).await.0.unwrap();
    assert_eq!((fs::read(at("b")).unwrap(), inode(&at("b (1)"))), (b"other".to_vec(), inode(&at("a"))));
    let forced = receiver_with(to.path(), |config| config.existing = Existing::Overwrite);
    archived(&net, &root, &forced).await.0.unwrap();
    assert_eq!(inode(&at("b")), inode(&at("a")));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_file_that_is_left_out_there_is_no_other_name() {
    let (from, to, net) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), Net::new());
    let root = from.path().join("d");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("a"), "1").unwrap();
    fs::hard_link(root.join("a"), root.join("b")).unwrap();
    let choice = Choice { archive: true, ..Choice::default() };
    let selection = Selection::collect_with(std::slice::from_ref(&root), &choice).unwrap();
    fs::write(root.join("a"), "changed").unwrap();
    let (sending, receiving) = net.connect().await;
    let serving = serve(&receiver(to.path()), receiving);
    let sent = Sender::new(selection, SECRET).unwrap().send(&sending).await.unwrap();
    let told: Vec<_> = sent.skipped.iter().map(|one| (one.path.clone(), one.reason)).collect();
    assert_eq!(told, [(root.join("a"), Reason::Changed), (root.join("b"), Reason::InTheWay)]);
    assert_eq!(serving.await.unwrap().unwrap().skipped.len(), 2);
}

/// The receiver takes no hidden names: the file goes under the first of its other names.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_whose_first_name_is_not_taken_arrives_under_the_others() {
    let (from, to, net) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), Net::new());
    let root = from.path().join("d");
    fs::create_dir(&root).unwrap();
    fs::write(root.join(".a"), content(1000, 1)).unwrap();
    for name in ["b", "c"] {
        fs::hard_link(root.join(".a"), root.join(name)).unwrap();
    }
    let waiting = receiver_with(to.path(), |config| config.limits.hidden = false);
    archived(&net, &root, &waiting).await.0.unwrap();
    assert_eq!(names(to.path()), ["d", "d/b", "d/c"]);
    assert_eq!(inode(&to.path().join("d/b")), inode(&to.path().join("d/c")));
    assert_eq!(fs::read(to.path().join("d/c")).unwrap(), content(1000, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn times_of_directories_and_attributes_are_kept_where_the_receiver_wants_them() {
    let (from, net) = (tempfile::tempdir().unwrap(), Net::new());
    let root = from.path().join("d");
    fs::create_dir_all(root.join("e")).unwrap();
    fs::write(root.join("e/x"), "x").unwrap();
    fs::write(root.join("large"), content(200_000, 1)).unwrap();
    let wanted = [Attribute { name: "user.note".into(), value: Name::new(b"\0\xff") }];
    for name in ["e", "e/x", "large"] {
        attributes::set(File::open(root.join(name)).unwrap(), &wanted).unwrap();
    }
    let has_attributes = !attributes::read(File::open(root.join("e/x")).unwrap()).is_empty();
    if !has_attributes {
        println!("skipped: this file system keeps no attributes of users");
    }
    fs::set_permissions(root.join("e"), fs::Permissions::from_mode(0o555)).unwrap();
    let time = SystemTime::UNIX_EPOCH + Duration::from_millis(1_500_000_000_123);
    for name in ["e", "."] {
        File::open(root.join(name)).unwrap().set_modified(time).unwrap();
    }
    for is_wanted in [true, false] {
        let to = tempfile::tempdir().unwrap();
        let waiting = receiver_with(to.path(), |config| config.limits.archive = is_wanted);
        archived(&net, &root, &waiting).await.0.unwrap();
        let at = |name: &str| to.path().join("d").join(name);
        for name in ["e", "."] {
            assert_eq!(fs::metadata(at(name)).unwrap().modified().unwrap() == time, is_wanted, "{name}");
        }
        for name in ["e", "e/x", "large"] {
            let found = attributes::read(File::open(at(name)).unwrap());
            assert_eq!(found == wanted, is_wanted && has_attributes, "{name}: {found:?}");
        }
        assert_eq!(fs::metadata(at("e")).unwrap().permissions().mode() & 0o777, 0o555);
        // The directory that holds all can be removed again.
        fs::set_permissions(at("e"), fs::Permissions::from_mode(0o755)).unwrap();
    }
    fs::set_permissions(root.join("e"), fs::Permissions::from_mode(0o755)).unwrap();
}
