//! The offer of a sender, as a person is asked about it before anything is written.

use std::fmt;
use std::sync::Arc;

use fairpath_core::ByteCount;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use crate::entry::Kind;
use crate::manifest::{Limits, Manifest, check_name};
use crate::name::Name;
use crate::words::printable;

/// How many names are shown; the rest is a number.
pub(crate) const SHOWN: usize = 10;

/// Names that are left out since the receiver takes none such.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// How many there are.
    pub count: u64,
    /// The first of them.
    pub names: Vec<String>,
}

impl LeftOut {
    /// One more.
    pub(crate) fn push(&mut self, name: &Name) {
        self.count += 1;
        if self.names.len() < SHOWN {
            self.names.push(name.to_string());
        }
    }

    /// The words of a peer, cut and made safe to show.
    pub(crate) fn safe(self) -> Self {
        let names = self.names.iter().take(SHOWN).map(|name| printable(name)).collect();
        Self { count: self.count, names }
    }
}

/// The offer of a sender.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// How many files there are.
    pub files: u64,
    /// Their sizes together.
    pub bytes: ByteCount,
    /// How many symbolic links there are.
    pub links: u64,
    /// How many of the files are streams: nobody knows how long they are.
    pub streams: u64,
    /// The first files with their sizes, where those are known.
    pub shown: Vec<(String, Option<ByteCount>)>,
    /// Hidden names that the sender left out.
    pub left_out: LeftOut,
    /// A digest of the names and sizes of all: the same offer is not asked about twice.
    digest: [u8; 32],
}

impl Offer {
    pub(crate) fn new(manifest: &Manifest, left_out: LeftOut) -> Self {
        let mut hasher = blake3::Hasher::new();
        let (mut shown, mut links, mut streams) = (Vec::new(), 0, 0);
        for entry in manifest.entries() {
            hasher.update(&(entry.path.len() as u64).to_be_bytes()).update(entry.path.as_bytes());
            hasher.update(&entry.size().to_be_bytes());
            if let Kind::Link { target } = &entry.kind {
                hasher.update(target.as_bytes());
                links += 1;
            }
            if let Kind::HardLink { to } = &entry.kind {
                hasher.update(to.as_bytes());
            }
            streams += u64::from(entry.is_stream());
            if entry.is_file() && shown.len() < SHOWN {
                let size = (!entry.is_stream()).then(|| ByteCount::new(entry.size()));
                shown.push((entry.path.to_string(), size));
            }
        }
        let digest = *hasher.finalize().as_bytes();
        let (files, bytes) = (manifest.files(), ByteCount::new(manifest.bytes()));
        Self { files, bytes, links, streams, shown, left_out: left_out.safe(), digest }
    }

    /// How many files have no place in [`Offer::shown`].
    pub fn more(&self) -> u64 {
        self.files - self.shown.len() as u64
    }

    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

/// The judge of an offer, once names and sizes are known and before anything is written.
#[derive(Clone)]
pub struct Consent(Arc<Ask>);

type Ask = dyn Fn(&Offer) -> oneshot::Receiver<bool> + Send + Sync;

impl Consent {
    /// Asks by this function, and waits for what comes out of the channel: true takes the offer. A channel
    /// that is closed declines it.
    pub fn ask(by: impl Fn(&Offer) -> oneshot::Receiver<bool> + Send + Sync + 'static) -> Self {
        Self(Arc::new(by))
    }

    /// Takes every offer.
    pub fn always() -> Self {
        Self::ask(|_| {
            let (yes, answer) = oneshot::channel();
            let _ = yes.send(true);
            answer
        })
    }

    /// The decision, or the channel out of which it will come.
    pub(crate) fn given(&self, offer: &Offer) -> Result<bool, oneshot::Receiver<bool>> {
        let mut answer = (self.0)(offer);
        match answer.try_recv() {
            Ok(is_taken) => Ok(is_taken),
            Err(oneshot::error::TryRecvError::Closed) => Ok(false),
            Err(oneshot::error::TryRecvError::Empty) => Err(answer),
        }
    }
}

impl fmt::Debug for Consent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Consent")
    }
}

/// Whether a name of these limits' receiver is hidden and not taken.
pub(crate) fn is_left_out(path: &Name, hidden: bool) -> bool {
    let limits = Limits { hidden, ..Limits::default() };
    check_name(path, &limits) == Err(crate::manifest::NameFault::Hidden)
}
