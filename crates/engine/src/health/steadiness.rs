//! Whether a path carried data steadily, and has broken off.

use core::time::Duration;

use fairpath_core::Timestamp;

/// The longest silence of a path that carries steadily; mere signs of life are further apart (150
/// ms).
const GAP: Duration = Duration::from_millis(100);

/// How long a path must have carried steadily before its silence counts.
const STEADY: Duration = Duration::from_secs(1);

/// A silence that counts: half as long again as any silence of a steady path.
pub(super) const SILENCE: Duration = Duration::from_millis(150);

/// Times of arrival on a path. Hosts look every 50 ms, so all times are that coarse.
#[derive(Clone, Copy, Debug)]
pub(super) struct Steadiness {
    /// Since when there has been no gap.
    since: Timestamp,
    heard_at: Timestamp,
}

impl Steadiness {
    pub(super) fn new(now: Timestamp) -> Self {
        Self { since: now, heard_at: now }
    }

    /// Something has come.
    pub(super) fn on_heard(&mut self, now: Timestamp) {
        if now.since(self.heard_at) > GAP {
            self.since = now;
        }
        self.heard_at = now;
    }

    /// Whether data came steadily, and has stopped.
    pub(super) fn is_broken_off(&self, now: Timestamp) -> bool {
        self.heard_at.since(self.since) >= STEADY && now.since(self.heard_at) >= SILENCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn what_carried_for_a_second_without_a_gap_has_broken_off_after_three_looks() {
        let mut path = Steadiness::new(ms(0));
        (0..=20).for_each(|look| path.on_heard(ms(50 * look)));
        assert!(!path.is_broken_off(ms(1_149)) && path.is_broken_off(ms(1_150)));
        path.on_heard(ms(1_200));
        assert!(!path.is_broken_off(ms(1_400)), "it has not been steady since");
    }

    #[test]
    fn the_silence_of_a_path_with_signs_of_life_alone_tells_nothing_so_soon() {
        let mut path = Steadiness::new(ms(0));
        (0..=20).for_each(|look| path.on_heard(ms(150 * look)));
        assert!(!path.is_broken_off(ms(3_500)));
    }
}
