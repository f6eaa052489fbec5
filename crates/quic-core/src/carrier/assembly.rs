//! A stretch of data of which parts come in any order.

use bytes::{Buf as _, Bytes, BytesMut};

use super::coverage::Coverage;

/// Data is taken without being copied from this part of its memory on: all of that is kept as long as the data is.
const SHARED_MIN: usize = 4;

/// The data up to the furthest byte that has come; what is missing in between is 0.
#[derive(Debug)]
pub(crate) struct Assembly {
    /// The data behind all that was taken.
    data: BytesMut,
    /// How much was taken from the front, in bytes.
    taken: u32,
    come: Coverage,
}

impl Assembly {
    /// An empty assembly of `length` bytes, whose memory is taken as they come.
    pub(crate) fn new(length: u32) -> Self {
        Self { data: BytesMut::new(), taken: 0, come: Coverage::new(length) }
    }

    /// An empty assembly of `length` bytes, whose memory is taken now.
    pub(crate) fn allocated(length: u32) -> Self {
        Self { data: BytesMut::with_capacity(length as usize), ..Self::new(length) }
    }

    /// How long the whole of it is.
    pub(crate) fn length(&self) -> u32 {
        self.come.length()
    }

    /// Whether nothing is missing.
    pub(crate) fn is_full(&self) -> bool {
        self.come.is_full()
    }

    /// How much has come at the front and was not taken.
    pub(crate) fn run(&self) -> u32 {
        self.come.end_of_run(self.taken) - self.taken
    }

    /// Takes the first `length` bytes, which have come. Little data does not keep much memory.
    pub(crate) fn take(&mut self, length: u32) -> Bytes {
        let (memory, taken) = (self.taken as usize + self.data.capacity(), length as usize);
        self.taken += length;
        if SHARED_MIN * taken >= memory {
            return self.data.split_to(taken).freeze();
        }
        let copy = Bytes::copy_from_slice(&self.data[..taken]);
        self.data.advance(taken);
        copy
    }

    /// How much memory it has, in bytes.
    #[cfg(test)]
    pub(crate) fn capacity(&self) -> usize {
        self.data.capacity()
    }

    /// Puts data in its place; says how many bytes of it are new. What is there already stands, whatever comes again.
    pub(crate) fn place(&mut self, offset: u32, data: &[u8]) -> u32 {
        let range = offset..offset + data.len() as u32;
        let first = self.taken;
        let at = |position: u32| (position - first) as usize;
        if offset >= first && at(offset) >= self.data.len() {
            // Data that comes in order is written once; only what is left out is written as zeros first.
            self.data.resize(at(offset), 0);
            self.data.extend_from_slice(data);
            return self.come.insert(range);
        }
        // All that was taken has come.
        if range.end > first && self.data.len() < at(range.end) {
            self.data.resize(at(range.end), 0);
        }
        let into = &mut self.data;
        self.come.missing(range.clone(), |missing| {
            let from = &data[(missing.start - offset) as usize..(missing.end - offset) as usize];
            into[at(missing.start)..at(missing.end)].copy_from_slice(from);
        });
        self.come.insert(range)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_comes_first_stands_and_is_taken_in_order(
            parts in prop::collection::vec((0..300_u32, 1..100_usize, any::<u8>(), 0..150_u32), 1..40),
        ) {
            let mut assembly = Assembly::new(400);
            let mut model = vec![None; 400];
            let mut taken = 0;
            for (offset, length, byte, most) in parts {
                let mut new = 0;
                for place in &mut model[offset as usize..offset as usize + length] {
                    new += u32::from(place.is_none());
                    place.get_or_insert(byte);
                }
                prop_assert_eq!(assembly.place(offset, &vec![byte; length]), new);
                let run: Vec<u8> = model[taken..].iter().map_while(|place| *place).collect();
                prop_assert_eq!(assembly.run() as usize, run.len());
                let now = assembly.run().min(most);
                prop_assert_eq!(&assembly.take(now)[..], &run[..now as usize]);
                taken += now as usize;
            }
            prop_assert_eq!(assembly.is_full(), model.iter().all(Option::is_some));
        }
    }
}
