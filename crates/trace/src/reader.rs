//! Reads a trace.

use std::io::{self, BufRead, Read};

use fairpath_core::printable;

use crate::record::{FORMAT, Header, Record};

/// No line of a trace is longer; what is longer is not a trace, and is not read into memory.
pub const LINE_BYTES_MAX: usize = 64 * 1024;

/// A reason is cut where it is longer: it may quote what a file holds.
const REASON_CHARS_MAX: usize = 200;

/// A trace could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file could not be read.
    #[error("cannot read the trace")]
    Io(#[from] io::Error),
    /// The file is empty.
    #[error("the trace is empty: line 1 should be its header")]
    Empty,
    /// The first line is not a header.
    #[error("line 1, column {column}, is not the header of a Fairpath trace: {reason}")]
    Header {
        /// Where in the line, counted from 1.
        column: usize,
        /// The reason.
        reason: String,
    },
    /// A later version wrote the file in a format that this one does not know.
    #[error("the trace has format {found}; this version reads format {FORMAT}")]
    Format {
        /// The number in the header.
        found: u32,
    },
    /// A line is not a record.
    #[error("line {line}, column {column}, is not a record of a Fairpath trace: {reason}")]
    Record {
        /// The line, counted from 1.
        line: u64,
        /// Where in the line, counted from 1.
        column: usize,
        /// The reason.
        reason: String,
    },
    /// A line is longer than [`LINE_BYTES_MAX`].
    #[error("line {line} is longer than {LINE_BYTES_MAX} bytes")]
    LineTooLong {
        /// The line, counted from 1.
        line: u64,
    },
}

/// Reads the header at once and then gives the records one by one.
///
/// Unknown fields are accepted, and blank lines skipped. After a line that is not a record, the
/// next call goes on with the line after it; after any other error there is nothing more.
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    header: Header,
    buffer: Vec<u8>,
    line: u64,
    done: bool,
}

impl<R: BufRead> Reader<R> {
    /// A reader that has read the header.
    pub fn new(mut input: R) -> Result<Self, ReadError> {
        let mut buffer = Vec::new();
        if !read_line(&mut input, &mut buffer, 1)? {
            return Err(ReadError::Empty);
        }
        let header: Header = serde_json::from_slice(&buffer)
            .map_err(|error| ReadError::Header { column: error.column(), reason: reason(&error) })?;
        if header.fairpath_trace != FORMAT {
            return Err(ReadError::Format { found: header.fairpath_trace });
        }
        Ok(Self { input, header, buffer, line: 1, done: false })
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The next line that is not blank, in `buffer`; false at the end.
    fn advance(&mut self) -> Result<bool, ReadError> {
        loop {
            self.line += 1;
            if !read_line(&mut self.input, &mut self.buffer, self.line)? {
                return Ok(false);
            }
            if !self.buffer.trim_ascii().is_empty() {
                return Ok(true);
            }
        }
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<Record, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        match self.advance() {
            Ok(true) => {
                let line = self.line;
                let record = serde_json::from_slice(&self.buffer);
                Some(record.map_err(|error| ReadError::Record { line, column: error.column(), reason: reason(&error) }))
            }
            Ok(false) => {
                self.done = true;
                None
            }
            Err(error) => {
                self.done = true;
                Some(Err(error))
            }
        }
    }
}

/// The words of `error` without its own count of lines: it has seen one line only.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    printable(text.strip_suffix(&place).unwrap_or(&text), REASON_CHARS_MAX)
}

/// Reads one line into `buffer`, without its end; false where there is none.
fn read_line(input: &mut impl BufRead, buffer: &mut Vec<u8>, line: u64) -> Result<bool, ReadError> {
    buffer.clear();
    let limit = LINE_BYTES_MAX as u64 + 1;
    if input.take(limit).read_until(b'\n', buffer)? == 0 {
        return Ok(false);
    }
    if buffer.last() == Some(&b'\n') {
        buffer.pop();
    }
    if buffer.len() > LINE_BYTES_MAX {
        return Err(ReadError::LineTooLong { line });
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = r#"{"fairpath_trace":1,"version":"0.1.0"}"#;
    const RECORD: &str = r#"{"time_ns":1,"path":0,"cwnd_bytes":2,"srtt_ns":null,"rtt_min_ns":3,"in_flight_bytes":4,"rate_bps":5,"lost":6,"group":0,"state":"closed"}"#;

    fn read(text: &str) -> Vec<Result<Record, ReadError>> {
        Reader::new(text.as_bytes()).expect("a good header").collect()
    }

    #[test]
    fn an_unknown_field_is_accepted() {
        let newer = RECORD.replace("\"lost\"", "\"colour\":{\"a\":[1]},\"lost\"");
        assert!(read(&format!("{HEADER}\n{newer}\n"))[0].is_ok());
        assert!(Reader::new(&br#"{"fairpath_trace":1,"version":"9","host":"x"}"#[..]).is_ok());
    }

    #[test]
    fn a_bad_line_is_named_and_the_next_one_read() {
        let answers = read(&format!("{HEADER}\n{RECORD}\n\n{{\"time_ns\":-1}}\n{RECORD}\n"));
        assert_eq!(answers.len(), 3);
        assert!(matches!(answers[1], Err(ReadError::Record { line: 4, .. })), "{:?}", answers[1]);
        assert!(answers[0].is_ok() && answers[2].is_ok());
    }

    #[test]
    fn a_line_cut_off_by_a_crash_is_an_error_and_not_a_short_record() {
        let answers = read(&format!("{HEADER}\n{RECORD}\n{}", &RECORD[..40]));
        assert!(matches!(answers[1], Err(ReadError::Record { line: 3, .. })));
    }

    #[test]
    fn a_field_may_be_null_but_not_missing() {
        let answers = read(&format!("{HEADER}\n{}\n", RECORD.replace("\"srtt_ns\":null,", "")));
        let message = answers[0].as_ref().unwrap_err().to_string();
        assert!(message.starts_with("line 2, column ") && message.ends_with(": missing field `srtt_ns`"), "{message}");
    }

    #[test]
    fn what_is_not_a_trace_is_refused_at_the_header() {
        assert!(matches!(Reader::new(&b""[..]), Err(ReadError::Empty)));
        assert!(matches!(Reader::new(&b"time,path\n"[..]), Err(ReadError::Header { .. })));
        assert!(matches!(Reader::new(RECORD.as_bytes()), Err(ReadError::Header { .. })));
        let later = HEADER.replace(":1,", ":2,");
        assert!(matches!(Reader::new(later.as_bytes()), Err(ReadError::Format { found: 2 })));
    }

    #[test]
    fn what_is_quoted_of_a_line_is_short() {
        let header = HEADER.replace(":1,", &format!(":\"{}\",", "x".repeat(9_000)));
        let said = Reader::new(header.as_bytes()).unwrap_err().to_string();
        assert!(said.len() < 400, "{said}");
    }

    #[test]
    fn a_line_without_end_is_not_read_into_memory() {
        let endless = format!("{HEADER}\n{}", "x".repeat(3 * LINE_BYTES_MAX));
        let answers = read(&endless);
        assert_eq!(answers.len(), 1);
        assert!(matches!(answers[0], Err(ReadError::LineTooLong { line: 2 })));
    }
}
