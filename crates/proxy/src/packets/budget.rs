//! Bounded memory for packets that wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The memory that a packet takes beside its data, about.
const OVERHEAD: usize = 128;

/// Memory that packets may take. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Budget(Arc<Pool>);

#[derive(Debug)]
struct Pool {
    left: AtomicUsize,
    parent: Option<Budget>,
}

/// The memory of one packet, which is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    budget: Budget,
    bytes: usize,
}

impl Budget {
    pub(crate) fn new(bytes: usize) -> Self {
        Self(Arc::new(Pool { left: AtomicUsize::new(bytes), parent: None }))
    }

    /// A part of this budget: what it holds counts here, too.
    pub(crate) fn part(&self, bytes: usize) -> Self {
        Self(Arc::new(Pool { left: AtomicUsize::new(bytes), parent: Some(self.clone()) }))
    }

    /// Memory for a packet of this size; `None` if there is too little.
    pub(crate) fn hold(&self, bytes: usize) -> Option<Held> {
        let bytes = bytes + OVERHEAD;
        self.take(bytes).then(|| Held { budget: self.clone(), bytes })
    }

    fn take(&self, bytes: usize) -> bool {
        let less = |left: usize| left.checked_sub(bytes);
        if self.0.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_err() {
            return false;
        }
        let is_taken = self.0.parent.as_ref().is_none_or(|parent| parent.take(bytes));
        if !is_taken {
            self.0.left.fetch_add(bytes, Ordering::Relaxed);
        }
        is_taken
    }

    fn give_back(&self, bytes: usize) {
        self.0.left.fetch_add(bytes, Ordering::Relaxed);
        if let Some(parent) = &self.0.parent {
            parent.give_back(bytes);
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.budget.give_back(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_part_takes_more_than_its_own_and_all_no_more_than_the_whole() {
        let whole = Budget::new(3_000);
        let parts: Vec<Budget> = (0..4).map(|_| whole.part(2_000)).collect();
        let held: Vec<Option<Held>> = parts.iter().map(|part| part.hold(900)).collect();
        assert_eq!(held.iter().filter(|held| held.is_some()).count(), 2, "the whole has room for two");
        assert!(parts[0].hold(900).is_none());
        drop(held);
        let first = parts[0].hold(1_800);
        assert!(first.is_some() && parts[0].hold(0).is_none(), "a part is used up before the whole is");
        drop(first);
        assert!(whole.hold(3_000 - OVERHEAD).is_some(), "all of it is free again");
    }
}
