//! The records of a run: newline-delimited JSON, one [`Record`] per path and time and one
//! [`LinkRecord`] per link and time, and CSV and Parquet tables.
//!
//! A host fills a [`Sample`] in the types of `fairpath-core`, turns it into a [`Record`] and gives
//! it to a [`Writer`]. A [`Reader`] takes the file apart again and names the line that is wrong.
//! `docs/reference/trace.md` describes the format, `docs/reference/trace.schema.json` is its JSON Schema, and a test
//! holds every written line against that schema.
//!
//! The same records give the same bytes: nothing here reads a clock or depends on an order that
//! changes.
//!
//! ```
//! use fairpath_core::{ByteCount, Groups, PathId, Timestamp};
//! use fairpath_trace::{Header, Reader, Record, Sample, State, Writer};
//!
//! let path = PathId::new(0);
//! let sample = Sample {
//!     now: Timestamp::from_millis(20),
//!     path,
//!     cwnd: ByteCount::new(12_000),
//!     srtt: None,
//!     rtt_min: None,
//!     in_flight: ByteCount::new(2_400),
//!     rate: None,
//!     lost: ByteCount::ZERO,
//!     group: Groups::one([path]).of(path),
//!     state: State::SlowStart,
//! };
//! let mut writer = Writer::new(Vec::new(), &Header::new(Some("separate/olia")))?;
//! writer.write(&Record::from(sample))?;
//! let file = writer.finish()?;
//!
//! let mut reader = Reader::new(file.as_slice())?;
//! assert_eq!(reader.next().expect("one record")?, Record::from(sample));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod csv;
mod link;
#[cfg(feature = "parquet")]
pub mod parquet;
mod reader;
mod record;
#[cfg(feature = "rtt")]
pub mod rtt;
mod writer;

pub use link::{LINK_FORMAT, LinkHeader, LinkRecord};
pub use reader::{LINE_BYTES_MAX, ReadError, Reader};
pub use record::{FORMAT, Header, Record, Sample, State};
pub use writer::{WriteError, Writer};
