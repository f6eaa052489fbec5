//! The description of a run, whole.

use core::time::Duration;

use fairpath_core::{Bitrate, ByteCount};
use fairpath_engine::{DeadlineParameters, EngineConfig, Terms};
use fairpath_live::{BudgetParameters, Config, LiveParameters, Sharing};
use fairpath_net::{Filter, LinkConfig, Rate};

/// The position of a link in [`Scenario::links`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkIndex(pub u32);

/// A network, its flows and how long they run.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its title.
    pub title: String,
    /// From this everything random is drawn: with the same seed the same run.
    pub seed: u64,
    /// How long it runs.
    pub duration: Duration,
    /// Summaries leave out what happened before this.
    pub warm_up: Duration,
    /// How often the time series take a sample.
    pub sample_every: Duration,
    /// Every direction of every wire.
    pub links: Vec<ScenarioLink>,
    /// Every flow.
    pub flows: Vec<Flow>,
    /// The changes of links in mid-run, in order of time.
    pub changes: Vec<Change>,
}

/// One direction of one wire between two nodes.
#[derive(Clone, Debug)]
pub struct ScenarioLink {
    /// Its name, unique in the scenario.
    pub name: String,
    /// The node it leaves.
    pub from: String,
    /// The node it reaches.
    pub to: String,
    /// Its settings.
    pub config: LinkConfig,
}

/// The links of one path of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathRoute {
    /// From the sender to the receiver.
    pub forward: Vec<LinkIndex>,
    /// And back, for the acknowledgements.
    pub backward: Vec<LinkIndex>,
}

/// A sender, a receiver and the paths between them.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Its name, unique in the scenario.
    pub name: String,
    /// The entry of the description that it comes from: flows of one class are summed up together.
    pub class: String,
    /// Its paths; at least one.
    pub paths: Vec<PathRoute>,
    /// The terms of each path; those that are left out have none.
    pub terms: Vec<Terms>,
    /// Congestion control, coupling and scheduling.
    pub engine: EngineConfig,
    /// How packets are made, acknowledged and buffered.
    pub transport: Transport,
    /// Remedies against full queues and stale round-trip times.
    pub remedies: Remedies,
    /// The traffic of the application.
    pub traffic: Traffic,
    /// When it starts.
    pub start: Duration,
    /// It starts up to this much later, drawn uniformly for each flow.
    pub start_jitter: Duration,
    /// When it stops sending; `None`: with the run.
    pub stop: Option<Duration>,
}

impl Flow {
    /// Sends as a connection over real networks does: by such an engine, paced. A window that goes unpaced behind a
    /// second of queue leaves in one burst per round trip, and half a second without a sample is more than a detector
    /// bridges.
    pub fn as_live(&mut self, engine: EngineConfig) -> &mut Self {
        (self.engine, self.transport.pacing) = (engine, Some(true));
        self
    }
}

/// Published remedies of a host against full queues and stale round-trip times, as experiments compare them
/// [Luebben2019, slides 8 and 9].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Remedies {
    /// λ of the window clamp, above 1: the limit on a path's smoothed round-trip time, in parts of
    /// its least. 3/2 and 3 are published.
    pub bloat_clamp: Option<f64>,
    /// A path without a sample of its round-trip time within the least one is probed, while the connection is at work.
    pub probe: bool,
    /// Where a full receive window keeps data back, the path that holds the oldest is penalised for it, and that data
    /// sent again.
    pub penalty: bool,
}

/// How a flow's packets are made, acknowledged and buffered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transport {
    /// The size of a full data packet on the wire: 1,500 B.
    pub packet: ByteCount,
    /// The part of it that is not the application's: 52 B, so that 1,448 B are.
    pub header: ByteCount,
    /// The size of an acknowledgement: 52 B.
    pub ack: ByteCount,
    /// Packets per acknowledgement: 1.
    pub ack_every: u32,
    /// The longest that an acknowledgement waits for the next packet: 25 ms.
    pub ack_delay_max: Duration,
    /// The bytes that the sender may hold unacknowledged, over all paths; `None`: any number.
    pub send_buffer: Option<ByteCount>,
    /// The bytes that the receiver may hold out of order; `None`: any number.
    pub receive_buffer: Option<ByteCount>,
    /// Data that holds up the others is sent again on a path that has room.
    pub reinjection: bool,
    /// Packets may be marked instead of dropped.
    pub ecn: bool,
    /// Whether packets are spaced; `None`: where the congestion control is based on rates.
    pub pacing: Option<bool>,
}

impl Transport {
    /// The application's bytes in a full packet: at least one.
    pub fn payload(&self) -> ByteCount {
        self.packet.saturating_sub(self.header).max(ByteCount::new(1))
    }

    /// That of a connection over real networks: paced, and what slower paths carry at the end is sent again.
    pub fn live() -> Self {
        Self { reinjection: true, pacing: Some(true), ..Self::default() }
    }
}

impl Default for Transport {
    fn default() -> Self {
        Self {
            packet: ByteCount::new(1500),
            header: ByteCount::new(52),
            ack: ByteCount::new(52),
            ack_every: 1,
            ack_delay_max: Duration::from_millis(25),
            send_buffer: None,
            receive_buffer: None,
            reinjection: false,
            ecn: false,
            pacing: None,
        }
    }
}

/// How long something takes, or how much it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// Always the mean.
    Fixed,
    /// Exponentially distributed around the mean.
    Exponential,
}

/// The traffic of an application.
#[expect(clippy::large_enum_variant, reason = "there is one a flow, and it is copied")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Traffic {
    /// As much as the network takes.
    Bulk,
    /// This much, and then no more.
    Finite {
        /// How much, without headers.
        size: ByteCount,
    },
    /// One transfer after the other, each on a connection of its own, begun at random: a Poisson
    /// process.
    ShortFlows {
        /// How much each is, without headers.
        size: ByteCount,
        /// The mean time from one beginning to the next.
        mean_interval: Duration,
    },
    /// As much as the network takes for a while, then nothing for a while.
    OnOff {
        /// The mean time on.
        on: Duration,
        /// The mean time off.
        off: Duration,
        /// Around these means.
        distribution: Distribution,
    },
    /// A steady rate, under congestion control: what the window does not let out waits.
    Constant {
        /// Without headers.
        rate: Bitrate,
    },
    /// Frames of a live picture, under congestion control.
    Media {
        /// The mean rate, without headers.
        rate: Bitrate,
        /// Frames in a second.
        frames_per_second: u32,
        /// One in this many frames is a key frame.
        key_frame_every: u32,
        /// How many times larger a key frame is than another.
        key_frame_ratio: f64,
    },
    /// Packets of a live stream, each with a deadline, spread over the paths and repaired by `fairpath-live`. Windows
    /// bound what leaves; what is late is not played.
    Live(Live),
    /// A steady rate whatever becomes of it: no congestion control, no acknowledgements.
    Unresponsive {
        /// On the wire.
        rate: Bitrate,
    },
}

/// A live stream: an application's packets at a steady rate, and a player.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Live {
    /// The application's rate, without headers; `None`: always what the stream's budget allows it.
    pub rate: Option<Bitrate>,
    /// The size of the application's packets: 1,316 B, seven of MPEG-TS. At least 16 B, which say what each is.
    pub packet: ByteCount,
    /// The settings of both ends. There is one flow, and no packet is marked.
    pub stream: Config,
    /// How the paths share its rate.
    pub sharing: Sharing,
    /// The constants of its scheduler. Files have no word for them: an experiment shows what each does.
    pub scheduler: DeadlineParameters,
    /// Those of its budget, the same.
    pub budget: BudgetParameters,
    /// Those of its sender, the same.
    pub parameters: LiveParameters,
}

impl Default for Live {
    fn default() -> Self {
        Self {
            rate: None,
            packet: ByteCount::new(1_316),
            stream: Config::default(),
            sharing: Sharing::default(),
            scheduler: DeadlineParameters::default(),
            budget: BudgetParameters::default(),
            parameters: LiveParameters::default(),
        }
    }
}

/// Something that happens to a link in mid-run.
#[derive(Clone, Debug)]
pub struct Change {
    /// When.
    pub at: Duration,
    /// To which link.
    pub link: LinkIndex,
    /// What.
    pub kind: ChangeKind,
}

/// A change of a link.
#[derive(Clone, Debug)]
pub enum ChangeKind {
    /// It is switched on or off.
    Up(bool),
    /// It has another rate from now on.
    Rate(Rate),
    /// It has another filter from now on.
    Filter(Filter),
}
