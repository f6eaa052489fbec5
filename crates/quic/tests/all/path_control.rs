//! Terms of paths that are changed while data flows.

use std::time::Duration;

use bytes::Bytes;
use fairpath_core::Bitrate;
use fairpath_quic::{
    BackupReason, ConnectConfig, Connection, EngineConfig, ListenConfig, Listener, PathControl, PathUse, RECORD,
    Record, connect,
};

/// The rate of a connection, so that loopback is a network.
const LIMIT: Bitrate = Bitrate::from_mbps(40);

/// Two paths over which one end sends without an end, and the control of each end.
struct Sending {
    _listener: Listener,
    client: Connection,
    /// The sender's control, and the receiver's.
    ours: PathControl,
    theirs: PathControl,
    /// The addresses of the receiver, a path to each.
    addresses: [&'static str; 2],
    /// Those of the sender.
    locals: [&'static str; 2],
}

impl Sending {
    async fn begin(addresses: [&'static str; 2], locals: [&'static str; 2]) -> Self {
        let [ours, theirs] = [(); 2].map(|()| PathControl::new());
        let via = addresses.map(str::to_owned).to_vec();
        let listen = ListenConfig { via, control: theirs.clone(), ..ListenConfig::new().unwrap() };
        let listener = Listener::bind(listen).unwrap();
        let engine = EngineConfig { limit: Some(LIMIT), ..EngineConfig::live() };
        let (via, control) = (locals.map(str::to_owned).to_vec(), ours.clone());
        let config =
            ConnectConfig { via, control, engine, ..ConnectConfig::new(listener.addresses(), listener.fingerprint()) };
        let (client, server) = tokio::join!(connect(config), listener.accept());
        let (client, server) = (client.unwrap(), server.unwrap());
        assert!(client.paths_open(2, Duration::from_secs(5)).await);
        tokio::spawn(async move { while server.recv_record().await.is_ok() {} });
        let sending = client.clone();
        tokio::spawn(async move {
            let data = Bytes::from(vec![1; RECORD]);
            for record in 0_u64.. {
                let record = Record { object: 1, offset: record * RECORD as u64, data: data.clone() };
                if sending.send_record(record).await.is_err() {
                    return;
                }
            }
        });
        Self { _listener: listener, client, ours, theirs, addresses, locals }
    }

    /// The rates at which the two addresses of the sender send for a while, in Mbit/s.
    async fn rates(&self) -> [f64; 2] {
        // Until what changed is told, and what was queued has left.
        tokio::time::sleep(Duration::from_millis(400)).await;
        let count = async || {
            let paths = self.client.paths_now().await;
            self.locals.map(|local| {
                let from = |local: &str| local.parse().ok();
                paths.iter().filter(|path| path.address() == from(local)).map(|path| path.acked.get()).sum::<u64>()
            })
        };
        let (before, time) = (count().await, Duration::from_millis(800));
        tokio::time::sleep(time).await;
        let after = count().await;
        [0, 1].map(|at| (after[at] - before[at]) as f64 * 8e-6 / time.as_secs_f64())
    }

    fn reasons(&self) -> Vec<PathUse> {
        let locals = self.locals.map(|local| local.parse().ok());
        let paths = self.client.paths();
        let of = |local| paths.iter().find(|path| path.address() == local).map(|path| path.path_use);
        locals.into_iter().filter_map(of).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_that_sends_caps_parks_and_prefers_paths_while_data_flows() {
    let sending = Sending::begin(["127.0.61.1", "127.0.62.1"], ["127.0.63.1", "127.0.64.1"]).await;
    let [first, second] = sending.locals;
    // Half of what is sent: a cap of each that is far below what loopback carries.
    for local in sending.locals {
        sending.ours.cap(local, Some(Bitrate::from_mbps(20)));
    }
    let both = sending.rates().await;
    assert!(both.iter().all(|rate| *rate > 10.0), "{both:?}");
    sending.ours.cap(second, Some(Bitrate::from_mbps(2)));
    let capped = sending.rates().await;
    assert!(capped[1] < 3.0 && capped[1] > 0.5 && capped[0] > 10.0, "{capped:?}");
    sending.ours.cap(second, Some(Bitrate::from_mbps(20)));
    sending.ours.park(first, true);
    let parked = sending.rates().await;
    assert!(parked[0] < 0.5 && parked[1] > 10.0, "{parked:?}");
    assert_eq!(sending.reasons()[0], PathUse::Backup(BackupReason::Asked));
    sending.ours.park(first, false);
    let back = sending.rates().await;
    assert!(back.iter().all(|rate| *rate > 10.0), "{back:?}");
    // Without caps each alone carries all.
    sending.locals.iter().for_each(|local| sending.ours.cap(local, None));
    for (preferred, at) in [(second, 1), (first, 0)] {
        sending.ours.prefer(Some(preferred));
        let rates = sending.rates().await;
        assert!(rates[at] > 0.9 * (rates[0] + rates[1]) && rates[at] > 20.0, "{preferred}: {rates:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_that_sends_heeds_what_the_other_changes_and_takes_back() {
    let sending = Sending::begin(["127.0.65.1", "127.0.66.1"], ["127.0.67.1", "127.0.68.1"]).await;
    sending.locals.iter().for_each(|local| sending.ours.cap(local, Some(Bitrate::from_mbps(20))));
    // The receiver parks the one of its addresses to which the first of ours sends.
    let remote = |at: usize| {
        let local = sending.locals[at].parse().ok();
        let paths = sending.client.paths();
        let path = paths.iter().find(|path| path.address() == local && path.path_use == PathUse::Open);
        path.map(|path| path.remote.ip().to_string()).unwrap()
    };
    let (first, second) = (remote(0), remote(1));
    assert!(sending.addresses.contains(&first.as_str()) && first != second);
    sending.theirs.park(&first, true);
    let parked = sending.rates().await;
    assert!(parked[0] < 0.5 && parked[1] > 10.0, "{parked:?}");
    assert_eq!(sending.reasons()[0], PathUse::Backup(BackupReason::Declined));
    sending.theirs.park(&first, false);
    sending.theirs.cap(&second, Some(Bitrate::from_mbps(2)));
    let capped = sending.rates().await;
    assert!(capped[1] < 3.0 && capped[0] > 10.0, "{capped:?}");
    // Nothing is left that was said: the peer has to hear of that, too.
    sending.theirs.cap(&second, None);
    let free = sending.rates().await;
    assert!(free.iter().all(|rate| *rate > 10.0), "{free:?}");
}
