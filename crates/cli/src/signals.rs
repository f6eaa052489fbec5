//! Being asked to end: Ctrl-C, `kill`, and a terminal that is closed mean the same.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use crate::error::FAILURE;

/// The number of SIGHUP, the same on every Unix.
const SIGHUP: u32 = 1;

/// The wish that this program end, for whoever waits for it. The first signal asks; the second does not
/// wait for an answer.
#[derive(Clone, Debug)]
pub(crate) struct Interruption(watch::Receiver<bool>);

impl Interruption {
    /// Listens from now on. Must be called within a tokio runtime.
    ///
    /// # Errors
    ///
    /// The system has no room for a handler.
    pub(crate) fn listen() -> io::Result<Self> {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        // `nohup` starts programs that are to outlive their terminal with this signal ignored.
        let mut hang_up = match is_ignored(SIGHUP) {
            true => None,
            false => Some(signal(SignalKind::hangup())?),
        };
        let (asked, heard) = watch::channel(false);
        tokio::spawn(async move {
            loop {
                let any = tokio::select! {
                    any = interrupt.recv() => any,
                    any = terminate.recv() => any,
                    any = next(hang_up.as_mut()) => any,
                };
                // No more signals come where the runtime ends.
                if any.is_none() {
                    return;
                }
                if asked.send_replace(true) {
                    std::process::exit(FAILURE.into());
                }
            }
        });
        Ok(Self(heard))
    }

    /// Waits until somebody asks; at once where that has happened before.
    pub(crate) async fn asked(&self) {
        if self.0.clone().wait_for(|asked| *asked).await.is_err() {
            std::future::pending().await
        }
    }
}

/// Has a write that goes beyond the limit of file sizes (`ulimit -f`) fail, so that a file is left out and named. By
/// default the signal that comes with it ends the process without a word. Must be called within a tokio runtime.
pub(crate) fn outlive_file_limits() {
    // Once there is a handler it stays. Where there is no room for one, all is as it was.
    let _ = signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()));
}

async fn next(signal: Option<&mut Signal>) -> Option<()> {
    match signal {
        Some(signal) => signal.recv().await,
        None => std::future::pending().await,
    }
}

/// Whether this process was started with a signal ignored. Where the system does not say, it is taken
/// for ignored: what a signal does by default is then left to happen.
fn is_ignored(number: u32) -> bool {
    std::fs::read_to_string("/proc/self/status").ok().and_then(|status| ignored(&status, number)).unwrap_or(true)
}

/// Whether the process status lists a signal as ignored.
fn ignored(status: &str, number: u32) -> Option<bool> {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    let mask = u64::from_str_radix(mask.trim(), 16).ok()?;
    Some(mask >> (number - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_of_ignored_signals_is_read_from_the_first_on() {
        // SIGHUP is 1, SIGPIPE 13: bits 0 and 12.
        assert_eq!(ignored("Name:\tx\nSigIgn:\t0000000000001001\n", SIGHUP), Some(true));
        assert_eq!(ignored("Name:\tx\nSigIgn:\t0000000000001000\n", SIGHUP), Some(false));
        assert_eq!(ignored("Name:\tx\n", SIGHUP), None);
    }
}
