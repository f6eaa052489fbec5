//! The optimum against a solver that is given every one of the 2ⁿ − 1 constraints.

use fairpath_rate::{PacketRate, Region, fair_shares, floors, greedy, greedy_within};
use microlp::{ComparisonOp, OptimizationDirection, Problem, SolveOutcome};
use proptest::prelude::*;

/// The greatest value by linear programming over all sets of paths, with a least and a greatest rate for each path.
fn by_all_sets(tcp: &[f64], values: &[f64], bounds: &[(f64, f64)]) -> f64 {
    let mut problem = Problem::new(OptimizationDirection::Maximize);
    let variables: Vec<_> = values.iter().zip(bounds).map(|(value, bounds)| problem.add_var(*value, *bounds)).collect();
    for set in 1_u32..1 << tcp.len() {
        let members = (0..tcp.len()).filter(|path| set >> path & 1 == 1);
        let most = members.clone().map(|path| tcp[path]).fold(0.0, f64::max);
        let terms: Vec<_> = members.map(|path| (variables[path], 1.0)).collect();
        problem.add_constraint(terms.as_slice(), ComparisonOp::Le, most);
    }
    match problem.solve().expect("the floors are friendly, and the region is bounded") {
        SolveOutcome::Solution(solution) => solution.objective(),
        SolveOutcome::Interrupted(_) => panic!("it has no limit of time"),
    }
}

fn rates(numbers: &[f64]) -> Vec<PacketRate> {
    numbers.iter().copied().map(PacketRate::new).collect()
}

fn numbers(rates: &[PacketRate]) -> Vec<f64> {
    rates.iter().map(|rate| rate.per_second()).collect()
}

/// Rates and values with ties among them, and some paths that are worth nothing.
fn instance() -> impl Strategy<Value = (Vec<f64>, Vec<f64>, f64)> {
    let number = prop_oneof![Just(10.0), Just(50.0), 0.1..300.0_f64];
    let value = prop_oneof![Just(0.0), Just(0.5), 0.0..1.0_f64];
    let paths = proptest::collection::vec((number, value), 1..8);
    (paths, prop_oneof![Just(0.0), 0.0..0.3_f64]).prop_map(|(paths, probing)| {
        let (tcp, values) = paths.into_iter().unzip();
        (tcp, values, probing)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn the_greedy_rates_are_friendly_and_as_good_as_any((tcp, values, probing) in instance()) {
        let region = Region::new(&rates(&tcp)).unwrap();
        let floors = floors(&region, probing);
        let found = greedy(&region, &values, &floors);
        prop_assert!(region.slack(&found) > -1e-9, "{found:?}");
        prop_assert!(found.iter().zip(&floors).all(|(rate, floor)| rate >= floor));
        let value: f64 = numbers(&found).iter().zip(&values).map(|(rate, value)| rate * value).sum();
        let bounds: Vec<(f64, f64)> = numbers(&floors).into_iter().map(|floor| (floor, f64::INFINITY)).collect();
        let best = by_all_sets(&tcp, &values, &bounds);
        prop_assert!((value - best).abs() < 1e-6 * best.max(1.0), "{value} of {best}");
    }

    #[test]
    fn the_greedy_rates_within_caps_are_as_good_as_any(
        (tcp, values, probing) in instance(),
        parts in proptest::collection::vec(prop_oneof![Just(0.0), Just(1.0), 0.0..1.2_f64], 8),
    ) {
        let region = Region::new(&rates(&tcp)).unwrap();
        let floors = floors(&region, probing);
        let caps: Vec<f64> =
            numbers(&floors).iter().zip(&tcp).zip(&parts).map(|((floor, tcp), part)| floor.max(part * tcp)).collect();
        let found = greedy_within(&region, &values, &floors, &rates(&caps));
        prop_assert!(region.slack(&found) > -1e-9, "{found:?}");
        prop_assert!(numbers(&found).iter().zip(&caps).all(|(rate, cap)| *rate <= cap + 1e-9));
        let value: f64 = numbers(&found).iter().zip(&values).map(|(rate, value)| rate * value).sum();
        let bounds: Vec<(f64, f64)> = numbers(&floors).into_iter().zip(caps).collect();
        let best = by_all_sets(&tcp, &values, &bounds);
        prop_assert!((value - best).abs() < 1e-6 * best.max(1.0), "{value} of {best}");
    }

    /// n constraints say the same as all of them.
    #[test]
    fn rates_are_friendly_where_no_set_of_paths_is_above_its_best_tcp(
        paths in proptest::collection::vec((0.1..100.0_f64, 0.0..60.0_f64), 1..8)
    ) {
        let (tcp, sent): (Vec<f64>, Vec<f64>) = paths.into_iter().unzip();
        let slack = (1_u32..1 << tcp.len()).map(|set| {
            let members = || (0..tcp.len()).filter(|path| set >> path & 1 == 1);
            members().map(|path| tcp[path]).fold(0.0, f64::max) - members().map(|path| sent[path]).sum::<f64>()
        });
        let least = slack.fold(f64::INFINITY, f64::min);
        let region = Region::new(&rates(&tcp)).unwrap();
        prop_assert!((region.slack(&rates(&sent)) - least).abs() < 1e-9);
    }

    /// No small move between two paths that stays friendly makes Σ w log x larger.
    #[test]
    fn fair_shares_are_friendly_and_no_exchange_makes_them_better(
        paths in proptest::collection::vec((prop_oneof![Just(20.0), 1.0..100.0_f64], 0.1..5.0_f64), 1..8)
    ) {
        let (tcp, weights): (Vec<f64>, Vec<f64>) = paths.into_iter().unzip();
        let region = Region::new(&rates(&tcp)).unwrap();
        let shares = numbers(&fair_shares(&region, &weights));
        prop_assert!(region.slack(&rates(&shares)) > -1e-9, "{shares:?}");
        let utility = |x: &[f64]| x.iter().zip(&weights).map(|(x, w)| w * x.max(1e-300).ln()).sum::<f64>();
        let best = utility(&shares);
        let step = 1e-4;
        for to in 0..shares.len() {
            for from in (0..shares.len()).map(Some).chain([None]) {
                let mut moved = shares.clone();
                moved[to] += step;
                if let Some(from) = from {
                    moved[from] -= step;
                }
                if region.slack(&rates(&moved)) >= -1e-12 && moved.iter().all(|x| *x >= 0.0) {
                    prop_assert!(utility(&moved) <= best + 1e-9, "from {from:?} to {to}: {shares:?}");
                }
            }
        }
    }
}

#[test]
fn what_is_no_rate_is_named() {
    for (value, path) in [(f64::INFINITY, 1), (f64::NAN, 1), (-1.0, 1)] {
        let error = Region::new(&rates(&[1.0, value])).unwrap_err();
        assert_eq!(error.path, path);
        assert!(error.to_string().contains("on path 1 is no rate; it must be finite and not below zero"), "{error}");
    }
}

#[test]
fn without_paths_there_is_nothing_to_send() {
    let region = Region::new(&[]).unwrap();
    assert!(greedy(&region, &[], &floors(&region, 0.1)).is_empty() && fair_shares(&region, &[]).is_empty());
    assert_eq!(region.whole(), PacketRate::ZERO);
}

/// A path without weight gets nothing, and what it could have carried goes to those that may have it.
#[test]
fn a_path_without_weight_gets_nothing() {
    let region = Region::new(&rates(&[100.0, 40.0, 10.0])).unwrap();
    assert_eq!(numbers(&fair_shares(&region, &[1.0, 0.0, 1.0])), [90.0, 0.0, 10.0]);
    assert_eq!(numbers(&fair_shares(&region, &[0.0, 0.0, 0.0])), [0.0; 3]);
}
