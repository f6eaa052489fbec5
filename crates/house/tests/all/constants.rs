//! The constants of the algorithms, as a ratchet: none comes without a source or a row of the ablation that shows it.

use fairpath_house::{constants, default_path, repository};

#[test]
fn no_crate_has_more_constants_without_a_source_or_a_row_of_the_ablation_than_before() {
    let recorded = constants::recorded();
    for (part, count) in constants::bare() {
        let allowed = recorded.get(&part).copied().unwrap_or_default();
        assert!(
            count <= allowed,
            "{part} has {count} where {allowed} are allowed; `cargo run -p fairpath-house -- constants` lists all"
        );
    }
}

#[test]
fn every_constant_that_is_no_policy_is_there_and_has_neither_a_source_nor_a_row() {
    let all = constants::constants();
    for (file, name, kind) in constants::kinds() {
        let named: Vec<_> = all.values().flatten().filter(|one| one.file == file && one.name == name).collect();
        assert!(!named.is_empty(), "{file} has no {name}, a {kind} of kinds.toml");
        assert!(
            named.iter().all(|one| one.is_ours()),
            "{name} of {file} has a source or a row: kinds.toml needs no {kind}"
        );
    }
}

#[test]
fn every_mechanism_of_the_table_is_one_of_the_ablation_and_has_constants() {
    let root = repository::root();
    let ablations = ["crates/lab/src/papers/default/ablation.rs", "crates/faults/benches/tables/ablation.rs"];
    let ablation: String = ablations.iter().map(|file| repository::read(&root.join(file))).collect();
    let all = constants::constants();
    for (start, mechanism) in constants::mechanisms() {
        assert!(ablation.contains(&format!("\"{mechanism}\"")), "the ablation knows no {mechanism}");
        assert!(all.values().flatten().any(|one| one.file.starts_with(start)), "{start} has no constants");
    }
}

#[test]
fn the_page_of_constants_lists_those_of_the_source() {
    let file = repository::root().join("docs/reference/constants.md");
    let now = constants::page();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&file, &now).unwrap();
    }
    let is_whole = std::fs::read_to_string(&file).is_ok_and(|written| written == now);
    assert!(is_whole, "{} is not what the source says: run with UPDATE_DOCS=1 and look at the change", file.display());
}

#[test]
fn each_constant_that_a_table_halves_and_doubles_has_its_rows() {
    let all = constants::constants();
    for (start, table, rows) in constants::HALVED_AND_DOUBLED {
        let text = repository::read(&repository::root().join(rows));
        let is_varied = |one: &&constants::Constant| one.file.starts_with(start) && one.sources.is_empty();
        let varied: Vec<_> = all.values().flatten().filter(is_varied).collect();
        assert!(!varied.is_empty(), "{start} has no constants");
        for one in varied {
            let name = one.name.rsplit('.').next().unwrap_or_default().to_lowercase().replace('_', " ");
            assert!(text.contains(&format!("\"{name}\"")), "{table} has no row \"{name}\" in {rows}");
        }
    }
}

#[test]
fn the_algorithms_of_the_default_are_those_of_its_configuration() {
    let read = |file: &str| repository::read(&repository::root().join(file));
    let config = read("crates/engine/src/config.rs");
    let live = config.split_once("pub fn live()").expect("the default has a name").1;
    let live = &live[..live.find("\n    }").expect("an end")];
    for field in ["congestion", "scheduler"] {
        let (_, named) = live.split_once(&format!("let {field} = \"")).expect("it is named");
        let name = &named[..named.find('"').expect("an end")];
        assert!(default_path::DEFAULT.contains(&name), "{field} is {name}");
    }
    let detectors = read("crates/sbd/src/catalogue.rs");
    let (_, first) = detectors.split_once("NAMES: &[&str] = &[").expect("the detectors have names");
    assert_eq!(first.trim_start().split('"').nth(1), Some("concordance"), "the first is the default");
    assert!(read("crates/live/src/spread.rs").contains("scheduler: Deadline,"));
    for name in default_path::DEFAULT {
        let is_there = |part: &str| repository::root().join(format!("crates/{part}/src/algorithm/{name}.rs")).exists();
        assert!(["cc", "sbd", "sched"].into_iter().any(is_there), "there is no {name}");
    }
}
