//! Promises of the threat model are held by tests that exist.

use std::collections::BTreeSet;

use fairpath_house::repository;

/// The words in backticks that are names of tests: of three words and more, with underlines between.
fn named(page: &str) -> BTreeSet<&str> {
    let is_name = |word: &&str| {
        word.split('_').count() > 2 && word.chars().all(|c| c == '_' || c.is_ascii_lowercase() || c.is_ascii_digit())
    };
    page.split('`').skip(1).step_by(2).filter(is_name).collect()
}

#[test]
fn every_test_that_the_threat_model_names_exists() {
    let page = repository::read(&repository::root().join("docs/threat-model.md"));
    let named = named(&page);
    assert!(named.len() > 30, "{named:?}");
    let files = repository::crate_folders().into_iter().flat_map(|folder| repository::rust_files(&folder));
    let sources: String = files.map(|file| repository::read(&file)).collect();
    let missing: Vec<_> = named.into_iter().filter(|name| !sources.contains(&format!("fn {name}("))).collect();
    assert!(missing.is_empty(), "docs/threat-model.md names tests that are not there: {missing:?}");
}

#[test]
fn names_of_tests_are_told_from_other_words() {
    let page = "Run `sim` with `a_test_of_it` or `short_flows`, as in `a b c` and `perf server`.";
    assert_eq!(named(page).into_iter().collect::<Vec<_>>(), ["a_test_of_it"]);
}
