//! Every dependency may be used under the licence of this project. The list of licences is that of
//! `deny.toml`, so that `cargo deny check licenses` gives the same answer.

use std::collections::BTreeSet;
use std::process::{Command, Output};

use fairpath_house::repository;
use serde_json::Value;
use spdx::{Expression, ParseMode};

/// The licences that `deny.toml` allows.
fn allowed() -> BTreeSet<String> {
    let deny: toml::Table = repository::read(&repository::root().join("deny.toml")).parse().expect("deny.toml");
    let allow = deny["licenses"]["allow"].as_array().expect("licenses.allow is a list");
    allow.iter().map(|licence| licence.as_str().expect("a name").to_owned()).collect()
}

fn metadata(extra: &[&str]) -> Output {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--offline", "--format-version", "1"]).args(extra).current_dir(repository::root());
    cargo.output().expect("cargo runs")
}

/// The packages for all platforms; where not all of them were fetched, those for this one.
fn packages() -> Vec<Value> {
    let mut output = metadata(&[]);
    if !output.status.success() {
        output = metadata(&["--filter-platform", &host()]);
    }
    assert!(output.status.success(), "cargo metadata failed:\n{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo metadata writes JSON");
    let resolved: BTreeSet<&str> =
        metadata["resolve"]["nodes"].as_array().expect("nodes").iter().filter_map(|node| node["id"].as_str()).collect();
    let packages = metadata["packages"].as_array().expect("packages");
    packages.iter().filter(|package| package["id"].as_str().is_some_and(|id| resolved.contains(id))).cloned().collect()
}

/// The platform that this runs on, as rustc names it.
fn host() -> String {
    let output = Command::new("rustc").arg("-vV").output().expect("rustc runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().find_map(|line| line.strip_prefix("host: ")).expect("rustc names its host").to_owned()
}

/// Why a licence expression is not allowed; `None` where it is.
fn objection(expression: Option<&str>, allowed: &BTreeSet<String>) -> Option<String> {
    let Some(text) = expression else { return Some("names no licence".to_owned()) };
    match Expression::parse_mode(text, ParseMode::LAX) {
        Err(error) => Some(format!("{text:?} is no licence expression: {}", error.reason)),
        Ok(parsed) if parsed.evaluate(|licence| allowed.contains(&licence.to_string())) => None,
        Ok(_) => Some(format!("{text} is not allowed by deny.toml")),
    }
}

#[test]
fn every_dependency_has_a_licence_that_is_allowed() {
    let allowed = allowed();
    let packages = packages();
    assert!(packages.len() > 20, "cargo metadata named only {} packages", packages.len());
    let mut objections = Vec::new();
    for package in packages {
        if let Some(objection) = objection(package["license"].as_str(), &allowed) {
            let name = package["name"].as_str().unwrap_or("?");
            let version = package["version"].as_str().unwrap_or("?");
            objections.push(format!("{name} {version}: {objection}"));
        }
    }
    assert!(objections.is_empty(), "{}", objections.join("\n"));
}

#[test]
fn expressions_are_read_with_or_and_and_with() {
    let allowed: BTreeSet<String> =
        ["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"].into_iter().map(str::to_owned).collect();
    for good in ["MIT", "MIT OR GPL-3.0-only", "MIT/Apache-2.0", "MIT AND ISC", "Apache-2.0 WITH LLVM-exception"] {
        assert_eq!(objection(Some(good), &allowed), None, "{good}");
    }
    for bad in ["GPL-3.0-only", "MIT AND GPL-3.0-only", "Apache-2.0", "Nonsense 5"] {
        assert!(objection(Some(bad), &allowed).is_some(), "{bad}");
    }
    assert!(objection(None, &allowed).is_some());
}
