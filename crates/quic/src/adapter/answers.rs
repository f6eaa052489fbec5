//! What noq asks for before every packet, kept where it is read without the engine's lock.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// No pacing rate.
const UNPACED: u64 = u64::MAX;

/// Counts the changes of an engine; made and answered under its lock, read without.
#[derive(Debug)]
pub(super) struct Changes(AtomicU64);

impl Default for Changes {
    fn default() -> Self {
        // 0 is what an answer that was never given has.
        Self(AtomicU64::new(1))
    }
}

impl Changes {
    /// The engine is about to change. Only for the holder of its lock.
    pub(super) fn add(&self) {
        self.0.store(self.get() + 1, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What noq may know of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    /// The window, in bytes; 0 for a path whose turn it is not.
    pub(super) window: u64,
    /// The window that noq's pacer is to go by, in bytes, whosever turn it is; never 0.
    pub(super) paced_window: u64,
    /// The pacing rate in bytes per second; `None` where noq paces by itself.
    pub(super) pacing_rate: Option<u64>,
    /// All this stays as it is, for every path, while no more than so much is sent on this one, in bytes.
    pub(super) holds_for: u64,
}

/// The newest answer for one path.
///
/// noq asks and tells under its own lock, so that of one path's events and questions none overlap.
/// Others change the engine at any time; noq then reads the old answer or the new count, and asks.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// The count of changes that the answer belongs to.
    as_of: AtomicU64,
    window: AtomicU64,
    paced_window: AtomicU64,
    pacing_rate: AtomicU64,
    holds_for: AtomicU64,
    /// Whether the path was refused when it was asked for, since that was last asked.
    refused: AtomicBool,
}

impl Answers {
    /// The answer, if nothing has changed since.
    pub(super) fn get(&self, changes: &Changes) -> Option<Answer> {
        let rate = self.pacing_rate.load(Ordering::Relaxed);
        (self.as_of.load(Ordering::Relaxed) == changes.get()).then(|| Answer {
            window: self.window.load(Ordering::Relaxed),
            paced_window: self.paced_window.load(Ordering::Relaxed),
            pacing_rate: (rate != UNPACED).then_some(rate),
            holds_for: self.holds_for.load(Ordering::Relaxed),
        })
    }

    /// So many bytes were sent, no more than the answer holds for.
    pub(super) fn note_sent(&self, bytes: u64) {
        self.holds_for.store(self.holds_for.load(Ordering::Relaxed).saturating_sub(bytes), Ordering::Relaxed);
    }

    /// noq was told that it is not the turn of the path. It takes that for a full window.
    pub(super) fn note_refused(&self) {
        self.refused.store(true, Ordering::Relaxed);
    }

    /// Whether that has happened since this was last asked.
    pub(super) fn take_refused(&self) -> bool {
        let refused = self.refused.load(Ordering::Relaxed);
        self.refused.store(false, Ordering::Relaxed);
        refused
    }

    /// Keeps the answer. Only for the holder of the engine's lock.
    pub(super) fn set(&self, answer: Answer, changes: &Changes) {
        self.window.store(answer.window, Ordering::Relaxed);
        self.paced_window.store(answer.paced_window, Ordering::Relaxed);
        self.pacing_rate.store(answer.pacing_rate.unwrap_or(UNPACED), Ordering::Relaxed);
        self.holds_for.store(answer.holds_for, Ordering::Relaxed);
        self.as_of.store(changes.get(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_holds_until_the_next_change() {
        let (changes, answers) = (Changes::default(), Answers::default());
        assert_eq!(answers.get(&changes), None, "never given");
        for pacing_rate in [None, Some(1_000)] {
            let answer = Answer { window: 0, paced_window: 12_000, pacing_rate, holds_for: 2_400 };
            answers.set(answer, &changes);
            assert_eq!(answers.get(&changes), Some(answer));
            answers.note_sent(1_200);
            assert_eq!(answers.get(&changes), Some(Answer { holds_for: 1_200, ..answer }));
            changes.add();
            assert_eq!(answers.get(&changes), None);
        }
    }
}
