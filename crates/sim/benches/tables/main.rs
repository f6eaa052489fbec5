//! Tables for people, which take minutes: `cargo bench -p fairpath-sim --bench tables -- NAME`. Without a name it lists them.

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
const TABLES: &[(&str, &str, fn())] = &[
    ("drive", "what senders carry over recorded links, in parts of each link alone", drive::table),
    ("harm", "bonds over unequal paths, with schedulers and the watchdog", harm::table),
    ("reordering", "what packets that come late cost", unruly::table),
    ("coupled-bbr3", "what paths of coupled BBRv3 take beside others", coupling::table),
];

fn main() {
    // Cargo says `--bench`.
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    if let Some(unknown) = wanted.iter().find(|wanted| TABLES.iter().all(|(name, ..)| name != wanted)) {
        let names: Vec<&str> = TABLES.iter().map(|(name, ..)| *name).collect();
        eprintln!("error: there is no table '{unknown}'; there are {}", names.join(", "));
        std::process::exit(2);
    }
    for (name, shows, print) in TABLES {
        if wanted.is_empty() {
            println!("{name:<20} {shows}");
        } else if wanted.iter().any(|wanted| wanted == name) {
            print();
        }
    }
}
