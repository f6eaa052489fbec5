//! Links that are less than a network: a cable between two machines without a router, and one that carries only small
//! packets.

use std::time::Duration;

use crate::addresses::lan;
use crate::transfer::Scratch;

/// An amount that takes no time to carry.
const BYTES: u64 = 1_000_000;

/// How long that may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(30);

/// Nobody gave the two an address: they have made one each that is of use on the cable only.
#[test]
fn a_cable_with_addresses_of_the_local_link_carries_a_file_when_it_is_named() {
    let Some((_place, lan)) = lan(&["sender", "receiver"]) else { return };
    // Those that the kernel makes itself would be there as well, later.
    ["sender", "receiver"].iter().for_each(|name| lan.set(name, "net/ipv6/conf/default/addr_gen_mode", "1"));
    lan.cable(("sender", "eth0"), ("receiver", "eth0"));
    for [sender, receiver] in [["fe80::a/64", "fe80::b/64"], ["169.254.7.1/16", "169.254.7.2/16"]] {
        lan.address("sender", "eth0", sender);
        lan.address("receiver", "eth0", receiver);
        let unnamed = lan.fairpath("receiver", &["paths"]).unwrap();
        assert!(unnamed.contains("name it with --via"), "{unnamed}");
        let named = lan.fairpath("receiver", &["paths", "--via", "eth0"]).unwrap();
        assert!(named.contains("One path can start here"), "{named}");
        let listen = ["--listen", "[fe80::b%eth0]:4433"];
        for options in [&["--via", "eth0"], &listen] {
            if receiver.starts_with("169") && *options == listen {
                continue;
            }
            let scratch = Scratch::with_tree(BYTES);
            let (mut receiver, ticket) = lan.receiver("receiver", options, &scratch);
            let mut sender = lan.sender("sender", &ticket, &[], &scratch);
            assert!(sender.end(LIMIT).success(), "{}", sender.said());
            assert!(receiver.end(LIMIT).success(), "{}", receiver.said());
            scratch.assert_arrived_identical();
        }
        lan.ip("sender", &format!("address del {sender} dev eth0"));
        lan.ip("receiver", &format!("address del {receiver} dev eth0"));
    }
}

/// QUIC needs packets of 1,200 bytes and their headers to pass. Something between the two drops them and says nothing.
#[test]
fn a_way_that_carries_only_small_packets_is_told_as_such() {
    let Some((_place, lan)) = lan(&["sender", "switch", "receiver"]) else { return };
    lan.ip("switch", "link add bridge type bridge");
    lan.ip("switch", "link set bridge up");
    for (port, host, address) in [("p0", "sender", "10.4.0.1/24"), ("p1", "receiver", "10.4.0.2/24")] {
        lan.cable((host, "eth0"), ("switch", port));
        lan.ip("switch", &format!("link set {port} master bridge"));
        lan.address(host, "eth0", address);
    }
    lan.ip("switch", "link set p0 mtu 1200");
    let scratch = Scratch::with_tree(BYTES);
    let (_receiver, ticket) = lan.receiver("receiver", &[], &scratch);
    let mut sender = lan.sender("sender", &ticket, &["--give-up-after", "0"], &scratch);
    assert_eq!(sender.end(LIMIT).code(), Some(1), "{}", sender.said());
    let said = sender.said();
    assert!(said.contains("packets of 1,200 bytes, which QUIC needs, do not pass"), "{said}");

    lan.ip("sender", "link set eth0 mtu 1200");
    let shown = lan.fairpath("sender", &["paths"]).unwrap();
    assert!(shown.contains("its MTU is 1200 bytes; QUIC needs 1228"), "{shown}");
}
