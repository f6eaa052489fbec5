//! The corpora of all targets, as tests: seeds, what fuzzers have found, and the same cut short.

use std::sync::{Mutex, PoisonError};

use fairpath_fuzz::{TARGETS, Target, corpus, target};

/// Memory is counted for the whole process.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// How many cuts of a file are tried.
const CUTS: usize = 60;

fn inputs(target: &Target) -> Vec<(String, Vec<u8>)> {
    let files = corpus::read(&corpus::folders(target)).expect("the corpus can be read");
    files.into_iter().map(|(path, content)| (path.display().to_string(), content)).collect()
}

fn corpus_holds(name: &str) {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let target = target::named(name).expect("a target");
    let inputs = inputs(target);
    assert!(!inputs.is_empty());
    for (file, content) in &inputs {
        println!("{file}");
        (target.check)(content);
        for length in (0..content.len()).step_by(content.len().div_ceil(CUTS).max(1)) {
            println!("{file}, the first {length} bytes");
            (target.check)(&content[..length]);
        }
    }
}

macro_rules! corpora {
    ($($test:ident: $target:literal,)*) => {
        $(
            #[test]
            fn $test() {
                corpus_holds($target);
            }
        )*

        #[test]
        fn every_target_has_a_test() {
            let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
            assert_eq!(names, [$($target),*]);
        }
    };
}

corpora! {
    what_is_known_of_tickets_holds: "ticket",
    what_is_known_of_the_control_protocol_holds: "control",
    what_is_known_of_manifests_holds: "manifest",
    what_is_known_of_journals_holds: "journal",
    what_is_known_of_parcels_holds: "parcel",
    what_is_known_of_datagrams_holds: "datagrams",
    what_is_known_of_streams_holds: "streams",
    what_is_known_of_delays_holds: "delays",
    what_is_known_of_live_flows_holds: "stream",
    what_is_known_of_scenarios_holds: "scenario",
    what_is_known_of_recorded_rates_holds: "rates",
    what_is_known_of_pcap_holds: "pcap",
    what_is_known_of_pcapng_holds: "pcapng",
    what_is_known_of_qlog_holds: "qlog",
    what_is_known_of_tables_holds: "table",
    what_is_known_of_traces_holds: "ndjson",
    what_is_known_of_gzip_holds: "gzip",
}

/// A seed of a format that is written no more would try out what nobody reads.
#[test]
fn the_seeds_in_the_corpora_are_what_is_written_today() {
    for target in TARGETS {
        for seed in (target.seeds)() {
            let file = corpus::seed_file(target, &seed.name);
            let found = std::fs::read(&file).unwrap_or_default();
            let is_same = found == seed.content;
            assert!(is_same, "{} is another one: cargo run -p fairpath-fuzz -- seeds", file.display());
        }
    }
}

#[test]
fn the_corpora_are_small() {
    let sizes = TARGETS.iter().flat_map(|target| corpus::read(&[corpus::folder(target)]).expect("a corpus"));
    let bytes: usize = sizes.map(|(_, content)| content.len()).sum();
    assert!(bytes < 200_000, "{bytes} bytes: keep what finds something, not what was found on the way");
}
