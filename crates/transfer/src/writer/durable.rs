//! The things that outlive a run: files under their names, and journals of those that are not whole.

use tokio::sync::mpsc;

use super::{Event, Status, Writer};
use crate::error::ReceiveError;
use crate::part;
use crate::partial::PartNames;

impl Writer {
    /// Makes the verified files durable and moves them to their names.
    pub(super) fn place(&mut self, events: &mpsc::UnboundedSender<Event>) -> Result<(), ReceiveError> {
        let batch = std::mem::take(&mut self.batch);
        let verified = batch.make_durable(&self.partial, |number| self.names(number).data)?;
        let (mut done, mut left_out) = (Vec::new(), Vec::new());
        let mut failed = Ok(());
        for one in verified {
            let entry = &self.manifest.entries()[one.number as usize];
            match one.place(&mut self.destination, &self.partial, entry, self.how) {
                Ok(renamed) => {
                    self.renamed.extend(renamed.map(|name| (one.number, name)));
                    self.status[one.number as usize] = Status::Finished;
                    self.wanted -= 1;
                    self.progress.add_file();
                    self.in_place.insert(one.number, one.digest);
                    done.push((one.number, self.seal.proof(one.number, &one.digest)));
                }
                Err(error) => match error.refusal() {
                    Some(reason) => {
                        self.partial.discard(&PartNames::of(&entry.path))?;
                        self.note_left_out(one.number, reason, one.size);
                        left_out.push((one.number, reason));
                    }
                    None => {
                        failed = Err(error);
                        break;
                    }
                },
            }
        }
        if !done.is_empty() {
            let _ = events.send(Event::Done(done));
        }
        if !left_out.is_empty() {
            let _ = events.send(Event::LeftOut(left_out));
        }
        failed
    }

    /// Saves the journals of the files with at least `threshold` new bytes.
    pub(super) fn save(&mut self, threshold: u64) -> Result<(), ReceiveError> {
        for (&number, active) in &mut self.active {
            let Some(identity) = active.identity.filter(|_| active.unsaved >= threshold) else { continue };
            let entry = &self.manifest.entries()[number as usize];
            // Only this run can go on with a stream: a journal in mid-course is of no use.
            if entry.is_stream() && threshold > 1 {
                continue;
            }
            let names = PartNames::of(&entry.path);
            let synced = match &active.file {
                Some(file) => file.sync_data(),
                None => self.partial.reopen(&names.data, identity)?.sync_data(),
            };
            synced.map_err(|error| self.partial.io(&names.data, error))?;
            part::save(&self.partial, entry, &active.ranges)?;
            (active.unsaved, active.has_journal) = (0, true);
        }
        Ok(())
    }
}
