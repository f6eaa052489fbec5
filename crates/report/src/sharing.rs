//! The bottlenecks that paths share, in words and for programs.

use std::fmt;

use fairpath_quic::{Connection, PairVerdict, PathSnapshot};
use serde::Serialize;

/// Evidence this far from an even chance is worth a word.
const SAYS_SOMETHING: f64 = 0.1;

/// The findings of a sending end about the bottlenecks of its connection.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Sharing {
    /// The names of the paths that are coupled with each other.
    pub groups: Vec<Vec<String>>,
    /// The evidence for that; empty where nothing is detected.
    pub pairs: Vec<Pair>,
}

/// Two paths.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pair {
    /// Their names.
    pub paths: [String; 2],
    /// How sure it is that they share a bottleneck, from 0 to 1.
    pub confidence: f64,
    /// Whether they are taken to share one, and so are coupled.
    pub shared: bool,
    /// Since when, in seconds after the connection began.
    pub since_seconds: f64,
}

impl Sharing {
    /// The findings of `connection`, its paths called by `names` in the order of
    /// [`Connection::paths`]. A path that is closed is not in it.
    pub fn of(connection: &Connection, names: &[String]) -> Self {
        let reports = connection.paths();
        let named: Vec<(PathSnapshot, String)> =
            reports.iter().zip(names).filter_map(|(path, name)| Some((path.snapshot?, name.clone()))).collect();
        Self::new(&named, &connection.verdicts())
    }

    fn new(paths: &[(PathSnapshot, String)], verdicts: &[PairVerdict]) -> Self {
        let name = |id| paths.iter().find(|(path, _)| path.path == id).map(|(_, name)| name.clone());
        let pair = |verdict: &PairVerdict| {
            Some(Pair {
                paths: [name(verdict.paths.0)?, name(verdict.paths.1)?],
                confidence: verdict.confidence,
                shared: verdict.together,
                since_seconds: verdict.since.since(fairpath_core::Timestamp::ZERO).as_secs_f64(),
            })
        };
        let mut groups: Vec<(fairpath_core::GroupId, Vec<String>)> = Vec::new();
        for (path, name) in paths {
            match groups.iter_mut().find(|(group, _)| *group == path.group) {
                Some((_, members)) => members.push(name.clone()),
                None => groups.push((path.group, vec![name.clone()])),
            }
        }
        Self {
            groups: groups.into_iter().map(|(_, members)| members).collect(),
            pairs: verdicts.iter().filter_map(pair).collect(),
        }
    }

    /// A sentence for each pair of which something is known. What the paths deliver together is not told: the sum of what each
    /// delivers at present is no figure of them all.
    pub fn sentences(&self) -> Vec<String> {
        let known: Vec<String> = self.pairs.iter().filter(|pair| pair.is_known()).map(ToString::to_string).collect();
        match self.pairs.len() {
            // A pair for each two of many paths would fill a screen with what is not known.
            2.. if known.is_empty() => {
                vec!["nothing shows that any of the paths share a bottleneck: not coupled".into()]
            }
            2.. => known,
            _ => self.pairs.iter().map(ToString::to_string).collect(),
        }
    }

    /// The findings about these paths as a whole.
    pub fn together(&self, names: &[&str]) -> Together {
        let pairs = self.pairs.iter().filter(|pair| pair.paths.iter().all(|path| names.contains(&path.as_str())));
        let (shared, apart): (Vec<&Pair>, Vec<&Pair>) = pairs.partition(|pair| pair.shared);
        let is_shared = |name: &&&str| shared.iter().any(|pair| pair.paths.iter().any(|path| path == **name));
        let shared: Vec<String> = names.iter().filter(is_shared).map(|name| (*name).to_owned()).collect();
        match apart.iter().filter(|pair| pair.is_separate()).count() {
            _ if !shared.is_empty() => Together::Shared(shared),
            separate if separate == names.len() * names.len().saturating_sub(1) / 2 => Together::Separate,
            _ => Together::Unknown,
        }
    }

    /// The sentences about pairs that were not so, or not there, `before`.
    pub fn news(&self, before: &Self) -> Vec<String> {
        let was = |pair: &Pair| before.pairs.iter().find(|old| old.paths == pair.paths).is_some_and(|old| old.shared);
        self.pairs.iter().filter(|pair| pair.shared != was(pair)).map(ToString::to_string).collect()
    }
}

/// A finding about several paths as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Together {
    /// These of them share a bottleneck with another of them.
    Shared(Vec<String>),
    /// Each has one of its own.
    Separate,
    /// Some may share one or not.
    Unknown,
}

impl Pair {
    fn is_known(&self) -> bool {
        self.shared || self.is_separate()
    }

    /// Whether it is known that they have bottlenecks of their own.
    fn is_separate(&self) -> bool {
        !self.shared && self.confidence < 0.5 - SAYS_SOMETHING
    }
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b] = &self.paths;
        let (confidence, since) = (self.confidence, self.since_seconds);
        match self.shared {
            true => {
                write!(f, "{a} and {b} share a bottleneck (confidence {confidence:.2}, since {since:.0} s): coupled")
            }
            false if self.is_separate() => {
                let confidence = 1.0 - confidence;
                write!(f, "{a} and {b} have bottlenecks of their own (confidence {confidence:.2}): not coupled")
            }
            false => write!(f, "{a} and {b}: nothing shows that they share a bottleneck: not coupled"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(confidence: f64, shared: bool) -> Pair {
        Pair { paths: ["wlan0".into(), "wwan0".into()], confidence, shared, since_seconds: 8.2 }
    }

    fn sharing(pairs: Vec<Pair>) -> Sharing {
        Sharing { groups: Vec::new(), pairs }
    }

    #[test]
    fn the_verdict_is_told_in_words() {
        let found = sharing(vec![pair(0.93, true)]).sentences();
        let expected = "wlan0 and wwan0 share a bottleneck (confidence 0.93, since 8 s): coupled";
        assert_eq!(found, [expected]);
        let apart = pair(0.02, false).to_string();
        assert_eq!(apart, "wlan0 and wwan0 have bottlenecks of their own (confidence 0.98): not coupled");
        assert!(pair(0.5, false).to_string().contains("nothing shows"));
        let many = sharing(vec![pair(0.5, false), pair(0.02, false), pair(0.5, false)]).sentences();
        assert_eq!(many, [apart]);
        assert_eq!(sharing(vec![pair(0.5, false), pair(0.5, false)]).sentences().len(), 1);
        assert!(sharing(Vec::new()).sentences().is_empty(), "nothing was detected, nothing is said");
    }

    #[test]
    fn only_a_change_is_news() {
        let (together, apart) = (sharing(vec![pair(0.96, true)]), sharing(vec![pair(0.4, false)]));
        assert_eq!(together.news(&Sharing::default()).len(), 1);
        assert!(together.news(&together).is_empty());
        assert_eq!(apart.news(&together).len(), 1);
        assert!(apart.news(&Sharing::default()).is_empty(), "paths begin apart");
    }
}
