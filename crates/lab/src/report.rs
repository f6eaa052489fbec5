//! The findings of an experiment.

use serde::{Deserialize, Serialize};

use crate::table::Table;
use crate::verdict::Verdict;
use fairpath_figure::Figure;

/// The findings of an experiment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Numbers.
    pub tables: Vec<Table>,
    /// Pictures.
    pub figures: Vec<Figure>,
    /// The verdicts on the claims.
    pub verdicts: Vec<Verdict>,
    /// Further remarks.
    pub notes: Vec<String>,
    /// Recordings that were not beside this project, each with what is left out for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

impl Report {
    /// The table of this name.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.name == name)
    }

    /// The notes, and after them the recordings that were missing.
    pub fn remarks(&self) -> impl Iterator<Item = &str> {
        self.notes.iter().chain(&self.missing).map(String::as_str)
    }

    /// The verdict of this name.
    pub fn verdict(&self, name: &str) -> Option<&Verdict> {
        self.verdicts.iter().find(|verdict| verdict.name == name)
    }
}
