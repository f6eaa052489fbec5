//! A flow with `preset = "fairpath"` is what a connection over real networks is.

use fairpath_engine::{Coupling, EngineConfig, Losses};
use fairpath_scenario::{Flow, ScenarioFile, Transport};

/// A flow with these keys.
fn flow(keys: &str) -> Flow {
    let text = format!(
        "duration = \"1s\"\n[[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"1Mbit/s\"\n\
         [[flow]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\n{keys}\n"
    );
    let file = ScenarioFile::parse(&text, "x").unwrap_or_else(|error| panic!("{error}"));
    file.expand(Some(1)).unwrap_or_else(|error| panic!("{error}")).flows.remove(0)
}

/// The same, but for the seed that each flow draws for itself.
fn engine(flow: &Flow) -> EngineConfig {
    let mut engine = flow.engine.clone();
    engine.parameters.bbr.seed = EngineConfig::default().parameters.bbr.seed;
    engine
}

#[test]
fn the_preset_is_what_connections_over_real_networks_have() {
    let preset = flow("preset = \"fairpath\"");
    assert_eq!(engine(&preset), EngineConfig::live());
    assert_eq!(preset.transport, Transport::live());
    let plain = flow("");
    assert_eq!((engine(&plain), plain.transport), (EngineConfig::default(), Transport::default()));
}

#[test]
fn other_keys_say_what_differs_from_the_preset() {
    let keys = "preset = \"fairpath\"\ncoupling = \"never\"\nparameters = { losses = \"congestion\" }\n\
                transport = { reinjection = false, ack_every = 2 }";
    let flow = flow(keys);
    let mut expected = EngineConfig { coupling: Coupling::Never, ..EngineConfig::live() };
    expected.parameters.aimd.losses = Losses::Congestion;
    assert_eq!(engine(&flow), expected);
    assert_eq!(flow.transport, Transport { reinjection: false, ack_every: 2, ..Transport::live() });
}

#[test]
fn another_name_is_refused_with_the_one_there_is() {
    let text = "duration = \"1s\"\n[[flow]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\npreset = \"linux\"\n";
    let error = ScenarioFile::parse(text, "x.toml").map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("x.toml:6") && error.contains("linux") && error.contains("fairpath"), "{error}");
}
