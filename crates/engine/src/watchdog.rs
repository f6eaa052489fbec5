//! Do no harm: a path whose use lowers the total is parked, and tried again.
//!
//! Nobody can know beforehand what the best path alone would give: two paths may share a queue, a receiver's window,
//! or a processor that moves packets. So it is tried. Where the total of some round trips is below what the best path
//! has shown that it can carry, the path that carried least is left alone for as long; where more arrives without it
//! than did with it, it stays *parked*: a backup, which carries data only where no other path can be used. It is tried
//! again later, and later each time that it harms again.
//!
//! The paths of a group are one flow beside others: what one of them carries more another carries less, and their sum
//! swings as that flow would, so that it is often below what one path has shown. Each of them left alone would cost its
//! share until the others have grown by as much. So among them there is harm only where a window holds them back.
//!
//! Only what the network and the windows did counts. Stretches in which the application had nothing to send, or in
//! which a path came or went, are left out.

mod watched;

use core::time::Duration;

use fairpath_core::{Bitrate, Bytes, GroupId, PathId, PathMap, Timestamp};

use watched::Watched;

/// The share of what the best path alone would give that the total may not be below: as much as is measured over some
/// round trips of a window that halves now and then.
const NO_HARM: f64 = 0.97;

/// A stretch takes so many round trips of the slowest path, and is within these bounds: what was sent at its beginning
/// and is acknowledged after its end is then a small part.
const ROUND_TRIPS: u32 = 3;
const STRETCH_MIN: Duration = Duration::from_millis(500);
const STRETCH_MAX: Duration = Duration::from_secs(5);

/// Where windows or buffers of the connection held a path with room back for more than this share of a stretch, the
/// best path may never have shown in full what it can carry; where there was nothing to send for so long, the
/// application is the limit. Less than that makes no difference that [`NO_HARM`] would tell.
const IDLE_SHARE: f64 = 0.02;

/// So many stretches in a row are suspicious before a path is left alone, and so many decide what came of that. The
/// first without it is not counted: what it had on its way may still hold the others up, and their windows grow.
///
/// Rates beside other flows differ by a fifth from one stretch to the next, so that their means alone say little: in
/// each stretch without the path more has to arrive than in any with it. Of three and three that are drawn alike this
/// is so once in twenty times. As soon as it is not so nothing more is waited for.
const STRETCHES: u32 = 3;

/// Where less arrives than in any stretch without it, and less than this share of their mean, one stretch is enough to
/// find a parked path guilty again.
const PLAIN_HARM: f64 = 0.85;

/// A parked path is tried again after the first of these, and after twice as long each time, up to the second. The
/// same holds for a path that was suspected and had done no harm.
const BACKOFF: Duration = Duration::from_secs(4);
const BACKOFF_MAX: Duration = Duration::from_secs(64);

/// Where the total falls below this share of what was measured without a parked path, it is not waited for any longer:
/// the best path is not what it was. A window that halves is above it.
const FALLEN: f64 = 0.4;

/// Why a path is parked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parked {
    /// What all paths brought together, it included.
    pub with: Bitrate,
    /// What they brought without it.
    pub without: Bitrate,
    /// For how long it has been left alone.
    pub since: Duration,
    /// How long it takes until it is tried again.
    pub again_in: Duration,
}

/// What the engine knows of a path, for the watchdog.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) path: PathId,
    /// The paths that it shares a bottleneck with.
    pub(crate) group: GroupId,
    /// How much has arrived on it in all.
    pub(crate) delivered: Bytes,
    /// Whether it may carry data, as far as the watchdog has no say.
    pub(crate) usable: bool,
    /// Its smoothed round-trip time; zero where none is known.
    pub(crate) smoothed: Duration,
    /// The newest delivery rate.
    pub(crate) rate: Option<Bitrate>,
}

/// What is being tried: to do without a path, or to do with it again.
#[derive(Clone, Copy, Debug)]
struct Trial {
    path: PathId,
    /// Whether the path is left alone in it.
    without: bool,
    /// The totals before it, and those in it.
    before: Sum,
    seen: Sum,
    /// What the path carried in the last stretch before it was left alone.
    carried: f64,
    /// Whether the first stretch without the path is still to pass.
    is_settling: bool,
}

/// The totals of some stretches in a row, in bits in a second.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    stretches: u32,
    total: f64,
    least: f64,
    most: f64,
}

impl Sum {
    fn plus(self, total: f64) -> Self {
        let least = if self.stretches == 0 { total } else { self.least.min(total) };
        Self { stretches: self.stretches + 1, total: self.total + total, least, most: self.most.max(total) }
    }

    fn mean(self) -> f64 {
        self.total / f64::from(self.stretches.max(1))
    }

    /// Whether these are plainly less than the `others`.
    fn is_below(self, others: Self) -> bool {
        self.mean() < NO_HARM * others.mean() && self.is_apart_below(others)
    }

    /// Whether each of these is less than each of the `others`.
    fn is_apart_below(self, others: Self) -> bool {
        self.most < others.least
    }
}

/// The stretch of time that is being watched.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    since: Timestamp,
    until: Timestamp,
    /// How long a path had room that a window or a buffer held back, and how long there was nothing to send.
    blocked: Duration,
    nothing_to_send: Duration,
    /// A path came or went.
    is_spoilt: bool,
}

/// Watches that no path does harm.
#[derive(Debug, Default)]
pub(crate) struct Watchdog {
    watched: PathMap<Watched>,
    stretch: Option<Stretch>,
    trial: Option<Trial>,
    /// The stretches in a row, up to now, in which the total was too low.
    suspicious: Sum,
    /// The totals of the newest stretches that counted, the newest first, in bits in a second.
    newest: [Option<f64>; STRETCHES as usize],
    /// Since when a path has had room and nothing has left, and whether a window or a buffer is what holds it back.
    idle_since: Option<(Timestamp, bool)>,
}

impl Watchdog {
    /// Whether data is to be kept off the path.
    pub(crate) fn is_parked(&self, path: PathId) -> bool {
        self.watched.get(path).is_some_and(|watched| watched.is_left_alone)
    }

    /// Why the path is parked, if it is.
    pub(crate) fn parked(&self, path: PathId, now: Timestamp) -> Option<Parked> {
        let sentence = self.watched.get(path)?.sentence?;
        Some(Parked {
            with: sentence.with,
            without: sentence.without,
            since: now.since(sentence.since),
            again_in: sentence.until.since(now),
        })
    }

    pub(crate) fn on_path_opened(&mut self, path: PathId) {
        self.watched.insert(path, Watched::default());
    }

    pub(crate) fn on_path_closed(&mut self, path: PathId) {
        self.watched.remove(path);
        if let Some(stretch) = &mut self.stretch {
            stretch.is_spoilt = true;
        }
        self.trial = self.trial.filter(|trial| trial.path != path);
    }

    /// Data left.
    #[inline]
    pub(crate) fn on_sent(&mut self, now: Timestamp) {
        if self.idle_since.is_some() {
            self.end_idleness(now);
        }
    }

    fn end_idleness(&mut self, now: Timestamp) {
        if let Some((since, is_blocked)) = self.idle_since.take()
            && let Some(stretch) = &mut self.stretch
        {
            let idle = now.since(since.max(stretch.since));
            match is_blocked {
                true => stretch.blocked += idle,
                false => stretch.nothing_to_send += idle,
            }
        }
    }

    /// A path has room, and a window or a buffer holds new data back.
    pub(crate) fn on_window_blocked(&mut self, now: Timestamp) {
        self.idle_since.get_or_insert((now, true)).1 = true;
    }

    /// A path has room, and there was nothing to send on it.
    pub(crate) fn on_nothing_to_send(&mut self, now: Timestamp) {
        self.idle_since.get_or_insert((now, false));
    }

    /// Whether it is time to look.
    #[inline]
    pub(crate) fn is_due(&self, now: Timestamp) -> bool {
        self.stretch.is_none_or(|stretch| stretch.until <= now)
    }

    /// Takes what is known of all paths at the end of a stretch, and decides.
    pub(crate) fn look(&mut self, seen: &[Seen], now: Timestamp) {
        if let Some((_, is_blocked)) = self.idle_since {
            self.end_idleness(now);
            self.idle_since = Some((now, is_blocked));
        }
        if let Some(stretch) = self.stretch {
            self.measure(seen, &stretch, now);
        }
        self.begin(seen, now);
    }

    /// Begins the next stretch.
    fn begin(&mut self, seen: &[Seen], now: Timestamp) {
        let slowest = seen.iter().filter(|one| one.usable).map(|one| one.smoothed).max().unwrap_or_default();
        let length = (slowest * ROUND_TRIPS).clamp(STRETCH_MIN, STRETCH_MAX);
        for one in seen {
            if let Some(watched) = self.watched.get_mut(one.path) {
                watched.begin(one);
            }
        }
        let [blocked, nothing_to_send] = [Duration::ZERO; 2];
        self.stretch = Some(Stretch { since: now, until: now + length, blocked, nothing_to_send, is_spoilt: false });
    }

    fn measure(&mut self, seen: &[Seen], stretch: &Stretch, now: Timestamp) {
        let length = now.since(stretch.since);
        let is_same = |one: &Seen| self.watched.get(one.path).is_some_and(|watched| watched.was_usable == one.usable);
        let share = |time: Duration| time.as_secs_f64() / length.as_secs_f64().max(f64::MIN_POSITIVE);
        let is_idle = share(stretch.nothing_to_send) > IDLE_SHARE;
        if stretch.is_spoilt || is_idle || !seen.iter().all(is_same) || length > STRETCH_MAX * 2 {
            return self.give_up(seen, now);
        }
        let mut total = 0.0;
        for one in seen {
            if let Some(watched) = self.watched.get_mut(one.path) {
                total += watched.measure(one, length, now);
            }
        }
        let blocked = share(stretch.blocked) > IDLE_SHARE;
        match self.trial {
            None => self.watch(seen, total, blocked, now),
            Some(trial) => self.judge(trial, total, now),
        }
        self.newest.rotate_right(1);
        self.newest[0] = Some(total);
        self.release_if_alone(seen);
    }

    /// Nothing can be told of this stretch: what is being tried is taken back. A path that is parked for too long
    /// already is free: where the application is the limit it does no harm.
    fn give_up(&mut self, seen: &[Seen], now: Timestamp) {
        if let Some(trial) = self.trial
            && let Some(watched) = self.watched.get_mut(trial.path)
        {
            watched.release();
        }
        for (_, watched) in self.watched.iter_mut() {
            if watched.sentence.is_some_and(|sentence| sentence.until <= now) {
                watched.release();
            }
        }
        (self.trial, self.suspicious, self.newest) = (None, Sum::default(), Default::default());
        self.release_if_alone(seen);
    }

    /// Where no other path can be used, none is parked.
    fn release_if_alone(&mut self, seen: &[Seen]) {
        if !seen.iter().any(|one| one.usable && !self.is_parked(one.path)) {
            self.watched.iter_mut().for_each(|(_, watched)| watched.release());
            self.trial = None;
        }
    }

    /// Nothing is being tried: is it time to try something?
    fn watch(&mut self, seen: &[Seen], total: f64, blocked: bool, now: Timestamp) {
        if let Some(path) = self.due_again(total, now)
            && let Some(watched) = self.watched.get_mut(path)
        {
            let before =
                self.newest.iter().take(2).flatten().fold(Sum::default().plus(total), |sum, one| sum.plus(*one));
            watched.is_left_alone = false;
            self.suspicious = Sum::default();
            let (seen, carried) = (Sum::default(), 0.0);
            self.trial = Some(Trial { path, without: false, before, seen, carried, is_settling: false });
            return;
        }
        let used = seen.iter().filter(|one| one.usable && !self.is_parked(one.path));
        let used: Vec<(&Seen, &Watched)> = used.filter_map(|one| Some((one, self.watched.get(one.path)?))).collect();
        let best = used.iter().max_by(|a, b| a.1.shown(blocked).total_cmp(&b.1.shown(blocked)));
        let Some((best, shown)) = best.map(|(one, watched)| (*one, watched.shown(blocked))) else { return };
        let may_harm = |one: &Seen| one.path != best.path && (blocked || one.group != best.group);
        if !used.iter().any(|(one, _)| may_harm(one)) || total >= NO_HARM * shown {
            self.suspicious = Sum::default();
            return;
        }
        self.suspicious = self.suspicious.plus(total);
        if self.suspicious.stretches < STRETCHES {
            return;
        }
        // The one that brings least is the one that can be missed most easily.
        let others = used.iter().filter(|(one, watched)| may_harm(one) && watched.innocent_until <= now);
        let Some((one, _)) = others.min_by(|a, b| a.1.carried.total_cmp(&b.1.carried)) else { return };
        let (path, before) = (one.path, core::mem::take(&mut self.suspicious));
        if let Some(watched) = self.watched.get_mut(path) {
            watched.is_left_alone = true;
            let (seen, carried) = (Sum::default(), watched.carried);
            self.trial = Some(Trial { path, without: true, before, seen, carried, is_settling: true });
        }
    }

    /// The parked path that is to be tried again.
    fn due_again(&self, total: f64, now: Timestamp) -> Option<PathId> {
        let is_due = |watched: &Watched| {
            watched
                .sentence
                .is_some_and(|sentence| sentence.until <= now || total < FALLEN * sentence.without.as_bps() as f64)
        };
        self.watched.iter().find(|(_, watched)| is_due(watched)).map(|(path, _)| path)
    }

    /// A stretch of a trial is over.
    fn judge(&mut self, mut trial: Trial, total: f64, now: Timestamp) {
        if core::mem::take(&mut trial.is_settling) {
            self.trial = Some(trial);
            return;
        }
        trial.seen = trial.seen.plus(total);
        let is_plain = !trial.without && total < trial.before.least && total < PLAIN_HARM * trial.before.mean();
        let (with, without) = if trial.without { (trial.before, trial.seen) } else { (trial.seen, trial.before) };
        // A stretch that speaks for the path decides: no other makes it guilty then, and each costs what it would carry.
        if trial.seen.stretches < STRETCHES && !is_plain && with.is_apart_below(without) {
            self.trial = Some(trial);
            return;
        }
        self.trial = None;
        // It adds to the total: without it at least half of what it had carried is missing.
        let was_missed = trial.without && with.mean() - without.mean() > trial.carried / 2.0;
        if let Some(watched) = self.watched.get_mut(trial.path) {
            match is_plain || with.is_below(without) {
                true => watched.park(with.mean(), without.mean(), now),
                false => watched.acquit(was_missed, now),
            }
        }
    }
}

#[cfg(test)]
mod tests;
