//! In which direction of a wire a queue holds.

use core::time::Duration;

use fairpath_core::{Bitrate, ByteCount};
use fairpath_net::{CoDelConfig, FqCoDelConfig, LinkConfig, Policer, QueueConfig};
use fairpath_scenario::ScenarioFile;

/// The queues of a wire, forward and back.
fn queues(defaults: &str, entry: &str) -> [QueueConfig; 2] {
    links(defaults, entry).map(|link| link.queue)
}

fn links(defaults: &str, entry: &str) -> [LinkConfig; 2] {
    let text = format!(
        "duration = \"1s\"\n{defaults}\n[[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"1Mbit/s\"\n{entry}\n\
         [[flow]]\nname = \"f\"\nfrom = \"a\"\nto = \"b\"\n"
    );
    let scenario = ScenarioFile::parse(&text, "x.toml").and_then(|file| file.expand(None)).unwrap();
    [0, 1].map(|link: usize| scenario.links[link].config.clone())
}

fn ms(millis: u64) -> QueueConfig {
    QueueConfig::sojourn(Duration::from_millis(millis))
}

fn codel() -> QueueConfig {
    QueueConfig::CoDel(CoDelConfig::default())
}

const CODEL: &str = "queue = { codel = {} }";
const PLAIN_FOR_ALL: &str = "defaults = { link = { queue = \"30ms\" } }";
const CODEL_FOR_ALL: &str = "defaults = { link = { queue = { codel = {} } } }";

#[test]
fn a_plain_queue_holds_in_both_directions() {
    assert_eq!(queues("", ""), [ms(100), ms(100)]);
    assert_eq!(queues("", "queue = \"50ms\""), [ms(50), ms(50)]);
    assert_eq!(queues("", "queue = { drop_tail = \"50ms\" }"), [ms(50), ms(50)]);
    assert_eq!(queues(PLAIN_FOR_ALL, "back = { queue = \"50ms\" }"), [ms(30), ms(50)]);
}

#[test]
fn a_managed_queue_holds_in_the_direction_that_it_is_written_for() {
    assert_eq!(queues("", CODEL), [codel(), ms(100)]);
    assert_eq!(queues(PLAIN_FOR_ALL, CODEL), [codel(), ms(30)]);
    assert_eq!(queues("", "back = { queue = { codel = {} } }"), [ms(100), codel()]);
    assert_eq!(queues("", "queue = \"50ms\"\nback = { queue = { codel = {} } }"), [ms(50), codel()]);
    let [forward, back] = queues("", "queue = { red = { min = \"5ms\", max = \"9ms\" } }\nback = { delay = \"1ms\" }");
    assert!(matches!(forward, QueueConfig::Red(_)), "{forward:?}");
    assert_eq!(back, ms(100));
}

#[test]
fn flows_have_queues_of_their_own_in_one_direction() {
    let fair = FqCoDelConfig { queues: 64, quantum: ByteCount::new(300), ..FqCoDelConfig::default() };
    let written = "queue = { fq_codel = { queues = 64, quantum = \"300B\" } }";
    assert_eq!(queues("", written), [QueueConfig::FqCoDel(fair), ms(100)]);
}

#[test]
fn a_policer_holds_in_the_direction_that_it_is_written_for() {
    let policer = Policer { rate: Bitrate::from_kbps(500), burst: ByteCount::new(20_000) };
    let written = "policer = { rate = \"500kbit/s\", burst = \"20kB\" }";
    let policers = |entry: &str| links("", entry).map(|link| link.policer);
    assert_eq!(policers(written), [Some(policer), None]);
    assert_eq!(policers(&format!("back = {{ {written} }}")), [None, Some(policer)]);
    assert_eq!(policers(""), [None, None]);
}

#[test]
fn a_managed_queue_of_the_defaults_is_written_for_every_direction() {
    assert_eq!(queues(CODEL_FOR_ALL, ""), [codel(), codel()]);
    assert_eq!(queues(CODEL_FOR_ALL, "queue = \"50ms\""), [ms(50), ms(50)]);
    assert_eq!(queues(CODEL_FOR_ALL, "back = { queue = \"50ms\" }"), [codel(), ms(50)]);
}

#[test]
fn the_wires_of_a_ready_made_network_are_no_exception() {
    let text = "duration = \"1s\"\n\
        topology = { dumbbell = { pairs = 1, bottleneck = { rate = \"1Mbit/s\", queue = { codel = {} } } } }\n\
        [[flow]]\nname = \"f\"\nfrom = \"left0\"\nto = \"right0\"\n";
    let scenario = ScenarioFile::parse(text, "x.toml").and_then(|file| file.expand(None)).unwrap();
    assert_eq!(scenario.links[0].config.queue, codel());
    assert_eq!(scenario.links[1].config.queue, ms(100));
}
