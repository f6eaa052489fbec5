//! What a rule sees: the paths that are coupled with the one an event came from.

use core::fmt;

use fairpath_core::{GroupId, PathId, PathMap};

use super::losses::LossTest;
use super::undo::Undo;
use super::{Member, PathWindow, Totals};

/// What the machine keeps of one path.
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
    /// What the last reduction can be undone with; apart, so that the windows of all paths stay close
    /// together.
    pub(super) undo: Option<Box<Undo<M>>>,
}

impl<M> PathEntry<M> {
    fn shown(&self) -> Shown<'_, M> {
        Shown { group: self.group, window: &self.window, memory: &self.memory }
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
#[derive(Debug)]
pub struct GroupView<'a, M> {
    own: Shown<'a, M>,
    paths: Paths<'a, M>,
}

impl<'a, M> GroupView<'a, M> {
    pub(super) fn new(paths: &'a PathMap<PathEntry<M>>, path: PathId) -> Option<Self> {
        Some(Self { own: paths.get(path)?.shown(), paths: Paths::Kept(paths) })
    }

    /// The path that the event came from.
    pub fn own(&self) -> &'a PathWindow {
        self.own.window
    }

    /// What the rule remembers of the path that the event came from.
    pub fn own_memory(&self) -> &'a M {
        self.own.memory
    }

    /// The path that the event came from as its group sees it; `None` while it takes no part.
    pub fn own_member(&self) -> Option<Member<'a, M>> {
        self.own.member()
    }

    /// The paths of the group, in order of their ids: its own path and those it is coupled with. A
    /// path without a round-trip sample has no known rate and takes no part.
    pub fn members(&self) -> impl Iterator<Item = Member<'a, M>> + use<'a, M> {
        let group = self.own.group;
        self.paths.iter().filter(move |path| path.group == group).filter_map(|path| path.member())
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
        self.own().has_rtt() && self.members().nth(1).is_some()
    }

    /// Shows the same paths to a rule that this one is made of, with the part of what is remembered that is that
    /// rule's.
    pub fn with_part<N, T>(&self, part: fn(&M) -> &N, see: impl FnOnce(&GroupView<'_, N>) -> T) -> T {
        let parts = Parts { paths: self.paths, part };
        see(&GroupView { own: self.own.part(part), paths: Paths::Parts(&parts) })
    }
}

/// A path as a view shows it.
#[derive(Debug)]
struct Shown<'a, M> {
    group: Option<GroupId>,
    window: &'a PathWindow,
    memory: &'a M,
}

impl<'a, M> Shown<'a, M> {
    fn member(&self) -> Option<Member<'a, M>> {
        let window = self.window;
        Some(Member {
            cwnd: window.effective_cwnd(),
            inverse_rtt: window.inverse_rtt()?,
            max_datagram: window.max_datagram(),
            memory: self.memory,
        })
    }

    fn part<N>(&self, part: fn(&M) -> &N) -> Shown<'a, N> {
        Shown { group: self.group, window: self.window, memory: part(self.memory) }
    }
}

/// Where a view has its paths from.
enum Paths<'a, M> {
    /// From the machine.
    Kept(&'a PathMap<PathEntry<M>>),
    /// From a view of a rule that has this one as a part.
    Parts(&'a dyn ShowParts<M>),
}

impl<M> Clone for Paths<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for Paths<'_, M> {}

impl<M> fmt::Debug for Paths<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let paths = self.iter().map(|path| (path.group, path.window));
        f.debug_list().entries(paths).finish()
    }
}

impl<'a, M> Paths<'a, M> {
    /// All paths of the connection, in order of their ids.
    fn iter(self) -> impl Iterator<Item = Shown<'a, M>> {
        match self {
            Self::Kept(paths) => Either::Left(paths.values().map(PathEntry::shown)),
            Self::Parts(parts) => Either::Right((0..).map_while(move |at| parts.show(at))),
        }
    }
}

/// One of two iterators.
enum Either<L, R> {
    Left(L),
    Right(R),
}

impl<T, L: Iterator<Item = T>, R: Iterator<Item = T>> Iterator for Either<L, R> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        match self {
            Self::Left(left) => left.next(),
            Self::Right(right) => right.next(),
        }
    }

    /// Sums over all paths are what is asked for with each acknowledgement: they decide once.
    fn fold<A, F: FnMut(A, T) -> A>(self, first: A, add: F) -> A {
        match self {
            Self::Left(left) => left.fold(first, add),
            Self::Right(right) => right.fold(first, add),
        }
    }
}

/// Paths of which only a part of what is remembered is shown.
trait ShowParts<N> {
    /// The path at this place, in order of the ids.
    fn show(&self, at: usize) -> Option<Shown<'_, N>>;
}

struct Parts<'a, M, N> {
    paths: Paths<'a, M>,
    part: fn(&M) -> &N,
}

impl<M, N> ShowParts<N> for Parts<'_, M, N> {
    fn show(&self, at: usize) -> Option<Shown<'_, N>> {
        Some(self.paths.iter().nth(at)?.part(self.part))
    }
}
