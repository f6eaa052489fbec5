//! Whether a constant matters: what half and twice of it change, seed by seed.

use crate::{Cell, Estimate, Table, Verdict};

/// A constant of some parameters, and how it becomes so many times as large.
pub(super) type Constant<P> = (&'static str, fn(&mut P, f64));

/// Parameters with another value of one constant.
#[derive(Clone, Copy)]
pub(super) struct Variant<P> {
    pub(super) constant: &'static str,
    pub(super) times: &'static str,
    pub(super) parameters: P,
}

/// The measures of the default with one seed, and those of each variant.
pub(super) type Run<const M: usize> = ([f64; M], Vec<[f64; M]>);

/// Half and twice of each constant.
pub(super) fn variants<P: Default>(constants: &[Constant<P>]) -> impl Iterator<Item = Variant<P>> {
    constants.iter().flat_map(|(constant, change)| {
        TIMES.map(|(factor, times)| {
            let mut parameters = P::default();
            change(&mut parameters, factor);
            Variant { constant, times, parameters }
        })
    })
}

/// By how much the measure `of` is another one with the variant `at` than with the default.
pub(super) fn difference<const M: usize>(at: usize, of: usize) -> impl Fn(&Run<M>) -> f64 {
    move |(default, changed)| changed[at][of] - default[of]
}

/// The measure `of`: of the default, and by how much it is another one with each variant. A column for each network.
pub(super) fn table<P, const M: usize>(
    (name, title): (&str, &str),
    networks: &[&str],
    variants: &[Variant<P>],
    runs: &[Vec<Run<M>>],
    of: usize,
) -> Table {
    let columns: Vec<(&str, &str)> = networks.iter().map(|network| (*network, "%")).collect();
    let mut table = Table::new(name, title, &["constant", "its value"], &columns);
    let cells = |cell: &dyn Fn(&Run<M>) -> f64| -> Vec<Cell> {
        runs.iter().map(|runs| Cell::of(runs.iter().map(cell))).collect()
    };
    table.push(&["the default", ""], &cells(&|(default, _)| default[of]));
    for (at, variant) in variants.iter().enumerate() {
        table.push(&[variant.constant, variant.times], &cells(&difference(at, of)));
    }
    table
}

/// The other values of a constant.
const TIMES: [(f64, &str); 2] = [(0.5, "half"), (2.0, "twice")];

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
