//! How much of a stream must be repair, and where it goes.

use crate::packet_rate::{PacketRate, total};

/// The share of all packets that is lost or late, with these rates on the paths.
pub fn residual(rates: &[PacketRate], losses: &[f64]) -> f64 {
    let all = total(rates);
    let missing: f64 = rates.iter().zip(losses).map(|(rate, loss)| rate.per_second() * loss).sum();
    if all > 0.0 { missing / all } else { 0.0 }
}

/// Repair of a stream over several paths.
#[derive(Clone, Debug, PartialEq)]
pub struct Repair {
    /// The share of all packets that are repair.
    pub share: f64,
    /// How many of them go on each path.
    pub rates: Vec<PacketRate>,
}

impl Repair {
    /// Plans the repair: the mean share missing, L, plus `margin` times √(L (1 − L)).
    /// A margin of z / √n covers z standard deviations of the share in blocks of n packets.
    ///
    /// Repair goes on the paths that lose the most: what arrives of the source needs no decoding.
    pub fn plan(rates: &[PacketRate], losses: &[f64], margin: f64) -> Self {
        let loss = residual(rates, losses);
        let share = (loss + margin * libm::sqrt(loss * (1.0 - loss))).clamp(0.0, 1.0);
        let mut left = share * total(rates);
        let mut worst_first: Vec<usize> = (0..rates.len()).collect();
        worst_first.sort_by(|a, b| losses[*b].total_cmp(&losses[*a]).then(a.cmp(b)));
        let mut repair = vec![PacketRate::ZERO; rates.len()];
        for path in worst_first {
            let here = left.min(rates[path].per_second());
            repair[path] = PacketRate::new(here);
            left -= here;
        }
        Self { share, rates: repair }
    }

    /// The rate that reaches the player of a stream that sends at these rates.
    pub fn goodput(&self, rates: &[PacketRate]) -> PacketRate {
        PacketRate::new(total(rates) * (1.0 - self.share))
    }
}

/// The repair packets that a block of `source` packets needs, at most `most`. They keep the share
/// of sent packets that stays missing down to `target`, if each packet is missing independently
/// with the probability `missing`.
///
/// Where more than all repair is missing, nothing of a block can be brought back: what stays missing with r of n packets
/// repair is Σ_{x > r} P(x of n) · x / n.
pub fn repair_packets(source: usize, missing: f64, target: f64, most: usize) -> usize {
    let missing = missing.clamp(0.0, 1.0);
    (0..most).find(|repair| left_missing(source + repair, *repair, missing) <= target).unwrap_or(most)
}

fn left_missing(packets: usize, repair: usize, missing: f64) -> f64 {
    if missing >= 1.0 {
        return 1.0;
    }
    // P(0 of n), and then each from the one before: what is left of the sum of all x · P(x) = n · missing.
    let odds = missing / (1.0 - missing);
    let mut probability = libm::exp(packets as f64 * libm::log1p(-missing));
    let mut brought_back = 0.0;
    for lost in 1..=repair {
        probability *= odds * (packets + 1 - lost) as f64 / lost as f64;
        brought_back += lost as f64 * probability;
    }
    (missing - brought_back / packets.max(1) as f64).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repair_makes_up_for_what_is_missing_and_goes_where_most_is_lost() {
        let (rates, losses) = ([100.0, 50.0, 50.0].map(PacketRate::new), [0.02, 0.5, 0.1]);
        let repair = Repair::plan(&rates, &losses, 0.0);
        assert!((repair.share - 32.0 / 200.0).abs() < 1e-12);
        let on = |path: usize| repair.rates[path].per_second();
        assert!((on(1) - 32.0).abs() < 1e-9 && on(0) == 0.0 && on(2) == 0.0, "{repair:?}");
        assert!((repair.goodput(&rates).per_second() - 168.0).abs() < 1e-9);
        let more = Repair::plan(&rates, &losses, 1.0);
        assert!((more.share - (0.16 + libm::sqrt(0.16 * 0.84))).abs() < 1e-12);
        assert_eq!(more.rates[1].per_second(), 50.0, "what it has no room for goes on the next");
    }

    #[test]
    fn nothing_sent_is_nothing_missing_and_all_lost_is_all_repair() {
        assert_eq!(residual(&[PacketRate::ZERO], &[0.5]), 0.0);
        let repair = Repair::plan(&[PacketRate::new(10.0)], &[1.0], 3.0);
        assert_eq!((repair.share, repair.rates[0].per_second()), (1.0, 10.0));
    }

    #[test]
    fn a_block_has_as_much_repair_as_its_target_takes_and_no_more() {
        // 20 packets at 0.5 %: without repair 0.005 stays missing. With one repair packet, of 21:
        //
        // P(0) = 0.9001, P(1) = 21 · 0.005 / 0.995 · P(0) = 0.0950, so 0.005 − 0.0950 / 21 = 0.00048.
        assert!((left_missing(20, 0, 0.005) - 0.005).abs() < 1e-12);
        assert!((left_missing(21, 1, 0.005) - 0.000_477).abs() < 1e-6);
        assert_eq!(repair_packets(20, 0.005, 1e-3, 40), 1);
        assert_eq!(repair_packets(20, 0.0, 1e-3, 40), 0);
        assert_eq!(repair_packets(20, 1.0, 1e-3, 40), 40, "as much as there may be");
        let by_loss = [0.01, 0.05, 0.1, 0.3].map(|missing| repair_packets(50, missing, 1e-3, 200));
        assert!(by_loss.windows(2).all(|pair| pair[0] < pair[1]), "{by_loss:?}");
        // On average 0.3 · n of n are missing: with 50 of them source, n is 72 and more.
        assert!(by_loss[3] > 22 && by_loss[3] < 50, "{by_loss:?}");
    }

    #[test]
    fn larger_blocks_need_a_smaller_share() {
        let share = |source: usize| repair_packets(source, 0.05, 1e-3, 1_000) as f64 / source as f64;
        assert!(share(10) > share(40) && share(40) > share(160), "{} {} {}", share(10), share(40), share(160));
    }
}
