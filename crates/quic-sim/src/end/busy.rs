//! A process that is off the processor now and then: see [`Host::Busy`](crate::Host::Busy) and
//! [`Host::Starved`](crate::Host::Starved).

use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use super::{End, Leaving};

/// Datagrams that wait until the process runs again.
#[derive(Default)]
pub(super) struct Waiting {
    /// When that is, by the world's time; `None` while it runs.
    until: Option<Instant>,
    /// Those that came, and when.
    came: Vec<(SocketAddr, IpAddr, Vec<u8>, Instant)>,
    /// Packets that were made.
    made: Vec<Leaving>,
}

impl Waiting {
    pub(super) fn came(&mut self, from: SocketAddr, to: IpAddr, contents: Vec<u8>, at: Instant) {
        self.came.push((from, to, contents, at));
    }

    pub(super) fn until(&self) -> Option<Instant> {
        self.until
    }
}

impl End {
    /// The process runs at `now`: hands over what it had made, takes in what came, and makes more, which may have to wait.
    pub(super) fn do_busily(&mut self, now: Instant, send: &mut dyn FnMut(Leaving)) {
        self.waiting.until = None;
        self.hand_over(now, send);
        for (from, to, contents, at) in std::mem::take(&mut self.waiting.came) {
            self.take_in((from, to), contents, at, now).into_iter().for_each(&mut *send);
        }
        let mut made = Vec::new();
        self.do_all(now, &mut |leaving| made.push(leaving));
        self.waiting.made = made;
        let off = self.lateness.off(self.host);
        if off.is_none_or(|(_, with_packets)| !with_packets) {
            self.hand_over(now, send);
        }
        let Some((off, _)) = off else { return };
        self.waiting.until = Some(self.clock.when(now + off));
        self.is_due = true;
    }

    /// Hands over what was made.
    fn hand_over(&mut self, now: Instant, send: &mut dyn FnMut(Leaving)) {
        for leaving in std::mem::take(&mut self.waiting.made) {
            let contents = [&leaving.contents[..]];
            self.each(|_, connection| connection.note_left(contents.into_iter(), Some(now)));
            send(leaving);
        }
    }
}
