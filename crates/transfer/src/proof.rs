//! How the receiver proves that it has a file, so that the sender need not take its word.
//!
//! The sender never says a file's digest. It says a *tag*, a keyed hash of the digest, by which the receiver can tell
//! whether what it has is right. The receiver answers with a *proof*, another keyed hash of the same digest. Both keys
//! come from the TLS session. So a proof takes the digest of the whole content, and computing that takes the content.
//! A tag that is repeated will not do, nor a proof of another connection or another file.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use fairpath_quic::Connection;

use crate::entry::Entry;
use crate::protocol::{Digest, Proof, ProtocolError};

const EXPORTER_LABEL: &[u8] = b"EXPORTER-fairpath-content";

/// The keys of one connection.
#[derive(Clone)]
pub(crate) struct Seal {
    tags: [u8; 32],
    proofs: [u8; 32],
    of_all: [u8; 32],
}

impl std::fmt::Debug for Seal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seal(hidden)")
    }
}

impl Seal {
    /// That of a connection: the same at both ends.
    pub(crate) fn of(connection: &Connection) -> Result<Self, ProtocolError> {
        let mut material = [0; 32];
        connection
            .export_keying_material(&mut material, EXPORTER_LABEL, b"")
            .map_err(|_| ProtocolError::Unexpected("the connection offers no keying material"))?;
        Ok(Self::from_material(&material))
    }

    fn from_material(material: &[u8; 32]) -> Self {
        Self {
            tags: blake3::derive_key("fairpath 2026 tag of a content 1", material),
            proofs: blake3::derive_key("fairpath 2026 proof of a content 1", material),
            of_all: blake3::derive_key("fairpath 2026 proof of all contents 1", material),
        }
    }

    /// The sender's keyed hash of a file's digest.
    pub(crate) fn tag(&self, file: u32, digest: &Digest) -> Digest {
        keyed(&self.tags, file, digest)
    }

    /// The receiver's keyed hash of it: only an end that has the digest can compute it.
    pub(crate) fn proof(&self, file: u32, digest: &Digest) -> Proof {
        first(&keyed(&self.proofs, file, digest))
    }

    /// The same for everything that is in place.
    pub(crate) fn proof_of_all(&self, all: &Digest) -> Proof {
        first(blake3::keyed_hash(&self.of_all, all).as_bytes())
    }
}

/// The digests of the files that the sender has read to their ends, over all its connections.
#[derive(Debug, Default)]
pub(crate) struct Known(Mutex<BTreeMap<u32, Digest>>);

impl Known {
    /// A file was read.
    pub(crate) fn add(&self, file: u32, digest: Digest) {
        self.digests().insert(file, digest);
    }

    pub(crate) fn get(&self, file: u32) -> Option<Digest> {
        self.digests().get(&file).copied()
    }

    /// The files have other numbers from now on.
    pub(crate) fn forget(&self) {
        self.digests().clear();
    }

    fn digests(&self) -> MutexGuard<'_, BTreeMap<u32, Digest>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The keys and digests by which a sender judges the proofs of one connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Witness<'a> {
    pub(crate) seal: &'a Seal,
    pub(crate) known: &'a Known,
}

impl Witness<'_> {
    /// The receiver says that it has a file.
    pub(crate) fn check(self, file: u32, claimed: &Proof) -> Result<(), ProtocolError> {
        match self.known.get(file) {
            Some(digest) if self.seal.proof(file, &digest) == *claimed => Ok(()),
            Some(_) => Err(ProtocolError::Unexpected("it says that it has a file, and its proof is wrong")),
            None => Err(ProtocolError::Unexpected("it says that it has a file that it was not sent")),
        }
    }
}

fn keyed(key: &[u8; 32], file: u32, digest: &Digest) -> Digest {
    let mut hasher = blake3::Hasher::new_keyed(key);
    hasher.update(&file.to_le_bytes()).update(digest);
    *hasher.finalize().as_bytes()
}

fn first(hash: &Digest) -> Proof {
    let (first, _) = hash.split_first_chunk().expect("32 are more than 16");
    *first
}

/// One digest over the names, sizes and digests of all files that are in place.
pub(crate) fn digest_of_all<'a>(in_place: impl Iterator<Item = (&'a Entry, Digest)>) -> Digest {
    let mut hasher = blake3::Hasher::new();
    for (entry, digest) in in_place {
        let name = entry.path.as_bytes();
        hasher.update(&(name.len() as u64).to_le_bytes()).update(name);
        hasher.update(&entry.size().to_le_bytes()).update(&digest);
    }
    *hasher.finalize().as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_of_one_file_one_connection_and_no_tag() {
        let seal = Seal::from_material(&[1; 32]);
        let digest = *blake3::hash(b"content").as_bytes();
        let proof = seal.proof(7, &digest);
        assert_eq!(proof, Seal::from_material(&[1; 32]).proof(7, &digest));
        assert_ne!(proof, seal.proof(8, &digest));
        assert_ne!(proof, Seal::from_material(&[2; 32]).proof(7, &digest));
        assert_ne!(proof, seal.proof(7, blake3::hash(b"other").as_bytes()));
        assert_ne!(proof, seal.proof_of_all(&digest));
        assert!(!seal.tag(7, &digest).starts_with(&proof), "what the sender says cannot be repeated");
        assert_ne!(seal.tag(7, &digest), digest);
    }

    #[test]
    fn the_digest_of_all_covers_names_sizes_and_contents() {
        let file = |path: &str, size| Entry::file(path, size);
        let all = |entries: &[(Entry, Digest)]| digest_of_all(entries.iter().map(|(entry, digest)| (entry, *digest)));
        let one = all(&[(file("a", 1), [1; 32]), (file("b", 2), [2; 32])]);
        assert_ne!(one, all(&[(file("a", 1), [1; 32])]));
        assert_ne!(one, all(&[(file("a", 1), [2; 32]), (file("b", 2), [1; 32])]));
        assert_ne!(one, all(&[(file("a", 1), [1; 32]), (file("c", 2), [2; 32])]));
        assert_ne!(one, all(&[(file("a", 1), [1; 32]), (file("b", 3), [2; 32])]));
    }
}
