//! The example of [Pluntke2011]: three paths, a deadline of 300 ms.

use core::time::Duration;

use fairpath_core::{Groups, PathId};
use fairpath_rate::{Bound, Delays, PathModel, Plan};

const DEADLINE: Duration = Duration::from_millis(300);

fn paths() -> [PathModel; 3] {
    [(0.10, 20), (0.02, 100), (0.01, 300)]
        .map(|(loss, rtt)| PathModel::new(loss, Delays::exponential(Duration::from_millis(rtt))))
}

fn total(plan: &Plan) -> f64 {
    plan.rates.iter().map(|rate| rate.per_second()).sum()
}

/// Goodput of 133 and 173 packets/s, repair of 40 and 22 %, and a total that does not change. The two margins are
/// fitted to these numbers, so what is tested is that two of them can bring forth five figures.
#[test]
fn the_margins_bring_forth_the_figures_of_the_paper() {
    let coupled = Plan::coupled(&paths(), DEADLINE, &Bound::Cantelli, fairpath_rate::MARGIN);
    let best = Plan::best(&paths(), DEADLINE, &Bound::Cantelli).unwrap();
    for (plan, goodput, repair) in [(&coupled, 133.0, 0.40), (&best, 173.0, 0.22)] {
        assert!((total(plan) - 223.6).abs() < 0.05, "{plan:?}");
        assert!((plan.goodput.per_second() - goodput).abs() < 0.5, "{plan:?}");
        assert!((plan.repair.share - repair).abs() < 0.01, "{plan:?}");
    }
    let gain = best.goodput.per_second() / coupled.goodput.per_second();
    assert!((gain - 1.30).abs() < 0.01, "{gain}");
}

/// Without margins: what the bounds alone give, by an independent calculation.
#[test]
fn without_margins_the_gain_depends_on_the_bound() {
    for (bound, coupled, best) in
        [(Bound::Chebyshev, 143.9, 188.4), (Bound::Cantelli, 148.2, 189.0), (Bound::Exponential, 191.1, 201.0)]
    {
        let goodput = |plan: Plan| plan.goodput.per_second();
        let of_coupled = goodput(Plan::coupled(&paths(), DEADLINE, &bound, 0.0));
        let of_best = goodput(Plan::best_with(&paths(), DEADLINE, &bound, 0.05, 0.0).unwrap());
        assert!((of_coupled - coupled).abs() < 0.1, "{bound:?}: {of_coupled} for {coupled}");
        assert!((of_best - best).abs() < 0.1, "{bound:?}: {of_best} for {best}");
    }
}

/// "Almost all traffic on path 1" is what a bound of Chebyshev's kind says; the true distribution uses path 2 as well.
#[test]
fn the_exact_distribution_would_use_the_second_path() {
    let rates = |bound: Bound| {
        let plan = Plan::best_with(&paths(), DEADLINE, &bound, 0.0, 0.0).unwrap();
        plan.rates.iter().map(|rate| rate.per_second()).collect::<Vec<_>>()
    };
    let close = |rates: Vec<f64>, expected: [f64; 3]| {
        assert!(rates.iter().zip(expected).all(|(rate, expected)| (rate - expected).abs() < 0.05), "{rates:?}");
    };
    close(rates(Bound::Chebyshev), [223.6, 0.0, 0.0]);
    close(rates(Bound::Cantelli), [223.6, 0.0, 0.0]);
    close(rates(Bound::Exponential), [123.6, 100.0, 0.0]);
}

/// The paper compares with coupled TCP only. The first path alone, with the same margin of repair, brings more than
/// either: of 223.6 packets 10 % are lost and 0.5 % late at most.
#[test]
fn the_first_path_alone_brings_more_than_the_plan_that_probes_the_others() {
    let alone = Plan::best(&paths()[..1], DEADLINE, &Bound::Cantelli).unwrap();
    let best = Plan::best(&paths(), DEADLINE, &Bound::Cantelli).unwrap();
    let (alone, best) = (alone.goodput.per_second(), best.goodput.per_second());
    assert!((alone - 190.2).abs() < 0.5, "{alone}");
    assert!(alone > best + 15.0, "probing costs {} packets/s", alone - best);
}

/// Paths known to share nothing carry a TCP each: goodput of the first two adds up. If they share
/// after all, the stream takes as much as two TCPs.
#[test]
fn separate_paths_need_not_share_what_one_tcp_has() {
    let plan = |members: Vec<Vec<u32>>| {
        let groups = Groups::from_members(members.into_iter().map(|group| group.into_iter().map(PathId::new)));
        Plan::best_in(&groups, &paths(), DEADLINE, &Bound::Cantelli, 0.0, 0.0).unwrap()
    };
    let [together, apart, pairs] =
        [vec![vec![0, 1, 2]], vec![vec![0], vec![1], vec![2]], vec![vec![0, 2], vec![1]]].map(plan);
    assert_eq!(together.rates, Plan::best_with(&paths(), DEADLINE, &Bound::Cantelli, 0.0, 0.0).unwrap().rates);
    // The third path has no packet in time by this bound, so nobody sends on it.
    for (plan, rate, goodput) in [(&together, 223.6, 200.2), (&apart, 323.6, 278.6), (&pairs, 323.6, 278.6)] {
        assert!((total(plan) - rate).abs() < 0.05, "{plan:?}");
        assert!((plan.goodput.per_second() - goodput).abs() < 0.1, "{plan:?}");
    }
    // If the first two do share a bottleneck, in which one TCP would have 223.6.
    assert!((total(&apart) / total(&together) - 1.447).abs() < 0.001);
}

#[test]
fn a_path_that_has_lost_nothing_is_named() {
    let mut paths = paths();
    paths[1].loss = 0.0;
    assert_eq!(Plan::best(&paths, DEADLINE, &Bound::Cantelli).unwrap_err().path, 1);
}
