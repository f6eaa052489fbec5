//! A connection beside a rival on one link.

use core::time::Duration;

use fairpath_net::QueueConfig;
use fairpath_sim::run;

use crate::common::{Net, ms};

/// The rate of one connection in parts of that of a rival, over a link of 20 Mbit/s and 20 ms there and 20 ms back;
/// the median of three seeds, from 30 s on.
pub(crate) fn beside(rival: &str, queue: Duration, ours: &str, paths: usize, seconds: u64) -> f64 {
    let mut shares: Vec<f64> = (1..=3)
        .map(|seed| {
            let mut net = Net::new(seconds, seed).warm_up(30);
            let bottleneck = net.path(20, ms(20), QueueConfig::sojourn(queue));
            net.flow("ours", ours, &vec![bottleneck.clone(); paths]).start_jitter = ms(2_000);
            net.flow("rival", rival, &[bottleneck]).start_jitter = ms(2_000);
            let outcome = run(&net.scenario, &mut ()).unwrap();
            outcome.flows[0].goodput.as_mbps_f64() / outcome.flows[1].goodput.as_mbps_f64()
        })
        .collect();
    shares.sort_by(f64::total_cmp);
    shares[1]
}
