//! The paths that are taken for one, and since when.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fairpath::{Connection, PathState, Sharing};
use tokio::time::{Instant, interval};

/// How often the paths are looked at.
const LOOK: Duration = Duration::from_millis(100);

/// Paths that share a bottleneck on the way out, as the connection found.
#[derive(Clone, Debug)]
pub struct Shared {
    /// Their names.
    pub paths: Vec<String>,
    /// For how long that was so, without a break, when the measurement ended.
    pub held: Duration,
    /// How long the measurement took.
    pub of: Duration,
    /// How sure the detector was in the end of the two of them that it is least sure of, from 0 to 1.
    pub confidence: Option<f64>,
}

/// The groups of paths during a measurement, each with the time since which it is one, and the last verdicts.
#[derive(Debug, Default)]
pub(super) struct Watched(BTreeMap<Vec<String>, Instant>, Vec<Sharing>);

impl Watched {
    /// Looks at the paths of a connection as long as something is done.
    pub(super) async fn during<T>(connection: &Connection, work: impl Future<Output = T>) -> (T, Self) {
        let (mut watched, mut looks) = (Self::default(), interval(LOOK));
        tokio::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return (done, watched),
                now = looks.tick() => {
                    let open = connection.paths().into_iter().filter(|path| path.state == PathState::Open);
                    watched.look(open.filter_map(|path| Some((path.group?, path.name))), now);
                    watched.1 = connection.sharing();
                }
            }
        }
    }

    fn look(&mut self, paths: impl Iterator<Item = (u32, String)>, now: Instant) {
        let mut groups = BTreeMap::<u32, BTreeSet<String>>::new();
        for (group, name) in paths {
            groups.entry(group).or_default().insert(name);
        }
        let groups: Vec<Vec<String>> =
            groups.into_values().filter(|names| names.len() > 1).map(|names| names.into_iter().collect()).collect();
        self.0.retain(|names, _| groups.contains(names));
        for names in groups {
            self.0.entry(names).or_insert(now);
        }
    }

    fn confidence(&self, paths: &[String]) -> Option<f64> {
        let is_among = |one: &&Sharing| paths.contains(&one.paths.0) && paths.contains(&one.paths.1);
        self.1.iter().filter(is_among).map(|one| one.confidence).min_by(f64::total_cmp)
    }

    /// The groups at the end of a measurement that took so long.
    pub(super) fn shared(&self, of: Duration) -> Vec<Shared> {
        let shared = |(paths, since): (&Vec<String>, &Instant)| Shared {
            paths: paths.clone(),
            held: since.elapsed().min(of),
            of,
            confidence: self.confidence(paths),
        };
        self.0.iter().map(shared).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_that_breaks_up_is_forgotten_and_begins_anew() {
        let begun = Instant::now();
        let mut watched = Watched::default();
        let mut look = |groups: [u32; 3], seconds| {
            let names = ["eth0", "wlan0", "wwan0"].map(str::to_owned);
            watched.look(groups.into_iter().zip(names), begun + Duration::from_secs(seconds));
            watched.0.iter().map(|(names, since)| (names.join("+"), (*since - begun).as_secs())).collect::<Vec<_>>()
        };
        let pair = |since| vec![("eth0+wlan0".to_owned(), since)];
        assert_eq!(look([0, 0, 1], 1), pair(1));
        assert_eq!(look([2, 2, 1], 2), pair(1), "a number says nothing");
        assert_eq!(look([0, 1, 2], 3), []);
        assert_eq!(look([0, 0, 1], 4), pair(4));
        assert_eq!(look([0, 0, 0], 5), [("eth0+wlan0+wwan0".to_owned(), 5)]);
    }
}
