//! Common silences of two paths: a host stood still or had nothing to send; no queue caused them.

use core::time::Duration;

use fairpath_core::Timestamp;

/// The distance of samples during a silence, relative to the usual one: more than bursts and
/// aggregated acknowledgements cause.
const TIMES: f64 = 8.0;

/// The least silence. A queue falls by no more than the silence, and shorter ones are not worth the
/// time that is left out.
const LEAST: Duration = Duration::from_millis(10);

/// Over how many samples the usual distance is a mean.
const MEMORY: f64 = 64.0;

/// When a path was last silent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Silences {
    newest: Option<Timestamp>,
    /// The usual distance of samples, in ns; 0 if it is unknown.
    usual_ns: f64,
    /// From the sample before the last silence to that after it.
    last: Option<(Timestamp, Timestamp)>,
}

impl Silences {
    /// A sample came; true: a silence ends with it.
    pub(super) fn add(&mut self, now: Timestamp) -> bool {
        let Some(before) = self.newest.replace(now) else { return false };
        let gap = now.since(before);
        let gap_ns = gap.as_nanos() as f64;
        if self.usual_ns == 0.0 {
            self.usual_ns = gap_ns;
        }
        let longest = TIMES * self.usual_ns;
        // If all gaps are as long from now on, this becomes usual.
        self.usual_ns += (gap_ns.min(longest) - self.usual_ns) / MEMORY;
        let silent = gap_ns > longest && gap >= LEAST;
        if silent {
            self.last = Some((before, now));
        }
        silent
    }

    /// The last silence of two paths, if it is common: both are silent for four fifths of the time
    /// in which either is.
    pub(super) fn common(&self, other: &Self) -> Option<(Timestamp, Timestamp)> {
        let ((begin, end), (other_begin, other_end)) = (self.last?, other.last?);
        let either = (begin.min(other_begin), end.max(other_end));
        let both = end.min(other_end).since(begin.max(other_begin));
        (both * 5 >= either.1.since(either.0) * 4).then_some(either)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn silences(times_ms: impl IntoIterator<Item = u64>) -> Silences {
        let mut silences = Silences::default();
        times_ms.into_iter().for_each(|at| {
            silences.add(Timestamp::from_millis(at));
        });
        silences
    }

    #[test]
    fn a_silence_is_far_longer_than_usual_and_not_short() {
        assert_eq!(silences((0..500).chain(505..600)).last, None, "too short to matter");
        let at = |ms| Timestamp::from_millis(ms);
        assert_eq!(silences((0..5000).step_by(20)).last, None, "that is usual");
        let slower = silences((0..500).chain((500..20_000).step_by(20)));
        assert!(slower.last.is_some_and(|(_, end)| end < at(2_000)), "becomes usual: {:?}", slower.last);
        assert_eq!(silences((0..500).chain(540..600)).last, Some((at(499), at(540))));
    }

    #[test]
    fn silences_are_one_where_they_begin_and_end_together() {
        let one = silences((0..500).chain(540..600));
        let common = |other: &Silences| one.common(other).is_some();
        assert!(common(&silences((0..502).chain(541..600))));
        assert!(!common(&silences((0..520).chain(560..600))), "a queue that stops holds one path up later");
        assert!(!common(&silences((0..500).chain(640..700))), "another length");
        assert!(!common(&silences(0..600)));
    }
}
