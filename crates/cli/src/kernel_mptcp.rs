//! MPTCP of this machine's kernel: its endpoints, its limits, and what stands in its way.

use std::fs;
use std::process::Command;

use serde::Serialize;

/// MPTCP as the kernel and its tools tell of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct KernelMptcp {
    /// Whether programs may use it.
    pub(crate) is_enabled: bool,
    /// The endpoints, as `ip mptcp endpoint` shows them.
    pub(crate) endpoints: Vec<String>,
    /// The most subflows of a connection, and the most addresses of a peer that are accepted; `None` without `ip`.
    pub(crate) subflows_max: Option<u32>,
    pub(crate) addresses_accepted_max: Option<u32>,
    /// The connections that asked for it since the start, at both ends, and those that went on as plain TCP.
    pub(crate) asked: u64,
    pub(crate) fell_back: u64,
    /// The programs that manage its endpoints, of those that are known to.
    pub(crate) managers: Vec<String>,
}

impl KernelMptcp {
    /// Looks; `None` where the kernel does not speak it.
    pub(crate) fn look() -> Option<Self> {
        let enabled = fs::read_to_string("/proc/sys/net/mptcp/enabled").ok()?;
        let counters = fs::read_to_string("/proc/net/netstat").unwrap_or_default();
        let (subflows_max, addresses_accepted_max) = limits(&ip(&["mptcp", "limits"]));
        Some(Self {
            is_enabled: enabled.trim() == "1",
            endpoints: ip(&["mptcp", "endpoint"]).lines().map(|line| line.trim().to_owned()).collect(),
            subflows_max,
            addresses_accepted_max,
            asked: sum(&counters, &["MPCapableSYNTX", "MPCapableSYNRX"]),
            fell_back: sum(&counters, &["MPCapableFallbackACK", "MPCapableFallbackSYNACK"]),
            managers: managers(),
        })
    }

    /// The meaning in words.
    pub(crate) fn words(&self) -> Vec<String> {
        if !self.is_enabled {
            return vec!["Kernel MPTCP is switched off (net.mptcp.enabled = 0).".to_owned()];
        }
        let mut words = Vec::new();
        if self.endpoints.is_empty() {
            words.push(
                "Kernel MPTCP has no endpoints: connections of programs that ask for it use one link. \
                 `ip mptcp endpoint add ADDRESS dev LINK subflow` adds one."
                    .to_owned(),
            );
        } else {
            let (count, most) = (self.endpoints.len(), self.subflows_max);
            words.push(format!("Kernel MPTCP has {count} endpoints: {}.", self.endpoints.join("; ")));
            if let Some(most) = most.filter(|most| (*most as usize) < count) {
                words.push(format!(
                    "Its limit of {most} subflows is less than its {count} endpoints: `ip mptcp limits set subflow {count}` \
                     lets it use all."
                ));
            }
        }
        if self.managers.len() > 1 {
            words.push(format!(
                "{} both change the endpoints of kernel MPTCP: let one of them do it.",
                self.managers.join(" and ")
            ));
        }
        if self.fell_back > 0 {
            words.push(format!(
                "Of {} connections with kernel MPTCP {} went on as plain TCP: their peer, or something on the way, does not \
                 speak it.",
                self.asked, self.fell_back
            ));
        }
        words
    }
}

fn ip(words: &[&str]) -> String {
    let output = Command::new("ip").args(words).output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
}

/// The limits of `add_addr_accepted 0 subflows 2`.
fn limits(text: &str) -> (Option<u32>, Option<u32>) {
    let words: Vec<&str> = text.split_whitespace().collect();
    let after = |name: &str| words.windows(2).find(|two| two[0] == name).and_then(|two| two[1].parse().ok());
    (after("subflows"), after("add_addr_accepted"))
}

/// The sum of these counters of `/proc/net/netstat`, whose lines come in pairs of names and values.
fn sum(counters: &str, names: &[&str]) -> u64 {
    let lines: Vec<&str> = counters.lines().filter(|line| line.starts_with("MPTcpExt:")).collect();
    let [heads, values] = lines[..] else { return 0 };
    let pairs = heads.split_whitespace().zip(values.split_whitespace());
    pairs.filter(|(name, _)| names.contains(name)).filter_map(|(_, value)| value.parse::<u64>().ok()).sum()
}

/// The processes that change endpoints by themselves.
fn managers() -> Vec<String> {
    let names = fs::read_dir("/proc").into_iter().flatten().flatten();
    let names = names.filter_map(|process| fs::read_to_string(process.path().join("comm")).ok());
    let mut found: Vec<String> = names.map(|name| name.trim().to_owned()).collect();
    found.retain(|name| ["NetworkManager", "mptcpd"].contains(&name.as_str()));
    found.sort();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_and_limits_are_read_and_their_meaning_told() {
        let counters =
            "TcpExt: A B\nTcpExt: 1 2\nMPTcpExt: MPCapableSYNRX MPCapableSYNTX MPCapableFallbackACK\nMPTcpExt: 3 4 5\n";
        assert_eq!(sum(counters, &["MPCapableSYNTX", "MPCapableSYNRX"]), 7);
        assert_eq!(sum("", &["MPCapableSYNTX"]), 0);
        assert_eq!(limits("add_addr_accepted 0 subflows 2 \n"), (Some(2), Some(0)));
        assert_eq!(limits(""), (None, None));
        let mut found = KernelMptcp { is_enabled: true, subflows_max: Some(1), ..KernelMptcp::default() };
        assert!(found.words()[0].contains("no endpoints"));
        found.endpoints =
            vec!["192.0.2.1 id 1 subflow dev eth0".to_owned(), "192.0.2.9 id 2 subflow dev eth1".to_owned()];
        (found.asked, found.fell_back) = (7, 5);
        found.managers = vec!["NetworkManager".to_owned(), "mptcpd".to_owned()];
        let words = found.words().join("\n");
        assert!(words.contains("limits set subflow 2") && words.contains("Of 7 connections"), "{words}");
        assert!(words.contains("NetworkManager and mptcpd both"), "{words}");
    }
}
