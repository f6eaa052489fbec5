//! A terminal whose keys are read one by one, until it is put back.

use std::io::{IsTerminal as _, Read as _};

use rustix::termios::{LocalModes, OptionalActions, Termios, Winsize, tcgetattr, tcgetpgrp, tcgetwinsize, tcsetattr};
use tokio::sync::mpsc;

/// The terminal of this process. It is as before when this is dropped.
#[derive(Debug)]
pub(super) struct Terminal {
    before: Termios,
    keys: mpsc::Receiver<Vec<u8>>,
}

impl Terminal {
    /// Takes the keys from now on. `None` where nobody can press any: standard input is no terminal, or this process is in its
    /// background.
    pub(super) fn open() -> Option<Self> {
        let stdin = std::io::stdin();
        // In the background of its own terminal this process would be stopped where it changed that.
        let is_behind = tcgetpgrp(&stdin).is_ok_and(|front| front != rustix::process::getpgrp());
        if !stdin.is_terminal() || is_behind {
            return None;
        }
        let before = tcgetattr(&stdin).ok()?;
        let mut now = before.clone();
        // Ctrl-C stays a signal.
        now.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        tcsetattr(&stdin, OptionalActions::Now, &now).ok()?;
        let (to, keys) = mpsc::channel(64);
        // It ends with the process: a read of a terminal cannot be given up.
        std::thread::spawn(move || {
            let mut some = [0; 64];
            while let Ok(length @ 1..) = std::io::stdin().read(&mut some) {
                if to.blocking_send(some[..length].to_vec()).is_err() {
                    return;
                }
            }
        });
        Some(Self { before, keys })
    }

    /// The bytes of the next keys. Waits for ever where the terminal is gone.
    pub(super) async fn pressed(&mut self) -> Vec<u8> {
        match self.keys.recv().await {
            Some(bytes) => bytes,
            None => std::future::pending().await,
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &self.before);
    }
}

/// As much of a page as fits the terminal that it is shown on.
pub(super) fn fitted(page: &str) -> String {
    let size = tcgetwinsize(std::io::stdout()).ok().filter(|size| size.ws_row > 0 && size.ws_col > 0);
    size.map_or_else(|| page.to_owned(), |size| cut(page, size))
}

fn cut(page: &str, size: Winsize) -> String {
    let line = |line: &str| line.chars().take(size.ws_col.into()).chain(['\n']).collect::<String>();
    // The cursor stands below the last line.
    page.lines().take(usize::from(size.ws_row).saturating_sub(1).max(1)).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_cut_at_both_edges() {
        let size = Winsize { ws_row: 3, ws_col: 4, ws_xpixel: 0, ws_ypixel: 0 };
        assert_eq!(cut("one\ntwo and\nthree\n", size), "one\ntwo \n");
    }
}
