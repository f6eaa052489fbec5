//! Connections of the far end to targets: names are resolved here, and addresses judged afterwards.
//!
//! Where a name has several addresses, the families take turns. The next is tried a quarter of a second after the last, or at once
//! where that failed (RFC 8305).

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use crate::reach::Reach;
use crate::refusal::{Refusal, RefusalKind};
use crate::target::{Host, Target};

/// How long a name may take.
const RESOLVED: Duration = Duration::from_secs(10);

/// How long all attempts together may take.
const CONNECTED: Duration = Duration::from_secs(30);

/// How long after one attempt the next begins [RFC8305 §5].
const STAGGER: Duration = Duration::from_millis(250);

/// The most addresses of a name that are tried.
const ADDRESSES_MAX: usize = 8;

/// Connects to a target that `reach` allows. `own` are the addresses of this machine.
pub(crate) async fn dial(target: &Target, reach: &Reach, own: &[IpAddr]) -> Result<TcpStream, Refusal> {
    let addresses = addresses(target, reach, own).await?;
    let silent = || Refusal::new(RefusalKind::TimedOut, format!("{target} does not answer"));
    timeout(CONNECTED, race(target, addresses)).await.unwrap_or_else(|_| Err(silent()))
}

/// The addresses of a target that may be reached, in the order in which they are tried; at least one.
pub(crate) async fn addresses(target: &Target, reach: &Reach, own: &[IpAddr]) -> Result<Vec<SocketAddr>, Refusal> {
    let found: Vec<SocketAddr> = match &target.host {
        Host::Address(address) => vec![SocketAddr::new(address.to_canonical(), target.port)],
        Host::Name(name) => resolve(name, target.port).await?,
    };
    let mut objection = None;
    let mut allowed: Vec<SocketAddr> = found
        .into_iter()
        .filter(|address| match reach.objection(*address, own) {
            None => true,
            why => {
                objection = objection.take().or(why);
                false
            }
        })
        .collect();
    if allowed.is_empty() {
        let why = objection.unwrap_or_else(|| format!("{target} has no address"));
        return Err(Refusal::new(RefusalKind::Forbidden, why));
    }
    interleave(&mut allowed);
    allowed.truncate(ADDRESSES_MAX);
    Ok(allowed)
}

async fn resolve(name: &str, port: u16) -> Result<Vec<SocketAddr>, Refusal> {
    let unknown =
        |why: String| Refusal::new(RefusalKind::UnknownName, format!("the far end cannot resolve {name}: {why}"));
    match timeout(RESOLVED, tokio::net::lookup_host((name, port))).await {
        Ok(Ok(found)) => Ok(found.collect()),
        Ok(Err(error)) => Err(unknown(error.to_string())),
        Err(_) => Err(unknown("no answer in time".to_owned())),
    }
}

/// Has the families take turns, beginning with that of the first address.
fn interleave(addresses: &mut Vec<SocketAddr>) {
    let Some(first) = addresses.first().map(SocketAddr::is_ipv4) else { return };
    let (mut one, mut other): (VecDeque<_>, VecDeque<_>) =
        addresses.drain(..).partition(|address: &SocketAddr| address.is_ipv4() == first);
    while !one.is_empty() || !other.is_empty() {
        addresses.extend(one.pop_front());
        addresses.extend(other.pop_front());
    }
}

/// The first connection that is made; the first error where none is.
async fn race(target: &Target, addresses: Vec<SocketAddr>) -> Result<TcpStream, Refusal> {
    let mut left = addresses.into_iter();
    let mut attempts = JoinSet::new();
    let mut failure = None;
    let mut next_at = Instant::now();
    loop {
        if attempts.is_empty() {
            next_at = Instant::now();
        }
        if left.len() == 0 && attempts.is_empty() {
            return Err(
                failure.unwrap_or_else(|| Refusal::new(RefusalKind::Failed, format!("{target} has no address")))
            );
        }
        tokio::select! {
            biased;
            Some(done) = attempts.join_next() => match done {
                Ok(Ok(tcp)) => return Ok(tcp),
                Ok(Err(error)) => {
                    failure.get_or_insert(Refusal::of(target, &error));
                    next_at = Instant::now();
                }
                Err(_) => {}
            },
            () = sleep_until(next_at), if left.len() > 0 => {
                next_at = Instant::now() + STAGGER;
                if let Some(address) = left.next() {
                    attempts.spawn(TcpStream::connect(address));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn local() -> Reach {
        "127.0.0.0/8,[::1]".parse().unwrap()
    }

    #[test]
    fn families_take_turns() {
        let mut addresses: Vec<SocketAddr> =
            ["[::1]:1", "[::2]:1", "1.1.1.1:1", "[::3]:1", "1.1.1.2:1"].map(|text| text.parse().unwrap()).to_vec();
        interleave(&mut addresses);
        let text: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        assert_eq!(text, ["[::1]:1", "1.1.1.1:1", "[::2]:1", "1.1.1.2:1", "[::3]:1"]);
    }

    #[tokio::test]
    async fn names_are_judged_by_the_addresses_that_they_lead_to() {
        let own = ["127.0.0.9".parse().unwrap()];
        for target in ["localhost:1", "127.1:1", "2130706433:1", "[::ffff:127.0.0.1]:1"] {
            let refusal = dial(&target.parse().unwrap(), &Reach::default(), &own).await.unwrap_err();
            assert_eq!(refusal.kind, RefusalKind::Forbidden, "{target}: {refusal}");
            assert!(refusal.words.contains("a loopback address"), "{refusal}");
        }
        let refusal = dial(&"no-such-host.invalid:1".parse().unwrap(), &Reach::default(), &own).await.unwrap_err();
        assert_eq!(refusal.kind, RefusalKind::UnknownName, "{refusal}");
    }

    #[tokio::test]
    async fn the_next_address_is_tried_at_once_where_one_refuses() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let target = Target::named("127.0.0.2", port).unwrap();
        let refusal = dial(&target, &local(), &[]).await.unwrap_err();
        assert_eq!(refusal.kind, RefusalKind::Refused);
        let both = vec![SocketAddr::from(([127, 0, 0, 2], port)), SocketAddr::from(([127, 0, 0, 1], port))];
        let begun = Instant::now();
        let tcp = race(&target, both).await.unwrap();
        assert_eq!(tcp.peer_addr().unwrap().ip(), IpAddr::from([127, 0, 0, 1]));
        assert!(begun.elapsed() < STAGGER, "{:?}", begun.elapsed());
    }
}
