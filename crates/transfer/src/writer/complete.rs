//! The end of a transfer: directories, links, permissions, and the last syncs.

use std::collections::BTreeSet;

use tokio::sync::mpsc;

use super::{Event, Status, Writer};
use crate::entry::{Entry, Kind};
use crate::error::ReceiveError;
use crate::placing::{Batch, free_name};
use crate::plan::Existing;

impl Writer {
    /// Makes a directory or a link.
    fn make(&mut self, number: u32, entry: &Entry) -> Result<(), ReceiveError> {
        let Kind::Link { target } = &entry.kind else {
            return self.destination.create_directory(entry.path.as_bytes());
        };
        match self.destination.link(&entry.path, target, self.how.existing.replaces()) {
            Err(ReceiveError::Exists { .. }) if self.how.existing == Existing::Rename => {
                let name = free_name(&entry.path, |name| self.destination.link(name, target, false))?;
                self.renamed.insert(number, name);
                Ok(())
            }
            made => made,
        }
    }

    /// Every file is in place: the empty directories, the links, which come last so that nothing of this transfer can
    /// be written through one, and the way out.
    pub(super) fn complete(&mut self, events: &mpsc::UnboundedSender<Event>) -> Result<(), ReceiveError> {
        let manifest = self.manifest.clone();
        let mut parents = BTreeSet::from([&b""[..]]);
        let mut left_out = Vec::new();
        for (number, entry) in manifest.entries().iter().enumerate() {
            let number = number as u32;
            if self.status[number as usize] == Status::NoFile
                && !self.skipped.contains_key(&number)
                && let Err(error) = self.make(number, entry)
            {
                let reason = error.refusal().ok_or(error)?;
                self.note_left_out(number, reason, 0);
                left_out.push((number, reason));
            }
            parents.extend(entry.path.parents());
        }
        self.destination.settle_directories()?;
        if !left_out.is_empty() {
            let _ = events.send(Event::LeftOut(left_out));
        }
        if parents.len() > Batch::ONE_BY_ONE && self.destination.sync_all_directories()? {
            return Ok(());
        }
        for parent in parents {
            match self.destination.sync_directory(parent) {
                // Obstacles were reported.
                Err(error) if error.refusal().is_some() => {}
                synced => synced?,
            }
        }
        Ok(())
    }
}
