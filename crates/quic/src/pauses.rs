//! Another connection in place of one that was lost: when it is tried.
//!
//! A try sends its first packets again at growing intervals, so one that began in the dark may lie still for
//! seconds after the peer is back. A handshake takes one round trip. So each try begins beside those before it, and
//! the first that gets through ends them all.

use std::time::Duration;

use tokio::task::JoinSet;

/// The pauses between tries at a connection. Files, sessions and the proxy have the same ones.
///
/// They have no jitter: each end counts from the moment at which it missed the connection itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pauses {
    /// The first pause.
    pub first: Duration,
    /// Each pause is longer than the one before by this part, so none is longer than the first and this part of the
    /// outage.
    pub growth: f64,
    /// The longest pause: an hour of outage costs few packets.
    pub longest: Duration,
}

impl Pauses {
    /// Those of all programs.
    pub const DEFAULT: Self = Self { first: Duration::from_millis(500), growth: 0.05, longest: Duration::from_secs(5) };

    /// The pause that follows one of this length; zero before the first.
    pub fn after(&self, pause: Duration) -> Duration {
        pause.mul_f64(1.0 + self.growth).max(self.first).min(self.longest)
    }

    /// Begins a try at once and after each pause, beside those before, until one brings something.
    pub async fn until<T, F>(&self, mut attempt: impl FnMut() -> F) -> T
    where
        T: Send + 'static,
        F: Future<Output = Option<T>> + Send + 'static,
    {
        let mut tries = JoinSet::new();
        let mut pause = Duration::ZERO;
        loop {
            tries.spawn(attempt());
            pause = self.after(pause);
            let turn = tokio::time::sleep(pause);
            tokio::pin!(turn);
            loop {
                tokio::select! {
                    biased;
                    Some(ended) = tries.join_next() => if let Ok(Some(found)) = ended {
                        return found;
                    },
                    () = &mut turn => break,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[test]
    fn pauses_grow_from_the_first_to_the_longest() {
        let pauses = Pauses { first: Duration::from_secs(1), growth: 0.5, longest: Duration::from_secs(3) };
        let mut pause = Duration::ZERO;
        let all = [(); 5].map(|()| {
            pause = pauses.after(pause);
            pause.as_secs_f64()
        });
        // 1 · 1.5 = 1.5, 1.5 · 1.5 = 2.25, and 2.25 · 1.5 = 3.375 is too long.
        assert_eq!(all, [1.0, 1.5, 2.25, 3.0, 3.0]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_try_that_lies_still_does_not_keep_the_next_one_from_getting_through() {
        let begun = Instant::now();
        let mut tried = 0;
        let found = Pauses::DEFAULT.until(|| {
            tried += 1;
            let nth = tried;
            async move {
                match nth {
                    1 => std::future::pending().await,
                    2 => None,
                    nth => Some(nth),
                }
            }
        });
        assert_eq!(found.await, 3);
        assert_eq!(begun.elapsed().as_millis(), 500 + 525);
    }
}
