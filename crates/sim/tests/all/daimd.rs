//! DAIMD on hosts that delay their acknowledgements, as real ones do.

use fairpath_core::Timestamp;
use fairpath_net::QueueConfig;
use fairpath_sim::{FlowIndex, Outcome, Recorder, View, run};

use crate::common::{Net, ms};

/// How often a measured delay made a window of the first flow smaller.
#[derive(Default)]
struct DelayCuts(u64);

impl Recorder for DelayCuts {
    fn on_sample(&mut self, _now: Timestamp, view: &View<'_>) {
        self.0 = view.paths().filter(|(flow, _)| *flow == FlowIndex(0)).map(|(_, path)| path.delay_cuts).sum();
    }
}

/// A flow over two paths of 10 and 5 Mbit/s, whose queues hold a bandwidth-delay product, with a Reno flow
/// beside it on each [DAIMD2016 Table II]; all of them acknowledge every second packet.
fn beside_reno(congestion: &str, round_trip_ms: u64) -> (Outcome, u64) {
    let mut net = Net::new(120, 1).warm_up(20);
    let one_way = ms(round_trip_ms / 2);
    let paths = [10, 5].map(|mbps| {
        // In packets of 1,500 B.
        let product = mbps * 1000 * round_trip_ms / 8 / 1500;
        net.path(mbps, one_way, QueueConfig::packets(product as usize))
    });
    net.flow("multipath", congestion, &paths);
    for path in &paths {
        net.flow("single", "reno", std::slice::from_ref(path));
    }
    for flow in &mut net.scenario.flows {
        flow.transport.ack_every = 2;
        flow.start_jitter = ms(100);
    }
    let mut cuts = DelayCuts::default();
    let outcome = run(&net.scenario, &mut cuts).unwrap();
    (outcome, cuts.0)
}

#[test]
fn daimd_yields_to_delay_where_acknowledgements_are_delayed() {
    for round_trip_ms in [40, 100] {
        let ((daimd, cuts), (lia, none)) = (beside_reno("daimd", round_trip_ms), beside_reno("lia", round_trip_ms));
        assert_eq!(none, 0, "LIA knows no delay");
        assert!(cuts >= 10, "{cuts} cuts at {round_trip_ms} ms");
        // Over many seeds DAIMD takes 0.66 to 0.78 of what LIA does.
        let [daimd, lia] = [daimd, lia].map(|outcome| outcome.flows[0].goodput.as_mbps_f64());
        assert!(daimd < 0.9 * lia, "{daimd} and {lia} Mbit/s at {round_trip_ms} ms");
    }
}
