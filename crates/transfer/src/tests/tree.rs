//! Permissions, links, names, and files that exist.

use std::fs;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use super::*;
use crate::{Choice, Entry, Links, Reason, SenderId, Skipped};

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

/// Two directories, a root to fill in the first, and what is between them.
struct Ends {
    from: tempfile::TempDir,
    to: tempfile::TempDir,
    net: Net,
}

impl Ends {
    fn new() -> Self {
        let ends = Self { from: tempfile::tempdir().unwrap(), to: tempfile::tempdir().unwrap(), net: Net::new() };
        fs::create_dir(ends.root()).unwrap();
        ends
    }

    fn root(&self) -> PathBuf {
        self.from.path().join("d")
    }

    fn at(&self, name: &str) -> PathBuf {
        self.to.path().join("d").join(name)
    }

    async fn send_to(&self, receiver: &Arc<Receiver>) -> (Sent, Received) {
        let (sent, received) = self.net.transfer(receiver, &[self.root()]).await;
        (sent.unwrap(), received.unwrap())
    }

    fn receiver(&self, existing: Existing) -> Arc<Receiver> {
        receiver_with(self.to.path(), |config| config.existing = existing)
    }
}

/// Files and directories with these permissions, and what is expected of them at the receiver.
const MODES: [(&str, u32); 8] = [
    ("key", 0o600),
    ("open", 0o666),
    ("closed", 0o400),
    ("run", 0o755),
    ("as somebody", 0o6755),
    ("private", 0o700),
    ("shared", 0o1777),
    ("fixed", 0o555),
];

fn with_modes(root: &Path) {
    for (name, mode) in MODES {
        let path = root.join(name);
        match name {
            "private" | "shared" | "fixed" => {
                fs::create_dir(&path).unwrap();
                fs::write(path.join("inside"), "x").unwrap();
            }
            _ => fs::write(&path, name).unwrap(),
        }
        set_mode(&path, mode);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_more_open_than_at_the_sender() {
    let ends = Ends::new();
    with_modes(&ends.root());
    set_mode(&ends.root(), 0o700);
    let careful = receiver_with(ends.to.path(), |config| config.limits.modes = false);
    ends.send_to(&careful).await;
    // The mask of this user says how open a new file is.
    fs::write(ends.to.path().join("probe"), "").unwrap();
    let masked = mode(&ends.to.path().join("probe"));
    for (name, offered) in MODES {
        let path = ends.at(name);
        let (new, most) = if path.is_dir() { (masked | (masked & 0o444) >> 2, 0o777) } else { (masked, 0o666) };
        assert_eq!(mode(&path), new & offered & most, "{name}");
    }
    assert_eq!(mode(&ends.to.path().join("d")), 0o700);
    assert_eq!(fs::read(ends.at("fixed/inside")).unwrap(), b"x");
}

#[tokio::test(flavor = "multi_thread")]
async fn kept_permissions_are_all_but_those_to_run_as_somebody_else() {
    let ends = Ends::new();
    with_modes(&ends.root());
    ends.send_to(&receiver(ends.to.path())).await;
    for (name, offered) in MODES {
        assert_eq!(mode(&ends.at(name)), offered & 0o1777, "{name}");
    }
}

/// A directory that its owner may not write takes what comes later all the same, and stays as it is.
#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_is_closed_takes_what_is_sent_later() {
    let ends = Ends::new();
    with_modes(&ends.root());
    ends.send_to(&receiver(ends.to.path())).await;
    set_mode(&ends.root().join("fixed"), 0o755);
    fs::write(ends.root().join("fixed/more"), "y").unwrap();
    set_mode(&ends.root().join("fixed"), 0o555);
    ends.send_to(&receiver(ends.to.path())).await;
    assert_eq!((mode(&ends.at("fixed")), fs::read(ends.at("fixed/more")).unwrap()), (0o555, b"y".to_vec()));
}

#[tokio::test(flavor = "multi_thread")]
async fn links_inside_arrive_as_links_and_others_are_named_at_both_ends() {
    let ends = Ends::new();
    fs::create_dir(ends.root().join("e")).unwrap();
    fs::write(ends.root().join("f"), "f").unwrap();
    for (name, target) in [("in", "f"), ("e/up", "../f"), ("dangling", "g"), ("out", "../x"), ("e/etc", "/etc")] {
        symlink(target, ends.root().join(name)).unwrap();
    }
    let selection = Selection::collect(&[ends.root()]).unwrap();
    let named: Vec<_> =
        selection.skipped().iter().map(|one| one.path.strip_prefix(ends.from.path()).unwrap()).collect();
    assert_eq!(named, [Path::new("d/e/etc"), Path::new("d/out")]);
    let waiting = receiver(ends.to.path());
    let (_, received) = ends.send_to(&waiting).await;
    let outside = |name: &str| Skipped { path: name.into(), reason: Reason::LeadsOut };
    assert_eq!(received.unsent, [outside("d/e/etc"), outside("d/out")]);
    assert!(received.is_complete() && !waiting.is_open(), "no other try brings them");
    assert_eq!(names(ends.to.path()), ["d", "d/dangling", "d/e", "d/e/up", "d/f", "d/in"]);
    assert_eq!(fs::read_link(ends.at("e/up")).unwrap(), Path::new("../f"));

    // The same links are there: nothing is in the way.
    ends.send_to(&receiver(ends.to.path())).await;
    fs::remove_file(ends.root().join("in")).unwrap();
    symlink("e", ends.root().join("in")).unwrap();
    let (_, refused) = ends.net.transfer(&receiver(ends.to.path()), &[ends.root()]).await;
    assert!(refused.unwrap_err().to_string().contains("\"d/in\" is not the same link here"));
    ends.send_to(&ends.receiver(Existing::Overwrite)).await;
    assert_eq!(fs::read_link(ends.at("in")).unwrap(), Path::new("e"));
}

#[tokio::test(flavor = "multi_thread")]
async fn followed_links_arrive_as_what_they_lead_to() {
    let ends = Ends::new();
    let elsewhere = ends.from.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("x"), content(200_000, 1)).unwrap();
    symlink(&elsewhere, ends.root().join("l")).unwrap();
    symlink("l/x", ends.root().join("x")).unwrap();
    let choice = Choice { links: Links::Follow, ..Choice::default() };
    let selection = Selection::collect_with(&[ends.root()], &choice).unwrap();
    let (sending, receiving) = ends.net.connect().await;
    let serving = serve(&receiver(ends.to.path()), receiving);
    Sender::new(selection, SECRET).unwrap().send(&sending).await.unwrap();
    serving.await.unwrap().unwrap();
    for name in ["l/x", "x"] {
        assert!(fs::symlink_metadata(ends.at(name)).unwrap().is_file());
        assert_eq!(fs::read(ends.at(name)).unwrap(), content(200_000, 1));
    }
}

/// A link that one transfer has brought does not lead the next one anywhere, not even inside the directory.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_written_through_a_link_that_came_before() {
    let ends = Ends::new();
    fs::create_dir(ends.root().join("e")).unwrap();
    symlink("e", ends.root().join("l")).unwrap();
    ends.send_to(&receiver(ends.to.path())).await;
    fs::remove_file(ends.root().join("l")).unwrap();
    fs::create_dir(ends.root().join("l")).unwrap();
    fs::write(ends.root().join("l/x"), "x").unwrap();
    for existing in [Existing::Refuse, Existing::Rename, Existing::Overwrite] {
        let (_, refused) = ends.net.transfer(&ends.receiver(existing), &[ends.root()]).await;
        assert!(matches!(refused, Err(ReceiveError::Conflicts(_))), "{existing:?}: {refused:?}");
    }
    for existing in [Existing::Skip, Existing::Newer] {
        let (sent, received) = ends.send_to(&ends.receiver(existing)).await;
        assert!(received.is_complete() && received.skipped.len() == 2, "{received:?}");
        assert_eq!(sent.skipped.len(), 2);
    }
    assert_eq!(names(ends.to.path()), ["d", "d/e", "d/l"]);
}

/// Nor does a sender that lies: a link and what would be written through it, in one list.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_with_links_that_lead_out_is_refused_before_anything_is_written() {
    let ends = Ends::new();
    let through = vec![Entry::link("d/l", "e"), Entry::file("d/l/x", 1)];
    let out = |target: &str| vec![Entry::directory("d"), Entry::link("d/l", target)];
    let root = vec![Entry::link("l", "x")];
    for entries in [through, out("/etc"), out("../x"), out("e/../../x"), out(".."), root] {
        let (sending, receiving) = ends.net.connect().await;
        let serving = serve(&receiver(ends.to.path()), receiving);
        let control = malice::greet_as(&sending, SenderId::from_bytes([7; 16])).await;
        malice::offer(&control, entries).await;
        let error = serving.await.unwrap().unwrap_err();
        assert!(matches!(error, ReceiveError::Manifest(_)), "{error}");
    }
    assert_eq!(names(ends.to.path()), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn names_of_any_bytes_arrive_as_they_are() {
    let ends = Ends::new();
    let odd = [&b"caf\xe9"[..], b"back\\slash", b"c:x", b"\xff\xfe.txt", "grüße".as_bytes(), b"it's \"it\""];
    for name in odd {
        let path = ends.root().join(std::ffi::OsStr::from_bytes(name));
        if fs::write(&path, name).is_err() {
            println!("skipped: this file system takes no such names");
            return;
        }
    }
    let (sent, received) = ends.send_to(&receiver(ends.to.path())).await;
    assert_eq!((sent.files, received.unsent), (odd.len() as u64, vec![]));
    let mut found: Vec<_> =
        fs::read_dir(ends.at("")).unwrap().map(|item| item.unwrap().file_name().into_vec()).collect();
    found.sort();
    let mut expected = odd.map(<[u8]>::to_vec);
    expected.sort();
    assert_eq!(found, expected);
    let shown: Vec<_> = received.arrived.iter().map(|(name, _)| name.as_str()).collect();
    assert!(shown.contains(&"d/caf\\xe9") && shown.contains(&"d/back\\slash"), "{shown:?}");
}

/// A hole takes neither the network's time nor room on the disk, wherever it lies in the file.
#[tokio::test(flavor = "multi_thread")]
async fn holes_are_not_sent_and_stay_holes() {
    use std::os::unix::fs::FileExt as _;
    let ends = Ends::new();
    let size = 100 << 20;
    let sparse = fs::File::create(ends.root().join("sparse")).unwrap();
    sparse.set_len(size).unwrap();
    sparse.write_all_at(b"in the middle", (40 << 20) + 5).unwrap();
    fs::File::create(ends.root().join("nothing")).unwrap().set_len(1 << 20).unwrap();
    let (sending, receiving) = ends.net.connect().await;
    let serving = serve(&receiver(ends.to.path()), receiving);
    Sender::new(Selection::collect(&[ends.root()]).unwrap(), SECRET).unwrap().send(&sending).await.unwrap();
    serving.await.unwrap().unwrap();
    let carried: u64 = sending.paths().iter().map(|path| path.acked.get()).sum();
    assert!(carried < 1 << 20, "{carried} bytes for some kilobytes of data");
    let arrived = fs::File::open(ends.at("sparse")).unwrap();
    assert_eq!(arrived.metadata().unwrap().len(), size);
    let on_disk = arrived.metadata().unwrap().blocks() * 512;
    let kept = fs::metadata(ends.root().join("sparse")).unwrap().blocks() * 512;
    assert!(on_disk <= kept.max(1 << 20), "{on_disk} bytes on the disk, {kept} at the sender");
    let same = |name: &str| fs::read(ends.at(name)).unwrap() == fs::read(ends.root().join(name)).unwrap();
    assert!(same("sparse") && same("nothing"));
}

/// The receiver lists what arrived, not what was offered.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_vanished_is_not_among_what_arrived() {
    let ends = Ends::new();
    for name in ["a", "b"] {
        fs::write(ends.root().join(name), name).unwrap();
    }
    let selection = Selection::collect(&[ends.root()]).unwrap();
    fs::remove_file(ends.root().join("a")).unwrap();
    let (sending, receiving) = ends.net.connect().await;
    let serving = serve(&receiver(ends.to.path()), receiving);
    Sender::new(selection, SECRET).unwrap().send(&sending).await.unwrap();
    let received = serving.await.unwrap().unwrap();
    assert_eq!(received.arrived, [("d/b".to_owned(), fairpath_core::ByteCount::new(1))]);
    assert!(!received.is_complete());
}

/// Existing files: `old` is older than what is sent, `new` newer, `same` the same, `other` a directory.
fn occupy(ends: &Ends) {
    fs::create_dir_all(ends.at("other")).unwrap();
    let at = |seconds| std::time::UNIX_EPOCH + Duration::from_secs(seconds);
    for (name, there, seconds) in [("old", "here", 100), ("new", "here!", 300), ("same", "sent", 100)] {
        fs::write(ends.at(name), there).unwrap();
        fs::File::options().write(true).open(ends.at(name)).unwrap().set_modified(at(seconds)).unwrap();
    }
    for name in ["old", "new", "same", "free"] {
        fs::write(ends.root().join(name), "sent").unwrap();
        let file = fs::File::options().write(true).open(ends.root().join(name)).unwrap();
        file.set_modified(at(200)).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn existing_files_become_what_the_receiver_wants() {
    for (existing, old, new, skipped) in [
        (Existing::Skip, "here", "here!", vec![("d/new", Reason::Kept), ("d/old", Reason::Kept)]),
        (Existing::Newer, "sent", "here!", vec![("d/new", Reason::NotNewer)]),
        (Existing::Overwrite, "sent", "sent", vec![]),
        (Existing::Rename, "here", "here!", vec![]),
    ] {
        let ends = Ends::new();
        occupy(&ends);
        let waiting = ends.receiver(existing);
        let (sent, received) = ends.send_to(&waiting).await;
        let read = |name: &str| fs::read_to_string(ends.at(name)).unwrap();
        assert_eq!((read("old").as_str(), read("new").as_str()), (old, new), "{existing:?}");
        assert_eq!((read("same"), read("free")), ("sent".to_owned(), "sent".to_owned()));
        let told: Vec<_> = received.skipped.iter().map(|one| (one.path.to_str().unwrap(), one.reason)).collect();
        assert_eq!((told, sent.skipped.len()), (skipped.clone(), skipped.len()), "{existing:?}");
        assert!(received.is_complete() && !waiting.is_open(), "what was not wanted is not waited for");
        if existing == Existing::Rename {
            assert_eq!((read("old (1)"), read("new (1)")), ("sent".to_owned(), "sent".to_owned()));
            assert!(received.arrived.iter().any(|(name, _)| name == "d/old (1)"), "{received:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn all_names_that_are_taken_are_told_at_once_and_the_receiver_goes_on_waiting() {
    let ends = Ends::new();
    occupy(&ends);
    fs::write(ends.root().join("other"), "a file").unwrap();
    let waiting = receiver(ends.to.path());
    let (sent, refused) = ends.net.transfer(&waiting, &[ends.root()]).await;
    let (told, error) = (sent.unwrap_err().to_string(), refused.unwrap_err());
    for said in ["\"d/new\" already exists", "\"d/old\" already exists", "\"d/other\" is a directory here"] {
        assert!(error.to_string().contains(said) && told.contains(said), "{said}: {error}; {told}");
    }
    assert!(error.is_retryable() && waiting.is_open());
    assert!(!ends.at("free").exists(), "nothing was written");
    fs::remove_dir(ends.at("other")).unwrap();
    for name in ["old", "new"] {
        fs::remove_file(ends.at(name)).unwrap();
    }
    ends.send_to(&waiting).await;
    assert_eq!(fs::read(ends.at("other")).unwrap(), b"a file");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_system_without_inodes_is_told_by_that() {
    let Some(mount) = disk::Mount::tmpfs("size=4m,nr_inodes=20") else { return };
    let ends = Ends::new();
    for number in 0..30 {
        fs::write(ends.root().join(number.to_string()), "x").unwrap();
    }
    let (sent, refused) = ends.net.transfer(&receiver(mount.path()), &[ends.root()]).await;
    let error = refused.unwrap_err();
    assert!(matches!(error, ReceiveError::NoInodes { needed: 31, .. }), "{error}");
    assert!(sent.unwrap_err().to_string().contains("inodes"));
    assert!(fs::metadata(mount.path()).unwrap().dev() > 0 && names(mount.path()).is_empty());
}
