//! A socket that cannot be read: how soon to try again, and when it is broken.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::Sleep;

/// Up to this many errors in a row are read without a pause. The refusal of a packet by a host is
/// reported once, and reading clears it.
const AT_ONCE: u32 = 8;

/// From then on the pause doubles with each error, from this ...
const WAIT: Duration = Duration::from_millis(10);

/// ... up to this: a socket that recovers is heard again within it.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// Errors in a row after which a socket is broken: by then 0.6 s have passed.
const BROKEN: u32 = AT_ONCE + 7;

/// The errors of a socket that came in a row.
#[derive(Debug, Default)]
pub(super) struct Faults {
    /// Without a lock, since every datagram asks.
    in_a_row: AtomicU32,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    last: Option<io::ErrorKind>,
    wait: Option<Pin<Box<Sleep>>>,
}

impl Faults {
    /// Waits until the socket may be read again after an error.
    pub(super) fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.in_a_row.load(Ordering::Relaxed) <= AT_ONCE {
            return Poll::Ready(());
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(wait) = &mut state.wait {
            std::task::ready!(wait.as_mut().poll(cx));
            state.wait = None;
        }
        Poll::Ready(())
    }

    /// The socket was read, or there was nothing to read.
    pub(super) fn clear(&self) {
        if self.in_a_row.load(Ordering::Relaxed) > 0 {
            self.in_a_row.store(0, Ordering::Relaxed);
            *self.state.lock().unwrap_or_else(PoisonError::into_inner) = State::default();
        }
    }

    /// Reading failed.
    pub(super) fn note(&self, error: &io::Error) {
        let in_a_row = self.in_a_row.load(Ordering::Relaxed).saturating_add(1);
        self.in_a_row.store(in_a_row, Ordering::Relaxed);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.last = Some(error.kind());
        state.wait = wait_after(in_a_row).map(|wait| Box::pin(tokio::time::sleep(wait)));
    }

    /// Why the socket is broken, if it is.
    pub(super) fn broken(&self) -> Option<io::ErrorKind> {
        let is_broken = self.in_a_row.load(Ordering::Relaxed) >= BROKEN;
        is_broken.then(|| self.state.lock().unwrap_or_else(PoisonError::into_inner).last).flatten()
    }
}

/// The wait after this many errors in a row.
fn wait_after(in_a_row: u32) -> Option<Duration> {
    let doublings = in_a_row.checked_sub(AT_ONCE + 1)?;
    Some(WAIT.saturating_mul(2_u32.saturating_pow(doublings)).min(WAIT_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_waits_double_up_to_a_second_and_are_over_when_the_socket_is_broken() {
        assert_eq!(wait_after(AT_ONCE), None);
        let waits: Vec<u128> = (9..18).filter_map(wait_after).map(|wait| wait.as_millis()).collect();
        assert_eq!(waits, [10, 20, 40, 80, 160, 320, 640, 1000, 1000]);
        assert_eq!(wait_after(u32::MAX), Some(WAIT_MAX));
        // Before the error that makes it broken, all waits but the last.
        let before: Duration = (0..BROKEN).filter_map(wait_after).sum();
        assert_eq!(before.as_millis(), 630);
    }
}
