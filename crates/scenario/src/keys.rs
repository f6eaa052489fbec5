//! Every table of a scenario file with its keys. The reader, the JSON schema and the reference in
//! `docs/reference/scenario.md` come from here, so they cannot differ.

mod flow;
mod link;
mod parameters;
mod topology;

pub(crate) use flow::{
    CHANGE, DROP, FLOW, FLOW_DEFAULTS, LIVE, MEDIA, ON_OFF, REMEDIES, SHORT_FLOWS, TRAFFIC, TRANSPORT,
};
pub(crate) use link::{
    BACK, CODEL, FQ_CODEL, GILBERT_ELLIOTT, JITTER, LINK, LINK_DEFAULTS, LOSS, POLICER, QUEUE, RATE_STEPS, RED,
    REORDER, TRACE, WIRE,
};
pub(crate) use parameters::{
    CONCORDANCE, COUPLED, COUPLED_BBR, CUBIC, DAIMD, EWTCP, OLIA, PARAMETERS, SSC, TRENDLINE, WAVELET, WVEGAS,
};
pub(crate) use topology::{CHAIN, DUMBBELL, FAT_TREE, OVERSUBSCRIBED_FAT_TREE, PARALLEL, TOPOLOGY};

/// A table.
#[derive(Debug)]
pub(crate) struct Keys {
    /// Its name in the schema and in the reference.
    pub(crate) name: &'static str,
    pub(crate) parts: &'static [&'static [Key]],
    /// Whether exactly one of the keys must be given.
    pub(crate) one_of: bool,
    /// The name of the table that describes its keys, where it is another.
    pub(crate) like: Option<&'static str>,
}

impl Keys {
    const fn new(name: &'static str, parts: &'static [&'static [Key]]) -> Self {
        Self { name, parts, one_of: false, like: None }
    }

    /// A table with some of the keys of another.
    const fn like(other: &'static str, name: &'static str, parts: &'static [&'static [Key]]) -> Self {
        Self { name, parts, one_of: false, like: Some(other) }
    }

    const fn one_of(name: &'static str, parts: &'static [&'static [Key]]) -> Self {
        Self { name, parts, one_of: true, like: None }
    }

    /// The keys, in the order of the reference.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &'static Key> + use<> {
        self.parts.iter().flat_map(|part| part.iter())
    }

    pub(crate) fn find(&self, name: &str) -> Option<&'static Key> {
        self.iter().find(|key| key.name == name)
    }

    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.iter().map(|key| key.name).collect()
    }
}

/// A key of a table.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    /// The value that holds without it; `None`: it must be given.
    pub(crate) without: Option<&'static str>,
    pub(crate) meaning: &'static str,
    /// A value, in TOML.
    pub(crate) example: &'static str,
}

impl Key {
    const fn needed(name: &'static str, shape: Shape, meaning: &'static str, example: &'static str) -> Self {
        Self { name, shape, without: None, meaning, example }
    }

    const fn optional(
        name: &'static str,
        shape: Shape,
        without: &'static str,
        meaning: &'static str,
        example: &'static str,
    ) -> Self {
        Self { name, shape, without: Some(without), meaning, example }
    }
}

/// The shape of a value.
#[derive(Debug)]
pub(crate) enum Shape {
    Text,
    Rate,
    Time,
    Size,
    Share,
    /// The room of a queue.
    Room,
    /// A whole number in this range.
    Whole(u64, u64),
    /// A number in this range.
    Number(u32, u32),
    /// A number in this range, and above its beginning.
    Above(u32, u32),
    Flag,
    /// One of these words.
    Words(&'static [&'static str]),
    Table(&'static Keys),
    List(&'static Shape),
    Either(&'static [Shape]),
    /// A table of parameters by their names, each with its values.
    Parameters,
}

impl Shape {
    /// The words among what it allows.
    pub(crate) fn words(&self) -> &'static [&'static str] {
        match self {
            Self::Words(words) => words,
            Self::Either(shapes) => shapes.iter().map(Self::words).find(|words| !words.is_empty()).unwrap_or(&[]),
            _ => &[],
        }
    }

    /// The least and the largest number that it allows, and whether the least itself is one of them.
    pub(crate) fn bounds(&self) -> Option<(f64, f64, bool)> {
        match *self {
            Self::Number(least, most) => Some((least.into(), most.into(), true)),
            Self::Above(least, most) => Some((least.into(), most.into(), false)),
            Self::Either(shapes) => shapes.iter().find_map(Self::bounds),
            _ => None,
        }
    }

    /// The least and the largest whole number that it allows.
    pub(crate) fn range(&self) -> (u64, u64) {
        match self {
            Self::Whole(least, most) => (*least, *most),
            _ => (0, u64::MAX),
        }
    }
}

pub(crate) const FLOWS_MAX: u64 = 100_000;
pub(crate) const PATHS_MAX: u64 = 64;

/// The file as a whole.
pub(crate) static FILE: Keys = Keys::new(
    "file",
    &[&[
        Key::optional("title", Shape::Text, "the name of the file", "what the run is called", "\"Two links\""),
        Key::optional("seed", Shape::Whole(0, u64::MAX), "1", "everything random is drawn from it", "7"),
        Key::needed("duration", Shape::Time, "how long the run lasts", "\"60s\""),
        Key::optional("warm_up", Shape::Time, "`\"0s\"`", "summaries leave out what happened before this", "\"10s\""),
        Key::optional(
            "sample_every",
            Shape::Time,
            "`\"100ms\"`",
            "how often the time series take a sample; `\"0s\"` is never",
            "\"1s\"",
        ),
        Key::optional(
            "topology",
            Shape::Table(&TOPOLOGY),
            "no ready-made network",
            "a ready-made network",
            "{ chain = { hops = 3 } }",
        ),
        Key::optional(
            "link",
            Shape::List(&Shape::Table(&LINK)),
            "no links but those of `topology`",
            "the wires: one `[[link]]` for each",
            "[{ from = \"a\", to = \"b\" }]",
        ),
        Key::needed(
            "flow",
            Shape::List(&Shape::Table(&FLOW)),
            "the flows: one `[[flow]]` for each kind",
            "[{ name = \"f\", from = \"a\", to = \"b\" }]",
        ),
        Key::optional(
            "change",
            Shape::List(&Shape::Table(&CHANGE)),
            "nothing changes",
            "what happens to links in mid-run: one `[[change]]` for each",
            "[{ at = \"1s\", link = \"x\", up = false }]",
        ),
        Key::optional(
            "defaults",
            Shape::Table(&DEFAULTS),
            "the defaults named here",
            "what holds for links and flows that do not say otherwise",
            "{ link = { delay = \"5ms\" } }",
        ),
        Key::optional(
            "sweep",
            Shape::Parameters,
            "one run",
            "parameters with their values: there is a run for each combination, with the values in the place of `\"${NAME}\"`",
            "{ load = [1, 2, 4] }",
        ),
    ]],
);

pub(crate) static DEFAULTS: Keys = Keys::new(
    "defaults",
    &[&[
        Key::optional(
            "link",
            Shape::Table(&LINK_DEFAULTS),
            "the defaults of `link`",
            "for every wire, also those of `topology`",
            "{ delay = \"5ms\" }",
        ),
        Key::optional(
            "flow",
            Shape::Table(&FLOW_DEFAULTS),
            "the defaults of `flow`",
            "for every flow",
            "{ congestion = \"olia\" }",
        ),
    ]],
);
