//! Addresses and interfaces as people have them: two modems of one maker, several interfaces on one switch.

use std::time::Duration;

use crate::lan::Lan;
use crate::network::Family;
use crate::transfer::Scratch;
use crate::{place, say};

/// The amount that two links of 20 Mbit/s carry together in about three seconds.
const BYTES: u64 = 15_000_000;

/// The rate of each link, in Mbit/s.
const RATE: u64 = 20;

/// How long a transfer of [`BYTES`] may take on a busy machine, over one link or two.
const LIMIT: Duration = Duration::from_secs(40);

/// Namespaces of these names, and a place for them. `None` where this machine cannot have them.
pub(crate) fn lan(names: &[&str]) -> Option<(std::sync::MutexGuard<'static, ()>, Lan)> {
    let place = place();
    match Lan::new(names) {
        Ok(lan) => Some((place, lan)),
        Err(reason) => {
            say(&format!("{}: skipped, {reason}", std::thread::current().name().unwrap_or("a test")));
            None
        }
    }
}

/// Two modems of one maker: each is a router that gives the host 192.168.8.100 and has a network of its own behind it.
#[test]
fn two_modems_that_give_the_host_one_address_carry_a_file_together() {
    let Some((_place, mut lan)) = lan(&["sender", "modem0", "modem1", "receiver"]) else { return };
    for (at, modem) in ["modem0", "modem1"].into_iter().enumerate() {
        let (here, there) = (format!("usb{at}"), format!("wan{at}"));
        lan.cable(("sender", &here), (modem, "lan"));
        lan.cable((modem, "wan"), ("receiver", &there));
        lan.address("sender", &here, "192.168.8.100/24");
        lan.address(modem, "lan", "192.168.8.1/24");
        lan.address(modem, "wan", &format!("10.9.{at}.1/24"));
        lan.address("receiver", &there, &format!("10.9.{at}.2/24"));
        lan.limit("sender", &here, RATE);
        lan.relay(modem, "192.168.8.1:4433", &format!("10.9.{at}.2:4433"));
    }
    let scratch = Scratch::with_tree(BYTES);
    let options = ["--listen", "0.0.0.0:4433", "--advertise", "192.168.8.1:4433"];
    let (mut receiver, ticket) = lan.receiver("receiver", &options, &scratch);
    let mut sender = lan.sender("sender", &ticket, &["--via", "usb0", "--via", "usb1"], &scratch);
    assert!(sender.end(LIMIT).success(), "{}", sender.said());
    assert!(receiver.end(LIMIT).success(), "{}", receiver.said());
    scratch.assert_arrived_identical();
    let carried = ["wan0", "wan1"].map(|interface| lan.carried("receiver", interface));
    assert!(carried.iter().all(|bytes| *bytes > BYTES / 4), "{carried:?}\n{}", sender.said());
}

/// A NAS with two interfaces, at 10.6.0.2 and 10.6.0.3, and a computer with one, on one switch. Linux answers for both
/// addresses of the NAS on either of its interfaces.
fn switched(scratch: &Scratch, options: &[&str]) -> Option<([u64; 2], String)> {
    let (_place, lan) = lan(&["sender", "switch", "receiver"])?;
    lan.ip("switch", "link add bridge type bridge");
    lan.ip("switch", "link set bridge up");
    for (port, host, interface) in [("p0", "sender", "eth0"), ("p1", "receiver", "nas0"), ("p2", "receiver", "nas1")] {
        lan.cable((host, interface), ("switch", port));
        lan.ip("switch", &format!("link set {port} master bridge"));
    }
    lan.address("sender", "eth0", "10.6.0.1/24");
    if options.is_empty() {
        // As `fairpath paths` advises. Else chance says through which interface the sender finds which address.
        lan.set("receiver", "net/ipv4/conf/all/arp_ignore", "1");
    }
    for (port, interface, address) in [("p1", "nas0", "10.6.0.2/24"), ("p2", "nas1", "10.6.0.3/24")] {
        lan.address("receiver", interface, address);
        lan.limit("switch", port, RATE);
        lan.limit("receiver", interface, RATE);
    }
    let (mut receiver, ticket) = lan.receiver("receiver", options, scratch);
    let mut sender = lan.sender("sender", &ticket, &[], scratch);
    assert!(sender.end(LIMIT).success(), "{}", sender.said());
    assert!(receiver.end(LIMIT).success(), "{}", receiver.said());
    scratch.assert_arrived_identical();
    Some((["nas0", "nas1"].map(|interface| lan.carried("receiver", interface)), sender.said()))
}

#[test]
fn two_interfaces_of_a_receiver_on_one_switch_carry_a_file_together() {
    let scratch = Scratch::with_tree(BYTES);
    let Some((carried, said)) = switched(&scratch, &[]) else { return };
    assert!(carried.iter().all(|bytes| *bytes > BYTES / 4), "{carried:?}\n{said}");
}

#[test]
fn either_interface_of_a_receiver_on_one_switch_is_reached_alone() {
    for interface in ["nas0", "nas1"] {
        let scratch = Scratch::with_tree(1_000_000);
        if switched(&scratch, &["--via", interface]).is_none() {
            return;
        }
    }
}

/// A strict check of where packets come from keeps one of the two from being used.
#[test]
fn two_interfaces_on_one_switch_are_told_what_to_set() {
    let Some((_place, lan)) = lan(&["sender", "receiver"]) else { return };
    for (interface, address) in [("nas0", "10.6.0.2/24"), ("nas1", "10.6.0.3/24")] {
        lan.cable(("receiver", interface), ("sender", interface));
        lan.address("receiver", interface, address);
    }
    for setting in ["rp_filter", "arp_ignore"] {
        for (value, is_told) in [(u8::from(setting == "rp_filter"), true), (2, false)] {
            lan.set("receiver", &format!("net/ipv4/conf/all/{setting}"), &value.to_string());
            let said = lan.fairpath("receiver", &["paths"]).unwrap();
            assert_eq!(said.contains(setting), is_told, "{value}: {said}");
        }
    }
}

/// A computer with two interfaces of 20 Mbit/s on the switch of a NAS.
#[test]
fn two_interfaces_of_a_sender_on_one_switch_carry_a_file_together_or_are_told_what_to_set() {
    let Some((_place, lan)) = lan(&["sender", "switch", "receiver"]) else { return };
    lan.ip("switch", "link add bridge type bridge");
    lan.ip("switch", "link set bridge up");
    let ports = [("p0", "sender", "eth0"), ("p1", "sender", "eth1"), ("p2", "receiver", "nas")];
    for (port, host, interface) in ports {
        lan.cable((host, interface), ("switch", port));
        lan.ip("switch", &format!("link set {port} master bridge"));
    }
    lan.address("receiver", "nas", "10.6.0.2/24");
    for (interface, address) in [("eth0", "10.6.0.1/24"), ("eth1", "10.6.0.3/24")] {
        lan.address("sender", interface, address);
        lan.limit("sender", interface, RATE);
    }
    for (filter, bytes) in [("1", 1_000_000), ("2", BYTES)] {
        lan.set("sender", "net/ipv4/conf/all/rp_filter", filter);
        let scratch = Scratch::with_tree(bytes);
        let (mut receiver, ticket) = lan.receiver("receiver", &[], &scratch);
        let before = ["p0", "p1"].map(|port| lan.carried("switch", port));
        let mut sender = lan.sender("sender", &ticket, &[], &scratch);
        assert!(sender.end(LIMIT).success(), "{}", sender.said());
        assert!(receiver.end(LIMIT).success(), "{}", receiver.said());
        scratch.assert_arrived_identical();
        assert_eq!(sender.said().contains("warning: eth0 and eth1 are in one network"), filter == "1");
        let carried = [0, 1].map(|at| lan.carried("switch", ["p0", "p1"][at]) - before[at]);
        if filter == "2" {
            assert!(carried.iter().all(|bytes| *bytes > BYTES / 4), "{carried:?}\n{}", sender.said());
        }
    }
}

/// As where routers bring the traffic of an address to a machine that has it on no interface with a wire.
#[test]
fn a_public_address_on_loopback_is_listened_on_everywhere() {
    let Some((_place, lan)) = lan(&["sender", "receiver"]) else { return };
    lan.cable(("sender", "eth0"), ("receiver", "eth0"));
    lan.address("sender", "eth0", "10.8.0.1/24");
    lan.address("receiver", "eth0", "10.9.0.2/24");
    lan.ip("receiver", "link set lo up");
    lan.address("receiver", "lo", "203.0.113.9/32");
    // Nothing else of the receiver is reached.
    lan.ip("sender", "route add 203.0.113.9 dev eth0");
    lan.ip("receiver", "route add 10.8.0.0/24 dev eth0");
    let scratch = Scratch::with_tree(1_000_000);
    let (mut receiver, ticket) = lan.receiver("receiver", &["--listen", "0.0.0.0:4433"], &scratch);
    let mut sender = lan.sender("sender", &ticket, &[], &scratch);
    assert!(sender.end(LIMIT).success(), "{}", sender.said());
    assert!(receiver.end(LIMIT).success(), "{}", receiver.said());
    assert!(
        receiver.said().contains("203.0.113.9:4433") && !receiver.said().contains("127.0.0.1"),
        "{}",
        receiver.said()
    );
    scratch.assert_arrived_identical();
}

/// The host `host` of the network `network`, which has addresses of one family only.
fn address(family: Family, network: u8, host: u8) -> String {
    match family {
        Family::V4 => format!("10.5.{network}.{host}/24"),
        Family::V6 => format!("fd05:{network}::{host}/64"),
    }
}

/// The receiver's only address is replaced in mid-transfer, or a second interface comes up.
fn changing(family: Family, change: impl FnOnce(&Lan), scratch: &Scratch) -> Option<(Lan, String, String)> {
    let (_place, lan) = lan(&["sender", "receiver"])?;
    for at in 0..2 {
        let (a, b) = (format!("a{at}"), format!("b{at}"));
        lan.cable(("sender", &a), ("receiver", &b));
        lan.address("sender", &a, &address(family, at, 1));
        lan.limit("sender", &a, RATE);
    }
    lan.address("receiver", "b0", &address(family, 0, 2));
    let (mut receiver, ticket) = lan.receiver("receiver", &[], scratch);
    let mut sender = lan.sender("sender", &ticket, &["--give-up-after", "30s"], scratch);
    sender.until("a part", LIMIT, |_| lan.carried("receiver", "b0") > scratch.bytes() / 5);
    change(&lan);
    let ended = sender.end(LIMIT);
    assert!(ended.success(), "{}\n{}", sender.said(), receiver.said());
    assert!(receiver.end(LIMIT).success(), "{}", receiver.said());
    scratch.assert_arrived_identical();
    let printed = receiver.printed();
    let tickets: Vec<fairpath_transfer::Ticket> = printed.lines().map(|line| line.parse().unwrap()).collect();
    assert!(tickets.len() == 2 && tickets[0].secret == tickets[1].secret, "{printed}");
    Some((lan, sender.said(), receiver.said()))
}

#[test]
fn a_transfer_goes_on_when_the_only_address_of_the_receiver_changes() {
    for family in [Family::V4, Family::V6] {
        let scratch = Scratch::with_tree(BYTES / 2);
        let change = |lan: &Lan| {
            lan.ip("receiver", &format!("address del {} dev b0", address(family, 0, 2)));
            std::thread::sleep(Duration::from_secs(1));
            lan.address("receiver", "b0", &address(family, 0, 9));
        };
        let Some((_lan, sender, receiver)) = changing(family, change, &scratch) else { return };
        assert!(receiver.contains("this machine has another address now"), "{receiver}");
        assert!(!sender.contains("giving up"), "the connection goes on: {sender}");
        // Where a path takes over from another of the same interface, it is said which.
        let told = sender.lines().filter_map(|line| line.split_once("; its data goes over "));
        told.for_each(|(closed, by)| assert!(!closed.starts_with(&format!("{by}:")), "{sender}"));
    }
}

#[test]
fn an_interface_that_the_receiver_gets_later_is_used() {
    let scratch = Scratch::with_tree(BYTES);
    let change = |lan: &Lan| lan.address("receiver", "b1", "10.5.1.2/24");
    let Some((lan, sender, _)) = changing(Family::V4, change, &scratch) else { return };
    let carried = lan.carried("receiver", "b1");
    assert!(carried > BYTES / 5, "{carried} bytes\n{sender}");
}
