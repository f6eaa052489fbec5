//! The best rates for 8 and 1,000 paths, beside a solver of linear programs that is given the same n constraints. The
//! goals: 5 µs and 1 ms.

use std::hint::black_box;

use criterion::Criterion;
use fairpath_rate::{PacketRate, Region, floors, greedy};
use microlp::{ComparisonOp, OptimizationDirection, Problem, SolveOutcome};

/// TCP's rates and values that are all different and in no order.
fn instance(paths: usize) -> (Vec<PacketRate>, Vec<f64>) {
    let scattered = |at: usize, by: usize| ((at * by) % 1_009) as f64 / 1_009.0;
    let tcp = (0..paths).map(|at| PacketRate::new(1.0 + 300.0 * scattered(at, 577))).collect();
    (tcp, (0..paths).map(|at| 0.01 + 0.99 * scattered(at, 389)).collect())
}

fn by_solver(tcp: &[PacketRate], values: &[f64]) -> f64 {
    let mut problem = Problem::new(OptimizationDirection::Maximize);
    let variables: Vec<_> = values.iter().map(|value| problem.add_var(*value, (0.0, f64::INFINITY))).collect();
    let mut order: Vec<usize> = (0..tcp.len()).collect();
    order.sort_by(|a, b| tcp[*b].per_second().total_cmp(&tcp[*a].per_second()));
    for first in 0..order.len() {
        let terms: Vec<_> = order[first..].iter().map(|path| (variables[*path], 1.0)).collect();
        problem.add_constraint(terms.as_slice(), ComparisonOp::Le, tcp[order[first]].per_second());
    }
    match problem.solve().expect("a bounded region") {
        SolveOutcome::Solution(solution) => solution.objective(),
        SolveOutcome::Interrupted(_) => panic!("it has no limit of time"),
    }
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    for paths in [8, 1_000] {
        let (tcp, values) = instance(paths);
        criterion.bench_function(&format!("best rates, {paths} paths"), |bencher| {
            bencher.iter(|| {
                let region = Region::new(black_box(&tcp)).expect("rates");
                greedy(&region, &values, &floors(&region, 0.0675 / paths as f64))
            });
        });
        // A thousand paths take the solver seconds: it has half a million terms to look at.
        if paths < 1_000 {
            criterion.bench_function(&format!("linear program, {paths} paths"), |bencher| {
                bencher.iter(|| by_solver(black_box(&tcp), &values));
            });
        }
    }
    criterion.final_summary();
}
