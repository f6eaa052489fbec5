//! The numbers of all seeds in words: each verdict looks at the 95 % interval, not at the mean alone.

use std::time::Duration;

use fairpath_core::{Bitrate, Estimate};
use serde::{Serialize, Serializer};

use super::scene::{Mode, Network, Run};

/// Over separate links two paths are at least this many times one path.
const FAST: f64 = 1.8;

/// Beside somebody else, the mean of our rate in parts of theirs is in this range where we are fair.
const FAIR: std::ops::RangeInclusive<f64> = 0.8..=1.25;

/// The whole interval of a fair share is in this range: half as much again as the other, or the reverse, is felt.
const FELT: std::ops::RangeInclusive<f64> = 0.67..=1.5;

/// Paths that share a link are found within this time.
const FOUND: Duration = Duration::from_secs(10);

/// Paths over separate links are taken for paths that share one for this part of the time at most.
const MISTAKEN: f64 = 0.05;

/// A row of a scene's table.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) network: Network,
    pub(crate) mode: Mode,
    /// In Mbit/s.
    #[serde(rename = "goodput_mbps", serialize_with = "estimate")]
    pub(crate) goodput: Estimate,
    /// In Mbit/s; on the shared link.
    #[serde(rename = "competitor_mbps", serialize_with = "optional")]
    pub(crate) competitor: Option<Estimate>,
    /// Goodput over that of one path; on separate links.
    #[serde(serialize_with = "optional")]
    pub(crate) times_one_path: Option<Estimate>,
    /// Goodput over the competitor's; on the shared link.
    #[serde(serialize_with = "optional")]
    pub(crate) share: Option<Estimate>,
    /// The seconds until the paths were found to share a link, for each seed in which they were.
    pub(crate) found_after: Vec<f64>,
    /// Whether it came out as the README promises.
    pub(crate) as_promised: bool,
    pub(crate) verdict: String,
}

fn estimate<S: Serializer>(one: &Estimate, serializer: S) -> Result<S::Ok, S::Error> {
    (one.mean, one.half_width).serialize(serializer)
}

fn optional<S: Serializer>(one: &Option<Estimate>, serializer: S) -> Result<S::Ok, S::Error> {
    one.as_ref().map(|one| (one.mean, one.half_width)).serialize(serializer)
}

/// Both ends of an interval; of a single sample, whose interval is not known, the sample.
fn ends(estimate: &Estimate) -> (f64, f64) {
    let half = estimate.half_width.unwrap_or(0.0);
    (estimate.mean - half, estimate.mean + half)
}

/// The rows of one scene, from the runs of all seeds.
pub(crate) fn rows(network: Network, runs: &[Run]) -> Vec<Row> {
    let of = |mode: Mode| runs.iter().filter(move |run| (run.network, run.mode) == (network, mode));
    let goodput = |mode: Mode| mbps(of(mode).map(|run| Some(run.goodput)));
    let row = |mode: Mode| {
        let goodput = goodput(mode)?;
        let competitor = mbps(of(mode).map(|run| run.competitor));
        let found_after = of(mode).filter_map(|run| run.found_after).map(|time| time.as_secs_f64()).collect();
        let row = Row {
            network,
            mode,
            times_one_path: None,
            share: competitor.clone().map(|theirs| goodput.clone() / theirs),
            goodput,
            competitor,
            found_after,
            as_promised: true,
            verdict: String::new(),
        };
        Some((row, of(mode).map(|run| run.together).fold(0.0, f64::max), of(mode).count()))
    };
    let one_path = goodput(Mode::OnePath);
    let judged = |(row, together, seeds): (Row, f64, usize)| match network {
        Network::Separate => on_separate(row, one_path.clone(), together),
        Network::Shared => on_shared(row, seeds),
    };
    Mode::ALL.into_iter().filter_map(row).map(judged).collect()
}

fn mbps(rates: impl Iterator<Item = Option<Bitrate>>) -> Option<Estimate> {
    let rates: Option<Vec<f64>> = rates.map(|rate| Some(rate?.as_mbps_f64())).collect();
    Estimate::of(rates?)
}

fn on_separate(row: Row, one_path: Option<Estimate>, together: f64) -> Row {
    let times = one_path.map(|one_path| row.goodput.clone() / one_path);
    let (least, _) = times.as_ref().map_or((0.0, 0.0), ends);
    let (as_promised, verdict) = match row.mode {
        Mode::OnePath => (true, "one link, and no more".into()),
        _ if least < FAST => (false, format!("slow: {FAST} times one path was promised")),
        Mode::Fairpath if together > MISTAKEN => {
            (false, format!("fast, but taken for one link for {together:.2} of the time"))
        }
        _ => (true, "fast: both links".into()),
    };
    Row { times_one_path: times, as_promised, verdict, ..row }
}

fn on_shared(row: Row, seeds: usize) -> Row {
    let share = row.share.clone().unwrap_or_else(Estimate::unknown);
    let (least, most) = ends(&share);
    let is_fair = FAIR.contains(&share.mean) && FELT.contains(&least) && FELT.contains(&most);
    let in_time = row.found_after.iter().filter(|after| **after <= FOUND.as_secs_f64()).count();
    let (as_promised, verdict) = match row.mode {
        Mode::Uncoupled if least > *FAIR.end() => (true, "unfair: takes the shares of two".into()),
        Mode::Uncoupled => (false, "not clearly unfair, which two uncoupled paths should be".into()),
        Mode::Fairpath if in_time < seeds => {
            (false, format!("found to share a link within {} s in {in_time} of {seeds} runs only", FOUND.as_secs()))
        }
        _ if is_fair => (true, "fair: takes the share of one".into()),
        _ if share.mean < 1.0 => (false, "too shy: takes less than the share of one".into()),
        _ => (false, "unfair: takes more than the share of one".into()),
    };
    Row { as_promised, verdict, ..row }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(network: Network, mode: Mode, ours: u64, theirs: u64, found_after: Option<u64>) -> Run {
        Run {
            network,
            mode,
            seed: 1,
            goodput: Bitrate::from_kbps(ours),
            competitor: (network == Network::Shared).then(|| Bitrate::from_kbps(theirs)),
            found_after: found_after.map(Duration::from_secs),
            together: 0.0,
            begun: Duration::ZERO,
            points: Vec::new(),
            records: Vec::new(),
        }
    }

    fn shared(mode: Mode, pairs: &[(u64, u64)], found_after: Option<u64>) -> Row {
        let runs: Vec<Run> =
            pairs.iter().map(|(ours, theirs)| run(Network::Shared, mode, *ours, *theirs, found_after)).collect();
        rows(Network::Shared, &runs).remove(0)
    }

    #[test]
    fn a_fair_share_is_one_of_which_the_whole_interval_is_near_one() {
        let narrow = shared(Mode::Fairpath, &[(9_000, 10_000), (10_000, 9_000), (9_500, 9_500)], Some(4));
        assert!(narrow.as_promised && narrow.verdict.starts_with("fair"), "{narrow:?}");
        // The same mean, and nobody can say whether it is chance.
        let wide = shared(Mode::Fairpath, &[(4_000, 15_000), (15_000, 4_000), (9_500, 9_500)], Some(4));
        assert!(!wide.as_promised, "{wide:?}");
        let shy = shared(Mode::OnePath, &[(5_000, 14_000), (5_100, 13_900), (5_000, 14_000)], None);
        assert!(!shy.as_promised && shy.verdict.starts_with("too shy"), "{shy:?}");
    }

    #[test]
    fn a_shared_link_that_is_not_found_in_time_breaks_the_promise() {
        let pairs = [(9_000, 10_000), (10_000, 9_000), (9_500, 9_500)];
        for found_after in [None, Some(11)] {
            let row = shared(Mode::Fairpath, &pairs, found_after);
            assert!(!row.as_promised && row.verdict.contains("in 0 of 3 runs"), "{row:?}");
        }
    }

    #[test]
    fn uncoupled_paths_are_expected_to_be_unfair() {
        let row = shared(Mode::Uncoupled, &[(13_000, 6_000), (12_800, 6_200), (13_100, 5_900)], None);
        assert!(row.as_promised && row.verdict.starts_with("unfair"), "{row:?}");
        assert!(!shared(Mode::Uncoupled, &[(9_500, 9_500), (9_600, 9_400)], None).as_promised);
    }

    #[test]
    fn two_separate_links_are_held_against_one() {
        let runs = |ours: u64, together: f64| {
            let one = [19_000, 19_100].map(|rate| run(Network::Separate, Mode::OnePath, rate, 0, None));
            let two = [ours, ours + 100].map(|rate| run(Network::Separate, Mode::Fairpath, rate, 0, None));
            let two = two.map(|run| Run { together, ..run });
            rows(Network::Separate, &[one, two].concat()).remove(1)
        };
        assert!(runs(38_000, 0.0).as_promised);
        assert!(!runs(30_000, 0.0).as_promised);
        assert!(!runs(38_000, 0.2).as_promised);
    }
}
