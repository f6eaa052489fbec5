//! How much may go over single interfaces. It is counted at the sockets, so that every packet counts, whatever
//! connection it belongs to, and none leaves once the allowance is spent.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use fairpath_engine::ByteCount;

use crate::interfaces::Interface;

/// Bounds the traffic of one interface or address, both ways. A clone is the same allowance.
#[derive(Clone, Debug)]
pub struct Allowance(Arc<Account>);

#[derive(Debug)]
struct Account {
    of: String,
    granted: AtomicU64,
    used: AtomicU64,
    may_say_goodbye: AtomicBool,
}

impl Allowance {
    /// The allowance of the interface, or of the address, that is called `of`.
    pub fn new(of: impl Into<String>, granted: ByteCount) -> Self {
        let (granted, used) = (AtomicU64::new(granted.get()), AtomicU64::new(0));
        Self(Arc::new(Account { of: of.into(), granted, used, may_say_goodbye: AtomicBool::new(false) }))
    }

    /// The interface or the address.
    pub fn of(&self) -> &str {
        &self.0.of
    }

    /// The traffic so far: UDP datagrams with the headers of IP and UDP.
    pub fn used(&self) -> ByteCount {
        ByteCount::new(self.0.used.load(Ordering::Relaxed))
    }

    /// Changes how much may go over it in all, what is used included.
    pub fn grant(&self, granted: ByteCount) {
        self.0.granted.store(granted.get(), Ordering::Relaxed);
    }

    /// Whether nothing may go over it any more.
    pub fn is_spent(&self) -> bool {
        self.used().get() >= self.0.granted.load(Ordering::Relaxed)
    }

    /// From now on packets may leave though it is spent: those that tell the peer of the end. Only for a connection
    /// that is closed next.
    pub fn allow_goodbye(&self) {
        self.0.may_say_goodbye.store(true, Ordering::Relaxed);
    }

    /// Whether a packet may leave.
    pub(crate) fn lets_out(&self) -> bool {
        !self.is_spent() || self.0.may_say_goodbye.load(Ordering::Relaxed)
    }

    /// Datagrams of `length` bytes in all left or came.
    pub(crate) fn count(&self, datagrams: usize, length: usize, is_ipv4: bool) {
        // UDP takes 8 bytes, IPv4 20 without options, IPv6 40.
        let headers = if is_ipv4 { 28 } else { 48 };
        self.add(ByteCount::new((length + datagrams * headers) as u64));
    }

    /// Counts more bytes that were carried.
    pub fn add(&self, bytes: ByteCount) {
        self.0.used.fetch_add(bytes.get(), Ordering::Relaxed);
    }
}

/// The allowances of an endpoint.
#[derive(Clone, Debug, Default)]
pub(crate) struct Allowances(Arc<[Allowance]>);

impl From<Vec<Allowance>> for Allowances {
    fn from(all: Vec<Allowance>) -> Self {
        Self(all.into())
    }
}

impl Allowances {
    /// That of an interface's address.
    pub(crate) fn of(&self, interface: &Interface) -> Option<Allowance> {
        let is_meant = |one: &&Allowance| one.of() == interface.name || one.of() == interface.address.to_string();
        self.0.iter().find(is_meant).cloned()
    }

    /// Takes away the addresses of spent interfaces. The names of these.
    pub(crate) fn take_spent(&self, found: &mut Vec<Interface>) -> Vec<String> {
        let is_spent = |one: &Interface| self.of(one).is_some_and(|allowance| allowance.is_spent());
        let spent = found.extract_if(.., |one| is_spent(one)).map(|one| one.name);
        let mut names: Vec<String> = spent.collect();
        names.dedup();
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(name: &str, address: &str) -> Interface {
        Interface { name: name.into(), address: address.parse().unwrap(), twin: 0, prefix_bits: 24, unusable: None }
    }

    #[test]
    fn datagrams_count_with_their_headers_and_what_is_spent_lets_nothing_out() {
        let allowance = Allowance::new("wwan0", ByteCount::new(3_000));
        allowance.count(2, 2_400, true);
        assert_eq!(allowance.used(), ByteCount::new(2_456));
        assert!(allowance.lets_out());
        allowance.count(1, 1_200, false);
        assert_eq!(allowance.used(), ByteCount::new(3_704));
        assert!(allowance.is_spent() && !allowance.lets_out());
        allowance.grant(ByteCount::new(4_000));
        assert!(allowance.lets_out(), "a new month has begun");
    }

    #[test]
    fn spent_interfaces_are_taken_away_by_name_and_by_address() {
        let all = Allowances::from(vec![
            Allowance::new("wwan0", ByteCount::ZERO),
            Allowance::new("192.0.2.7", ByteCount::ZERO),
            Allowance::new("eth0", ByteCount::new(1)),
        ]);
        let mut found = vec![
            interface("wwan0", "10.0.0.1"),
            interface("wwan0", "2001:db8::1"),
            interface("eth0", "10.0.1.1"),
            interface("wlan0", "192.0.2.7"),
        ];
        assert_eq!(all.take_spent(&mut found), ["wwan0", "wlan0"]);
        assert_eq!(found, [interface("eth0", "10.0.1.1")]);
    }
}
