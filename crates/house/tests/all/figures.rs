//! Figures of performance in documents have evidence behind them, as a ratchet: old ones may stay, and none is added.

use fairpath_house::figures;

#[test]
fn no_document_has_more_figures_without_evidence_than_before() {
    let recorded = figures::recorded();
    for (document, found) in figures::findings() {
        let allowed = recorded.get(&document).copied().unwrap_or_default();
        assert!(
            found.len() <= allowed,
            "{document} has {} figures without evidence where {allowed} are allowed; link the page of docs/evidence, or \
             leave the figure out. `cargo run -p fairpath-house -- figures` lists them",
            found.len()
        );
    }
}
