//! Probes: a path of which no round-trip time was measured within its least one is asked for one.
//!
//! # Source
//! [Luebben2019, slide 9]: "send TCP probe, when no RTT update in minimal RTT".
//!
//! # Symbols
//! None.
//!
//! # Deviations
//! The source's tail loss probe carries the last segment again, or a new one. Ours is as small as the host can make it:
//! what counts is the sample. It goes out only while something is in flight on some path.

use core::time::Duration;

use fairpath_core::{PathId, PathMap, Timestamp};

/// When each path was last heard of, or asked.
#[derive(Debug, Default)]
pub(super) struct Probes(PathMap<Timestamp>);

impl Probes {
    pub(super) fn on_heard(&mut self, path: PathId, now: Timestamp) {
        self.0.insert(path, now);
    }

    pub(super) fn on_probed(&mut self, path: PathId, now: Timestamp) {
        self.0.insert(path, now);
    }

    /// When the path is to be asked next, whose least round-trip time this is.
    pub(super) fn next(&self, path: PathId, least: Duration) -> Timestamp {
        self.0.get(path).copied().unwrap_or(Timestamp::ZERO) + least.max(LEAST)
    }
}

/// On a path of no length a probe would follow another at once: one in a millisecond is as fresh as anything here needs.
const LEAST: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_asked_a_least_round_trip_after_the_last_word_of_it() {
        let (mut probes, path, ms) = (Probes::default(), PathId::new(1), Timestamp::from_millis);
        probes.on_heard(path, ms(10));
        assert_eq!(probes.next(path, Duration::from_millis(40)), ms(50));
        probes.on_probed(path, ms(50));
        assert_eq!(probes.next(path, Duration::from_millis(40)), ms(90));
        assert_eq!(probes.next(path, Duration::ZERO), ms(51));
    }
}
