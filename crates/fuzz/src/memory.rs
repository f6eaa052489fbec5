//! How much memory something takes.

use peak_alloc::PeakAlloc;

/// Counts what is allocated. Tests that count must not run at the same time in one process.
#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Readers of lists take up to 1 MiB for a list before they know its length.
pub(crate) const BUFFERS: usize = 2 << 20;

/// Runs `work`, which may take `buffers` bytes of memory and `per_byte` for each byte of `input`.
///
/// # Panics
///
/// Where it took more.
pub(crate) fn within<T>(input: &[u8], buffers: usize, per_byte: usize, work: impl FnOnce() -> T) -> T {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let answer = work();
    let taken = ALLOCATOR.peak_usage().saturating_sub(before);
    let most = buffers + per_byte * input.len();
    assert!(taken <= most, "{} bytes took {taken} bytes of memory, more than {most}", input.len());
    answer
}
