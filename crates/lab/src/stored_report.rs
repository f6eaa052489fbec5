//! A report as it is kept.

use serde::{Deserialize, Serialize};

use crate::head::Description;
use crate::made::Made;
use crate::report::Report;

/// A report with what it is about, as it is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredReport {
    /// The experiment.
    pub experiment: String,
    /// How much trouble was taken: `quick` or `full`.
    pub effort: String,
    /// The description in the head of the experiment's file.
    pub description: Description,
    /// Its findings.
    pub report: Report,
    /// How it was made; unknown of reports that older versions have written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<Made>,
}
