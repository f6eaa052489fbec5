//! The treatment of a path.

use core::fmt;
use core::time::Duration;

use fairpath_core::Timestamp;

use super::condition::Condition;
use super::path_health::PathHealth;
use crate::path::BackupReason;

/// The least time to wait for an answer.
pub const ANSWER_MIN: Duration = Duration::from_millis(50);

/// An action of a host on a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Action {
    /// Close it, unless it is the only one.
    Close(CloseReason),
    /// Open a second path of the same pair, to take its place.
    OpenBeside,
    /// Ask the peer for a sign of life on it.
    Probe,
    /// Keep data and acknowledgements off it while another path is there, or no longer do so. A
    /// host tells the peer, and records it here as [`BackupReason::Unwell`].
    SetBackup(bool),
    /// Send the data in flight on it again elsewhere.
    Resend,
}

/// The reason for closing a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CloseReason {
    /// None of its packets were acknowledged for this long.
    Unacknowledged(Duration),
    /// Nothing came in on it for this long.
    Unheard(Duration),
    /// It leads to a new address of the peer that was not validated.
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

/// The best rank of the open paths' conditions; `None` if no path is open. See [`Condition::rank`].
pub fn best_rank<'a, P: Copy + PartialEq + 'a>(paths: impl Iterator<Item = &'a PathHealth<P>>) -> Option<u8> {
    paths.filter(|path| path.is_open()).map(|path| path.condition().rank()).min()
}

/// The actions for the path `at`, in this order. `best` is the [`best_rank`] of the paths before
/// any was treated; `is_busy`: data flows.
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
    if own.sick_for(now) > own.parameters.renew_after && best > Some(0) {
        actions.push(Action::OpenBeside);
    }
    if own.unasked_for(now) > own.parameters.signs_every() && (is_busy || own.condition() != Condition::Healthy) {
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

/// A path that is being opened works as soon as anything comes in on it. A second path beside it is
/// then validated a round trip later, whenever the stack would ask the next time. The peer is asked
/// for signs of life so that something does come in.
fn treat_opening<P: Copy + PartialEq>(own: &PathHealth<P>, now: Timestamp) -> Option<Action> {
    if own.opening_for(now)? <= own.parameters.first_words {
        return None;
    }
    match own.is_heard() {
        true => Some(Action::OpenBeside),
        false => (own.unasked_for(now) > own.parameters.probe_opening).then_some(Action::Probe),
    }
}

/// The reason for closing the path, if there is one.
fn fatal<P: Copy + PartialEq>(paths: &[&PathHealth<P>], at: usize, now: Timestamp) -> Option<CloseReason> {
    let own = paths[at];
    // While no path works both ways, a path that works in one direction may be the only such path,
    // and could not be opened again.
    let is_replaced = paths.iter().any(|other| other.has_outlived(own, own.parameters.outlived, now));
    if own.sick_for(now) > own.parameters.dead_after && is_replaced {
        return Some(match own.condition() {
            Condition::Unacknowledged => CloseReason::Unacknowledged(own.sick_for(now)),
            _ => CloseReason::Unheard(own.unheard_for(now)),
        });
    }
    let is_carried = paths.iter().enumerate().any(|(other, path)| other != at && path.answers());
    (own.refused_for(now) > own.parameters.unvalidated && is_carried).then_some(CloseReason::Unvalidated)
}
