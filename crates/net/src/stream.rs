//! Randomness by name: one seed, and for each element of the network a stream of its own.
//!
//! The seed is the key of ChaCha8 and the element's name, hashed, its stream number. Two streams
//! of one key never overlap, so an element that is added, or draws more often, changes no other.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// The names of one element's streams.
#[derive(Clone, Debug)]
pub(crate) struct Owner {
    streams: Streams,
    name: Box<str>,
}

impl Owner {
    pub(crate) fn new(streams: &Streams, name: &str) -> Self {
        Self { streams: *streams, name: name.into() }
    }

    /// The generator of its element `kind`, at the beginning.
    pub(crate) fn generator(&self, kind: &str) -> ChaCha8Rng {
        self.streams.generator(&self.name, kind)
    }
}

/// Gives each named element its own generator.
#[derive(Clone, Copy, Debug)]
pub struct Streams {
    seed: u64,
}

impl Streams {
    /// The streams of `seed`.
    pub const fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// The generator of the element `kind` of `owner`, for example `loss` of `uplink`. The same
    /// names and seed give the same numbers on every platform.
    pub fn generator(&self, owner: &str, kind: &str) -> ChaCha8Rng {
        self.stream(owner, kind).generator()
    }

    /// The same for an element that may never need it.
    pub(crate) fn stream(&self, owner: &str, kind: &str) -> Stream {
        Stream { seed: self.seed, number: name_hash(owner, kind) }
    }
}

/// The stream of one element.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    seed: u64,
    number: u64,
}

impl Stream {
    /// Its generator, at the beginning.
    pub(crate) fn generator(self) -> ChaCha8Rng {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&self.seed.to_le_bytes());
        let mut generator = ChaCha8Rng::from_seed(key);
        generator.set_stream(self.number);
        generator
    }
}

/// FNV-1a, 64 bits, over both names with a byte between them that is in neither.
fn name_hash(owner: &str, kind: &str) -> u64 {
    let bytes = owner.bytes().chain([0xff]).chain(kind.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// An event of a fixed probability, as a threshold for a 64-bit draw.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chance(u128);

impl Chance {
    /// An event that happens with `probability`; below 0 and NaN count as 0, above 1 as 1.
    pub(crate) fn new(probability: f64) -> Self {
        // 2^64 · p: exact, as a product with a power of two.
        Self((probability.clamp(0.0, 1.0) * 18_446_744_073_709_551_616.0) as u128)
    }

    /// Whether it happens this time. Always draws one number, so that a changed probability does
    /// not shift the stream.
    pub(crate) fn happens(self, generator: &mut ChaCha8Rng) -> bool {
        u128::from(generator.next_u64()) < self.0
    }
}

/// An event of a fixed probability with the generator that decides.
#[derive(Debug)]
pub(crate) struct Coin {
    chance: Chance,
    generator: ChaCha8Rng,
}

impl Coin {
    /// An event that happens with `probability`.
    pub(crate) fn new(probability: f64, generator: ChaCha8Rng) -> Self {
        Self { chance: Chance::new(probability), generator }
    }

    /// Another probability from now on.
    pub(crate) fn set(&mut self, probability: f64) {
        self.chance = Chance::new(probability);
    }

    /// Whether it happens this time.
    pub(crate) fn falls(&mut self) -> bool {
        self.chance.happens(&mut self.generator)
    }

    /// A number that has nothing to do with whether it happens.
    pub(crate) fn number(&mut self) -> u64 {
        self.generator.next_u64()
    }
}

/// A number in `0..=max`, uniform to within 2^-64 · `max`.
pub(crate) fn uniform(generator: &mut ChaCha8Rng, max: u64) -> u64 {
    let scaled = u128::from(generator.next_u64()) * (u128::from(max) + 1);
    (scaled >> 64) as u64
}

/// A number from 0 up to but not including 1, uniform in steps of 2^-53.
pub(crate) fn unit(generator: &mut ChaCha8Rng) -> f64 {
    const STEP: f64 = 1.0 / 9_007_199_254_740_992.0;
    (generator.next_u64() >> 11) as f64 * STEP
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(seed: u64, owner: &str, kind: &str) -> Vec<u64> {
        let mut generator = Streams::new(seed).generator(owner, kind);
        (0..8).map(|_| generator.next_u64()).collect()
    }

    #[test]
    fn a_stream_is_its_seed_and_its_names() {
        assert_eq!(draws(1, "uplink", "loss"), draws(1, "uplink", "loss"));
        assert_ne!(draws(1, "uplink", "loss"), draws(2, "uplink", "loss"));
        assert_ne!(draws(1, "uplink", "loss"), draws(1, "uplink", "jitter"));
        assert_ne!(draws(1, "ab", "c"), draws(1, "a", "bc"));
    }

    #[test]
    fn streams_do_not_change_from_release_to_release() {
        // A golden value: experiments name a seed and expect the same run years later.
        assert_eq!(draws(42, "uplink", "loss")[0], 10_077_392_761_347_485_399);
    }

    #[test]
    fn certain_and_impossible_events_are_exactly_that() {
        let mut generator = Streams::new(3).generator("x", "y");
        for _ in 0..1_000 {
            assert!(Chance::new(1.0).happens(&mut generator));
            assert!(!Chance::new(0.0).happens(&mut generator));
            assert!(!Chance::new(f64::NAN).happens(&mut generator));
            assert!(uniform(&mut generator, 10) <= 10);
            assert_eq!(uniform(&mut generator, 0), 0);
        }
    }
}
