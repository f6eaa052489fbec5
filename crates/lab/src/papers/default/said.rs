//! The engine's verdicts on the two paths of a flow, over a run.

use core::time::Duration;

use fairpath_core::{PathId, Timestamp};
use fairpath_sim::{FlowIndex, Recorder, View};
use serde::{Deserialize, Serialize};

/// The engine's verdicts on both paths of the first flow.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Said {
    begun: Option<Timestamp>,
    /// How long after the first sample they were first one group.
    pub(super) first: Option<Duration>,
    is_together: bool,
    /// How often they became one group.
    pub(super) verdicts: u32,
    pub(super) samples: u32,
    together: u32,
}

impl Recorder for Said {
    fn on_sample(&mut self, now: Timestamp, view: &View<'_>) {
        let Some(groups) = view.groups(FlowIndex(0)) else { return };
        let begun = *self.begun.get_or_insert(now);
        let together = groups.together(PathId::new(0), PathId::new(1));
        self.samples += 1;
        self.together += u32::from(together);
        self.verdicts += u32::from(together && !self.is_together);
        self.is_together = together;
        if together {
            self.first.get_or_insert(now.since(begun));
        }
    }
}

impl Said {
    /// The part of the time for which they were one group.
    pub(super) fn part(&self) -> f64 {
        f64::from(self.together) / f64::from(self.samples.max(1))
    }
}
