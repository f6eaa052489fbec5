//! A described network, read from a file or from a text.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use fairpath_scenario::{Scenario, ScenarioFile, Sweep};
use fairpath_sim::SimError;

use crate::Unusable;

/// No scenario is larger: it would have a hundred thousand entries.
const SCENARIO_BYTES_MAX: u64 = 16 << 20;

/// No recorded rate is larger: it would have an opportunity every millisecond for half a day.
const TRACE_BYTES_MAX: u64 = 512 << 20;

/// A scenario file as it was read. Files that it names are looked for beside it.
#[derive(Debug, Clone)]
pub struct Described {
    name: String,
    beside: PathBuf,
    sweep: Sweep,
}

impl Described {
    /// Reads a file; the parameters in `set` have the value that stands there.
    ///
    /// # Errors
    ///
    /// Where the file cannot be read, or is no scenario ([`Unusable`]).
    pub fn read(path: &Path, set: &[(String, String)]) -> anyhow::Result<Self> {
        let name = path.display().to_string();
        let text = read_text(path, SCENARIO_BYTES_MAX).with_context(|| format!("cannot read the scenario {name}"))?;
        Ok(Self::parse(&text, &name, path.parent().unwrap_or(Path::new("")), set)?)
    }

    /// The same of a text; errors call it `name`, and files that it names are looked for in `beside`.
    ///
    /// # Errors
    ///
    /// Where the text is no scenario.
    pub fn parse(text: &str, name: &str, beside: &Path, set: &[(String, String)]) -> Result<Self, Unusable> {
        let read = |named: &str| read_beside(beside, named);
        let sweep = Sweep::parse_with(text, name, set, &read).map_err(|error| Unusable(error.to_string()))?;
        Ok(Self { name: name.to_owned(), beside: beside.to_owned(), sweep })
    }

    /// The name of the file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its parameters, and the combinations of their values.
    pub fn sweep(&self) -> &Sweep {
        &self.sweep
    }

    /// The file with one combination of the values of its parameters.
    ///
    /// # Errors
    ///
    /// Where the file cannot be meant with these values.
    pub fn at(&self, point: usize) -> Result<ScenarioFile, Unusable> {
        let read = |named: &str| read_beside(&self.beside, named);
        self.sweep.file(point, &read).map_err(|error| Unusable(error.to_string()))
    }

    /// The scenario with one combination of the values of its parameters; with this seed, or the file's.
    ///
    /// # Errors
    ///
    /// Where the file cannot be meant with these values.
    pub fn scenario(&self, point: usize, seed: Option<u64>) -> Result<Scenario, Unusable> {
        expand(&self.at(point)?, seed)
    }

    /// The error of a scenario that only the run has shown to be too much.
    pub fn too_much(&self, point: usize, error: &SimError) -> Unusable {
        let with = self.sweep.said(point);
        let with = if with.is_empty() { String::new() } else { format!(" (with {with})") };
        Unusable(format!("{}: {error}{with}", self.name))
    }
}

/// A file as a scenario.
///
/// # Errors
///
/// Where the file cannot be meant.
pub fn expand(file: &ScenarioFile, seed: Option<u64>) -> Result<Scenario, Unusable> {
    file.expand(seed).map_err(|error| Unusable(error.to_string()))
}

/// The text of a file that has at most so many bytes. Its size says nothing where it is a device.
fn read_text(path: &Path, most: u64) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(std::io::Error::other(format!("it has more than {most} bytes; give a smaller one")));
    }
    String::from_utf8(bytes).map_err(|_| std::io::Error::other("it is not text"))
}

fn read_beside(folder: &Path, name: &str) -> Result<String, String> {
    read_text(&folder.join(name), TRACE_BYTES_MAX).map_err(|error| error.to_string())
}
