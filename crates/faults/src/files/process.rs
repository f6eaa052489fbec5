//! A process of the product: a runtime of its own, whose clock goes as the world says.
//!
//! Tokio's clock stands still while it is paused, and goes on to the next timer when no task has anything left to do.
//! One thread runs all tasks of a process, in an order that follows from what happens and from nothing else. To end
//! the runtime is to end the process: its tasks are dropped where they wait, and nothing more leaves.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::machine::{Left, Machine};

/// A process that comes to a `T`.
pub(super) struct Process<T> {
    runtime: Runtime,
    pub(super) machine: Arc<Machine>,
    main: Option<JoinHandle<T>>,
    start: Instant,
    offset: Offset,
}

/// How far a clock is from the world's time.
#[derive(Clone, Copy, Debug)]
struct Offset {
    /// When the process began.
    began: Duration,
    ahead: Duration,
    behind: Duration,
}

impl Offset {
    /// The time since the process began, as its clock shows it.
    fn clock(self, now: Duration) -> Duration {
        (now + self.ahead).saturating_sub(self.began + self.behind)
    }

    fn world(self, clock: Duration) -> Duration {
        (clock + self.began + self.behind).saturating_sub(self.ahead)
    }
}

impl<T: Send + 'static> Process<T> {
    /// A process that begins at `now` with `main`.
    pub(super) fn new(now: Duration, machine: Arc<Machine>, main: impl Future<Output = T> + Send + 'static) -> Self {
        let runtime =
            Builder::new_current_thread().enable_time().start_paused(true).build().expect("no I/O is asked for");
        let start = runtime.block_on(async { Instant::now() });
        let main = Some(runtime.spawn(main));
        let offset = Offset { began: now, ahead: Duration::ZERO, behind: Duration::ZERO };
        Self { runtime, machine, main, start, offset }
    }

    /// Does all that there is to do from `now` on until `next`. Where its clock stood still, or jumped, it shows now
    /// what it has to show, at once, and all timers in between are late.
    pub(super) fn run_from(&mut self, now: Duration, next: Duration) {
        let [now, next] = [now, next].map(|at| self.start + self.offset.clock(at));
        self.runtime.block_on(async {
            let late = now.saturating_duration_since(Instant::now());
            if !late.is_zero() {
                tokio::time::advance(late).await;
            }
            tokio::time::sleep_until(next).await;
        });
    }

    /// Sets its clock forward.
    pub(super) fn jump(&mut self, by: Duration) {
        self.offset.ahead += by;
    }

    /// Records that its clock stood still for `time`.
    pub(super) fn slept(&mut self, time: Duration) {
        self.offset.behind += time;
    }

    /// Takes the datagrams that have left, with their times in the world's time.
    pub(super) fn take_left(&self) -> impl Iterator<Item = (Duration, Left)> {
        let (start, offset) = (self.start, self.offset);
        let left = self.machine.take_left();
        assert!(!Machine::floods(&left), "a process sends for ever, and no time passes");
        left.into_iter().map(move |left| (offset.world(left.at - start), left))
    }

    /// The result of the process, returned once.
    pub(super) fn take_end(&mut self) -> Option<T> {
        let main = self.main.take_if(|main| main.is_finished())?;
        match self.runtime.block_on(main) {
            Ok(end) => Some(end),
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        }
    }

    /// Looks at something of the process.
    pub(super) fn look<R>(&self, look: impl FnOnce() -> R) -> R {
        let _context = self.runtime.enter();
        look()
    }
}
