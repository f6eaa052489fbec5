//! Memory that DATAGRAMs are cut from.

use bytes::{Bytes, BytesMut};

/// How much memory DATAGRAMs share, in bytes: those that leave together need not be allocated one by one.
const SHARED: usize = 64 << 10;

/// From which length on they do, in bytes. Smaller ones are few, or cost little.
const SHARING: usize = 1 << 10;

/// Memory for the next DATAGRAMs.
#[derive(Debug, Default)]
pub(crate) struct Buffer(BytesMut);

impl Buffer {
    /// A DATAGRAM of at most `length` bytes, which `write` writes.
    pub(crate) fn datagram(&mut self, length: usize, write: impl FnOnce(&mut BytesMut)) -> Bytes {
        if self.0.capacity() < length && length >= SHARING {
            // Where all that was cut from it has left, it is used again.
            self.0.reserve(SHARED.max(length));
        }
        write(&mut self.0);
        self.0.split().freeze()
    }
}
