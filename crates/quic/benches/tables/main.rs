//! Tables for people, in real time, in which nothing else may want the processors: `cargo bench -p fairpath-quic --bench tables -- NAME`. Without a name it lists them.

#[path = "../../../sim/benches/tables/choose.rs"]
mod choose;
#[path = "../../tests/common/mod.rs"]
mod common;
mod profiles;

/// Their names, and what they show.
const TABLES: &[choose::Table] = &[
    ("profiles", "20 MiB over pairs of links, in parts of the better link: minutes", || wait(profiles::better_link())),
    ("profiles-minute", "a minute over the same pairs, in parts of the sum: half an hour", || {
        wait(profiles::minute_of_the_sum())
    }),
];

fn main() {
    choose::run(TABLES);
}

fn wait(table: impl Future<Output = ()>) {
    tokio::runtime::Runtime::new().expect("a runtime").block_on(table);
}
