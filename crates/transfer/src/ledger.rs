//! The sender's state of each entry: whether it is still owed, in place, or left out.

use std::collections::{BTreeMap, BTreeSet};

use crate::collect::Selection;
use crate::entry::Entry;
use crate::manifest::Manifest;
use crate::protocol::ProtocolError;
use crate::skip::{Reason, Skipped};

/// The sender's books. A receiver that contradicts them is refused: it could otherwise have one file
/// sent for ever, or call complete what is not.
#[derive(Debug)]
pub(crate) struct Ledger {
    /// Files that are neither in place nor left out.
    owed: Vec<bool>,
    owed_count: usize,
    compared: BTreeSet<u32>,
    repeated: BTreeSet<u32>,
    left_out: BTreeMap<u32, Reason>,
}

impl Ledger {
    /// Owes every file of the manifest.
    pub(crate) fn new(manifest: &Manifest) -> Self {
        let owed: Vec<_> = manifest.entries().iter().map(Entry::is_file).collect();
        let owed_count = owed.iter().filter(|owed| **owed).count();
        let (compared, repeated, left_out) = Default::default();
        Self { owed, owed_count, compared, repeated, left_out }
    }

    /// The receiver wants the digest of a file, for the first time.
    pub(crate) fn compare(&mut self, file: u32) -> Result<(), ProtocolError> {
        match self.is_owed(file) && self.compared.insert(file) {
            true => Ok(()),
            false => {
                Err(ProtocolError::Unexpected("it wants to compare a file that was not offered, or did so before"))
            }
        }
    }

    /// The receiver has a file in its place.
    pub(crate) fn settle(&mut self, file: u32) -> Result<(), ProtocolError> {
        if !self.is_owed(file) {
            return Err(ProtocolError::Unexpected("it has a file that it was not sent, or has it twice"));
        }
        self.owed[file as usize] = false;
        self.owed_count -= 1;
        Ok(())
    }

    /// The receiver wants a file again, for the first time.
    pub(crate) fn repeat(&mut self, file: u32) -> Result<(), ProtocolError> {
        match self.left_out.contains_key(&file) || self.is_owed(file) && self.repeated.insert(file) {
            true => Ok(()),
            false => Err(ProtocolError::Unexpected("it wants a file again that was not offered, or more than once")),
        }
    }

    /// An entry is left out by either end; true where that is news about a file.
    pub(crate) fn leave_out(&mut self, entry: u32, reason: Reason) -> Result<bool, ProtocolError> {
        if entry as usize >= self.owed.len() {
            return Err(ProtocolError::Unexpected("it leaves out what was not offered"));
        }
        self.left_out.entry(entry).or_insert(reason);
        let is_news = self.is_owed(entry);
        if is_news {
            self.settle(entry)?;
        }
        Ok(is_news)
    }

    /// Whether a file is still to be sent.
    pub(crate) fn is_owed(&self, file: u32) -> bool {
        self.owed.get(file as usize).is_some_and(|owed| *owed)
    }

    /// The receiver calls everything complete.
    pub(crate) fn check_complete(&self) -> Result<(), ProtocolError> {
        match self.owed_count {
            0 => Ok(()),
            _ => Err(ProtocolError::Unexpected("it calls the transfer complete while files are missing")),
        }
    }

    /// The entries that were left out since the selection was made.
    pub(crate) fn skipped(&self, selection: &Selection) -> Vec<Skipped> {
        let skipped = |(&entry, &reason): (&u32, &Reason)| Skipped { path: selection.full(entry), reason };
        self.left_out.iter().map(skipped).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::Limits;

    fn two_files_and_a_directory() -> Ledger {
        let entries = vec![Entry::file("a", 1), Entry::file("b", 1), Entry::directory("d")];
        Ledger::new(&Manifest::new(entries, &Limits::default()).unwrap())
    }

    #[test]
    fn a_receiver_cannot_have_a_file_compared_or_sent_for_ever() {
        let mut ledger = two_files_and_a_directory();
        ledger.compare(0).unwrap();
        assert!(ledger.compare(0).is_err() && ledger.compare(2).is_err() && ledger.compare(9).is_err());
        ledger.repeat(1).unwrap();
        assert!(ledger.repeat(1).is_err() && ledger.repeat(2).is_err() && ledger.repeat(9).is_err());
    }

    #[test]
    fn complete_means_that_every_file_is_in_place_or_left_out() {
        let mut ledger = two_files_and_a_directory();
        ledger.settle(0).unwrap();
        assert!(ledger.settle(0).is_err() && ledger.settle(2).is_err());
        assert!(ledger.check_complete().is_err());
        assert!(ledger.leave_out(1, Reason::Changed).unwrap());
        assert!(!ledger.leave_out(1, Reason::TooLarge).unwrap(), "the other end's word comes late");
        assert!(!ledger.leave_out(2, Reason::NameRefused).unwrap(), "no file is missing");
        assert!(ledger.leave_out(3, Reason::Changed).is_err());
        ledger.check_complete().unwrap();
    }
}
