//! The schedule: which link has the next event. Each link has at most one pending event.
//!
//! In many a network of a thousand links only a handful have one at a time: the packets wait in
//! the queue of the bottleneck, and cross the other links in no time. A few events are kept in
//! order by moving them up by one place, which costs less than anything clever; only where there
//! are more do the others go into a tournament.

mod tournament;

use fairpath_core::Timestamp;

use tournament::Tournament;

/// An event: when, and in one number its sequence number and its link. Entries compare as events do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    at: u64,
    /// The sequence number, and in the lowest bits the link.
    which: u64,
}

/// No event, later than every other.
const NEVER: Entry = Entry { at: u64::MAX, which: u64::MAX };

/// How many bits of an entry hold the link.
const LINK_BITS: u32 = 20;
/// How many hold the sequence number. It starts over after 8.8 million million events; then events
/// of one instant could change places, and that is all.
const SEQUENCE_BITS: u32 = 43;

/// How many events are kept in order.
const NEAR: usize = 16;

/// The pending event of each link, the earliest first. Events of one instant come in the order in
/// which they were scheduled.
#[derive(Debug)]
pub(crate) struct Schedule {
    /// The earliest of all, which is asked for more often than it changes.
    first: Entry,
    /// Whether it is the last of `near`.
    first_is_near: bool,
    /// Some of the events, the earliest last.
    near: [Entry; NEAR],
    near_count: usize,
    /// The others.
    far: Tournament,
    sequence: u64,
}

impl Default for Schedule {
    fn default() -> Self {
        Self {
            first: NEVER,
            first_is_near: false,
            near: [NEVER; NEAR],
            near_count: 0,
            far: Tournament::default(),
            sequence: 0,
        }
    }
}

impl Schedule {
    /// How many links there can be.
    pub(crate) const LINKS_MAX: usize = 1 << LINK_BITS;

    /// Makes room for one link more.
    pub(crate) fn add_link(&mut self) {
        self.far.add_link();
    }

    /// When the earliest event is; the end of time where there is none.
    #[inline]
    pub(crate) fn first_at(&self) -> Timestamp {
        Timestamp::from_nanos(self.first.at)
    }

    /// The link whose event it is.
    #[inline]
    pub(crate) fn first_link(&self) -> u32 {
        self.first.link()
    }

    /// Moves the earliest event to `at`; at the end of time it is none.
    #[inline]
    pub(crate) fn move_first(&mut self, at: Timestamp) {
        let link = self.first_link();
        if self.first_is_near {
            self.near_count -= 1;
        } else {
            self.far.remove(link);
        }
        self.insert(link, at);
        self.find_first();
    }

    /// Moves the event of `link` from one time to another; the end of time is none.
    #[inline]
    pub(crate) fn set(&mut self, link: u32, from: Timestamp, to: Timestamp) {
        if from != Timestamp::MAX {
            self.remove(link);
        }
        self.insert(link, to);
        self.find_first();
    }

    /// Takes in the event of a link that has none.
    #[inline]
    fn insert(&mut self, link: u32, at: Timestamp) {
        if at == Timestamp::MAX {
            return;
        }
        self.sequence = (self.sequence + 1) % (1 << SEQUENCE_BITS);
        let entry = Entry { at: at.as_nanos(), which: self.sequence << LINK_BITS | u64::from(link) };
        let mut place = self.near_count;
        if place == NEAR {
            self.insert_among_many(entry);
            return;
        }
        self.near_count = place + 1;
        // Those of the same time were scheduled before.
        while place > 0 && self.near[place - 1].at <= entry.at {
            self.near[place] = self.near[place - 1];
            place -= 1;
        }
        self.near[place] = entry;
    }

    #[inline]
    fn find_first(&mut self) {
        let far = self.far.first();
        match self.near_count.checked_sub(1).and_then(|last| self.near.get(last)) {
            Some(near) if *near < far => (self.first, self.first_is_near) = (*near, true),
            _ => (self.first, self.first_is_near) = (far, false),
        }
    }

    /// Seldom: a link changed, or finds an earlier opportunity than it had foreseen.
    #[inline(never)]
    fn remove(&mut self, link: u32) {
        let near = &mut self.near[..self.near_count];
        if let Some(place) = near.iter().position(|entry| entry.link() == link) {
            near.copy_within(place + 1.., place);
            self.near_count -= 1;
        } else {
            self.far.remove(link);
        }
    }

    /// There is no place for all: the latest is one of those in the tournament.
    #[inline(never)]
    fn insert_among_many(&mut self, entry: Entry) {
        if entry > self.near[0] {
            self.far.insert(entry);
            return;
        }
        self.far.insert(self.near[0]);
        let mut place = 0;
        while place + 1 < NEAR && self.near[place + 1] > entry {
            self.near[place] = self.near[place + 1];
            place += 1;
        }
        self.near[place] = entry;
    }
}

impl Entry {
    #[inline]
    fn link(self) -> u32 {
        self.which as u32 & (Schedule::LINKS_MAX as u32 - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn first(schedule: &Schedule) -> (Timestamp, u32) {
        (schedule.first_at(), schedule.first_link())
    }

    /// Takes out everything, one after the other.
    fn drain(schedule: &mut Schedule) -> Vec<(Timestamp, u32)> {
        let mut order = Vec::new();
        while schedule.first_at() != Timestamp::MAX {
            order.push(first(schedule));
            schedule.move_first(Timestamp::MAX);
        }
        order
    }

    fn with_links(links: usize) -> Schedule {
        let mut schedule = Schedule::default();
        (0..links).for_each(|_| schedule.add_link());
        schedule
    }

    #[test]
    fn events_of_one_instant_come_in_the_order_of_scheduling() {
        let mut schedule = with_links(4);
        for link in [2, 0, 3, 1] {
            schedule.set(link, Timestamp::MAX, Timestamp::from_secs(1));
        }
        assert_eq!(drain(&mut schedule).iter().map(|(_, link)| *link).collect::<Vec<_>>(), [2, 0, 3, 1]);
    }

    #[test]
    fn every_time_can_be_scheduled() {
        let mut schedule = with_links(3);
        let times = [Timestamp::from_nanos(u64::MAX - 1), Timestamp::ZERO, Timestamp::from_nanos(1 << 63)];
        (0..3).zip(times).for_each(|(link, at)| schedule.set(link, Timestamp::MAX, at));
        assert_eq!(drain(&mut schedule), [(times[1], 1), (times[2], 2), (times[0], 0)]);
    }

    #[test]
    fn links_that_are_added_disturb_no_other() {
        let mut schedule = Schedule::default();
        for link in 0..100 {
            schedule.add_link();
            schedule.set(link, Timestamp::MAX, Timestamp::from_nanos(u64::from(1_000 - link)));
        }
        assert_eq!(
            drain(&mut schedule).iter().map(|(_, link)| *link).collect::<Vec<_>>(),
            Vec::from_iter((0..100).rev())
        );
    }

    proptest! {
        /// The model: the earliest time, and among equals the one that was set first. There are
        /// fewer links than are kept in order, or many more. Half the operations move the first.
        #[test]
        fn the_first_is_the_earliest_and_then_the_first_that_was_set(
            links in prop_oneof![Just(NEAR as u32 - 4), Just(4 * NEAR as u32)],
            operations in proptest::collection::vec((any::<bool>(), 0u32..1_000, proptest::option::of(0u64..20)), 1..500)
        ) {
            let mut schedule = with_links(links as usize);
            let mut model = vec![(Timestamp::MAX, 0); links as usize];
            for (number, (the_first, link, at)) in operations.into_iter().enumerate() {
                let at = at.map_or(Timestamp::MAX, Timestamp::from_nanos);
                let (first_at, first_link) = first(&schedule);
                let the_first = the_first && first_at != Timestamp::MAX;
                let link = if the_first { first_link } else { link % links };
                let before = model[link as usize].0;
                if at == before {
                    continue;
                }
                if the_first { schedule.move_first(at) } else { schedule.set(link, before, at) }
                model[link as usize] = (at, number);
                let earliest = (0..links).min_by_key(|link| model[*link as usize]).unwrap();
                prop_assert_eq!(schedule.first_at(), model[earliest as usize].0);
                if schedule.first_at() != Timestamp::MAX {
                    prop_assert_eq!(schedule.first_link(), earliest);
                }
            }
        }
    }
}
