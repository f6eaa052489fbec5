//! Writes a trace.

use std::io::{self, BufWriter, Write};

use crate::link::{LinkHeader, LinkRecord};
use crate::record::{Header, Record};

/// A trace could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the trace")]
pub struct WriteError(#[from] io::Error);

impl WriteError {
    /// The kind of failure: a full disk, a missing permission.
    pub fn kind(&self) -> io::ErrorKind {
        self.0.kind()
    }
}

/// Writes a header and then records, one per line, through a buffer.
///
/// End with [`Writer::finish`]: dropping a writer also empties the buffer, but cannot tell of an
/// error.
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: BufWriter<W>,
    line: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// A writer that has written the header.
    pub fn new(out: W, header: &Header) -> Result<Self, WriteError> {
        let mut writer = Self { out: BufWriter::new(out), line: Vec::new() };
        writer.write_line(header)?;
        Ok(writer)
    }

    /// A writer of links that has written their header.
    pub fn of_links(out: W, header: &LinkHeader) -> Result<Self, WriteError> {
        let mut writer = Self { out: BufWriter::new(out), line: Vec::new() };
        writer.write_line(header)?;
        Ok(writer)
    }

    /// Writes one record of a link.
    pub fn write_link(&mut self, record: &LinkRecord) -> Result<(), WriteError> {
        self.write_line(record)
    }

    /// Writes one record.
    pub fn write(&mut self, record: &Record) -> Result<(), WriteError> {
        self.write_line(record)
    }

    /// Empties the buffer, so that a reader of the file sees every record so far.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        Ok(self.out.flush()?)
    }

    /// Empties the buffer and gives back what was written to.
    pub fn finish(self) -> Result<W, WriteError> {
        Ok(self.out.into_inner().map_err(io::IntoInnerError::into_error)?)
    }

    fn write_line(&mut self, line: &impl serde::Serialize) -> Result<(), WriteError> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, line).map_err(io::Error::from)?;
        self.line.push(b'\n');
        Ok(self.out.write_all(&self.line)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes the first bytes and then has no room left.
    struct Full {
        room: usize,
    }

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.room == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            let taken = bytes.len().min(self.room);
            self.room -= taken;
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_is_told_at_the_latest_by_finish() {
        let writer = Writer::new(Full { room: 10 }, &Header::new(None)).expect("the header fits in the buffer");
        let error = writer.finish().err().expect("ten bytes hold no header");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn the_header_is_the_first_line_and_says_what_the_file_is() {
        let file = Writer::new(Vec::new(), &Header::new(Some("a \"b\"\n"))).unwrap().finish().unwrap();
        let text = String::from_utf8(file).unwrap();
        assert!(text.starts_with("{\"fairpath_trace\":1,\"version\":\""), "{text}");
        assert_eq!(text.lines().count(), 1, "a label with a line break stays on its line");
    }
}
