//! A qlog that is one JSON document. What is said of a trace as a whole may stand behind its events,
//! so they are kept until all of it is read; of each only what matters is.

use core::cell::Cell as Shared;
use core::fmt;
use std::io::{self, BufRead, Read};

use fairpath_core::ByteCount;
use serde::Deserializer;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::{Cell, Connection, Event, Metrics};
use crate::rtt::{Limits, RttError, Series, TooMuch};

/// No single value, an event for example, is longer in the file. It is the limit of a line, too.
const VALUE_BYTES_MAX: u64 = 1 << 20;

/// Nothing that is skipped as a whole is longer: what it opens is noted until it is closed.
const SKIPPED_BYTES_MAX: u64 = 64 << 20;

/// The series of all traces of a document.
pub(super) fn read(input: impl BufRead, limits: &Limits) -> Result<Vec<Series>, RttError> {
    let budget = Budget { limits: *limits, read: Shared::new(0), until: Shared::new(0), excess: Shared::new(None) };
    budget.allow(VALUE_BYTES_MAX);
    let mut deserializer = serde_json::Deserializer::from_reader(Metered { input, budget: &budget });
    let found = Document(&budget).deserialize(&mut deserializer);
    let found = found.and_then(|series| {
        budget.allow(VALUE_BYTES_MAX);
        deserializer.end().map(|()| series)
    });
    found.map_err(|error| match budget.excess.get() {
        Some(excess) => excess.into(),
        None if error.is_io() => RttError::Io(error.into()),
        None => {
            let reason = fairpath_core::printable(&error.to_string(), crate::rtt::REASON_CHARS_MAX);
            RttError::Json { line: error.line(), column: error.column(), reason }
        }
    })
}

/// How much may be read and kept.
struct Budget {
    limits: Limits,
    /// How many bytes were read, and how many may be before the value that is read is too long.
    read: Shared<u64>,
    until: Shared<u64>,
    /// The limit that was exceeded.
    excess: Shared<Option<TooMuch>>,
}

impl Budget {
    /// Allows the next part to have this many bytes.
    fn allow(&self, bytes: u64) {
        self.until.set(self.read.get().saturating_add(bytes));
    }

    fn refuse<E: serde::de::Error>(&self, excess: TooMuch) -> E {
        self.excess.set(Some(excess));
        E::custom(excess)
    }
}

/// An input whose bytes are counted. `serde_json` asks for one at a time.
struct Metered<'b, R> {
    input: R,
    budget: &'b Budget,
}

impl<R: Read> Read for Metered<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        let all = self.budget.read.get() + read as u64;
        self.budget.read.set(all);
        if all > self.budget.until.get() {
            let excess = TooMuch::Value(ByteCount::new(VALUE_BYTES_MAX));
            self.budget.excess.set(Some(excess));
            return Err(io::Error::other(excess));
        }
        Ok(read)
    }
}

/// The whole: an object whose `traces` matter.
struct Document<'b>(&'b Budget);

impl<'de> DeserializeSeed<'de> for Document<'_> {
    type Value = Vec<Series>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Document<'_> {
    type Value = Vec<Series>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a qlog document")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut series = Vec::new();
        while let Some(key) = next_key(&mut map, self.0)? {
            match key.as_str() {
                "traces" => series = map.next_value_seed(Traces(self.0))?,
                _ => skip(&mut map, self.0)?,
            }
        }
        Ok(series)
    }
}

fn next_key<'de, A: MapAccess<'de>>(map: &mut A, budget: &Budget) -> Result<Option<String>, A::Error> {
    budget.allow(VALUE_BYTES_MAX);
    let key = map.next_key();
    budget.allow(VALUE_BYTES_MAX);
    key
}

fn skip<'de, A: MapAccess<'de>>(map: &mut A, budget: &Budget) -> Result<(), A::Error> {
    budget.allow(SKIPPED_BYTES_MAX);
    map.next_value::<IgnoredAny>().map(drop)
}

/// The list of traces.
struct Traces<'b>(&'b Budget);

impl<'de> DeserializeSeed<'de> for Traces<'_> {
    type Value = Vec<Series>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Traces<'_> {
    type Value = Vec<Series>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of traces")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let budget = self.0;
        let (mut connections, mut count, mut paths, mut samples) = (Vec::new(), 0, 0, 0);
        while let Some(connection) = {
            budget.allow(VALUE_BYTES_MAX);
            list.next_element_seed(Trace(budget))?
        } {
            paths += connection.paths.len();
            samples += connection.kept;
            let checked = budget.limits.check_series(paths).and(budget.limits.check_samples(samples));
            checked.map_err(|excess| budget.refuse::<A::Error>(excess))?;
            if connection.kept > 0 {
                connections.push((count, connection));
            }
            count += 1;
        }
        let prefix = |at| if count > 1 { format!("trace{at}/") } else { String::new() };
        Ok(connections.into_iter().flat_map(|(at, connection)| connection.finish(&prefix(at))).collect())
    }
}

/// One trace.
struct Trace<'b>(&'b Budget);

impl<'de> DeserializeSeed<'de> for Trace<'_> {
    type Value = Connection;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Trace<'_> {
    type Value = Connection;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a trace")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let budget = self.0;
        let (mut events, mut about) = (Vec::new(), Map::new());
        while let Some(key) = next_key(&mut map, budget)? {
            match key.as_str() {
                "events" => events = map.next_value_seed(Events(budget))?,
                "common_fields" | "configuration" | "event_fields" => {
                    about.insert(key, map.next_value()?);
                }
                _ => skip(&mut map, budget)?,
            }
        }
        let mut connection = Connection::new(&Value::Object(about));
        for event in events {
            connection.add(event, &budget.limits).map_err(|excess| budget.refuse::<A::Error>(excess))?;
        }
        Ok(connection)
    }
}

/// The list of events of a trace.
struct Events<'b>(&'b Budget);

impl<'de> DeserializeSeed<'de> for Events<'_> {
    type Value = Vec<Event>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Events<'_> {
    type Value = Vec<Event>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let budget = self.0;
        let (mut events, mut taken) = (Vec::new(), 0);
        while let Some(value) = {
            budget.allow(VALUE_BYTES_MAX);
            list.next_element::<Value>()?
        } {
            let event = Event::from(value);
            taken += memory(&event);
            if taken > budget.limits.waiting.get() {
                return Err(budget.refuse(TooMuch::Waiting(budget.limits.waiting)));
            }
            events.push(event);
        }
        Ok(events)
    }
}

/// The memory that an event takes while it is kept, in bytes.
fn memory(event: &Event) -> u64 {
    let path = |metrics: &Metrics| metrics.path.capacity();
    let cell = |cell: &Cell| {
        let own = size_of::<Cell>();
        if let Cell::Data(metrics) = cell { own + path(metrics) } else { own }
    };
    let apart = match event {
        Event::Told(_, metrics) => metrics.as_ref().map_or(0, path),
        Event::Row(row) => row.iter().map(cell).sum(),
    };
    (size_of::<Event>() + apart) as u64
}
