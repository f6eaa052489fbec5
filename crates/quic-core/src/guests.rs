//! The admission of strangers to a listener: how many, and which of them leave first. Everything
//! here is arithmetic on the time it is given; `accept.rs` carries it out.
//!
//! A *guest* is a connection in its handshake, or one whose peer has not proved itself to the application;
//! a *resident* has. Residents are never touched. Of guests:
//!
//! - The rate of work is limited, in total and for each source address: strangers beyond it are
//!   refused by one small packet.
//! - While more than a few have not shown that they receive at their address, new ones must show that
//!   first (a Retry packet [RFC9000 §8.1.2]), which costs the listener no memory. So forged addresses use
//!   up nobody's budget.
//! - A new one that may come in always finds a place: the oldest guest of the source with most of them
//!   leaves for it, strangers before the invited.

use std::collections::BTreeMap;
use std::net::IpAddr;
use web_time::Instant;

/// How many guests there may be.
pub const GUESTS_MAX: usize = 64;

/// The most that one of them takes of memory, in bytes, whatever it says.
pub const GUEST_BYTES_MAX: usize = 128 << 10;

/// How many handshakes may go on with peers that have not shown that they receive at their address. As
/// many as a person may start at once; an attack with forged addresses fills them and costs others one
/// more round trip.
const UNVALIDATED_MAX: usize = 8;

/// Handshakes of strangers, in total. One takes about half a millisecond of one processor.
const STRANGERS: Rate = Rate { per_second: 100, burst: 64 };

/// Handshakes of one stranger's address; someone who tries a wrong ticket by hand stays below it.
const STRANGER: Rate = Rate { per_second: 4, burst: 16 };

/// Handshakes of the invited, in total. Observers can copy marks, so they are bounded too.
const INVITED: Rate = Rate { per_second: 200, burst: 128 };

/// Handshakes of one invited address: several paths, tried several times a second.
const INVITED_ONE: Rate = Rate { per_second: 16, burst: 64 };

/// How many source addresses are remembered. One takes about a hundred bytes.
const SOURCES_MAX: usize = 4096;

/// A token bucket's refill per second, and its size.
#[derive(Clone, Copy, Debug)]
struct Rate {
    per_second: u32,
    burst: u32,
}

/// The tokens left of a [`Rate`].
#[derive(Clone, Copy, Debug)]
struct Budget {
    left: f64,
    at: Instant,
}

impl Budget {
    fn full(rate: Rate, now: Instant) -> Self {
        Self { left: f64::from(rate.burst), at: now }
    }

    fn refill(&mut self, rate: Rate, now: Instant) -> f64 {
        let elapsed = now.saturating_duration_since(self.at).as_secs_f64();
        self.left = (self.left + elapsed * f64::from(rate.per_second)).min(f64::from(rate.burst));
        self.at = now;
        self.left
    }
}

/// The holder of a budget: an IPv4 address, or an IPv6 network of 64 bits, within which a host can
/// choose its addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// The address.
    V4(u32),
    /// The network.
    V6(u64),
}

impl From<IpAddr> for Source {
    fn from(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::V4(address.to_bits()),
            IpAddr::V6(address) => Self::V6((address.to_bits() >> 64) as u64),
        }
    }
}

/// A peer that wants in.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Where its packet came from.
    pub source: Source,
    /// It has shown that it receives at its address.
    pub is_validated: bool,
    /// Its packet has the mark of the invited.
    pub is_invited: bool,
}

/// The listener's response to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IncomingAction {
    /// It is a guest by this number.
    Accept(u64),
    /// It must show that it receives at its address.
    Retry,
    /// There is no place or no time for it.
    Refuse,
}

#[derive(Clone, Copy, Debug)]
struct Guest {
    source: Source,
    is_invited: bool,
    /// Its handshake goes on, and it has not shown that it receives at its address.
    is_unvalidated: bool,
}

/// Budgets of strangers or of the invited.
#[derive(Debug)]
struct Class {
    total: (Rate, Budget),
    one: Rate,
    sources: BTreeMap<Source, Budget>,
}

impl Class {
    fn new(total: Rate, one: Rate, now: Instant) -> Self {
        Self { total: (total, Budget::full(total, now)), one, sources: BTreeMap::new() }
    }

    /// Takes one piece of work out of both budgets, or out of none. A source that may be forged is not
    /// charged, though it must have something left.
    fn take(&mut self, source: Source, is_charged: bool, now: Instant) -> bool {
        let (rate, total) = &mut self.total;
        if total.refill(*rate, now) < 1.0 {
            return false;
        }
        let one = self.one;
        if self.sources.len() >= SOURCES_MAX && !self.sources.contains_key(&source) {
            // A full budget need not be remembered. Few are not full: the total is used up long before.
            self.sources.retain(|_, budget| budget.refill(one, now) < f64::from(one.burst));
            if self.sources.len() >= SOURCES_MAX {
                return false;
            }
        }
        let budget = self.sources.entry(source).or_insert_with(|| Budget::full(one, now));
        if budget.refill(one, now) < 1.0 {
            return false;
        }
        budget.left -= f64::from(u8::from(is_charged));
        total.left -= 1.0;
        true
    }

    /// Makes up for the charge that was omitted, once the source is validated.
    fn charge(&mut self, source: Source) {
        if let Some(budget) = self.sources.get_mut(&source) {
            budget.left = (budget.left - 1.0).max(0.0);
        }
    }
}

/// Everyone who is there.
#[derive(Debug)]
pub struct Guests {
    connections_max: usize,
    next: u64,
    guests: BTreeMap<u64, Guest>,
    residents: usize,
    strangers: Class,
    invited: Class,
}

impl Guests {
    /// A list with room for this many connections, guests included.
    pub fn new(connections_max: usize, now: Instant) -> Self {
        Self {
            connections_max,
            next: 0,
            guests: BTreeMap::new(),
            residents: 0,
            strangers: Class::new(STRANGERS, STRANGER, now),
            invited: Class::new(INVITED, INVITED_ONE, now),
        }
    }

    /// Decides what to do with a new peer, and which guest leaves for it.
    pub fn arrive(&mut self, arrival: Arrival, now: Instant) -> (IncomingAction, Option<u64>) {
        let Arrival { source, is_validated, is_invited } = arrival;
        let unvalidated = self.guests.values().filter(|guest| guest.is_unvalidated).count();
        if !is_validated && unvalidated >= UNVALIDATED_MAX {
            return (IncomingAction::Retry, None);
        }
        let places = GUESTS_MAX.min(self.connections_max.saturating_sub(self.residents));
        let leaving = match self.guests.len() < places {
            true => None,
            false => match self.who_leaves(is_invited) {
                Some(guest) if places > 0 => Some(guest),
                _ => return (IncomingAction::Refuse, None),
            },
        };
        if !self.class(is_invited).take(source, is_validated, now) {
            // An unvalidated address may be forged: the budget that is used up may be another host's.
            return (if is_validated { IncomingAction::Refuse } else { IncomingAction::Retry }, None);
        }
        if let Some(leaving) = leaving {
            self.guests.remove(&leaving);
        }
        let number = self.next;
        self.next += 1;
        self.guests.insert(number, Guest { source, is_invited, is_unvalidated: !is_validated });
        (IncomingAction::Accept(number), leaving)
    }

    /// The oldest guest of the source that has most of them, among strangers; among the invited where there
    /// are only such, and only for another invited one.
    fn who_leaves(&self, for_invited: bool) -> Option<u64> {
        let among_invited = for_invited && self.guests.values().all(|guest| guest.is_invited);
        let candidates = || self.guests.iter().filter(|(_, guest)| guest.is_invited == among_invited);
        let mut counts: BTreeMap<Source, usize> = BTreeMap::new();
        candidates().for_each(|(_, guest)| *counts.entry(guest.source).or_default() += 1);
        let most = counts.values().copied().max()?;
        candidates().find(|(_, guest)| counts[&guest.source] == most).map(|(&number, _)| number)
    }

    /// A guest's handshake is complete: it receives at its address.
    pub fn validated(&mut self, number: u64) {
        let Some(guest) = self.guests.get_mut(&number) else { return };
        if std::mem::take(&mut guest.is_unvalidated) {
            let Guest { source, is_invited, .. } = *guest;
            self.class(is_invited).charge(source);
        }
    }

    fn class(&mut self, is_invited: bool) -> &mut Class {
        if is_invited { &mut self.invited } else { &mut self.strangers }
    }

    /// A guest has proved itself. False where it had to leave before.
    pub fn welcome(&mut self, number: u64) -> bool {
        let was_there = self.guests.remove(&number).is_some();
        self.residents += usize::from(was_there);
        was_there
    }

    /// A connection is over.
    pub fn leave(&mut self, number: u64, is_resident: bool) {
        match is_resident {
            true => self.residents -= 1,
            false => drop(self.guests.remove(&number)),
        }
    }

    /// How many connections there are.
    #[cfg(test)]
    fn count(&self) -> usize {
        self.guests.len() + self.residents
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn source(number: u32) -> Source {
        Source::V4(number)
    }

    fn stranger(number: u32) -> Arrival {
        Arrival { source: source(number), is_validated: true, is_invited: false }
    }

    fn invited(number: u32) -> Arrival {
        Arrival { is_invited: true, ..stranger(number) }
    }

    fn accepted((action, left): (IncomingAction, Option<u64>)) -> (u64, Option<u64>) {
        let IncomingAction::Accept(number) = action else { panic!("{action:?}") };
        (number, left)
    }

    #[test]
    fn connections_max_is_kept_with_handshakes_guests_and_residents() {
        let now = Instant::now();
        let mut guests = Guests::new(3, now);
        for _ in 0..3 {
            let (number, left) = accepted(guests.arrive(stranger(1), now));
            assert!(left.is_none() && guests.welcome(number));
        }
        assert_eq!(guests.arrive(invited(2), now), (IncomingAction::Refuse, None));
        assert_eq!(guests.count(), 3);
        guests.leave(0, true);
        accepted(guests.arrive(invited(2), now));
        assert_eq!(accepted(guests.arrive(invited(2), now)).1, Some(3), "a guest leaves, no resident");
        assert_eq!(guests.count(), 3);
    }

    #[test]
    fn forged_addresses_are_asked_to_show_themselves_and_use_up_no_budget() {
        let now = Instant::now();
        let mut guests = Guests::new(64, now);
        let forged = |number| Arrival { is_validated: false, ..stranger(number) };
        let verdicts: Vec<_> = (0..1000).map(|number| guests.arrive(forged(number), now).0).collect();
        assert_eq!(verdicts.iter().filter(|one| matches!(one, IncomingAction::Accept(_))).count(), UNVALIDATED_MAX);
        assert_eq!(verdicts.iter().filter(|one| **one == IncomingAction::Retry).count(), 1000 - UNVALIDATED_MAX);
        // One more round trip, and the honest are in.
        accepted(guests.arrive(stranger(5000), now));
        accepted(guests.arrive(invited(5001), now));
    }

    #[test]
    fn a_source_that_shows_its_address_late_is_charged_all_the_same() {
        let now = Instant::now();
        let mut guests = Guests::new(64, now);
        let arrival = Arrival { is_validated: false, ..stranger(1) };
        for _ in 0..STRANGER.burst {
            let (number, _) = accepted(guests.arrive(arrival, now));
            guests.validated(number);
        }
        assert_eq!(guests.arrive(arrival, now).0, IncomingAction::Retry, "it may be another one that forges");
        assert_eq!(guests.arrive(stranger(1), now).0, IncomingAction::Refuse);
        accepted(guests.arrive(stranger(2), now));
    }

    #[test]
    fn one_source_cannot_take_the_places_of_others() {
        let now = Instant::now();
        let mut guests = Guests::new(64, now);
        let honest = accepted(guests.arrive(stranger(1), now)).0;
        for step in 0..100_u64 {
            // At its own rate for long: the source has most guests, so it is its own that leave.
            let at = now + Duration::from_millis(250 * step);
            let (_, left) = accepted(guests.arrive(stranger(2), at));
            assert_ne!(left, Some(honest));
        }
        assert_eq!(guests.count(), GUESTS_MAX);
        assert!(guests.welcome(honest));
    }

    #[test]
    fn the_invited_come_in_past_any_crowd_even_from_its_address() {
        let now = Instant::now();
        let mut guests = Guests::new(64, now);
        let mut refused = 0;
        for step in 0..10_000_u32 {
            let at = now + Duration::from_millis(step.into());
            // A thousand a second, from one address and from many.
            let from = if step % 2 == 0 { 1 } else { step };
            refused += u32::from(guests.arrive(stranger(from), at).0 == IncomingAction::Refuse);
            if step % 100 == 0 {
                let number = accepted(guests.arrive(invited(1), at)).0;
                // It proves itself 50 ms later, in which 50 more strangers come.
                for more in 0..50 {
                    guests.arrive(stranger(20_000 + more), at);
                }
                assert!(guests.welcome(number), "step {step}");
                guests.leave(number, true);
            }
            assert!(guests.count() <= GUESTS_MAX);
        }
        assert!(refused > 8_000, "work is done for few of them: {refused} refused");
    }

    #[test]
    fn copied_marks_do_not_keep_the_invited_out_for_ever() {
        let now = Instant::now();
        let mut guests = Guests::new(64, now);
        for number in 0..1000 {
            guests.arrive(invited(number), now);
        }
        assert_eq!(guests.count(), GUESTS_MAX);
        accepted(guests.arrive(invited(5000), now + Duration::from_millis(100)));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let now = Instant::now();
        let mut guests = Guests::new(64, now);
        for number in 0..100_000 {
            guests.arrive(stranger(number), now + Duration::from_millis(10 * u64::from(number)));
        }
        assert!(guests.strangers.sources.len() <= SOURCES_MAX && guests.count() <= GUESTS_MAX);
    }

    #[test]
    fn a_network_of_ipv6_is_one_source() {
        let of = |text: &str| Source::from(text.parse::<IpAddr>().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
    }
}
