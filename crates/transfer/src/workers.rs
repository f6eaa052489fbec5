//! Workers for the work that blocks: they read and write files.

use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// A pool of workers.
///
/// Work that takes its turns with the rest of a transfer is an `async` function that awaits nothing but channels,
/// and blocks in between. A thread of its own drives it in the product. The fault simulator drives
/// the same function among the other tasks of its process. There the disk takes no time, and the
/// same seed gives the same order of events, which threads would not.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Workers {
    /// A thread for each work.
    #[default]
    Threads,
    /// Nobody else.
    #[cfg(feature = "simulation")]
    Inline,
}

impl Workers {
    /// Begins a work. Must be called within a tokio runtime.
    pub(crate) fn begin<T: Send + 'static>(self, work: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
        match self {
            Self::Threads => {
                let runtime = Handle::current();
                tokio::task::spawn_blocking(move || runtime.block_on(work))
            }
            #[cfg(feature = "simulation")]
            Self::Inline => tokio::spawn(work),
        }
    }
}
