//! The requirements on every experiment and every paper.

use std::collections::BTreeSet;

use fairpath_lab::{State, bench_names, experiments, papers, select};

#[test]
fn the_head_of_every_experiment_says_what_it_is_about() {
    for experiment in experiments() {
        let (name, about) = (experiment.name(), experiment.description());
        assert!(!about.title.is_empty() && !about.claim.is_empty(), "{name}: title and claim");
        assert!(about.topology.lines().count() > 1, "{name}: the topology is no drawing");
        assert!(!about.parameters.is_empty(), "{name}: parameters");
        for parameter in &about.parameters {
            let known = ["paper", "assumed"].iter().any(|from| parameter.from.starts_with(from));
            assert!(known, "{name}: {} is neither from the paper nor assumed: {}", parameter.name, parameter.from);
        }
        assert!(about.deviations.iter().all(|one| !one.is_empty()), "{name}: deviations");
    }
}

#[test]
fn every_experiment_is_named_by_its_paper_and_every_name_is_one() {
    let named: BTreeSet<String> = papers()
        .iter()
        .flat_map(|(_, paper)| paper.experiments().into_iter().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    let there: BTreeSet<String> = experiments().map(|one| one.name().to_owned()).collect();
    assert_eq!(experiments().count(), there.len(), "a name is given twice");
    // Costs are measured by benches, which are no experiments.
    let (benches, named): (BTreeSet<String>, BTreeSet<String>) =
        named.into_iter().partition(|name| name.starts_with("bench/"));
    assert_eq!(named, there);
    let known: BTreeSet<String> = bench_names().collect();
    assert!(benches.is_subset(&known), "{benches:?} are not all among {known:?}");
}

#[test]
fn what_is_not_reproduced_as_a_whole_has_a_reason() {
    for (key, paper) in papers() {
        for item in &paper.items {
            let where_ = format!("{key}: {}", item.item);
            assert_eq!(item.state == State::Reproduced, item.reason.is_none(), "{where_}: the reason");
            assert_eq!(item.state == State::Not, item.experiment.is_none(), "{where_}: the experiment");
        }
    }
}

#[test]
fn a_name_selects_one_experiment_or_a_paper_or_all() {
    assert_eq!(select("all").unwrap().len(), experiments().count());
    assert_eq!(select("daimd/table2").unwrap().len(), 1);
    assert!(select("daimd").unwrap().iter().all(|one| one.paper() == "daimd"));
}

#[test]
fn a_misspelt_name_is_answered_with_what_may_be_meant() {
    for (wrong, meant) in [("daimd/tabel2", Some("daimd/table2")), ("table2", Some("daimd/table2")), ("xyzzy", None)] {
        let error = select(wrong).unwrap_err();
        assert_eq!(error.nearest.as_deref(), meant, "{error}");
    }
    let text = select("bench/sbd").unwrap_err().to_string();
    assert!(text.contains("`make evidence`"), "{text}");
    let text = select("damid").unwrap_err().to_string();
    assert_eq!(text, "there is no experiment 'damid'; is 'daimd' meant?");
}
