//! The links that are taken for one, and since when. That two paths over one link share it is no news.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fairpath::{Connection, Path, PathState, Sharing};
use tokio::time::{Instant, interval};

/// How often the paths are looked at.
const LOOK: Duration = Duration::from_millis(100);

/// Links that share a bottleneck on the way out, as the connection found.
#[derive(Clone, Debug)]
pub struct Shared {
    /// The interfaces.
    pub links: Vec<String>,
    /// For how long that was so, without a break, when the measurement ended.
    pub held: Duration,
    /// How long the measurement took.
    pub of: Duration,
    /// How sure the detector was in the end of the two of them that it is least sure of, from 0 to 1.
    pub confidence: Option<f64>,
}

/// The groups of links during a measurement.
#[derive(Debug, Default)]
pub(super) struct Watched {
    /// Each with the time since which it is one.
    groups: BTreeMap<Vec<String>, Instant>,
    /// The last verdicts about paths, and the link of each.
    verdicts: Vec<Sharing>,
    link_of: BTreeMap<String, String>,
}

impl Watched {
    /// Looks at the paths of a connection as long as something is done.
    pub(super) async fn during<T>(connection: &Connection, work: impl Future<Output = T>) -> (T, Self) {
        let (mut watched, mut looks) = (Self::default(), interval(LOOK));
        tokio::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return (done, watched),
                now = looks.tick() => {
                    let open: Vec<Path> =
                        connection.paths().into_iter().filter(|path| path.state == PathState::Open).collect();
                    watched.look(open.iter().filter_map(|path| Some((path.group?, path.interface.clone()))), now);
                    watched.link_of = open.into_iter().map(|path| (path.name, path.interface)).collect();
                    watched.verdicts = connection.sharing();
                }
            }
        }
    }

    /// Takes the group and the link of each path.
    fn look(&mut self, paths: impl Iterator<Item = (u32, String)>, now: Instant) {
        let mut groups = BTreeMap::<u32, BTreeSet<String>>::new();
        for (group, link) in paths {
            groups.entry(group).or_default().insert(link);
        }
        let groups: Vec<Vec<String>> =
            groups.into_values().filter(|links| links.len() > 1).map(|links| links.into_iter().collect()).collect();
        self.groups.retain(|links, _| groups.contains(links));
        for links in groups {
            self.groups.entry(links).or_insert(now);
        }
    }

    /// How sure the detector is of the two paths, of two of these links, that it is least sure of.
    fn confidence(&self, links: &[String]) -> Option<f64> {
        let is_among = |one: &&Sharing| {
            let [first, second] = [&one.paths.0, &one.paths.1].map(|path| self.link_of.get(path));
            first != second && [first, second].iter().all(|link| link.is_some_and(|link| links.contains(link)))
        };
        self.verdicts.iter().filter(is_among).map(|one| one.confidence).min_by(f64::total_cmp)
    }

    /// The groups at the end of a measurement that took this long.
    pub(super) fn shared(&self, of: Duration) -> Vec<Shared> {
        let shared = |(links, since): (&Vec<String>, &Instant)| Shared {
            links: links.clone(),
            held: since.elapsed().min(of),
            of,
            confidence: self.confidence(links),
        };
        self.groups.iter().map(shared).collect()
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
            watched
                .groups
                .iter()
                .map(|(links, since)| (links.join("+"), (*since - begun).as_secs()))
                .collect::<Vec<_>>()
        };
        let pair = |since| vec![("eth0+wlan0".to_owned(), since)];
        assert_eq!(look([0, 0, 1], 1), pair(1));
        assert_eq!(look([2, 2, 1], 2), pair(1), "a number says nothing");
        assert_eq!(look([0, 1, 2], 3), []);
        assert_eq!(look([0, 0, 1], 4), pair(4));
        assert_eq!(look([0, 0, 0], 5), [("eth0+wlan0+wwan0".to_owned(), 5)]);
    }

    #[test]
    fn two_paths_over_one_link_are_no_news() {
        let (mut watched, now) = (Watched::default(), Instant::now());
        let links = |links: [&str; 3]| links.map(|link| (7, link.to_owned())).into_iter();
        watched.look(links(["eth0", "eth0", "eth0"]), now);
        assert!(watched.groups.is_empty());
        watched.look(links(["eth0", "wwan0", "eth0"]), now);
        assert_eq!(watched.groups.keys().map(|links| links.join("+")).collect::<Vec<_>>(), ["eth0+wwan0"]);
    }
}
