//! When a sender connects again: files through outages with each of its pauses halved and doubled.
//!
//! `FAIRPATH_PAUSES_JSON=FILE cargo test -p fairpath-faults --test all pauses:: -- --ignored --nocapture` writes the
//! table.

use std::time::Duration;

use fairpath_faults::{Fault, Scheduled, Side, Transfer};
use fairpath_transfer::Resumption;
use rayon::prelude::*;

use crate::files::transfer;

/// A constant, and how to scale it by a factor.
type Constant = (&'static str, fn(&mut Resumption, f64));

const CONSTANTS: &[Constant] = &[
    ("silent", |all, times| all.silent = all.silent.mul_f64(times)),
    ("first", |all, times| all.pauses.first = all.pauses.first.mul_f64(times)),
    ("growth", |all, times| all.pauses.growth *= times),
    ("longest", |all, times| all.pauses.longest = all.pauses.longest.mul_f64(times)),
];

const TIMES: [(f64, &str); 2] = [(0.5, "half"), (2.0, "twice")];

/// The faults of an outage: when it begins, and how many times as long it is.
type Outage = (&'static str, fn(Duration, f64) -> Vec<(Duration, Fault)>);

const OUTAGES: &[Outage] = &[
    ("all links dark for 4 s", |at, times| dark(at, 4.0 * times)),
    ("all links dark for 12 s", |at, times| dark(at, 12.0 * times)),
    ("all links dark for 40 s", |at, times| dark(at, 40.0 * times)),
    ("all links dark for 150 s", |at, times| dark(at, 150.0 * times)),
    ("a receiver that is started again", |at, _| vec![(at, Fault::Restart { side: Side::Server, keeps_ports: true })]),
];

fn dark(at: Duration, seconds: f64) -> Vec<(Duration, Fault)> {
    vec![(at, Fault::All(false)), (at + Duration::from_secs_f64(seconds), Fault::All(true))]
}

/// How many seconds the transfer takes, and how many packets.
fn run(resumption: Resumption, faults: &[(Duration, Fault)]) -> [f64; 2] {
    let scheduled = |(whole, &(at, fault)): (usize, &_)| Scheduled { at, fault, whole };
    let faults = faults.iter().enumerate().map(scheduled).collect();
    let transfer = Transfer { resumption, faults, ..transfer() };
    let outcome = transfer.run().unwrap_or_else(|failure| panic!("{failure}\n{transfer}"));
    [outcome.virtual_time.as_secs_f64(), outcome.packets as f64]
}

/// The outage at several moments, each time a little longer, so that pauses begin and end anywhere within it.
fn runs(resumption: Resumption, (_, faults): &Outage) -> Vec<[f64; 2]> {
    let moments: Vec<u32> = (0..4).collect();
    let at = |nth: u32| Duration::from_secs(1) + Duration::from_millis(370) * nth;
    moments.into_par_iter().map(|nth| run(resumption, &faults(at(nth), 1.0 + 0.033 * f64::from(nth)))).collect()
}

#[test]
#[ignore = "a table; minutes of processor time"]
fn half_or_twice_of_each_pause_changes_what_an_outage_costs() {
    const MEASURES: [(&str, &str, f64); 2] = [("takes", "s", 0.1), ("packets", "", 10.0)];
    let all = |resumption: Resumption| -> Vec<_> { OUTAGES.par_iter().map(|one| runs(resumption, one)).collect() };
    let mut lines = Vec::new();
    let mut add = |what: String, unit: &str, samples: &[f64]| {
        let mean = samples.iter().sum::<f64>() / samples.len() as f64;
        println!("{what:<64} {mean:9.2} {unit:<2} {samples:.2?}");
        lines.push(serde_json::json!({ "what": what, "unit": unit, "samples": samples }));
    };
    let defaults = all(Resumption::DEFAULT);
    for ((outage, _), costs) in OUTAGES.iter().zip(&defaults) {
        for (of, (measure, unit, _)) in MEASURES.into_iter().enumerate() {
            let samples: Vec<f64> = costs.iter().map(|cost| cost[of]).collect();
            add(format!("the default: {outage}, {measure}"), unit, &samples);
        }
    }
    let mut without_effect = Vec::new();
    for (constant, change) in CONSTANTS {
        for (factor, times) in TIMES {
            let mut resumption = Resumption::DEFAULT;
            change(&mut resumption, factor);
            let mut changes = 0;
            for (((outage, _), costs), before) in OUTAGES.iter().zip(all(resumption)).zip(&defaults) {
                for (of, (measure, unit, least)) in MEASURES.into_iter().enumerate() {
                    let more: Vec<f64> = costs.iter().zip(before).map(|(is, was)| is[of] - was[of]).collect();
                    if (more.iter().sum::<f64>() / more.len() as f64).abs() >= least {
                        add(format!("{constant}, {times}: {outage}, {measure} more"), unit, &more);
                        changes += 1;
                    }
                }
            }
            if changes == 0 {
                without_effect.push(format!("{times} of {constant}"));
            }
        }
    }
    if let Some(file) = std::env::var_os("FAIRPATH_PAUSES_JSON") {
        let text = serde_json::to_string_pretty(&lines).expect("it is plain data");
        std::fs::write(&file, text + "\n").unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    }
    assert!(without_effect.is_empty(), "these change nothing: {without_effect:?}");
}
