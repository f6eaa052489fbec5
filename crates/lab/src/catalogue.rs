//! All papers and experiments, by name.

use crate::bench::bench_names;
use crate::experiment::Experiment;
use crate::paper::Paper;
use crate::papers::{daimd, default, odd_couple, olia, tfrc_multipath, tr};

/// A paper's key, its experiments, and its `paper.toml`.
const PAPERS: &[(&str, &[Experiment], &str)] = &[
    ("olia", olia::EXPERIMENTS, include_str!("papers/olia/paper.toml")),
    ("daimd", daimd::EXPERIMENTS, include_str!("papers/daimd/paper.toml")),
    ("tr", tr::EXPERIMENTS, include_str!("papers/tr/paper.toml")),
    ("odd_couple", odd_couple::EXPERIMENTS, include_str!("papers/odd_couple/paper.toml")),
    ("default", default::EXPERIMENTS, include_str!("papers/default/paper.toml")),
    ("tfrc_multipath", tfrc_multipath::EXPERIMENTS, include_str!("papers/tfrc_multipath/paper.toml")),
];

/// There is no experiment and no paper of that name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no experiment '{name}'{}", hint(.name, .nearest))]
pub struct NoSuchExperiment {
    /// The name.
    pub name: String,
    /// The nearest known name, if any is near.
    pub nearest: Option<String>,
}

fn hint(name: &str, nearest: &Option<String>) -> String {
    match nearest {
        _ if bench_names().any(|bench| bench == name) => {
            "; it is a bench: `make bench` runs it, and `make evidence` makes a page of it".to_owned()
        }
        Some(name) => format!("; is '{name}' meant?"),
        None => "; `fairpath lab list` shows all".to_owned(),
    }
}

/// Every experiment.
pub fn experiments() -> impl Iterator<Item = &'static Experiment> {
    PAPERS.iter().flat_map(|(_, experiments, _)| experiments.iter())
}

/// Every paper with its key.
pub fn papers() -> Vec<(&'static str, Paper)> {
    let read = |text| Paper::read(text).expect("a test reads every paper.toml");
    PAPERS.iter().map(|(key, _, text)| (*key, read(text))).collect()
}

/// The experiments meant by a name: one, all of a paper, or `all`.
///
/// # Errors
///
/// Where nothing has that name.
pub fn select(name: &str) -> Result<Vec<&'static Experiment>, NoSuchExperiment> {
    let meant = |experiment: &&Experiment| name == "all" || experiment.name() == name || experiment.paper() == name;
    let selected: Vec<_> = experiments().filter(meant).collect();
    if selected.is_empty() {
        return Err(NoSuchExperiment { name: name.to_owned(), nearest: nearest(name) });
    }
    Ok(selected)
}

/// The known name that is most like `name`, also by its part behind the slash; `None` where more
/// than about one letter in three would be wrong.
fn nearest(name: &str) -> Option<String> {
    let wrong_max = name.chars().count().div_ceil(3);
    let short = |full: &'static str| full.split_once('/').map_or(full, |(_, short)| short);
    let whole = experiments().map(|one| (one.name(), one.name()));
    let parts = experiments().map(|one| (short(one.name()), one.name()));
    let papers = PAPERS.iter().map(|(key, ..)| (*key, *key));
    let measured = whole.chain(parts).chain(papers).map(|(form, full)| (strsim::osa_distance(name, form), full));
    let (wrong, full) = measured.min_by_key(|(wrong, _)| *wrong)?;
    (wrong <= wrong_max).then(|| full.to_owned())
}
