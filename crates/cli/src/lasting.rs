//! A receiver that is the same over its runs: its key, the secret of its ticket, and its port, in a directory.
//!
//! The directory is locked while a receiver runs. What it holds is worth as much as the ticket, and more: so others
//! may not read it, and nothing of it ever stands on a command line.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use data_encoding::HEXLOWER;
use fairpath_quic::Identity;
use fairpath_transfer::{Secret, Ticket};
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

use crate::closed;

/// The file with key, secret and port.
const KEPT: &str = "receiver.json";

/// The file with the ticket that was printed last.
const TICKET: &str = "ticket";

/// The version of what is kept.
const VERSION: u32 = 1;

/// The things by which an end that listens is the same as in an earlier run.
#[derive(Debug)]
pub(crate) struct Being {
    pub(crate) identity: Identity,
    pub(crate) secret: Secret,
    /// The port, unless another is asked for; 0: any.
    pub(crate) port: u16,
}

impl Being {
    /// One that nobody has met.
    pub(crate) fn new() -> anyhow::Result<Self> {
        let secret = Secret::generate().context("the system gives no randomness")?;
        Ok(Self { identity: Identity::generate().context("no key can be made")?, secret, port: 0 })
    }
}

/// The directory of a receiver that is the same over its runs.
#[derive(Debug)]
pub(crate) struct Lasting {
    directory: PathBuf,
    kept: Kept,
    /// Locked as long as this is there.
    _lock: File,
}

/// The content of the file.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    version: u32,
    identity: String,
    secret: String,
    port: u16,
}

impl Lasting {
    /// Opens the directory, or makes it with a new key and a new secret. With `is_new_ticket` the secret is new in any
    /// case, so that all tickets before are of no more use.
    pub(crate) fn open(directory: &Path, is_new_ticket: bool) -> anyhow::Result<Self> {
        let shown = directory.display().to_string();
        closed::create_directory(directory).with_context(|| format!("cannot make {shown}"))?;
        check_closed(directory)?;
        let lock = File::open(directory).with_context(|| format!("cannot open {shown}"))?;
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                bail!(
                    "another `fairpath recv` runs with --state {shown}: end that one first, or name another directory"
                )
            }
            Err(error) => return Err(io::Error::from(error)).with_context(|| format!("cannot lock {shown}")),
        }
        let kept = match fs::read_to_string(directory.join(KEPT)) {
            Ok(text) => {
                check_closed(&directory.join(KEPT))?;
                Some(Kept::parse(&text).with_context(|| {
                    let path = directory.join(KEPT);
                    format!("{} cannot be used; put back a copy, or remove it for a new ticket", path.display())
                })?)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", directory.join(KEPT).display()));
            }
        };
        let is_written = kept.is_some() && !is_new_ticket;
        let mut kept = match kept {
            Some(kept) => kept,
            None => Kept::of(&Being::new()?),
        };
        if is_new_ticket {
            kept.secret = Kept::of(&Being::new()?).secret;
        }
        let lasting = Self { directory: directory.to_owned(), kept, _lock: lock };
        if !is_written {
            lasting.write_kept()?;
        }
        Ok(lasting)
    }

    /// The things by which this receiver is known.
    pub(crate) fn being(&self) -> anyhow::Result<Being> {
        self.kept.being()
    }

    /// Notes what others need to find this receiver: now, and in its next run.
    pub(crate) fn found_at(&mut self, port: u16, ticket: &Ticket) -> anyhow::Result<()> {
        if self.kept.port != port {
            self.kept.port = port;
            self.write_kept()?;
        }
        self.note_ticket(ticket)
    }

    /// Keeps the ticket in a file, for whoever does not see what is printed.
    pub(crate) fn note_ticket(&self, ticket: &Ticket) -> anyhow::Result<()> {
        self.write(TICKET, &format!("{ticket}\n"))
    }

    fn write_kept(&self) -> anyhow::Result<()> {
        self.write(KEPT, &(serde_json::to_string_pretty(&self.kept)? + "\n"))
    }

    /// The file has its old content or the new one, whatever happens meanwhile.
    fn write(&self, name: &str, content: &str) -> anyhow::Result<()> {
        let (path, part) = (self.directory.join(name), self.directory.join(format!("{name}.part")));
        let written = || {
            // One that was left by a run that was killed may have been made by anybody.
            match fs::remove_file(&part) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let mut file = closed::open_file(&part)?;
            file.write_all(content.as_bytes())?;
            file.sync_all()?;
            fs::rename(&part, &path)?;
            File::open(&self.directory)?.sync_all()
        };
        written().with_context(|| format!("cannot write {}", path.display()))
    }
}

impl Kept {
    fn of(being: &Being) -> Self {
        let (identity, secret) = (being.identity.to_bytes(), being.secret.to_bytes());
        let (identity, secret) = (HEXLOWER.encode(&identity), HEXLOWER.encode(&secret));
        Self { version: VERSION, identity, secret, port: being.port }
    }

    /// Reads the file. Errors do not quote it: it holds secrets.
    fn parse(text: &str) -> anyhow::Result<Self> {
        let Ok(kept) = serde_json::from_str::<Self>(text) else { bail!("it is damaged") };
        if kept.version != VERSION {
            bail!("it is of version {}, this program knows version {VERSION}", kept.version);
        }
        kept.being()?;
        Ok(kept)
    }

    fn being(&self) -> anyhow::Result<Being> {
        let identity = HEXLOWER.decode(self.identity.as_bytes()).ok().and_then(|bytes| Identity::from_bytes(&bytes));
        let secret = HEXLOWER.decode(self.secret.as_bytes()).ok().and_then(|bytes| bytes.try_into().ok());
        let (Some(identity), Some(secret)) = (identity, secret) else { bail!("it is damaged") };
        Ok(Being { identity, secret: Secret::from_bytes(secret), port: self.port })
    }
}

/// Refuses what belongs to somebody else, or may be read by others.
#[cfg(unix)]
fn check_closed(path: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    let shown = path.display();
    let metadata = path.metadata().with_context(|| format!("cannot look at {shown}"))?;
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        bail!("{shown} belongs to another user: name a directory of yours");
    }
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        let right = if metadata.is_dir() { "700" } else { "600" };
        bail!("{shown} is open to other users (mode {mode:o}), and holds a key: chmod {right} {shown}");
    }
    Ok(())
}

#[cfg(not(unix))]
fn check_closed(_: &Path) -> anyhow::Result<()> {
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn ticket(lasting: &Lasting) -> (String, u16) {
        let Being { identity, secret, port } = lasting.being().unwrap();
        let ticket = Ticket { addresses: vec![], fingerprint: identity.fingerprint().0, secret };
        (ticket.to_string(), port)
    }

    fn refusal(directory: &Path) -> String {
        format!("{:#}", Lasting::open(directory, false).unwrap_err())
    }

    #[test]
    fn a_receiver_is_the_same_in_its_next_run_and_a_new_ticket_changes_its_secret_only() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("a/state");
        let mut first = Lasting::open(&directory, false).unwrap();
        let (word, port) = ticket(&first);
        assert_eq!(port, 0);
        assert!(refusal(&directory).contains("another `fairpath recv` runs with --state"));
        first.found_at(4433, &word.parse().unwrap()).unwrap();
        drop(first);
        assert_eq!(fs::read_to_string(directory.join(TICKET)).unwrap(), format!("{word}\n"));
        assert_eq!(ticket(&Lasting::open(&directory, false).unwrap()), (word.clone(), 4433));
        let (new, port) = ticket(&Lasting::open(&directory, true).unwrap());
        let [old, now]: [Ticket; 2] = [&word, &new].map(|word| word.parse().unwrap());
        assert!(port == 4433 && old.fingerprint == now.fingerprint && old.secret != now.secret);
        assert_eq!(ticket(&Lasting::open(&directory, false).unwrap()).0, new, "the new one lasts");
    }

    #[test]
    fn nobody_else_can_read_what_is_kept_and_what_others_can_read_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("state");
        let mut lasting = Lasting::open(&directory, false).unwrap();
        let word = ticket(&lasting).0;
        lasting.found_at(1, &word.parse().unwrap()).unwrap();
        drop(lasting);
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&directory), 0o700);
        for (path, open) in [(directory.join(KEPT), 0o640), (directory.clone(), 0o755)] {
            let before = mode(&path);
            fs::set_permissions(&path, fs::Permissions::from_mode(open)).unwrap();
            let told = refusal(&directory);
            assert!(told.contains(&format!("mode {open:o}")) && told.contains(&format!("chmod {before:o} ")), "{told}");
            fs::set_permissions(&path, fs::Permissions::from_mode(before)).unwrap();
        }
        assert_eq!((mode(&directory.join(KEPT)), mode(&directory.join(TICKET))), (0o600, 0o600));
    }

    #[test]
    fn a_damaged_file_is_named_and_its_content_is_not() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("state");
        drop(Lasting::open(&directory, false).unwrap());
        let path = directory.join(KEPT);
        let whole = fs::read_to_string(&path).unwrap();
        let later = whole.replace("\"version\": 1", "\"version\": 9");
        for (text, why) in [(&whole[..whole.len() / 2], "it is damaged"), (&later, "version 9"), ("{}", "damaged")] {
            fs::write(&path, text).unwrap();
            let told = refusal(&directory);
            assert!(told.contains("receiver.json cannot be used") && told.contains(why), "{told}");
            assert!(!told.contains(&whole[40..60]), "{told}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text, "it is left alone");
        }
    }
}
