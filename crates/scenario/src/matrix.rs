//! Matrices of traffic: pairs of senders and receivers, drawn at random.

use rand_chacha::rand_core::RngCore;

/// The numbers below `count` in random order; each order is equally likely.
pub fn shuffled(count: usize, generator: &mut impl RngCore) -> Vec<usize> {
    let mut numbers: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        let chosen = below(generator, last as u64 + 1) as usize;
        numbers.swap(last, chosen);
    }
    numbers
}

/// For each of `count` senders a receiver of its own that is another than itself, each such
/// assignment equally likely; `None` where there are fewer than two.
pub fn permutation(count: usize, generator: &mut impl RngCore) -> Option<Vec<usize>> {
    if count < 2 {
        return None;
    }
    // About every third order sends nobody to itself.
    loop {
        let receivers = shuffled(count, generator);
        if receivers.iter().enumerate().all(|(sender, receiver)| sender != *receiver) {
            return Some(receivers);
        }
    }
}

/// A receiver for each of `count` senders, drawn from all others, independently of other senders.
/// `None` if there are fewer than two.
pub fn random_receivers(count: usize, generator: &mut impl RngCore) -> Option<Vec<usize>> {
    let mut receiver = |sender: usize| {
        let other = below(generator, count as u64 - 1) as usize;
        if other < sender { other } else { other + 1 }
    };
    (count >= 2).then(|| (0..count).map(&mut receiver).collect())
}

/// A number below `limit`, uniform to within 2^-64 · `limit`. A limit of 0 gives 0.
pub(crate) fn below(generator: &mut impl RngCore, limit: u64) -> u64 {
    ((u128::from(generator.next_u64()) * u128::from(limit)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use fairpath_net::Streams;

    use super::*;

    #[test]
    fn a_permutation_gives_everybody_another_receiver() {
        let mut generator = Streams::new(1).generator("matrix", "test");
        for count in [2, 3, 16, 128] {
            let receivers = permutation(count, &mut generator).unwrap();
            assert!(receivers.iter().enumerate().all(|(sender, receiver)| sender != *receiver));
            let mut sorted = receivers;
            sorted.sort_unstable();
            assert_eq!(sorted, (0..count).collect::<Vec<_>>());
        }
        assert_eq!(permutation(1, &mut generator), None);
        assert_eq!(permutation(0, &mut generator), None);
    }

    #[test]
    fn every_order_is_about_equally_likely() {
        let mut generator = Streams::new(2).generator("matrix", "test");
        let mut first = [0_u32; 4];
        for _ in 0..4_000 {
            first[shuffled(4, &mut generator)[0]] += 1;
        }
        // 1,000 expected with a standard deviation of 27: four of them are allowed.
        assert!(first.iter().all(|times| times.abs_diff(1_000) < 110), "{first:?}");
    }

    #[test]
    fn random_receivers_are_never_the_sender_and_reach_everybody() {
        let mut generator = Streams::new(3).generator("matrix", "test");
        let mut seen = [false; 3];
        for _ in 0..100 {
            for (sender, receiver) in random_receivers(3, &mut generator).unwrap().into_iter().enumerate() {
                assert_ne!(sender, receiver);
                seen[receiver] = true;
            }
        }
        assert_eq!(seen, [true; 3]);
        assert_eq!(random_receivers(1, &mut generator), None);
        assert_eq!(random_receivers(0, &mut generator), None);
    }
}
