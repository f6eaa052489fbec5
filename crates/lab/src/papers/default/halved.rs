//! Whether a constant matters: what half and twice of it change, seed by seed.

use crate::{Estimate, Verdict};

/// The other values of a constant.
pub(super) const TIMES: [(f64, &str); 2] = [(0.5, "half"), (2.0, "twice")];

/// A number of things, so many times as many.
pub(super) fn count(value: u32, times: f64) -> u32 {
    (f64::from(value) * times).round() as u32
}

/// Whether another value of the constant changes anything by `noticed`, by its differences, seed by seed. Some of many
/// differ by chance: the first half of the seeds chooses one, the second judges it.
pub(super) fn matters(constant: &str, claim: &str, all: Vec<(String, Vec<f64>)>, noticed: f64) -> Verdict {
    let judged = all.into_iter().map(|(what, samples)| {
        let (first, second) = samples.split_at(samples.len() / 2);
        let chosen_by = Estimate::of(first.iter().copied()).unwrap_or_else(Estimate::unknown);
        let sign = chosen_by.mean.signum();
        let judged_by = Estimate::of(second.iter().map(|sample| sign * sample)).unwrap_or_else(Estimate::unknown);
        let clear = chosen_by.mean.abs() - chosen_by.half_width.unwrap_or_default();
        (what, clear, judged_by)
    });
    let verdict = Verdict::ours(&format!("{constant} matters"), claim);
    let reason = "It was made for what none of these networks has, or chance hides it over so many seeds.";
    match judged.max_by(|(_, one, _), (_, other, _)| one.total_cmp(other)) {
        Some((what, _, estimate)) => verdict.at_least(&what, estimate, noticed).because(reason),
        None => verdict,
    }
}
