//! What a rule sees: the paths that are coupled with the one an event came from.

use fairpath_core::{GroupId, PathId, PathMap};

use super::undo::Undo;
use super::{Member, PathWindow, Totals};

/// What the machine keeps of one path.
#[derive(Clone, Debug)]
pub(super) struct PathEntry<M> {
    /// `None` before the first partition: all such paths are one group.
    pub(super) group: Option<GroupId>,
    pub(super) window: PathWindow,
    pub(super) memory: M,
    /// What the last reduction can be undone with; apart, so that the windows of all paths stay close
    /// together.
    pub(super) undo: Option<Box<Undo<M>>>,
}

/// One path, seen from a rule, with the paths it is coupled with. Nothing is copied or allocated.
#[derive(Debug)]
pub struct GroupView<'a, M> {
    paths: &'a PathMap<PathEntry<M>>,
    own: &'a PathEntry<M>,
}

impl<'a, M> GroupView<'a, M> {
    pub(super) fn new(paths: &'a PathMap<PathEntry<M>>, path: PathId) -> Option<Self> {
        Some(Self { paths, own: paths.get(path)? })
    }

    /// The path that the event came from.
    pub fn own(&self) -> &'a PathWindow {
        &self.own.window
    }

    /// What the rule remembers of the path that the event came from.
    pub fn own_memory(&self) -> &'a M {
        &self.own.memory
    }

    /// The path that the event came from as its group sees it; `None` while it takes no part.
    pub fn own_member(&self) -> Option<Member<'a, M>> {
        member(self.own)
    }

    /// The paths of the group, in order of their ids: its own path and those it is coupled with. A
    /// path without a round-trip sample has no known rate and takes no part.
    pub fn members(&self) -> impl Iterator<Item = Member<'a, M>> + use<'a, M> {
        let group = self.own.group;
        self.paths.values().filter(move |entry| entry.group == group).filter_map(member)
    }

    /// Sums and maxima over [`members`](Self::members).
    pub fn totals(&self) -> Totals {
        Totals::of(self.members())
    }

    /// The path that the event came from as its group sees it; `None` where no other path is in it.
    pub fn coupled_member(&self) -> Option<Member<'a, M>> {
        if self.is_coupled() { self.own_member() } else { None }
    }

    /// Whether the path is coupled with another.
    pub fn is_coupled(&self) -> bool {
        self.own().inverse_rtt().is_some() && self.members().nth(1).is_some()
    }
}

fn member<M>(entry: &PathEntry<M>) -> Option<Member<'_, M>> {
    let window = &entry.window;
    Some(Member {
        cwnd: window.effective_cwnd(),
        inverse_rtt: window.inverse_rtt()?,
        max_datagram: window.max_datagram(),
        memory: &entry.memory,
    })
}
