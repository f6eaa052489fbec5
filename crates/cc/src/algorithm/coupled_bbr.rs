//! Coupled BBR: version 1 of BBR on each path, of which those that share a bottleneck cruise more
//! slowly, so that together they are to others what one BBR flow is. What each path probes with is
//! left whole, for only an undivided probe shows what the path could carry.
//!
//! # Source
//!
//! [Han2021] Coupled BBR, for the form: the cycle of BBR, its probe and its drain as they are, and
//! the rest of it slower. [`Cruise::BestPath`] is its rule, [`Cruise::OneFlow`] is ours.
//!
//! # Symbols
//!
//! | source | here | unit |
//! |---|---|---|
//! | x_r | `BbrPath::bandwidth` | bit/s |
//! | α_r | cruise gain | 1 |
//! | β_r | what the gains come to over a cycle | 1 |
//! | L | `PHASES` | 1 |
//!
//! # Deviations
//!
//! - The rule of the source gives the group what its best path is estimated to carry. But the
//!   estimates themselves shrink with the gains, because what a path leaves while it cruises is what
//!   the probes of others find; so beside other flows the group ends far below one of them. The
//!   default rule solves for the gain at which a group and a flow are estimated alike. Shares of
//!   20 Mbit/s with round trips of 40 ms, means of 24 runs that begin in different orders:
//!
//!   | flows | buffer | one flow's | uncoupled | best path | one flow |
//!   |---|---|---|---|---|---|
//!   | 2 paths alone | 1 BDP | 1 | 0.98 | 0.97 | 0.93 |
//!   | 4 paths alone | 1 BDP | 1 | 0.99 | 0.88 | 0.98 |
//!   | 2 paths and 1 BBR | 1 BDP | 0.50 | 0.67 | 0.33 | 0.45 |
//!   | 2 paths and 1 BBR | 4 BDP | 0.50 | 0.66 | 0.25 | 0.49 |
//!   | 3 paths and 1 BBR | 1 BDP | 0.50 | 0.74 | 0.24 | 0.36 |
//!   | 3 paths and 1 BBR | 4 BDP | 0.50 | 0.74 | 0.27 | 0.47 |
//!   | 2 paths and 2 BBR | 4 BDP | 0.33 | 0.49 | 0.21 | 0.35 |
//! - Which paths share a bottleneck is what the detector says. The source couples all of them.
//! - A path counts while it delivers, whatever it is doing. The source couples only while all paths
//!   are in ProbeBW, so that one that starts up or is idle sets the others free.
//! - The cycle keeps its eight phases; the source draws their number.
//! - A path whose gain would be next to nothing paces four datagrams per round-trip time; the source
//!   sets its window to that, from which the next probe would first have to grow.

use core::time::Duration;

use fairpath_core::{Ack, Bitrate, ByteCount, Congestion, Groups, LostPacket, PathId, Sent, Timestamp};

use super::bbr::{BbrPath, PHASES};
use crate::controller::{ControlState, Controller};
use crate::model::{BbrConfig, PerPath};

/// A path that has delivered nothing for this long is idle: its old bandwidth takes nothing from
/// the others.
const IDLE: Duration = Duration::from_secs(1);

/// How fast the paths of a group cruise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cruise {
    /// So that the group gets what one BBR flow gets beside it.
    #[default]
    OneFlow,
    /// So that all paths together send what the best of them is estimated to carry.
    BestPath,
}

/// Coupled BBR.
///
/// Paths are coupled within the groups of the newest partition. Before there is one, all paths are
/// one group; a path that the partition does not name is alone.
#[derive(Clone, Debug)]
pub struct CoupledBbr {
    cruise: Cruise,
    paths: PerPath<BbrPath>,
    groups: Option<Groups>,
}

/// The bandwidths of a group, in bit/s.
#[derive(Clone, Copy, Debug, Default)]
struct Bandwidths {
    own: f64,
    sum: f64,
    sum_of_squares: f64,
    max: f64,
}

impl CoupledBbr {
    /// A controller without paths.
    pub fn new(cruise: Cruise, config: BbrConfig) -> Self {
        Self { cruise, paths: PerPath::new(config), groups: None }
    }

    /// The gain at which `path` is to cruise.
    fn cruise_gain(&self, path: PathId, now: Timestamp) -> f64 {
        let together = |other| self.groups.as_ref().is_none_or(|groups| groups.together(path, other));
        let mut group = Bandwidths::default();
        for (other, control) in self.paths.iter() {
            let bandwidth = control.bandwidth().as_bps() as f64;
            if other == path {
                group.own = bandwidth;
            } else if !together(other) || now.since(control.delivered_at()) > IDLE {
                continue;
            }
            group.sum += bandwidth;
            group.sum_of_squares += bandwidth * bandwidth;
            group.max = group.max.max(bandwidth);
        }
        if group.own == group.sum {
            return 1.0;
        }
        match self.cruise {
            Cruise::OneFlow => one_flow(group.own / group.sum),
            Cruise::BestPath => best_path(&group),
        }
    }
}

// At a full bottleneck of rate C, an estimate x is stable if a total of 1.25 C arrives during its
// probe. Take one BBR flow of estimate y, which probes while the group cruises, and a path r of the
// group, which probes while all others cruise:
//
//     1.25 y + alpha X = 1.25 C        1.25 x_r + alpha ( X - x_r ) + y = 1.25 C,    X = sum_k x_k,
//
// with the same gain on all paths of the group. Over the 8 phases of a cycle the group sends
// X ( 2 + 6 alpha ) / 8. This equals y, the share of one flow, where with s = x_r / X
//
//               20 s - 1
//     alpha = -----------
//               16 s + 3
//
// A path that is alone has alpha = 1.
fn one_flow(share: f64) -> f64 {
    (20.0 * share - 1.0) / (16.0 * share + 3.0)
}

// [Han2021]
//                   x_r max_k x_k                  L beta_r - 2
//     beta_r  =  -----------------      alpha_r = --------------
//                    sum_k x_k^2                       L - 2
fn best_path(group: &Bandwidths) -> f64 {
    let phases = f64::from(PHASES);
    let beta = group.own * group.max / group.sum_of_squares;
    (phases * beta - 2.0) / (phases - 2.0)
}

impl Controller for CoupledBbr {
    fn on_path_opened(&mut self, path: PathId, max_datagram: ByteCount, now: Timestamp) {
        self.paths.on_path_opened(path, max_datagram, now);
    }

    fn on_path_closed(&mut self, path: PathId) {
        self.paths.on_path_closed(path);
    }

    fn on_max_datagram(&mut self, path: PathId, max_datagram: ByteCount) {
        self.paths.on_max_datagram(path, max_datagram);
    }

    fn on_sent(&mut self, path: PathId, sent: &Sent) {
        self.paths.on_sent(path, sent);
    }

    fn on_ack(&mut self, path: PathId, ack: &Ack) {
        self.paths.on_ack(path, ack);
    }

    fn on_ack_end(&mut self, path: PathId, now: Timestamp) {
        let gain = self.cruise_gain(path, now);
        if let Some(control) = self.paths.get_mut(path) {
            control.set_cruise_gain(gain);
            self.paths.on_ack_end(path, now);
        }
    }

    fn on_lost(&mut self, path: PathId, lost: &LostPacket) {
        self.paths.on_lost(path, lost);
    }

    fn on_congestion(&mut self, path: PathId, event: &Congestion) {
        self.paths.on_congestion(path, event);
    }

    fn on_groups(&mut self, groups: &Groups) {
        self.groups = Some(groups.clone());
    }

    fn window(&self, path: PathId) -> ByteCount {
        self.paths.window(path)
    }

    fn pacing_rate(&self, path: PathId) -> Option<Bitrate> {
        self.paths.pacing_rate(path)
    }

    fn state(&self, path: PathId) -> Option<ControlState> {
        self.paths.state(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(actual: f64, expected: f64) {
        assert!((actual - expected).abs() < 1e-12, "{actual} is not {expected}");
    }

    #[test]
    fn a_group_beside_a_flow_gets_as_much_as_the_flow() {
        near(one_flow(1.0), 1.0);
        // Two equal paths: (10 − 1) / (8 + 3) = 9/11. With C = 1 and X = 2 x:
        //
        // y = 1 − 0.8 · 9/11 · 2 x and 1.25 x + 9/11 · x + y = 1.25 give
        // x = 0.25 / (1.25 − 0.6 · 9/11).
        let gain = one_flow(0.5);
        near(gain, 9.0 / 11.0);
        let path = 0.25 / (1.25 - 0.6 * gain);
        let flow = 1.0 - 0.8 * gain * 2.0 * path;
        near(2.0 * path * (2.0 + 6.0 * gain) / 8.0, flow);
        // Four: (5 − 1) / (4 + 3). A path with a twentieth of the whole would not cruise at all.
        near(one_flow(0.25), 4.0 / 7.0);
        near(one_flow(0.05), 0.0);
    }

    #[test]
    fn the_group_sends_what_the_best_path_is_estimated_to_carry() {
        // x = (4, 2): β = 4 · 4 / 20 = 0.8 and 2 · 4 / 20 = 0.4, so Σβx = 3.2 + 0.8 = 4.
        // α = (6.4 − 2) / 6 = 0.7333 and (3.2 − 2) / 6 = 0.2.
        let group = Bandwidths { own: 4.0, sum: 6.0, sum_of_squares: 20.0, max: 4.0 };
        near(best_path(&group), 4.4 / 6.0);
        near(best_path(&Bandwidths { own: 2.0, ..group }), 0.2);
    }
}
