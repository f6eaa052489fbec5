//! The mark of those who were invited, on their first packet.
//!
//! The connecting end chooses the connection ID that its first packet is addressed to: at least 8 bytes
//! that nobody can predict [RFC9000 §7.2]. An end with a key chooses 8 random bytes and 12 of a keyed
//! hash over them. So the listener recognises an invited peer before it has done any work for it, and
//! lets it pass a crowd of strangers. The mark admits nobody: an eavesdropper can copy it.

use std::fmt;

use noq_proto::ConnectionId;

/// The longest connection ID there is, in bytes [RFC9000 §17.2].
pub(crate) const ID: usize = 20;

/// How many of them are random.
const NONCE: usize = 8;

/// The key with which invited peers mark their first packets. `Debug` hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct AdmissionKey([u8; 32]);

impl AdmissionKey {
    /// The key with this content, which should come from the secret that the invited were given.
    pub const fn from_bytes(key: [u8; 32]) -> Self {
        Self(key)
    }

    /// Puts the mark on an ID of 20 random bytes, of which the first 8 remain.
    pub(crate) fn put_on(&self, random: ConnectionId) -> ConnectionId {
        let mut id = [0; ID];
        id.copy_from_slice(&random);
        let mark = self.mark(&id[..NONCE]);
        id[NONCE..].copy_from_slice(&mark);
        ConnectionId::new(&id)
    }

    /// Whether this ID has the mark.
    pub fn is_on(&self, id: &ConnectionId) -> bool {
        id.len() == ID && {
            // In constant time, so that nobody finds a mark byte by byte.
            let differs = self.mark(&id[..NONCE]).iter().zip(&id[NONCE..]).fold(0, |all, (a, b)| all | (a ^ b));
            differs == 0
        }
    }

    fn mark(&self, nonce: &[u8]) -> [u8; ID - NONCE] {
        let mut mark = [0; ID - NONCE];
        mark.copy_from_slice(&blake3::keyed_hash(&self.0, nonce).as_bytes()[..ID - NONCE]);
        mark
    }
}

impl fmt::Debug for AdmissionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AdmissionKey(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::{Origin as _, System};

    #[test]
    fn a_mark_is_known_by_its_key_only_and_is_never_the_same() {
        let (key, other) = (AdmissionKey([1; 32]), AdmissionKey([2; 32]));
        let (first, second) = (key.put_on(System.first_id()), key.put_on(System.first_id()));
        assert!(key.is_on(&first) && key.is_on(&second) && first != second);
        assert!(!other.is_on(&first));
        assert!(!key.is_on(&System.first_id()));
        assert!(!key.is_on(&ConnectionId::new(&first[..ID - 1])));
    }

    #[test]
    fn every_changed_bit_takes_the_mark_away() {
        let key = AdmissionKey([1; 32]);
        let id = key.put_on(System.first_id());
        for bit in 0..8 * ID {
            let mut changed = [0; ID];
            changed.copy_from_slice(&id);
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(!key.is_on(&ConnectionId::new(&changed)), "bit {bit}");
        }
    }
}
