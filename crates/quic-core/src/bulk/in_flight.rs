//! The fragments that went out on one path, by packet number.

use std::collections::VecDeque;

use super::record::{Part, Why};

/// What became of a fragment.
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
struct Entry {
    number: u64,
    order: u64,
    part: Part,
    state: State,
}

/// A queue in the order of packet numbers. Settled entries are dropped from the front, where QUIC's loss detection
/// settles everything within a few packets of what it hears of [RFC9002 §6.1].
#[derive(Debug, Default)]
pub(super) struct InFlight {
    entries: VecDeque<Entry>,
    /// How many entries at the back are none to be copied for the tail; more than there are where all are none.
    passed_over: usize,
}

impl InFlight {
    /// Whether nothing is in flight.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds what went out in packet `number`. `order` rises over all paths of the connection.
    pub(super) fn insert(&mut self, number: u64, order: u64, part: Part) {
        self.add(Entry { number, order, part, state: State::Answerable });
    }

    /// The same for a copy, for whose bytes another packet answers.
    pub(super) fn insert_copy(&mut self, number: u64, order: u64, part: Part) {
        self.add(Entry { number, order, part, state: State::HandedOn });
    }

    fn add(&mut self, entry: Entry) {
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
    pub(super) fn settle(&mut self, number: u64, mut each: impl FnMut(Part, bool)) {
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
    pub(super) fn hand_on_all(&mut self, mut each: impl FnMut(Part)) {
        for entry in self.entries.iter_mut().filter(|entry| entry.state == State::Answerable) {
            entry.state = State::HandedOn;
            each(entry.part);
        }
    }

    /// The place in the order of what was sent last, is answerable, and is no copy made for the tail itself.
    pub(super) fn newest(&mut self) -> Option<u64> {
        while let Some(entry) = self.next_to_copy() {
            if entry.state == State::Answerable && entry.part.why != Why::Tail {
                return Some(entry.order);
            }
            self.passed_over += 1;
        }
        None
    }

    /// Hands on what [`InFlight::newest`] named.
    pub(super) fn hand_on_newest(&mut self) -> Option<Part> {
        self.newest()?;
        let entry = self.next_to_copy()?;
        entry.state = State::HandedOn;
        Some(entry.part)
    }

    fn next_to_copy(&mut self) -> Option<&mut Entry> {
        let at = self.entries.len().checked_sub(self.passed_over + 1)?;
        self.entries.get_mut(at)
    }

    /// What is answerable.
    #[cfg(test)]
    pub(super) fn answerable(&self) -> impl Iterator<Item = Part> {
        self.entries.iter().filter(|entry| entry.state == State::Answerable).map(|entry| entry.part)
    }
}
