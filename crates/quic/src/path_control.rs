//! Terms of paths that change while connections run.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fairpath_engine::{Bitrate, TermsChange, TermsChanges};

/// Changes the terms of paths of all connections of an endpoint, those that it has and those to come. The names are those
/// of interfaces, or addresses here. Peers are told, and heed cost, cap and parking for what they send. A clone is the same
/// control.
#[derive(Clone, Debug, Default)]
pub struct PathControl(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// Counts the changes.
    version: AtomicU64,
    changes: Mutex<TermsChanges>,
}

impl PathControl {
    /// Nothing is changed.
    pub fn new() -> Self {
        Self::default()
    }

    /// The most that is sent on each path of `of` in a second; `None`: as much as the network takes.
    pub fn cap(&self, of: &str, cap: Option<Bitrate>) {
        self.change(|changes| changes.of(of).cap = Some(cap));
    }

    /// The cost of using the paths of `of`: they are spared where others that cost less will do.
    pub fn cost(&self, of: &str, cost: u32) {
        self.change(|changes| changes.of(of).cost = Some(cost));
    }

    /// Whether the paths of `of` carry no data as long as another works. They stay open.
    pub fn park(&self, of: &str, is_parked: bool) {
        self.change(|changes| changes.of(of).backup = Some(is_parked));
    }

    /// The paths of `of` go first, and others carry what these have no room for; `None`: none goes first.
    pub fn prefer(&self, of: Option<&str>) {
        self.change(|changes| changes.prefer(of));
    }

    /// The interface or address whose paths go first.
    pub fn preferred(&self) -> Option<String> {
        self.changes().preferred().map(str::to_owned)
    }

    /// The changes so far of the paths of `of`.
    pub fn changed(&self, of: &str) -> TermsChange {
        *self.changes().clone().of(of)
    }

    fn change(&self, act: impl FnOnce(&mut TermsChanges)) {
        let mut changes = self.changes();
        act(&mut changes);
        self.0.version.fetch_add(1, Ordering::Release);
    }

    fn changes(&self) -> MutexGuard<'_, TermsChanges> {
        self.0.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All changes so far; `None` where there are none but those of the version that was `heard` last.
    pub(crate) fn news(&self, heard: &mut u64) -> Option<TermsChanges> {
        if self.0.version.load(Ordering::Acquire) == *heard {
            return None;
        }
        let changes = self.changes();
        *heard = self.0.version.load(Ordering::Acquire);
        Some(changes.clone())
    }

    /// All changes so far.
    pub(crate) fn all(&self) -> TermsChanges {
        self.changes().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_listener_hears_of_changes_once_and_a_later_one_of_all() {
        let control = PathControl::new();
        let (mut early, mut late) = (0, 0);
        assert_eq!(control.news(&mut early), None);
        control.clone().cost("wwan0", 3);
        assert!(control.news(&mut early).is_some());
        assert_eq!(control.news(&mut early), None);
        control.prefer(Some("eth0"));
        assert_eq!(control.news(&mut late), Some(control.all()));
        assert_eq!((control.changed("wwan0").cost, control.preferred().as_deref()), (Some(3), Some("eth0")));
        assert_eq!(control.changed("wlan0"), TermsChange::default());
    }
}
