//! Tables for people, which take minutes: `cargo bench -p fairpath-faults --bench tables -- NAME`. Without a name it lists them.

mod ablation;
#[path = "../../tests/bonds/mod.rs"]
mod bonds;
#[path = "../../tests/bulk/mod.rs"]
mod bulk;
#[path = "../../tests/cells/mod.rs"]
mod cells;
#[path = "../../../sim/benches/tables/choose.rs"]
mod choose;
mod detection;
mod fair;
mod health;
#[path = "../../tests/pairs/mod.rs"]
mod pairs;
mod pictures;
mod profiles;
mod streams;
#[path = "../../tests/trial/mod.rs"]
mod trial;

/// Their names, and what they show.
const TABLES: &[choose::Table] = &[
    ("ablation", "the cost of the default without one mechanism after the other, over the real stack", ablation::table),
    ("health", "what links that fail cost with half and twice of each constant of paths' health", health::table),
    ("fair", "thirteen cells of the default beside others, in parts of one flow of CUBIC", fair::table),
    ("detection", "what the engine says of two paths on 180 networks that are drawn", detection::table),
    (
        "profiles",
        "pairs of links with the schedulers that one would choose, in parts of the better link",
        profiles::schedulers,
    ),
    ("profiles-streams", "a file by one stream over the same pairs, in parts of the better link", profiles::streams),
    ("profiles-minute", "what a minute over the same pairs has of the sum of both links", profiles::minute),
    (
        "streams",
        "streams beside records, while a path is dark, a thousand at once, a sparse one, and how they open",
        streams::table,
    ),
    ("pictures", "pictures over a link that goes bad, with two kinds of windows", pictures::table),
];

fn main() {
    choose::run(TABLES);
}
