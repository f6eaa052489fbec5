//! No file makes the reader panic: it gives a scenario that holds together, or an error that names
//! a place in the file.

use std::path::Path;

use fairpath_scenario::{Scenario, ScenarioFile, Sweep};
use proptest::prelude::*;
use proptest::sample::Index;

fn examples() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    files.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

/// Reads and expands a file, whatever it is, and looks at what comes out.
fn try_out(text: &str) -> Result<(), TestCaseError> {
    let read = |path: &str| match path.len() % 4 {
        0 => Err("there is no such file".to_owned()),
        1 => Ok("time_s,rate_mbps\n0,5\n3,1\n".to_owned()),
        2 => Ok("1\n2\n2\n".to_owned()),
        _ => Ok(path.to_owned()),
    };
    let sweep = Sweep::parse_with(text, "x.toml", &[], &read);
    let one = ScenarioFile::parse_with(text, "x.toml", &read);
    if one.is_ok() {
        prop_assert_eq!(sweep.as_ref().map(Sweep::points), Ok(1));
    }
    let first = sweep.and_then(|sweep| sweep.file(0, &read)).and_then(|file| file.expand(None));
    let last = one.and_then(|file| file.expand(None));
    let expanded = [first, last];
    expanded.into_iter().try_for_each(|expanded| match expanded {
        Ok(scenario) => holds_together(&scenario),
        Err(error) => {
            prop_assert!(error.line >= 1 && error.line <= text.lines().count().max(1) + 1, "{error}");
            prop_assert!(error.column >= 1, "{error}");
            prop_assert!(error.to_string().starts_with("x.toml:"), "{error}");
            Ok(())
        }
    })
}

fn holds_together(scenario: &Scenario) -> Result<(), TestCaseError> {
    prop_assert!(!scenario.flows.is_empty());
    for flow in &scenario.flows {
        prop_assert!(!flow.paths.is_empty());
        for path in &flow.paths {
            for way in [&path.forward, &path.backward] {
                prop_assert!(!way.is_empty() && way.iter().all(|link| (link.0 as usize) < scenario.links.len()));
            }
        }
        prop_assert!(flow.start < scenario.duration && flow.stop.is_none_or(|stop| stop > flow.start));
    }
    for link in &scenario.links {
        prop_assert!(link.config.check().is_ok(), "{}", link.name);
    }
    prop_assert!(scenario.changes.is_sorted_by_key(|change| change.at));
    Ok(())
}

/// Words of the format, so that mutations reach deep into it.
const WORDS: &[&str] = &[
    "\"",
    "[",
    "]",
    "[[",
    "]]",
    "{",
    "}",
    "=",
    "\n",
    ",",
    "#",
    ".",
    "0",
    "-1",
    "99999999999999999999",
    "1e400",
    "nan",
    "\"0s\"",
    "\"1 bdp\"",
    "\"unlimited\"",
    "\"{i}\"",
    "${",
    "\"${load}\"",
    "load = [1, 2]\n",
    "[sweep]\n",
    "sweep",
    "true",
    "[]",
    "[[]]",
    "{}",
    "via",
    "rate",
    "count",
    "first",
    "queue",
    "red",
    "points",
    "steps",
    "trace",
    "matrix",
    "share",
    "subflows",
    "paths",
    "back",
    "one_way",
    "topology",
    "\u{0}",
    "é",
    "\u{202e}",
    "server",
    "h0",
    "bottleneck",
];

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in "\\PC{0,200}") {
        try_out(&text)?;
    }

    #[test]
    fn a_mutated_example_never_panics(
        example in any::<Index>(),
        mutations in proptest::collection::vec((any::<Index>(), 0_usize..12, proptest::sample::select(WORDS)), 1..6)
    ) {
        let examples = examples();
        let mut text: Vec<char> = example.get(&examples).chars().collect();
        for (at, cut, word) in mutations {
            let at = at.index(text.len().max(1)).min(text.len());
            let end = (at + cut).min(text.len());
            text.splice(at..end, word.chars());
        }
        try_out(&text.into_iter().collect::<String>())?;
    }

    /// Whole values are exchanged between lines, so that everything is in its place but wrong.
    #[test]
    fn an_example_with_exchanged_values_never_panics(
        example in any::<Index>(),
        exchanges in proptest::collection::vec((any::<Index>(), any::<Index>()), 1..4)
    ) {
        let examples = examples();
        let mut lines: Vec<String> = example.get(&examples).lines().map(str::to_owned).collect();
        for (to, from) in exchanges {
            let value = lines[from.index(lines.len())].split_once(" = ").map(|(_, value)| value.to_owned());
            let to = to.index(lines.len());
            if let (Some(value), Some((key, _))) = (value, lines[to].split_once(" = ")) {
                lines[to] = format!("{key} = {value}");
            }
        }
        try_out(&lines.join("\n"))?;
    }
}
