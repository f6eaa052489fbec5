//! Where endpoints have their randomness and their cryptography from.

use fairpath_house::repository;

/// The crates that may choose it.
const SIMULATORS: [&str; 2] = ["crates/faults/", "crates/quic-sim/"];

/// The feature is a promise only while nobody else turns it on. A crate that has it passes it on to those below.
#[test]
fn only_simulators_turn_simulation_on() {
    let folders = repository::crate_folders().into_iter().chain([repository::root()]);
    let turns_it_on = |text: &str| {
        let lines = text.lines().filter(|line| !line.starts_with("simulation = ["));
        lines.into_iter().any(|line| line.contains("\"simulation\"") || line.contains("/simulation"))
    };
    let manifests = folders.map(|folder| folder.join("Cargo.toml"));
    let found: Vec<_> = manifests.filter(|path| turns_it_on(&repository::read(path))).collect();
    let found: Vec<_> = found.iter().map(|path| repository::relative(path)).collect();
    assert_eq!(found, SIMULATORS.map(|folder| format!("{folder}Cargo.toml")));
}

/// The demo of the program simulates, so its endpoints may be made of a seed; but never without cryptography.
#[test]
fn only_the_fault_simulator_can_do_without_cryptography() {
    let manifests = repository::crate_folders().into_iter().map(|folder| folder.join("Cargo.toml"));
    let turns_it_on = |text: &str| text.lines().any(|line| line.contains("\"null\"") || line.contains("/null"));
    let found: Vec<_> = manifests.filter(|path| turns_it_on(&repository::read(path))).collect();
    let found: Vec<_> = found.iter().map(|path| repository::relative(path)).collect();
    assert_eq!(found, ["crates/faults/Cargo.toml"]);
}

/// Where an endpoint of a simulated machine is made: nowhere else is a way from the product to one.
const OF_MACHINES: &str = "crates/quic/src/machine.rs";

/// Where the whole workspace is built at once, or the program with its demo, the feature is on for all of it.
#[test]
fn only_simulators_make_simulated_ends() {
    const MAKERS: [&str; 4] =
        ["Endpoint::simulated(", "Sender::simulated(", "Receiver::simulated(", "impl SimulatedMachine for"];
    let files = repository::rust_files(&repository::root().join("crates"));
    for path in files {
        let name = repository::relative(&path);
        let makes = repository::read(&path).lines().any(|line| MAKERS.iter().any(|maker| line.contains(maker)));
        let is_simulator = SIMULATORS.iter().any(|folder| name.starts_with(folder));
        let may = is_simulator || name == OF_MACHINES || name == file!();
        assert!(!makes || may, "{name} makes a simulated end");
    }
}

/// A choice by chance among several that are ready would make two runs of one seed differ.
#[test]
fn whoever_runs_in_virtual_time_chooses_in_order() {
    for part in ["quic/src", "transfer/src", "faults/src", "quic-sim/src"] {
        for path in repository::rust_files(&repository::root().join("crates").join(part)) {
            let name = repository::relative(&path);
            let text = repository::read(&path);
            let choices = text.match_indices("select! {").map(|(at, start)| &text[at + start.len()..]);
            let by_chance = choices.filter(|rest| !rest.trim_start().starts_with("biased;")).count();
            assert!(by_chance == 0 || name.contains("/tests/"), "{name} has a select! that is not biased");
        }
    }
}

/// The files that may accept any certificate: an example that is run against other stacks, and its test.
const INTEROPERABILITY: &[&str] =
    &["crates/quic-core/examples/hq_interop/", "crates/quic-core/tests/all/hq_interop.rs"];

/// Where it stands what that means, and that Fairpath's own protocol refuses it.
const VERIFIERS: &[&str] = &["crates/quic-core/src/tls.rs", "crates/quic-core/src/router.rs"];

#[test]
fn only_interoperability_runs_accept_any_certificate() {
    let may: Vec<&str> = INTEROPERABILITY.iter().chain(VERIFIERS).copied().chain([file!()]).collect();
    for path in repository::rust_files(&repository::root().join("crates")) {
        let name = repository::relative(&path);
        let accepts = repository::read(&path).contains("AnyCertificate");
        assert!(!accepts || may.iter().any(|may| name.starts_with(may)), "{name} accepts any certificate");
    }
}
