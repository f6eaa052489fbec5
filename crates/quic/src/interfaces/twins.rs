//! Interfaces that have the same address: two modems of one maker give the host the same one.

use std::collections::BTreeSet;
use std::net::IpAddr;

use fairpath_quic_core::{own_address, stand_in, twin_of};

use super::Interface;

/// Numbers the interfaces that have one address. Those in `known`, by interface and name, keep their numbers: their
/// paths are open. An interface for which there is no number is left out.
pub(crate) fn number(mut found: Vec<Interface>, known: &[(String, IpAddr)]) -> Vec<Interface> {
    let mut taken: BTreeSet<IpAddr> = known.iter().map(|(_, name)| *name).collect();
    found.retain_mut(|one| {
        let is_own = |(of, name): &&(String, IpAddr)| *of == one.name && own_address(*name) == one.address;
        if let Some((_, name)) = known.iter().find(is_own) {
            one.twin = twin_of(*name);
            return true;
        }
        let names = (0..=u16::MAX).map_while(|twin| Some((twin, stand_in(one.address, twin)?)));
        let Some((twin, name)) = names.into_iter().find(|(_, name)| !taken.contains(name)) else { return false };
        taken.insert(name);
        one.twin = twin;
        true
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modem(name: &str) -> Interface {
        let address = "192.168.8.100".parse().unwrap();
        Interface { name: name.into(), address, twin: 0, prefix_bits: 24, unusable: None }
    }

    #[test]
    fn modems_with_one_address_get_names_that_they_keep() {
        let both = number(vec![modem("usb0"), modem("usb1")], &[]);
        assert_eq!([both[0].twin, both[1].twin], [0, 1]);
        let known: Vec<(String, IpAddr)> = both.iter().map(|one| (one.name.clone(), one.local())).collect();
        // The first is gone, and a third comes.
        let left = number(vec![modem("usb2"), modem("usb1")], &known);
        assert_eq!(left[1], both[1]);
        assert_eq!(left[0].twin, 2, "its sockets may still be there");
        assert_eq!(number(vec![modem("usb2"), modem("usb1")], &known[1..])[0].twin, 0);
    }
}
