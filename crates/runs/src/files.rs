//! The time series of a run, written while it goes on.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use fairpath_core::Timestamp;
use fairpath_scenario::Scenario;
use fairpath_sim::{Recorder, View};
use fairpath_trace::parquet::Table;
use fairpath_trace::{Header, LinkHeader, LinkRecord, Record, Writer};

use crate::picture::Picture;
use crate::records::{link_records, path_records};

/// Writes every sample, and draws.
pub struct Files {
    folder: PathBuf,
    flows: Vec<String>,
    paths: Writer<File>,
    path_table: Table<File, Record>,
    links: Writer<File>,
    link_table: Table<File, LinkRecord>,
    pub(crate) picture: Picture,
    /// The first thing that went wrong: a recorder cannot fail.
    fault: Option<anyhow::Error>,
}

impl Files {
    /// Creates all of them, so that a missing permission is found before the run.
    ///
    /// # Errors
    ///
    /// Where one of them cannot be written.
    pub fn create(folder: &Path, scenario: &Scenario) -> anyhow::Result<Self> {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot create the directory {}", folder.display()))?;
        let create = |name: &str| {
            let path = folder.join(name);
            File::create(&path).with_context(|| format!("cannot write {}", path.display()))
        };
        let run = Some(scenario.title.as_str());
        Ok(Self {
            folder: folder.to_owned(),
            flows: scenario.flows.iter().map(|flow| flow.name.clone()).collect(),
            paths: Writer::new(create("paths.ndjson")?, &Header::new(run))?,
            path_table: Table::new(create("paths.parquet")?)?,
            links: Writer::of_links(create("links.ndjson")?, &LinkHeader::new(run))?,
            link_table: Table::new(create("links.parquet")?)?,
            picture: Picture::new(scenario),
            fault: None,
        })
    }

    /// Whether something could not be written.
    ///
    /// # Errors
    ///
    /// That.
    pub fn fault(&mut self) -> anyhow::Result<()> {
        match self.fault.take() {
            None => Ok(()),
            Some(fault) => Err(fault.context(format!("cannot write to {}", self.folder.display()))),
        }
    }

    /// Ends all files and adds the summary and the picture; where they are.
    ///
    /// # Errors
    ///
    /// Where something cannot be written.
    pub fn finish(self, summary: &serde_json::Value) -> anyhow::Result<PathBuf> {
        let name = || format!("cannot write to {}", self.folder.display());
        self.paths.finish().with_context(name)?;
        self.path_table.finish().with_context(name)?;
        self.links.finish().with_context(name)?;
        self.link_table.finish().with_context(name)?;
        let text = serde_json::to_string_pretty(summary)? + "\n";
        std::fs::write(self.folder.join("summary.json"), text).with_context(name)?;
        std::fs::write(self.folder.join("picture.svg"), self.picture.svg()?).with_context(name)?;
        Ok(self.folder)
    }

    fn write(&mut self, now: Timestamp, view: &View<'_>) -> anyhow::Result<()> {
        let records: Vec<Record> = path_records(&self.flows, now, view).collect();
        records.into_iter().try_for_each(|record| self.push_path(record))?;
        for record in link_records(now, view) {
            self.push_link(record)?;
        }
        self.picture.add(now, view);
        Ok(())
    }

    pub(crate) fn push_path(&mut self, record: Record) -> anyhow::Result<()> {
        self.paths.write(&record)?;
        Ok(self.path_table.push(record)?)
    }

    pub(crate) fn push_link(&mut self, record: LinkRecord) -> anyhow::Result<()> {
        self.links.write_link(&record)?;
        Ok(self.link_table.push(record)?)
    }
}

impl Recorder for Files {
    fn hears_all(&self) -> bool {
        false
    }

    fn on_sample(&mut self, now: Timestamp, view: &View<'_>) {
        if self.fault.is_none() {
            self.fault = self.write(now, view).err();
        }
    }
}
