use std::fs;
use std::process::Command;

use super::*;
use crate::Fault;

/// A small file system of its own; unmounted in the end.
pub(super) struct Mount {
    path: PathBuf,
    // Removed after it.
    directory_of_its_own: Option<tempfile::TempDir>,
}

impl Mount {
    /// Mounts a tmpfs; `None`, with the reason printed, where that is not allowed.
    pub(super) fn tmpfs(options: &str) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let mut mount = Self::tmpfs_at(directory.path().to_owned(), options)?;
        mount.directory_of_its_own = Some(directory);
        Some(mount)
    }

    /// The same on an existing directory.
    pub(super) fn tmpfs_at(path: PathBuf, options: &str) -> Option<Self> {
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(&path).output();
        match mount {
            Ok(output) if output.status.success() => Some(Self { path, directory_of_its_own: None }),
            other => {
                println!("skipped: no tmpfs can be mounted here ({other:?}); it needs root");
                None
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.path).status();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_is_too_small_is_refused_before_anything_is_sent() {
    let Some(mount) = Mount::tmpfs("size=1m") else { return };
    let (from, net) = (tempfile::tempdir().unwrap(), Net::new());
    fs::write(from.path().join("x"), content(2_000_000, 1)).unwrap();
    let (sent, received) = net.transfer(&receiver(mount.path()), &[from.path().join("x")]).await;
    let error = received.unwrap_err();
    assert!(matches!(error, ReceiveError::NoSpace { .. }), "{error}");
    assert!(matches!(sent, Err(SendError::Receiver { fault: Fault::DiskFull, text }) if text.contains("2.0 MB")));
    assert_eq!(names(mount.path()), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_may_not_be_written_is_named_on_both_sides() {
    let Some(mount) = Mount::tmpfs("ro,size=1m") else { return };
    let (from, net) = (tempfile::tempdir().unwrap(), Net::new());
    fs::write(from.path().join("x"), "1").unwrap();
    let (sent, received) = net.transfer(&receiver(mount.path()), &[from.path().join("x")]).await;
    let error = received.unwrap_err();
    assert!(matches!(error, ReceiveError::ReadOnly(_)), "{error}");
    let told = sent.unwrap_err().to_string();
    assert!(told.contains("is read-only") && told.contains(mount.path().to_str().unwrap()), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn files_below_a_mount_point_in_the_directory_arrive() {
    let (from, to, net) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), Net::new());
    let root = from.path().join("d");
    fs::create_dir_all(root.join("mounted/deep/empty")).unwrap();
    let files = [("here", 10), ("mounted/small", 10), ("mounted/deep/large", 300_000), ("mounted/deep/empty file", 0)];
    for (name, length) in files {
        fs::write(root.join(name), content(length, length as u64)).unwrap();
    }
    fs::create_dir_all(to.path().join("d/mounted")).unwrap();
    let Some(_mount) = Mount::tmpfs_at(to.path().join("d/mounted"), "size=4m") else { return };
    // The rest of an attempt that was killed in the middle of its copy.
    let hidden = format!(".fairpath-{}", crate::partial::PartNames::of(&"d/mounted/small".into()).data);
    fs::write(to.path().join("d/mounted").join(hidden), "half").unwrap();

    let (sent, received) = net.transfer(&receiver(to.path()), std::slice::from_ref(&root)).await;
    assert!(sent.unwrap().skipped.is_empty());
    received.unwrap();
    assert_eq!(names(to.path()), names(from.path()));
    for (name, length) in files {
        let copy = to.path().join("d").join(name);
        assert_eq!(fs::read(&copy).unwrap(), content(length, length as u64), "{name}");
        let of = |path: &Path| fs::metadata(path).unwrap().modified().unwrap();
        assert_eq!(of(&copy), of(&root.join(name)), "{name}");
    }

    // There, too, nothing is overwritten unless that is allowed.
    fs::write(root.join("mounted/small"), "other").unwrap();
    let forced = receiver_with(to.path(), |config| config.existing = Existing::Overwrite);
    let refused = net.transfer(&receiver(to.path()), std::slice::from_ref(&root)).await.1;
    assert!(matches!(refused, Err(ReceiveError::Conflicts(_))));
    net.transfer(&forced, &[root]).await.0.unwrap();
    assert_eq!(fs::read(to.path().join("d/mounted/small")).unwrap(), b"other");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mounted_disk_that_is_too_small_is_refused_by_name_before_anything_is_sent() {
    let (from, to, net) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), Net::new());
    let root = from.path().join("d");
    fs::create_dir_all(root.join("mounted")).unwrap();
    fs::write(root.join("mounted/x"), content(2_000_000, 1)).unwrap();
    fs::create_dir_all(to.path().join("d/mounted")).unwrap();
    let Some(_mount) = Mount::tmpfs_at(to.path().join("d/mounted"), "size=1m") else { return };
    let error = net.transfer(&receiver(to.path()), &[root]).await.1.unwrap_err();
    let ReceiveError::NoSpace { directory, .. } = &error else { panic!("{error}") };
    assert_eq!(*directory, to.path().join("d/mounted"));
}
