//! Tables for people, which take minutes: `cargo bench -p fairpath-sim --bench tables -- NAME`. Without a name it lists them.

mod choose;
#[path = "../../tests/common/mod.rs"]
mod common;
mod coupling;
mod drive;
#[path = "../../tests/drives/mod.rs"]
mod drives;
#[path = "../../tests/grid/mod.rs"]
mod grid;
mod harm;
#[path = "../../tests/reordering/mod.rs"]
mod reordering;
#[path = "../../tests/rivals/mod.rs"]
mod rivals;
mod unruly;

/// Their names, and what they show.
const TABLES: &[choose::Table] = &[
    ("drive", "what senders carry over recorded links, in parts of each link alone", drive::table),
    ("harm", "bonds over unequal paths, by scheduler", harm::table),
    ("reordering", "what packets that come late cost", unruly::table),
    ("coupled-bbr3", "what paths of coupled BBRv3 take beside others", coupling::table),
];

fn main() {
    choose::run(TABLES);
}
