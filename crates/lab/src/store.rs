//! Where reports are kept: a folder for each experiment, and a page over all of them.

use std::fs;
use std::path::{Path, PathBuf};

use crate::context::Context;
use crate::experiment::Experiment;
use crate::made::{Made, Maker};
use crate::page;
use crate::report::Report;
use crate::store_error::StoreError;
use crate::stored_report::StoredReport;

/// A directory of reports.
#[derive(Clone, Debug)]
pub struct Store {
    root: PathBuf,
    maker: Maker,
}

impl Store {
    /// Makes the directory, where there is none.
    ///
    /// # Errors
    ///
    /// Where that is not possible, so that it is known before anything is run.
    pub fn create(root: &Path) -> Result<Self, StoreError> {
        fs::create_dir_all(root).map_err(|source| StoreError::Write { path: root.into(), source })?;
        let store = Self { root: root.into(), maker: Maker::default() };
        store.write_page()?;
        Ok(store)
    }

    /// The same, whose reports name who made them.
    pub fn made_by(self, maker: Maker) -> Self {
        Self { maker, ..self }
    }

    /// Keeps what benches have measured.
    ///
    /// # Errors
    ///
    /// Where something could not be written.
    pub fn keep_report(&self, stored: &StoredReport) -> Result<(), StoreError> {
        let folder = self.root.join(&stored.experiment);
        fs::create_dir_all(&folder).map_err(|source| StoreError::Write { path: folder.clone(), source })?;
        let json = serde_json::to_string_pretty(stored).expect("a report has only text keys and finite numbers");
        write(&folder.join("report.json"), &(json + "\n"))
    }

    /// The report of an experiment that the same command has left at the same commit; none where the code had changes
    /// then, since nobody knows whether they are the same.
    pub fn kept_by_same_command(&self, experiment: &Experiment, context: &Context) -> Option<StoredReport> {
        let text = fs::read_to_string(self.root.join(experiment.name()).join("report.json")).ok()?;
        let stored: StoredReport = serde_json::from_str(&text).ok()?;
        let now = Made::of(experiment.name(), context, &self.maker);
        let is_same = stored
            .made
            .as_ref()
            .is_some_and(|then| then.command == now.command && then.commit == now.commit && !then.is_of_changed_code());
        is_same.then_some(stored)
    }

    /// Where the page over all reports is.
    pub fn page(&self) -> PathBuf {
        self.root.join("index.html")
    }

    /// Keeps a report: `report.json`, a CSV file for each table, an SVG file for each figure; and
    /// writes the page anew.
    ///
    /// # Errors
    ///
    /// Where something could not be written.
    pub fn keep(&self, experiment: &Experiment, context: &Context, report: Report) -> Result<StoredReport, StoreError> {
        let folder = self.root.join(experiment.name());
        // Files of an earlier form of the experiment would be mistaken for this one's.
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(|source| StoreError::Write { path: folder.clone(), source })?;
        }
        fs::create_dir_all(&folder).map_err(|source| StoreError::Write { path: folder.clone(), source })?;
        for table in &report.tables {
            write(&folder.join(format!("{}.csv", table.name)), &table.csv())?;
        }
        for figure in &report.figures {
            write(&folder.join(format!("{}.svg", figure.name)), &figure.svg()?)?;
        }
        let stored = StoredReport {
            experiment: experiment.name().to_owned(),
            effort: context.effort().name().to_owned(),
            description: experiment.description(),
            report,
            made: Some(Made::of(experiment.name(), context, &self.maker)),
        };
        self.keep_report(&stored)?;
        self.write_page()?;
        Ok(stored)
    }

    /// The reports that are kept, in the order of the catalogue, and the names of those that cannot
    /// be read: another version of the program has written them.
    pub fn reports(&self) -> (Vec<StoredReport>, Vec<&'static str>) {
        let (mut reports, mut unreadable) = (Vec::new(), Vec::new());
        for experiment in crate::experiments() {
            let Ok(text) = fs::read_to_string(self.root.join(experiment.name()).join("report.json")) else { continue };
            match serde_json::from_str(&text) {
                Ok(report) => reports.push(report),
                Err(_) => unreadable.push(experiment.name()),
            }
        }
        (reports, unreadable)
    }

    fn write_page(&self) -> Result<(), StoreError> {
        let (reports, unreadable) = self.reports();
        write(&self.page(), &page::html(&reports, &unreadable)?)
    }
}

fn write(path: &Path, text: &str) -> Result<(), StoreError> {
    fs::write(path, text).map_err(|source| StoreError::Write { path: path.into(), source })
}
