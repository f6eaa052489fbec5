//! The coverage of a paper: its `paper.toml`.

use serde::{Deserialize, Serialize};

/// How far a table or a figure is reproduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It is run again as a whole.
    Reproduced,
    /// A part of it is.
    Partial,
    /// It is not.
    Not,
}

impl State {
    /// In one word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Reproduced => "reproduced",
            Self::Partial => "partial",
            Self::Not => "not reproduced",
        }
    }
}

/// A table or a figure of the paper.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Item {
    /// Its name in the paper: `Table I`.
    pub item: String,
    /// Its subject.
    pub what: String,
    /// How far it is reproduced.
    pub state: State,
    /// The experiment that runs it again.
    pub experiment: Option<String>,
    /// Why it is not reproduced, or only in part.
    pub reason: Option<String>,
}

/// An experiment for a question that the paper leaves open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Own {
    /// The experiment.
    pub experiment: String,
    /// The question.
    pub what: String,
}

/// The coverage of a paper.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// Its title.
    pub title: String,
    /// Its key in `references.toml`.
    pub reference: String,
    /// Every table and figure, in the paper's order.
    #[serde(rename = "item", default)]
    pub items: Vec<Item>,
    /// Questions of ours.
    #[serde(rename = "own", default)]
    pub own: Vec<Own>,
}

impl Paper {
    pub(crate) fn read(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }

    /// The experiments that it names, each once, in order.
    pub fn experiments(&self) -> Vec<&str> {
        let mut names = Vec::new();
        let items = self.items.iter().filter_map(|item| item.experiment.as_deref());
        for name in items.chain(self.own.iter().map(|own| own.experiment.as_str())) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }
}
