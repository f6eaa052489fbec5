//! How much of a file is kept in memory, and what is said where there is more.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

use fairpath_core::ByteCount;

/// How much of a file is read and kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most that a packed file may unpack to: gzip makes a thousand bytes of one.
    pub unpacked: ByteCount,
    /// How many round-trip times are kept.
    pub samples: usize,
    /// How many paths are told apart.
    pub series: usize,
    /// How many TCP connections are followed in a capture.
    pub connections: usize,
    /// The memory for what has to wait until the whole of a qlog document is read.
    pub waiting: ByteCount,
}

impl Default for Limits {
    /// A round-trip time takes 24 bytes, and a connection without any about half a kilobyte: with these
    /// limits a file takes at most a few hundred megabytes. More paths than these nobody compares.
    fn default() -> Self {
        Self {
            unpacked: ByteCount::new(4_000_000_000),
            samples: 4_000_000,
            series: 10_000,
            connections: 100_000,
            waiting: ByteCount::new(256_000_000),
        }
    }
}

impl Limits {
    pub(super) fn check_samples(&self, samples: usize) -> Result<(), TooMuch> {
        if samples > self.samples { Err(TooMuch::Samples(self.samples)) } else { Ok(()) }
    }

    pub(super) fn check_series(&self, series: usize) -> Result<(), TooMuch> {
        if series > self.series { Err(TooMuch::Series(self.series)) } else { Ok(()) }
    }
}

/// More is in a file than is kept of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TooMuch {
    /// The file unpacks to more than [`Limits::unpacked`].
    #[error("unpacks to more than {0}; unpack it and give what comes out, if so much is meant")]
    Unpacked(ByteCount),
    /// There are more round-trip times than [`Limits::samples`].
    #[error("has more than {0} round-trip times; give a shorter part of it")]
    Samples(usize),
    /// There are more paths than [`Limits::series`].
    #[error("has more than {0} paths; give a part of it with fewer")]
    Series(usize),
    /// There are more connections than [`Limits::connections`].
    #[error("has more than {0} TCP connections; give a part of it with fewer, such as those of one host")]
    Connections(usize),
    /// More packets of a capture than [`Limits::samples`] are measured or wait for an answer.
    #[error("has more than {0} packets to measure; give a shorter part of it, or one of fewer connections")]
    Packets(usize),
    /// The events of a qlog document take more memory than [`Limits::waiting`].
    #[error("has events of more than {0} in one document; give a shorter part of it, or a qlog of one event to a line")]
    Waiting(ByteCount),
    /// A single value of a qlog document is longer than any event.
    #[error("has a value of more than {0}, which no event of a qlog is")]
    Value(ByteCount),
}

/// An input that ends with an error after a limit of bytes, and remembers it.
#[derive(Debug)]
pub(super) struct Bounded<R> {
    input: R,
    left: u64,
    exceeded: Rc<Cell<bool>>,
}

impl<R: Read> Bounded<R> {
    /// `input` up to `most`, and where it is seen whether there was more.
    pub(super) fn new(input: R, most: ByteCount) -> (Self, Rc<Cell<bool>>) {
        let exceeded = Rc::new(Cell::new(false));
        (Self { input, left: most.get(), exceeded: exceeded.clone() }, exceeded)
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        match self.left.checked_sub(read as u64) {
            Some(left) => {
                self.left = left;
                Ok(read)
            }
            None => {
                self.exceeded.set(true);
                Err(io::Error::other("there is more than is read"))
            }
        }
    }
}
