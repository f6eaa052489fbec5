//! The view of a rule: the paths that are coupled with the one an event came from.

use fairpath_core::{GroupId, PathId, PathMap};

use super::losses::LossTest;
use super::undo::Undo;
use super::{Member, PathWindow, Totals};

/// The machine's state of one path.
#[derive(Clone, Debug)]
pub(super) struct PathEntry<M> {
    /// `None` before the first partition: all such paths are one group.
    pub(super) group: Option<GroupId>,
    /// See [`partners`].
    pub(super) partners: Vec<PathId>,
    pub(super) window: PathWindow,
    pub(super) memory: M,
    /// Where not every loss is congestion; apart, as what follows.
    pub(super) losses: Option<Box<LossTest>>,
    /// The state with which the last reduction can be undone; apart, so that the windows of all paths stay close
    /// together.
    pub(super) undo: Option<Box<Undo<M>>>,
}

impl<M> PathEntry<M> {
    /// `None` without a round-trip sample.
    fn member(&self) -> Option<Member<'_, M>> {
        Some(Member {
            cwnd: self.window.effective_cwnd(),
            inverse_rtt: self.window.inverse_rtt()?,
            max_datagram: self.window.max_datagram(),
            memory: &self.memory,
        })
    }
}

/// The paths that are coupled with `path`, and itself, in order of their ids; empty where it is alone.
pub(super) fn partners<M>(paths: &PathMap<PathEntry<M>>, path: PathId) -> Vec<PathId> {
    let takes_part = |entry: &PathEntry<M>| entry.window.inverse_rtt().is_some();
    let Some(own) = paths.get(path).filter(|own| takes_part(own)) else { return Vec::new() };
    let partners = paths.iter().filter(|(_, entry)| entry.group == own.group && takes_part(entry));
    let partners: Vec<PathId> = partners.map(|(partner, _)| partner).collect();
    if partners.len() > 1 { partners } else { Vec::new() }
}

/// One path, seen from a rule, with the paths it is coupled with. Nothing is copied or allocated.
pub trait GroupView<M> {
    /// The path that the event came from.
    fn own(&self) -> &PathWindow;

    /// The rule's memory of the path that the event came from.
    fn own_memory(&self) -> &M;

    /// The path that the event came from as its group sees it; `None` while it takes no part.
    fn own_member(&self) -> Option<Member<'_, M>>;

    /// Whether the path is coupled with another.
    fn is_coupled(&self) -> bool;

    /// The paths of the group, in order of their ids: its own path and those it is coupled with. A
    /// path without a round-trip sample has no known rate and takes no part.
    fn members<'a>(&'a self) -> impl Iterator<Item = Member<'a, M>>
    where
        M: 'a;

    /// Sums and maxima over [`members`](Self::members).
    fn totals(&self) -> Totals {
        Totals::of(self.members())
    }

    /// The path that the event came from as its group sees it; `None` where no other path is in it.
    fn coupled_member(&self) -> Option<Member<'_, M>> {
        if self.is_coupled() { self.own_member() } else { None }
    }
}

/// The view that the machine shows.
pub(super) struct PathOfGroup<'a, M> {
    own: &'a PathEntry<M>,
    paths: &'a PathMap<PathEntry<M>>,
}

impl<'a, M> PathOfGroup<'a, M> {
    pub(super) fn new(paths: &'a PathMap<PathEntry<M>>, path: PathId) -> Option<Self> {
        Some(Self { own: paths.get(path)?, paths })
    }
}

impl<M> GroupView<M> for PathOfGroup<'_, M> {
    fn own(&self) -> &PathWindow {
        &self.own.window
    }

    fn own_memory(&self) -> &M {
        &self.own.memory
    }

    fn own_member(&self) -> Option<Member<'_, M>> {
        self.own.member()
    }

    fn is_coupled(&self) -> bool {
        !self.own.partners.is_empty()
    }

    fn members<'a>(&'a self) -> impl Iterator<Item = Member<'a, M>>
    where
        M: 'a,
    {
        let group = self.own.group;
        self.paths.values().filter(move |path| path.group == group).filter_map(PathEntry::member)
    }
}

/// The same paths for a rule that another one is made of, with the part of what is remembered that is that rule's.
pub(super) struct Projected<'a, V, M, N> {
    pub(super) view: &'a V,
    pub(super) part: fn(&M) -> &N,
}

impl<V: GroupView<M>, M, N> GroupView<N> for Projected<'_, V, M, N> {
    fn own(&self) -> &PathWindow {
        self.view.own()
    }

    fn own_memory(&self) -> &N {
        (self.part)(self.view.own_memory())
    }

    fn own_member(&self) -> Option<Member<'_, N>> {
        Some(self.view.own_member()?.with_part(self.part))
    }

    fn is_coupled(&self) -> bool {
        self.view.is_coupled()
    }

    fn members<'a>(&'a self) -> impl Iterator<Item = Member<'a, N>>
    where
        N: 'a,
    {
        self.view.members().map(|path| path.with_part(self.part))
    }
}
