//! Standard output and standard error: tables for people, lines for programs.

use std::fmt::Display;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use fairpath_core::printable;

/// No line of a message is longer, in characters: paths and several addresses fit in.
const LINE_CHARS_MAX: usize = 2000;

/// No message has more lines.
const LINES_MAX: usize = 100;

/// A message as it may be shown. It may quote names and contents of files, and what a peer says: these
/// must neither flood the screen nor control it.
pub fn safe(message: &str) -> String {
    let mut lines = message.split('\n').map(|line| printable(line, LINE_CHARS_MAX));
    let mut shown: Vec<String> = lines.by_ref().take(LINES_MAX).collect();
    let left_out = lines.count();
    if left_out > 0 {
        shown.push(format!("… and {left_out} more lines"));
    }
    shown.join("\n")
}

/// The question that stands in the terminal without an end of its line, if there is one.
static QUESTION: Mutex<Option<Question>> = Mutex::new(None);

struct Question {
    text: String,
    is_open: Box<dyn Fn() -> bool + Send>,
}

/// Goes to the beginning of the line, and clears it.
const CLEAR_LINE: &str = "\r\u{1b}[2K";

/// Writes a question to standard error, which is a terminal. What is told later stands above it, until it is not open any
/// more. There is one terminal, and so one question: a newer one takes the place of an older one.
pub fn ask(text: &str, is_open: impl Fn() -> bool + Send + 'static) {
    let mut question = question();
    *question = Some(Question { text: text.to_owned(), is_open: Box::new(is_open) });
    let _ = write!(io::stderr(), "{text}");
}

/// The question was answered: the terminal has ended its line.
pub fn answered() {
    *question() = None;
}

fn question() -> MutexGuard<'static, Option<Question>> {
    QUESTION.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes something. A question that is open stands below it afterwards.
fn above<T>(write: impl FnOnce() -> T) -> T {
    let mut question = question();
    if question.is_some() {
        let _ = write!(io::stderr(), "{CLEAR_LINE}");
    }
    let written = write();
    match &*question {
        Some(open) if (open.is_open)() => {
            let _ = write!(io::stderr(), "{}", open.text);
        }
        _ => *question = None,
    }
    written
}

/// Whether standard output carries what is received: then lines go to standard error.
static IS_FOR_DATA: AtomicBool = AtomicBool::new(false);

/// Keeps standard output free of lines.
pub fn keep_output_for_data() {
    IS_FOR_DATA.store(true, Ordering::Relaxed);
}

/// A line on standard output, or on standard error where that carries data.
pub fn print_line(line: &str) -> anyhow::Result<()> {
    if IS_FOR_DATA.load(Ordering::Relaxed) {
        return above(|| writeln!(Output(io::stderr()), "{line}")).context("cannot write to standard error");
    }
    above(|| writeln!(Output(io::stdout()), "{line}")).context("cannot write to standard output")
}

/// Standard output, for what has more than a line.
pub fn output() -> Output<io::StdoutLock<'static>> {
    Output(io::stdout().lock())
}

/// A line on standard error, which may be closed: that ends nothing.
pub fn tell(line: impl Display) {
    let _ = above(|| writeln!(io::stderr(), "{line}"));
}

/// The same without an end of the line.
pub fn tell_part(part: impl Display) {
    let _ = above(|| write!(io::stderr(), "{part}"));
}

/// Takes everything where nobody reads any more: `fairpath … | head` has what it wanted, and what the
/// program does beside telling goes on.
#[derive(Debug)]
pub struct Output<W>(W);

impl<W: Write> Write for Output<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        unless_closed(self.0.write(bytes), bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        unless_closed(self.0.flush(), ())
    }
}

/// Whether a reader of output has gone away. A program that only shows something may end then.
pub fn is_unread() -> bool {
    IS_UNREAD.load(Ordering::Relaxed)
}

static IS_UNREAD: AtomicBool = AtomicBool::new(false);

fn unless_closed<T>(result: io::Result<T>, done: T) -> io::Result<T> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            IS_UNREAD.store(true, Ordering::Relaxed);
            Ok(done)
        }
        other => other,
    }
}

/// A time as a person gives it: a number and its unit, or 0.
pub fn duration(text: &str) -> Result<Duration, &'static str> {
    const RIGHT: &str = "a number and a unit are needed, such as 90s, 10min or 2h; or 0";
    let text = text.trim();
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let (number, unit) = text.split_at(text.find(|one: char| !one.is_ascii_digit()).ok_or(RIGHT)?);
    let seconds: u64 = match unit.trim() {
        "s" => 1,
        "min" => 60,
        "h" => 3600,
        _ => return Err(RIGHT),
    };
    let number: u64 = number.parse().map_err(|_| RIGHT)?;
    // A year is for ever here, and leaves room for any sum of times.
    number.checked_mul(seconds).filter(|all| *all <= 366 * 86_400).map(Duration::from_secs).ok_or("no more than a year")
}

/// A time for a person, short and with its unit.
pub fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{}:{:02} min", seconds / 60, seconds % 60),
        _ => format!("{}:{:02} h", seconds / 3600, seconds / 60 % 60),
    }
}

/// A table with a line of headings; columns are as wide as their widest cell, and those whose cells
/// begin with a digit or a dash stand to the right.
pub fn table(headings: &[&str], rows: &[Vec<String>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([headings[column].chars().count()]).max().unwrap_or(0)
    };
    let numeric = |column: usize| {
        !rows.is_empty() && rows.iter().all(|row| row[column].starts_with(|c: char| c.is_ascii_digit() || c == '-'))
    };
    let line = |cells: Vec<&str>| {
        let mut line = String::new();
        for (column, cell) in cells.iter().enumerate() {
            let width = width(column);
            match numeric(column) {
                true => line.push_str(&format!("{cell:>width$}  ")),
                false => line.push_str(&format!("{cell:<width$}  ")),
            }
        }
        line.trim_end().to_owned() + "\n"
    };
    let mut text = line(headings.to_vec());
    for row in rows {
        text += &line(row.iter().map(String::as_str).collect());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_neither_endless_nor_does_it_control_the_terminal() {
        assert_eq!(safe("first line\nµs: \u{1b}[2J"), "first line\nµs: \\u{1b}[2J");
        assert!(safe(&"x".repeat(4_000_000)).len() < 3_000);
        assert!(safe(&"\n".repeat(4_000_000)).len() < 3_000);
    }

    /// A pipe that nobody reads, and a disk that is full.
    struct Broken(io::ErrorKind);

    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(self.0.into())
        }
    }

    #[test]
    fn a_reader_that_has_gone_is_no_failure_and_a_full_disk_is() {
        assert!(writeln!(Output(Broken(io::ErrorKind::BrokenPipe)), "a line").is_ok());
        assert!(writeln!(Output(Broken(io::ErrorKind::StorageFull)), "a line").is_err());
    }

    #[test]
    fn times_are_short_and_carry_their_unit() {
        assert_eq!(clock(Duration::from_secs(59)), "59 s");
        assert_eq!(clock(Duration::from_secs(61)), "1:01 min");
        assert_eq!(clock(Duration::from_secs(7260)), "2:01 h");
    }

    #[test]
    fn a_time_is_a_number_with_its_unit() {
        let given = ["0", "90s", "10 min", "2h"].map(|text| duration(text).map(|time| time.as_secs()));
        assert_eq!(given, [Ok(0), Ok(90), Ok(600), Ok(7200)]);
        for wrong in ["", "10", "min", "-1s", "1.5h", "9 days", "99999999999999999999s", "400000h"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn numbers_stand_to_the_right_and_words_to_the_left() {
        let rows = [vec!["lia".into(), "9.5".into()], vec!["uncoupled".into(), "18.25".into()]];
        assert_eq!(table(&["mode", "rate"], &rows), "mode        rate\nlia          9.5\nuncoupled  18.25\n");
    }
}
