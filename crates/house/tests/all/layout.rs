//! The layout that ARCHITECTURE.md describes.

use std::collections::BTreeSet;
use std::path::Path;

use fairpath_house::{repository, source};

/// The crates that each crate may depend on, as folders. A new crate gets a line here first.
///
/// A host of the engine names nothing below it. `lab` and `judge` may name detectors, and `theory` rules: they hold
/// one of them, without a connection around it, against a paper or a file of delays.
const MAY_USE: &[(&str, &[&str])] = &[
    ("core", &[]),
    ("cc", &["core"]),
    ("sbd", &["core"]),
    ("sched", &["core"]),
    ("engine", &["core", "cc", "sbd", "sched"]),
    ("theory", &["core", "cc"]),
    ("rate", &["core"]),
    ("live", &["core", "rate", "engine"]),
    ("net", &["core"]),
    ("scenario", &["core", "engine", "net", "live"]),
    ("sim", &["core", "engine", "net", "scenario", "live"]),
    ("figure", &["core"]),
    ("lab", &["core", "figure", "sbd", "theory", "rate", "engine", "net", "scenario", "sim", "trace"]),
    ("emu", &["core", "net"]),
    ("trace", &["core"]),
    ("quic-core", &["engine", "live"]),
    ("quic-sim", &["core", "net", "quic-core"]),
    ("faults", &["core", "net", "quic-core", "quic-sim", "quic", "transfer"]),
    ("quic", &["core", "engine", "trace", "quic-core"]),
    ("proxy", &["fairpath", "quic", "scenario", "transfer"]),
    ("fairpath", &["engine", "quic"]),
    ("noq", &["engine", "quic-core"]),
    ("transfer", &["core", "engine", "trace", "quic"]),
    ("report", &["core", "engine", "trace", "quic"]),
    ("judge", &["core", "figure", "sbd", "trace", "report"]),
    ("runs", &["core", "engine", "emu", "scenario", "sim", "figure", "trace", "report"]),
    ("py", &["core", "engine", "rate", "theory", "scenario", "sim", "lab", "trace", "judge", "runs"]),
    ("demo", &["core", "emu", "trace", "quic-sim", "quic", "report"]),
    (
        "cli",
        &[
            "core", "engine", "net", "scenario", "sim", "lab", "judge", "runs", "emu", "trace", "quic", "transfer",
            "report", "demo", "fairpath", "proxy",
        ],
    ),
    ("fuzz", &["core", "net", "quic-core", "scenario", "live", "trace", "transfer"]),
    ("house", &[]),
];

/// Hosts may also put their tests into an emulated network, and hold what they do against the simulator.
const TESTS_MAY_USE: &[(&str, &[&str])] = &[
    ("engine", &["net"]),
    ("quic-core", &["core", "net"]),
    ("quic", &["net", "emu", "scenario"]),
    ("transfer", &["net", "emu"]),
    ("faults", &["emu", "scenario", "sim"]),
];

/// Crates of algorithms and virtual networks: no clock, no sockets, no threads, no randomness of
/// their own.
const PURE: &[&str] = &["core", "cc", "sbd", "sched", "engine", "theory", "rate", "live", "net", "scenario", "sim"];

/// Where threads run one network in windows. A test of `sim` holds them to the same bytes for any number of them.
const THREADED: &[&str] = &["crates/sim/src/parallel.rs", "crates/sim/src/parallel/barrier.rs"];

const IMPURE: &[&str] = &[
    "Instant",
    "SystemTime",
    "tokio",
    "std::net",
    "std::fs",
    "std::io",
    "std::thread",
    "UdpSocket",
    "thread_rng",
    "from_os_rng",
    "OsRng",
];

/// No file has more lines than this before its tests.
const LINES_MAX: usize = 600;

/// Files that have more, and how many they may have. Numbers here only ever fall.
const LONGER: &[(&str, usize)] = &[];

fn manifest(folder: &Path) -> toml::Table {
    let path = folder.join("Cargo.toml");
    repository::read(&path).parse().unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn name(folder: &Path) -> String {
    folder.file_name().expect("a folder has a name").to_string_lossy().into_owned()
}

fn package_of(folder: &str) -> String {
    if folder == "fairpath" { folder.to_owned() } else { format!("fairpath-{folder}") }
}

/// The crates of this workspace among the dependencies in a section of a manifest, as folders.
fn uses(manifest: &toml::Table, section: &str) -> BTreeSet<String> {
    let names = manifest.get(section).and_then(|value| value.as_table()).into_iter().flat_map(|table| table.keys());
    let folder = |name: &String| match name.as_str() {
        "fairpath" => Some(name.to_owned()),
        name => name.strip_prefix("fairpath-").map(str::to_owned),
    };
    names.filter_map(folder).collect()
}

fn allowed(table: &[(&str, &[&str])], folder: &str) -> BTreeSet<String> {
    let line = table.iter().find(|(name, _)| *name == folder);
    line.into_iter().flat_map(|(_, folders)| folders.iter().map(|name| (*name).to_owned())).collect()
}

#[test]
fn a_folder_is_named_like_its_crate() {
    let folders = repository::crate_folders();
    assert!(!folders.is_empty());
    for folder in folders {
        let package = &manifest(&folder)["package"];
        assert_eq!(package["name"].as_str(), Some(package_of(&name(&folder)).as_str()));
        assert!(package.get("description").is_some(), "{} has no description", name(&folder));
    }
}

/// A packager of a crate needs a version for each crate that it depends on.
#[test]
fn crates_name_the_version_of_the_crates_that_they_use() {
    let workspace = manifest(&repository::root());
    let version = workspace["workspace"]["package"]["version"].as_str();
    let uses = workspace["workspace"]["dependencies"].as_table().expect("the workspace has dependencies");
    let ours: Vec<_> = uses.iter().filter(|(_, value)| value.get("path").is_some()).collect();
    assert!(ours.len() > 10, "{ours:?}");
    for (name, value) in ours {
        assert_eq!(value.get("version").and_then(toml::Value::as_str), version, "{name}");
    }
}

/// A package has nothing of the folders above its crate. Both licences want their text to go with it.
#[test]
fn every_crate_that_is_published_has_its_licences() {
    for folder in repository::crate_folders() {
        let publish = manifest(&folder)["package"].get("publish").and_then(toml::Value::as_bool);
        for licence in ["LICENSE-APACHE", "LICENSE-MIT"] {
            let (own, root) = (folder.join(licence), repository::root().join(licence));
            let is_there = own.exists() && repository::read(&own) == repository::read(&root);
            assert_eq!(
                is_there,
                publish != Some(false),
                "{}: {licence}, which links to ../../{licence}",
                name(&folder)
            );
        }
    }
}

/// The macros of PyO3 write code that a crate which forbids `unsafe` cannot have; it names its lints itself.
const LINTS_OF_ITS_OWN: &str = "py";

#[test]
fn every_crate_keeps_the_lints_of_the_workspace() {
    for folder in repository::crate_folders().into_iter().filter(|folder| name(folder) != LINTS_OF_ITS_OWN) {
        let manifest = manifest(&folder);
        let inherited = manifest.get("lints").and_then(|lints| lints.get("workspace")).and_then(toml::Value::as_bool);
        assert_eq!(inherited, Some(true), "{}: [lints] workspace = true is missing", name(&folder));
    }
}

/// A crate that is published has what lies in its folder, and no more.
#[test]
fn no_crate_takes_a_file_in_that_lies_outside_of_it() {
    for folder in repository::crate_folders() {
        for file in repository::rust_files(&folder.join("src")) {
            let inside = file.strip_prefix(&folder).expect("it lies below").components().count() - 1;
            let text = repository::read(&file);
            for (number, line) in text.lines().enumerate().filter(|(_, line)| line.contains("include_")) {
                let up = line.split('"').map(|part| part.matches("../").count()).max().unwrap_or(0);
                let file = repository::relative(&file);
                assert!(up <= inside, "{file}:{}: the file lies outside of the crate", number + 1);
            }
        }
    }
}

#[test]
fn crates_depend_downwards_only() {
    for folder in repository::crate_folders() {
        let name = name(&folder);
        assert!(MAY_USE.iter().any(|(known, _)| *known == name), "{name} has no line in MAY_USE");
        let manifest = manifest(&folder);
        let may_use = allowed(MAY_USE, &name);
        for section in ["dependencies", "build-dependencies"] {
            let wrong: Vec<_> = uses(&manifest, section).difference(&may_use).cloned().collect();
            assert!(wrong.is_empty(), "{name} must not depend on {wrong:?}");
        }
        let tests_may_use: BTreeSet<_> = may_use.union(&allowed(TESTS_MAY_USE, &name)).cloned().collect();
        let wrong: Vec<_> = uses(&manifest, "dev-dependencies").difference(&tests_may_use).cloned().collect();
        assert!(wrong.is_empty(), "the tests of {name} must not depend on {wrong:?}");
    }
}

#[test]
fn every_algorithm_names_its_source_its_symbols_and_its_deviations() {
    let mut seen = 0;
    for folder in ["cc", "sbd", "sched"] {
        for file in repository::rust_files(&repository::root().join("crates").join(folder).join("src/algorithm")) {
            // A folder named like an algorithm has its parts; the head is the algorithm's.
            let is_part = file.parent().is_some_and(|folder| folder.with_extension("rs").exists());
            if is_part || file.file_name().is_some_and(|name| name == "mod.rs") {
                continue;
            }
            seen += 1;
            let text = repository::read(&file);
            let head: Vec<&str> = text.lines().take_while(|line| line.starts_with("//!")).collect();
            let found: Vec<&str> =
                head.iter().filter_map(|line| line.strip_prefix("//! # ")).map(str::trim_end).collect();
            let file = repository::relative(&file);
            assert_eq!(found, ["Source", "Symbols", "Deviations"], "{file}: the sections of its head");
        }
    }
    assert!(seen > 0, "no algorithm was found");
}

#[test]
fn algorithms_and_virtual_networks_touch_nothing_outside() {
    for folder in PURE {
        let folder = repository::root().join("crates").join(folder);
        assert!(!folder.join("clippy.toml").exists(), "{} may not relax the lints", repository::relative(&folder));
        for file in repository::rust_files(&folder.join("src")) {
            let may_thread = THREADED.contains(&repository::relative(&file).as_str());
            let forbidden: Vec<&str> =
                IMPURE.iter().copied().filter(|word| !(may_thread && *word == "std::thread")).collect();
            assert_free_of(&file, &forbidden);
        }
    }
}

/// The QUIC host is driven in virtual time as well, without tokio and sockets.
#[test]
fn the_quic_host_knows_no_runtime_no_socket_and_no_clock() {
    let files = repository::rust_files(&repository::root().join("crates/quic-core/src"));
    assert!(!files.is_empty());
    for file in files {
        if !file.ends_with("tests.rs") {
            let forbidden =
                ["tokio", "socket2", "UdpSocket", "TcpStream", "TcpListener", "Instant::now", "std::thread"];
            assert_free_of(&file, &forbidden);
        }
    }
}

/// Panics where the code before the tests of `file` contains one of `words`.
fn assert_free_of(file: &Path, words: &[&str]) {
    let text = repository::read(file);
    let code = source::split(&text).code;
    for (at, line) in code.lines().take(source::lines_before_tests(&text)).enumerate() {
        for word in words {
            assert!(!contains_word(line, word), "{}:{}: {word}", repository::relative(file), at + 1);
        }
    }
}

fn contains_word(line: &str, word: &str) -> bool {
    let part_of_a_word = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word)
        .any(|(at, _)| !line[..at].ends_with(part_of_a_word) && !line[at + word.len()..].starts_with(part_of_a_word))
}

#[test]
fn no_file_is_too_long() {
    let mut longer = BTreeSet::new();
    for folder in repository::crate_folders() {
        for file in repository::rust_files(&folder.join("src")) {
            let lines = source::lines_before_tests(&repository::read(&file));
            let file = repository::relative(&file);
            let exception = LONGER.iter().find(|(name, _)| *name == file).map(|(_, lines)| *lines);
            let limit = exception.unwrap_or(LINES_MAX);
            assert!(lines <= limit, "{file} has {lines} lines before its tests, more than {limit}: find its seam");
            if lines > LINES_MAX {
                longer.insert(file);
            }
        }
    }
    for (file, _) in LONGER {
        assert!(longer.contains(*file), "{file} is no longer too long: take it from the list");
    }
}

/// A file of tests that no program names is never built, and its tests never run.
#[test]
fn a_program_of_tests_names_all_files_beside_it() {
    let mut programs = 0;
    for folder in repository::crate_folders() {
        for main in repository::rust_files(&folder.join("tests")) {
            if !main.ends_with("main.rs") {
                continue;
            }
            programs += 1;
            let text = repository::read(&main);
            let beside = main.parent().expect("it lies in a folder");
            for file in std::fs::read_dir(beside).expect("it is there").map(|entry| entry.expect("it is there").path())
            {
                let stem = file.file_stem().expect("it has a name").to_string_lossy().into_owned();
                let is_named = text.lines().any(|line| line == format!("mod {stem};"));
                assert!(file == main || is_named, "{} does not name {stem}", repository::relative(&main));
            }
        }
    }
    assert!(programs > 5, "{programs} programs of tests have a folder of their own");
}
