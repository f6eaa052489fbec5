//! The tables of the ready-made networks.

use super::{FLOWS_MAX, Key, Keys, Shape};
use crate::keys::WIRE;
use crate::topology::FatTree;

pub(crate) const NODES_MAX: u64 = 10_000;

/// `[topology]`.
pub(crate) static TOPOLOGY: Keys = Keys::one_of(
    "topology",
    &[&[
        Key::optional(
            "dumbbell",
            Shape::Table(&DUMBBELL),
            "",
            "pairs of hosts on both sides of one bottleneck",
            "{ pairs = 2, bottleneck = { rate = \"40Mbit/s\" } }",
        ),
        Key::optional("parallel", Shape::Table(&PARALLEL), "", "separate wires between two hosts", "{ count = 2 }"),
        Key::optional("chain", Shape::Table(&CHAIN), "", "wires in a row", "{ hops = 3 }"),
        Key::optional("fat_tree", Shape::Table(&FAT_TREE), "", "the fat tree of data centres", "{ k = 4 }"),
        Key::optional(
            "oversubscribed_fat_tree",
            Shape::Table(&OVERSUBSCRIBED_FAT_TREE),
            "",
            "one with more hosts than its core can serve at once",
            "{ k = 8, ratio = 4 }",
        ),
    ]],
);

/// `[topology.dumbbell]`.
pub(crate) static DUMBBELL: Keys = Keys::new(
    "dumbbell",
    &[&[
        Key::needed("pairs", Shape::Whole(1, NODES_MAX), "how many hosts there are on each side", "30"),
        Key::needed(
            "bottleneck",
            Shape::Table(&WIRE),
            "the wire in the middle, forward from left to right",
            "{ rate = \"40Mbit/s\", delay = \"20ms\" }",
        ),
        Key::optional(
            "access",
            Shape::Table(&WIRE),
            "wires that take no time",
            "the wires of the hosts, forward from the host",
            "{ rate = \"1Gbit/s\" }",
        ),
    ]],
);

/// `[topology.parallel]`.
pub(crate) static PARALLEL: Keys =
    Keys::new("parallel", &[&[Key::needed("count", Shape::Whole(1, NODES_MAX), "how many wires", "2"), LINK_KEY]]);

/// `[topology.chain]`.
pub(crate) static CHAIN: Keys =
    Keys::new("chain", &[&[Key::needed("hops", Shape::Whole(1, NODES_MAX), "how many wires", "3"), LINK_KEY]]);

/// `[topology.fat_tree]`.
pub(crate) static FAT_TREE: Keys = Keys::new("fat_tree", &[&[K, LINK_KEY]]);

/// `[topology.oversubscribed_fat_tree]`.
pub(crate) static OVERSUBSCRIBED_FAT_TREE: Keys = Keys::new(
    "oversubscribed_fat_tree",
    &[&[
        K,
        Key::needed(
            "ratio",
            Shape::Whole(1, FLOWS_MAX),
            "how many times as many hosts as its core can serve at once",
            "4",
        ),
        LINK_KEY,
    ]],
);

const K: Key = Key::needed(
    "k",
    Shape::Whole(2, FatTree::K_MAX as u64),
    "the ports of a switch, an even number; there are k³/4 hosts",
    "8",
);

const LINK_KEY: Key = Key::optional(
    "link",
    Shape::Table(&WIRE),
    "`[defaults.link]`",
    "what each wire is like",
    "{ rate = \"100Mbit/s\", delay = \"100us\" }",
);
