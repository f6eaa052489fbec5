//! The end of what is still for long.

use std::pin::Pin;
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};

/// A wait for stillness. To note that something has happened sets no timer.
#[derive(Debug)]
pub(crate) struct Stillness {
    since: Instant,
    timer: Pin<Box<Sleep>>,
}

impl Stillness {
    /// It begins now.
    pub(crate) fn new() -> Self {
        Self { since: Instant::now(), timer: Box::pin(sleep(Duration::ZERO)) }
    }

    /// Something has happened.
    pub(crate) fn note(&mut self) {
        self.since = Instant::now();
    }

    /// Waits until nothing has happened for some time.
    ///
    /// Cancellation safety: it may be given up at any time.
    pub(crate) async fn lasts(&mut self, long: Duration) {
        loop {
            let due = self.since + long;
            if due <= Instant::now() {
                return;
            }
            // One that fires early looks again. One that would fire late is set anew.
            if self.timer.is_elapsed() || self.timer.deadline() > due {
                self.timer.as_mut().reset(due);
            }
            self.timer.as_mut().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[tokio::test(start_paused = true)]
    async fn what_happens_puts_the_end_off_and_a_shorter_wait_ends_sooner() {
        let (begun, mut stillness) = (Instant::now(), Stillness::new());
        assert!(tokio::time::timeout(60 * MS, stillness.lasts(100 * MS)).await.is_err());
        stillness.note();
        stillness.lasts(100 * MS).await;
        assert_eq!(begun.elapsed().as_millis() / 10, 16);
        stillness.note();
        assert!(tokio::time::timeout(10 * MS, stillness.lasts(1_000 * MS)).await.is_err());
        stillness.lasts(50 * MS).await;
        assert_eq!(begun.elapsed().as_millis() / 10, 21);
    }
}
