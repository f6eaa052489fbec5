//! How a report was made: enough to make it again.

use serde::{Deserialize, Serialize};

use crate::context::{Context, Effort, Seeds};

/// Added to a commit where the code had changes that are not committed.
pub const WITH_CHANGES: &str = ", with changes";

/// The program and the machine that make reports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Maker {
    /// The commit that the program was built from, as far as it is known.
    pub commit: String,
    /// The processor, its cores and the system.
    pub machine: String,
}

/// How a report was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Made {
    /// The command that makes it again.
    pub command: String,
    /// The seeds of its runs, such as `1 to 12`; empty where nothing was drawn.
    pub seeds: String,
    /// The commit that the program was built from.
    pub commit: String,
    /// The processor, its cores and the system.
    pub machine: String,
}

impl Made {
    /// Whether the code had changes that are in no commit.
    pub(crate) fn is_of_changed_code(&self) -> bool {
        self.commit.ends_with(WITH_CHANGES)
    }

    pub(crate) fn of(experiment: &str, context: &Context, maker: &Maker) -> Self {
        let quick = if context.effort() == Effort::Quick { " --quick" } else { "" };
        let chosen = match context.chosen_seeds() {
            Seeds::AsMeant => String::new(),
            Seeds::Count(count) => format!(" --seeds {count}"),
            Seeds::Only(seed) => format!(" --seed {seed}"),
        };
        let Maker { commit, machine } = maker.clone();
        Self {
            command: format!("fairpath lab run {experiment}{quick}{chosen}"),
            seeds: ranges(&context.seeds_used()),
            commit,
            machine,
        }
    }
}

/// Ascending numbers as ranges: `1 to 3, 101 to 103`.
fn ranges(seeds: &[u64]) -> String {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for seed in seeds {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *seed => *last = *seed,
            _ => ranges.push((*seed, *seed)),
        }
    }
    let text =
        |(first, last): &(u64, u64)| if first == last { first.to_string() } else { format!("{first} to {last}") };
    ranges.iter().map(text).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_that_follow_each_other_are_one_range() {
        assert_eq!(ranges(&[1, 2, 3, 7, 101, 102]), "1 to 3, 7, 101 to 102");
        assert_eq!(ranges(&[]), "");
    }
}
