//! The tables that describe links.

use super::{Key, Keys, Shape};

const RATE: Shape = Shape::Either(RATE_FORMS);
const RATE_FORMS: &[Shape] = &[Shape::Rate, Shape::Words(&["unlimited"]), Shape::Table(&RATE_STEPS)];
const FILE: Shape = Shape::Either(FILE_FORMS);
const FILE_FORMS: &[Shape] = &[Shape::Text, Shape::Table(&TRACE)];
const WAITING: Shape = Shape::Either(WAITING_FORMS);
const WAITING_FORMS: &[Shape] = &[Shape::Room, Shape::Table(&QUEUE)];
const LOSSES: Shape = Shape::Either(LOSSES_FORMS);
const LOSSES_FORMS: &[Shape] = &[Shape::Share, Shape::Table(&LOSS)];
const DELAYS: Shape = Shape::Either(DELAYS_FORMS);
const DELAYS_FORMS: &[Shape] = &[Shape::Time, Shape::Table(&JITTER)];

const VALUES: &[Key] = &[
    Key::optional(
        "rate",
        RATE,
        "`trace`, or it must be given",
        "how fast it transmits; with `\"unlimited\"` transmission takes no time",
        "\"30Mbit/s\"",
    ),
    Key::optional(
        "trace",
        FILE,
        "`rate`",
        "a file with its rate over time, instead of `rate`: a table in CSV where the name ends in `.csv`, a Mahimahi trace otherwise",
        "\"lte.down\"",
    ),
    Key::optional("delay", Shape::Time, "`\"0ms\"`", "the propagation delay, one way", "\"20ms\""),
    Key::optional(
        "queue",
        WAITING,
        "`\"100ms\"`",
        "what may wait for transmission; where it is managed (`red`, `codel`, `fq_codel`), in this direction only",
        "\"300 packets\"",
    ),
    Key::optional(
        "policer",
        Shape::Table(&POLICER),
        "there is none",
        "what drops packets that come too fast, before the queue; in this direction only",
        "{ rate = \"10Mbit/s\", burst = \"50kB\" }",
    ),
    Key::optional("loss", LOSSES, "`0`", "the share of packets that is lost at random, before the queue", "\"0.1%\""),
    Key::optional(
        "jitter",
        DELAYS,
        "`\"0ms\"`",
        "how the delays of packets differ: a time alone is the most that is added to the delay, and none overtakes another",
        "\"2ms\"",
    ),
    Key::optional(
        "reorder",
        Shape::Table(&REORDER),
        "none are",
        "packets that are held back, so that later ones overtake them",
        "{ share = \"5%\", by = \"10ms\" }",
    ),
    Key::optional("duplicate", Shape::Share, "`0`", "the share of packets that arrives twice", "\"1%\""),
    Key::optional("corrupt", Shape::Share, "`0`", "the share of packets that arrives damaged", "\"0.1%\""),
    Key::optional(
        "overhead",
        Shape::Size,
        "`\"0B\"`",
        "framing that each packet has in the queue and on the wire: `\"38B\"` are Ethernet's, `\"4B\"` Mahimahi's",
        "\"38B\"",
    ),
];

const BACK_KEY: &[Key] = &[Key::optional(
    "back",
    Shape::Table(&BACK),
    "the same as forward, but a managed queue",
    "what differs in the other direction",
    "{ rate = \"5Mbit/s\" }",
)];

/// An entry `[[link]]`.
pub(crate) static LINK: Keys = Keys::new(
    "link",
    &[
        &[
            Key::optional(
                "name",
                Shape::Text,
                "`from-to`",
                "what it is called; the other direction is called `NAME.back`",
                "\"wifi\"",
            ),
            Key::needed("from", Shape::Text, "the node where it begins", "\"phone\""),
            Key::needed("to", Shape::Text, "the node where it ends", "\"server\""),
            Key::optional("one_way", Shape::Flag, "`false`", "whether there is no other direction", "true"),
        ],
        VALUES,
        BACK_KEY,
    ],
);

/// A wire of a ready-made network.
pub(crate) static WIRE: Keys = Keys::like("link", "wire", &[VALUES, BACK_KEY]);

/// `back`: the other direction.
pub(crate) static BACK: Keys = Keys::like("link", "back", &[VALUES]);

/// `[defaults.link]`.
pub(crate) static LINK_DEFAULTS: Keys = Keys::like("link", "defaults.link", &[VALUES]);

/// `jitter = { … }`.
pub(crate) static JITTER: Keys = Keys::new(
    "jitter",
    &[&[
        Key::optional(
            "distribution",
            Shape::Words(&["uniform", "normal", "exponential"]),
            "`\"uniform\"`",
            "how the delays are distributed",
            "\"normal\"",
        ),
        Key::needed(
            "scale",
            Shape::Time,
            "how far they spread: the most that is added to the `delay` (uniform), the standard deviation from it (normal), or the mean of what is added to it (exponential)",
            "\"2ms\"",
        ),
        Key::optional(
            "overtake",
            Shape::Flag,
            "`false`",
            "whether a packet with a shorter delay may overtake one before it; otherwise it arrives together with it",
            "true",
        ),
    ]],
);

/// `reorder = { … }`.
pub(crate) static REORDER: Keys = Keys::new(
    "reorder",
    &[&[
        Key::needed("share", Shape::Share, "the share of packets that is held back", "\"5%\""),
        Key::needed("by", Shape::Time, "for how long, beyond their delay", "\"10ms\""),
    ]],
);

/// `rate = { steps = [[…]] }`.
pub(crate) static RATE_STEPS: Keys = Keys::new(
    "rate_steps",
    &[&[
        Key::needed(
            "steps",
            Shape::List(&Shape::List(&Shape::Text)),
            "pairs of a time and the rate from then on; the first time is `\"0s\"`, and `\"0bit/s\"` is an outage",
            "[[\"0s\", \"20Mbit/s\"], [\"12s\", \"5Mbit/s\"]]",
        ),
        Key::optional("repeat", Shape::Time, "the last rate stays", "the steps start over after this time", "\"20s\""),
    ]],
);

/// `trace = { … }`.
pub(crate) static TRACE: Keys = Keys::new(
    "trace",
    &[&[
        Key::optional(
            "mahimahi",
            Shape::Text,
            "`csv`",
            "a file with one millisecond per line, each an opportunity to send 1,504 bytes",
            "\"lte.down\"",
        ),
        Key::optional("csv", Shape::Text, "`mahimahi`", "a file with columns like `time_s,rate_mbps`", "\"walk.csv\""),
        Key::optional(
            "repeat",
            Shape::Time,
            "the last rate stays",
            "the table in CSV starts over after this time",
            "\"60s\"",
        ),
    ]],
);

/// `queue = { … }`.
pub(crate) static QUEUE: Keys = Keys::one_of(
    "queue",
    &[&[
        Key::optional(
            "drop_tail",
            Shape::Room,
            "",
            "first in, first out; what does not fit is dropped. The same as the text alone",
            "\"100ms\"",
        ),
        Key::optional(
            "red",
            Shape::Table(&RED),
            "",
            "random early detection",
            "{ min = \"25 packets\", max = \"50 packets\" }",
        ),
        Key::optional("codel", Shape::Table(&CODEL), "", "controlled delay", "{ target = \"5ms\" }"),
        Key::optional(
            "fq_codel",
            Shape::Table(&FQ_CODEL),
            "",
            "controlled delay for every flow by itself, and turns for all",
            "{ quantum = \"300B\" }",
        ),
    ]],
);

/// `queue = { red = { … } }`.
pub(crate) static RED: Keys = Keys::new(
    "red",
    &[&[
        Key::optional(
            "min",
            Shape::Room,
            "`points`",
            "up to this average queue nothing is dropped early: a time, a size or a number of packets",
            "\"25 packets\"",
        ),
        Key::optional(
            "max",
            Shape::Room,
            "`points`",
            "at this average queue an arrival is dropped with `max_probability`",
            "\"50 packets\"",
        ),
        Key::optional("max_probability", Shape::Share, "`\"10%\"`", "see `max`", "\"2%\""),
        Key::optional(
            "gentle",
            Shape::Flag,
            "`true`",
            "whether the probability grows on to 1 from `max` to twice `max`, instead of at once",
            "false",
        ),
        Key::optional(
            "points",
            POINTS,
            "`min` and `max`",
            "instead of these, pairs of an average queue and a probability, with straight lines between them",
            "[[\"30ms\", 0], [\"60ms\", \"10%\"], [\"120ms\", 1]]",
        ),
        Key::optional(
            "weight",
            Shape::Above(0, 1),
            "`0.002`",
            "the weight of the newest queue in the average, at most 1",
            "0.01",
        ),
        Key::optional(
            "spacing",
            Shape::Words(&["uniform", "geometric"]),
            "`\"uniform\"`",
            "how drops are spread: as the original does, or each for itself",
            "\"geometric\"",
        ),
        Key::optional(
            "limit",
            Shape::Room,
            "`\"unlimited\"`",
            "what may wait at most, whatever the average",
            "\"100 packets\"",
        ),
    ]],
);

const POINTS: Shape = Shape::List(&Shape::List(&Shape::Either(&[Shape::Room, Shape::Share])));

/// `queue = { codel = { … } }`.
pub(crate) static CODEL: Keys = Keys::new(
    "codel",
    &[&[
        Key::optional("target", Shape::Time, "`\"5ms\"`", "the wait that is acceptable for good", "\"10ms\""),
        Key::optional(
            "interval",
            Shape::Time,
            "`\"100ms\"`",
            "how long every packet must have waited longer before the first is dropped",
            "\"200ms\"",
        ),
        Key::optional("limit", Shape::Room, "`\"unlimited\"`", "what may wait at most", "\"1000 packets\""),
    ]],
);

/// `queue = { fq_codel = { … } }`.
pub(crate) static FQ_CODEL: Keys = Keys::new(
    "fq_codel",
    &[&[
        Key::optional("target", Shape::Time, "`\"5ms\"`", "as of `codel`, for each flow", "\"10ms\""),
        Key::optional("interval", Shape::Time, "`\"100ms\"`", "as of `codel`, for each flow", "\"200ms\""),
        Key::optional("limit", Shape::Room, "`\"10240 packets\"`", "what may wait of all flows", "\"1000 packets\""),
        Key::optional("queues", Shape::Whole(1, 65_535), "`1024`", "how many queues the flows are spread over", "64"),
        Key::optional("quantum", Shape::Size, "`\"1514B\"`", "what a flow may send in its turn", "\"300B\""),
    ]],
);

/// `policer = { … }`.
pub(crate) static POLICER: Keys = Keys::new(
    "policer",
    &[&[
        Key::needed("rate", Shape::Rate, "what may pass in the long run", "\"10Mbit/s\""),
        Key::needed("burst", Shape::Size, "what may pass at once after a pause", "\"50kB\""),
    ]],
);

/// `loss = { … }`.
pub(crate) static LOSS: Keys = Keys::one_of(
    "loss",
    &[&[Key::optional(
        "gilbert_elliott",
        Shape::Table(&GILBERT_ELLIOTT),
        "",
        "losses in bursts",
        "{ good_to_bad = \"0.1%\", bad_to_good = \"20%\" }",
    )]],
);

/// `loss = { gilbert_elliott = { … } }`.
pub(crate) static GILBERT_ELLIOTT: Keys = Keys::new(
    "gilbert_elliott",
    &[&[
        Key::needed(
            "good_to_bad",
            Shape::Share,
            "the probability, per packet, to go from the good to the bad state",
            "\"0.1%\"",
        ),
        Key::needed(
            "bad_to_good",
            Shape::Share,
            "and back; a bad spell lasts 1/`bad_to_good` packets on average",
            "\"20%\"",
        ),
        Key::optional("loss_in_good", Shape::Share, "`0`", "the share lost in the good state", "0"),
        Key::optional("loss_in_bad", Shape::Share, "`1`", "the share lost in the bad state", "\"50%\""),
    ]],
);
