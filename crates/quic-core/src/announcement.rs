//! Announcements: an end tells its peer something on every open path, a few times, because nobody answers it.

use web_time::{Duration, Instant};

use bytes::Bytes;

/// How often it is told, and how long after the first time the second follows; each wait is twice the one before. Where
/// all addresses changed at once, nothing is acknowledged before a new path is open.
const TIMES: u32 = 6;
const AGAIN: Duration = Duration::from_millis(250);

/// A datagram that is being told.
#[derive(Debug)]
pub(crate) struct Announcement {
    datagram: Bytes,
    said: u32,
    next: Instant,
}

impl Announcement {
    pub(crate) fn new(datagram: Bytes, now: Instant) -> Self {
        Self { datagram, said: 0, next: now }
    }

    /// The datagram to be said now, if any.
    pub(crate) fn say(&mut self, now: Instant) -> Option<Bytes> {
        if self.said == TIMES || now < self.next {
            return None;
        }
        self.next = now + AGAIN * 2_u32.pow(self.said);
        self.said += 1;
        Some(self.datagram.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_told_a_few_times() {
        let begun = Instant::now();
        let mut announcement = Announcement::new(Bytes::new(), begun);
        let times = (0..200).filter(|step| announcement.say(begun + Duration::from_millis(50) * *step).is_some());
        assert_eq!(times.collect::<Vec<u32>>(), [0, 5, 15, 35, 75, 155]);
    }
}
