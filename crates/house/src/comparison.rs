//! The evidence of two commits side by side: which claims have another outcome, and which numbers differ by more than
//! their intervals.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use crate::repository;

/// Where reports lie, seen from the root.
const FOLDER: &str = "docs/evidence";

/// Numbers without an interval, and intervals of deterministic runs, differ from this part on.
const DIFFERENT: f64 = 0.02;

/// The reports of a commit, by the name of their experiment.
pub type Evidence = BTreeMap<String, Value>;

/// The evidence as it is now.
pub fn now() -> Evidence {
    let mut reports = Evidence::new();
    let mut folders = vec![repository::root().join(FOLDER)];
    while let Some(folder) = folders.pop() {
        for path in repository::entries(&folder) {
            if path.is_dir() {
                folders.push(path);
            } else if path.ends_with("report.json") {
                reports.extend(report(&repository::read(&path)));
            }
        }
    }
    reports
}

/// The evidence of a commit.
///
/// # Errors
///
/// Where git does not know the commit, or it has no evidence.
pub fn of_commit(commit: &str) -> Result<Evidence, String> {
    let list = repository::git(&["ls-tree", "-r", "--name-only", commit, "--", FOLDER])?;
    let files = list.lines().filter(|file| file.ends_with("/report.json"));
    let texts =
        files.map(|file| repository::git(&["show", &format!("{commit}:{file}")])).collect::<Result<Vec<_>, _>>()?;
    let reports: Evidence = texts.iter().filter_map(|text| report(text)).collect();
    match reports.is_empty() {
        true => Err(format!("{commit} has no reports in {FOLDER}")),
        false => Ok(reports),
    }
}

fn report(text: &str) -> Option<(String, Value)> {
    let report: Value = serde_json::from_str(text).ok()?;
    Some((report["experiment"].as_str()?.to_owned(), report))
}

/// A number, and half of its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Number {
    mean: f64,
    half_width: f64,
}

impl Number {
    fn of(value: &Value, mean: &str) -> Option<Self> {
        let half_width = value["half_width"].as_f64().unwrap_or(0.0);
        Some(Self { mean: value[mean].as_f64()?, half_width })
    }

    fn differs(self, other: Self) -> bool {
        let noise = self.half_width.max(other.half_width).max(DIFFERENT * self.mean.abs().max(other.mean.abs()));
        (self.mean - other.mean).abs() > self.half_width + other.half_width && (self.mean - other.mean).abs() > noise
    }

    fn text(self) -> String {
        let digits = |value: f64| match value.abs() {
            0.0 => "0".to_owned(),
            large if large >= 1_000.0 => format!("{value:.0}"),
            value_abs => format!("{value:.*}", (3.0 - value_abs.log10().floor()).clamp(0.0, 6.0) as usize),
        };
        match self.half_width > 0.0 {
            true => format!("{} ± {}", digits(self.mean), digits(self.half_width)),
            false => digits(self.mean),
        }
    }
}

/// The bounds that a claim sets a number.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Goal {
    AtLeast(f64),
    AtMost(f64),
    Between(f64, f64),
}

impl Goal {
    fn of(check: &Value) -> Option<Self> {
        let must_be = &check["must_be"];
        if let Some(bound) = must_be["at_least"].as_f64() {
            return Some(Self::AtLeast(bound));
        }
        if let Some(bound) = must_be["at_most"].as_f64() {
            return Some(Self::AtMost(bound));
        }
        let [low, high] = [0, 1].map(|at| must_be["between"][at].as_f64());
        Some(Self::Between(low?, high?))
    }

    /// How far a number is from what is asked for; below zero: it is better.
    fn misses_by(self, value: f64) -> f64 {
        match self {
            Self::AtLeast(bound) => bound - value,
            Self::AtMost(bound) => value - bound,
            Self::Between(low, high) => (low - value).max(value - high),
        }
    }
}

/// The claims and numbers of a report: what each is called, its outcome or number, and its goal.
#[derive(Debug, Default)]
struct Facts {
    outcomes: BTreeMap<String, String>,
    numbers: BTreeMap<String, (Number, Option<Goal>)>,
}

impl Facts {
    fn of(report: &Value) -> Self {
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut facts = Self::default();
        for verdict in list(&report["report"]["verdicts"]) {
            let name = text(&verdict["name"]);
            facts.outcomes.insert(name.clone(), text(&verdict["outcome"]));
            for check in list(&verdict["checks"]) {
                if let Some(number) = Number::of(&check, "value") {
                    facts.numbers.insert(format!("{name}: {}", text(&check["what"])), (number, Goal::of(&check)));
                }
            }
        }
        for table in list(&report["report"]["tables"]) {
            for row in list(&table["rows"]) {
                let heads = list(&row[0]).iter().map(text).collect::<Vec<_>>().join(", ");
                for (cell, column) in list(&row[1]).iter().zip(list(&table["columns"])) {
                    if let Some(number) = Number::of(&cell["ours"], "mean") {
                        let name = format!("{}: {heads}: {}", text(&table["name"]), text(&column["name"]));
                        facts.numbers.insert(name, (number, None));
                    }
                }
            }
        }
        facts
    }
}

/// The differences in Markdown: claims first, then numbers, worse ones before better ones.
pub fn table(before: &Evidence, now: &Evidence) -> String {
    let mut claims = Vec::new();
    let mut numbers = Vec::new();
    let (mut same_claims, mut same_numbers, mut other_form) = (0, 0, Vec::new());
    for (name, report) in now {
        let Some(earlier) = before.get(name) else { continue };
        if report["effort"] != earlier["effort"] {
            other_form.push(name.as_str());
            continue;
        }
        let (then, today) = (Facts::of(earlier), Facts::of(report));
        for (claim, outcome) in &today.outcomes {
            match then.outcomes.get(claim) {
                Some(earlier) if earlier != outcome => {
                    claims.push(format!("| {name}: {claim} | {earlier} | {outcome} |"))
                }
                Some(_) => same_claims += 1,
                None => {}
            }
        }
        for (what, (number, goal)) in &today.numbers {
            let Some((earlier, _)) = then.numbers.get(what) else { continue };
            if !number.differs(*earlier) {
                same_numbers += 1;
                continue;
            }
            let verdict = goal.map_or("", |goal| match goal.misses_by(number.mean) > goal.misses_by(earlier.mean) {
                true => "worse",
                false => "better",
            });
            let rank = ["worse", "better", ""].iter().position(|one| *one == verdict);
            numbers.push((rank, format!("| {name}: {what} | {} | {} | {verdict} |", earlier.text(), number.text())));
        }
    }
    numbers.sort();
    let mut text = format!("{} claims have another outcome, {same_claims} have the same.\n", claims.len());
    if !claims.is_empty() {
        let _ = writeln!(text, "\n| claim | before | now |\n|---|---|---|\n{}", claims.join("\n"));
    }
    let _ = writeln!(text, "\n{} numbers differ by more than their intervals, {same_numbers} do not.", numbers.len());
    if !numbers.is_empty() {
        let rows = numbers.into_iter().map(|(_, row)| row).collect::<Vec<_>>().join("\n");
        let _ = writeln!(text, "\n| number | before | now | to its goal |\n|---|---|---|---|\n{rows}");
    }
    for (names, what) in [
        (other_form, "Not compared, since one of them is of the quick form"),
        (missing(now, before), "New"),
        (missing(before, now), "Gone"),
    ] {
        if !names.is_empty() {
            let _ = writeln!(text, "\n{what}: {}.", names.join(", "));
        }
    }
    text
}

/// The names in the first that are not in the second.
fn missing<'a>(of: &'a Evidence, from: &Evidence) -> Vec<&'a str> {
    of.keys().filter(|name| !from.contains_key(*name)).map(String::as_str).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn evidence(outcome: &str, values: [f64; 3]) -> Evidence {
        let check = |what: &str, at: usize, must_be: Value| json!({ "what": what, "value": values[at], "half_width": 0.1, "must_be": must_be });
        let report = json!({
            "experiment": "default/x",
            "effort": "quick",
            "report": {
                "verdicts": [{ "name": "fast", "outcome": outcome, "checks": [
                    check("rate", 0, json!({ "at_least": 1.0 })), check("delay", 1, json!({ "at_most": 9.0 })),
                ] }],
                "tables": [{ "name": "times", "columns": [{ "name": "mean" }], "rows": [[["two"], [{ "ours": { "mean": values[2] } }]]] }],
            },
        });
        [("default/x".to_owned(), report)].into()
    }

    #[test]
    fn what_became_worse_comes_first_and_what_is_within_the_intervals_is_only_counted() {
        let text = table(&evidence("holds", [2.0, 5.0, 100.0]), &evidence("partly", [3.0, 6.0, 101.0]));
        let at = |row: &str| text.find(row).unwrap_or_else(|| panic!("{row} is not in\n{text}"));
        assert!(
            at("| default/x: fast | holds | partly |")
                < at("| default/x: fast: delay | 5.000 ± 0.1000 | 6.000 ± 0.1000 | worse |")
        );
        assert!(at("delay | 5") < at("| default/x: fast: rate | 2.000 ± 0.1000 | 3.000 ± 0.1000 | better |"));
        assert!(text.contains("2 numbers differ by more than their intervals, 1 do not."), "{text}");
    }

    #[test]
    fn the_same_evidence_differs_in_nothing_and_what_is_new_is_named() {
        let one = evidence("holds", [2.0, 5.0, 100.0]);
        let text = table(&one, &one);
        assert_eq!(
            text,
            "0 claims have another outcome, 1 have the same.\n\n0 numbers differ by more than their intervals, 3 do not.\n"
        );
        assert!(table(&Evidence::new(), &one).ends_with("New: default/x.\n"));
    }
}
