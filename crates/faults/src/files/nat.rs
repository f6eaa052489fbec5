//! The address translator at the client's side of a wire: each port inside is seen as another
//! outside.

use std::collections::BTreeMap;

/// The first port that it gives.
const FIRST: u16 = 50_000;

/// A translator of ports. It keeps the address.
#[derive(Debug)]
pub(super) struct Translator {
    /// The port outside of each port inside.
    out: BTreeMap<u16, u16>,
    /// The port inside that each port outside leads to.
    back: BTreeMap<u16, u16>,
    next: u16,
}

impl Translator {
    pub(super) fn new() -> Self {
        Self { out: BTreeMap::new(), back: BTreeMap::new(), next: FIRST }
    }

    /// How a port inside is seen from outside.
    pub(super) fn outward(&mut self, inside: u16) -> u16 {
        if let Some(&outside) = self.out.get(&inside) {
            return outside;
        }
        let outside = self.next;
        self.next = self.next.checked_add(1).unwrap_or(FIRST);
        self.out.insert(inside, outside);
        self.back.insert(outside, inside);
        outside
    }

    /// Where a port outside leads to, if anywhere.
    pub(super) fn inward(&self, outside: u16) -> Option<u16> {
        self.back.get(&outside).copied()
    }

    /// Forgets the mappings. With `lingers` the old ones still deliver datagrams from outside.
    pub(super) fn rebind(&mut self, lingers: bool) {
        self.out.clear();
        if !lingers {
            self.back.clear();
        }
    }

    /// Removes the mappings that lingered.
    pub(super) fn mend(&mut self) {
        let out = &self.out;
        self.back.retain(|outside, inside| out.get(inside) == Some(outside));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_outside_leads_back_until_it_is_forgotten() {
        let mut nat = Translator::new();
        let first = nat.outward(7);
        assert_eq!((nat.outward(7), nat.inward(first)), (first, Some(7)));
        assert_ne!(nat.outward(8), first);
        nat.rebind(true);
        let second = nat.outward(7);
        assert_ne!(second, first);
        assert_eq!((nat.inward(first), nat.inward(second)), (Some(7), Some(7)));
        nat.mend();
        assert_eq!((nat.inward(first), nat.inward(second)), (None, Some(7)));
        nat.rebind(false);
        assert_eq!(nat.inward(second), None);
    }
}
