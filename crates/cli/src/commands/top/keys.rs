//! The keys of `top` in a terminal: a path is chosen, and what it carries is changed.

use fairpath_proxy::{PathNow, Request, Snapshot};

/// The keys, in words.
pub(super) const HELP: &str = "up, down: choose  p: park or use  f: first or not\n- + n: cap, none  < >: cost  q: end";

/// A cap begins here where nothing is carried.
const CAP_FIRST_BPS: u64 = 200_000_000;

/// The caps have these first digits, and as many zeros as there may be from 100 kbit/s to 10 Gbit/s.
const CAP_DIGITS: [u64; 3] = [1, 2, 5];
const CAP_ZEROS: std::ops::RangeInclusive<u32> = 5..=10;

/// The largest cost.
const COST_MAX: u32 = 1_000;

/// A key that means something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Up,
    Down,
    Park,
    First,
    CapLess,
    CapMore,
    NoCap,
    CostLess,
    CostMore,
    End,
}

/// The keys in what a terminal says. Arrows are three bytes of which the first is an escape; others that begin so mean nothing.
pub(super) fn read(bytes: &[u8]) -> Vec<Key> {
    let (mut rest, mut keys) = (bytes, Vec::new());
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        let key = match first {
            0x1b => {
                let length = sequence(after);
                let sequence = &after[..length];
                rest = &after[length..];
                match sequence {
                    b"[A" | b"OA" => Key::Up,
                    b"[B" | b"OB" => Key::Down,
                    _ => continue,
                }
            }
            b'k' => Key::Up,
            b'j' => Key::Down,
            b'p' => Key::Park,
            b'f' => Key::First,
            b'-' => Key::CapLess,
            b'+' | b'=' => Key::CapMore,
            b'n' => Key::NoCap,
            b'<' => Key::CostLess,
            b'>' => Key::CostMore,
            b'q' => Key::End,
            _ => continue,
        };
        keys.push(key);
    }
    keys
}

/// How many bytes behind an escape belong to it, as ECMA-48 has it.
fn sequence(after: &[u8]) -> usize {
    match after.first() {
        Some(b'[') => {
            let last = after.iter().skip(1).position(|byte| (0x40..=0x7e).contains(byte));
            last.map_or(after.len(), |last| last + 2)
        }
        Some(b'O') => after.len().min(2),
        _ => 0,
    }
}

/// The path that is chosen, by its place among all of a snapshot.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Chosen(usize);

impl Chosen {
    /// The place, where there are so many paths; `None` where there are none.
    pub(super) fn among(self, count: usize) -> Option<usize> {
        (count > 0).then(|| self.0.min(count - 1))
    }

    /// Does what a key asks: chooses another path, or asks for a change. The inner error: why there is nothing to change.
    pub(super) fn press(&mut self, key: Key, now: &Snapshot) -> Option<Result<Request, &'static str>> {
        let paths: Vec<&PathNow> = now.peers.iter().flat_map(|peer| &peer.paths).collect();
        let Some(at) = self.among(paths.len()) else { return Some(Err("there is no path to change")) };
        match key {
            Key::Up => self.0 = at.saturating_sub(1),
            Key::Down => self.0 = (at + 1).min(paths.len() - 1),
            _ => {
                self.0 = at;
                return Some(request(key, paths[at], &paths, now.preferred.as_deref()));
            }
        }
        None
    }
}

/// The change that a key asks for.
fn request(key: Key, of: &PathNow, all: &[&PathNow], preferred: Option<&str>) -> Result<Request, &'static str> {
    let path = name(of, all);
    Ok(match key {
        Key::Park if of.is_backup => Request::Unpark { path },
        Key::Park => Request::Park { path },
        Key::First if preferred.is_some_and(|first| of.begins_at(first)) => Request::Prefer { path: None },
        Key::First => Request::Prefer { path: Some(path) },
        Key::NoCap => Request::Cap { path, rate: "none".into() },
        Key::CapLess => {
            let carries = of.send_rate_bps.max(of.receive_rate_bps);
            let from = of.cap_bps.unwrap_or(if carries > 0 { carries } else { CAP_FIRST_BPS });
            let cap = caps().rev().find(|cap| *cap < from).ok_or("the cap is as low as this key goes")?;
            Request::Cap { path, rate: format!("{cap}bit/s") }
        }
        Key::CapMore => {
            let from = of.cap_bps.ok_or("it has no cap; - gives it one")?;
            let cap = caps().find(|cap| *cap > from).ok_or("the cap is as high as this key goes; n takes it away")?;
            Request::Cap { path, rate: format!("{cap}bit/s") }
        }
        Key::CostLess | Key::CostMore => {
            let is_first = preferred.map(|first| of.begins_at(first));
            // Where one goes first, all others cost one more than they were given.
            let cost = match is_first {
                Some(true) => return Err("it goes first, whatever it costs; f takes that back"),
                Some(false) => of.cost.saturating_sub(1),
                None => of.cost,
            };
            match key {
                Key::CostLess if cost == 0 => return Err("it costs nothing already"),
                Key::CostLess => Request::Cost { path, cost: cost - 1 },
                _ => Request::Cost { path, cost: (cost + 1).min(COST_MAX) },
            }
        }
        Key::Up | Key::Down | Key::End => return Err("nothing changes"),
    })
}

/// The caps that the keys go through, from the lowest.
fn caps() -> impl DoubleEndedIterator<Item = u64> {
    CAP_ZEROS.flat_map(|zeros| CAP_DIGITS.map(|digit| digit * 10_u64.pow(zeros)))
}

/// The name of a path to its end: the interface, or the address where paths of several begin there.
fn name(of: &PathNow, all: &[&PathNow]) -> String {
    let is_alone = all.iter().all(|other| other.interface != of.interface || other.local == of.local);
    match &of.local {
        Some(local) if !is_alone => local.clone(),
        _ => of.interface.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(interface: &str, local: &str) -> PathNow {
        PathNow { interface: interface.into(), local: Some(local.into()), is_open: true, ..PathNow::default() }
    }

    fn asked(key: Key, of: &PathNow, all: &[&PathNow], preferred: Option<&str>) -> String {
        serde_json::to_string(&request(key, of, all, preferred).unwrap()).unwrap()
    }

    #[test]
    fn keys_and_arrows_are_read_and_other_sequences_mean_nothing() {
        assert_eq!(read(b"jkp\x1b[A\x1bOB"), [Key::Down, Key::Up, Key::Park, Key::Up, Key::Down]);
        assert_eq!(read(b"\x1b[1;5D\x1b[15~q"), [Key::End]);
        assert_eq!(read(b"\x1b"), []);
        assert_eq!(read(b"\x1b[1;5"), [], "the rest of it is late");
        assert_eq!(read(b"xyz=+-"), [Key::CapMore, Key::CapMore, Key::CapLess]);
    }

    #[test]
    fn each_key_asks_for_the_next_step_and_a_second_press_takes_it_back() {
        let mut one = path("eth0", "192.0.2.1");
        let all = [&one.clone(), &path("wwan0", "198.51.100.1")];
        assert_eq!(asked(Key::Park, &one, &all, None), r#"{"ask":"park","path":"eth0"}"#);
        assert_eq!(asked(Key::First, &one, &all, None), r#"{"ask":"prefer","path":"eth0"}"#);
        assert_eq!(asked(Key::First, &one, &all, Some("192.0.2.1")), r#"{"ask":"prefer","path":null}"#);
        assert_eq!(asked(Key::CapLess, &one, &all, None), r#"{"ask":"cap","path":"eth0","rate":"100000000bit/s"}"#);
        one.receive_rate_bps = 18_000_000;
        assert_eq!(asked(Key::CapLess, &one, &all, None), r#"{"ask":"cap","path":"eth0","rate":"10000000bit/s"}"#);
        assert!(request(Key::CapMore, &one, &all, None).is_err());
        (one.is_backup, one.cost, one.cap_bps) = (true, 1, Some(10_000_000));
        assert_eq!(asked(Key::Park, &one, &all, None), r#"{"ask":"unpark","path":"eth0"}"#);
        assert_eq!(asked(Key::CapMore, &one, &all, None), r#"{"ask":"cap","path":"eth0","rate":"20000000bit/s"}"#);
        assert_eq!(asked(Key::NoCap, &one, &all, None), r#"{"ask":"cap","path":"eth0","rate":"none"}"#);
        assert_eq!(asked(Key::CostLess, &one, &all, None), r#"{"ask":"cost","path":"eth0","cost":0}"#);
        assert_eq!(asked(Key::CostMore, &one, &all, Some("wwan0")), r#"{"ask":"cost","path":"eth0","cost":1}"#);
        assert!(request(Key::CostMore, &one, &all, Some("eth0")).is_err(), "it costs nothing while it goes first");
    }

    #[test]
    fn a_path_is_named_by_its_address_where_two_begin_at_one_interface() {
        let (one, two) = (path("eth0", "192.0.2.1"), path("eth0", "192.0.2.2"));
        assert_eq!(asked(Key::Park, &two, &[&one, &two], None), r#"{"ask":"park","path":"192.0.2.2"}"#);
        assert_eq!(asked(Key::Park, &two, &[&two, &two.clone()], None), r#"{"ask":"park","path":"eth0"}"#);
    }
}
