//! What the numbers mean, in words.

use fairpath_core::Bitrate;
use serde::Serialize;

use super::scene::{Mode, Network, Outcome};
use crate::sharing::Sharing;

/// On separate bottlenecks a bond is worth its name from here on.
const AGGREGATES: f64 = 1.8;

/// On a shared bottleneck these shares of the competitor's rate are fair.
const FAIR: std::ops::RangeInclusive<f64> = 0.8..=1.25;

/// A row of a scene's table.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    pub(super) network: Network,
    pub(super) mode: Mode,
    pub(super) measured_seconds: f64,
    pub(super) goodput_bps: u64,
    pub(super) competitor_bps: Option<u64>,
    /// Goodput over that of a single path, on separate bottlenecks.
    pub(super) times_single: Option<f64>,
    /// Goodput over the competitor's, on a shared one.
    pub(super) share: Option<f64>,
    /// Jain's fairness index of the two connections.
    pub(super) jain: Option<f64>,
    /// Whether it came out as it should.
    pub(super) as_expected: bool,
    pub(super) verdict: String,
    /// What was found out about the bottlenecks, where it is detected.
    pub(super) sharing: Option<Sharing>,
}

/// Jain's fairness index: 1 where all rates are equal, 1/n where one has everything.
///
/// [Jain1984 eq. 2]
///
/// ```text
///         ( Σ x_i )²
///  J = ---------------
///        n · Σ x_i²
/// ```
fn jain(rates: &[Bitrate]) -> Option<f64> {
    let sum: f64 = rates.iter().map(|rate| rate.as_bps() as f64).sum();
    let squares: f64 = rates.iter().map(|rate| (rate.as_bps() as f64).powi(2)).sum();
    (squares > 0.0).then(|| sum * sum / (rates.len() as f64 * squares))
}

/// The rows of one scene.
pub(super) fn rows(outcomes: &[&Outcome]) -> Vec<Row> {
    let single = outcomes.iter().find(|one| one.mode == Mode::Single && one.network == Network::Separate);
    outcomes.iter().map(|outcome| row(outcome, single.map(|one| one.goodput))).collect()
}

fn row(outcome: &Outcome, single: Option<Bitrate>) -> Row {
    let over = |other: Bitrate| outcome.goodput.as_bps() as f64 / (other.as_bps() as f64).max(1.0);
    let times_single = single.filter(|_| outcome.network == Network::Separate).map(over);
    let share = outcome.competitor.map(over);
    let (as_expected, verdict) = match outcome.network {
        Network::Separate => separate(outcome.mode, times_single.unwrap_or(0.0)),
        Network::Shared => shared(outcome.mode, share.unwrap_or(0.0)),
    };
    Row {
        network: outcome.network,
        mode: outcome.mode,
        measured_seconds: outcome.measured.as_secs_f64(),
        goodput_bps: outcome.goodput.as_bps(),
        competitor_bps: outcome.competitor.map(Bitrate::as_bps),
        times_single,
        share,
        jain: outcome.competitor.and_then(|other| jain(&[outcome.goodput, other])),
        as_expected,
        verdict,
        sharing: (outcome.mode == Mode::Auto).then(|| outcome.sharing.clone()),
    }
}

fn separate(mode: Mode, times: f64) -> (bool, String) {
    match mode {
        Mode::Single => (true, "what one path gives".into()),
        _ if times >= AGGREGATES => (true, format!("fast: {times:.2} times a single path")),
        _ => (false, format!("slow: only {times:.2} times a single path, {AGGREGATES} were expected")),
    }
}

fn shared(mode: Mode, share: f64) -> (bool, String) {
    let fair = FAIR.contains(&share);
    match mode {
        _ if share < *FAIR.start() => (false, format!("too shy: takes {share:.2} of the competitor's rate")),
        Mode::Single if fair => (true, "two equal connections share equally".into()),
        _ if mode.is_coupled() && fair => (true, "fair: takes no more than one connection should".into()),
        Mode::Uncoupled if !fair => (true, format!("unfair: takes {share:.1} times what the competitor gets")),
        Mode::Uncoupled => (false, "as fair as a coupled one, which was not expected".into()),
        _ => (false, format!("unfair: takes {share:.2} times what the competitor gets")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jains_index_of_two_to_one_is_nine_tenths() {
        // (2 + 1)² / (2 · (4 + 1)) = 0.9
        let rates = [Bitrate::from_mbps(2), Bitrate::from_mbps(1)];
        assert!((jain(&rates).unwrap() - 0.9).abs() < 1e-12);
        assert_eq!(jain(&[Bitrate::ZERO]), None);
    }

    #[test]
    fn the_words_follow_the_numbers() {
        assert_eq!(separate(Mode::Olia, 1.95), (true, "fast: 1.95 times a single path".into()));
        assert!(!separate(Mode::Lia, 1.5).0);
        assert!(shared(Mode::Lia, 1.0).0 && !shared(Mode::Lia, 1.6).0);
        assert!(shared(Mode::Uncoupled, 1.9).0 && !shared(Mode::Uncoupled, 1.0).0);
        assert!(!shared(Mode::Olia, 0.5).0);
    }
}
