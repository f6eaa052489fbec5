//! How long what is queued waits, and may.

use core::time::Duration;

/// After this part of its deadline, and after so long at most, it takes any path of which half comes in time: it would be
/// dropped else, or be late for those who watch, and all behind it.
const WAITS_AT_MOST: u32 = 4;
const WAITS_LONGEST: Duration = Duration::from_millis(100);

/// A packet that waits for a path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub(crate) waited: Duration,
    /// For how long it could have left.
    pub(crate) held: Duration,
    pub(crate) deadline: Duration,
    /// What waits together with it, in bytes.
    pub(crate) behind: usize,
}

impl Waiting {
    /// Whether it would be dropped before long, or has waited for longer than anybody should.
    pub(crate) fn is_long(&self) -> bool {
        self.waited >= self.longest()
    }

    /// Whether it could have left for as long as that.
    pub(crate) fn is_held_for_long(&self) -> bool {
        self.held >= self.longest()
    }

    fn longest(&self) -> Duration {
        (self.deadline / WAITS_AT_MOST).min(WAITS_LONGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_long_the_deadline_is_nobody_waits_for_long() {
        for (deadline, longest) in [(300, 75), (400, 100), (2_000, 100)] {
            let is_long = |waited: u64| {
                Waiting {
                    waited: Duration::from_millis(waited),
                    held: Duration::from_millis(waited),
                    deadline: Duration::from_millis(deadline),
                    behind: 1_200,
                }
                .is_long()
            };
            assert_eq!([longest - 1, longest].map(is_long), [false, true], "{deadline} ms");
        }
    }
}
