//! The receiving half of a stream.

use std::collections::VecDeque;

use bytes::Bytes;

use super::error::StreamsError;
use super::window::Window;
use crate::carrier::Assembly;

/// Size of the blocks in which data is assembled, in bytes. A large part of one is handed out
/// without a copy.
const BLOCK: u32 = 32 << 10;

/// Memory for a block is taken at once for pieces of this length and more, in bytes, once a stream had a whole block:
/// more will follow. Memory that grows with what comes is copied each time that it does.
const LARGE: usize = 1 << 10;

/// The outcome of a read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Read {
    /// The next bytes, at least one.
    Data(Bytes),
    /// Nothing has come that is next.
    Pending,
    /// All was read.
    End,
}

/// How the half ended, as far as the reader knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Reading,
    /// The peer gave up; the reader does not know.
    Reset(u64),
    /// The reader wants no more, and the peer is to say how much it sent. The code.
    Stopped(u64),
    /// The reader knows all that there is to know.
    Done,
}

/// Puts bytes in order. Positions are bytes from the beginning.
#[derive(Debug)]
pub(super) struct RecvHalf {
    /// The first begins at `base`; what has not come of is `None`.
    blocks: VecDeque<Option<Assembly>>,
    base: u64,
    read: u64,
    /// One past the furthest byte that came.
    highest: u64,
    /// How long the stream is, where that is known.
    end: Option<u64>,
    pub(super) window: Window,
    state: State,
}

impl RecvHalf {
    pub(super) fn new(window: Window) -> Self {
        Self { blocks: VecDeque::new(), base: 0, read: 0, highest: 0, end: None, window, state: State::Reading }
    }

    /// Whether the reader may be told something that it does not know.
    pub(super) fn is_readable(&self) -> bool {
        match self.state {
            State::Reading => self.end == Some(self.read) || self.run() > 0,
            State::Reset(_) => true,
            State::Stopped(_) | State::Done => false,
        }
    }

    /// Whether nothing more is to come nor to be read.
    pub(super) fn is_done(&self) -> bool {
        match self.state {
            State::Done => true,
            State::Stopped(_) => self.end.is_some(),
            State::Reading | State::Reset(_) => false,
        }
    }

    /// Whether the peer may send more, as far as is known here: then it is to hear of credit.
    pub(super) fn wants_credit(&self) -> bool {
        self.state == State::Reading && self.end.is_none()
    }

    /// The code of a stop, where the peer is to be told.
    pub(super) fn stop_code(&self) -> Option<u64> {
        if let State::Stopped(code) = self.state { Some(code).filter(|_| self.end.is_none()) } else { None }
    }

    /// How much of what came was not read.
    pub(super) fn unread(&self) -> u64 {
        self.highest - self.read
    }

    /// Takes data in. Returns how far the furthest byte moved.
    pub(super) fn on_data(&mut self, id: u64, offset: u64, data: &[u8], is_last: bool) -> Result<u64, StreamsError> {
        let end = offset.saturating_add(data.len() as u64);
        self.check(id, end, is_last)?;
        let moved = end.saturating_sub(self.highest);
        self.highest = self.highest.max(end);
        if is_last {
            self.end = Some(end);
        }
        if self.state == State::Reading {
            self.place(offset, data);
        } else {
            self.read = self.highest;
        }
        Ok(moved)
    }

    /// The peer gave up after `end` bytes. Returns how far the furthest byte moved.
    pub(super) fn on_reset(&mut self, id: u64, code: u64, end: u64) -> Result<u64, StreamsError> {
        self.check(id, end, true)?;
        let moved = end - self.highest;
        (self.highest, self.end) = (end, Some(end));
        // A reader that has read all has not been told of the end; that the peer gave up is as good.
        if self.state == State::Reading {
            self.state = State::Reset(code);
            self.drop_data();
        }
        self.read = self.highest;
        Ok(moved)
    }

    /// The reader wants no more. False where there is no more.
    pub(super) fn stop(&mut self, code: u64) -> bool {
        let is_new = matches!(self.state, State::Reading | State::Reset(_));
        if is_new {
            self.state = State::Stopped(code);
            self.drop_data();
            self.read = self.highest;
        }
        is_new
    }

    /// Lets go of all that came.
    fn drop_data(&mut self) {
        (self.blocks, self.base) = (VecDeque::new(), self.highest);
    }

    fn check(&self, id: u64, end: u64, is_last: bool) -> Result<(), StreamsError> {
        if end > self.window.limit() {
            return Err(StreamsError::BeyondCredit { id, end, limit: self.window.limit() });
        }
        match self.end {
            Some(known) if end > known || is_last && end != known => Err(StreamsError::End { id, known, end }),
            None if is_last && end < self.highest => Err(StreamsError::End { id, known: self.highest, end }),
            _ => Ok(()),
        }
    }

    fn place(&mut self, offset: u64, data: &[u8]) {
        // Bytes that were read may come again.
        let old = self.read.saturating_sub(offset).min(data.len() as u64);
        let (mut offset, mut data) = (offset + old, &data[old as usize..]);
        while !data.is_empty() {
            let (index, within) =
                ((offset - self.base) / u64::from(BLOCK), ((offset - self.base) % u64::from(BLOCK)) as u32);
            let (now, later) = data.split_at(data.len().min((BLOCK - within) as usize));
            if self.blocks.len() <= index as usize {
                self.blocks.resize_with(index as usize + 1, || None);
            }
            let is_bulk = now.len() >= LARGE && offset >= u64::from(BLOCK);
            let new = || if is_bulk { Assembly::allocated(BLOCK) } else { Assembly::new(BLOCK) };
            let block = self.blocks[index as usize].get_or_insert_with(new);
            block.place(within, now);
            offset += now.len() as u64;
            data = later;
        }
    }

    /// How many bytes may be read of the first block.
    fn run(&self) -> u32 {
        self.blocks.front().and_then(Option::as_ref).map_or(0, Assembly::run)
    }

    /// The next bytes, up to `most`, which is not 0. The code where the peer gave up: that is said once.
    pub(super) fn read(&mut self, most: usize) -> Result<Read, u64> {
        match self.state {
            State::Reset(code) => {
                self.state = State::Done;
                return Err(code);
            }
            State::Stopped(_) | State::Done => return Ok(Read::End),
            State::Reading => {}
        }
        let run = self.run().min(u32::try_from(most).unwrap_or(u32::MAX));
        if run == 0 {
            if self.end != Some(self.read) {
                return Ok(Read::Pending);
            }
            self.state = State::Done;
            return Ok(Read::End);
        }
        let Some(Some(block)) = self.blocks.front_mut() else { return Ok(Read::Pending) };
        let data = block.take(run);
        self.read += u64::from(run);
        if self.read == self.highest {
            (self.blocks, self.base) = (VecDeque::new(), self.read);
        } else if self.read - self.base == u64::from(BLOCK) {
            self.blocks.pop_front();
            self.base = self.read;
        }
        Ok(Read::Data(data))
    }

    /// Its memory on the heap, at least, in bytes.
    #[cfg(test)]
    pub(super) fn heap(&self) -> usize {
        self.blocks.capacity() * size_of::<Option<Assembly>>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: u64 = 1 << 20;

    /// Reads all that is there: how many bytes each part has, and how much memory it keeps.
    fn read_all(half: &mut RecvHalf) -> Vec<(usize, usize)> {
        let mut parts = Vec::new();
        while let Ok(Read::Data(data)) = half.read(usize::MAX) {
            let memory = data.try_into_mut().expect("nobody else has it");
            parts.push((memory.len(), memory.capacity()));
        }
        parts
    }

    #[test]
    fn memory_for_a_block_is_taken_once_and_little_data_keeps_little() {
        let mut half = RecvHalf::new(Window::new(WINDOW, WINDOW, WINDOW));
        let mut sent = 0;
        let mut send = |half: &mut RecvHalf, bytes: usize| {
            half.on_data(0, sent, &vec![7; bytes], false).expect("within the window");
            sent += bytes as u64;
        };
        (0..24).for_each(|_| send(&mut half, 1_424));
        assert!(read_all(&mut half).iter().all(|(length, capacity)| *capacity <= 2 * length));
        send(&mut half, 1_424);
        let block = half.blocks.front().and_then(Option::as_ref).expect("it has come");
        assert_eq!(block.capacity(), BLOCK as usize, "for all that follows");
        assert_eq!(read_all(&mut half), [(1_424, 1_424)]);
        (0..24).for_each(|_| send(&mut half, 1_424));
        assert_eq!(read_all(&mut half)[0], (BLOCK as usize, BLOCK as usize), "without a copy");
        send(&mut half, 64);
        assert!(read_all(&mut half)[0].1 <= 128);
    }

    #[test]
    fn a_large_part_of_a_block_is_read_without_a_copy_and_the_rest_comes_into_the_same_memory() {
        let mut half = RecvHalf::new(Window::new(WINDOW, WINDOW, WINDOW));
        let (block, quarter) = (u64::from(BLOCK), u64::from(BLOCK / 4));
        let send = |half: &mut RecvHalf, offset: u64, bytes: u64| {
            half.on_data(0, offset, &vec![7; bytes as usize], false).expect("within the window");
        };
        let read = |half: &mut RecvHalf| match half.read(usize::MAX) {
            Ok(Read::Data(data)) => data,
            other => panic!("{other:?}"),
        };
        send(&mut half, 0, block + quarter);
        send(&mut half, block + 2 * quarter, quarter);
        assert_eq!(read(&mut half).len(), BLOCK as usize);
        let first = read(&mut half);
        assert_eq!(first.len() as u64, quarter);
        assert_eq!(half.read(usize::MAX), Ok(Read::Pending));
        send(&mut half, block + quarter, quarter);
        let rest = read(&mut half);
        assert_eq!(rest.len() as u64, 2 * quarter);
        assert_eq!(rest.as_ptr(), first.as_ptr().wrapping_add(first.len()));
    }
}
