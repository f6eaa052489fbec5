//! The quick form of every experiment runs, what it finds can be kept and shown, and the claims that
//! hold robustly hold.

use std::path::Path;

use fairpath_lab::{Context, Effort, Experiment, Outcome, Report, Seeds, Store, select, significant};

/// The outcomes of some claims of each experiment in its quick form, for any seeds.
type Robust<'a> = &'a [(&'a str, &'a [(&'a str, Outcome)])];

use Outcome::{Holds, Misses, Partly};

/// Experiments of which a run with the seeds that are meant leaves a claim below undecided: they have twice as many.
/// A user's quick form runs again for any claim that is undecided; here each experiment is run once.
const TWICE: &[&str] = &[
    "daimd/fig4",
    "daimd/losses",
    "daimd/sensitivity",
    "default/grid",
    "default/scene",
    "olia/asymmetric",
    "olia/dynamic_fat_tree",
    "olia/responsiveness",
    "olia/scenario_a",
    "olia/scenario_c",
    "olia/sensitivity",
    "olia/static_fat_tree",
    "olia/symmetric",
    "tfrc_multipath/friendly",
    "tr/alpha",
    "tr/fig4",
    "tr/separate",
    "tr/table2",
];

#[test]
fn daimd() {
    run_paper(
        "daimd",
        &[
            ("daimd/fig2", &[("lower", Holds), ("smaller swings", Holds), ("more often", Holds), ("no loss", Holds)]),
            ("daimd/fig3", &[("lower", Holds), ("smaller swings", Holds), ("more often", Holds), ("no loss", Holds)]),
            ("daimd/table1", &[("fills", Holds), ("no loss", Holds), ("as printed", Partly)]),
            ("daimd/fig4", &[("mostly by delay", Holds)]),
            ("daimd/fig5", &[("mostly by delay", Holds)]),
            ("daimd/fig6", &[("mostly by delay", Holds)]),
            ("daimd/table2", &[("less than LIA", Holds), ("as printed", Partly), ("goal 2", Holds)]),
            ("daimd/losses", &[("none on idle paths", Holds), ("fewer", Holds)]),
            ("daimd/queueing", &[("less with a lower threshold", Holds)]),
            ("daimd/sensitivity", &[("nearer", Holds)]),
            ("daimd/model", &[("re-arming", Holds)]),
        ],
    );
}

#[test]
fn olia() {
    run_paper(
        "olia",
        &[
            ("olia/two_paths", &[("uncoupled_takes_much", Holds), ("nothing_is_gained", Holds)]),
            ("olia/goals", &[("throughput", Holds), ("no_harm", Holds), ("not_balanced", Holds)]),
            ("olia/theorems", &[("goals", Holds), ("pareto", Holds), ("lia_is_not", Holds), ("balance", Holds)]),
            (
                "olia/scenario_a",
                &[
                    ("lia_harms_type2", Holds),
                    ("type1_gains_nothing", Holds),
                    ("olia_harms_less", Holds),
                    ("olia_is_nearly_optimal", Holds),
                    ("olia_congests_less", Holds),
                    ("balia_is_between", Holds),
                ],
            ),
            ("olia/scenario_c", &[("olia_takes_less", Holds)]),
            ("olia/downloads", &[("olia_is_as_fast", Holds), ("near_the_better", Holds)]),
            ("olia/symmetric", &[("olia_is_not_flappy", Holds)]),
            ("olia/asymmetric", &[("olia_leaves_path_2", Holds), ("nothing_is_lost", Holds)]),
            (
                "olia/static_fat_tree",
                &[
                    ("tcp_uses_half", Holds),
                    ("olia_fills_the_tree", Holds),
                    ("olia_uses_as_much_as_lia", Holds),
                    ("multipath_pays", Holds),
                ],
            ),
            ("olia/dynamic_fat_tree", &[("olia_uses_as_much_as_lia", Holds)]),
            ("olia/responsiveness", &[("coupled_is_slow", Misses), ("kelly_voice_is_slow", Partly)]),
            ("olia/sensitivity", &[("olia_harms_less_in_a", Holds)]),
        ],
    );
}

#[test]
fn tr() {
    run_paper(
        "tr",
        &[
            ("tr/conservative", &[("eq_2", Holds), ("eq_3", Holds)]),
            ("tr/fig1", &[("root growth", Holds), ("not straight", Holds)]),
            ("tr/fig2", &[("straight", Partly)]),
            ("tr/table1", &[("reno", Partly)]),
            ("tr/fig4", &[("spikes", Holds), ("smoothed", Holds)]),
            ("tr/fig6", &[("path", Holds)]),
            ("tr/table2", &[("both find it", Holds), ("ours", Holds), ("SSC fails", Misses)]),
            ("tr/table3", &[("no harm (Reno)", Holds), ("TR is fair (CUBIC)", Misses)]),
            ("tr/table4", &[("no harm (Reno)", Holds), ("no harm (CUBIC)", Holds)]),
            ("tr/table5", &[("soon", Holds), ("often enough", Holds)]),
            ("tr/separate", &[("fewer mistakes", Misses)]),
            ("tr/bbr", &[("takes longer", Partly), ("starves", Partly)]),
            ("tr/alpha", &[("tells", Holds)]),
            ("tr/grid", &[("oracle", Holds)]),
            ("tr/classes", &[("seldom wrong", Holds)]),
        ],
    );
}

#[test]
fn odd_couple() {
    run_paper(
        "odd_couple",
        &[
            ("odd_couple/drive", &[("cannot exploit both", Holds), ("default", Holds)]),
            (
                "odd_couple/buffers",
                &[
                    ("one path is full", Holds),
                    ("receive buffer", Holds),
                    ("two are not", Holds),
                    ("BBR avoids queues", Holds),
                    ("as the model", Misses),
                    ("arrival", Holds),
                ],
            ),
            (
                "odd_couple/mechanism",
                &[("1: both ramp up", Holds), ("one fills its queue", Holds), ("3: starvation", Holds)],
            ),
            ("odd_couple/queues", &[("deep queues", Holds)]),
            ("odd_couple/receive", &[("in turns", Holds)]),
            ("odd_couple/remedies", &[("small buffers", Holds)]),
            ("odd_couple/fairness", &[("unfair", Holds)]),
            (
                "odd_couple/profiles",
                &[("never slower", Holds), ("better than by hand", Holds), ("the sum, without loss", Holds)],
            ),
            ("odd_couple/heterogeneity", &[("the sum", Holds), ("never slower", Holds)]),
        ],
    );
}

#[test]
fn default() {
    run_paper(
        "default",
        &[
            ("default/scene", &[("nearer", Holds)]),
            // One run of each of 24 cells tells no more.
            ("default/grid", &[("fast", Holds)]),
            ("default/start", &[("cheap", Holds)]),
            ("default/found", &[("LIA, apart", Holds), ("coupled CUBIC, apart", Holds)]),
            ("default/alike", &[("coupled CUBIC, apart", Holds)]),
            ("default/loss", &[("more", Holds)]),
            ("default/deadline", &[("serves matters", Holds)]),
            ("default/budget", &[("rises matters", Holds)]),
            ("default/live", &[("dear probe every matters", Holds)]),
            (
                "default/ablation",
                &[
                    ("coupling helps", Holds),
                    ("losses by queue helps", Holds),
                    ("trials for policers helps", Holds),
                    ("dips helps", Holds),
                    ("reinjection helps", Holds),
                ],
            ),
            (
                "default/short_queues",
                &[
                    ("short", Holds),
                    ("fast", Holds),
                    ("one of two, short", Holds),
                    ("span, fast", Holds),
                    ("live, short", Holds),
                ],
            ),
        ],
    );
}

#[test]
fn tfrc_multipath() {
    run_paper(
        "tfrc_multipath",
        &[
            (
                "tfrc_multipath/fig1",
                &[
                    ("MPTCP's rates", Holds),
                    ("its formula", Misses),
                    ("total", Holds),
                    ("almost all on path 1", Holds),
                    ("goodput, fitted", Holds),
                    ("a gain of 30 %", Holds),
                    ("the gain by the margins", Holds),
                    ("better than a single path", Misses),
                ],
            ),
            ("tfrc_multipath/simulated", &[("better than a single path", Misses)]),
            ("tfrc_multipath/friendly", &[("friendly on any set", Holds), ("friendly on each path", Holds)]),
            ("tfrc_multipath/deadlines", &[("on time", Holds)]),
            ("tfrc_multipath/modems", &[("no harm", Holds)]),
            // A stream has nearly what a TCP has: to show that it has no more takes more seeds than there is time for here.
            ("tfrc_multipath/servers", &[("unfair by itself", Holds)]),
        ],
    );
}

/// Runs a paper's experiments in their quick form, keeps what comes out and looks at the page.
fn run_paper(key: &str, robust: Robust<'_>) {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(key);
    let _ = std::fs::remove_dir_all(&root);
    let store = Store::create(&root).unwrap();
    let experiments = select(key).unwrap();
    for experiment in &experiments {
        let context = Context::new(Effort::Quick).once(if TWICE.contains(&experiment.name()) { 2 } else { 1 });
        let report = experiment.run(&context).unwrap_or_else(|failure| panic!("{failure}"));
        check(experiment, &report, robust);
        let kept = store.keep(experiment, &context, report).unwrap();
        let folder = root.join(experiment.name());
        for table in &kept.report.tables {
            assert!(folder.join(format!("{}.csv", table.name)).is_file(), "{}", table.name);
        }
        for figure in &kept.report.figures {
            assert!(folder.join(format!("{}.svg", figure.name)).is_file(), "{}", figure.name);
        }
    }
    let page = std::fs::read_to_string(store.page()).unwrap();
    let (reports, unreadable) = store.reports();
    assert_eq!((reports.len(), unreadable.len()), (experiments.len(), 0));
    for kept in &reports {
        assert!(page.contains(&format!("<section id=\"{}\">", kept.experiment)), "{}", kept.experiment);
    }
}

fn check(experiment: &Experiment, report: &Report, robust: Robust<'_>) {
    let name = experiment.name();
    assert!(!report.tables.is_empty() && !report.verdicts.is_empty(), "{name}: a table and a verdict");
    for table in &report.tables {
        assert!(!table.rows.is_empty(), "{name}: {} is empty", table.name);
    }
    for verdict in &report.verdicts {
        assert!(!verdict.checks.is_empty(), "{name}: {:?} says nothing in numbers", verdict.name);
        // A log without lines has no slopes: no data, and not a wrong number.
        let is_known = |check: &fairpath_lab::Check| check.value.is_finite() || check.half_width.is_none();
        assert!(verdict.checks.iter().all(is_known), "{name}: {verdict:?}");
        let has_to_say_why = matches!(verdict.outcome, Partly | Misses);
        assert!(
            !has_to_say_why || verdict.reason.is_some(),
            "{name}: {:?} does not hold, and nothing says why",
            verdict.name
        );
        let reason = verdict.reason.as_deref().unwrap_or_default();
        assert!(is_one_sentence(reason), "{name}: {:?} has a reason of several sentences: {reason}", verdict.name);
    }
    // Where recorded links are not there, no claim about them is.
    let lacks_recordings = !report.missing.is_empty();
    for left in experiment.claims_left_to_full().iter().filter(|_| !lacks_recordings) {
        let is_said = report.notes.iter().any(|note| note.contains(&format!("\"{left}\"")));
        assert!(is_said, "{name}: there is no claim {left:?} that could be left to the full form");
    }
    let line = robust.iter().find(|(known, _)| *known == name);
    let (_, robust) = line.unwrap_or_else(|| panic!("{name} has no line"));
    assert!(!robust.is_empty(), "{name}: the quick form asserts nothing");
    for (robust, outcome) in *robust {
        let verdict = report.verdict(robust).unwrap_or_else(|| panic!("{name}: no verdict {robust:?}"));
        assert_eq!(verdict.outcome, *outcome, "{name}: {verdict:#?}");
    }
}

/// A reader checks a reason; a second sentence is one more to check.
fn is_one_sentence(reason: &str) -> bool {
    !reason.split(". ").skip(1).any(|next| next.starts_with(char::is_uppercase))
}

/// Four significant digits: whatever changes a result changes this, and a review shall see it.
#[test]
fn the_rates_beside_reno_are_what_they_were() {
    let experiment = select("daimd/table2").unwrap()[0];
    let report = experiment.run(&Context::new(Effort::Quick).with_seeds(Seeds::Count(3))).unwrap();
    let rows = report.table("table2").unwrap().rows.iter();
    let lines: Vec<String> = rows
        .map(|(heads, cells)| {
            let numbers = cells.iter().filter_map(|cell| cell.ours.as_ref()).map(|ours| significant(ours.mean, 4));
            format!("{}, {}: {}", heads[0], heads[1], numbers.collect::<Vec<_>>().join(" "))
        })
        .collect();
    let golden = [
        "different capacity, DAIMD: 3.498 0.8535 4.352",
        "different capacity, Reno beside DAIMD: 6.155 3.973",
        "different capacity, LIA: 4.640 1.711 6.351",
        "different capacity, Reno beside LIA: 5.013 3.115",
        "different delay, DAIMD: 1.366 1.369 2.735",
        "different delay, Reno beside DAIMD: 3.457 3.457",
        "different delay, LIA: 1.621 1.994 3.615",
        "different delay, Reno beside LIA: 3.204 2.832",
        "equal paths, DAIMD: 1.186 0.9991 2.185",
        "equal paths, Reno beside DAIMD: 3.641 3.827",
        "equal paths, LIA: 1.776 2.056 3.832",
        "equal paths, Reno beside LIA: 3.051 2.770",
    ];
    assert_eq!(lines, golden);
}

#[test]
fn the_same_seeds_give_the_same_bytes_however_many_jobs_there_are() {
    // All go through one sweep: the cheapest with many points and seeds says it for them.
    let experiment = select("olia/downloads").unwrap()[0];
    let json = |jobs| {
        let context = Context::new(Effort::Quick).with_jobs(jobs);
        serde_json::to_string(&experiment.run(&context).unwrap()).unwrap()
    };
    assert_eq!(json(1), json(3));
}
