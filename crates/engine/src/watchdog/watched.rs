//! What the watchdog knows of one path.

use core::time::Duration;

use fairpath_core::{Bitrate, Bytes, Timestamp, WindowedMax};

use super::{BACKOFF, BACKOFF_MAX, STRETCHES, Seen};

/// What a path has shown that it can carry is believed for so long: longer than it takes to find out whether another
/// one harms it, and no longer than radio links stay what they are.
const BELIEVED: Duration = Duration::from_secs(10);

/// One path.
#[derive(Debug)]
pub(super) struct Watched {
    /// Whether data is kept off it, for a trial or because it is parked.
    pub(super) is_left_alone: bool,
    /// What it was found guilty of.
    pub(super) sentence: Option<Sentence>,
    /// Until when it is not suspected again.
    pub(super) innocent_until: Timestamp,
    /// What it carried in the last stretch, in bits in a second.
    pub(super) carried: f64,
    /// Whether it could be used when the stretch began.
    pub(super) was_usable: bool,
    delivered: Bytes,
    /// What it carried in the newest stretches, the newest first.
    newest: [Option<f64>; STRETCHES as usize],
    /// The most that it carried over so many stretches in a row, and at any moment, in bits in a second.
    best: WindowedMax<f64>,
    peak: WindowedMax<f64>,
    /// How long it is parked the next time, and how long it is left in peace after it was suspected wrongly.
    parked_for: Duration,
    in_peace_for: Duration,
    /// When it ceased to be parked.
    freed_at: Timestamp,
}

/// That a path is parked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sentence {
    pub(super) with: Bitrate,
    pub(super) without: Bitrate,
    pub(super) since: Timestamp,
    pub(super) until: Timestamp,
}

impl Default for Watched {
    fn default() -> Self {
        Self {
            is_left_alone: false,
            sentence: None,
            innocent_until: Timestamp::ZERO,
            carried: 0.0,
            was_usable: false,
            delivered: Bytes::ZERO,
            newest: Default::default(),
            best: WindowedMax::new(BELIEVED),
            peak: WindowedMax::new(BELIEVED),
            parked_for: BACKOFF,
            in_peace_for: BACKOFF,
            freed_at: Timestamp::ZERO,
        }
    }
}

impl Watched {
    /// A stretch begins.
    pub(super) fn begin(&mut self, seen: &Seen) {
        (self.delivered, self.was_usable) = (seen.delivered, seen.usable);
    }

    /// A stretch of this length is over. What the path carried in it.
    pub(super) fn measure(&mut self, seen: &Seen, length: Duration, now: Timestamp) -> f64 {
        let bits = seen.delivered.saturating_sub(self.delivered).as_f64() * 8.0;
        self.carried = bits / length.as_secs_f64().max(f64::MIN_POSITIVE);
        self.newest.rotate_right(1);
        self.newest[0] = Some(self.carried);
        // As long as what is compared with it: the largest of many that are shorter is above the mean by chance alone.
        if let Some(sum) = self.newest.iter().copied().sum::<Option<f64>>() {
            self.best.update(now, sum / f64::from(STRETCHES));
        }
        self.note_rate(seen, now);
        self.carried
    }

    /// Notes the newest delivery rate.
    pub(super) fn note_rate(&mut self, seen: &Seen, now: Timestamp) {
        if let Some(rate) = seen.rate {
            self.peak.update(now, rate.as_bps() as f64);
        }
    }

    /// What it has shown that it can carry. Where it was held back, what it carried in a whole stretch is not that.
    pub(super) fn shown(&self, blocked: bool) -> f64 {
        let peak = self.peak.get().filter(|_| blocked).unwrap_or(0.0);
        self.best.get().unwrap_or(0.0).max(peak)
    }

    /// It harms: with it the total is so much, and without it so much.
    pub(super) fn park(&mut self, with: f64, without: f64, now: Timestamp) {
        if self.sentence.is_none() && now.since(self.freed_at) > BACKOFF_MAX {
            self.parked_for = BACKOFF;
        }
        let [with, without] = [with, without].map(|bits| Bitrate::from_bps(bits as u64));
        let since = self.sentence.map_or(now, |sentence| sentence.since);
        let until = now + next(&mut self.parked_for);
        self.sentence = Some(Sentence { with, without, since, until });
        self.is_left_alone = true;
    }

    /// It does no harm. One that was only suspected is left in peace, for longer each time, and for the longest at once where
    /// it was missed. One that was parked is not: where harm comes and goes, a moment without it proves little, and the
    /// next time it is parked for longer.
    pub(super) fn acquit(&mut self, was_missed: bool, now: Timestamp) {
        if was_missed {
            self.in_peace_for = BACKOFF_MAX;
        }
        match self.sentence {
            Some(_) => self.freed_at = now,
            None => self.innocent_until = now + next(&mut self.in_peace_for),
        }
        self.release();
    }

    /// It may carry data.
    pub(super) fn release(&mut self) {
        (self.is_left_alone, self.sentence) = (false, None);
    }
}

/// This wait, and the next one is twice as long.
fn next(wait: &mut Duration) -> Duration {
    let now = *wait;
    *wait = (2 * now).min(BACKOFF_MAX);
    now
}
