//! The tables that describe what can be set of congestion controls and detectors.

use super::{Key, Keys, Shape};

const PUBLISHED: &str = "the published values";

/// `parameters = { … }`.
pub(crate) static PARAMETERS: Keys = Keys::new(
    "parameters",
    &[&[
        Key::optional(
            "initial_window",
            Shape::Whole(1, 10_000),
            "10 packets, and at most 14,720 B",
            "the window of a new path, in packets",
            "3",
        ),
        Key::optional(
            "min_window",
            Shape::Whole(1, 1_000),
            "`2`",
            "no window falls below this, in packets; published measurements of OLIA need 1",
            "1",
        ),
        Key::optional("min_ssthresh", Shape::Whole(1, 1_000), "`2`", "the least slow-start threshold, in packets", "1"),
        Key::optional(
            "hystart",
            Shape::Flag,
            "`false`",
            "HyStart++: slow start also ends where the round-trip time grows; not for BBR",
            "true",
        ),
        Key::optional(
            "losses",
            Shape::Words(&["congestion", "by_queue"]),
            "`\"congestion\"`",
            "what lost packets are taken for by window rules: `by_queue`, for congestion only if those around them waited in a queue, or too many are lost",
            "\"by_queue\"",
        ),
        Key::optional(
            "alone",
            Shape::Words(&["own", "reno", "cubic"]),
            "`\"own\"`",
            "what a path follows that is coupled with no other, where the congestion control is a coupled window rule: what that rule makes of a single path, which is Reno but for `wvegas` and `daimd`, and for `coupled_cubic`, which is CUBIC; or this",
            "\"cubic\"",
        ),
        Key::optional(
            "epsilon",
            Shape::Number(0, 2),
            "`1`",
            "of the congestion control `epsilon`: from 0, fully coupled, to 2, uncoupled",
            "0.5",
        ),
        Key::optional(
            "cubic",
            Shape::Table(&CUBIC),
            PUBLISHED,
            "of the congestion controls `cubic`, `coupled_cubic` and `hybrid_cubic`",
            "{ fast_convergence = false }",
        ),
        Key::optional("olia", Shape::Table(&OLIA), PUBLISHED, "of `olia`", "{ metric = \"l^2/rtt\" }"),
        Key::optional("ewtcp", Shape::Table(&EWTCP), PUBLISHED, "of `ewtcp`", "{ increase = 0.25 }"),
        Key::optional("coupled", Shape::Table(&COUPLED), PUBLISHED, "of `coupled`", "{ constants = \"scalable\" }"),
        Key::optional("wvegas", Shape::Table(&WVEGAS), PUBLISHED, "of `wvegas`", "{ backlog_total = 20 }"),
        Key::optional("daimd", Shape::Table(&DAIMD), PUBLISHED, "of `daimd`", "{ full = 0.7 }"),
        Key::optional(
            "coupled_bbr",
            Shape::Table(&COUPLED_BBR),
            PUBLISHED,
            "of `coupled_bbr`",
            "{ cruise = \"best_path\" }",
        ),
        Key::optional(
            "concordance",
            Shape::Table(&CONCORDANCE),
            PUBLISHED,
            "of the detector `concordance`",
            "{ join = 0.9 }",
        ),
        Key::optional(
            "trendline",
            Shape::Table(&TRENDLINE),
            PUBLISHED,
            "of `trendline`, `trendline_srtt` and `trendline_overlapping`",
            "{ alpha = 0.2 }",
        ),
        Key::optional(
            "ssc",
            Shape::Table(&SSC),
            PUBLISHED,
            "of the detectors whose names begin with `ssc`",
            "{ loss = 0.05 }",
        ),
        Key::optional(
            "wavelet",
            Shape::Table(&WAVELET),
            PUBLISHED,
            "of the detector `wavelet`",
            "{ correlation_min = 0.6 }",
        ),
    ]],
);

/// `parameters = { cubic = { … } }`.
pub(crate) static CUBIC: Keys = Keys::new(
    "cubic",
    &[&[Key::optional(
        "fast_convergence",
        Shape::Flag,
        "`true`",
        "whether a window that did not reach the last maximum leaves room for new flows",
        "false",
    )]],
);

/// `parameters = { olia = { … } }`.
pub(crate) static OLIA: Keys = Keys::new(
    "olia",
    &[&[
        Key::optional(
            "metric",
            Shape::Words(&["l/rtt^2", "l^2/rtt"]),
            "`\"l/rtt^2\"`",
            "what makes a path the best, where l is what it delivers between losses: `l/rtt^2` is what is deployed, `l^2/rtt` what the draft writes",
            "\"l^2/rtt\"",
        ),
        Key::optional(
            "keeps_threshold",
            Shape::Flag,
            "`false`",
            "whether the slow-start threshold stays where it is when a window is shrunk for a better path, as in the Linux kernel: slow start then takes it back, up to and including the threshold",
            "true",
        ),
    ]],
);

/// `parameters = { coupled = { … } }`.
pub(crate) static COUPLED: Keys = Keys::new(
    "coupled",
    &[&[Key::optional(
        "constants",
        Shape::Words(&["tcp", "scalable"]),
        "`\"tcp\"`",
        "by how much windows grow and shrink: as one TCP for all paths, or as Scalable TCP, by 0.01 packets and an eighth of all windows, with which the algorithm was first stated",
        "\"scalable\"",
    )]],
);

/// `parameters = { ewtcp = { … } }`.
pub(crate) static EWTCP: Keys = Keys::new(
    "ewtcp",
    &[&[Key::optional(
        "increase",
        Shape::Above(0, 100),
        "1/n² of n paths",
        "how many packets a path grows in a round trip, where Reno grows by one",
        "0.25",
    )]],
);

/// `parameters = { wvegas = { … } }`.
pub(crate) static WVEGAS: Keys = Keys::new(
    "wvegas",
    &[&[
        Key::optional(
            "backlog_total",
            Shape::Above(0, 10_000),
            "`10`",
            "how many packets the paths of a group keep queued together",
            "20",
        ),
        Key::optional(
            "slow_start_backlog",
            Shape::Number(0, 10_000),
            "`1`",
            "how many packets of a path may be queued before it leaves slow start",
            "2",
        ),
        Key::optional(
            "backlog_least",
            Shape::Number(0, 10_000),
            "`2`",
            "how many packets a path keeps queued at least, and at first",
            "1",
        ),
        Key::optional(
            "drain_at",
            Shape::Either(&[Shape::Above(1, 1_000), Shape::Words(&["never"])]),
            "`2`",
            "at how many times the least queueing delay that was seen a path drains its queue",
            "\"never\"",
        ),
    ]],
);

/// `parameters = { daimd = { … } }`.
pub(crate) static DAIMD: Keys = Keys::new(
    "daimd",
    &[&[
        Key::optional(
            "full",
            Shape::Above(0, 1),
            "`0.9`",
            "the part of the longest queue at which it counts as full",
            "0.7",
        ),
        Key::optional(
            "rearmed",
            Shape::Number(0, 1),
            "`0.5`",
            "the part below which the queue must fall before it can be full again; below `full`",
            "0.4",
        ),
        Key::optional(
            "window_least",
            Shape::Number(0, 10_000),
            "`10`",
            "a window up to this is not shrunk by delay, in packets",
            "15",
        ),
        Key::optional(
            "hold_rtts",
            Shape::Number(0, 1_000),
            "`1`",
            "how long the queue must be full, in smoothed round-trip times",
            "2",
        ),
        Key::optional("backoff", Shape::Above(0, 1), "`0.7`", "what remains of the window", "0.5"),
        Key::optional(
            "base",
            Shape::Words(&["ever", "10s"]),
            "`\"ever\"`",
            "the round-trip time without a queue: the least ever, or that of the last 10 s",
            "\"10s\"",
        ),
        Key::optional(
            "queue",
            Shape::Words(&["adaptive", "seen"]),
            "`\"adaptive\"`",
            "the longest queue: an average of those at losses, or the longest that was seen",
            "\"seen\"",
        ),
    ]],
);

/// `parameters = { coupled_bbr = { … } }`.
pub(crate) static COUPLED_BBR: Keys = Keys::new(
    "coupled_bbr",
    &[&[Key::optional(
        "cruise",
        Shape::Words(&["one_flow", "best_path"]),
        "`\"one_flow\"`",
        "what a group takes: what one BBR flow gets beside it, or what the best of its paths is estimated to carry",
        "\"best_path\"",
    )]],
);

/// `parameters = { concordance = { … } }`.
pub(crate) static CONCORDANCE: Keys = Keys::new(
    "concordance",
    &[&[
        Key::optional(
            "settle",
            Shape::Time,
            "`\"1s\"`",
            "what is measured on a path before it has been open for this long is ignored",
            "\"2s\"",
        ),
        Key::optional("noise", Shape::Time, "`\"1.5ms\"`", "changes of the delay below it may be noise", "\"1ms\""),
        Key::optional(
            "join",
            Shape::Above(0, 1),
            "`0.95`",
            "paths are put into one group where the confidence is above this",
            "0.9",
        ),
        Key::optional(
            "stay",
            Shape::Number(0, 1),
            "`0.5`",
            "they stay there while it is above this; up to `join`",
            "0.4",
        ),
    ]],
);

/// `parameters = { trendline = { … } }`.
pub(crate) static TRENDLINE: Keys = Keys::new(
    "trendline",
    &[&[
        Key::optional("alpha", Shape::Above(0, 1), "`0.1`", "the weight of a new sample in the smoothed delay", "0.2"),
        Key::optional("round", Shape::Time, "`\"5s\"`", "how often the slopes are compared", "\"2s\""),
        Key::optional(
            "error_max",
            Shape::Number(0, 1),
            "`0.2`",
            "the largest difference of the slopes, as part of the larger one",
            "0.3",
        ),
        Key::optional(
            "hold",
            Shape::Time,
            "`\"100s\"`",
            "how long a pair stays together after the last yes",
            "\"10s\"",
        ),
    ]],
);

/// `parameters = { ssc = { … } }`.
pub(crate) static SSC: Keys = Keys::new(
    "ssc",
    &[&[
        Key::optional("interval", Shape::Time, "`\"350ms\"`", "the duration of an interval, T", "\"500ms\""),
        Key::optional("loss", Shape::Number(0, 1), "`0.1`", "the loss rate that is a bottleneck, p_l", "0.05"),
        Key::optional(
            "split_oscillation",
            Shape::Number(0, 10),
            "`0.1`",
            "by how much oscillations differ between groups, p_f",
            "0.2",
        ),
        Key::optional(
            "split_variability",
            Shape::Number(0, 10),
            "that of the name",
            "the same for variabilities, p_mad",
            "0.2",
        ),
        Key::optional("split_skewness", Shape::Number(0, 10), "that of the name", "the same for skewness, p_s", "0.2"),
        Key::optional("split_loss", Shape::Number(0, 10), "that of the name", "the same for losses, p_d", "0.2"),
    ]],
);

/// `parameters = { wavelet = { … } }`.
pub(crate) static WAVELET: Keys = Keys::new(
    "wavelet",
    &[&[
        Key::optional("interval", Shape::Time, "`\"1s\"`", "how often the paths are compared", "\"2s\""),
        Key::optional(
            "threshold",
            Shape::Number(0, 100),
            "`1`",
            "the threshold of the details, in universal thresholds",
            "0.5",
        ),
        Key::optional(
            "correlation_min",
            Shape::Number(0, 1),
            "`0.5`",
            "the least correlation of paths that share a bottleneck",
            "0.6",
        ),
    ]],
);
