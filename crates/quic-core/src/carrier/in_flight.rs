//! The data in flight on each path, by packet number: messages, records and streams share this book-keeping.

use std::collections::VecDeque;

use fairpath_engine::{PathId, PathMap};

/// The content of a fragment, as its sender knows it.
pub(crate) trait Tracked: Copy {
    /// Whether it is a copy made for the tail, which is not copied again.
    fn is_tail(self) -> bool;
}

/// Why a fragment was cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// It was never sent.
    New,
    /// It was lost, or its path fell ill.
    Again,
    /// It was in flight on a slower path, and there was nothing else to send.
    Tail,
}

/// The fragments of one sender that are in flight, on all paths.
///
/// For the bytes of each fragment one entry answers at most. An entry whose bytes were ordered again has handed them on:
/// its loss orders no second copy, and a late acknowledgement still counts.
#[derive(Debug)]
pub(crate) struct InFlight<P> {
    paths: PathMap<OnPath<P>>,
    /// How many fragments were sent.
    sent: u64,
}

impl<P> Default for InFlight<P> {
    fn default() -> Self {
        Self { paths: PathMap::new(), sent: 0 }
    }
}

impl<P: Tracked> InFlight<P> {
    /// Notes that `part` left on `path` in packet `number`, which may carry several.
    pub(crate) fn on_sent(&mut self, part: P, path: PathId, number: u64) {
        self.insert(part, path, number, State::Answerable);
    }

    /// The same for a copy, for whose bytes another packet answers.
    pub(crate) fn on_copy_sent(&mut self, part: P, path: PathId, number: u64) {
        self.insert(part, path, number, State::HandedOn);
    }

    fn insert(&mut self, part: P, path: PathId, number: u64, state: State) {
        if !self.paths.contains(path) {
            self.paths.insert(path, OnPath { entries: VecDeque::new(), passed_over: 0 });
        }
        let on_path = self.paths.get_mut(path).expect("a path that was put in");
        on_path.add(Entry { number, order: self.sent, part, state });
        self.sent += 1;
    }

    /// Packet `number` of `path` was acknowledged or lost; `each` gets what it carried, and whether it still answered
    /// for its bytes. Unknown ones are ignored.
    pub(crate) fn settle(&mut self, path: PathId, number: u64, each: impl FnMut(P, bool)) {
        if let Some(on_path) = self.paths.get_mut(path) {
            on_path.settle(number, each);
        }
    }

    /// Hands on everything on `path` that is answerable.
    pub(crate) fn hand_on(&mut self, path: PathId, each: impl FnMut(P)) {
        if let Some(on_path) = self.paths.get_mut(path) {
            on_path.hand_on_all(each);
        }
    }

    /// The items answerable on `path`, in the order in which they left.
    pub(crate) fn answerable_on(&self, path: PathId) -> impl Iterator<Item = P> {
        let entries = self.paths.get(path).into_iter().flat_map(|on_path| &on_path.entries);
        entries.filter(|entry| entry.state == State::Answerable).map(|entry| entry.part)
    }

    /// The paths on which something is answerable.
    #[cfg(feature = "simulation")]
    pub(crate) fn answerable_paths(&self) -> impl Iterator<Item = PathId> {
        let is_answerable = |on_path: &OnPath<P>| on_path.entries.iter().any(|entry| entry.state == State::Answerable);
        self.paths.iter().filter(move |(_, on_path)| is_answerable(on_path)).map(|(path, _)| path)
    }

    /// Forgets `path`, of which nothing will be heard any more.
    pub(crate) fn forget(&mut self, path: PathId) {
        self.paths.remove(path);
    }

    /// The paths on which anything was sent.
    pub(crate) fn paths(&self) -> impl Iterator<Item = PathId> {
        self.paths.iter().map(|(path, _)| path)
    }

    /// Hands on what was sent last, is answerable and no copy made for the tail, of the paths other than `path` for
    /// which `slower` holds.
    pub(crate) fn hand_on_newest(&mut self, path: PathId, slower: impl Fn(PathId) -> bool) -> Option<P> {
        let others = self.paths.iter_mut().filter(|(other, _)| *other != path && slower(*other));
        let newest = others.filter_map(|(_, on_path)| Some((on_path.newest()?, on_path)));
        let (_, on_path) = newest.max_by_key(|(order, _)| *order)?;
        on_path.hand_on_newest()
    }

    /// Whether no packet is in flight on any path.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.paths.values().all(|on_path| on_path.entries.is_empty())
    }

    /// All that is answerable.
    #[cfg(test)]
    pub(crate) fn answerable(&self) -> impl Iterator<Item = P> {
        let entries = self.paths.values().flat_map(|on_path| &on_path.entries);
        entries.filter(|entry| entry.state == State::Answerable).map(|entry| entry.part)
    }
}

/// The fate of a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It answers for its bytes: where it is lost, they are sent again.
    Answerable,
    /// Its bytes are sent again already. An acknowledgement still counts, a loss no longer.
    HandedOn,
    /// Its packet was acknowledged or lost.
    Settled,
}

#[derive(Clone, Copy, Debug)]
struct Entry<P> {
    number: u64,
    /// It rises over all paths.
    order: u64,
    part: P,
    state: State,
}

/// A queue in the order of packet numbers. Settled entries are dropped from the front, where QUIC's loss detection
/// settles everything within a few packets of what it hears of [RFC9002 §6.1].
#[derive(Debug)]
struct OnPath<P> {
    entries: VecDeque<Entry<P>>,
    /// How many entries at the back are none to be copied for the tail; more than there are where all are none.
    passed_over: usize,
}

impl<P: Tracked> OnPath<P> {
    fn add(&mut self, entry: Entry<P>) {
        let number = entry.number;
        if self.entries.back().is_none_or(|last| last.number <= number) {
            self.entries.push_back(entry);
        } else {
            let at = self.entries.partition_point(|entry| entry.number <= number);
            self.entries.insert(at, entry);
        }
        self.passed_over = 0;
    }

    /// Settles the fragments of packet `number`; `each` gets them and whether they still answered for their bytes.
    fn settle(&mut self, number: u64, mut each: impl FnMut(P, bool)) {
        let in_order = self.entries.front().is_none_or(|first| first.number >= number);
        let at = if in_order { 0 } else { self.entries.partition_point(|entry| entry.number < number) };
        for entry in self.entries.range_mut(at..).take_while(|entry| entry.number == number) {
            if entry.state != State::Settled {
                each(entry.part, entry.state == State::Answerable);
                entry.state = State::Settled;
            }
        }
        while self.entries.front().is_some_and(|first| first.state == State::Settled) {
            self.entries.pop_front();
        }
    }

    /// Hands on everything that is answerable.
    fn hand_on_all(&mut self, mut each: impl FnMut(P)) {
        for entry in self.entries.iter_mut().filter(|entry| entry.state == State::Answerable) {
            entry.state = State::HandedOn;
            each(entry.part);
        }
    }

    /// The place in the order of what was sent last, is answerable, and is no copy made for the tail itself.
    fn newest(&mut self) -> Option<u64> {
        while let Some(entry) = self.next_to_copy() {
            if entry.state == State::Answerable && !entry.part.is_tail() {
                return Some(entry.order);
            }
            self.passed_over += 1;
        }
        None
    }

    /// Hands on what [`OnPath::newest`] named.
    fn hand_on_newest(&mut self) -> Option<P> {
        self.newest()?;
        let entry = self.next_to_copy()?;
        entry.state = State::HandedOn;
        Some(entry.part)
    }

    fn next_to_copy(&mut self) -> Option<&mut Entry<P>> {
        let at = self.entries.len().checked_sub(self.passed_over + 1)?;
        self.entries.get_mut(at)
    }
}
