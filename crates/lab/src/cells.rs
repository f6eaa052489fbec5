//! The cells of an experiment that are known, and those that are wanted.

use core::ops::Range;
use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The result of a cell, as bytes that [`Cut`](crate::Cut) understands.
pub type CellBytes = Vec<u8>;

/// The cells of an experiment that are known, and those that are wanted.
#[derive(Debug)]
pub(crate) struct Cells(Mutex<State>);

#[derive(Debug)]
struct State {
    done: std::vec::IntoIter<Vec<CellBytes>>,
    wanted: Range<usize>,
    stopped: Option<Result<Stopped, String>>,
}

/// Where an experiment has stopped.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stopped {
    /// How many cells the sweep has.
    pub(crate) cells: usize,
    /// The results of those that were wanted.
    pub(crate) results: Vec<CellBytes>,
}

impl Cells {
    pub(crate) fn new(done: Vec<Vec<CellBytes>>, wanted: Range<usize>) -> Self {
        Self(Mutex::new(State { done: done.into_iter(), wanted, stopped: None }))
    }

    /// The results of all cells of the next sweep, where it is done; otherwise `run` runs those that are wanted, and
    /// there is nothing to go on with.
    pub(crate) fn sweep<R: Serialize + DeserializeOwned>(
        &self,
        cells: usize,
        run: impl FnOnce(Range<usize>) -> Vec<R>,
    ) -> Option<Vec<R>> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let stopped = match state.done.next() {
            Some(done) if done.len() == cells => {
                let read = done.iter().map(|cell| postcard::from_bytes(cell)).collect::<Result<_, _>>();
                match read {
                    Ok(results) => return Some(results),
                    Err(error) => Err(format!("a cell cannot be read: {error}")),
                }
            }
            Some(done) => Err(format!("a sweep of {cells} cells has {}", done.len())),
            None => {
                let wanted = state.wanted.start.min(cells)..state.wanted.end.min(cells);
                let results = run(wanted).iter().map(postcard::to_stdvec).collect::<Result<_, _>>();
                results.map(|results| Stopped { cells, results }).map_err(|error| error.to_string())
            }
        };
        state.stopped.get_or_insert(stopped);
        None
    }

    pub(crate) fn stopped(&self) -> Option<Result<Stopped, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).stopped.clone()
    }
}
