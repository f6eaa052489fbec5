//! Where a ticket comes from: the command line, a file, standard input or the environment.
//!
//! A ticket is a secret, so a word that may be one, whole or in part, is never shown again.

use std::ffi::OsString;
use std::io::{IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};

use fairpath_report::text::tell;
use fairpath_transfer::{Ticket, TicketError};

use crate::error::UsageError;

/// The environment's ticket.
pub(crate) const VARIABLE: &str = "FAIRPATH_TICKET";

/// Every ticket is shorter: 32 addresses of IPv6 make 1,100 characters.
const LONGEST: u64 = 4096;

/// From here on a word may be a part of a ticket that is worth something to others.
const SHORTEST_PART: usize = 17;

/// The ticket of an end that connects.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct TicketArgs {
    /// Read the ticket from this file; `-` is standard input
    #[arg(long, value_name = "FILE")]
    ticket_file: Option<PathBuf>,
}

impl TicketArgs {
    /// Whether the ticket comes from a file or from the environment.
    pub(crate) fn is_given(&self) -> bool {
        self.ticket_file.is_some() || std::env::var_os(VARIABLE).is_some_and(|value| !value.is_empty())
    }

    /// The ticket, and the words before it. It is the last one of `words` unless it comes from elsewhere.
    pub(crate) fn take(&self, words: Vec<PathBuf>) -> Result<(Vec<PathBuf>, Ticket), UsageError> {
        let (words, source) = choose(words, self.ticket_file.as_deref(), std::env::var_os(VARIABLE))?;
        let ticket = source.read()?;
        Ok((words, ticket))
    }

    /// The same where files stand before the ticket: `-` may be one of them, standard input.
    pub(crate) fn take_behind_files(&self, words: Vec<PathBuf>) -> Result<(Vec<PathBuf>, Ticket), UsageError> {
        let file = self.ticket_file.as_deref();
        let (words, source) = choose_behind_files(words, file, std::env::var_os(VARIABLE))?;
        if source == Source::Input && words.iter().any(|word| is_input(word)) {
            return Err(UsageError(format!(
                "standard input cannot be both the ticket and what is sent: give the ticket as the last word, with \
                 --ticket-file, or in {VARIABLE}"
            )));
        }
        let ticket = source.read()?;
        Ok((words, ticket))
    }
}

/// The words that are no ticket, where none is needed.
pub(crate) fn without_ticket(words: Vec<PathBuf>) -> Result<Vec<PathBuf>, UsageError> {
    // Any variable stands for a ticket: it is not read.
    choose_behind_files(words, None, Some("none".into())).map(|(words, _)| words)
}

/// Whether a word means standard input.
pub(crate) fn is_input(word: &Path) -> bool {
    [DASH, "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"].iter().any(|name| word.as_os_str() == *name)
}

/// Standard input, in the place of a file or of the ticket.
pub(crate) const DASH: &str = "-";

/// Where the ticket is.
#[derive(Debug, PartialEq)]
enum Source {
    Word(OsString),
    Variable(OsString),
    File(PathBuf),
    Input,
}

/// Finds the ticket among the words, if it is one of them, where files stand before it. A dash in the last place is
/// the ticket, unless that comes from a file, or from the environment and the dash is all there is to send.
fn choose_behind_files(
    mut words: Vec<PathBuf>,
    file: Option<&Path>,
    variable: Option<OsString>,
) -> Result<(Vec<PathBuf>, Source), UsageError> {
    let has_variable = variable.as_ref().is_some_and(|value| !value.is_empty());
    let is_dash = words.last().is_some_and(|word| word.as_os_str() == DASH);
    if is_dash && (file.is_some() || words.len() == 1 && has_variable) {
        let dash = words.pop();
        let (mut words, source) = choose(words, file, variable)?;
        words.extend(dash);
        return Ok((words, source));
    }
    if is_dash && words.len() == 1 {
        return Err(UsageError(format!(
            "`-` alone is standard input to be sent, and there is no ticket: give it as the last word, with \
             --ticket-file, or in {VARIABLE}"
        )));
    }
    choose(words, file, variable)
}

/// Separates the ticket from the other words and names its source.
fn choose(
    mut words: Vec<PathBuf>,
    file: Option<&Path>,
    variable: Option<OsString>,
) -> Result<(Vec<PathBuf>, Source), UsageError> {
    let last = words.last().cloned().unwrap_or_default();
    let is_word = last.as_os_str() == DASH || begins_like_a_ticket(&last) && !last.exists();
    let source = match (file, is_word) {
        (Some(_), true) => {
            return Err(UsageError("two tickets are given: the last word, and --ticket-file; leave one out".into()));
        }
        (Some(file), false) if file.as_os_str() == DASH => Source::Input,
        (Some(file), false) => Source::File(file.to_owned()),
        (None, true) => match words.pop().unwrap_or_default() {
            dash if dash.as_os_str() == DASH => Source::Input,
            word => Source::Word(word.into_os_string()),
        },
        (None, false) => match variable.filter(|value| !value.is_empty()) {
            Some(value) => Source::Variable(value),
            None => return Err(no_ticket(&last)),
        },
    };
    match words.iter().any(|word| !word.exists() && (begins_like_a_ticket(word) || may_be_a_part(word))) {
        true => Err(UsageError(
            "a word that is no file may be a ticket or a part of one, and is not shown: the ticket comes last, once, \
             and is one word without spaces"
                .into(),
        )),
        false => Ok((words, source)),
    }
}

/// Whether this may be meant as a ticket, however mistyped behind its first letters.
fn begins_like_a_ticket(word: &Path) -> bool {
    let text = word.to_string_lossy();
    let mut letters = text.trim_start().chars();
    let mut head = || letters.next().unwrap_or_default().to_ascii_lowercase();
    head() == 'f' && head() == 'p' && head().is_ascii_digit()
}

/// Whether this may be a piece of a ticket.
fn may_be_a_part(word: &Path) -> bool {
    let text = word.to_string_lossy();
    let text = text.trim();
    text.len() >= SHORTEST_PART && text.chars().all(|one| one.is_ascii_alphanumeric())
}

/// Shows the last word, in the ticket's place, only if it cannot be a secret.
fn no_ticket(last: &Path) -> UsageError {
    let shown = last.to_string_lossy();
    let ways =
        format!("as the last word, or `-` to read it from standard input, or with --ticket-file, or in {VARIABLE}");
    let is_harmless = last.exists() || shown.len() < SHORTEST_PART && shown.contains(['.', '/']);
    UsageError(match is_harmless {
        true => format!(
            "'{}' stands in the place of the ticket, which begins with \"fp1\" and is given {ways}",
            fairpath_transfer::printable(&shown)
        ),
        false => format!("there is no ticket: it begins with \"fp1\", and is given {ways}"),
    })
}

impl Source {
    fn read(self) -> Result<Ticket, UsageError> {
        match self {
            Self::Word(word) => parse(&word.to_string_lossy(), ""),
            Self::Variable(value) => parse(&value.to_string_lossy(), &format!(" in {VARIABLE}")),
            Self::File(path) => {
                warn_if_open(&path, "ticket");
                let text = std::fs::File::open(&path).and_then(read_line);
                let shown = path.display();
                let text = text.map_err(|error| UsageError(format!("cannot read the ticket from {shown}: {error}")))?;
                parse(&text, &format!(" in {shown}"))
            }
            Self::Input => {
                if std::io::stdin().is_terminal() {
                    tell("Paste the ticket, and press Enter:");
                    let mut line = String::new();
                    let read = std::io::stdin().read_line(&mut line);
                    read.map_err(|error| UsageError(format!("cannot read the ticket: {error}")))?;
                    return parse(&line, "");
                }
                let text = read_line(std::io::stdin().lock());
                let text =
                    text.map_err(|error| UsageError(format!("cannot read the ticket from standard input: {error}")))?;
                parse(&text, " on standard input")
            }
        }
    }
}

fn read_line(from: impl std::io::Read) -> std::io::Result<String> {
    let mut text = Vec::new();
    from.take(LONGEST).read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn parse(text: &str, place: &str) -> Result<Ticket, UsageError> {
    if text.trim().is_empty() {
        return Err(UsageError(format!("there is no ticket{place}: it is empty")));
    }
    text.parse().map_err(|error: TicketError| match place {
        "" => UsageError(error.to_string()),
        _ => UsageError(format!("the ticket{place} is of no use: {error}")),
    })
}

/// Says so where other users of this machine can read the file. It is no error: the file may lie where
/// only its owner comes.
#[cfg(unix)]
pub(crate) fn warn_if_open(path: &Path, secret: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    if let Ok(metadata) = path.metadata()
        && metadata.is_file()
        && metadata.permissions().mode() & 0o077 != 0
    {
        let path = path.display();
        tell(format!("warning: other users of this machine may read the {secret} in {path}: chmod 600 {path}"));
    }
}

#[cfg(not(unix))]
pub(crate) fn warn_if_open(_: &Path, _: &str) {}

#[cfg(test)]
mod tests {
    use super::*;

    const TICKET: &str = "fp1abcdefghijklmnopqrstuvwxyz234567";

    fn words(all: &[&str]) -> Vec<PathBuf> {
        all.iter().map(PathBuf::from).collect()
    }

    fn chosen(all: &[&str], file: Option<&str>, variable: Option<&str>) -> Result<(usize, Source), String> {
        let chosen = choose_behind_files(words(all), file.map(Path::new), variable.map(OsString::from));
        chosen.map(|(words, source)| (words.len(), source)).map_err(|error| error.to_string())
    }

    #[test]
    fn each_way_to_give_a_ticket_leaves_the_files() {
        let file = "Cargo.toml";
        assert_eq!(chosen(&[file, TICKET], None, None), Ok((1, Source::Word(TICKET.into()))));
        assert_eq!(chosen(&[file, file, "-"], None, None), Ok((2, Source::Input)));
        assert_eq!(chosen(&[file, file], Some("t"), None), Ok((2, Source::File("t".into()))));
        assert_eq!(chosen(&[file], Some("-"), None), Ok((1, Source::Input)));
        assert_eq!(chosen(&[file], None, Some(TICKET)), Ok((1, Source::Variable(TICKET.into()))));
        // The command line takes precedence over the environment.
        assert_eq!(chosen(&[file, "-"], None, Some(TICKET)), Ok((1, Source::Input)));
        assert_eq!(chosen(&[file], Some("t"), Some(TICKET)), Ok((1, Source::File("t".into()))));
    }

    #[test]
    fn a_dash_is_sent_where_the_ticket_is_elsewhere() {
        assert_eq!(chosen(&["-", TICKET], None, None), Ok((1, Source::Word(TICKET.into()))));
        assert_eq!(chosen(&["-"], Some("t"), None), Ok((1, Source::File("t".into()))));
        assert_eq!(chosen(&["Cargo.toml", "-"], Some("t"), None), Ok((2, Source::File("t".into()))));
        assert_eq!(chosen(&["-"], None, Some(TICKET)), Ok((1, Source::Variable(TICKET.into()))));
        assert!(chosen(&["-"], None, None).unwrap_err().contains("there is no ticket"));
        for (all, file) in [(&["-", "-"][..], None), (&["/dev/stdin", "-"], None), (&["-"], Some("-"))] {
            let args = TicketArgs { ticket_file: file.map(PathBuf::from) };
            let error = args.take_behind_files(words(all)).unwrap_err().to_string();
            assert!(error.contains("both the ticket and what is sent"), "{all:?} {file:?}: {error}");
        }
    }

    #[test]
    fn nothing_that_may_be_a_ticket_is_shown() {
        let mistyped = TICKET.replace('a', "A");
        let (left, right) = TICKET.split_at(16);
        for (all, file, variable) in [
            (&["Cargo.toml", &TICKET[1..]][..], None, None),
            (&["Cargo.toml", &TICKET[1..]], None, Some(TICKET)),
            (&["Cargo.toml", &TICKET[1..]], Some("t"), None),
            (&["Cargo.toml", TICKET], Some("t"), None),
            (&[TICKET, "Cargo.toml"], None, None),
            (&[TICKET, TICKET], None, None),
            (&["Cargo.toml", left, right], None, None),
            (&["Cargo.toml", left, right], None, Some(TICKET)),
            (&[&mistyped, "-"], None, None),
        ] {
            let error = chosen(all, file, variable).unwrap_err();
            for part in [&TICKET[4..10], &mistyped[4..10], &TICKET[20..26]] {
                assert!(!error.contains(part), "{all:?}: {error}");
            }
        }
        for text in [TICKET, &mistyped, &TICKET[..20], &format!("{TICKET}!")] {
            let error = parse(text, " in x").unwrap_err().to_string();
            assert!(!error.contains(&text[4..10]), "{error}");
        }
    }

    #[test]
    fn a_forgotten_ticket_is_told_by_the_file_in_its_place() {
        let told = |word| chosen(&[word], None, None).unwrap_err();
        assert!(told("Cargo.toml").contains("'Cargo.toml' stands in the place of the ticket"));
        assert!(told("notes.txt").contains("'notes.txt'"));
        assert!(told("hereisnoticketatall").contains("there is no ticket"));
        assert!(chosen(&[], None, None).unwrap_err().contains("there is no ticket"));
    }

    #[test]
    fn an_empty_ticket_is_told_by_its_place() {
        assert_eq!(parse(" \n", " in x").unwrap_err().to_string(), "there is no ticket in x: it is empty");
    }
}
