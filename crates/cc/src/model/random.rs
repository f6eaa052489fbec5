//! The random choices of one path: SplitMix64 [Steele2014], seeded by the configuration and the
//! path's id, so that the same operations give the same bits.

use fairpath_core::PathId;

/// A small generator. Its quality is far above what spreading probes in time needs.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    state: u64,
}

impl Random {
    /// The generator of `path`.
    pub(crate) fn new(seed: u64, path: PathId) -> Self {
        let mut random = Self { state: seed };
        // One step for the seed, so that neighbouring seeds and paths do not give shifted sequences.
        let mixed = random.next();
        Self { state: mixed ^ u64::from(path.get()) }
    }

    // [Steele2014 fig. 16]
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0 to `bound` − 1.
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        // The high 32 bits as a fraction of 2³²: no remainder, and a bias of less than 2⁻²⁹ here.
        (((self.next() >> 32) * u64::from(bound)) >> 32) as u32
    }

    /// A number from 0 to 1, without 1.
    pub(crate) fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::path;

    #[test]
    fn the_sequence_is_the_published_one() {
        // The first outputs for the seed 1234567, as reference implementations print them.
        let mut random = Random { state: 1_234_567 };
        assert_eq!([random.next(), random.next()], [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]);
    }

    #[test]
    fn all_values_come_equally_often_and_paths_differ() {
        let mut counts = [0u32; 7];
        let mut random = Random::new(0, path(0));
        (0..7_000).for_each(|_| counts[random.below(7) as usize] += 1);
        // The standard deviation is √(7000 · 1/7 · 6/7) = 29; five of them.
        assert!(counts.iter().all(|count| count.abs_diff(1_000) < 150), "{counts:?}");
        let mean = (0..10_000).map(|_| random.fraction()).sum::<f64>() / 10_000.0;
        // 5 / √(12 · 10⁴) = 0.0144
        assert!((mean - 0.5).abs() < 0.0144, "{mean}");
        let first = |id| Random::new(0, path(id)).next();
        assert!(first(0) != first(1) && first(1) != first(2));
    }
}
