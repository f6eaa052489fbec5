//! Tables for people, which take minutes: `cargo bench -p fairpath-faults --bench tables -- NAME`. Without a name it lists them.

#[path = "../../tests/bonds/mod.rs"]
mod bonds;
#[path = "../../tests/cells/mod.rs"]
mod cells;
mod detection;
mod fair;
#[path = "../../tests/pairs/mod.rs"]
mod pairs;
mod pictures;
mod profiles;
#[path = "../../tests/trial/mod.rs"]
mod trial;

/// Their names, and what they show.
const TABLES: &[(&str, &str, fn())] = &[
    ("fair", "thirteen cells of the default beside others, in parts of one flow of CUBIC", fair::table),
    ("detection", "what the engine says of two paths on 180 networks that are drawn", detection::table),
    (
        "profiles",
        "pairs of links with the schedulers that one would choose, in parts of the better link",
        profiles::schedulers,
    ),
    ("profiles-minute", "what a minute over the same pairs has of the sum of both links", profiles::minute),
    ("pictures", "pictures over a link that goes bad, with two kinds of windows", pictures::table),
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
