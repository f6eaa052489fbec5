//! What is to be done about a path.

use core::fmt;
use core::time::Duration;

use fairpath_core::Timestamp;

use super::condition::Condition;
use super::path_health::PathHealth;
use crate::path::BackupReason;

/// A path is closed after it has been sick for this long, while another is well. Only then does a stack
/// send again, elsewhere, what of streams the path held.
const DEAD_AFTER: Duration = Duration::from_millis(600);

/// So long after it fell ill the other must have been seen to work. Where each direction has a path of its own,
/// both ends fall silent one after the other: what is well at first is not a moment later.
const OUTLIVED: Duration = Duration::from_millis(400);

/// A path that has been sick for this long, where nothing arrives on any other, gets a second one beside it
/// on the same pair. A stack may give up validating an address for good; and both ends may be well again only in
/// part.
const RENEW_AFTER: Duration = Duration::from_secs(1);

/// A path whose new address is not validated after this long never will be: QUIC stacks ask three times, for good.
const UNVALIDATED: Duration = Duration::from_secs(2);

/// How often something is said on a path at least.
const PROBE: Duration = Duration::from_millis(150);

/// How often something is said on a path that is being opened: QUIC stacks ask whether it works at intervals that
/// grow to two seconds, each time with a packet of full size.
const PROBE_OPENING: Duration = Duration::from_millis(250);

/// What is heard on a path so soon after it was opened comes before the answer to the first question.
const FIRST_WORDS: Duration = Duration::from_millis(500);

/// No answer is waited for less long.
pub const ANSWER_MIN: Duration = Duration::from_millis(50);

/// What a host is to do about a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action {
    /// Close it, unless there is no other.
    Close(CloseReason),
    /// Open a second one beside it, on the same pair, to take its place.
    OpenBeside,
    /// Ask the peer for a sign of life on it.
    Probe,
    /// Keep data and acknowledgements off it as long as another is there, or no longer do so. A host tells the peer, and
    /// says so here: [`BackupReason::Unwell`].
    SetBackup(bool),
    /// Send again, elsewhere, what is in flight on it.
    Resend,
}

/// What is wrong with a path that is to be closed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CloseReason {
    /// Nothing that was sent on it was acknowledged for so long.
    Unacknowledged(Duration),
    /// Nothing came in on it for so long.
    Unheard(Duration),
    /// It leads to a new address of the peer, which was not validated.
    Unvalidated,
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unacknowledged(time) => write!(f, "nothing acknowledged for {:.1} s", time.as_secs_f64()),
            Self::Unheard(time) => write!(f, "no answer for {:.1} s", time.as_secs_f64()),
            Self::Unvalidated => f.write_str("its new address was not confirmed"),
        }
    }
}

/// How well the best of the open paths is; `None` where none is open. See [`Condition::rank`].
pub fn best_rank<'a, P: Copy + PartialEq + 'a>(paths: impl Iterator<Item = &'a PathHealth<P>>) -> Option<u8> {
    paths.filter(|path| path.is_open()).map(|path| path.condition().rank()).min()
}

/// What is to be done about the path `at` of all of these, in this order. `best` is what [`best_rank`] said of them
/// before anything was done about any; `is_busy`, whether data flows.
pub fn treatment<P: Copy + PartialEq>(
    paths: &[&PathHealth<P>],
    at: usize,
    best: Option<u8>,
    is_busy: bool,
    now: Timestamp,
) -> Vec<Action> {
    let own = paths[at];
    if !own.is_open() {
        return treat_opening(own, now).into_iter().collect();
    }
    if let Some(reason) = fatal(paths, at, now) {
        return vec![Action::Close(reason)];
    }
    let mut actions = Vec::new();
    if own.sick_for(now) > RENEW_AFTER && best > Some(0) {
        actions.push(Action::OpenBeside);
    }
    if own.unasked_for(now) > PROBE && (is_busy || own.condition() != Condition::Healthy) {
        actions.push(Action::Probe);
    }
    let is_worse = best.is_some_and(|best| own.condition().rank() > best);
    let backup = is_worse || own.is_unwanted();
    if backup != own.holds(BackupReason::Unwell) {
        actions.push(Action::SetBackup(backup));
        if backup {
            actions.push(Action::Resend);
        }
    }
    actions
}

/// A path that is being opened has begun to work as soon as anything comes in on it: then a second one beside it is
/// validated a round trip later, whenever the stack asks the next time. So that something does come in, the peer is
/// asked for signs of life.
fn treat_opening<P: Copy + PartialEq>(own: &PathHealth<P>, now: Timestamp) -> Option<Action> {
    if own.opening_for(now)? <= FIRST_WORDS {
        return None;
    }
    match own.is_heard() {
        true => Some(Action::OpenBeside),
        false => (own.unasked_for(now) > PROBE_OPENING).then_some(Action::Probe),
    }
}

/// Why the path is to be closed, if it is.
fn fatal<P: Copy + PartialEq>(paths: &[&PathHealth<P>], at: usize, now: Timestamp) -> Option<CloseReason> {
    let own = paths[at];
    // Where no path works both ways, one that works in one direction may be the only one that does,
    // and it could not be opened again.
    let is_replaced = paths.iter().any(|other| other.has_outlived(own, OUTLIVED, now));
    if own.sick_for(now) > DEAD_AFTER && is_replaced {
        return Some(match own.condition() {
            Condition::Unacknowledged => CloseReason::Unacknowledged(own.sick_for(now)),
            _ => CloseReason::Unheard(own.unheard_for(now)),
        });
    }
    let is_carried = paths.iter().enumerate().any(|(other, path)| other != at && path.answers());
    (own.refused_for(now) > UNVALIDATED && is_carried).then_some(CloseReason::Unvalidated)
}
