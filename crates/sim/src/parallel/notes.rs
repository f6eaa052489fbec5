//! Events that a part keeps for the recorder, until all parts meet.

use core::time::Duration;

use fairpath_core::{PathId, Timestamp};

use crate::recorder::{FlowIndex, Recorder};

#[derive(Clone, Copy, Debug)]
enum Note {
    Rtt(PathId, Duration),
    Congestion(PathId),
    Lost(PathId),
    Completion(Duration),
    Played(Duration),
}

/// Events of a part's flows, in the order of time.
#[derive(Debug, Default)]
pub(super) struct Notes {
    wanted: bool,
    notes: Vec<(Timestamp, FlowIndex, Note)>,
}

impl Notes {
    /// Whether anybody wants to be told.
    pub(super) fn wanted(&mut self, wanted: bool) {
        self.wanted = wanted;
    }

    /// Tells a recorder what all parts have noted, by time and then by flow, which one part has.
    pub(super) fn tell<'a>(parts: impl Iterator<Item = &'a mut Self>, recorder: &mut dyn Recorder) {
        let mut all: Vec<_> = parts.flat_map(|part| part.notes.drain(..)).collect();
        all.sort_by_key(|(at, flow, _)| (*at, *flow));
        for (at, flow, note) in all {
            match note {
                Note::Rtt(path, rtt) => recorder.on_rtt(at, flow, path, rtt),
                Note::Congestion(path) => recorder.on_congestion(at, flow, path),
                Note::Lost(path) => recorder.on_lost(at, flow, path),
                Note::Completion(took) => recorder.on_completion(at, flow, took),
                Note::Played(took) => recorder.on_played(at, flow, took),
            }
        }
    }

    #[inline]
    fn note(&mut self, now: Timestamp, flow: FlowIndex, note: Note) {
        if self.wanted {
            self.notes.push((now, flow, note));
        }
    }
}

impl Recorder for Notes {
    fn on_rtt(&mut self, now: Timestamp, flow: FlowIndex, path: PathId, rtt: Duration) {
        self.note(now, flow, Note::Rtt(path, rtt));
    }
    fn on_congestion(&mut self, now: Timestamp, flow: FlowIndex, path: PathId) {
        self.note(now, flow, Note::Congestion(path));
    }
    fn on_lost(&mut self, now: Timestamp, flow: FlowIndex, path: PathId) {
        self.note(now, flow, Note::Lost(path));
    }
    fn on_completion(&mut self, now: Timestamp, flow: FlowIndex, took: Duration) {
        self.note(now, flow, Note::Completion(took));
    }
    fn on_played(&mut self, now: Timestamp, flow: FlowIndex, took: Duration) {
        self.note(now, flow, Note::Played(took));
    }
}
