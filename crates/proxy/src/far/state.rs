//! The far end's state directory: its identity, the devices that it knows and those that it has invited.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::time::SystemTime;

use fairpath::Identity;
use fairpath_transfer::{MAX_ADDRESSES, Secret, Ticket};
use serde::{Deserialize, Serialize};

use crate::authorized::{Authorized, Device, DeviceName};
use crate::greeting::Denial;
use crate::invitations;
use crate::key::PublicKey;
use crate::store::{Store, StoreError};

const IDENTITY: &str = "identity";
const GUARD: &str = "guard";
const SERVING: &str = "serving.json";
const USAGE: &str = "usage.json";

/// The state of a far end. Several processes may use it at once: one serves, others invite and revoke.
#[derive(Clone, Debug)]
pub struct FarState {
    store: Store,
}

/// Something that could not be done with the state.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// A file could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The system gives no randomness.
    #[error("the system gives no randomness: {0}")]
    Randomness(String),
    /// A file does not hold what it should.
    #[error("the file `{0}` of the state directory is damaged: take it away to begin anew")]
    Damaged(&'static str),
    /// No far end has served from this state, so its addresses are not known.
    #[error("no far end has run with this state directory yet: start `fairpath serve` first, or name its addresses")]
    NeverServed,
    /// A device of this name is known already.
    #[error("a device named '{0}' is known already: revoke it first, or take another name")]
    NameTaken(DeviceName),
    /// No device has this name.
    #[error("no device is named '{name}'{}", known(names))]
    Unknown {
        /// The name.
        name: DeviceName,
        /// The names that there are.
        names: Vec<String>,
    },
}

fn known(names: &[String]) -> String {
    if names.is_empty() { "; there is none".to_owned() } else { format!("; there are {}", names.join(", ")) }
}

/// How much a device has carried, and when it was last connected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// When it was last seen, in seconds since 1970.
    pub seen_unix_s: u64,
    /// The bytes that its programs sent.
    pub up_bytes: u64,
    /// The bytes that came to its programs.
    pub down_bytes: u64,
}

/// A device in the list of devices.
#[derive(Clone, Debug)]
pub struct Known {
    /// Its line.
    pub device: Device,
    /// The bytes that it has carried; `None` where it has never been connected.
    pub usage: Option<Usage>,
}

/// The devices of a far end.
#[derive(Clone, Debug)]
pub struct Devices {
    /// Those that may connect.
    pub known: Vec<Known>,
    /// Those that were invited and have not joined.
    pub invited: Vec<DeviceName>,
    /// The lines of the file that are not understood.
    pub bad: Vec<crate::authorized::BadLine>,
}

/// The addresses at which a far end was last reached.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Serving {
    addresses: Vec<SocketAddr>,
}

impl FarState {
    /// The state in this directory, which is made where it does not exist.
    ///
    /// # Errors
    ///
    /// [`StateError::Store`].
    pub fn open(directory: &Path) -> Result<Self, StateError> {
        Ok(Self { store: Store::open(directory)? })
    }

    /// Invites a device: the ticket lets it join once, within a day. `addresses` are where it finds the far end; none:
    /// where that served last.
    ///
    /// # Errors
    ///
    /// Where the name is taken, or nobody knows the addresses.
    pub fn invite(&self, name: &DeviceName, addresses: &[SocketAddr]) -> Result<Ticket, StateError> {
        let fingerprint = *self.identity()?.fingerprint().as_bytes();
        let mut addresses = addresses.to_vec();
        if addresses.is_empty() {
            addresses = self.serving()?;
        }
        if addresses.is_empty() {
            return Err(StateError::NeverServed);
        }
        addresses.truncate(MAX_ADDRESSES);
        let secret = Secret::generate().map_err(|error| StateError::Randomness(error.to_string()))?;
        self.store.locked(|| {
            if self.authorized()?.named(name).is_some() {
                return Err(StateError::NameTaken(name.clone()));
            }
            Ok(invitations::add(&self.store, name, &secret, SystemTime::now())?)
        })?;
        Ok(Ticket { addresses, fingerprint, secret })
    }

    /// The devices, and what they have done.
    ///
    /// # Errors
    ///
    /// [`StateError::Store`].
    pub fn devices(&self) -> Result<Devices, StateError> {
        let (authorized, usage) = (self.authorized()?, self.usage()?);
        let known = |device: Device| Known { usage: usage.get(device.name.as_str()).copied(), device };
        Ok(Devices {
            known: authorized.devices.into_iter().map(known).collect(),
            invited: invitations::names(&self.store, SystemTime::now())?,
            bad: authorized.bad,
        })
    }

    /// Takes a device's line and its invitation away. A far end that serves ends its connections within a second.
    ///
    /// # Errors
    ///
    /// [`StateError::Unknown`] where there is neither.
    pub fn revoke(&self, name: &DeviceName) -> Result<(), StateError> {
        self.store.locked(|| {
            let withdrawn = invitations::withdraw(&self.store, name, SystemTime::now())?;
            match Authorized::remove(&self.store, name)? || withdrawn {
                true => Ok(()),
                false => {
                    let names = self.authorized()?.devices.iter().map(|device| device.name.to_string()).collect();
                    Err(StateError::Unknown { name: name.clone(), names })
                }
            }
        })
    }

    /// Lets a device join that proves an invitation, and gives it a line of its own.
    pub(crate) fn join(&self, key: PublicKey, proof: &crate::greeting::Proof) -> Result<Device, Denial> {
        let broken = |_: StateError| Denial::Broken;
        let joined = self.store.locked(|| {
            let now = SystemTime::now();
            let Some(name) = invitations::take(&self.store, &proof.label, &proof.words, &proof.proof, now)? else {
                return Ok(None);
            };
            let authorized = self.authorized()?;
            if authorized.named(&name).is_some() || authorized.device(&key).is_some() {
                return Ok(None);
            }
            let device = Device::new(name, key);
            Authorized::append(&self.store, &device)?;
            Ok(Some(device))
        });
        joined.map_err(broken)?.ok_or(Denial::Invitation)
    }

    pub(crate) fn directory(&self) -> &Path {
        self.store.directory()
    }

    pub(crate) fn authorized(&self) -> Result<Authorized, StateError> {
        Ok(Authorized::load(&self.store)?)
    }

    /// A mark that changes whenever the devices do.
    pub(crate) fn mark(&self) -> Option<(SystemTime, u64, u64)> {
        Authorized::mark(&self.store)
    }

    /// The identity, made where there is none.
    pub(crate) fn identity(&self) -> Result<Identity, StateError> {
        let kept = self.kept(IDENTITY, || {
            let made = Identity::generate().map_err(|error| StateError::Randomness(error.to_string()))?;
            Ok(made.to_bytes())
        })?;
        Identity::from_bytes(&kept).ok_or(StateError::Damaged(IDENTITY))
    }

    /// The key by which devices are let in before strangers, made where there is none.
    pub(crate) fn guard(&self) -> Result<[u8; 32], StateError> {
        let kept = self.kept(GUARD, || {
            let mut key = [0; 32];
            getrandom::fill(&mut key).map_err(|error| StateError::Randomness(error.to_string()))?;
            Ok(key.to_vec())
        })?;
        kept.try_into().map_err(|_| StateError::Damaged(GUARD))
    }

    fn kept(&self, name: &str, make: impl FnOnce() -> Result<Vec<u8>, StateError>) -> Result<Vec<u8>, StateError> {
        self.store.locked(|| match self.store.read(name)? {
            Some(kept) => Ok(kept),
            None => {
                let made = make()?;
                self.store.write(name, &made)?;
                Ok(made)
            }
        })
    }

    fn serving(&self) -> Result<Vec<SocketAddr>, StateError> {
        let Some(text) = self.store.read(SERVING)? else { return Ok(Vec::new()) };
        let serving: Serving = serde_json::from_slice(&text).map_err(|_| StateError::Damaged(SERVING))?;
        Ok(serving.addresses)
    }

    /// Notes the addresses for invitations.
    pub(crate) fn note_serving(&self, addresses: &[SocketAddr]) -> Result<(), StateError> {
        let text = serde_json::to_vec(&Serving { addresses: addresses.to_vec() }).unwrap_or_default();
        Ok(self.store.write(SERVING, &text)?)
    }

    pub(crate) fn usage(&self) -> Result<BTreeMap<String, Usage>, StateError> {
        let Some(text) = self.store.read(USAGE)? else { return Ok(BTreeMap::new()) };
        serde_json::from_slice(&text).map_err(|_| StateError::Damaged(USAGE))
    }

    pub(crate) fn note_usage(&self, usage: &BTreeMap<String, Usage>) -> Result<(), StateError> {
        Ok(self.store.write(USAGE, &serde_json::to_vec(usage).unwrap_or_default())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> (tempfile::TempDir, FarState) {
        let folder = tempfile::tempdir().unwrap();
        let state = FarState::open(folder.path()).unwrap();
        (folder, state)
    }

    #[test]
    fn an_identity_that_was_kept_stays_and_a_damaged_one_is_named() {
        let (_folder, state) = state();
        let first = state.identity().unwrap().fingerprint();
        assert_eq!(state.identity().unwrap().fingerprint(), first);
        assert_eq!(state.guard().unwrap(), state.guard().unwrap());
        state.store.write(IDENTITY, b"x").unwrap();
        assert!(state.identity().unwrap_err().to_string().contains("`identity`"));
    }

    #[test]
    fn an_invitation_needs_addresses_and_a_free_name() {
        let (_folder, state) = state();
        let van: DeviceName = "van".parse().unwrap();
        assert!(matches!(state.invite(&van, &[]), Err(StateError::NeverServed)));
        state.note_serving(&["192.0.2.1:4433".parse().unwrap()]).unwrap();
        let ticket = state.invite(&van, &[]).unwrap();
        assert_eq!(ticket.addresses, ["192.0.2.1:4433".parse().unwrap()]);
        assert_eq!(state.devices().unwrap().invited, std::slice::from_ref(&van));
        let device = Device::new(van.clone(), PublicKey([1; 32]));
        Authorized::append(&state.store, &device).unwrap();
        assert!(matches!(state.invite(&van, &[]), Err(StateError::NameTaken(_))));
        state.revoke(&van).unwrap();
        let error = state.revoke(&van).unwrap_err().to_string();
        assert_eq!(error, "no device is named 'van'; there is none");
    }
}
