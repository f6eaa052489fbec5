//! Reads the tables of a scenario file: every value with its place, every key one of those that the
//! table has, and none left over.

use core::cell::RefCell;
use core::time::Duration;

use fairpath_core::{Bitrate, ByteCount, printable};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::Problem;
use crate::keys::{Keys, Shape};
use crate::nearest::nearest;
use crate::units::{self, UnitError};

/// The most characters of a value that are quoted.
const QUOTED: usize = 80;

/// Something with its place: the offset of its first byte in the file.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct At<T> {
    pub(crate) value: T,
    pub(crate) at: usize,
}

/// A fault, and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) at: usize,
    pub(crate) key: String,
    pub(crate) problem: Box<Problem>,
}

impl Fault {
    pub(crate) fn new(at: usize, key: impl Into<String>, problem: impl Into<Problem>) -> Self {
        Self { at, key: key.into(), problem: Box::new(problem.into()) }
    }
}

/// A table that is being read.
pub(crate) struct Table<'t> {
    table: &'t DeTable<'t>,
    keys: &'static Keys,
    path: String,
    pub(crate) at: usize,
    /// The keys that were asked for. What is there and was not is a mistake.
    asked: RefCell<Vec<&'static str>>,
}

impl<'t> Table<'t> {
    /// The table `table` of the keys `keys`; `path` is what leads to it.
    pub(crate) fn open(table: &'t DeTable<'t>, at: usize, path: &str, keys: &'static Keys) -> Result<Self, Fault> {
        let opened = Self { table, keys, path: path.to_owned(), at, asked: RefCell::default() };
        let unknown = |key: &&Spanned<_>| keys.find(AsRef::<std::borrow::Cow<str>>::as_ref(*key)).is_none();
        if let Some(key) = table.keys().filter(unknown).min_by_key(|key| key.span().start) {
            let known = keys.names();
            let problem = Problem::UnknownKey { nearest: nearest(key.get_ref(), known.iter().copied()), known };
            return Err(opened.fault_at(key.span().start, key.get_ref(), problem));
        }
        Ok(opened)
    }

    /// The value of the key `name`, if it is there.
    pub(crate) fn get(&self, name: &'static str) -> Option<Value<'t>> {
        debug_assert!(self.keys.find(name).is_some(), "{name} is not a key of {}", self.keys.name);
        self.asked.borrow_mut().push(name);
        let shape = &self.keys.find(name)?.shape;
        let value = self.table.get(name)?;
        Some(Value { value: value.get_ref(), at: value.span().start, path: self.path_of(name), shape })
    }

    /// The value of the key `name` as `read` reads it, if it is there.
    pub(crate) fn optional<T>(
        &self,
        name: &'static str,
        read: impl FnOnce(&Value<'t>) -> Result<T, Fault>,
    ) -> Result<Option<At<T>>, Fault> {
        let Some(value) = self.get(name) else { return Ok(None) };
        Ok(Some(At { value: read(&value)?, at: value.at }))
    }

    /// The value of the key `name` as `read` reads it, which must be there.
    pub(crate) fn needed<T>(
        &self,
        name: &'static str,
        read: impl FnOnce(&Value<'t>) -> Result<T, Fault>,
    ) -> Result<At<T>, Fault> {
        self.optional(name, read)?.ok_or_else(|| self.missing(name))
    }

    /// That the key `name` is missing.
    pub(crate) fn missing(&self, name: &'static str) -> Fault {
        missing(self.keys, name, self.at, &self.path)
    }

    /// Refuses the key `name` where `other` is given as well.
    pub(crate) fn exclude(&self, name: &'static str, other: &'static str) -> Result<(), Fault> {
        match (self.get(name), self.get(other)) {
            (Some(value), Some(_)) => Err(value.fault(Problem::Excludes { other })),
            _ => Ok(()),
        }
    }

    /// The one key of a table that has exactly one.
    pub(crate) fn the_one(&self) -> Result<(&'static str, Value<'t>), Fault> {
        let mut given: Vec<&'static str> = self.keys.names();
        given.retain(|name| self.table.get(*name).is_some());
        if let [name] = given[..]
            && let Some(value) = self.get(name)
        {
            return Ok((name, value));
        }
        let found = if given.is_empty() { "none".to_owned() } else { given.join(" and ") };
        Err(self.fault(Problem::ExactlyOne { known: self.keys.names(), found }))
    }

    /// Ends the reading: no key may be left over. `without` says in what case its keys mean nothing,
    /// as in "without a period".
    pub(crate) fn close(self, without: &str) -> Result<(), Fault> {
        let asked = self.asked.borrow();
        let left_over = |key: &&Spanned<_>| {
            let name: &std::borrow::Cow<str> = key.get_ref();
            !asked.iter().any(|asked| *asked == name)
        };
        let first = self.table.keys().filter(left_over).min_by_key(|key| key.span().start);
        match first {
            None => Ok(()),
            Some(key) => {
                let problem = Problem::Meaningless { without: without.to_owned() };
                Err(self.fault_at(key.span().start, key.get_ref(), problem))
            }
        }
    }

    /// That something is wrong with the table as a whole.
    pub(crate) fn fault(&self, problem: Problem) -> Fault {
        Fault::new(self.at, &*self.path, problem)
    }

    fn fault_at(&self, at: usize, key: &str, problem: Problem) -> Fault {
        Fault::new(at, self.path_of(key), problem)
    }

    /// How its key `name` is called in messages.
    pub(crate) fn key(&self, name: &'static str) -> String {
        self.path_of(name)
    }

    fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }
}

/// That the key `name` is missing in a table of `keys` that begins at `at` and is called `path`.
pub(crate) fn missing(keys: &'static Keys, name: &'static str, at: usize, path: &str) -> Fault {
    let example = keys.find(name).map_or("", |key| key.example);
    Fault::new(at, path, Problem::Missing { missing: name, example })
}

/// The kind of a value, for a message.
pub(crate) fn found(value: &DeValue) -> String {
    match value {
        DeValue::String(text) => quoted(text),
        DeValue::Integer(number) => cut(&number.to_string()),
        DeValue::Float(number) => cut(&number.to_string()),
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Datetime(date) => date.to_string(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

/// A text in quotes, as much of it as a message needs.
pub(crate) fn quoted(text: &str) -> String {
    format!("\"{}\"", cut(text))
}

/// As much of a text as a message needs.
pub(crate) fn cut(text: &str) -> String {
    printable(text, QUOTED)
}

/// A value that is being read.
pub(crate) struct Value<'t> {
    value: &'t DeValue<'t>,
    pub(crate) at: usize,
    pub(crate) path: String,
    /// Its shape in the table of keys.
    shape: &'static Shape,
}

impl<'t> Value<'t> {
    /// That something is wrong with it.
    pub(crate) fn fault(&self, problem: impl Into<Problem>) -> Fault {
        Fault::new(self.at, &*self.path, problem)
    }

    /// That it is not what it should be.
    pub(crate) fn not(&self, expected: impl Into<String>) -> Fault {
        self.fault(Problem::WrongKind { found: self.found(), expected: expected.into() })
    }

    /// That it is too small or too large.
    pub(crate) fn out_of_range(&self, allowed: impl Into<String>) -> Fault {
        self.fault(Problem::OutOfRange { value: self.found(), allowed: allowed.into() })
    }

    fn found(&self) -> String {
        found(self.value)
    }

    /// The text, where it is one.
    pub(crate) fn as_text(&self) -> Option<&'t str> {
        self.value.as_str()
    }

    pub(crate) fn text(&self, expected: &str) -> Result<&'t str, Fault> {
        self.as_text().ok_or_else(|| self.not(expected))
    }

    /// A name of something: a text that can be printed.
    pub(crate) fn name(&self) -> Result<String, Fault> {
        let name = self.text("a name, like \"wifi\"")?;
        if name.trim().is_empty() || name.chars().any(char::is_control) {
            return Err(self.fault(Problem::BadName { name: name.to_owned() }));
        }
        Ok(name.to_owned())
    }

    /// One of the words that its key allows; `what` they are.
    pub(crate) fn word(&self, what: &'static str) -> Result<&'static str, Fault> {
        let words = self.shape.words();
        let name = self.text(&format!("one of {}", words.join(", ")))?;
        words.iter().copied().find(|word| *word == name).ok_or_else(|| {
            self.fault(Problem::UnknownName {
                what,
                name: name.to_owned(),
                nearest: nearest(name, words.iter().copied()),
                known: words.iter().map(|word| (*word).to_owned()).collect(),
            })
        })
    }

    pub(crate) fn rate(&self) -> Result<Bitrate, Fault> {
        self.unit("a rate, like \"30Mbit/s\"", units::rate)
    }

    /// A rate above zero.
    pub(crate) fn positive_rate(&self) -> Result<Bitrate, Fault> {
        let rate = self.rate()?;
        if rate == Bitrate::ZERO { Err(self.out_of_range("above zero")) } else { Ok(rate) }
    }

    pub(crate) fn time(&self) -> Result<Duration, Fault> {
        self.unit("a time, like \"20ms\"", units::time)
    }

    /// A time above zero.
    pub(crate) fn positive_time(&self) -> Result<Duration, Fault> {
        let time = self.time()?;
        if time.is_zero() { Err(self.out_of_range("above zero")) } else { Ok(time) }
    }

    pub(crate) fn size(&self) -> Result<ByteCount, Fault> {
        self.unit("a size, like \"70kB\"", units::size)
    }

    /// A size above zero.
    pub(crate) fn positive_size(&self) -> Result<ByteCount, Fault> {
        let size = self.size()?;
        if size == ByteCount::ZERO { Err(self.out_of_range("above zero")) } else { Ok(size) }
    }

    /// A quantity with a unit, in quotes.
    pub(crate) fn unit<T>(&self, expected: &str, read: fn(&str) -> Result<T, UnitError>) -> Result<T, Fault> {
        read(self.text(expected)?).map_err(|error| self.fault(error))
    }

    /// A number from 0 to 1, as one or as a text.
    pub(crate) fn share(&self) -> Result<f64, Fault> {
        match self.value {
            DeValue::Integer(number) => units::share(number.as_str()).map_err(|error| self.fault(error)),
            DeValue::Float(number) => units::share(number.as_str()).map_err(|error| self.fault(error)),
            _ => self.unit("a share, like 0.01 or \"1%\"", units::share),
        }
    }

    /// A whole number in the range that its key allows.
    pub(crate) fn whole(&self) -> Result<u64, Fault> {
        let (least, most) = self.shape.range();
        let allowed = || if most == u64::MAX { format!("at least {least}") } else { format!("from {least} to {most}") };
        let DeValue::Integer(number) = self.value else {
            return Err(self.not(format!("a whole number {}", allowed())));
        };
        let number = u64::from_str_radix(number.as_str(), number.radix()).ok();
        number.filter(|number| (least..=most).contains(number)).ok_or_else(|| self.out_of_range(allowed()))
    }

    /// The same, for keys whose range fits.
    pub(crate) fn whole_u32(&self) -> Result<u32, Fault> {
        let number = self.whole()?;
        u32::try_from(number).map_err(|_| self.out_of_range(format!("at most {}", u32::MAX)))
    }

    /// A number in the range that its key allows.
    pub(crate) fn number(&self) -> Result<f64, Fault> {
        let (least, most, itself) = self.shape.bounds().unwrap_or((f64::MIN, f64::MAX, true));
        let allowed =
            || if itself { format!("from {least} to {most}") } else { format!("above {least} and up to {most}") };
        let number: Option<f64> = match self.value {
            DeValue::Integer(number) => number.to_string().parse().ok(),
            DeValue::Float(number) => number.as_str().parse().ok(),
            _ => return Err(self.not(format!("a number {}", allowed()))),
        };
        let fits = |number: &f64| (least..=most).contains(number) && (itself || *number > least);
        number.filter(fits).ok_or_else(|| self.out_of_range(allowed()))
    }

    pub(crate) fn flag(&self) -> Result<bool, Fault> {
        self.value.as_bool().ok_or_else(|| self.not("true or false"))
    }

    pub(crate) fn is_table(&self) -> bool {
        self.value.is_table()
    }

    pub(crate) fn table(&self, keys: &'static Keys) -> Result<Table<'t>, Fault> {
        let expected = || format!("a table with the keys {}", keys.names().join(", "));
        let table = self.value.as_table().ok_or_else(|| self.not(expected()))?;
        Table::open(table, self.at, &self.path, keys)
    }

    /// The elements, where it is a list.
    pub(crate) fn as_list(&self) -> Option<Vec<Self>> {
        let list = self.value.as_array()?.iter();
        let shape = if let Shape::List(of) = self.shape { of } else { self.shape };
        let element = |element: &'t Spanned<DeValue<'t>>| Self {
            value: element.get_ref(),
            at: element.span().start,
            path: self.path.clone(),
            shape,
        };
        Some(list.map(element).collect())
    }

    pub(crate) fn list(&self, expected: &str) -> Result<Vec<Self>, Fault> {
        self.as_list().ok_or_else(|| self.not(expected))
    }
}
