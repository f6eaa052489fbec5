//! The end of a transfer: directories, links, permissions, and the last syncs.

use std::collections::{BTreeMap, BTreeSet};

use tokio::sync::mpsc;

use super::{Event, Status, Writer};
use crate::entry::{Entry, Kind};
use crate::error::ReceiveError;
use crate::manifest::Manifest;
use crate::name::Name;
use crate::placing::{Batch, free_name};
use crate::plan::Existing;

impl Writer {
    /// Makes a directory or a link. `files` are those that have other names, by number.
    fn make(&mut self, number: u32, entry: &Entry, files: &BTreeMap<&Name, u32>) -> Result<(), ReceiveError> {
        let destination = &mut self.destination;
        let mut link = |name: &Name, force: bool| match &entry.kind {
            Kind::Link { target } => destination.link(name, target, force),
            Kind::HardLink { to } => {
                let file = files.get(to).filter(|file| self.status[**file as usize] == Status::Finished);
                // A file that is not in place has no other name.
                let Some(file) = file else {
                    return Err(ReceiveError::InTheWay { path: to.clone(), there: "nothing" });
                };
                let file = self.renamed.get(file).unwrap_or(to);
                destination.hard_link(file, name, force)
            }
            Kind::File { .. } | Kind::Stream | Kind::Directory => destination.create_directory(name.as_bytes()),
        };
        match link(&entry.path, self.how.existing.replaces()) {
            Err(ReceiveError::Exists { .. }) if self.how.existing == Existing::Rename => {
                let name = free_name(&entry.path, |name| link(name, false))?;
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
        let files = linked(&manifest);
        for (number, entry) in manifest.entries().iter().enumerate() {
            let number = number as u32;
            if self.status[number as usize] == Status::NoFile
                && !self.skipped.contains_key(&number)
                && let Err(error) = self.make(number, entry, &files)
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

/// The files that have other names, and their numbers.
fn linked(manifest: &Manifest) -> BTreeMap<&Name, u32> {
    let to = |entry: &Entry| if let Kind::HardLink { to } = &entry.kind { Some(to.clone()) } else { None };
    let names: BTreeSet<Name> = manifest.entries().iter().filter_map(to).collect();
    let numbered = (0..).zip(manifest.entries()).filter(|(_, entry)| names.contains(&entry.path));
    numbered.map(|(number, entry)| (&entry.path, number)).collect()
}
