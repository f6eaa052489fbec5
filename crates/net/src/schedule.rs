//! Which link has the next event: a binary heap with one entry per busy link, which knows where
//! each link's entry is and so can move it.

use fairpath_core::Timestamp;

const ABSENT: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Entry {
    at: Timestamp,
    /// Events of one instant come in the order in which they were scheduled.
    sequence: u64,
    link: u32,
}

impl Entry {
    fn key(&self) -> (Timestamp, u64) {
        (self.at, self.sequence)
    }
}

/// The pending event of each link, the earliest first.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    heap: Vec<Entry>,
    /// Where in the heap each link's entry is.
    position: Vec<u32>,
    sequence: u64,
}

impl Schedule {
    /// Makes room for one link more.
    pub(crate) fn add_link(&mut self) {
        self.position.push(ABSENT);
    }

    /// The earliest event and its link.
    #[inline]
    pub(crate) fn first(&self) -> Option<(Timestamp, u32)> {
        self.heap.first().map(|entry| (entry.at, entry.link))
    }

    /// Sets the pending event of `link`.
    #[inline]
    pub(crate) fn set(&mut self, link: u32, at: Option<Timestamp>) {
        let place = self.position[link as usize];
        match (place, at) {
            (ABSENT, None) => {}
            (ABSENT, Some(at)) => {
                let entry = self.entry(link, at);
                self.heap.push(entry);
                self.sift_up(self.heap.len() - 1);
            }
            (place, None) => self.remove(place as usize),
            (place, Some(at)) => {
                let place = place as usize;
                if self.heap[place].at != at {
                    self.heap[place] = self.entry(link, at);
                    self.sift_up(place);
                    self.sift_down(self.position[link as usize] as usize);
                }
            }
        }
    }

    fn entry(&mut self, link: u32, at: Timestamp) -> Entry {
        self.sequence += 1;
        Entry { at, sequence: self.sequence, link }
    }

    fn remove(&mut self, place: usize) {
        let removed = self.heap.swap_remove(place);
        self.position[removed.link as usize] = ABSENT;
        if let Some(moved) = self.heap.get(place).copied() {
            self.position[moved.link as usize] = place as u32;
            self.sift_up(place);
            self.sift_down(self.position[moved.link as usize] as usize);
        }
    }

    fn sift_up(&mut self, mut place: usize) {
        let entry = self.heap[place];
        while place > 0 {
            let parent = (place - 1) / 2;
            if self.heap[parent].key() <= entry.key() {
                break;
            }
            self.put(place, self.heap[parent]);
            place = parent;
        }
        self.put(place, entry);
    }

    fn sift_down(&mut self, mut place: usize) {
        let entry = self.heap[place];
        loop {
            let mut child = 2 * place + 1;
            if child + 1 < self.heap.len() && self.heap[child + 1].key() < self.heap[child].key() {
                child += 1;
            }
            if child >= self.heap.len() || entry.key() <= self.heap[child].key() {
                break;
            }
            self.put(place, self.heap[child]);
            place = child;
        }
        self.put(place, entry);
    }

    fn put(&mut self, place: usize, entry: Entry) {
        self.heap[place] = entry;
        self.position[entry.link as usize] = place as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn events_of_one_instant_come_in_the_order_of_scheduling() {
        let mut schedule = Schedule::default();
        (0..4).for_each(|_| schedule.add_link());
        for link in [2, 0, 3, 1] {
            schedule.set(link, Some(Timestamp::from_secs(1)));
        }
        let mut order = Vec::new();
        while let Some((_, link)) = schedule.first() {
            order.push(link);
            schedule.set(link, None);
        }
        assert_eq!(order, [2, 0, 3, 1]);
    }

    proptest! {
        #[test]
        fn the_first_is_the_earliest_whatever_was_set(
            operations in proptest::collection::vec((0u32..12, proptest::option::of(0u64..20)), 1..300)
        ) {
            let mut schedule = Schedule::default();
            (0..12).for_each(|_| schedule.add_link());
            let mut model = [None; 12];
            for (link, at) in operations {
                let at = at.map(Timestamp::from_nanos);
                schedule.set(link, at);
                model[link as usize] = at;
                let first = schedule.first();
                prop_assert_eq!(first.map(|(at, _)| at), model.iter().flatten().min().copied());
                if let Some((at, link)) = first {
                    prop_assert_eq!(model[link as usize], Some(at));
                }
            }
        }
    }
}
