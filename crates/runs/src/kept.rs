//! The time series of a run, kept in memory.

use std::path::{Path, PathBuf};

use fairpath_core::Timestamp;
use fairpath_scenario::Scenario;
use fairpath_sim::{Recorder, View};
use fairpath_trace::{LinkRecord, Record};
use serde_json::Value;

use crate::files::Files;
use crate::picture::Picture;
use crate::records::{link_records, path_records};

/// All samples of a run, and its picture.
pub struct Kept {
    flows: Vec<String>,
    /// Each path at each sample.
    pub paths: Vec<Record>,
    /// Each link at each sample.
    pub links: Vec<LinkRecord>,
    /// Its picture.
    pub picture: Picture,
}

impl Kept {
    /// Begins with nothing, for a run of this scenario.
    pub fn new(scenario: &Scenario) -> Self {
        let flows = scenario.flows.iter().map(|flow| flow.name.clone()).collect();
        Self { flows, paths: Vec::new(), links: Vec::new(), picture: Picture::new(scenario) }
    }

    /// Writes the files that [`Files`] would have written during the run, the same to the byte; where they are.
    ///
    /// # Errors
    ///
    /// Where something cannot be written.
    pub fn save(&self, folder: &Path, scenario: &Scenario, summary: &Value) -> anyhow::Result<PathBuf> {
        let mut files = Files::create(folder, scenario)?;
        for record in &self.paths {
            files.push_path(record.clone())?;
        }
        for record in &self.links {
            files.push_link(record.clone())?;
        }
        files.picture = self.picture.clone();
        files.finish(summary)
    }
}

impl Recorder for Kept {
    fn hears_all(&self) -> bool {
        false
    }

    fn on_sample(&mut self, now: Timestamp, view: &View<'_>) {
        self.paths.extend(path_records(&self.flows, now, view));
        self.links.extend(link_records(now, view));
        self.picture.add(now, view);
    }
}
