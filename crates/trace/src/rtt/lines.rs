//! Files of lines, and the numbers in them.

use core::time::Duration;
use std::io::{self, BufRead, Read as _};

use fairpath_core::Timestamp;

/// No line is longer; what is longer is told and skipped, and not read into memory.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// The most bytes of what is not text that are quoted.
const QUOTED_BYTES: usize = 16;

/// Reads lines one after the other into the same memory.
#[derive(Debug)]
pub(super) struct Lines<R> {
    input: R,
    buffer: Vec<u8>,
    number: u64,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input, buffer: Vec::new(), number: 0 }
    }

    /// The next line that is not blank, with its number from 1 on and without white space around it;
    /// the error of a line is what is wrong with it as text.
    pub(super) fn next(&mut self) -> io::Result<Option<(u64, Result<&str, String>)>> {
        loop {
            self.buffer.clear();
            self.number += 1;
            let read = self.input.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut self.buffer)?;
            if read == 0 {
                return Ok(None);
            }
            let whole = read as u64 != LINE_BYTES_MAX || self.buffer.ends_with(b"\n");
            if !whole {
                self.input.skip_until(b'\n')?;
                return Ok(Some((self.number, Err(format!("the line is longer than {LINE_BYTES_MAX} bytes")))));
            }
            if !self.buffer.trim_ascii().is_empty() {
                break;
            }
        }
        let line = str::from_utf8(&self.buffer).map(|line| line.trim_start_matches('\u{feff}').trim());
        let line = line.map_err(|_| format!("'{}' is not text", beginning(self.buffer.trim_ascii())));
        Ok(Some((self.number, line)))
    }
}

/// The first bytes of something that is not text, with an ellipsis where there are more.
fn beginning(bytes: &[u8]) -> String {
    let ellipsis = if bytes.len() > QUOTED_BYTES { "…" } else { "" };
    format!("{}{ellipsis}", bytes[..bytes.len().min(QUOTED_BYTES)].escape_ascii())
}

/// A time in a unit of `unit_s` seconds since the zero of the clock; `None`: a clock cannot show it.
pub(super) fn time(value: f64, unit_s: f64) -> Option<Timestamp> {
    // 2^64 ns are 584 years.
    let since = duration(value, unit_s)?;
    (since.as_secs() < u64::MAX / 1_000_000_000).then(|| Timestamp::ZERO + since)
}

/// A duration in a unit of `unit_s` seconds; `None`: there is none like that.
pub(super) fn duration(value: f64, unit_s: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(value * unit_s).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_too_long_is_skipped_and_the_next_one_read() {
        let text = format!("a\n\n{}\n b \r\n", "x".repeat(3 << 20));
        let mut lines = Lines::new(text.as_bytes());
        assert_eq!(lines.next().unwrap(), Some((1, Ok("a"))));
        let long = lines.next().unwrap().unwrap();
        assert!(long.0 == 3 && long.1.unwrap_err().contains("longer than"));
        assert_eq!(lines.next().unwrap(), Some((4, Ok("b"))));
        assert_eq!(lines.next().unwrap(), None);
    }

    #[test]
    fn what_is_not_text_is_quoted_by_its_beginning() {
        let binary = [b"a\xff".as_slice(), &vec![7; 1000], b"\n"].concat();
        let said = Lines::new(binary.as_slice()).next().unwrap().unwrap().1.unwrap_err();
        assert_eq!(said, format!("'a\\xff{}…' is not text", r"\x07".repeat(14)));
    }

    #[test]
    fn no_time_is_negative_or_endless() {
        assert_eq!(time(1.5, 1.0), Some(Timestamp::from_millis(1500)));
        assert_eq!(duration(250.0, 1e-6), Some(Duration::from_micros(250)));
        for value in [-1.0, f64::NAN, f64::INFINITY, 1e11] {
            assert_eq!(time(value, 1.0), None, "{value}");
        }
    }
}
