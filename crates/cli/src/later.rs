//! Tickets for the addresses that a machine gets while it listens.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use fairpath_transfer::{MAX_ADDRESSES, Ticket};
use tokio::sync::watch;

/// Told once such a ticket is printed.
pub(crate) const PRINTED: &str = "this machine has another address now: the ticket just printed names it too. A sender that does not \
                                  come back by itself goes on where it was when it is started again with that one";

/// Makes tickets with the key and the secret of the first.
#[derive(Debug)]
pub(crate) struct Later {
    addresses: watch::Receiver<Vec<SocketAddr>>,
    /// The addresses that a ticket has named.
    named: BTreeSet<SocketAddr>,
    first: Ticket,
}

impl Later {
    pub(crate) fn new(addresses: watch::Receiver<Vec<SocketAddr>>, first: Ticket) -> Self {
        Self { addresses, named: first.addresses.iter().copied().collect(), first }
    }

    /// Waits until the machine is reached at an address that no ticket named. An address that comes back needs none.
    pub(crate) async fn ticket(&mut self) -> Ticket {
        loop {
            if self.addresses.changed().await.is_err() {
                return std::future::pending().await;
            }
            let mut addresses = self.addresses.borrow_and_update().clone();
            addresses.truncate(MAX_ADDRESSES);
            let known = self.named.len();
            self.named.extend(&addresses);
            if self.named.len() > known {
                return Ticket { addresses, ..self.first.clone() };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use fairpath_transfer::Secret;

    use super::*;

    #[tokio::test]
    async fn a_ticket_is_printed_again_for_an_address_that_none_named() {
        let [a, b]: [SocketAddr; 2] = ["192.0.2.1:7", "192.0.2.2:7"].map(|text| text.parse().unwrap());
        let first = Ticket { addresses: vec![a], fingerprint: [7; 32], secret: Secret::from_bytes([1; 16]) };
        let (sender, addresses) = watch::channel(vec![a]);
        let mut later = Later::new(addresses, first.clone());
        sender.send(vec![b]).unwrap();
        assert_eq!(later.ticket().await, Ticket { addresses: vec![b], ..first });
        for back in [vec![a], vec![], vec![b, a]] {
            sender.send(back).unwrap();
            assert!(tokio::time::timeout(Duration::from_millis(20), later.ticket()).await.is_err());
        }
    }
}
