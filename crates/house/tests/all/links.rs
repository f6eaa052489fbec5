//! Every link inside the documents leads somewhere: to a file or folder, and to a heading or anchor where it names one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use fairpath_house::repository;
use regex::Regex;

static LINK: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\]\(([^)\s#]*)(?:#([^)\s]+))?\)").expect("it is well formed"));
static ANCHOR: LazyLock<Regex> = LazyLock::new(|| Regex::new(r#"<a id="([^"]+)""#).expect("it is well formed"));

#[test]
fn every_link_of_a_document_leads_somewhere() {
    let (mut dead, mut read) = (Vec::new(), BTreeMap::<PathBuf, BTreeSet<String>>::new());
    for document in repository::documents() {
        for (target, place) in links(&repository::read(&document)) {
            let folder = document.parent().expect("a file lies in a folder");
            let path = if target.is_empty() { document.clone() } else { folder.join(&target) };
            let is_there = path.exists()
                && place
                    .as_ref()
                    .is_none_or(|place| read.entry(path.clone()).or_insert_with(|| anchors(&path)).contains(place));
            if !is_there {
                let place = place.map(|place| format!("#{place}")).unwrap_or_default();
                dead.push(format!("{}: {target}{place}", repository::relative(&document)));
            }
        }
    }
    assert!(dead.is_empty(), "links that lead nowhere:\n{}", dead.join("\n"));
}

#[test]
fn a_heading_is_linked_to_as_forges_do() {
    assert_eq!(anchor("What you get, and `why`"), "what-you-get-and-why");
}

/// The links of a text that stay in the repository: target, and place in it.
fn links(text: &str) -> Vec<(String, Option<String>)> {
    LINK.captures_iter(text)
        .map(|link| (link[1].to_owned(), link.get(2).map(|place| place.as_str().to_owned())))
        .filter(|(target, _)| !target.contains(':'))
        .collect()
}

fn anchors(document: &Path) -> BTreeSet<String> {
    let text = repository::read(document);
    let headings = text.lines().filter(|line| line.starts_with('#')).map(|line| anchor(line.trim_start_matches('#')));
    headings.chain(ANCHOR.captures_iter(&text).map(|found| found[1].to_owned())).collect()
}

/// A heading's anchor: in small letters, hyphens in place of spaces, and no other signs.
fn anchor(heading: &str) -> String {
    let small = heading.trim().to_lowercase();
    small
        .chars()
        .filter(|c| c.is_alphanumeric() || "-_ ".contains(*c))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}
