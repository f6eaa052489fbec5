//! What an experiment has found.

use serde::{Deserialize, Serialize};

use crate::table::Table;
use crate::verdict::Verdict;
use fairpath_figure::Figure;

/// What an experiment has found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Numbers.
    pub tables: Vec<Table>,
    /// Pictures.
    pub figures: Vec<Figure>,
    /// What became of the claims.
    pub verdicts: Vec<Verdict>,
    /// What else is to be said.
    pub notes: Vec<String>,
}

impl Report {
    /// The table of this name.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.name == name)
    }

    /// The verdict of this name.
    pub fn verdict(&self, name: &str) -> Option<&Verdict> {
        self.verdicts.iter().find(|verdict| verdict.name == name)
    }
}
