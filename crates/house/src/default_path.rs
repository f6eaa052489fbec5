//! The files that are on the way of a packet for people who choose nothing, and those of algorithms chosen by name alone.

use std::collections::{BTreeMap, BTreeSet};

use crate::imports::{Module, Modules, module_of};

/// The algorithms of the default: of `EngineConfig::live`, of live streams, and the detectors of fixed couplings. A test
/// compares them with the configuration.
pub const DEFAULT: &[&str] = &["coupled_cubic", "concordance", "arrival", "deadline", "always", "never"];

/// The modules that only list the algorithms of their crate and their parameters.
const LISTS: &[&str] = &["", "algorithm", "catalogue", "parameters"];

/// Those of a crate's files that only algorithms use which are not of the default. Given and returned are paths below
/// `src`, with their texts.
pub fn by_name_alone(files: &[(String, String)]) -> BTreeSet<String> {
    let modules = Modules::new(files);
    let mut uses: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
    for (module, named) in modules.named_by() {
        let from = unit(module);
        let others = named.iter().map(|to| unit(to)).filter(|to| *to != from && !is_list(to));
        uses.entry(from.clone()).or_default().extend(others);
    }
    uses.retain(|from, _| !is_list(from));
    let used: BTreeSet<&Module> = uses.values().flatten().collect();
    let begins = |one: &&Module| match algorithm(one) {
        Some(name) => DEFAULT.contains(&name),
        None => !used.contains(one),
    };
    let mut reached: BTreeSet<&Module> = uses.keys().filter(begins).collect();
    let mut next: Vec<&Module> = reached.iter().copied().collect();
    while let Some(one) = next.pop() {
        next.extend(uses.get(one).into_iter().flatten().filter(|to| reached.insert(to)));
    }
    let is_off = |path: &&String| {
        Some(unit(&module_of(path))).filter(|one| !is_list(one)).is_some_and(|one| !reached.contains(&one))
    };
    files.iter().map(|(path, _)| path).filter(is_off).cloned().collect()
}

/// An algorithm with its parts, or a module of the root with its own.
fn unit(module: &[String]) -> Module {
    let length = if algorithm(module).is_some() { 2 } else { 1 };
    module.iter().take(length).cloned().collect()
}

fn algorithm(module: &[String]) -> Option<&str> {
    module.get(1).filter(|_| module[0] == "algorithm").map(String::as_str)
}

fn is_list(module: &[String]) -> bool {
    LISTS.contains(&module.join("::").as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_default_uses_is_on_its_path_and_what_only_others_use_is_not() {
        let files = [
            ("lib.rs", "mod algorithm;\nmod catalogue;\nmod model;\nmod shared;\nmod alone;\npub use algorithm::*;\n"),
            ("catalogue.rs", "use crate::algorithm::{Bbr, CoupledCubic};\n"),
            (
                "algorithm/mod.rs",
                "mod bbr;\nmod coupled_cubic;\nmod cubic;\npub use bbr::Bbr;\npub use coupled_cubic::CoupledCubic;\n",
            ),
            ("algorithm/bbr.rs", "mod cycle;\nuse crate::model::Model;\nuse crate::shared::Shared;\n"),
            ("algorithm/bbr/cycle.rs", "use super::Bbr;\n"),
            ("algorithm/coupled_cubic.rs", "use super::cubic::grown;\nuse crate::shared::Shared;\n"),
            ("algorithm/cubic.rs", ""),
            ("model.rs", ""),
            ("shared.rs", ""),
            ("alone.rs", ""),
        ];
        let off = by_name_alone(&files.map(|(path, text)| (path.to_owned(), text.to_owned())));
        assert_eq!(
            off.iter().map(String::as_str).collect::<Vec<_>>(),
            ["algorithm/bbr.rs", "algorithm/bbr/cycle.rs", "model.rs"]
        );
    }
}
