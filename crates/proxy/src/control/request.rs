//! Requests at the control socket, and the reason why one is refused.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The largest cost, as where ends are begun.
pub(super) const COST_MAX: u32 = 1_000;

/// The word for the absence of a cap.
pub(super) const NO_CAP: &str = "none";

/// The most of a value that is repeated, in characters.
const SHOWN_MAX: usize = 40;

/// A request. Paths are named by the interface or the address where they begin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "lowercase", deny_unknown_fields)]
pub enum Request {
    /// How the end is doing.
    #[serde(alias = "snapshot")]
    List,
    /// No more is sent on the path in a second, each way.
    Cap {
        /// The path.
        path: String,
        /// Such as `5Mbit/s`, or `none`.
        rate: String,
    },
    /// The path carries only what those have no room for that cost less.
    Cost {
        /// The path.
        path: String,
        /// From 0 to 1000.
        cost: u32,
    },
    /// The path carries nothing while another works.
    Park {
        /// The path.
        path: String,
    },
    /// The path is used again.
    Unpark {
        /// The path.
        path: String,
    },
    /// Data goes first over the path, and over others what it has no room for.
    Prefer {
        /// The path; `None`: no path goes first.
        path: Option<String>,
    },
}

/// The answer to a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// The terms that hold now, in words.
    Done(String),
    /// Why nothing was changed, in words.
    Error(String),
}

/// All requests, each with its keys.
const ASKS: [(&str, &[Key]); 6] = [
    ("list", &[]),
    ("cap", &[Key::Path, Key::Rate]),
    ("cost", &[Key::Path, Key::Cost]),
    ("park", &[Key::Path]),
    ("unpark", &[Key::Path]),
    ("prefer", &[Key::First]),
];

/// A key beside `ask`.
#[derive(Clone, Copy, Debug)]
enum Key {
    Path,
    /// The path that goes first, or none.
    First,
    Rate,
    Cost,
}

impl Request {
    /// Reads a line.
    ///
    /// # Errors
    ///
    /// The key, its value and what would be right, in words.
    pub(super) fn parse(line: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(line).map_err(|error| why(line).unwrap_or_else(|| error.to_string()))
    }
}

impl Key {
    fn name(self) -> &'static str {
        match self {
            Self::Path | Self::First => "path",
            Self::Rate => "rate",
            Self::Cost => "cost",
        }
    }

    /// The values that are right, with an example.
    fn right(self) -> String {
        match self {
            Self::Path => "a text such as \"wwan0\"".to_owned(),
            Self::First => "a text such as \"eth0\", or null".to_owned(),
            Self::Rate => format!("a text such as \"5Mbit/s\", or \"{NO_CAP}\""),
            Self::Cost => format!("a whole number from 0 to {COST_MAX}"),
        }
    }

    fn takes(self, value: &Value) -> bool {
        match self {
            Self::Path | Self::Rate => value.is_string(),
            Self::First => value.is_string() || value.is_null(),
            Self::Cost => value.as_u64().is_some_and(|cost| cost <= COST_MAX.into()),
        }
    }
}

/// Why a line is no request. `None`: nothing is found that is wrong.
fn why(line: &[u8]) -> Option<String> {
    let value = match serde_json::from_slice(line) {
        Ok(value) => value,
        Err(error) => return Some(format!("this is no JSON: {error}; right is {{\"ask\":\"list\"}}")),
    };
    let Value::Object(mut object) = value else {
        return Some(format!("{} is no object of JSON; right is {{\"ask\":\"list\"}}", shown(&value)));
    };
    let known = ASKS.map(|(name, _)| name).join(", ");
    let Some(ask) = object.remove("ask") else {
        return Some(format!("the key \"ask\" is missing; its value is one of {known}"));
    };
    let Some((name, keys)) = ASKS.iter().find(|(name, _)| ask == *name) else {
        return Some(format!("ask is {}, and has to be one of {known}", shown(&ask)));
    };
    wrong_key(name, keys, &object)
}

fn wrong_key(name: &str, keys: &[Key], object: &Map<String, Value>) -> Option<String> {
    for key in keys {
        match object.get(key.name()) {
            Some(value) if key.takes(value) => {}
            Some(value) => {
                return Some(format!("{name}: {} is {}, and has to be {}", key.name(), shown(value), key.right()));
            }
            None => return Some(format!("{name}: the key \"{}\" is missing: {}", key.name(), key.right())),
        }
    }
    let other = object.keys().find(|other| keys.iter().all(|key| key.name() != other.as_str()))?;
    let there = keys.iter().map(|key| key.name()).collect::<Vec<_>>().join(" and ");
    Some(format!("{name} has no key {}; there are {there}", shown(&Value::from(other.as_str()))))
}

/// A value as it was written, where it is short.
fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.chars().count() > SHOWN_MAX {
        true => text.chars().take(SHOWN_MAX).chain("…".chars()).collect(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_is_refused_is_told_with_its_key_its_value_and_what_would_be_right() {
        let long = format!(r#"{{"ask":"park","path":["{}"]}}"#, "x".repeat(300));
        for (line, words) in [
            ("park wwan0", "this is no JSON: "),
            ("[1]", "[1] is no object of JSON; right is {\"ask\":\"list\"}"),
            ("{}", "the key \"ask\" is missing; its value is one of list, cap, cost, park, unpark, prefer"),
            (r#"{"ask":7}"#, "ask is 7, and has to be one of list, cap"),
            (r#"{"ask":"stop"}"#, "ask is \"stop\", and has to be one of list, cap"),
            (
                r#"{"ask":"cap","path":"wwan0","rate":5}"#,
                "cap: rate is 5, and has to be a text such as \"5Mbit/s\", or \"none\"",
            ),
            (r#"{"ask":"cap","path":"wwan0"}"#, "cap: the key \"rate\" is missing: a text such as"),
            (
                r#"{"ask":"cost","path":"wwan0","cost":"2"}"#,
                "cost: cost is \"2\", and has to be a whole number from 0 to 1000",
            ),
            (r#"{"ask":"cost","path":"wwan0","cost":-1}"#, "cost: cost is -1, and has to be a whole number"),
            (r#"{"ask":"cost","path":"wwan0","cost":1.5}"#, "cost: cost is 1.5, and has to be a whole number"),
            (r#"{"ask":"park","path":null}"#, "park: path is null, and has to be a text such as \"wwan0\""),
            (r#"{"ask":"prefer","path":0}"#, "prefer: path is 0, and has to be a text such as \"eth0\", or null"),
            (r#"{"ask":"park","path":"wwan0","now":true}"#, "park has no key \"now\"; there are path"),
            (long.as_str(), "park: path is [\"xxxxxxxxxx"),
        ] {
            let error = Request::parse(line.as_bytes()).unwrap_err();
            assert!(error.starts_with(words) && error.len() < 200, "{line}: {error}");
        }
        assert_eq!(Request::parse(br#"{"ask":"snapshot"}"#), Ok(Request::List));
    }
}
