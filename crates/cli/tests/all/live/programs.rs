//! The programs that take part, each ended when it is dropped. What they say goes to files, so that no full pipe holds
//! them.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long anything may take that is a matter of moments.
const PATIENCE: Duration = Duration::from_secs(60);

/// A program at work.
pub(crate) struct Program {
    child: Child,
    name: String,
    pub(crate) printed: PathBuf,
    said: PathBuf,
}

impl Program {
    /// Starts it; its files are in `directory`, named after `name`.
    pub(crate) fn start(mut command: Command, directory: &Path, name: &str) -> Self {
        let [printed, said] = ["out", "err"].map(|kind| directory.join(format!("{name}.{kind}")));
        command.stdin(Stdio::null()).stdout(File::create(&printed).unwrap()).stderr(File::create(&said).unwrap());
        Self { child: command.spawn().unwrap(), name: name.to_owned(), printed, said }
    }

    /// `ffmpeg` with these words, which says only what goes wrong.
    pub(crate) fn ffmpeg(words: &[&str], directory: &Path, name: &str) -> Self {
        let mut command = Command::new("ffmpeg");
        command.args(["-hide_banner", "-nostdin", "-loglevel", "error", "-y"]).args(words).current_dir(directory);
        Self::start(command, directory, name)
    }

    /// The output so far.
    pub(crate) fn output(&self) -> String {
        fs::read_to_string(&self.printed).unwrap()
    }

    /// Waits until it has printed what is looked for.
    pub(crate) fn until<T>(&mut self, what: &str, found: impl Fn(&str) -> Option<T>) -> T {
        let begun = Instant::now();
        loop {
            if let Some(found) = found(&self.output()) {
                return found;
            }
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "{} ended before {what}: {}", self.name, self.complaints());
            assert!(begun.elapsed() < PATIENCE, "{}: no {what} within {PATIENCE:?}", self.name);
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits for its end, which is to be a success.
    pub(crate) fn end(mut self, limit: Duration) {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                assert!(status.success(), "{}: {status}: {}", self.name, self.complaints());
                return;
            }
            assert!(begun.elapsed() < limit, "{} has not ended within {limit:?}", self.name);
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Asks it to end, as Ctrl-C does, and waits until it has.
    pub(crate) fn interrupt(mut self) {
        let _ = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status();
        let begun = Instant::now();
        while self.child.try_wait().unwrap().is_none() && begun.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn complaints(&self) -> String {
        fs::read_to_string(&self.said).unwrap_or_default()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
