//! The meaning of an examination in plain words.

use fairpath::Bitrate;

use super::{ADDS_UP, BRINGS_NOTHING, Examination, Finding, HIGH_LOSS, LONG_QUEUE, PASSED_ON, THROTTLED};

impl Examination {
    /// The meaning of the findings in plain words, the most important first.
    pub fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        let reached: Vec<&Finding> = self.interfaces.iter().filter(|one| one.unreached.is_none()).collect();
        match (reached.len(), self.interfaces.len()) {
            (0, 0) => words.push("No interface can be used: `fairpath paths` says why.".to_owned()),
            (0, _) => words.push(
                "No interface reaches the far end: see whether `fairpath serve` runs there, and whether its UDP port is open."
                    .to_owned(),
            ),
            (1, _) => words.push(format!("Only {} reaches the far end: there is nothing to bond it with.", reached[0].name)),
            _ => {}
        }
        for one in self.interfaces.iter().filter(|one| one.unreached.is_some()) {
            let why = one.unreached.as_deref().unwrap_or_default();
            let end = if why.ends_with('?') { "" } else { "." };
            words.push(format!("{} does not reach the far end: {why}{end}", one.name));
        }
        if let Some(together) = &self.together {
            for shared in &together.shared {
                words.push(format!(
                    "{} share a bottleneck on the way out: the connection took them for one during the last {:.1} s of {:.1} s{}.",
                    listed(&shared.links),
                    shared.held.as_secs_f64(),
                    shared.of.as_secs_f64(),
                    shared.confidence.map(|sure| format!(", and was {:.0} % sure in the end", sure * 100.0)).unwrap_or_default()
                ));
            }
            words.extend(sum("In", together.down, &reached, |one| one.down));
            words.extend(sum("Out", together.up, &reached, |one| one.up));
        }
        for one in &reached {
            words.extend(silent(one));
            words.extend(throttled(one));
            if one.is_one_mapping == Some(false) {
                words.push(format!(
                    "{}: a NAT on the way shows another port to each address of the far end; that harms nothing here, but games and \
                     calls outside the proxy are not reached through it.",
                    one.name
                ));
            }
        }
        for one in reached {
            if let Some((idle, loaded)) = one.rtt_idle.zip(one.rtt_loaded)
                && loaded > idle + LONG_QUEUE
            {
                let (name, idle, loaded) = (&one.name, idle.as_millis(), loaded.as_millis());
                words.push(format!(
                    "{name} has a long queue: its round trip grows from {idle} to {loaded} ms under load."
                ));
            }
            if let Some(loss) = one.loss.filter(|loss| *loss > HIGH_LOSS) {
                words.push(format!("{} loses {:.1} % of what is sent under load.", one.name, loss * 100.0));
            }
        }
        words
    }
}

/// A sentence about ports of the far end that do not answer, where others of the same host do.
fn silent(one: &Finding) -> Option<String> {
    let answers = |host| one.answers.iter().any(|(address, took)| address.ip() == host && took.is_some());
    let silent: Vec<String> = one
        .answers
        .iter()
        .filter(|(address, took)| took.is_none() && answers(address.ip()))
        .map(|(address, _)| address.to_string())
        .collect();
    (!silent.is_empty()).then(|| {
        format!(
            "{}: UDP is blocked on the way to {}; other ports of the same host answer.",
            one.name,
            silent.join(", ")
        )
    })
}

/// A sentence about ports of the far end whose rates differ by much.
fn throttled(one: &Finding) -> Option<String> {
    let (fastest, best) = one.ports.iter().max_by_key(|(_, rate)| *rate)?;
    let first = one.down?;
    let slow = one.ports.iter().filter(|(_, rate)| *rate < first.max(*best).min(PASSED_ON).scaled(THROTTLED));
    let slow: Vec<String> = slow.map(|(address, rate)| format!("{address} with {rate}")).collect();
    if first < best.scaled(THROTTLED) {
        let name = &one.name;
        return Some(format!(
            "{name}: UDP is throttled per port on the way: {first} come in from the port in use, and {best} from {fastest}."
        ));
    }
    (!slow.is_empty()).then(|| {
        format!(
            "{}: UDP is throttled on the way to {}; {first} come in from the port in use.",
            one.name,
            slow.join(", ")
        )
    })
}

/// The names as a sentence lists them.
fn listed<T: AsRef<str>>(names: &[T]) -> String {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}

/// A sentence about what all bring together in a direction.
fn sum(
    direction: &str,
    together: Bitrate,
    reached: &[&Finding],
    of: fn(&Finding) -> Option<Bitrate>,
) -> Option<String> {
    let rates: Vec<(&str, Bitrate)> = reached.iter().filter_map(|one| Some((one.name.as_str(), of(one)?))).collect();
    let (best, alone) = rates.iter().max_by_key(|(_, rate)| *rate)?;
    let sum: Bitrate = rates.iter().map(|(_, rate)| *rate).sum();
    let all = listed(&rates.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    Some(if together >= sum.scaled(ADDS_UP) && rates.len() > 1 {
        format!("{direction}: {all} add up: {together} together, and {alone} over {best}, the best alone.")
    } else if together <= alone.scaled(BRINGS_NOTHING) {
        format!(
            "{direction}: {all} bring {together} together, hardly more than {best} alone with {alone}. They end in the same \
             line, or the far end's own line is the limit; a second link brings only a spare."
        )
    } else {
        format!(
            "{direction}: {all} bring {together} together, less than their sum of {sum}; {best} alone brings {alone}."
        )
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::{Shared, Together};
    use super::*;

    fn finding(name: &str, mbps: u64) -> Finding {
        let rate = Some(Bitrate::from_mbps(mbps));
        let rtt = Some(Duration::from_millis(20));
        Finding { name: name.into(), down: rate, up: rate, rtt_idle: rtt, rtt_loaded: rtt, ..Finding::default() }
    }

    fn words(interfaces: Vec<Finding>, together: Option<u64>) -> String {
        let rate = |mbps| Bitrate::from_mbps(mbps);
        let together = together.map(|mbps| Together { down: rate(mbps), up: rate(mbps), shared: Vec::new() });
        Examination { interfaces, together, unused: Vec::new() }.words().join("\n")
    }

    #[test]
    fn links_that_add_up_and_links_that_end_in_one_are_told_apart() {
        let both = || vec![finding("eth0", 50), finding("wlan0", 40)];
        let separate = words(both(), Some(86));
        assert!(separate.contains("In: eth0 and wlan0 add up: 86.0 Mbit/s together"), "{separate}");
        let shared = words(both(), Some(50));
        assert!(shared.contains("hardly more than eth0 alone") && shared.contains("only a spare"), "{shared}");
        let three = words([both(), vec![finding("wwan0", 9)]].concat(), Some(95));
        assert!(three.contains("In: eth0, wlan0 and wwan0 add up"), "{three}");
        let between = words(both(), Some(62));
        assert!(between.contains("less than their sum of 90.0 Mbit/s"), "{between}");
    }

    #[test]
    fn a_port_that_is_blocked_is_told_from_a_host_that_is_not_reached() {
        let [one, other, elsewhere] =
            ["192.0.2.1:4433", "192.0.2.1:443", "198.51.100.1:4433"].map(|text| text.parse().unwrap());
        let answers = vec![(one, None), (other, Some(Duration::from_millis(20))), (elsewhere, None)];
        let said = words(vec![Finding { answers, ..finding("eth0", 50) }], None);
        assert!(said.contains("UDP is blocked on the way to 192.0.2.1:4433;"), "{said}");
        assert!(!said.contains("198.51.100.1"), "{said}");
    }

    #[test]
    fn a_port_that_is_throttled_is_named_with_its_rate() {
        let at = |port| std::net::SocketAddr::from(([192, 0, 2, 1], port));
        let ports = |mbps| vec![(at(443), Bitrate::from_mbps(mbps))];
        let said = |mbps| words(vec![Finding { ports: ports(mbps), ..finding("eth0", 50) }], None);
        assert!(
            said(5).contains("throttled on the way to 192.0.2.1:443 with 5.0 Mbit/s; 50.0 Mbit/s come in"),
            "{}",
            said(5)
        );
        assert!(said(200).contains("50.0 Mbit/s come in from the port in use, and 200.0 Mbit/s from 192.0.2.1:443"));
        assert!(!said(40).contains("throttled"), "{}", said(40));
    }

    #[test]
    fn a_port_that_the_far_end_passes_on_slowly_is_not_called_throttled() {
        let port = std::net::SocketAddr::from(([192, 0, 2, 1], 443));
        let said = |mbps| {
            let ports = vec![(port, Bitrate::from_mbps(mbps))];
            words(vec![Finding { ports, ..finding("eth0", 900) }], None)
        };
        assert!(!said(250).contains("throttled"), "{}", said(250));
        assert!(said(20).contains("throttled on the way to 192.0.2.1:443"), "{}", said(20));
    }

    #[test]
    fn a_shared_bottleneck_is_told_with_the_time_since_which_it_is_one() {
        let shared = Shared {
            links: vec!["eth0".into(), "wlan0".into()],
            held: Duration::from_millis(2_400),
            of: Duration::from_secs(3),
            confidence: Some(0.934),
        };
        let together = Together { shared: vec![shared], ..Together::default() };
        let examination =
            Examination { interfaces: vec![finding("eth0", 50)], together: Some(together), unused: Vec::new() };
        let said = examination.words().join("\n");
        assert!(said.contains("eth0 and wlan0 share a bottleneck on the way out"), "{said}");
        assert!(said.contains("during the last 2.4 s of 3.0 s, and was 93 % sure in the end."), "{said}");
    }

    #[test]
    fn a_link_that_reaches_nothing_or_has_a_long_queue_is_named() {
        let silent = Finding { unreached: Some("no answer".into()), ..finding("wlan0", 0) };
        let one = words(vec![finding("eth0", 50), silent.clone()], None);
        assert!(one.starts_with("Only eth0 reaches the far end") && one.contains("wlan0 does not reach"), "{one}");
        let none = words(vec![silent], None);
        assert!(none.contains("see whether `fairpath serve` runs there") && none.contains("no answer"), "{none}");
        let queue = Finding { rtt_loaded: Some(Duration::from_millis(500)), loss: Some(0.06), ..finding("wwan0", 5) };
        let long = words(vec![queue], None);
        assert!(long.contains("from 20 to 500 ms under load") && long.contains("loses 6.0 %"), "{long}");
    }
}
