//! The choice of pairs, on examples and by properties.

use proptest::prelude::*;

use super::*;

fn local(name: &str, address: &str) -> Interface {
    Interface { name: name.into(), address: address.parse().unwrap(), twin: 0, prefix_bits: 24, unusable: None }
}

impl Candidates {
    /// The pairs that are asked at that time.
    fn asked_at(&mut self, now: Instant) -> Vec<Pair> {
        let plan = self.plan();
        self.questions(&plan, now)
    }
}

fn names(pairs: &[Pair]) -> Vec<String> {
    pairs.iter().map(|pair| format!("{}>{}", pair.local.name, pair.remote.ip())).collect()
}

fn remotes(addresses: &[&str]) -> Vec<SocketAddr> {
    addresses.iter().map(|address| SocketAddr::new(address.parse().unwrap(), 4433)).collect()
}

fn plan(locals: &[Interface], addresses: &[&str]) -> Vec<String> {
    names(&Candidates::new(locals, &remotes(addresses), 8).plan())
}

#[test]
fn another_port_of_the_same_host_stands_beside_a_path_until_it_is_forgotten() {
    let locals = [local("a", "10.0.1.1"), local("b", "10.0.2.1")];
    let ports: Vec<SocketAddr> = [443, 4433].map(|port| SocketAddr::from(([198, 51, 100, 1], port))).to_vec();
    let mut candidates = Candidates::new(&locals, &[&ports[..], &remotes(&["203.0.113.1"])].concat(), 8);
    candidates.succeeded(locals[0].address, ports[0]);
    candidates.succeeded(locals[1].address, ports[1]);
    let planned = candidates.plan();
    let beside = candidates.other_port(locals[1].address, ports[1]).unwrap();
    assert_eq!((beside.local.name.as_str(), beside.remote), ("b", ports[0]));
    candidates.want_beside(beside.clone());
    assert_eq!(candidates.plan(), [&planned[..], std::slice::from_ref(&beside)].concat());
    assert_eq!(candidates.other_port(locals[1].address, ports[1]), None, "there is no third port");
    candidates.succeeded(beside.local.address, beside.remote);
    candidates.forget_beside(beside.local.address, beside.remote);
    assert_eq!(candidates.plan(), planned);
    candidates.failed(locals[1].address, ports[0], WhyNot::Silent);
    assert_eq!(candidates.other_port(locals[1].address, ports[1]), None, "it is known not to work");
}

#[test]
fn addresses_of_one_subnet_go_together() {
    let locals = [local("a", "10.0.1.1"), local("b", "10.0.2.1")];
    assert_eq!(plan(&locals, &["10.0.2.2", "10.0.1.2"]), ["a>10.0.1.2", "b>10.0.2.2"]);
}

#[test]
fn two_uplinks_to_one_server_are_two_paths() {
    let locals = [local("wlan0", "192.168.1.5"), local("wwan0", "100.64.0.9")];
    assert_eq!(plan(&locals, &["198.51.100.1"]), ["wlan0>198.51.100.1", "wwan0>198.51.100.1"]);
    assert!(!Candidates::new(&locals, &remotes(&["198.51.100.1"]), 8).is_choice());
}

#[test]
fn one_uplink_to_a_server_with_two_is_two_paths() {
    let locals = [local("eth0", "192.168.1.5")];
    let addresses = ["198.51.100.1", "203.0.113.1"];
    assert_eq!(plan(&locals, &addresses).len(), 2);
    assert_eq!(Candidates::new(&locals, &remotes(&addresses), 1).plan().len(), 1);
}

#[test]
fn families_do_not_mix_and_loopback_is_reached_from_loopback_only() {
    let locals = [local("eth0", "192.168.1.5")];
    assert!(plan(&locals, &["2001:db8::1", "127.0.0.1"]).is_empty());
    assert!(Candidates::new(&locals, &remotes(&["127.0.0.1"]), 8).is_empty());
    assert_eq!(plan(&[local("lo:127.0.1.1", "127.0.1.1")], &["127.0.0.1"]), ["lo:127.0.1.1>127.0.0.1"]);
}

#[test]
fn an_interface_with_both_families_is_one_path() {
    let locals = [
        local("wlan0", "192.168.1.5"),
        local("wlan0", "2001:db8:1::5"),
        local("wwan0", "100.64.0.9"),
        local("wwan0", "2001:db8:2::9"),
    ];
    let both = ["198.51.100.1", "2001:db8:9::1"];
    assert_eq!(plan(&locals, &both), ["wlan0>198.51.100.1", "wwan0>198.51.100.1"]);
    assert_eq!(plan(&locals, &both[1..]), ["wlan0>2001:db8:9::1", "wwan0>2001:db8:9::1"]);
    // A mobile network without IPv4.
    let mixed = [locals[0].clone(), locals[3].clone()];
    assert_eq!(plan(&mixed, &both), ["wlan0>198.51.100.1", "wwan0>2001:db8:9::1"]);
    let more = [locals[0].clone(), locals[1].clone(), locals[3].clone()];
    assert_eq!(plan(&more, &both), ["wlan0>2001:db8:9::1", "wwan0>2001:db8:9::1"]);
}

#[test]
fn where_one_family_fails_the_other_stands_in() {
    let locals = [local("wlan0", "192.168.1.5"), local("wlan0", "2001:db8:1::5")];
    let mut candidates = Candidates::new(&locals, &remotes(&["198.51.100.1", "2001:db8:9::1"]), 8);
    assert_eq!(names(&candidates.plan()), ["wlan0>198.51.100.1"]);
    candidates.failed(locals[0].address, remotes(&["198.51.100.1"])[0], WhyNot::Silent);
    assert_eq!(names(&candidates.plan()), ["wlan0>2001:db8:9::1"]);
    assert_eq!(candidates.alternatives(locals[0].address).len(), 2);
}

/// The second interface is paired with the address of a bridge of containers, which nobody reaches.
#[test]
fn an_interface_whose_address_fails_gets_one_that_answered_another() {
    let locals = [local("a", "10.0.1.1"), local("b", "10.0.2.1")];
    let peer = remotes(&["10.0.1.2", "172.17.0.1"]);
    let mut candidates = Candidates::new(&locals, &peer, 8);
    assert_eq!(names(&candidates.plan()), ["a>10.0.1.2", "b>172.17.0.1"]);
    candidates.succeeded(locals[0].address, peer[0]);
    candidates.failed(locals[1].address, peer[1], WhyNot::Silent);
    // The bridge is tried from the other interface too.
    assert_eq!(names(&candidates.plan()), ["a>10.0.1.2", "b>10.0.1.2", "a>172.17.0.1"]);
    candidates.failed(locals[0].address, peer[1], WhyNot::Refused);
    assert_eq!(names(&candidates.plan()), ["a>10.0.1.2", "b>10.0.1.2"]);
    // And should it answer after all, it is used.
    candidates.answered(locals[1].address, peer[1]);
    assert_eq!(names(&candidates.plan()), ["a>10.0.1.2", "b>172.17.0.1"]);
    candidates.succeeded(locals[1].address, peer[0]);
    assert_eq!(names(&candidates.plan()), ["a>10.0.1.2", "b>10.0.1.2", "b>172.17.0.1"]);
}

#[test]
fn a_path_that_is_being_opened_is_given_up_only_for_a_pair_that_answers() {
    let locals = [local("a", "10.0.1.1")];
    let peer = remotes(&["10.0.1.2", "10.0.3.1"]);
    let mut candidates = Candidates::new(&locals, &peer, 1);
    let here = locals[0].address;
    candidates.opening(here, peer[0]);
    candidates.failed(here, peer[1], WhyNot::Silent);
    candidates.failed(here, peer[0], WhyNot::Silent);
    assert_eq!(names(&candidates.plan()), ["a>10.0.1.2"], "there is nothing better");
    candidates.answered(here, peer[1]);
    assert_eq!(names(&candidates.plan()), ["a>10.0.3.1"]);
    // Another host answers there, however often.
    candidates.failed(here, peer[1], WhyNot::Stranger);
    candidates.answered(here, peer[1]);
    assert_eq!(names(&candidates.plan()), ["a>10.0.1.2"]);
    assert_eq!(candidates.tried()[1].outcome, Outcome::Failed(WhyNot::Stranger));
}

#[test]
fn the_likeliest_pairs_come_first() {
    let locals = [local("lan", "192.168.1.5"), local("public", "198.51.100.9")];
    let peer = ["203.0.113.1", "10.9.9.9", "192.168.1.7"];
    let candidates = Candidates::new(&locals, &remotes(&peer), 8);
    let mut begun = Vec::new();
    while let Some(next) = candidates.next(&begun) {
        begun.push(next);
    }
    // One subnet; one scope; then each start and each address that was not tried yet.
    let expected = [
        "lan>192.168.1.7",
        "public>203.0.113.1",
        "lan>10.9.9.9",
        "public>10.9.9.9",
        "lan>203.0.113.1",
        "public>192.168.1.7",
    ];
    assert_eq!(names(&begun), expected);
}

#[test]
fn what_is_ruled_out_is_not_tried_and_what_answered_comes_first() {
    let locals = [local("a", "10.0.1.1")];
    let peer = remotes(&["10.0.1.2", "10.0.3.1", "10.0.4.1"]);
    let mut candidates = Candidates::new(&locals, &peer, 8);
    candidates.failed(locals[0].address, peer[0], WhyNot::Refused);
    candidates.failed(locals[0].address, peer[1], WhyNot::Silent);
    candidates.answered(locals[0].address, peer[2]);
    let first = candidates.next(&[]).unwrap();
    let second = candidates.next(std::slice::from_ref(&first)).unwrap();
    assert_eq!(names(&[first.clone(), second.clone()]), ["a>10.0.4.1", "a>10.0.3.1"]);
    assert_eq!(candidates.next(&[first, second]), None);
}

#[test]
fn an_interface_in_doubt_is_asked_for_less_and_less_often_until_it_has_a_path() {
    let locals = [local("a", "10.0.1.1"), local("b", "10.0.2.1")];
    let peer = remotes(&["10.0.1.2", "10.0.2.2"]);
    let mut candidates = Candidates::new(&locals, &peer, 8);
    let start = Instant::now();
    assert!(candidates.asked_at(start).is_empty(), "nobody doubts");
    let mut asked = Vec::new();
    for second in 0..120 {
        let now = start + Duration::from_secs(second);
        candidates.doubt(locals[1].address, now);
        let pairs = candidates.asked_at(now);
        if !pairs.is_empty() {
            assert_eq!(names(&pairs), ["b>10.0.1.2", "b>10.0.2.2"]);
            asked.push(second);
        }
    }
    assert_eq!(asked, [0, 4, 12, 28, 58, 88, 118]);
    candidates.succeeded(locals[1].address, peer[1]);
    assert!(candidates.asked_at(start + Duration::from_secs(1000)).is_empty());
}

#[test]
fn a_pair_that_worked_once_stays_in_the_plan_while_nothing_better_is_known() {
    let locals = [local("a", "10.0.1.1")];
    let peer = remotes(&["10.0.1.2", "10.0.3.1", "10.0.4.1"]);
    let mut candidates = Candidates::new(&locals, &peer, 8);
    let here = locals[0].address;
    candidates.succeeded(here, peer[1]);
    candidates.succeeded(here, peer[2]);
    for remote in &peer {
        candidates.failed(here, *remote, WhyNot::Silent);
    }
    // One of the two is the interface's own, the other that of an address of the peer.
    assert_eq!(names(&candidates.plan()), ["a>10.0.3.1", "a>10.0.4.1"]);
}

#[test]
fn an_address_that_failed_from_everywhere_is_asked_again_from_time_to_time() {
    let locals = [local("a", "10.0.1.1"), local("b", "10.0.2.1")];
    let peer = remotes(&["10.0.1.2", "172.17.0.1"]);
    let mut candidates = Candidates::new(&locals, &peer, 8);
    for local in &locals {
        candidates.succeeded(local.address, peer[0]);
        candidates.failed(local.address, peer[1], WhyNot::Silent);
    }
    let start = Instant::now();
    let mut asked = Vec::new();
    for second in 0..100 {
        let pairs = candidates.asked_at(start + Duration::from_secs(second));
        if !pairs.is_empty() {
            assert_eq!(names(&pairs), ["a>172.17.0.1", "b>172.17.0.1"]);
            asked.push(second);
        }
    }
    assert_eq!(asked, [4, 12, 28, 58, 88]);
    candidates.answered(locals[1].address, peer[1]);
    assert_eq!(names(&candidates.plan()), ["a>10.0.1.2", "b>10.0.1.2", "b>172.17.0.1"]);
}

#[test]
fn what_was_known_of_an_address_goes_with_it() {
    let locals = [local("a", "10.0.1.1"), local("b", "10.0.2.1")];
    let peer = remotes(&["10.0.1.2"]);
    let mut candidates = Candidates::new(&locals, &peer, 8);
    candidates.failed(locals[1].address, peer[0], WhyNot::NoRoute);
    assert!(candidates.is_exhausted(locals[1].address));
    let now = Instant::now();
    candidates.set_locals(&locals[..1], now);
    assert!(candidates.tried().is_empty());
    candidates.set_locals(&locals, now);
    assert!(!candidates.is_exhausted(locals[1].address));
    assert!(candidates.asked_at(now).is_empty(), "with one address of the peer there is no choice");
}

#[test]
fn a_pair_whose_answer_is_still_missing_is_told_as_waited_for() {
    let locals = [local("a", "10.0.1.1"), local("b", "10.0.2.1")];
    let peer = remotes(&["10.0.1.2", "172.17.0.1"]);
    let mut candidates = Candidates::new(&locals, &peer, 8);
    assert!(candidates.tried().is_empty(), "nothing was asked");
    let before = candidates.revision();
    candidates.ask_all();
    assert_ne!(candidates.revision(), before, "it is looked at anew");
    candidates.answered(locals[0].address, peer[0]);
    candidates.failed(locals[1].address, peer[1], WhyNot::Silent);
    let outcomes: Vec<String> = candidates.tried().iter().map(|one| one.outcome.to_string()).collect();
    let waits = "still waiting for an answer";
    assert_eq!(outcomes, ["answers", waits, waits, "no answer"]);
}

/// Some interfaces, some addresses of the peer, and which pairs of them would work.
fn network() -> impl Strategy<Value = (Vec<Interface>, Vec<SocketAddr>, Vec<bool>)> {
    let address = |at: usize, ipv4: bool| match ipv4 {
        true => format!("10.0.{at}.1"),
        false => format!("2001:db8:{at}::1"),
    };
    let families = || prop::collection::vec((any::<bool>(), any::<bool>()), 1..5);
    let locals = families().prop_map(move |has| {
        let each = has.into_iter().enumerate().flat_map(move |(at, (ipv4, other))| {
            let name = format!("if{at}");
            let addresses = [Some(address(at, ipv4)), other.then(|| address(at, !ipv4))];
            addresses.into_iter().flatten().map(move |address| local(&name, &address)).collect::<Vec<_>>()
        });
        each.collect()
    });
    // Some lie in the subnet of an interface, some elsewhere.
    let peer = prop::collection::vec((0..8_usize, any::<bool>()), 1..6).prop_map(move |addresses| {
        let host = |(at, ipv4)| address(at, ipv4).replace(".1", ".2").replace("::1", "::2");
        let hosts: Vec<String> = addresses.into_iter().map(host).collect();
        remotes(&hosts.iter().map(String::as_str).collect::<Vec<_>>())
    });
    (locals, peer, prop::collection::vec(any::<bool>(), 64))
}

proptest! {
    /// Opening what is planned, and telling what came of it, finds a way for every interface that has
    /// one. No pair is tried again before all others of its interface were tried, and none is left
    /// out before the interface is given up.
    #[test]
    fn every_pair_is_tried_before_an_interface_is_given_up((locals, peer, works) in network()) {
        let mut candidates = Candidates::new(&locals, &peer, usize::MAX);
        let all: Vec<Pair> = candidates.all().collect();
        let works = |pair: &Pair| works[all.iter().position(|other| other == pair).unwrap()];
        let mut failed: Vec<Pair> = Vec::new();
        // Each round tries one pair at least for each interface that has none.
        for _ in 0..all.len() {
            for pair in candidates.plan() {
                let local = pair.local.address;
                if candidates.known(&pair).works || candidates.is_exhausted(local) {
                    continue;
                }
                prop_assert!(!failed.contains(&pair), "tried again before others: {:?}", candidates.tried());
                candidates.opening(local, pair.remote);
                match works(&pair) {
                    true => candidates.succeeded(local, pair.remote),
                    false => candidates.failed(local, pair.remote, WhyNot::Silent),
                }
                if !works(&pair) {
                    failed.push(pair);
                }
            }
        }
        for start in 0..candidates.starts.len() {
            let could = candidates.of_start(start).any(|pair| works(&pair));
            let does = candidates.of_start(start).any(|pair| candidates.known(&pair).works);
            prop_assert_eq!(could, does, "{:?}", candidates.tried());
            let is_exhausted = candidates.is_exhausted(candidates.starts[start][0].address);
            prop_assert_eq!(is_exhausted, !does && candidates.of_start(start).next().is_some());
        }
    }

    /// A plan uses every interface that could reach the peer, and no pair twice.
    #[test]
    fn a_plan_leaves_out_no_interface((locals, peer, _) in network()) {
        let candidates = Candidates::new(&locals, &peer, usize::MAX);
        let plan = candidates.plan();
        for start in 0..candidates.starts.len() {
            let planned = plan.iter().any(|pair| candidates.starts[start].contains(&pair.local));
            prop_assert_eq!(planned, candidates.of_start(start).next().is_some());
        }
        for (at, pair) in plan.iter().enumerate() {
            prop_assert!(!plan[..at].contains(pair), "{:?}", names(&plan));
        }
    }

    /// Each plausible pair has its turn in the handshake, once.
    #[test]
    fn the_handshake_is_tried_on_every_pair_once((locals, peer, _) in network()) {
        let candidates = Candidates::new(&locals, &peer, usize::MAX);
        let mut begun: Vec<Pair> = Vec::new();
        while let Some(next) = candidates.next(&begun) {
            prop_assert!(!begun.contains(&next));
            begun.push(next);
        }
        prop_assert_eq!(begun.len(), candidates.all().count());
    }
}
