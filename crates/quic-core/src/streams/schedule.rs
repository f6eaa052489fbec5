//! The order in which streams send: deficit round robin with a place in front for streams that send little.
//!
//! The rule is that of FQ-CoDel [RFC8290 §4.2]. A stream that has something to send after it had nothing goes to the end
//! of the list of new ones. These are served first, until each has sent a quantum; then it goes to the end of the list of
//! old ones. An old one that has nothing more to send leaves its list. A new one goes to the old ones first, so that none
//! can stay in front by sending little at a time.

use std::collections::{BTreeMap, VecDeque};

/// How much a stream may send in its turn, in bytes: a packet. Where larger ones are sent it is as much as these: a turn
/// that brings less than a packet only has the next one look again.
const QUANTUM: i64 = 1_514;

/// The streams that may have something to send.
#[derive(Debug)]
pub(super) struct Schedule {
    /// The bytes of a turn.
    quantum: i64,
    new: VecDeque<u64>,
    old: VecDeque<u64>,
    /// The bytes that each of them may send still in its turn.
    deficits: BTreeMap<u64, i64>,
    /// How many streams were looked at.
    #[cfg(test)]
    looks: usize,
}

impl Default for Schedule {
    fn default() -> Self {
        Self {
            quantum: QUANTUM,
            new: VecDeque::new(),
            old: VecDeque::new(),
            deficits: BTreeMap::new(),
            #[cfg(test)]
            looks: 0,
        }
    }
}

impl Schedule {
    /// Notes that packets have room for this many bytes.
    pub(super) fn fit(&mut self, room: usize) {
        self.quantum = self.quantum.max(i64::try_from(room).unwrap_or(QUANTUM));
    }

    /// The stream has something to send.
    pub(super) fn activate(&mut self, id: u64) {
        if let std::collections::btree_map::Entry::Vacant(vacant) = self.deficits.entry(id) {
            vacant.insert(self.quantum);
            self.new.push_back(id);
        }
    }

    /// The stream whose turn it is.
    pub(super) fn head(&mut self) -> Option<u64> {
        loop {
            let list = if self.new.is_empty() { &mut self.old } else { &mut self.new };
            let id = *list.front()?;
            #[cfg(test)]
            {
                self.looks += 1;
            }
            let deficit = self.deficits.entry(id).or_default();
            if *deficit > 0 {
                return Some(id);
            }
            *deficit += self.quantum;
            list.pop_front();
            self.old.push_back(id);
        }
    }

    /// Whether one of those that send little may have something to send.
    pub(super) fn has_sparse(&self) -> bool {
        // Only the first of them is ever charged.
        let first = self.new.front().and_then(|id| self.deficits.get(id));
        self.new.len() > 1 || first.is_some_and(|deficit| *deficit > 0)
    }

    /// Charges the stream for bytes that it has sent.
    pub(super) fn charge(&mut self, id: u64, bytes: usize) {
        if let Some(deficit) = self.deficits.get_mut(&id) {
            *deficit -= bytes as i64;
        }
    }

    /// The head has nothing to send.
    pub(super) fn on_empty_head(&mut self) {
        match self.new.pop_front() {
            Some(id) if !self.old.is_empty() => self.old.push_back(id),
            Some(id) => _ = self.deficits.remove(&id),
            None => {
                if let Some(id) = self.old.pop_front() {
                    self.deficits.remove(&id);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The order in which streams send `packets` packets: `bulk` always have more, and a sparse one has 64 bytes at
    /// every tenth.
    fn order(bulk: u64, sparse: Option<u64>, packets: usize) -> Vec<u64> {
        let mut schedule = Schedule::default();
        (0..bulk).for_each(|id| schedule.activate(id));
        let (mut sent, mut waits) = (Vec::new(), 0);
        while sent.len() < packets {
            if sparse.is_some() && sent.len() % 10 == 9 && waits == 0 {
                waits = 64;
                schedule.activate(sparse.unwrap_or_default());
            }
            let id = schedule.head().expect("there are some");
            if Some(id) == sparse && waits == 0 {
                schedule.on_empty_head();
                continue;
            }
            schedule.charge(id, if Some(id) == sparse { std::mem::take(&mut waits) } else { 1_400 });
            sent.push(id);
        }
        sent
    }

    #[test]
    fn streams_that_always_have_more_take_turns() {
        let sent = order(4, None, 4_000);
        for id in 0..4 {
            let count = sent.iter().filter(|one| **one == id).count();
            assert!((998..=1_002).contains(&count), "{count}");
        }
    }

    #[test]
    fn who_is_next_takes_one_look_however_large_packets_are() {
        for bytes in [1_514, 8_900, 60_000] {
            let mut schedule = Schedule::default();
            schedule.fit(bytes);
            (0..16).for_each(|id| schedule.activate(id));
            for turn in 0..160 {
                let before = schedule.looks;
                assert_eq!(schedule.head(), Some(turn % 16), "packets of {bytes}");
                assert!(schedule.looks - before <= 2, "{} looks", schedule.looks - before);
                schedule.charge(turn % 16, bytes);
            }
        }
    }

    #[test]
    fn one_that_sends_little_is_next() {
        let sent = order(4, Some(9), 4_000);
        for (at, _) in sent.iter().enumerate().skip(100).filter(|(at, _)| at % 10 == 9) {
            let wait = sent[at..].iter().position(|id| *id == 9).expect("it is served");
            assert!(wait <= 1, "at {at} it waited for {wait} packets");
        }
    }
}
