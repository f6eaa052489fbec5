//! The pairs of links of `scenarios/profiles/`: each file runs, and both links carry some of it.

use std::path::Path;
use std::time::Duration;

use fairpath_scenario::ScenarioFile;

#[test]
fn every_pair_of_links_runs_and_both_carry_data() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/profiles");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let file = ScenarioFile::parse(&std::fs::read_to_string(&path).unwrap(), &name).unwrap();
        let mut scenario = file.expand(Some(1)).unwrap();
        scenario.duration = Duration::from_secs(3);
        let outcome = fairpath_sim::run(&scenario, &mut ()).unwrap();
        let carried = [0, 1].map(|path| outcome.flows[0].paths[path].count.delivered.get());
        // An initial window of ten packets.
        assert!(carried.iter().all(|bytes| *bytes > 14_480), "{name}: {carried:?}");
        count += 1;
    }
    assert_eq!(count, 16);
}
