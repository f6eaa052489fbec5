//! A stretch of data of which parts come in any order.

use super::coverage::Coverage;

/// The data up to the furthest byte that has come; what is missing in between is 0.
#[derive(Debug)]
pub(crate) struct Assembly {
    data: Vec<u8>,
    come: Coverage,
}

impl Assembly {
    /// Nothing of `length` bytes, for which memory is taken as they come.
    pub(crate) fn new(length: u32) -> Self {
        Self { data: Vec::new(), come: Coverage::new(length) }
    }

    /// Nothing of `length` bytes, for which memory is taken now.
    pub(crate) fn allocated(length: u32) -> Self {
        Self { data: Vec::with_capacity(length as usize), come: Coverage::new(length) }
    }

    /// How long the whole of it is.
    pub(crate) fn length(&self) -> u32 {
        self.come.length()
    }

    /// Whether nothing is missing.
    pub(crate) fn is_full(&self) -> bool {
        self.come.is_full()
    }

    /// The first missing position at or after `at`; the length where there is none.
    pub(crate) fn end_of_run(&self, at: u32) -> u32 {
        self.come.end_of_run(at)
    }

    /// The data that has come, with zeros where something is missing.
    pub(crate) fn data(&self) -> &[u8] {
        &self.data
    }

    /// The whole of it.
    pub(crate) fn into_data(self) -> Vec<u8> {
        self.data
    }

    /// How much memory it has, in bytes.
    pub(crate) fn capacity(&self) -> usize {
        self.data.capacity()
    }

    /// Puts data in its place; says how many bytes of it are new. What is there already stands, whatever comes again.
    pub(crate) fn place(&mut self, offset: u32, data: &[u8]) -> u32 {
        let (start, end) = (offset as usize, offset as usize + data.len());
        let range = offset..end as u32;
        if start >= self.data.len() {
            // Data that comes in order is written once; only what is left out is written as zeros first.
            self.data.resize(start, 0);
            self.data.extend_from_slice(data);
            return self.come.insert(range);
        }
        if self.data.len() < end {
            self.data.resize(end, 0);
        }
        let into = &mut self.data;
        self.come.missing(range.clone(), |missing| {
            let (from, to) = (missing.start as usize, missing.end as usize);
            into[from..to].copy_from_slice(&data[from - start..to - start]);
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
        fn what_comes_first_stands(
            parts in prop::collection::vec((0..300_u32, 1..100_usize, any::<u8>()), 1..40),
        ) {
            let mut assembly = Assembly::new(400);
            let mut model = vec![None; 400];
            for (offset, length, byte) in parts {
                let mut new = 0;
                for place in &mut model[offset as usize..offset as usize + length] {
                    new += u32::from(place.is_none());
                    place.get_or_insert(byte);
                }
                prop_assert_eq!(assembly.place(offset, &vec![byte; length]), new);
                for (at, expected) in model.iter().enumerate() {
                    if let Some(byte) = expected {
                        prop_assert_eq!(assembly.data()[at], *byte);
                    }
                }
                for at in 0..400 {
                    let run = model[at..].iter().take_while(|place| place.is_some()).count();
                    prop_assert_eq!(assembly.end_of_run(at as u32) as usize, at + run);
                }
            }
            prop_assert_eq!(assembly.is_full(), model.iter().all(Option::is_some));
        }
    }
}
