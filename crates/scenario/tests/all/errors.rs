//! Every mistake is answered by one message that says where it is, what is there and what would be
//! right.

use fairpath_engine::{Coupling, EngineConfig};
use fairpath_scenario::ScenarioFile;

/// A file without mistakes. Each case below replaces a part of it.
const GOOD: &str = r#"title = "good"
duration = "60s"
warm_up = "5s"

[defaults.link]
delay = "5ms"

[[link]]
name = "wifi"
from = "server"
to = "phone"
rate = "30Mbit/s"
queue = "100ms"

[[link]]
name = "lte"
from = "server"
to = "phone"
rate = "20Mbit/s"

[[flow]]
name = "download"
from = "server"
to = "phone"
paths = 2
congestion = "olia"
start = "1s"

[[change]]
at = "30s"
link = "wifi"
up = false
"#;

/// The message for `text`.
fn message(text: &str) -> String {
    match ScenarioFile::parse(text, "x.toml").and_then(|file| file.expand(None)) {
        Ok(_) => "no error".to_owned(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn the_good_file_is_good() {
    assert_eq!(message(GOOD), "no error");
}

/// Their names are many and grow in number, so they are not written out here.
#[test]
fn a_misspelt_algorithm_is_answered_by_the_nearest_and_by_all() {
    for (instead, expected, known) in [
        (
            "congestion = \"ola\"",
            "14: flow.congestion: there is no congestion control \"ola\" (is \"olia\" meant?)",
            EngineConfig::CONGESTION,
        ),
        (
            "coupling = \"alway\"",
            "12: flow.coupling: there is no coupling \"alway\" (is \"always\" meant?)",
            Coupling::NAMES,
        ),
        (
            "detector = \"trendlin\"",
            "12: flow.detector: there is no detector \"trendlin\" (is \"trendline\" meant?)",
            EngineConfig::DETECTORS,
        ),
        (
            "scheduler = \"minrtt\"",
            "13: flow.scheduler: there is no scheduler \"minrtt\" (is \"min_rtt\" meant?)",
            EngineConfig::SCHEDULERS,
        ),
    ] {
        let message = message(&GOOD.replace("congestion = \"olia\"", instead));
        assert_eq!(message, format!("x.toml:26:{expected}; known are {}", known.join(", ")));
    }
}

#[test]
fn every_mistake_is_named_with_its_place_and_with_what_would_be_right() {
    for (part, instead, expected) in MISTAKES {
        assert_eq!(GOOD.matches(part).count(), 1, "{part:?} is in the file once");
        assert_eq!(message(&GOOD.replace(part, instead)), *expected, "{instead:?}");
    }
}

/// A part of the good file, what stands there instead, and the message.
const MISTAKES: &[(&str, &str, &str)] = &[
    (
        "title = \"good\"",
        "title = good",
        "x.toml:1:9: this is not TOML: string values must be quoted, expected literal string",
    ),
    ("duration = \"60s\"\n", "", "x.toml:1:1: duration is missing; write it like duration = \"60s\""),
    ("duration = \"60s\"", "duration = \"0s\"", "x.toml:2:12: duration: \"0s\" is out of range; it must be above zero"),
    ("duration = \"60s\"", "duration = 60", "x.toml:2:12: duration: 60 is not a time, like \"20ms\""),
    (
        "duration = \"60s\"",
        "seed = -1\nduration = \"60s\"",
        "x.toml:2:8: seed: -1 is out of range; it must be at least 0",
    ),
    ("warm_up = \"5s\"", "warm_up = \"60s\"", "x.toml:3:11: warm_up: 60s is not before duration = 60s"),
    (
        "warm_up = \"5s\"",
        "warmup = \"5s\"",
        "x.toml:3:1: warmup: no such key (is \"warm_up\" meant?); the keys here are title, seed, duration, warm_up, sample_every, topology, link, flow, change, defaults, sweep",
    ),
    (
        "[defaults.link]",
        "[default.link]",
        "x.toml:5:2: default: no such key (is \"defaults\" meant?); the keys here are title, seed, duration, warm_up, sample_every, topology, link, flow, change, defaults, sweep",
    ),
    ("rate = \"30Mbit/s\"\n", "", "x.toml:8:1: link: rate is missing; write it like rate = \"30Mbit/s\""),
    (
        "rate = \"30Mbit/s\"",
        "rate = \"30Mbps\"",
        "x.toml:12:8: link.rate: \"Mbps\" in \"30Mbps\" is no unit of a rate; the units are bit/s, kbit/s, Mbit/s, Gbit/s, as in \"30Mbit/s\"",
    ),
    (
        "rate = \"30Mbit/s\"",
        "rate = \"30\"",
        "x.toml:12:8: link.rate: \"30\" has no unit; write a rate like \"30Mbit/s\"",
    ),
    ("rate = \"30Mbit/s\"", "rate = 30", "x.toml:12:8: link.rate: 30 is not a rate, like \"30Mbit/s\""),
    (
        "rate = \"30Mbit/s\"",
        "rate = \"0Mbit/s\"",
        "x.toml:12:8: link.rate: \"0Mbit/s\" is out of range; it must be above zero",
    ),
    (
        "rate = \"30Mbit/s\"",
        "rate = \"-3Mbit/s\"",
        "x.toml:12:8: link.rate: \"-3Mbit/s\" does not begin with a number; write a rate like \"30Mbit/s\"",
    ),
    (
        "rate = \"30Mbit/s\"",
        "rate = \"30Mbit/s\"\ntrace = \"x.csv\"",
        "x.toml:13:9: link.trace: it does not go together with rate; give one of the two",
    ),
    ("rate = \"30Mbit/s\"", "trace = \"x.csv\"", "x.toml:12:9: link.trace: \"x.csv\": no files can be read here"),
    (
        "rate = \"30Mbit/s\"",
        "rate = { steps = [[\"1s\", \"5Mbit/s\"]] }",
        "x.toml:12:20: link.rate.steps: \"1s\" is out of range; it must be \"0s\" in the first step",
    ),
    (
        "rate = \"30Mbit/s\"",
        "rate = { steps = [[\"0s\", \"5Mbit/s\"], [\"0s\", \"6Mbit/s\"]] }",
        "x.toml:12:39: link.rate.steps: \"0s\" is out of range; it must be after the step before, at 0.000000 s",
    ),
    (
        "rate = \"30Mbit/s\"",
        "rate = { steps = [[\"0s\", \"5Mbit/s\"], [\"9s\", \"6Mbit/s\"]], repeat = \"8s\" }",
        "x.toml:12:8: link.rate: the period 8s ends before the last entry, at 9.000000 s",
    ),
    (
        "rate = \"30Mbit/s\"",
        "rate = { steps = [[\"0s\"]] }",
        "x.toml:12:19: link.rate.steps: a list is not a time and a rate, like [\"12s\", \"5Mbit/s\"]",
    ),
    (
        "queue = \"100ms\"",
        "queue = \"100\"",
        "x.toml:13:9: link.queue: \"100\" has no unit; write the room of a queue like \"100ms\", \"64kB\", \"300 packets\", \"1 bdp\" or \"unlimited\"",
    ),
    (
        "queue = \"100ms\"",
        "queue = \"100 parcels\"",
        "x.toml:13:9: link.queue: \"parcels\" in \"100 parcels\" is no unit of the room of a queue; the units are ns, us, ms, s, min, h, B, kB, MB, GB, TB, KiB, MiB, GiB, packets, packet, bdp, as in \"100ms\", \"64kB\", \"300 packets\", \"1 bdp\" or \"unlimited\"",
    ),
    (
        "queue = \"100ms\"",
        "queue = { rde = {} }",
        "x.toml:13:11: link.queue.rde: no such key (is \"red\" meant?); the keys here are drop_tail, red, codel, fq_codel",
    ),
    (
        "queue = \"100ms\"",
        "queue = {}",
        "x.toml:13:9: link.queue: exactly one of drop_tail, red, codel, fq_codel is needed here, not none",
    ),
    (
        "queue = \"100ms\"",
        "queue = { red = { min = \"50 packets\", max = \"25 packets\" } }",
        "x.toml:13:45: link.queue.red.max: \"25 packets\" is out of range; it must be at least the threshold before it",
    ),
    (
        "queue = \"100ms\"",
        "queue = { red = { min = \"50ms\", max = \"25 packets\" } }",
        "x.toml:13:39: link.queue.red.max: the thresholds are of different units; give all as times, all as sizes or all in packets",
    ),
    (
        "queue = \"100ms\"",
        "queue = { red = { min = \"50ms\" } }",
        "x.toml:13:17: link.queue.red: max is missing; write it like max = \"50 packets\"",
    ),
    (
        "queue = \"100ms\"",
        "queue = { red = { min = \"50ms\", points = [[\"1ms\", 0]] } }",
        "x.toml:13:25: link.queue.red.min: it does not go together with points; give one of the two",
    ),
    (
        "queue = \"100ms\"",
        "queue = { red = { min = \"1 bdp\", max = \"2 bdp\" } }",
        "x.toml:13:25: link.queue.red.min: \"1 bdp\" is not a time, a size or a number of packets, like \"60ms\"",
    ),
    (
        "queue = \"100ms\"",
        "loss = 1.5",
        "x.toml:13:8: link.loss: \"1.5\" is no share; write one from 0 to 1, or from \"0%\" to \"100%\"",
    ),
    (
        "queue = \"100ms\"",
        "loss = \"150%\"",
        "x.toml:13:8: link.loss: \"150%\" is no share; write one from 0 to 1, or from \"0%\" to \"100%\"",
    ),
    (
        "queue = \"100ms\"",
        "loss = { gilbert_elliott = { good_to_bad = \"1%\" } }",
        "x.toml:13:28: link.loss.gilbert_elliott: bad_to_good is missing; write it like bad_to_good = \"20%\"",
    ),
    (
        "queue = \"100ms\"",
        "back = { dealy = \"5ms\" }",
        "x.toml:13:10: link.back.dealy: no such key (is \"delay\" meant?); the keys here are rate, trace, delay, queue, policer, loss, jitter, reorder, duplicate, corrupt, overhead",
    ),
    (
        "queue = \"100ms\"",
        "one_way = true\nback = { delay = \"5ms\" }",
        "x.toml:14:8: link.back: it does not go together with one_way; give one of the two",
    ),
    (
        "queue = \"100ms\"",
        "jitter = { distribution = \"gamma\", scale = \"2ms\" }",
        "x.toml:13:27: link.jitter.distribution: there is no distribution \"gamma\"; known are uniform, normal, exponential",
    ),
    (
        "queue = \"100ms\"",
        "jitter = { overtake = true }",
        "x.toml:13:10: link.jitter: scale is missing; write it like scale = \"2ms\"",
    ),
    (
        "queue = \"100ms\"",
        "jitter = { scale = \"2\" }",
        "x.toml:13:20: link.jitter.scale: \"2\" has no unit; write a time like \"20ms\"",
    ),
    (
        "queue = \"100ms\"",
        "reorder = \"5%\"",
        "x.toml:13:11: link.reorder: \"5%\" is not a table with the keys share, by",
    ),
    (
        "queue = \"100ms\"",
        "reorder = { share = \"5%\" }",
        "x.toml:13:11: link.reorder: by is missing; write it like by = \"10ms\"",
    ),
    (
        "queue = \"100ms\"",
        "reorder = { share = \"5%\", by = \"0ms\" }",
        "x.toml:13:32: link.reorder.by: \"0ms\" is out of range; it must be above zero",
    ),
    (
        "queue = \"100ms\"",
        "duplicate = 2",
        "x.toml:13:13: link.duplicate: \"2\" is no share; write one from 0 to 1, or from \"0%\" to \"100%\"",
    ),
    (
        "queue = \"100ms\"",
        "corrupt = \"1e\"",
        "x.toml:13:11: link.corrupt: \"1e\" is no share; write one from 0 to 1, or from \"0%\" to \"100%\"",
    ),
    ("queue = \"100ms\"", "jitter = true", "x.toml:13:10: link.jitter: true is not a time, like \"20ms\""),
    (
        "name = \"lte\"",
        "name = \"wifi\"",
        "x.toml:16:8: link.name: the link \"wifi\" is there already, in line 9; give each a name of its own",
    ),
    (
        "name = \"lte\"",
        "name = \"wifi.back\"",
        "x.toml:16:8: link.name: the link \"wifi.back\" is there already, in line 9; give each a name of its own",
    ),
    (
        "name = \"lte\"",
        "name = \"\"",
        "x.toml:16:8: link.name: \"\" is no name; it must have at least one character, and none that cannot be printed",
    ),
    (
        "name = \"lte\"\nfrom = \"server\"",
        "name = \"lte\"\nfrom = \"phone\"",
        "x.toml:18:6: link.to: a link cannot go from \"phone\" to itself",
    ),
    ("[[link]]\nname = \"wifi\"", "[link]\nname = \"wifi\"", "x.toml:15:3: this is not TOML: duplicate key"),
    (
        "delay = \"5ms\"",
        "back = { delay = \"5ms\" }",
        "x.toml:6:1: defaults.link.back: no such key; the keys here are rate, trace, delay, queue, policer, loss, jitter, reorder, duplicate, corrupt, overhead",
    ),
    (
        "delay = \"5ms\"",
        "delay = \"5ms\"\nqueue = \"1 bdp\"\n[[link]]\nname = \"none\"\nfrom=\"q\"\nto=\"r\"\nrate=\"1Mbit/s\"\ndelay = \"0s\"",
        "x.toml:7:9: link.queue: the bandwidth-delay product is zero, since no link has a delay; give a time or a size",
    ),
    (
        "from = \"server\"\nto = \"phone\"\npaths = 2",
        "from = \"sever\"\nto = \"phone\"\npaths = 2",
        "x.toml:23:8: flow.from: there is no node \"sever\" (is \"server\" meant?)",
    ),
    (
        "from = \"server\"\nto = \"phone\"\npaths = 2",
        "to = \"phone\"\npaths = 2",
        "x.toml:21:1: flow: from is missing; write it like from = \"server\"",
    ),
    (
        "from = \"server\"\nto = \"phone\"\npaths = 2",
        "from = \"phone\"\nto = \"phone\"\npaths = 2",
        "x.toml:24:6: flow.to: the way from \"phone\" to itself needs no network",
    ),
    (
        "paths = 2",
        "paths = 3",
        "x.toml:25:9: flow.paths: 3 paths that share no link are wanted from \"server\" to \"phone\", and there are 2",
    ),
    (
        "paths = 2",
        "paths = 2\nweights = [3, 1, 1]",
        "x.toml:26:11: flow.weights: it has 3 and the flow 2 paths; give one for each",
    ),
    (
        "paths = 2",
        "paths = 2\nquotas = [\"0B\", \"unlimited\"]",
        "x.toml:26:11: flow.quotas: \"0B\" is out of range; it must be above zero",
    ),
    (
        "paths = 2",
        "paths = 2\ncosts = [-1, 0]",
        "x.toml:26:10: flow.costs: -1 is out of range; it must be from 0 to 1000",
    ),
    ("paths = 2", "paths = 0", "x.toml:25:9: flow.paths: 0 is out of range; it must be from 1 to 64"),
    ("paths = 2", "paths = 1.5", "x.toml:25:9: flow.paths: 1.5 is not a whole number from 1 to 64"),
    (
        "paths = 2",
        "paths = 2\nvia = [[\"wifi\"]]",
        "x.toml:25:9: flow.paths: it does not go together with via; give one of the two",
    ),
    (
        "paths = 2",
        "subflows = 2\npaths = 2",
        "x.toml:25:12: flow.subflows: it does not go together with paths; give one of the two",
    ),
    (
        "paths = 2",
        "via = []",
        "x.toml:25:7: flow.via: a flow needs at least one path; write [[]] for the link that joins its ends",
    ),
    (
        "paths = 2",
        "via = [[]]",
        "x.toml:25:8: flow.via: 2 links lead from \"server\" to \"phone\"; name one of them instead: wifi, lte",
    ),
    (
        "paths = 2",
        "via = [[\"wify\"]]",
        "x.toml:25:8: flow.via: there is no node and no link \"wify\" (is \"wifi\" meant?)",
    ),
    (
        "paths = 2",
        "via = [[\"wifi\"], \"lte\"]",
        "x.toml:25:18: flow.via: \"lte\" is not a list of paths, each a list of nodes or links, like [[\"wifi\"], [\"lte\"]]",
    ),
    (
        "paths = 2",
        "via = [[\"wifi\"], [\"wifi\", \"wifi\"]]",
        "x.toml:25:18: flow.via: 2 links lead from \"server\" to \"phone\"; name one of them instead: wifi, lte",
    ),
    (
        "paths = 2",
        "via = [[\"wifi\"]]\nback_via = [[\"wifi\"], [\"lte\"]]",
        "x.toml:26:12: flow.back_via: via has 1 paths and back_via 2; give a way back for each path",
    ),
    ("paths = 2", "back_via = [[\"wifi\"]]", "x.toml:25:12: flow.back_via: it means nothing without via"),
    (
        "paths = 2",
        "via = [[\"wifi{i}\"]]",
        "x.toml:25:8: flow.via: \"wifi{i}\" has the number of a copy, and there are no copies; give a count",
    ),
    (
        "paths = 2",
        "count = 2\nvia = [[\"wifi{i}\"]]",
        "x.toml:26:8: flow.via: there is no node and no link \"wifi0\" (is \"wifi\" meant?)",
    ),
    ("paths = 2", "count = 0", "x.toml:25:9: flow.count: 0 is out of range; it must be from 1 to 100000"),
    ("paths = 2", "first = 3", "x.toml:25:9: flow.first: it means nothing without count"),
    ("paths = 2", "share = 0.5", "x.toml:25:1: flow.share: it means nothing without matrix"),
    (
        "paths = 2",
        "matrix = \"permutation\"",
        "x.toml:23:8: flow.from: it does not go together with matrix; give one of the two",
    ),
    (
        "from = \"server\"\nto = \"phone\"\npaths = 2",
        "matrix = \"permutation\"",
        "x.toml:23:10: flow.matrix: a matrix needs the hosts of a [topology]; without one, give from and to",
    ),
    (
        "from = \"server\"\nto = \"phone\"\npaths = 2",
        "matrix = \"permuted\"",
        "x.toml:23:10: flow.matrix: there is no matrix \"permuted\"; known are permutation, random",
    ),
    (
        "congestion = \"olia\"",
        "congetsion = \"olia\"",
        "x.toml:26:1: flow.congetsion: no such key (is \"congestion\" meant?); the keys here are name, from, to, count, first, via, back_via, paths, subflows, weights, costs, caps, quotas, matrix, share, preset, congestion, coupling, detector, hold, dips, remedies, scheduler, traffic, start, start_jitter, stop, transport, parameters",
    ),
    (
        "congestion = \"olia\"",
        "traffic = \"bulky\"",
        "x.toml:26:11: flow.traffic: \"bulky\" is not \"bulk\", or a table with one of the keys size, short_flows, on_off, constant, media, live, unresponsive",
    ),
    (
        "congestion = \"olia\"",
        "traffic = { size = \"0B\" }",
        "x.toml:26:20: flow.traffic.size: \"0B\" is out of range; it must be above zero",
    ),
    (
        "congestion = \"olia\"",
        "traffic = { size = \"1MB\", constant = \"1Mbit/s\" }",
        "x.toml:26:11: flow.traffic: exactly one of size, short_flows, on_off, constant, media, live, unresponsive is needed here, not size and constant",
    ),
    (
        "congestion = \"olia\"",
        "traffic = { on_off = { on = \"1s\", off = \"2s\", distribution = \"normal\" } }",
        "x.toml:26:62: flow.traffic.on_off.distribution: there is no distribution \"normal\"; known are exponential, fixed",
    ),
    (
        "congestion = \"olia\"",
        "traffic = { media = { rate = \"1Mbit/s\", key_frame_ratio = -1.0 } }",
        "x.toml:26:59: flow.traffic.media.key_frame_ratio: -1.0 is out of range; it must be above 0 and up to 1000",
    ),
    (
        "congestion = \"olia\"",
        "traffic = { live = { packet = \"8B\" } }",
        "x.toml:26:31: flow.traffic.live.packet: \"8B\" is out of range; it must be from 16 B to 65,507 B",
    ),
    (
        "congestion = \"olia\"",
        "traffic = { live = { deadline = \"1min\" } }",
        "x.toml:26:33: flow.traffic.live.deadline: \"1min\" is out of range; it must be from 10 ms to 10 s",
    ),
    (
        "congestion = \"olia\"",
        "transport = { packet = \"40B\" }",
        "x.toml:26:24: transport.packet: 40 B is not above header = 52 B",
    ),
    (
        "congestion = \"olia\"",
        "transport = { send_buffer = \"1000B\" }",
        "x.toml:26:29: transport.send_buffer: 1000 B is not at least packet = 1500 B",
    ),
    (
        "congestion = \"olia\"",
        "parameters = { min_window = 0 }",
        "x.toml:26:29: flow.parameters.min_window: 0 is out of range; it must be from 1 to 1000",
    ),
    ("start = \"1s\"", "stop = \"0s\"", "x.toml:27:8: flow.stop: 0ns is not after start = 0ns"),
    ("start = \"1s\"", "start = \"5s\"\nstop = \"4s\"", "x.toml:28:8: flow.stop: 4s is not after start = 5s"),
    ("start = \"1s\"", "start = \"90s\"", "x.toml:27:9: flow.start: 90s is not before duration = 60s"),
    (
        "start = \"1s\"",
        "[[flow]]\nname = \"download\"\nfrom = \"server\"\nto = \"phone\"",
        "x.toml:28:8: flow.name: the flow \"download\" is there already, in line 22; give each a name of its own",
    ),
    (
        "start = \"1s\"",
        "count = 2\n[[flow]]\nname = \"download.1\"\nfrom = \"server\"\nto = \"phone\"",
        "x.toml:29:8: flow.name: the flow \"download.1\" is there already, in line 22; give each a name of its own",
    ),
    ("at = \"30s\"", "at = \"60s\"", "x.toml:30:6: change.at: 60s is not before duration = 60s"),
    (
        "link = \"wifi\"",
        "link = \"wi-fi\"",
        "x.toml:31:8: change.link: there is no link \"wi-fi\" (is \"wifi\" meant?); known are wifi, wifi.back, lte, lte.back",
    ),
    (
        "link = \"wifi\"",
        "link = [\"lte\", \"wimax\"]",
        "x.toml:31:16: change.link: there is no link \"wimax\"; known are wifi, wifi.back, lte, lte.back",
    ),
    (
        "link = \"wifi\"",
        "link = \"wifi.back\"\ndirection = \"back\"",
        "x.toml:31:8: change.link: \"wifi.back\" is one direction already; leave direction out",
    ),
    ("up = false", "up = \"no\"", "x.toml:32:6: change.up: \"no\" is not true or false"),
    ("up = false", "", "x.toml:29:1: change: up is missing; write it like up = false"),
    (
        "up = false",
        "up = false\nrate = \"1Mbit/s\"",
        "x.toml:33:8: change.rate: it does not go together with up; give one of the two",
    ),
    (
        "up = false",
        "drop = \"all\"\nrate = \"1Mbit/s\"",
        "x.toml:32:8: change.drop: it does not go together with rate; give one of the two",
    ),
    (
        "up = false",
        "drop = \"some\"",
        "x.toml:32:8: change.drop: \"some\" is not \"all\", \"none\" or a table with one of the keys larger, share, every, next",
    ),
    ("up = false", "drop = { every = 0 }", "x.toml:32:18: change.drop.every: 0 is out of range; it must be at least 1"),
    (
        "up = false",
        "drop = { next = 3, share = 0.1 }",
        "x.toml:32:8: change.drop: exactly one of larger, share, every, next is needed here, not share and next",
    ),
];

#[test]
fn what_is_quoted_of_a_file_is_short_and_cannot_control_a_terminal() {
    let long = format!("\\u001b[2J{}", "x".repeat(1 << 20));
    for (key, instead) in [
        ("rate = \"30Mbit/s\"", format!("rate = \"30{long}\"")),
        ("rate = \"30Mbit/s\"", format!("rate = \"{long}\"")),
        ("queue = \"100ms\"", format!("queue = \"7{long}\"")),
        ("paths = 2", format!("paths = \"{long}\"")),
        ("paths = 2", format!("paths = 1{}", "0".repeat(1 << 20))),
    ] {
        let said = message(&GOOD.replacen(key, &instead, 1));
        assert!(said.len() < 1_000 && !said.contains('\u{1b}'), "{} bytes: {said:.300}", said.len());
    }
}

#[test]
fn no_more_is_read_than_can_be_meant() {
    let deep = format!("duration = {}1{}", "[".repeat(1 << 18), "]".repeat(1 << 18));
    assert!(message(&deep).starts_with("x.toml:1:"), "{:.300}", message(&deep));
    let framing = GOOD.replacen("queue = \"100ms\"", "overhead = \"1GB\"", 1);
    assert!(message(&framing).ends_with("link.overhead: \"1GB\" is out of range; it must be at most 65535B"));
    let far = "duration = \"1s\"\ntopology = { chain = { hops = 10000, link = { rate = \"1Mbit/s\" } } }\n\
        [[flow]]\nname = \"f\"\ncount = 100000\nfrom = \"n0\"\nto = \"n10000\"\n";
    let said = message(far);
    assert!(said.contains("flow.count: the paths of all flows together go over more than 20000000 links"), "{said}");
}
