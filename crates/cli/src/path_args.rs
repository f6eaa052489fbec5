//! The terms that a person gives for single paths: `--path wwan0:cost=1,cap=5Mbit/s,quota=20GB`, `--path wwan0:backup`.

use fairpath::PathTerms;
use fairpath_core::{Bitrate, ByteCount};
use fairpath_engine::{EngineConfig, NamedTerms, Terms};
use fairpath_quic::PathReport;
use fairpath_quic::interfaces::{check_names, interfaces};
use fairpath_scenario::units;

use crate::error::UsageError;

/// The word that takes no value.
const BACKUP: &str = "backup";

/// The keys, each with an example.
const KEYS: [(&str, &str); 4] = [("cost", "1"), ("weight", "2"), ("cap", "5Mbit/s"), ("quota", "20GB")];

/// The largest cost and weight, as in scenario files.
const NUMBER_MAX: u32 = 1_000;

/// The terms of paths.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct PathArgs {
    /// Terms of the paths of an interface or address, such as `wwan0:cost=1,cap=5Mbit/s,quota=20GB`; may be given several
    /// times. `backup`: data only where all other paths fail. `cost`: only what cheaper paths have no room for. `weight`: a
    /// share, with `--scheduler weighted`. `cap`: no more than this rate each way. `quota`: no more than this size in a
    /// calendar month (UTC), both ways and all runs together; then the interface's paths are closed
    #[arg(long, value_name = "IF:KEY=VALUE,...", value_parser = said)]
    path: Vec<Said>,
}

/// The terms of the paths of one interface or address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    /// The interface or address.
    pub(crate) of: String,
    /// As it was given.
    text: String,
    backup: bool,
    cost: Option<u32>,
    weight: Option<u32>,
    cap: Option<Bitrate>,
    /// The most that may go over the interface in a month.
    pub(crate) quota: Option<ByteCount>,
}

impl Said {
    fn terms(&self) -> Terms {
        let default = Terms::default();
        // The quota is one of both ways and of all runs of a month: not the engine counts it.
        let weight = self.weight.unwrap_or(default.weight);
        Terms { weight, cost: self.cost(), backup: self.backup, cap: self.cap, ..default }
    }

    /// Whether the path is used only where all others fail.
    pub(crate) fn is_backup(&self) -> bool {
        self.backup
    }

    /// The cost of using the path.
    pub(crate) fn cost(&self) -> u32 {
        self.cost.unwrap_or(Terms::default().cost)
    }

    /// The most that may be sent on it in a second.
    pub(crate) fn cap(&self) -> Option<Bitrate> {
        self.cap
    }

    /// Whether it is said of this path.
    pub(crate) fn is_of(&self, path: &PathReport) -> bool {
        self.of == path.interface || path.address().is_some_and(|local| local.to_string() == self.of)
    }
}

impl PathArgs {
    /// The terms of each interface, for an end of the library.
    pub(crate) fn library_terms(&self) -> Vec<(String, PathTerms)> {
        let terms = |said: &Said| {
            let terms = PathTerms::new().cost(said.cost()).backup(said.backup);
            (said.of.clone(), said.cap.map_or(terms, |cap| terms.cap(cap)))
        };
        self.path.iter().map(terms).collect()
    }

    /// All of it.
    pub(crate) fn all(&self) -> &[Said] {
        &self.path
    }

    /// The terms of each interface, for the engine.
    pub(crate) fn terms(&self) -> Vec<NamedTerms> {
        self.path.iter().map(|said| NamedTerms { of: said.of.clone(), terms: said.terms() }).collect()
    }

    /// Refuses interfaces that are not there, and what would have no effect: that is not what was meant.
    pub(crate) fn check(&self, scheduler: &str) -> anyhow::Result<()> {
        if !self.path.is_empty() {
            let names: Vec<String> = self.path.iter().map(|said| said.of.clone()).collect();
            check_names(&names, &interfaces(&[])?).map_err(|unknown| UsageError(format!("--path: {unknown}")))?;
        }
        Ok(self.check_effects(scheduler)?)
    }

    fn check_effects(&self, scheduler: &str) -> Result<(), UsageError> {
        for (at, said) in self.path.iter().enumerate() {
            if self.path[..at].iter().any(|other| other.of == said.of) {
                let of = &said.of;
                return Err(UsageError(format!("--path names {of} twice; write what is said of it as one list")));
            }
            let without_effect = |key: &str, right: &str| {
                let text = &said.text;
                UsageError(format!("{key} in --path {text} has no effect with --scheduler {scheduler}; add {right}"))
            };
            if said.weight.is_some() && scheduler != "weighted" {
                return Err(without_effect("weight", "--scheduler weighted"));
            }
            if said.cost.is_some() && !EngineConfig::goes_by_costs(scheduler) {
                let by_costs =
                    EngineConfig::SCHEDULERS.iter().copied().filter(|name| EngineConfig::goes_by_costs(name));
                let right = format!("--scheduler {}", by_costs.collect::<Vec<_>>().join(" or "));
                return Err(without_effect("cost", &right));
            }
        }
        Ok(())
    }

    /// Refuses what a scheduler would go by, of which live flows have none.
    pub(crate) fn check_live_flows(&self) -> Result<(), UsageError> {
        match self.path.iter().find(|said| said.weight.is_some()) {
            Some(said) => Err(UsageError(format!(
                "weight in --path {} has no effect on live flows; cost and cap have",
                said.text
            ))),
            None => Ok(()),
        }
    }

    /// Refuses what the other end is not told, at an end that receives and sends next to nothing.
    pub(crate) fn check_receiving(&self) -> Result<(), UsageError> {
        match self.path.iter().find(|said| said.weight.is_some()) {
            Some(said) => Err(UsageError(format!(
                "weight in --path {} says what is sent, and this end receives; give it to the end that sends \
                 (backup, cost, cap and quota count both ways, and can be given here)",
                said.text
            ))),
            None => Ok(()),
        }
    }
}

/// Reads what is said of the paths of one interface.
fn said(text: &str) -> Result<Said, String> {
    const RIGHT: &str = "an interface and what is said of it are needed, such as wwan0:cost=1,cap=5Mbit/s,quota=20GB";
    // An IPv6 address has colons of its own.
    let keys_end = text.find('=').unwrap_or(text.len());
    let colon = text[..keys_end].rfind(':').ok_or(RIGHT)?;
    let (of, list) = (text[..colon].trim(), &text[colon + 1..]);
    if of.is_empty() || list.trim().is_empty() {
        return Err(RIGHT.into());
    }
    let (of, text) = (of.to_owned(), text.to_owned());
    let mut said = Said { of, text, backup: false, cost: None, weight: None, cap: None, quota: None };
    for part in list.split(',') {
        if part.trim() == BACKUP {
            if std::mem::replace(&mut said.backup, true) {
                return Err("backup is given twice".into());
            }
            continue;
        }
        let Some((key, value)) = part.split_once('=') else {
            return Err(format!("{:?} is no KEY=VALUE; {}", part.trim(), keys()));
        };
        let (key, value) = (key.trim(), value.trim());
        let is_first = match key {
            "cost" => said.cost.replace(number(key, value, 0)?).is_none(),
            "weight" => said.weight.replace(number(key, value, 1)?).is_none(),
            "cap" => {
                let cap = units::rate(value).map_err(|error| format!("cap: {error}"))?;
                if cap.as_bps() == 0 {
                    return Err(format!("a cap of {value:?} lets nothing through; leave the interface out with --via"));
                }
                said.cap.replace(cap).is_none()
            }
            "quota" => {
                let quota = units::size(value).map_err(|error| format!("quota: {error}"))?;
                if quota == ByteCount::ZERO {
                    return Err(format!("a quota of {value:?} is always used up; leave the interface out with --via"));
                }
                said.quota.replace(quota).is_none()
            }
            _ => return Err(format!("there is no key {key:?}; {}", keys())),
        };
        if !is_first {
            return Err(format!("{key} is given twice"));
        }
    }
    Ok(said)
}

fn keys() -> String {
    let keys = KEYS.map(|(key, example)| format!("{key}={example}"));
    format!("what can be said is like {},{BACKUP}", keys.join(","))
}

fn number(key: &str, value: &str, least: u32) -> Result<u32, String> {
    let number = value.parse().ok().filter(|number| (least..=NUMBER_MAX).contains(number));
    number.ok_or_else(|| format!("{key}: {value:?} is no whole number from {least} to {NUMBER_MAX}"))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn said(text: &str) -> Said {
        super::said(text).unwrap()
    }

    #[test]
    fn what_is_said_of_a_path_is_read_in_any_order() {
        let all = said("wwan0:quota=20GB,cap=5Mbit/s, weight=2,cost=1");
        assert_eq!(all.terms(), Terms { weight: 2, cost: 1, cap: Some(Bitrate::from_mbps(5)), ..Terms::default() });
        assert_eq!((all.of.as_str(), all.quota), ("wwan0", Some(ByteCount::new(20_000_000_000))));
        let little = said("lo:127.0.1.1:cost=3");
        assert_eq!((little.of.as_str(), little.terms()), ("lo:127.0.1.1", Terms { cost: 3, ..Terms::default() }));
        assert_eq!(said("2001:db8::1:cap=1kbit/s").of, "2001:db8::1");
        for (text, of) in [("wwan0:backup", "wwan0"), ("2001:db8::1:backup,cap=1kbit/s", "2001:db8::1")] {
            let said = said(text);
            assert_eq!((said.of.as_str(), said.terms().backup), (of, true), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_meant_is_told_with_what_would_be_right() {
        for (text, words) in [
            ("wwan0", "such as wwan0:cost=1"),
            ("cost=1", "such as wwan0:cost=1"),
            (":cost=1", "such as wwan0:cost=1"),
            ("wwan0:cost=1,cap", "\"cap\" is no KEY=VALUE"),
            ("wwan0:coast=1", "there is no key \"coast\"; what can be said is like cost=1,weight=2"),
            ("wwan0:cost=-1", "cost: \"-1\" is no whole number from 0 to 1000"),
            ("wwan0:weight=0", "weight: \"0\" is no whole number from 1 to 1000"),
            ("wwan0:cap=5", "cap: \"5\" has no unit; write a rate like \"30Mbit/s\""),
            ("wwan0:cap=0Mbit/s", "lets nothing through"),
            ("wwan0:quota=20Gbit", "quota: \"Gbit\" in \"20Gbit\" is no unit of a size"),
            ("wwan0:quota=0GB", "always used up"),
            ("wwan0:cost=1,cost=2", "cost is given twice"),
            ("wwan0:backup,backup", "backup is given twice"),
            (
                "wwan0:backup=1",
                "there is no key \"backup\"; what can be said is like cost=1,weight=2,cap=5Mbit/s,quota=20GB,backup",
            ),
            ("wwan0:", "such as wwan0:cost=1"),
        ] {
            let error = super::said(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn what_would_have_no_effect_is_refused() {
        let of = |texts: &[&str]| PathArgs { path: texts.iter().map(|text| said(text)).collect() };
        assert!(of(&["a:cost=1,cap=1Mbit/s", "b:quota=1GB"]).check_effects("arrival").is_ok());
        let refused = of(&["a:weight=2"]).check_effects("arrival").unwrap_err().to_string();
        assert!(
            refused.contains("weight in --path a:weight=2") && refused.contains("--scheduler weighted"),
            "{refused}"
        );
        assert!(of(&["a:cost=2"]).check_effects("min_rtt").is_err());
        assert!(
            of(&["a:cost=2", "a:cap=1Mbit/s"]).check_effects("arrival").unwrap_err().to_string().contains("a twice")
        );
        assert!(of(&["a:quota=2GB,cost=1,cap=1Mbit/s", "b:backup"]).check_receiving().is_ok());
        let refused = of(&["a:weight=2"]).check_receiving().unwrap_err().to_string();
        assert!(refused.contains("weight in --path a:weight=2"), "{refused}");
    }
}
