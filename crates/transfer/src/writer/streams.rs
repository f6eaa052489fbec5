//! Streams: files of which the size is known when all of them has come.

use tokio::sync::mpsc;

use super::{Event, Writer};
use crate::error::ReceiveError;
use crate::manifest::Limits;
use crate::protocol::{Digest, ProtocolError};

impl Writer {
    /// The most that a file may become.
    pub(super) fn limit(&self, number: u32) -> u64 {
        let entry = &self.manifest.entries()[number as usize];
        match entry.is_stream() {
            true => self.active.get(&number).and_then(|active| active.end).unwrap_or(Limits::default().bytes),
            false => entry.size(),
        }
    }

    /// The total grows with a stream.
    pub(super) fn grow(&self, number: u32, bytes: u64) {
        if self.manifest.entries()[number as usize].is_stream() {
            self.progress.grow(bytes);
        }
    }

    /// The end of a stream was told.
    pub(super) fn end(&mut self, number: u32, size: u64, tag: Digest) -> Result<(), ReceiveError> {
        if !self.manifest.entries()[number as usize].is_stream() {
            return Err(ProtocolError::Unexpected("the end of a stream, and it is none").into());
        }
        if size > self.limit(number) {
            return Err(ProtocolError::Unexpected("a stream is longer than can be").into());
        }
        // Nothing else comes of an empty one.
        self.open(number)?;
        let active = self.active.get_mut(&number).expect("opened");
        if active.ranges.end() > size {
            return Err(ProtocolError::Unexpected("a stream is longer than was said").into());
        }
        (active.end, active.tag) = (Some(size), Some(tag));
        Ok(())
    }

    /// Tells the sender how much of a stream is here, if that is at least `least` more than it
    /// knows.
    pub(super) fn confirm(&mut self, number: u32, least: u64, events: &mpsc::UnboundedSender<Event>) {
        if !self.manifest.entries()[number as usize].is_stream() {
            return;
        }
        let Some(active) = self.active.get_mut(&number) else { return };
        let here = active.ranges.prefix();
        if here >= active.confirmed + least {
            active.confirmed = here;
            let _ = events.send(Event::Taken(number, here));
        }
    }

    /// The same of all streams.
    pub(super) fn confirm_streams(&mut self, events: &mpsc::UnboundedSender<Event>) {
        let numbers: Vec<u32> = self.active.keys().copied().collect();
        numbers.into_iter().for_each(|number| self.confirm(number, 1, events));
    }
}
