//! A question to the user of this terminal, which waits for a line.

use std::io;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use fairpath_report::text;
use tokio::sync::oneshot;

/// The way for the next line. A newer question takes the place of an older one, whose sender is gone.
static ANSWER: Mutex<Option<oneshot::Sender<bool>>> = Mutex::new(None);

/// Asks on standard error, which is a terminal. The answer comes from standard input; no answer is no consent.
pub(crate) fn ask(question: &str) -> oneshot::Receiver<bool> {
    static READER: OnceLock<()> = OnceLock::new();
    let (sender, given) = oneshot::channel();
    *answer() = Some(sender);
    text::ask(question, || answer().as_ref().is_some_and(|answer| !answer.is_closed()));
    // A thread of its own, which nobody waits for: reading a terminal cannot be given up.
    READER.get_or_init(|| drop(std::thread::spawn(read)));
    given
}

fn answer() -> MutexGuard<'static, Option<oneshot::Sender<bool>>> {
    ANSWER.lock().unwrap_or_else(PoisonError::into_inner)
}

fn read() {
    for line in io::stdin().lines().map_while(Result::ok) {
        let waiting = answer().take();
        if let Some(waiting) = waiting {
            text::answered();
            let _ = waiting.send(is_yes(&line));
        }
    }
    // The input has ended: that is no consent.
    answer().take();
}

fn is_yes(line: &str) -> bool {
    matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_is_one() {
        assert!(is_yes("y\n") && is_yes(" YES "));
        assert!(!is_yes("") && !is_yes("n") && !is_yes("yep, or no"));
    }
}
