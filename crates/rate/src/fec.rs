//! How much of a stream must be repair, and where it goes.

use crate::packet_rate::{PacketRate, total};

/// What share of all packets is lost or late, with so much on each path.
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
    /// As much as makes up for what is missing on average, L, and for `margin` times √(L (1 − L)) above that, which is
    /// how far blocks of 1 / n packets deviate with a margin of z / √n.
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

    /// What reaches the player of a stream that sends so much in all.
    pub fn goodput(&self, rates: &[PacketRate]) -> PacketRate {
        PacketRate::new(total(rates) * (1.0 - self.share))
    }
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
}
