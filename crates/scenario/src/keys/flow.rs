//! The tables that describe flows, and what happens in mid-run.

use fairpath_engine::{Coupling, EngineConfig};

use super::{FLOWS_MAX, Key, Keys, PARAMETERS, PATHS_MAX, Shape};

const APPLICATION: Shape = Shape::Either(APPLICATION_FORMS);
const APPLICATION_FORMS: &[Shape] = &[Shape::Words(&["bulk"]), Shape::Table(&TRAFFIC)];

const VALUES: &[Key] = &[
    Key::optional(
        "preset",
        Shape::Words(&["fairpath"]),
        "what published evaluations have",
        "`\"fairpath\"` is what connections over real networks do; the other keys of the flow say what differs from it",
        "\"fairpath\"",
    ),
    Key::optional(
        "congestion",
        Shape::Words(EngineConfig::CONGESTION),
        "the first of them",
        "the congestion control",
        "\"olia\"",
    ),
    Key::optional(
        "coupling",
        Shape::Words(Coupling::NAMES),
        "the first of them",
        "when the paths of a flow are coupled",
        "\"never\"",
    ),
    Key::optional(
        "detector",
        Shape::Words(EngineConfig::DETECTORS),
        "the first of them",
        "what finds shared bottlenecks where `coupling` is `\"auto\"`",
        "\"trendline\"",
    ),
    Key::optional(
        "hold",
        Shape::Time,
        "`\"0s\"`",
        "how much longer paths stay coupled after the detector has let go of them",
        "\"10s\"",
    ),
    Key::optional(
        "dips",
        Shape::Flag,
        "`false`",
        "with `coupling = \"auto\"`, one path after the other sends a little less for a moment while the detector is in doubt",
        "true",
    ),
    Key::optional(
        "remedies",
        Shape::Table(&REMEDIES),
        "all off",
        "what is done against full queues and stale round-trip times",
        "{ bloat_clamp = 1.5, probe = true }",
    ),
    Key::optional(
        "scheduler",
        Shape::Words(EngineConfig::SCHEDULERS),
        "the first of them",
        "which path carries the next packet",
        "\"round_robin\"",
    ),
    Key::optional(
        "traffic",
        APPLICATION,
        "`\"bulk\"`",
        "what the application sends; `\"bulk\"` is as much as the network takes",
        "{ size = \"3MB\" }",
    ),
    Key::optional("start", Shape::Time, "`\"0s\"`", "when it starts", "\"2s\""),
    Key::optional(
        "start_jitter",
        Shape::Time,
        "`\"0s\"`",
        "each copy starts up to this much later, at random",
        "\"1s\"",
    ),
    Key::optional("stop", Shape::Time, "the end of the run", "when it stops sending", "\"40s\""),
    Key::optional(
        "transport",
        Shape::Table(&TRANSPORT),
        "the defaults of `transport`",
        "how packets are made, acknowledged and buffered",
        "{ ecn = true }",
    ),
    Key::optional(
        "parameters",
        Shape::Table(&PARAMETERS),
        "the defaults of `parameters`",
        "of the congestion control and of the detector",
        "{ min_window = 1 }",
    ),
];

/// An entry `[[flow]]`.
pub(crate) static FLOW: Keys = Keys::new(
    "flow",
    &[
        &[
            Key::needed(
                "name",
                Shape::Text,
                "what it is called; flows of one entry are summed up together",
                "\"download\"",
            ),
            Key::optional("from", Shape::Text, "`matrix`, or it must be given", "the node that sends", "\"server\""),
            Key::optional("to", Shape::Text, "`matrix`, or it must be given", "the node that receives", "\"phone\""),
            Key::optional(
                "count",
                Shape::Whole(1, FLOWS_MAX),
                "one flow, called `NAME`",
                "so many copies, called `NAME.0`, `NAME.1` and so on; `{i}` in the names of nodes and links stands for the number",
                "15",
            ),
            Key::optional("first", Shape::Whole(0, FLOWS_MAX), "`0`", "the number of the first copy", "15"),
            Key::optional(
                "via",
                VIA,
                "see [paths](#paths)",
                "the nodes, or links, between the ends; a list for each path",
                "[[\"wifi\"], [\"lte\"]]",
            ),
            Key::optional(
                "back_via",
                VIA,
                "the same ways back",
                "the same for the acknowledgements, from `to` to `from`",
                "[[\"wifi\"], [\"wifi\"]]",
            ),
            Key::optional(
                "paths",
                Shape::Whole(1, PATHS_MAX),
                "`1`",
                "so many paths that share no link, the shortest",
                "2",
            ),
            Key::optional(
                "subflows",
                Shape::Whole(1, PATHS_MAX),
                "see [paths](#paths)",
                "so many different paths of those with the fewest links, at random; all, where there are fewer",
                "8",
            ),
            Key::optional(
                "weights",
                Shape::List(&Shape::Whole(1, 1_000)),
                "all alike",
                "how large the share of each path is to be, for schedulers that ask",
                "[3, 1]",
            ),
            Key::optional(
                "costs",
                Shape::List(&Shape::Whole(0, 1_000)),
                "all alike",
                "what using each path costs, for schedulers that ask: the cheapest first",
                "[0, 5]",
            ),
            Key::optional(
                "caps",
                Shape::List(&Shape::Either(&[Shape::Rate, Shape::Words(&["unlimited"])])),
                "all `\"unlimited\"`",
                "how much may be sent on each path in a second, at most",
                "[\"unlimited\", \"5Mbit/s\"]",
            ),
            Key::optional(
                "quotas",
                Shape::List(&Shape::Either(&[Shape::Size, Shape::Words(&["unlimited"])])),
                "all `\"unlimited\"`",
                "how much a connection may send on each path, with headers; then the path is not used any more",
                "[\"unlimited\", \"20MB\"]",
            ),
            Key::optional(
                "matrix",
                Shape::Words(&["permutation", "random"]),
                "`from` and `to`",
                "who sends to whom, among the hosts of `topology`",
                "\"permutation\"",
            ),
            Key::optional(
                "share",
                Shape::Either(&[Shape::Share, Shape::Words(&["rest"])]),
                "`\"rest\"`",
                "the share of the hosts that send, at random; later entries take from the others",
                "\"1/3\"",
            ),
        ],
        VALUES,
    ],
);

const VIA: Shape = Shape::Either(&[Shape::List(&Shape::Text), Shape::List(&Shape::List(&Shape::Text))]);

/// `[defaults.flow]`.
pub(crate) static FLOW_DEFAULTS: Keys = Keys::like("flow", "defaults.flow", &[VALUES]);

/// `traffic = { … }`.
pub(crate) static TRAFFIC: Keys = Keys::one_of(
    "traffic",
    &[&[
        Key::optional("size", Shape::Size, "", "this much, and then no more", "\"3MB\""),
        Key::optional(
            "short_flows",
            Shape::Table(&SHORT_FLOWS),
            "",
            "one transfer after the other, each on a connection of its own, begun at random (a Poisson process)",
            "{ size = \"70kB\", mean_interval = \"200ms\" }",
        ),
        Key::optional(
            "on_off",
            Shape::Table(&ON_OFF),
            "",
            "as much as the network takes for a while, then nothing for a while",
            "{ on = \"1s\", off = \"2s\" }",
        ),
        Key::optional(
            "constant",
            Shape::Rate,
            "",
            "a steady rate without headers, under congestion control; what it does not let out waits",
            "\"2Mbit/s\"",
        ),
        Key::optional(
            "media",
            Shape::Table(&MEDIA),
            "",
            "frames of a live picture, under congestion control",
            "{ rate = \"4Mbit/s\" }",
        ),
        Key::optional(
            "live",
            Shape::Table(&LIVE),
            "",
            "packets with a deadline, spread over the paths, repaired and played in time as live streams are",
            "{ rate = \"4Mbit/s\" }",
        ),
        Key::optional(
            "unresponsive",
            Shape::Rate,
            "",
            "a steady rate on the wire whatever becomes of it: no congestion control, no acknowledgements",
            "\"2Mbit/s\"",
        ),
    ]],
);

/// `traffic = { short_flows = { … } }`.
pub(crate) static SHORT_FLOWS: Keys = Keys::new(
    "short_flows",
    &[&[
        Key::needed("size", Shape::Size, "how much each is, without headers", "\"70kB\""),
        Key::needed("mean_interval", Shape::Time, "the mean time from one beginning to the next", "\"200ms\""),
    ]],
);

/// `traffic = { on_off = { … } }`.
pub(crate) static ON_OFF: Keys = Keys::new(
    "on_off",
    &[&[
        Key::needed("on", Shape::Time, "the mean time on", "\"1s\""),
        Key::needed("off", Shape::Time, "the mean time off", "\"2s\""),
        Key::optional(
            "distribution",
            Shape::Words(&["exponential", "fixed"]),
            "`\"exponential\"`",
            "how the times are spread around their means",
            "\"fixed\"",
        ),
    ]],
);

/// `traffic = { media = { … } }`.
pub(crate) static MEDIA: Keys = Keys::new(
    "media",
    &[&[
        Key::needed("rate", Shape::Rate, "the mean rate, without headers", "\"4Mbit/s\""),
        Key::optional("frames_per_second", Shape::Whole(1, 1_000), "`30`", "frames in a second", "25"),
        Key::optional(
            "key_frame_every",
            Shape::Whole(1, 100_000),
            "`60`",
            "every so many frames one is a key frame",
            "50",
        ),
        Key::optional(
            "key_frame_ratio",
            Shape::Above(0, 1_000),
            "`5`",
            "how many times larger a key frame is than another",
            "4.0",
        ),
    ]],
);

/// `traffic = { live = { … } }`.
pub(crate) static LIVE: Keys = Keys::new(
    "live",
    &[&[
        Key::optional(
            "rate",
            Shape::Rate,
            "what the stream's budget allows its encoder",
            "the application's rate, without headers",
            "\"4Mbit/s\"",
        ),
        Key::optional(
            "packet",
            Shape::Size,
            "`\"1316B\"`, seven packets of MPEG-TS",
            "the size of the application's packets, from 16 B to 65,507 B",
            "\"1316B\"",
        ),
        Key::optional(
            "deadline",
            Shape::Time,
            "`\"300ms\"`",
            "how long a packet may take from the application to the player, from 10 ms to 10 s",
            "\"300ms\"",
        ),
        Key::optional("repair", Shape::Flag, "`true`", "whether blocks of packets have Reed-Solomon repair", "false"),
        Key::optional("copies", Shape::Flag, "`false`", "whether each packet leaves on two paths", "true"),
        Key::optional(
            "sharing",
            Shape::Words(&["best", "coupled", "equal"]),
            "`\"best\"`",
            "by what rates the paths share it: those that bring the most in time, those of coupled TCP, or the same on each",
            "\"equal\"",
        ),
    ]],
);

/// `remedies = { … }`.
pub(crate) static REMEDIES: Keys = Keys::new(
    "remedies",
    &[&[
        Key::optional(
            "bloat_clamp",
            Shape::Either(&[Shape::Above(1, 1_000), Shape::Words(&["off"])]),
            "`\"off\"`",
            "a window is cut to what makes the smoothed round-trip time so many times the least one; published are 1.5 and 3; BBR has no such window",
            "1.5",
        ),
        Key::optional(
            "probe",
            Shape::Flag,
            "`false`",
            "a path without a sample of its round-trip time within the least one is asked for one, while the flow is at work",
            "true",
        ),
        Key::optional(
            "penalty",
            Shape::Flag,
            "`false`",
            "where the receive buffer is full, the window of the slower path that holds the oldest data is halved, and a path that is much faster sends that data again",
            "true",
        ),
    ]],
);

/// `transport = { … }`.
pub(crate) static TRANSPORT: Keys = Keys::new(
    "transport",
    &[&[
        Key::optional("packet", Shape::Size, "`\"1500B\"`", "a full data packet on the wire", "\"1500B\""),
        Key::optional("header", Shape::Size, "`\"52B\"`", "the part of it that is not the application's", "\"52B\""),
        Key::optional("ack", Shape::Size, "`\"52B\"`", "an acknowledgement", "\"52B\""),
        Key::optional("ack_every", Shape::Whole(1, 1_000), "`1`", "an acknowledgement for every so many packets", "2"),
        Key::optional(
            "ack_delay_max",
            Shape::Time,
            "`\"25ms\"`",
            "the longest that an acknowledgement waits for the next packet",
            "\"25ms\"",
        ),
        Key::optional(
            "send_buffer",
            BUFFER,
            "`\"unlimited\"`",
            "what the sender may hold that is not acknowledged, over all paths",
            "\"1MB\"",
        ),
        Key::optional(
            "receive_buffer",
            BUFFER,
            "`\"unlimited\"`",
            "what the receiver may hold that is out of order",
            "\"1MB\"",
        ),
        Key::optional(
            "reinjection",
            Shape::Flag,
            "`false`",
            "data that holds up the others, and what slower paths carry at the end, is sent again on a path where it arrives sooner",
            "true",
        ),
        Key::optional("ecn", Shape::Flag, "`false`", "packets may be marked instead of dropped", "true"),
        Key::optional(
            "pacing",
            Shape::Flag,
            "`true` where the congestion control is based on rates",
            "whether packets are spaced; with `true` ten may leave at once, as over real networks",
            "false",
        ),
    ]],
);

const BUFFER: Shape = Shape::Either(&[Shape::Size, Shape::Words(&["unlimited"])]);

/// An entry `[[change]]`.
pub(crate) static CHANGE: Keys = Keys::new(
    "change",
    &[&[
        Key::needed("at", Shape::Time, "when", "\"20s\""),
        Key::needed(
            "link",
            Shape::Either(&[Shape::Text, Shape::List(&Shape::Text)]),
            "the link, or several",
            "\"wifi\"",
        ),
        Key::optional(
            "direction",
            Shape::Words(&["both", "forward", "back"]),
            "`\"both\"`",
            "of a wire, which direction; a link named `NAME.back` is one direction only",
            "\"forward\"",
        ),
        Key::optional("up", Shape::Flag, "`rate` or `drop`", "`false` switches it off, `true` on again", "false"),
        Key::optional(
            "rate",
            Shape::Either(&[Shape::Rate, Shape::Words(&["unlimited"])]),
            "`up` or `drop`",
            "its rate from now on; `\"0bit/s\"` lets everything wait",
            "\"5Mbit/s\"",
        ),
        Key::optional(
            "drop",
            Shape::Either(&[Shape::Words(&["all", "none"]), Shape::Table(&DROP)]),
            "`up` or `rate`",
            "what it drops from now on of what comes, before everything else; what is on it goes on",
            "{ larger = \"1200B\" }",
        ),
    ]],
);

/// `drop = { … }`.
pub(crate) static DROP: Keys = Keys::one_of(
    "drop",
    &[&[
        Key::optional("larger", Shape::Size, "", "packets of more than this, a black hole", "\"1200B\""),
        Key::optional("share", Shape::Share, "", "this share, at random", "\"20%\""),
        Key::optional(
            "every",
            Shape::Whole(1, u64::MAX),
            "",
            "every packet whose number is a multiple of this, from the change on",
            "10",
        ),
        Key::optional("next", Shape::Whole(1, u64::MAX), "", "the next so many packets, and none after them", "5"),
    ]],
);
