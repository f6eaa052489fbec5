use std::fs;
use std::process::Command;

use super::*;
use crate::Fault;

/// A small file system of its own; unmounted in the end.
pub(super) struct Mount(tempfile::TempDir);

impl Mount {
    /// Mounts a tmpfs; `None`, with the reason printed, where that is not allowed.
    pub(super) fn tmpfs(options: &str) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(directory.path()).output();
        match mount {
            Ok(output) if output.status.success() => Some(Self(directory)),
            other => {
                println!("skipped: no tmpfs can be mounted here ({other:?}); it needs root");
                None
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
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
    assert!(matches!(sent, Err(SendError::Receiver { fault: Fault::DiskFull, text }) if text.contains("2000.0 kB")));
    assert_eq!(names(mount.path()), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_may_not_be_written_is_named_on_both_sides() {
    let Some(mount) = Mount::tmpfs("ro,size=1m") else { return };
    let (from, net) = (tempfile::tempdir().unwrap(), Net::new());
    fs::write(from.path().join("x"), "1").unwrap();
    let (sent, received) = net.transfer(&receiver(mount.path()), &[from.path().join("x")]).await;
    let error = received.unwrap_err();
    assert!(matches!(error, ReceiveError::PermissionDenied(_)), "{error}");
    let told = sent.unwrap_err().to_string();
    assert!(told.contains("permission denied") && told.contains(mount.path().to_str().unwrap()), "{told}");
}
