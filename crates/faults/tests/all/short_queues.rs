//! Links with queues of a second that nobody else uses, over the real stack in virtual time.

use std::time::Duration;

use fairpath_core::Bitrate;
use fairpath_faults::Crowd;
use fairpath_net::{LinkConfig, QueueConfig};
use fairpath_quic_core::EngineConfig;

const ROUND_TRIP: Duration = Duration::from_millis(40);
const LINKS_MBPS: [u64; 2] = [20, 10];

/// Both links begin full of nothing; what the start does to them is over when it is looked.
const WARM_UP: Duration = Duration::from_secs(5);
const MEASURED: Duration = Duration::from_secs(15);
const LOOK: Duration = Duration::from_millis(20);

/// The goodput in Mbit/s, and how much longer round trips take on the mean than they would without a queue, path by path.
fn alone(congestion: &str) -> (f64, [Duration; 2]) {
    let mut crowd = Crowd::new(1);
    let queue = QueueConfig::sojourn(Duration::from_secs(1));
    let paths = LINKS_MBPS.map(|mbps| {
        let link = LinkConfig::new(Bitrate::from_mbps(mbps)).queue(queue.clone());
        (crowd.link(&format!("{mbps} Mbit/s"), &link), ROUND_TRIP)
    });
    let engine = EngineConfig { congestion: congestion.into(), ..EngineConfig::live() };
    let ours = crowd.join(&engine, &paths);
    crowd.run_for(WARM_UP);
    let (before, mut waits, mut looks) = (crowd.received(ours), [Duration::ZERO; 2], 0);
    while crowd.elapsed() < WARM_UP + MEASURED {
        crowd.run_for(LOOK);
        let (_, snapshots) = crowd.snapshots(ours);
        assert_eq!(snapshots.len(), 2, "both paths are open");
        for (wait, path) in waits.iter_mut().zip(&snapshots) {
            *wait += path.rtt.expect("it was measured").latest.saturating_sub(ROUND_TRIP);
        }
        looks += 1;
    }
    assert_eq!(crowd.violation(), None);
    let mbps = (crowd.received(ours) - before) as f64 * 8e-6 / MEASURED.as_secs_f64();
    (mbps, waits.map(|wait| wait / looks))
}

#[test]
fn hybrid_cubic_keeps_them_short_and_carries_what_coupled_cubic_does_which_fills_them() {
    let [(today, filled), (hybrid, short)] = ["coupled_cubic", "hybrid_cubic"].map(alone);
    println!("coupled CUBIC: {today:.2} Mbit/s, {filled:?}; hybrid CUBIC: {hybrid:.2} Mbit/s, {short:?}");
    assert!(filled.iter().all(|wait| *wait > Duration::from_millis(200)), "{filled:?}");
    assert!(short.iter().all(|wait| *wait < Duration::from_millis(15)), "{short:?}");
    assert!(hybrid >= 0.95 * today, "{hybrid:.2} of {today:.2} Mbit/s");
}
