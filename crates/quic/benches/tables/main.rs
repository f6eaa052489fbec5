//! Tables for people, in real time, in which nothing else may want the processors: `cargo bench -p fairpath-quic --bench tables -- NAME`. Without a name it lists them.

#[path = "../../tests/common/mod.rs"]
mod common;
mod profiles;

/// Their names, and what they show.
const TABLES: &[(&str, &str, fn())] = &[
    ("profiles", "20 MiB over pairs of links, in parts of the better link: minutes", || wait(profiles::better_link())),
    ("profiles-minute", "a minute over the same pairs, in parts of the sum: half an hour", || {
        wait(profiles::minute_of_the_sum())
    }),
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

fn wait(table: impl Future<Output = ()>) {
    tokio::runtime::Runtime::new().expect("a runtime").block_on(table);
}
