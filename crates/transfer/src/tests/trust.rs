use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use super::*;
use crate::manifest::PARTIAL;

/// Larger than what is on its way at a time, so that something is missing when the connection is cut.
const SIZE: usize = 48_000_000;

/// A transfer of `big` that was cut in the middle, into the directory that is returned.
async fn interrupted(net: &Net) -> (tempfile::TempDir, tempfile::TempDir, PathBuf) {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = from.path().join("big");
    fs::write(&path, content(SIZE, 1)).unwrap();
    let waiting = receiver(to.path());
    let (sending, receiving) = net.connect().await;
    let serving = serve(&waiting, receiving);
    let sender = Sender::new(Selection::collect(std::slice::from_ref(&path)).unwrap(), SECRET).unwrap();
    let connection = sending.clone();
    let sent = tokio::spawn(async move { sender.send(&connection).await });
    while waiting.progress().snapshot().bytes_done.get() < SIZE as u64 / 3 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    sending.close(9, "the cable was cut");
    assert!(sent.await.unwrap().is_err());
    assert!(serving.await.unwrap().is_err());
    (from, to, path)
}

fn part(to: &Path) -> PathBuf {
    let name = names(to).into_iter().find(|name| name.ends_with(".part")).unwrap();
    to.join(name)
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_resumed_from_a_directory_that_others_could_write() {
    let net = Net::new();
    let (_from, to, path) = interrupted(&net).await;
    set_mode(&to.path().join(PARTIAL), 0o777);
    let sent = net.transfer(&receiver(to.path()), &[path]).await.0.unwrap();
    assert_eq!(sent.resumed.get(), 0);
    assert_eq!(fs::read(to.path().join("big")).unwrap(), content(SIZE, 1));
    assert_eq!(names(to.path()), ["big"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_where_a_part_or_a_journal_should_be_is_set_aside_whole() {
    for ending in [".part", ".journal"] {
        let net = Net::new();
        let (from, to, path) = interrupted(&net).await;
        let place = part(to.path()).with_extension(&ending[1..]);
        fs::remove_file(&place).unwrap();
        fs::create_dir(&place).unwrap();
        fs::write(place.join("precious"), "precious").unwrap();
        let (sent, received) = net.transfer(&receiver(to.path()), std::slice::from_ref(&path)).await;
        assert!(sent.is_ok() && received.is_ok(), "{ending}: {sent:?} {received:?}");
        assert_eq!(fs::read(to.path().join("big")).unwrap(), fs::read(from.path().join("big")).unwrap());
        let aside = names(to.path()).into_iter().find(|name| name.ends_with("precious"));
        assert!(
            aside.is_some_and(|name| name.contains(&format!("{ending}.1.aside"))),
            "{ending}: {:?}",
            names(to.path())
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_with_a_second_name_or_behind_a_link_is_not_resumed() {
    for is_link in [false, true] {
        let net = Net::new();
        let (from, to, path) = interrupted(&net).await;
        let (part, elsewhere) = (part(to.path()), from.path().join("elsewhere"));
        match is_link {
            false => fs::hard_link(&part, &elsewhere).unwrap(),
            true => {
                fs::copy(&part, &elsewhere).unwrap();
                fs::remove_file(&part).unwrap();
                std::os::unix::fs::symlink(&elsewhere, &part).unwrap();
            }
        }
        let before = fs::read(&elsewhere).unwrap();
        let sent = net.transfer(&receiver(to.path()), &[path]).await.0.unwrap();
        assert_eq!(sent.resumed.get(), 0);
        assert!(fs::read(&elsewhere).unwrap() == before, "nothing was written through the other name");
        assert_ne!(
            fs::metadata(to.path().join("big")).unwrap().ino(),
            fs::metadata(&elsewhere).unwrap().ino(),
            "what was placed has no other name"
        );
        assert_eq!(names(to.path()), ["big"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_of_somebody_else_is_refused_with_its_owner() {
    let (from, to, net) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), Net::new());
    fs::write(from.path().join("x"), "1").unwrap();
    let partial = to.path().join(PARTIAL);
    fs::create_dir(&partial).unwrap();
    if std::os::unix::fs::chown(&partial, Some(12_345), None).is_err() {
        println!("skipped: only root can give a directory to somebody else");
        return;
    }
    let (sent, received) = net.transfer(&receiver(to.path()), &[from.path().join("x")]).await;
    let error = received.unwrap_err();
    assert!(matches!(error, ReceiveError::Untrusted { owner: 12_345, .. }), "{error}");
    assert!(sent.unwrap_err().to_string().contains(PARTIAL));
    assert_eq!(names(to.path()), [PARTIAL]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_earlier_transfers_left_behind_is_removed_and_what_can_be_resumed_is_kept() {
    let net = Net::new();
    let (from, to, _) = interrupted(&net).await;
    let partial = to.path().join(PARTIAL);
    let of_another = names(&partial);
    assert_eq!(of_another.len(), 2, "{of_another:?}");
    let id = "0".repeat(32);
    for name in [format!("{id}.journal"), "1".repeat(32) + ".part", format!("{id}.journal.new"), "reserve".into()] {
        fs::write(partial.join(name), "left behind").unwrap();
    }
    fs::write(from.path().join("x"), "1").unwrap();
    let (sent, received) = net.transfer(&receiver(to.path()), &[from.path().join("x")]).await;
    assert!(sent.is_ok() && received.is_ok());
    assert_eq!(names(&partial), of_another, "the interrupted transfer of another file can still go on");
    assert_eq!(fs::metadata(&partial).unwrap().permissions().mode() & 0o777, 0o700);
}

/// The file that is moved to the final name is the one whose content was hashed, and no other.
#[test]
fn a_part_that_is_swapped_after_it_was_verified_is_not_placed() {
    use crate::Entry;
    use crate::destination::{Destination, Found};
    use crate::partial::PartNames;
    use crate::partial::Partial;
    use crate::placing::{Placing, Verified};
    use crate::source::Identity;

    let to = tempfile::tempdir().unwrap();
    let mut destination = Destination::open(to.path()).unwrap();
    let partial = Partial::open(&destination).unwrap().0;
    let name = PartNames::of(&"x".into()).data;
    let file = partial.create(&name).unwrap();
    let identity = Identity::of(&rustix::fs::fstat(&file).unwrap());
    let verified = Verified { number: 0, digest: *blake3::hash(b"").as_bytes(), identity, size: 0, has_journal: false };
    partial.replace(&name, b"swapped").unwrap();
    let how = Placing { existing: Existing::Overwrite, keeps_modes: true };
    let error = verified.place(&mut destination, &partial, &Entry::file("x", 5), how).unwrap_err();
    assert!(matches!(error, ReceiveError::Meddled(_)), "{error}");
    assert!(matches!(partial.reopen(&name, identity), Err(ReceiveError::Meddled(_))));
    assert_eq!(destination.find(b"x").unwrap(), Found::Nothing);
}
