//! Sixteen pairs of links, on which the default is compared with what a public tunnel does.

use fairpath_engine::Coupling;
use fairpath_sim::SimError;

use super::{Section, TODAY};
use crate::papers::default::cell::{HYBRID, in_parts_of};
use crate::papers::odd_couple::profiles::{PATIENCE, PROFILES};
use crate::{Cell as Number, Context, Failure, Table, Verdict};

const COLUMNS: [(&str, &str); 4] = [
    ("coupled CUBIC", "Mbit/s"),
    ("hybrid CUBIC", "Mbit/s"),
    ("in parts of coupled CUBIC", ""),
    ("in parts of the better link alone", ""),
];

/// The pair that loses 2 % at random, with jitter of 20 ms and more.
const CONGESTED: &str = "congested";

pub(super) fn profiles(context: &Context, seeds: &[u64]) -> Result<Section, Failure> {
    let last = PROFILES.len() - 1;
    let profiles = context.pick(PROFILES[last..].to_vec(), PROFILES.to_vec());
    let runs = context.sweep(&profiles, seeds, |profile, seed| {
        let one = |(who, over): (_, &[usize])| -> Result<f64, SimError> {
            let who: super::Contender = who;
            let outcome = fairpath_sim::run(&profile.transfer(who.engine(Coupling::Auto), over, seed), &mut ())?;
            let flow = &outcome.flows[0];
            let took = flow.completions.first().copied().unwrap_or(PATIENCE);
            Ok(flow.delivered.as_f64() * 8e-6 / took.as_secs_f64())
        };
        let bonds: [(_, &[usize]); 4] = [(TODAY, &[0, 1]), (HYBRID, &[0, 1]), (TODAY, &[0]), (TODAY, &[1])];
        bonds.into_iter().map(one).collect::<Result<Vec<_>, SimError>>()
    })?;
    let title = "20 MiB over each of sixteen pairs of links, and over the better of them with coupled CUBIC";
    let mut table = Table::new("profiles", title, &["profile"], &COLUMNS);
    let mut kept = Verdict::ours("profiles", "On each of sixteen profiles it has 0.97 of coupled CUBIC.");
    let mut best = Verdict::ours("profiles, best link", "On each of them it has 0.97 of the better link alone.");
    let mut more = Verdict::ours("profiles, congested", "On `congested` it has more than coupled CUBIC.");
    for (profile, runs) in profiles.iter().zip(&runs) {
        let of = |at: usize| runs.iter().map(move |run| run[at]);
        let better = runs.iter().map(|run| run[2].max(run[3]));
        let (today, link) = (in_parts_of(of(1), of(0)), in_parts_of(of(1), better));
        table.row([profile.name], [Number::of(of(0)), Number::of(of(1)), today.into(), link.into()]);
        let of = |column: usize| table.estimate(&[profile.name], COLUMNS[column].0);
        kept = kept.at_least(profile.name, of(2), 0.97);
        best = best.at_least(profile.name, of(3), 0.97);
        if profile.name == CONGESTED {
            more = more.at_least(profile.name, of(2), 1.0);
        }
    }
    let reason = "Where delays jitter, the delay of most packets looks like a queue, and windows grow slowly.";
    let loss = "Losses bound it there, and not the queue: both answer them alike.";
    Ok(Section { table, verdicts: vec![kept.because(reason), best.because(reason), more.because(loss)], missing: None })
}
