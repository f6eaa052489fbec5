//! One file by curl over each of the sixteen pairs of links of `scenarios/profiles`, beside each link of the pair alone.

use std::fs;
use std::path::Path;

use fairpath_scenario::{LinkIndex, Scenario, ScenarioFile};

use super::curl::{Way, download};
use super::ends::{BEHIND, Ends, SOCKS, web};
use super::{Form, Goal, Rows};
use crate::described::{Both, Described, INTERFACES};

/// The part of the better link alone that both are to bring.
const LEAST: f64 = 0.97;

pub(super) fn rows(form: Form) -> Result<Rows, String> {
    let mut rows = Rows::default();
    let scenarios = scenarios()?;
    for seed in form.seeds() {
        let mut held = 0;
        for (name, scenario) in &scenarios {
            held += u32::from(run(&mut rows, form, seed, name, scenario)? >= LEAST);
        }
        let all = scenarios.len() as f64;
        rows.add(format!("profiles of {all} with at least {LEAST}"), "", Goal::AtLeast(all), f64::from(held));
    }
    Ok(rows)
}

fn run(rows: &mut Rows, form: Form, seed: u64, name: &str, scenario: &Scenario) -> Result<f64, String> {
    let described = Described::new(seed, &pair(scenario), &[0, 1])?;
    let Described { near, far, .. } = &described;
    let (ends, port) = (Ends::start(near, far, &[])?, web(far));
    let bytes = form.choose(1, 20) << 20;
    let over = |interfaces: &[&str]| {
        let _proxy = ends.proxy_over(interfaces);
        download(near, Way::Socks(SOCKS), (BEHIND, port).into(), 1, bytes)
    };
    let best = over(&INTERFACES[..1])?.max(over(&INTERFACES[1..2])?);
    let both = over(&INTERFACES[..2])?;
    rows.add(format!("{name}: the better link alone"), "Mbit/s", None, best);
    rows.add(format!("{name}: both links"), "Mbit/s", None, both);
    rows.add(format!("{name}: both, in parts of the better link alone"), "", Goal::AtLeast(LEAST), both / best);
    described.assert_all_fitted();
    Ok(both / best)
}

/// The scenarios by name, in order.
fn scenarios() -> Result<Vec<(String, Scenario)>, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/profiles");
    let mut files: Vec<_> = fs::read_dir(folder).map_err(|e| e.to_string())?.flatten().map(|one| one.path()).collect();
    files.sort();
    let read = |file: &Path| {
        let text = fs::read_to_string(file).map_err(|error| error.to_string())?;
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let scenario = ScenarioFile::parse(&text, &name).and_then(|file| file.expand(None));
        scenario.map(|scenario| (name, scenario)).map_err(|error| error.to_string())
    };
    files.iter().map(|file| read(file)).collect()
}

/// The links of a scenario's two paths. Downloads go from the far end to the near one, as its flow does from its sender.
fn pair(scenario: &Scenario) -> Vec<Both> {
    let config = |chain: &[LinkIndex]| match chain {
        [link] => scenario.links[link.0 as usize].config.clone(),
        _ => panic!("{}: a path of {} links", scenario.title, chain.len()),
    };
    scenario.flows[0].paths.iter().map(|path| [config(&path.backward), config(&path.forward)]).collect()
}
