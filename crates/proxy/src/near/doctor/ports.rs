//! The addresses of the far end, asked one by one from an interface.

use std::net::SocketAddr;
use std::time::Duration;

use fairpath::{Bitrate, Endpoint};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::Examiner;
use crate::far::ALPN;
use crate::greeting;
use crate::near::NearError;
use crate::near::state::enter;
use crate::wire::Direction;

/// How long an address may take to answer.
pub(super) const ASKED: Duration = Duration::from_secs(4);

/// The most addresses that are asked.
const ADDRESSES_MAX: usize = 16;

/// The most ports of a host whose rates are measured, beside the first.
pub(super) const PORTS_MAX: usize = 3;

/// The other ports of the same host.
pub(super) fn further_ports(addresses: &[SocketAddr], first: SocketAddr) -> Vec<SocketAddr> {
    let is_other = |address: &&SocketAddr| address.ip() == first.ip() && address.port() != first.port();
    addresses.iter().filter(is_other).take(PORTS_MAX).copied().collect()
}

/// An address, and how long it took to answer.
type Answer = (SocketAddr, Option<Duration>);

impl Examiner {
    /// How long each address of the far end takes to answer from an interface, and whether those that do see it at one address.
    pub(super) async fn asked(&self, name: &str) -> Result<(Vec<Answer>, Option<bool>), NearError> {
        let (fingerprint, guard) = (self.joined.fingerprint()?, self.joined.guard_key()?);
        // One endpoint has one socket for the interface: a NAT has one mapping for it, or one for each address.
        let endpoint = Endpoint::builder().alpn(ALPN).guard(guard).via([name]).paths_max(1).bind()?;
        let mut asked = JoinSet::new();
        for (place, address) in self.joined.addresses.iter().copied().take(ADDRESSES_MAX).enumerate() {
            let (endpoint, key) = (endpoint.clone(), self.key.clone());
            asked.spawn(async move {
                let begun = Instant::now();
                let exchange = async {
                    let connection = endpoint.connect([address], fingerprint).await.ok()?;
                    let took = begun.elapsed();
                    let greeting = greeting::greet(&connection, &key, None);
                    let admitted = enter(&connection, greeting).await.ok();
                    connection.close(0, "examined").await;
                    Some((took, admitted.and_then(|admitted| admitted.seen)))
                };
                (place, address, timeout(ASKED, exchange).await.ok().flatten())
            });
        }
        let mut answers = asked.join_all().await;
        answers.sort_unstable_by_key(|(place, _, _)| *place);
        let seen: Vec<SocketAddr> = answers.iter().filter_map(|(_, _, answer)| (*answer)?.1).collect();
        let is_one = (seen.len() > 1).then(|| seen.windows(2).all(|two| two[0] == two[1]));
        let answers = answers.into_iter().map(|(_, address, answer)| (address, answer.map(|(took, _)| took)));
        Ok((answers.collect(), is_one))
    }

    /// The rates that come in from these addresses, each alone. One that is not reached is left out.
    pub(super) async fn rates_of_ports(
        &self,
        name: &str,
        addresses: &[SocketAddr],
    ) -> Result<Vec<(SocketAddr, Bitrate)>, NearError> {
        let mut rates = Vec::new();
        for address in addresses {
            let Ok((connection, _)) = self.connect(vec![name.to_owned()], 1, &[*address]).await? else { continue };
            let rate = self.measure(&connection, Direction::Down).await;
            connection.close(0, "examined").await;
            rates.extend(rate.ok().map(|rate| (*address, rate)));
        }
        Ok(rates)
    }
}
