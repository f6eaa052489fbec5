//! The files in `scenarios/`: all of them are read, and they are what their comments say.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use fairpath_core::{Bitrate, ByteCount};
use fairpath_engine::EngineConfig;
use fairpath_net::{Impairments, Jitter, JitterDistribution, LossConfig, QueueConfig, QueueLimit, Rate, Reorder};
use fairpath_scenario::{ChangeKind, Scenario, ScenarioFile, Sweep, Traffic};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

fn beside(path: &str) -> Result<String, String> {
    std::fs::read_to_string(folder().join(path)).map_err(|error| error.to_string())
}

/// The file for each combination of its parameters.
fn sweep(name: &str) -> Vec<ScenarioFile> {
    let sweep = Sweep::parse_with(&beside(name).unwrap(), name, &[], &beside).unwrap_or_else(|error| panic!("{error}"));
    (0..sweep.points()).map(|point| sweep.file(point, &beside).unwrap()).collect()
}

fn read(name: &str) -> ScenarioFile {
    sweep(name).swap_remove(0)
}

fn scenario(name: &str) -> Scenario {
    read(name).expand(None).unwrap_or_else(|error| panic!("{error}"))
}

fn names() -> Vec<String> {
    let mut names: Vec<String> = ["", "profiles/"].into_iter().flat_map(names_in).collect();
    names.sort();
    names
}

fn names_in(part: &str) -> Vec<String> {
    let entries = std::fs::read_dir(folder().join(part)).unwrap();
    let names = entries.map(|entry| format!("{part}{}", entry.unwrap().file_name().into_string().unwrap()));
    names.filter(|name| name.ends_with(".toml")).collect()
}

#[test]
fn every_example_is_a_scenario() {
    let names = names();
    assert!(names.len() >= 12, "{names:?}");
    let points = |name: String| sweep(&name).into_iter().map(move |file| (name.clone(), file));
    for (name, file) in names.into_iter().flat_map(points) {
        let scenario = file.expand(None).unwrap_or_else(|error| panic!("{error}"));
        assert!(!scenario.flows.is_empty(), "{name}");
        for flow in &scenario.flows {
            flow.engine.build().unwrap_or_else(|error| panic!("{name}: {error}"));
            for path in &flow.paths {
                assert_is_way(&scenario, &path.forward, &name);
                assert_is_way(&scenario, &path.backward, &name);
                let (there, back) = (&path.forward, &path.backward);
                let ends = |way: &[fairpath_scenario::LinkIndex]| {
                    let link = |index: usize| &scenario.links[way[index].0 as usize];
                    (link(0).from.clone(), link(way.len() - 1).to.clone())
                };
                let (from, to) = ends(there);
                assert_eq!(ends(back), (to, from), "{name}: {}", flow.name);
            }
        }
        for link in &scenario.links {
            link.config.check().unwrap_or_else(|error| panic!("{name}: {}: {error}", link.name));
        }
        let text = std::fs::read_to_string(folder().join(&name)).unwrap();
        assert!(text.starts_with("# "), "{name} begins with what it is about");
    }
}

/// Each link begins where the one before ends.
fn assert_is_way(scenario: &Scenario, way: &[fairpath_scenario::LinkIndex], name: &str) {
    assert!(!way.is_empty(), "{name}");
    let link = |index: &fairpath_scenario::LinkIndex| &scenario.links[index.0 as usize];
    for pair in way.windows(2) {
        assert_eq!(link(&pair[0]).to, link(&pair[1]).from, "{name}");
    }
}

#[test]
fn the_same_seed_gives_the_same_scenario_and_another_does_not() {
    for name in names() {
        let file = read(&name);
        let flows = |seed| file.expand(Some(seed)).unwrap().flows;
        assert_eq!(format!("{:?}", flows(3)), format!("{:?}", flows(3)), "{name}");
        let ways = |seed| flows(seed).into_iter().map(|flow| flow.paths).collect::<Vec<_>>();
        assert_eq!(ways(3) != ways(4), name.starts_with("fat_tree"), "{name}: only there ways are drawn");
        let draws: BTreeSet<u64> = flows(3).iter().map(|flow| flow.engine.parameters.bbr.seed).collect();
        assert_eq!(draws.len(), flows(3).len(), "{name}: each flow draws for itself");
        assert_eq!(file.expand(Some(9)).unwrap().seed, 9);
    }
    assert_eq!(scenario("short_flows.toml").seed, 7);
}

/// The drawn pairs differ with the seed, so nothing else may: the pairs are those of the report.
#[test]
fn the_sixteen_pairs_of_links_have_two_paths_and_a_transfer_of_twenty_mebibytes() {
    let names = names_in("profiles/");
    assert_eq!(names.len(), 16);
    for name in names {
        let scenario = scenario(&name);
        let [flow] = &scenario.flows[..] else { panic!("{name}") };
        assert_eq!((flow.paths.len(), flow.traffic), (2, Traffic::Finite { size: ByteCount::new(20 << 20) }), "{name}");
        // A file has no word for `EngineConfig::live()`, so that what it spells out could fall behind.
        let mut engine = flow.engine.clone();
        engine.parameters.bbr.seed = EngineConfig::live().parameters.bbr.seed;
        assert_eq!(engine, EngineConfig::live(), "{name}: what people get who choose nothing, but for the draws");
        assert_eq!(flow.transport.pacing, Some(true), "{name}: as connections over real networks");
        for path in &flow.paths {
            let config = |way: &[fairpath_scenario::LinkIndex]| scenario.links[way[0].0 as usize].config.clone();
            let (there, back) = (config(&path.forward), config(&path.backward));
            assert_eq!(format!("{there:?}"), format!("{back:?}"), "{name}: netem's delay stands on both directions");
            assert_eq!(there.queue, QueueConfig::packets(1_000), "{name}");
            let is_as_netem = |jitter: Jitter| jitter.distribution == JitterDistribution::Normal && jitter.overtake;
            assert!(there.jitter == Jitter::default() || is_as_netem(there.jitter), "{name}: {:?}", there.jitter);
        }
    }
}

#[test]
fn the_dumbbell_has_thirty_flows_over_one_bottleneck() {
    let scenario = scenario("dumbbell_30_reno.toml");
    assert_eq!(scenario.flows.len(), 30);
    // 30 + 30 access wires and the bottleneck, in both directions
    assert_eq!(scenario.links.len(), 122);
    let bottleneck = scenario.flows[0].paths[0].forward[1];
    assert_eq!(scenario.links[bottleneck.0 as usize].name, "bottleneck");
    for (number, flow) in scenario.flows.iter().enumerate() {
        assert_eq!((flow.name.as_str(), flow.class.as_str()), (format!("tcp.{number}").as_str(), "tcp"));
        assert_eq!(flow.paths.len(), 1);
        let path = &flow.paths[0];
        assert_eq!((path.forward.len(), path.forward[1]), (3, bottleneck));
        assert_eq!(scenario.links[path.forward[0].0 as usize].from, format!("left{number}"));
        assert_eq!(scenario.links[path.forward[2].0 as usize].to, format!("right{number}"));
    }
    let config = &scenario.links[bottleneck.0 as usize].config;
    assert_eq!(config.queue, QueueConfig::packets(333));
    assert_eq!(config.rate.mean(), Some(Bitrate::from_mbps(40)));
}

#[test]
fn queues_of_one_bandwidth_delay_product_follow_the_paths() {
    let room = |scenario: &Scenario, name: &str| {
        let link = scenario.links.iter().find(|link| link.name == name).unwrap();
        link.config.queue.clone()
    };
    let ms = |millis| QueueConfig::sojourn(Duration::from_millis(millis));
    assert_eq!(room(&scenario("daimd_table2.toml"), "path1"), ms(100));
    // 2 · (15 + 4) ms over the slower of the two ways inside the house
    assert_eq!(room(&scenario("shared_bottleneck.toml"), "uplink"), ms(38));
}

#[test]
fn the_second_path_of_scenario_a_crosses_both_bottlenecks() {
    let scenario = scenario("olia_scenario_a.toml");
    let names = |path: usize| -> Vec<&str> {
        let way = &scenario.flows[0].paths[path].forward;
        way.iter().map(|link| scenario.links[link.0 as usize].name.as_str()).collect()
    };
    assert_eq!(names(0), ["rs", "private"]);
    assert_eq!(names(1), ["rs", "isp-access point", "ra"]);
    assert_eq!(scenario.flows.len(), 20);
    let QueueConfig::Red(red) = &scenario.links[0].config.queue else { panic!("{:?}", scenario.links[0]) };
    let time = |millis| QueueLimit::Sojourn(Duration::from_millis(millis));
    assert_eq!(red.points, [(time(30), 0.0), (time(60), 0.1), (time(120), 1.0)]);
    assert_eq!(scenario.links[1].config.queue, QueueConfig::unlimited(), "back");
}

#[test]
fn in_the_fat_tree_every_host_sends_to_another_one() {
    let scenario = scenario("fat_tree_k4.toml");
    assert_eq!(scenario.flows.len(), 16);
    let mut receivers = Vec::new();
    for flow in &scenario.flows {
        let way = &flow.paths[0].forward;
        let to = &scenario.links[way[way.len() - 1].0 as usize].to;
        let from = &scenario.links[way[0].0 as usize].from;
        assert_eq!(flow.name, format!("transfer.{from}"));
        assert_ne!(from, to);
        receivers.push(to.clone());
        // 4 ways over the core, 2 within a pod, 1 at one switch
        let ways = BTreeMap::from([(6, 4), (4, 2), (2, 1)])[&way.len()];
        assert_eq!(flow.paths.len(), ways, "{}", flow.name);
    }
    receivers.sort();
    receivers.dedup();
    assert_eq!(receivers.len(), 16);
}

#[test]
fn in_the_dynamic_fat_tree_a_third_of_the_hosts_sends_long_flows() {
    let scenario = scenario("fat_tree_dynamic.toml");
    let long = scenario.flows.iter().filter(|flow| flow.class == "long");
    // 512 / 3 = 170.67
    assert_eq!(long.count(), 171);
    assert_eq!(scenario.flows.len(), 512);
    let short = scenario.flows.iter().filter(|flow| flow.class == "short");
    let traffic =
        Traffic::ShortFlows { size: ByteCount::from_kilobytes(70), mean_interval: Duration::from_millis(200) };
    assert!(short.clone().all(|flow| flow.traffic == traffic && flow.paths.len() == 1));
}

#[test]
fn on_the_walk_the_wifi_goes_down_in_both_directions_and_comes_back() {
    let scenario = scenario("wifi_lte_walk.toml");
    let Rate::Table(table) = &scenario.links[0].config.rate else { panic!("{:?}", scenario.links[0]) };
    assert_eq!(table.entries().len(), 9);
    let what: Vec<(u64, &str, bool)> = scenario
        .changes
        .iter()
        .map(|change| match change.kind {
            ChangeKind::Up(up) => (change.at.as_secs(), scenario.links[change.link.0 as usize].name.as_str(), up),
            ChangeKind::Rate(_) | ChangeKind::Filter(_) => panic!("{change:?}"),
        })
        .collect();
    let expected = [(30, "Wi-Fi", false), (30, "Wi-Fi.back", false), (40, "Wi-Fi", true), (40, "Wi-Fi.back", true)];
    assert_eq!(what, expected);
}

#[test]
fn the_radio_link_reorders_more_forward_than_back() {
    let scenario = scenario("unruly_radio.toml");
    let [wire, _, radio, back] = &scenario.links[..] else { panic!("{:?}", scenario.links) };
    assert_eq!((wire.config.jitter, wire.config.impairments), (Jitter::default(), Impairments::default()));
    let ms = Duration::from_millis;
    let reorder = |share, by| Some(Reorder { share, by: ms(by) });
    let forward = Impairments { reorder: reorder(0.02, 6), duplicate: 0.005, corrupt: 0.0001 };
    assert_eq!(radio.config.impairments, forward);
    assert_eq!(radio.config.jitter, Jitter::new(JitterDistribution::Exponential, ms(1)));
    assert_eq!(back.config.impairments, Impairments { reorder: reorder(0.01, 3), ..forward });
    assert_eq!(back.config.jitter, Jitter::new(JitterDistribution::Uniform, ms(1)));
}

#[test]
fn the_live_picture_has_its_losses_in_bursts_and_one_link_has_others() {
    let scenario = scenario("live_video.toml");
    let LossConfig::GilbertElliott(model) = scenario.links[0].config.loss else { panic!("{:?}", scenario.links[0]) };
    // 0.001 / 0.201 · 0.5
    assert!((model.mean_loss() - 0.002_487_6).abs() < 1e-7);
    assert_eq!(scenario.links[2].config.loss, LossConfig::Random { probability: 0.01 });
    assert_eq!(scenario.links[3].config.loss, LossConfig::Random { probability: 0.01 }, "back");
    assert_eq!(scenario.flows[2].stop, Some(Duration::from_secs(90)));
}
