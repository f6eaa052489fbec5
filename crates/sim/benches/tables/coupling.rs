//! Coupled BBRv3 beside others: minutes.

use fairpath_net::QueueConfig;
use fairpath_sim::run;

use crate::common::{Net, ms};
use crate::rivals::beside;

pub(crate) fn table() {
    for rival in ["reno", "cubic", "bbr3", "bbr"] {
        for queue in [12, 20, 50, 100, 200, 1_000] {
            let [one, two, four, coupled_bbr, uncoupled] =
                [("bbr3", 1), ("coupled_bbr3", 2), ("coupled_bbr3", 4), ("coupled_bbr", 2), ("uncoupled bbr3", 2)]
                    .map(|(ours, paths)| beside(rival, ms(queue), ours, paths, 180));
            println!(
                "| {rival} | {queue} ms | {one:.2} | {:.2} | {:.2} | {:.2} | {:.2} |",
                two / one,
                four / one,
                coupled_bbr / one,
                uncoupled / one
            );
        }
    }
    println!("beside nobody, two links of 20 and 5 Mbit/s, together and apart");
    for congestion in ["coupled_bbr3", "uncoupled bbr3"] {
        let mut net = Net::new(60, 1).warm_up(10);
        let paths =
            [(20, 10), (5, 40)].map(|(mbps, one_way)| net.path(mbps, ms(one_way), QueueConfig::sojourn(ms(100))));
        net.flow("ours", congestion, &paths);
        println!("{congestion}: {}", run(&net.scenario, &mut ()).unwrap().flows[0].goodput);
    }
}
