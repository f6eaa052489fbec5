//! Where all threads of a run wait for one another, two times in a window of some ten microseconds.
//!
//! `std::sync::Barrier` puts a thread to sleep, and to wake it takes longer than such a window. Here a thread turns
//! round for a moment, which is enough where each has a core of its own, and then lets others have the core.

use core::hint;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// How often a thread looks until it lets others have the core: some ten microseconds.
const LOOKS: u32 = 4_000;

#[derive(Debug)]
pub(super) struct Barrier {
    threads: usize,
    waiting: AtomicUsize,
    round: AtomicUsize,
    broken: AtomicBool,
}

impl Barrier {
    pub(super) fn new(threads: usize) -> Self {
        Self { threads, waiting: AtomicUsize::new(0), round: AtomicUsize::new(0), broken: AtomicBool::new(false) }
    }

    /// Waits for all others; what each has written before, all may read then. Whether they came: one that panics
    /// never does.
    pub(super) fn wait(&self) -> bool {
        let round = self.round.load(Ordering::Acquire);
        if self.waiting.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.waiting.store(0, Ordering::Relaxed);
            self.round.store(round.wrapping_add(1), Ordering::Release);
            return true;
        }
        let mut looks = 0;
        while self.round.load(Ordering::Acquire) == round {
            if self.broken.load(Ordering::Relaxed) {
                return false;
            }
            looks += 1;
            if looks < LOOKS { hint::spin_loop() } else { thread::yield_now() }
        }
        true
    }
}

/// Held by each thread: where it panics, the others wait for it no longer.
pub(super) struct Present<'a>(pub(super) &'a Barrier);

impl Drop for Present<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.broken.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::AtomicU64;

    #[test]
    fn what_all_have_written_before_all_read_after() {
        const ROUNDS: u64 = 2_000;
        let barrier = Barrier::new(3);
        let written = [const { AtomicU64::new(0) }; 3];
        thread::scope(|scope| {
            for own in 0..3 {
                let (barrier, written) = (&barrier, &written);
                scope.spawn(move || {
                    for round in 1..=ROUNDS {
                        written[own].store(round, Ordering::Relaxed);
                        assert!(barrier.wait());
                        assert!(written.iter().all(|of| of.load(Ordering::Relaxed) == round));
                        assert!(barrier.wait());
                    }
                });
            }
        });
        assert_eq!(barrier.round.load(Ordering::Relaxed) as u64, 2 * ROUNDS);
    }

    #[test]
    fn nobody_waits_for_one_that_panicked() {
        let barrier = Barrier::new(2);
        let left = thread::scope(|scope| {
            let waiting = scope.spawn(|| barrier.wait());
            let panicked = scope.spawn(|| {
                let _present = Present(&barrier);
                panic!("on purpose");
            });
            assert!(panicked.join().is_err());
            waiting.join().unwrap()
        });
        assert!(!left);
    }
}
