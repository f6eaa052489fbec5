//! `fairpath serve` and `fairpath proxy` with curl: over two links of which one fails meanwhile, and by rules of the system.

use std::fs;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use crate::bond::{Bond, PATIENCE, bytes};
use crate::network::{End, Family, TWINS, run};
use crate::transfer::{Process, Scratch};
use crate::{mbps, network, say};

#[test]
fn curl_downloads_and_uploads_over_both_links_while_one_goes_down_and_comes_back() {
    const DOWN: usize = 12_000_000;
    const UP: usize = 4_000_000;
    let Some(mut bond) = Bond::new() else { return };
    let [one, two] = TWINS;
    let file = bond.scratch.path().join("file");
    let web = bond.web;
    let begun = Instant::now();
    let mut curl = bond.curl(&["-o", &file.display().to_string(), &format!("http://{web}/{DOWN}")]);
    // A quarter is there: the windows have grown.
    while fs::metadata(&file).map_or(0, |file| file.len()) < DOWN as u64 / 4 {
        assert!(begun.elapsed() < PATIENCE && curl.try_wait().unwrap().is_none(), "{}", bond.proxy.said());
        std::thread::sleep(Duration::from_millis(20));
    }
    bond.network.set_link(&two, End::Sender, "down");
    std::thread::sleep(Duration::from_secs(1));
    bond.network.set_link(&two, End::Sender, "up");
    let done = curl.wait_with_output().unwrap();
    let elapsed = begun.elapsed();
    assert!(done.status.success(), "{}\n{}", String::from_utf8_lossy(&done.stderr), bond.proxy.said());
    assert!(fs::read(&file).unwrap() == bytes(DOWN), "another file than the one that was sent");
    let goodput = mbps(DOWN as u64, elapsed);
    say(&format!("curl over two links of {} Mbit/s, one cut for a second: {goodput:.1} Mbit/s", one.mbit));
    assert!(goodput > one.mbit as f64, "{goodput:.1} Mbit/s is less than one link alone carries");

    fs::write(&file, bytes(UP)).unwrap();
    let begun = Instant::now();
    let done = bond.curl(&["-T", &file.display().to_string(), &format!("http://{web}/")]).wait_with_output().unwrap();
    let answered = String::from_utf8_lossy(&done.stdout).into_owned();
    assert_eq!(answered, format!("{UP} true"), "{}", String::from_utf8_lossy(&done.stderr));
    say(&format!("an upload meanwhile back on both: {:.1} Mbit/s", mbps(UP as u64, begun.elapsed())));
    bond.proxy.signal("TERM");
    assert!(bond.proxy.end(PATIENCE).success());
}

#[test]
fn a_backup_is_spared_by_downloads_until_the_other_link_fails() {
    const DOWN: usize = 3_000_000;
    let [one, two] = TWINS;
    let backup = format!("{}:backup", two.name);
    let Some(bond) = Bond::with(&["--path", &backup], Ipv4Addr::LOCALHOST) else { return };
    let url = format!("http://{}/{DOWN}", bond.web);
    let download = || {
        let before = bond.network.carried_to(&two, End::Sender);
        let done = bond.curl(&["-o", "/dev/null", "--max-time", "20", &url]).wait_with_output().unwrap();
        assert!(done.status.success(), "{}\n{}", String::from_utf8_lossy(&done.stderr), bond.proxy.said());
        bond.network.carried_to(&two, End::Sender) - before
    };
    let spared = download();
    assert!(spared < DOWN as u64 / 20, "{spared} bytes over the backup");
    // Both ends say so, and why.
    let words = ["data was to be kept off it", "the peer keeps data off it"];
    for ((end, state), why) in [(End::Sender, "near"), (End::Receiver, "far")].into_iter().zip(words) {
        let state = bond.scratch.path().join(state).display().to_string();
        let top = [env!("CARGO_BIN_EXE_fairpath"), "top", "--once", "--state", &state];
        let shown = run(&[&["ip", "netns", "exec", bond.network.name(end)][..], &top].concat()).unwrap();
        assert_eq!(shown.matches(&format!("a backup: {why}")).count(), 1, "{shown}");
    }
    bond.network.set_link(&one, End::Sender, "down");
    let needed = download();
    assert!(needed >= DOWN as u64, "{needed} bytes over the only link");
}

/// A public address, which the far machine has and to which the near one has a route.
const PUBLIC: Ipv4Addr = Ipv4Addr::new(11, 0, 0, 1);

#[test]
fn every_program_is_carried_by_rules_which_are_put_back_after_a_kill_too() {
    if run(&["nft", "--version"]).is_err() {
        say("a test of rules: skipped, there is no `nft` here");
        return;
    }
    let Some(mut bond) = Bond::with(&["--transparent", "--lockdown"], PUBLIC) else { return };
    bond.network.ip(End::Sender, &format!("route add {PUBLIC}/32 via 10.77.1.2 dev {}", TWINS[0].name));
    let near = bond.network.name(End::Sender).to_owned();
    let inside = |words: &[&str]| run(&[&["ip", "netns", "exec", near.as_str()], words].concat());
    let url = format!("http://{}/1000000", bond.web);
    let plain = ["curl", "-sS", "--max-time", "10", "-o", "/dev/null", "-w", "%{http_code} %{size_download}", &url];
    assert_eq!(inside(&plain).unwrap(), "200 1000000");
    // Questions for names do not leave to the own network.
    let send = |to: &str| inside(&["bash", "-c", &format!("echo x > /dev/udp/{to}")]);
    assert!(send("10.77.1.2/853").is_err() && send("10.77.1.2/9999").is_ok());
    // A proxy that is killed leaves everything shut.
    bond.proxy.signal("KILL");
    bond.proxy.end(PATIENCE);
    assert!(inside(&plain).is_err() && inside(&["nft", "list", "tables"]).unwrap().contains("fairpath_proxy"));
    let (program, state) = (env!("CARGO_BIN_EXE_fairpath"), bond.scratch.path().join("near").display().to_string());
    inside(&[program, "proxy", "--undo", "--state", &state]).unwrap();
    assert_eq!(inside(&["nft", "list", "tables"]).unwrap().trim(), "");
    // One that is asked to end puts them back by itself.
    let mut again = Process::start(&near, &["proxy", "--transparent", "--state", &state], &bond.scratch.path());
    again.until("the rules are there", PATIENCE, |_| {
        inside(&["nft", "list", "tables"]).unwrap().contains("fairpath_proxy")
    });
    again.signal("TERM");
    assert!(again.end(PATIENCE).success());
    assert_eq!(inside(&["nft", "list", "tables"]).unwrap().trim(), "");
}

#[test]
fn a_far_end_says_why_its_further_ports_do_not_answer() {
    let Some((_place, network)) = network(Family::V4, TWINS) else { return };
    let scratch = Scratch::with_tree(0);
    let state = scratch.path().join("far").display().to_string();
    let words = ["serve", "--state", &state, "--listen", "0.0.0.0:4433", "--listen", "0.0.0.0:4434"];
    let start = || Process::start(network.name(End::Receiver), &words, &scratch.path());
    let mut serve = start();
    serve.until("it says so", PATIENCE, |serve| serve.said().contains("`ip link set lo up` puts it right"));
    serve.signal("TERM");
    assert!(serve.end(PATIENCE).success());
    network.ip(End::Receiver, "link set lo up");
    let mut serve = start();
    serve.until("it serves", PATIENCE, |serve| serve.said().contains("serving at"));
    std::thread::sleep(Duration::from_millis(1_500));
    assert!(!serve.said().contains("loopback"), "{}", serve.said());
}
