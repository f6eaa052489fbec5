//! The congestion control of a connection, a cache of the last window, and whether the scheduler's
//! views of it are stale.

use core::cell::Cell;
use core::ops::{Deref, DerefMut};

use fairpath_cc::Controller;
use fairpath_core::{ByteCount, PathId, Sent};

/// A controller. Every change goes through [`DerefMut`], which invalidates the cached window.
#[derive(Debug)]
pub(crate) struct Control {
    controller: Box<dyn Controller>,
    known: Cell<Option<(PathId, ByteCount)>>,
    hears_sent: bool,
    is_marked: bool,
}

impl Control {
    pub(crate) fn new(controller: Box<dyn Controller>) -> Self {
        Self { hears_sent: controller.hears_sent(), controller, known: Cell::new(None), is_marked: true }
    }

    /// How much may be in flight on the path. Every packet asks several times, and a comparison
    /// costs less than an indirect call.
    #[inline]
    pub(crate) fn window(&self, path: PathId) -> ByteCount {
        match self.known.get() {
            Some((known, window)) if known == path => window,
            _ => self.ask(path),
        }
    }

    #[inline(never)]
    fn ask(&self, path: PathId) -> ByteCount {
        let window = self.controller.window(path);
        self.known.set(Some((path, window)));
        window
    }

    /// A packet left.
    #[inline]
    pub(crate) fn on_sent(&mut self, path: PathId, sent: &Sent) {
        if self.hears_sent {
            self.known.set(None);
            // Only the end of an idle period changes a view.
            self.is_marked |= sent.in_flight <= sent.bytes;
            self.controller.on_sent(path, sent);
        }
    }

    /// Whether views of the controller may have changed since the last call.
    pub(crate) fn take_mark(&mut self) -> bool {
        core::mem::take(&mut self.is_marked)
    }
}

impl Deref for Control {
    type Target = dyn Controller;

    #[inline]
    fn deref(&self) -> &Self::Target {
        &*self.controller
    }
}

impl DerefMut for Control {
    #[inline]
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.known.set(None);
        self.is_marked = true;
        &mut *self.controller
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use fairpath_core::{Ack, Rtt, Timestamp};

    use super::*;

    #[test]
    fn a_window_is_never_older_than_what_was_told_last() {
        for name in fairpath_cc::NAMES {
            let mut control = Control::new(fairpath_cc::by_name(name).expect("it is in the list"));
            let paths = [0, 1].map(PathId::new);
            for path in paths {
                control.on_path_opened(path, ByteCount::new(1_200), Timestamp::ZERO);
            }
            for round in 1..20 {
                let now = Timestamp::from_millis(50 * round);
                let path = paths[round as usize % 2];
                let (bytes, took) = (control.window(path), Duration::from_millis(50));
                control.on_sent(path, &Sent { now: now - took, bytes, in_flight: bytes });
                let rtt = Rtt { variance: took, ..Rtt::steady(took) };
                let ack = Ack {
                    now,
                    sent_at: now - took,
                    bytes,
                    in_flight: bytes,
                    window_limited: true,
                    rtt: Some(rtt),
                    rate: None,
                };
                control.on_ack(path, &ack);
                for path in paths {
                    assert_eq!(control.window(path), control.controller.window(path), "{name}");
                }
            }
        }
    }
}
