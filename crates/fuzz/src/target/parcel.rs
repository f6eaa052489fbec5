//! Parcels of small files, as records carry them.

use fairpath_transfer::fuzzing;

use super::{Seed, Target};
use crate::memory::{self, BUFFERS};

pub(crate) static TARGET: Target =
    Target { name: "parcel", about: "parcels of small files and digests", check, seeds, words: &[], also: &[] };

/// The smallest item has three bytes and takes 64 in memory, three times where a list grows; then all of it
/// is written.
const MEMORY: usize = 128;

fn check(input: &[u8]) {
    if let Ok(packed) = memory::within(input, BUFFERS, MEMORY, || fuzzing::parcel(input)) {
        assert!(packed.len() <= input.len(), "no item takes less than it is written with");
        assert_eq!(fuzzing::parcel(&packed), Ok(packed), "what is packed comes out the same");
    }
}

fn seeds() -> Vec<Seed> {
    let parcel = fuzzing::some_parcel();
    vec![Seed::new("one_of_each", parcel.clone()), Seed::new("twice", parcel.repeat(2))]
}
