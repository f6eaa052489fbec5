//! Remedies for what loss-based congestion control and a scheduler by round-trip times do to each other
//! [Luebben2019, slides 8 and 9]. Each is as published, none is on by default, and any of them go together: our own
//! scheduler needs none.

mod bloat_clamp;
mod penalty;
mod probe;

use fairpath_core::{PathId, Timestamp};

use self::bloat_clamp::BloatClamp;
pub(crate) use self::penalty::{Holder, Penalty, sends_again};
use self::probe::Probes;

/// Which remedies are on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Remedies {
    /// λ of the window clamp, above 1: no path's smoothed round-trip time is to be more than so many times its least
    /// one. 3/2 and 3 are published.
    pub bloat_clamp: Option<f64>,
    /// A path without a sample of its round-trip time within the least one is probed, while the connection is at work.
    /// Done by hosts that ask for it with [`Engine::probe_due`](crate::Engine::probe_due): the simulator and QUIC.
    pub probe: bool,
    /// Where a full receive window keeps data back, the path that holds the oldest is penalised for it, and that data
    /// sent again. Done by the simulator: the window of our QUIC host is far larger than what paths hold.
    pub penalty: bool,
}

/// Those that are on, at work.
#[derive(Debug)]
pub(crate) struct AtWork {
    pub(crate) clamp: Option<BloatClamp>,
    pub(crate) probes: Option<Probes>,
    pub(crate) penalty: Option<Penalty>,
}

impl AtWork {
    /// None where all are off: nobody has to ask then.
    pub(crate) fn new(remedies: Remedies) -> Option<Self> {
        (remedies != Remedies::default()).then(|| Self {
            clamp: remedies.bloat_clamp.map(BloatClamp::new),
            probes: remedies.probe.then(Probes::default),
            penalty: remedies.penalty.then(Penalty::default),
        })
    }

    /// A round-trip time was measured on the path.
    pub(crate) fn on_sample(&mut self, path: PathId, now: Timestamp) {
        if let Some(probes) = &mut self.probes {
            probes.on_heard(path, now);
        }
    }

    pub(crate) fn on_path_closed(&mut self, path: PathId) {
        if let Some(clamp) = &mut self.clamp {
            clamp.forget(path);
        }
        if let Some(probes) = &mut self.probes {
            probes.forget(path);
        }
        if let Some(penalty) = &mut self.penalty {
            penalty.forget(path);
        }
    }
}
