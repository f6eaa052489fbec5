//! The program around tables for people: lists them, or prints those that are named. The benchmarks of other crates take
//! this file in, too.

/// A table's name, a line on what it shows, and what prints it.
pub(crate) type Table = (&'static str, &'static str, fn());

/// Prints the tables that the arguments name. Without a name it lists them; an unknown one ends the process with 2.
pub(crate) fn run(tables: &[Table]) {
    // Cargo says `--bench`.
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    if let Some(unknown) = wanted.iter().find(|wanted| tables.iter().all(|(name, ..)| name != wanted)) {
        let names: Vec<&str> = tables.iter().map(|(name, ..)| *name).collect();
        eprintln!("error: there is no table '{unknown}'; there are {}", names.join(", "));
        std::process::exit(2);
    }
    for (name, shows, print) in tables {
        if wanted.is_empty() {
            println!("{name:<20} {shows}");
        } else if wanted.iter().any(|wanted| wanted == name) {
            print();
        }
    }
}
