//! What the numbers mean, in words.

use fairpath_core::Bitrate;
use serde::Serialize;

use super::scene::{Mode, Network, Outcome};
use crate::sharing::Sharing;

/// On separate bottlenecks a bond is worth its name from here on.
const AGGREGATES: f64 = 1.8;

/// On a shared bottleneck these shares of the competitor's rate are fair, where the competitor is of the congestion
/// control that a single path in our place would have.
const FAIR: std::ops::RangeInclusive<f64> = 0.8..=1.25;

/// A row of a scene's table.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Row {
    pub(super) network: Network,
    pub(super) mode: Mode,
    pub(super) measured_seconds: f64,
    pub(super) goodput_bps: u64,
    /// The congestion control of the competitor.
    pub(super) competitor: Option<String>,
    pub(super) competitor_bps: Option<u64>,
    /// Goodput over that of a single path, on separate bottlenecks.
    pub(super) times_single: Option<f64>,
    /// Goodput over the competitor's, on a shared one.
    pub(super) share: Option<f64>,
    /// What one path of the competitor's congestion control gets in our place, beside the same competitor.
    pub(super) one_path_bps: Option<u64>,
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
    let goodput = |mode: Mode| outcomes.iter().find(|one| one.mode == mode).map(|one| one.goodput);
    let row = |outcome: &&Outcome| match outcome.network {
        Network::Separate => on_separate(outcome, goodput(Mode::Single)),
        Network::Shared => on_shared(outcome, goodput(outcome.mode.rival())),
    };
    outcomes.iter().map(row).collect()
}

fn on_separate(outcome: &Outcome, single: Option<Bitrate>) -> Row {
    let times_single = single.map(|single| over(outcome.goodput, single));
    let (as_expected, verdict) = separate(outcome.mode, times_single.unwrap_or(0.0));
    Row { times_single, as_expected, verdict, ..plain(outcome) }
}

fn on_shared(outcome: &Outcome, one_path: Option<Bitrate>) -> Row {
    let share = outcome.competitor.map(|other| over(outcome.goodput, other));
    let (as_expected, verdict) = shared(outcome.mode, share.unwrap_or(0.0));
    Row {
        competitor: Some(outcome.mode.rival().engine().congestion),
        competitor_bps: outcome.competitor.map(Bitrate::as_bps),
        share,
        one_path_bps: one_path.map(Bitrate::as_bps),
        jain: outcome.competitor.and_then(|other| jain(&[outcome.goodput, other])),
        as_expected,
        verdict,
        ..plain(outcome)
    }
}

fn over(goodput: Bitrate, other: Bitrate) -> f64 {
    goodput.as_bps() as f64 / (other.as_bps() as f64).max(1.0)
}

/// What rows of all scenes have.
fn plain(outcome: &Outcome) -> Row {
    Row {
        network: outcome.network,
        mode: outcome.mode,
        measured_seconds: outcome.measured.as_secs_f64(),
        goodput_bps: outcome.goodput.as_bps(),
        competitor: None,
        competitor_bps: None,
        times_single: None,
        share: None,
        one_path_bps: None,
        jain: None,
        as_expected: true,
        verdict: String::new(),
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
        Mode::Single | Mode::Cubic if fair => (true, "two equal connections share equally".into()),
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
        assert_eq!(shared(Mode::Cubic, 1.0), shared(Mode::Single, 1.0));
        assert!(shared(Mode::Auto, 1.2).0 && !shared(Mode::Auto, 1.6).0);
    }

    #[test]
    fn each_is_held_against_the_single_path_that_it_is_to_be_fair_to() {
        let with = |coupling: Option<&str>, network| Mode::with(coupling.map(|name| name.parse().unwrap()), network);
        for network in [Network::Separate, Network::Shared] {
            for coupling in [None, Some("auto"), Some("always"), Some("never")] {
                let modes = with(coupling, network);
                let is_there = |mode: &Mode| network == Network::Separate || modes.contains(&mode.rival());
                assert!(modes.contains(&Mode::Single) && modes.iter().all(is_there), "{modes:?}");
            }
        }
        assert_eq!(with(Some("auto"), Network::Shared), [Mode::Single, Mode::Cubic, Mode::Auto]);
        assert_eq!(with(Some("auto"), Network::Separate), [Mode::Single, Mode::Auto]);
    }
}
