//! Invitations: a secret that lets one device in, once, for a day.
//!
//! The far end keeps a key that comes from the secret, and not the secret. A line of the file `invitations` has the label
//! that names the secret, the key, the name of the device, and when the invitation ends, in seconds since 1970.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use data_encoding::HEXLOWER as HEX;
use fairpath_transfer::Secret;
use subtle::ConstantTimeEq as _;

use crate::authorized::DeviceName;
use crate::store::{Store, StoreError};

/// The name of the file.
const FILE: &str = "invitations";

/// How long an invitation is good.
pub const INVITATION_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

/// The length of a label, in bytes.
pub(crate) const LABEL: usize = 32;

const PROOF_CONTEXT: &str = "fairpath 2026 proof of an invitation to a proxy 1";

/// The key with which an invitation is proved.
pub(crate) struct ProofKey([u8; 32]);

/// An invitation that was not used yet.
pub(crate) struct Invitation {
    label: String,
    key: ProofKey,
    pub(crate) name: DeviceName,
    ends: u64,
}

impl ProofKey {
    pub(crate) fn of(secret: &Secret) -> Self {
        Self(blake3::derive_key(PROOF_CONTEXT, &secret.to_bytes()))
    }

    /// The proof for these words.
    pub(crate) fn prove(&self, words: &[u8]) -> [u8; 32] {
        *blake3::keyed_hash(&self.0, words).as_bytes()
    }

    fn has_proved(&self, words: &[u8], proof: &[u8; 32]) -> bool {
        self.prove(words).ct_eq(proof).into()
    }
}

/// Notes an invitation for a device of this name; an earlier one for the name is worth nothing from now on. The caller
/// holds the lock.
pub(crate) fn add(store: &Store, name: &DeviceName, secret: &Secret, now: SystemTime) -> Result<(), StoreError> {
    let ends = seconds(now + INVITATION_LIFETIME);
    let (label, key) = (secret.label(), ProofKey::of(secret));
    let mut all = load(store, now)?;
    all.retain(|one| one.name != *name);
    all.push(Invitation { label, key, name: name.clone(), ends });
    save(store, &all)
}

/// Takes the invitation with this label out, where `proof` proves it for `words`. It is worth nothing afterwards, whatever
/// becomes of the device. The caller holds the lock.
pub(crate) fn take(
    store: &Store,
    label: &str,
    words: &[u8],
    proof: &[u8; 32],
    now: SystemTime,
) -> Result<Option<DeviceName>, StoreError> {
    let mut all = load(store, now)?;
    let is_it = |one: &Invitation| one.label == label && one.key.has_proved(words, proof);
    let Some(at) = all.iter().position(is_it) else { return Ok(None) };
    let taken = all.remove(at);
    save(store, &all)?;
    Ok(Some(taken.name))
}

/// Takes back the invitations for a name. False where there were none. The caller holds the lock.
pub(crate) fn withdraw(store: &Store, name: &DeviceName, now: SystemTime) -> Result<bool, StoreError> {
    let mut all = load(store, now)?;
    let before = all.len();
    all.retain(|one| one.name != *name);
    if all.len() < before {
        save(store, &all)?;
    }
    Ok(all.len() < before)
}

/// The names of those who are invited.
pub(crate) fn names(store: &Store, now: SystemTime) -> Result<Vec<DeviceName>, StoreError> {
    Ok(load(store, now)?.into_iter().map(|one| one.name).collect())
}

/// The invitations that are still good.
fn load(store: &Store, now: SystemTime) -> Result<Vec<Invitation>, StoreError> {
    let is_good = |one: &Invitation| one.ends > seconds(now);
    Ok(store.text(FILE)?.lines().filter_map(read).filter(is_good).collect())
}

fn save(store: &Store, all: &[Invitation]) -> Result<(), StoreError> {
    let line = |one: &Invitation| format!("{} {} {} {}\n", one.label, HEX.encode(&one.key.0), one.name, one.ends);
    store.write(FILE, all.iter().map(line).collect::<String>().as_bytes())
}

fn read(line: &str) -> Option<Invitation> {
    let mut words = line.split_whitespace();
    let (label, key) = (words.next()?.to_owned(), HEX.decode(words.next()?.as_bytes()).ok()?);
    let (name, ends) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    Some(Invitation { label, key: ProofKey(key.try_into().ok()?), name, ends })
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: Secret = Secret::from_bytes([7; 16]);

    fn store() -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        (folder, store)
    }

    fn name(text: &str) -> DeviceName {
        text.parse().unwrap()
    }

    #[test]
    fn an_invitation_is_good_once_and_for_a_day() {
        let (_folder, store) = store();
        let now = SystemTime::now();
        let proof = ProofKey::of(&SECRET).prove(b"words");
        let take = |words: &[u8], now| take(&store, &SECRET.label(), words, &proof, now).unwrap();

        add(&store, &name("van"), &SECRET, now).unwrap();
        assert_eq!(take(b"other words", now), None);
        assert_eq!(take(b"words", now), Some(name("van")));
        assert_eq!(take(b"words", now), None, "it was used");

        add(&store, &name("van"), &SECRET, now).unwrap();
        assert_eq!(take(b"words", now + INVITATION_LIFETIME), None, "it is too old");
    }

    #[test]
    fn a_second_invitation_for_a_name_takes_the_place_of_the_first() {
        let (_folder, store) = store();
        let now = SystemTime::now();
        add(&store, &name("van"), &SECRET, now).unwrap();
        add(&store, &name("laptop"), &Secret::from_bytes([8; 16]), now).unwrap();
        add(&store, &name("van"), &Secret::from_bytes([9; 16]), now).unwrap();
        assert_eq!(names(&store, now).unwrap(), [name("laptop"), name("van")]);
        let proof = ProofKey::of(&SECRET).prove(b"words");
        assert_eq!(take(&store, &SECRET.label(), b"words", &proof, now).unwrap(), None);
        assert!(withdraw(&store, &name("van"), now).unwrap());
        assert!(!withdraw(&store, &name("van"), now).unwrap());
    }

    #[test]
    fn the_secret_itself_is_not_kept() {
        let (_folder, store) = store();
        add(&store, &name("van"), &SECRET, SystemTime::now()).unwrap();
        assert!(!store.text(FILE).unwrap().contains(&HEX.encode(&SECRET.to_bytes())));
    }
}
