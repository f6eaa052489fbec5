//! The goodput of senders over recorded links, in parts of what each link carries alone.

use fairpath_scenario::Remedies;
use rayon::prelude::*;

use crate::drives::*;

pub(crate) fn table() {
    let cures = [
        ("none", NONE),
        ("clamp 3/2", Remedies { bloat_clamp: Some(1.5), ..NONE }),
        ("probe", Remedies { probe: true, ..NONE }),
    ];
    for (pair, direction) in PAIRS.into_iter().flat_map(|pair| ["down", "up"].map(|direction| (pair, direction))) {
        let Some(traces) = traces(pair, direction) else { return };
        for congestion in ["reno", "cubic", "bbr", "auto"] {
            let alone = |path: usize| drive(&traces[path..=path], Sender(congestion, "min_rtt", NONE)).0;
            let sum = alone(0) + alone(1);
            let senders = ["min_rtt", "arrival"]
                .into_iter()
                .flat_map(|scheduler| cures.map(|(name, cure)| (scheduler, name, Sender(congestion, scheduler, cure))));
            let rows: Vec<_> = senders
                .collect::<Vec<_>>()
                .into_par_iter()
                .map(|(scheduler, name, who)| {
                    let (mbps, slowest) = drive(&traces, who);
                    format!("{scheduler} {name} {:.2} ({slowest:.0} ms)", mbps / sum)
                })
                .collect();
            println!(
                "{} and {} {direction}, {congestion}: {sum:.1} Mbit/s alone; {}",
                OPERATORS[pair[0]],
                OPERATORS[pair[1]],
                rows.join(", ")
            );
        }
    }
}
