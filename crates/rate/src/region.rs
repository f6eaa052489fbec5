//! The region of TCP-friendly rates.
//!
//! Whatever bottlenecks a set S of the paths shares, the stream may take no more of it than one TCP would on the best
//! path of S: Σ_S x ≤ max_S T for each of the 2ⁿ − 1 sets [Pluntke2011, eq. 1]. Sorted by T, the most first, the set of
//! the paths from the k-th on has the constraint Σ_{i ≥ k} x_(i) ≤ T_(k), and it implies that of every set whose best
//! path is the k-th. So n of them say the same as all.

use crate::packet_rate::{NotARate, PacketRate, checked};

/// The rates that are no more aggressive than one TCP on any set of paths.
#[derive(Clone, Debug, PartialEq)]
pub struct Region {
    /// The rate of a TCP on each path.
    tcp: Vec<PacketRate>,
    /// The paths, those with the highest rates first.
    order: Vec<usize>,
}

impl Region {
    /// For paths on which a TCP would send so much.
    ///
    /// # Errors
    ///
    /// Where one of them is not finite: who has lost nothing yet has to say what bounds him.
    pub fn new(tcp: &[PacketRate]) -> Result<Self, NotARate> {
        checked(tcp)?;
        let mut order: Vec<usize> = (0..tcp.len()).collect();
        order.sort_by(|a, b| tcp[*b].per_second().total_cmp(&tcp[*a].per_second()).then(a.cmp(b)));
        Ok(Self { tcp: tcp.to_vec(), order })
    }

    /// How many paths there are.
    pub fn paths(&self) -> usize {
        self.tcp.len()
    }

    /// The rate of a TCP on each path.
    pub fn tcp(&self) -> &[PacketRate] {
        &self.tcp
    }

    /// The most that all paths together may carry: the rate of a TCP on the best of them.
    pub fn whole(&self) -> PacketRate {
        self.order.first().map_or(PacketRate::ZERO, |best| self.tcp[*best])
    }

    /// The paths, those with the highest rates first.
    pub(crate) fn order(&self) -> &[usize] {
        &self.order
    }

    /// The rest of each of the n constraints by these rates, by the order of the paths; below zero where more is
    /// taken than is friendly.
    pub(crate) fn left(&self, rates: &[PacketRate]) -> Vec<f64> {
        let mut left = vec![0.0; self.order.len()];
        let mut taken = 0.0;
        for (at, path) in self.order.iter().enumerate().rev() {
            taken += rates[*path].per_second();
            left[at] = self.tcp[*path].per_second() - taken;
        }
        left
    }

    /// By how much these rates stay below the constraint that is nearest; below zero where they are not friendly.
    pub fn slack(&self, rates: &[PacketRate]) -> f64 {
        self.left(rates).into_iter().fold(f64::INFINITY, f64::min)
    }
}
