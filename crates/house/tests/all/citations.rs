//! Every citation in a comment names a source in `references.toml`, and every source there can be
//! found by a reader.

use fairpath_house::citation::{self, References};
use fairpath_house::{repository, source};

fn references() -> References {
    citation::references(&repository::read(&repository::root().join("references.toml")))
}

#[test]
fn every_citation_names_a_reference() {
    let references = references();
    let mut seen = 0;
    let mut unknown = Vec::new();
    for file in repository::rust_files(&repository::root().join("crates")) {
        for comment in source::split(&repository::read(&file)).comments {
            for citation in citation::find(&comment) {
                seen += 1;
                if !references.contains_key(&citation.key) {
                    unknown.push(format!("{}:{}: [{}]", repository::relative(&file), citation.line, citation.key));
                }
            }
        }
    }
    assert!(seen > 0, "the search for citations is broken: it found none");
    assert!(unknown.is_empty(), "not in references.toml:\n{}", unknown.join("\n"));
}

#[test]
fn every_reference_has_a_title_authors_a_year_and_a_place() {
    for (key, reference) in references() {
        let text = |field: &str| reference.get(field).and_then(|value| value.as_str()).filter(|text| !text.is_empty());
        let authors = reference.get("authors").and_then(|value| value.as_array());
        assert!(key.chars().all(|c| c.is_ascii_alphanumeric()), "{key}: a key has letters and digits only");
        assert!(text("title").is_some(), "{key} has no title");
        assert!(authors.is_some_and(|authors| !authors.is_empty()), "{key} has no authors");
        let year = reference.get("year").and_then(|value| value.as_integer());
        assert!(year.is_some_and(|year| (1900..2100).contains(&year)), "{key} has no year");
        assert!(
            ["url", "doi", "isbn"].into_iter().any(|field| text(field).is_some()),
            "{key} has neither url nor doi nor isbn"
        );
        for field in reference.keys() {
            let known = ["title", "authors", "year", "url", "doi", "isbn", "venue", "note"].contains(&field.as_str());
            assert!(known, "{key}: {field} is not a field");
        }
    }
}
