//! Records as Parquet tables, for programs that read columns.
//!
//! The columns are those of the records, under the same names. Numbers are 64-bit integers; what is
//! `null` in a record is null here.

use std::io::Write;
use std::sync::Arc;

use ::parquet::basic::{Compression, ConvertedType, Repetition, Type as Physical};
use ::parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::types::Type;

use crate::link::LinkRecord;
use crate::record::Record;

/// A table could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the table")]
pub struct TableError(#[from] ParquetError);

/// The number of rows that are kept in memory and written together.
const ROWS: usize = 1 << 16;

/// A value of a row.
#[derive(Clone, Debug)]
pub enum Value<'a> {
    /// A number, or null.
    Number(Option<u64>),
    /// A word, or null.
    Text(Option<&'a str>),
}

/// A row of a table.
pub trait Row {
    /// The names of the columns.
    const COLUMNS: &'static [&'static str];
    /// The columns that hold words; the others hold numbers.
    const WORDS: &'static [&'static str];

    /// The value in a column, by its position.
    fn value(&self, column: usize) -> Value<'_>;
}

impl Row for Record {
    const COLUMNS: &'static [&'static str] = &crate::csv::COLUMNS;
    const WORDS: &'static [&'static str] = &["run", "flow", "state"];

    fn value(&self, column: usize) -> Value<'_> {
        match column {
            0 => Value::Text(self.run.as_deref()),
            1 => Value::Text(self.flow.as_deref()),
            2 => Value::Number(Some(self.time_ns)),
            3 => Value::Number(Some(self.path.into())),
            4 => Value::Number(Some(self.cwnd_bytes)),
            5 => Value::Number(self.srtt_ns),
            6 => Value::Number(self.rtt_min_ns),
            7 => Value::Number(Some(self.in_flight_bytes)),
            8 => Value::Number(self.rate_bps),
            9 => Value::Number(Some(self.lost)),
            10 => Value::Number(Some(self.group.into())),
            _ => Value::Text(Some(self.state.as_str())),
        }
    }
}

impl Row for LinkRecord {
    const COLUMNS: &'static [&'static str] =
        &["time_ns", "link", "queued_packets", "queued_bytes", "delivered_bytes", "dropped_packets", "marked_packets"];
    const WORDS: &'static [&'static str] = &["link"];

    fn value(&self, column: usize) -> Value<'_> {
        match column {
            0 => Value::Number(Some(self.time_ns)),
            1 => Value::Text(Some(&self.link)),
            2 => Value::Number(Some(self.queued_packets)),
            3 => Value::Number(Some(self.queued_bytes)),
            4 => Value::Number(Some(self.delivered_bytes)),
            5 => Value::Number(Some(self.dropped_packets)),
            _ => Value::Number(Some(self.marked_packets)),
        }
    }
}

/// Writes rows, many at a time.
pub struct Table<W: Write + Send, R: Row> {
    writer: SerializedFileWriter<W>,
    rows: Vec<R>,
}

impl<W: Write + Send, R: Row> Table<W, R> {
    /// An empty table.
    ///
    /// # Errors
    ///
    /// Where `out` takes no more.
    pub fn new(out: W) -> Result<Self, TableError> {
        let field = |name: &&str| {
            let (physical, converted) = match R::WORDS.contains(name) {
                false => (Physical::INT64, ConvertedType::UINT_64),
                true => (Physical::BYTE_ARRAY, ConvertedType::UTF8),
            };
            let field = Type::primitive_type_builder(name, physical);
            field.with_repetition(Repetition::OPTIONAL).with_converted_type(converted).build().map(Arc::new)
        };
        let fields = R::COLUMNS.iter().map(field).collect::<Result<_, _>>()?;
        let schema = Type::group_type_builder("fairpath").with_fields(fields).build()?;
        let created_by = concat!("fairpath ", env!("CARGO_PKG_VERSION")).to_owned();
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).set_created_by(created_by);
        let writer = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties.build()))?;
        Ok(Self { writer, rows: Vec::new() })
    }

    /// Adds a row.
    ///
    /// # Errors
    ///
    /// Where the file takes no more.
    pub fn push(&mut self, row: R) -> Result<(), TableError> {
        self.rows.push(row);
        if self.rows.len() == ROWS { self.write_rows() } else { Ok(()) }
    }

    /// Writes the rest and the end of the file.
    ///
    /// # Errors
    ///
    /// Where the file takes no more.
    pub fn finish(mut self) -> Result<W, TableError> {
        self.write_rows()?;
        Ok(self.writer.into_inner()?)
    }

    fn write_rows(&mut self) -> Result<(), TableError> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let mut group = self.writer.next_row_group()?;
        let mut at = 0;
        while let Some(mut column) = group.next_column()? {
            let (mut levels, mut numbers, mut words) = (Vec::new(), Vec::new(), Vec::new());
            for row in &self.rows {
                match row.value(at) {
                    Value::Number(Some(number)) => numbers.push(number as i64),
                    Value::Text(Some(word)) => words.push(ByteArray::from(word)),
                    Value::Number(None) | Value::Text(None) => {
                        levels.push(0);
                        continue;
                    }
                }
                levels.push(1);
            }
            match R::WORDS.contains(&R::COLUMNS[at]) {
                false => column.typed::<Int64Type>().write_batch(&numbers, Some(&levels), None)?,
                true => column.typed::<ByteArrayType>().write_batch(&words, Some(&levels), None)?,
            };
            column.close()?;
            at += 1;
        }
        group.close()?;
        self.rows.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use ::parquet::file::reader::{FileReader as _, SerializedFileReader};
    use ::parquet::record::RowAccessor as _;

    use super::*;

    fn link(time_ns: u64) -> LinkRecord {
        LinkRecord {
            time_ns,
            link: "there".into(),
            queued_packets: 3,
            queued_bytes: 4500,
            delivered_bytes: u64::MAX,
            dropped_packets: 0,
            marked_packets: 1,
        }
    }

    #[test]
    fn what_was_written_is_read_again_over_several_groups() {
        let rows = ROWS as u64 + 5;
        let mut table = Table::new(Vec::new()).unwrap();
        for time in 0..rows {
            table.push(link(time)).unwrap();
        }
        let file = SerializedFileReader::new(bytes::Bytes::from(table.finish().unwrap())).unwrap();
        assert_eq!(file.metadata().num_row_groups(), 2);
        let mut seen = 0;
        for (at, row) in file.get_row_iter(None).unwrap().enumerate() {
            let row = row.unwrap();
            assert_eq!(row.get_ulong(0).unwrap(), at as u64);
            assert_eq!(row.get_string(1).unwrap(), "there");
            assert_eq!(row.get_ulong(4).unwrap(), u64::MAX);
            seen += 1;
        }
        assert_eq!(seen, rows);
    }
}
