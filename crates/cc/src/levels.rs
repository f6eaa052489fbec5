//! How high the queue of a path is, but for what single packets add to it.

use core::time::Duration;

use fairpath_core::Timestamp;

/// A level is of no longer time: a managed queue is short, and between two drops it may be gone for a moment. CoDel looks
/// at 100 ms [RFC8289 §4].
const SPAN: Duration = Duration::from_millis(25);

/// The least round-trip times of short spans of time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Levels {
    /// The last whole one, and when it ended.
    newest: Option<(Timestamp, Duration)>,
    began: Option<Timestamp>,
    current: Option<Duration>,
}

impl Levels {
    /// The last whole one, and when it ended.
    pub(crate) fn newest(&self) -> Option<(Timestamp, Duration)> {
        self.newest
    }

    /// Takes a sample; gives a level when one is whole.
    pub(crate) fn on_sample(&mut self, now: Timestamp, sample: Duration, smoothed: Duration) -> Option<Duration> {
        let level = self.current.map_or(sample, |least| least.min(sample));
        let began = *self.began.get_or_insert(now);
        if now.since(began) < (smoothed / 4).min(SPAN) {
            self.current = Some(level);
            return None;
        }
        *self = Self { newest: Some((now, level)), began: Some(now), current: None };
        Some(level)
    }
}
