//! The region of TCP-friendly rates.
//!
//! On any bottleneck shared by a set S of the paths, the stream may take no more than one TCP would
//! on the best path of S. So Σ_S x ≤ max_S T for each of the 2ⁿ − 1 sets [Pluntke2011, eq. 1]. Sort
//! the paths by T, the most first. The set of the paths from the k-th on has the constraint Σ_{i ≥
//! k} x_(i) ≤ T_(k). It implies that of every set whose best path is the k-th, so n constraints say
//! the same as all.

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
    /// For paths with these rates of a TCP.
    ///
    /// # Errors
    ///
    /// If a rate is not finite: a path without losses needs another bound from the caller.
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

    /// The distance of these rates from the nearest constraint; negative if they are not friendly.
    pub fn slack(&self, rates: &[PacketRate]) -> f64 {
        self.left(rates).into_iter().fold(f64::INFINITY, f64::min)
    }
}
