//! Options of `send` and `recv` about files.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use clap::ValueEnum;
use fairpath_transfer::{Choice, Existing, Filter, Limits, Links, Name};

use crate::error::UsageError;
use crate::ticket_args::DASH;

/// The heading of these options.
const FILES: &str = "Files";

/// Selects among the content of the named directories.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = FILES)]
pub(crate) struct SentFiles {
    /// Symbolic links inside directories
    #[arg(long, value_enum, value_name = "HOW", default_value_t = LinksWord::Keep)]
    links: LinksWord,
    /// Leave out names inside directories that match this pattern, by the rules of .gitignore: `*.o`, `/build/`
    #[arg(long, value_name = "PATTERN")]
    exclude: Vec<String>,
    /// Send names that match this pattern although `--exclude` names them, in directories that are sent
    #[arg(long, value_name = "PATTERN", requires = "exclude")]
    include: Vec<String>,
    /// Send hard links as such, times of directories, and extended attributes (`user.*`), for a receiver with `--archive`
    #[arg(long)]
    archive: bool,
    /// The name under which it arrives, where one thing is sent; standard input is `stdin` without
    #[arg(long, value_name = "NAME")]
    name: Option<OsString>,
    /// List what would be sent, and send nothing; needs no ticket
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// How symbolic links are treated.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum LinksWord {
    /// Left out
    Skip,
    /// Sent as links where they stay inside what is sent; others are left out and named
    Keep,
    /// Sent as what they lead to
    Follow,
}

impl SentFiles {
    /// The files among these words, and the rest of what the user wants. Something has to be named.
    pub(crate) fn chosen(&self, words: Vec<PathBuf>) -> Result<(Vec<PathBuf>, Choice), UsageError> {
        if words.is_empty() {
            let nothing = "nothing to send: name at least one file or directory before the ticket";
            return Err(UsageError(nothing.into()));
        }
        let (inputs, files): (Vec<_>, Vec<_>) = words.into_iter().partition(|word| word.as_os_str() == DASH);
        if inputs.len() > 1 {
            return Err(UsageError("`-` stands twice among what is sent: standard input can be read once".into()));
        }
        let choice = self.choice(!inputs.is_empty())?;
        Ok((files, choice))
    }

    fn choice(&self, input: bool) -> Result<Choice, UsageError> {
        let links = match self.links {
            LinksWord::Skip => Links::Skip,
            LinksWord::Keep => Links::Keep,
            LinksWord::Follow => Links::Follow,
        };
        let filter = Filter::new(&self.exclude, &self.include).map_err(|error| UsageError(error.to_string()))?;
        let name = self.name.as_ref().map(|name| Name::new(name.as_bytes()));
        Ok(Choice { links, filter, archive: self.archive, input, name })
    }
}

/// Rules for the files that are offered.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = FILES)]
pub(crate) struct ReceivedFiles {
    /// Overwrite existing files; the same as `--existing overwrite`
    #[arg(long, conflicts_with = "existing")]
    force: bool,
    /// Files that exist with other content; without it nothing is received, and all of them are named
    #[arg(long, value_enum, value_name = "HOW")]
    existing: Option<ExistingWord>,
    /// Take names that begin with a dot too, in which programs look for their settings
    #[arg(long)]
    allow_hidden: bool,
    /// Keep all permissions but setuid and setgid; otherwise files are not executable, and nothing is more open than
    /// at the sender
    #[arg(long)]
    keep_modes: bool,
    /// Keep what the sender has: `--keep-modes`, `--allow-hidden`, the times of directories, and what the sender's
    /// `--archive` brings
    #[arg(long)]
    archive: bool,
}

/// How existing files are treated.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ExistingWord {
    /// They stay, and the new ones are left out
    Skip,
    /// They are replaced by newer ones
    Newer,
    /// They stay, and the new ones get other names: `x (1).jpg`
    Rename,
    /// They are replaced
    Overwrite,
}

impl ReceivedFiles {
    /// How existing files are treated.
    pub(crate) fn existing(&self) -> Existing {
        match self.existing {
            None if self.force => Existing::Overwrite,
            None => Existing::Refuse,
            Some(ExistingWord::Skip) => Existing::Skip,
            Some(ExistingWord::Newer) => Existing::Newer,
            Some(ExistingWord::Rename) => Existing::Rename,
            Some(ExistingWord::Overwrite) => Existing::Overwrite,
        }
    }

    /// The limits of what is accepted.
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            hidden: self.allow_hidden || self.archive,
            modes: self.keep_modes || self.archive,
            archive: self.archive,
            ..Limits::default()
        }
    }
}
