//! The file `authorized`: a line for each device, with its name, its key, what it may reach and how fast.
//!
//! ```text
//! # name   key                   what it may reach               its rate, each way
//! laptop   ed25519:1f0c…         reach=public,192.168.1.0/24     rate=20Mbit/s
//! ```

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use fairpath::Bitrate;

use crate::key::PublicKey;
use crate::reach::Reach;
use crate::store::{Store, StoreError};

/// The name of the file.
const FILE: &str = "authorized";

/// The most devices.
const DEVICES_MAX: usize = 10_000;

/// A device that may connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Its name, which no other has.
    pub name: DeviceName,
    /// Its key.
    pub key: PublicKey,
    /// The addresses that it may reach.
    pub reach: Reach,
    /// The most that all its connections carry, in each direction.
    pub rate: Option<Bitrate>,
    /// The ports of the far end that it may listen at, in ranges.
    pub listen: Vec<RangeInclusive<u16>>,
}

/// The name of a device: up to 32 letters, digits, dots, dashes and underscores.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeviceName(String);

/// A text that is no name of a device. The caller is at fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no name of a device: up to 32 letters, digits, dots, dashes and underscores are")]
pub struct BadName(String);

/// A line of the file that is not understood. The device in it may not connect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {number}: {why}")]
pub struct BadLine {
    /// Counted from 1.
    pub number: usize,
    why: String,
}

/// The devices that may connect, as the file names them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Authorized {
    /// The devices, in the order of their lines.
    pub devices: Vec<Device>,
    /// The lines that are not understood.
    pub bad: Vec<BadLine>,
}

impl Authorized {
    /// Reads a file. A line that is not understood lets nobody in.
    pub fn parse(text: &str) -> Self {
        let mut read = Self::default();
        for (number, line) in (1..).zip(text.lines().take(DEVICES_MAX)) {
            let Some(line) = content(line) else { continue };
            let bad = |why: String| BadLine { number, why };
            match line.parse::<Device>() {
                Ok(device) if read.device(&device.key).is_some() => {
                    read.bad.push(bad("another line has the same key".to_owned()));
                }
                Ok(device) if read.named(&device.name).is_some() => {
                    read.bad.push(bad(format!("another line has the name {}", device.name)));
                }
                Ok(device) => read.devices.push(device),
                Err(why) => read.bad.push(bad(why)),
            }
        }
        read
    }

    /// The device with this key.
    pub fn device(&self, key: &PublicKey) -> Option<&Device> {
        self.devices.iter().find(|device| device.key == *key)
    }

    /// The device of this name.
    pub fn named(&self, name: &DeviceName) -> Option<&Device> {
        self.devices.iter().find(|device| device.name == *name)
    }

    pub(crate) fn load(store: &Store) -> Result<Self, StoreError> {
        Ok(Self::parse(&store.text(FILE)?))
    }

    /// A mark that changes whenever the file does.
    pub(crate) fn mark(store: &Store) -> Option<(std::time::SystemTime, u64, u64)> {
        use std::os::unix::fs::MetadataExt as _;
        let metadata = std::fs::metadata(store.path(FILE)).ok()?;
        Some((metadata.modified().ok()?, metadata.len(), metadata.ino()))
    }

    /// Appends a line. The caller holds the lock.
    pub(crate) fn append(store: &Store, device: &Device) -> Result<(), StoreError> {
        let mut text = store.text(FILE)?;
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text += &format!("{device}\n");
        store.write(FILE, text.as_bytes())
    }

    /// Takes out every line that begins with this name, understood or not. False where there was none. The caller holds the
    /// lock.
    pub(crate) fn remove(store: &Store, name: &DeviceName) -> Result<bool, StoreError> {
        let text = store.text(FILE)?;
        let is_it = |line: &&str| content(line).and_then(|line| line.split_whitespace().next()) == Some(name.as_str());
        let kept: String = text.lines().filter(|line| !is_it(line)).map(|line| format!("{line}\n")).collect();
        let is_there = text.lines().any(|line| is_it(&line));
        if is_there {
            store.write(FILE, kept.as_bytes())?;
        }
        Ok(is_there)
    }
}

/// The line without its comment; `None` where nothing is left.
fn content(line: &str) -> Option<&str> {
    let line = line.split('#').next().unwrap_or_default().trim();
    (!line.is_empty()).then_some(line)
}

impl FromStr for Device {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap_or_default().parse().map_err(|error: BadName| error.to_string())?;
        let key = words.next().unwrap_or_default().parse().map_err(|error: crate::key::BadKey| error.to_string())?;
        let mut device = Self::new(name, key);
        for word in words {
            match word.split_once('=') {
                Some(("reach", reach)) => device.reach = reach.parse().map_err(|error| format!("{error}"))?,
                Some(("listen", ports)) => device.listen = listen(ports)?,
                Some(("rate", rate)) => {
                    let rate = fairpath_scenario::units::rate(rate).map_err(|error| error.to_string())?;
                    device.rate = Some(rate);
                }
                _ => {
                    let word = crate::target::shown(word);
                    return Err(format!("'{word}' is not understood: reach=…, rate=… and listen=… are"));
                }
            }
        }
        Ok(device)
    }
}

/// Ports and ranges of ports, with commas between them.
fn listen(text: &str) -> Result<Vec<RangeInclusive<u16>>, String> {
    let bad = |word: &str| format!("'{}' is no port: 8080 or 9000-9010 is right", crate::target::shown(word));
    let range = |word: &str| {
        let (first, last) = word.split_once('-').unwrap_or((word, word));
        match (first.parse(), last.parse()) {
            (Ok(first), Ok(last)) if 0 < first && first <= last => Ok(first..=last),
            _ => Err(bad(word)),
        }
    };
    text.split(',').map(range).collect()
}

impl Device {
    /// A device that reaches public addresses, as fast as it goes.
    pub(crate) fn new(name: DeviceName, key: PublicKey) -> Self {
        Self { name, key, reach: Reach::default(), rate: None, listen: Vec::new() }
    }

    /// Whether it may listen at a port of the far end.
    pub fn may_listen(&self, port: u16) -> bool {
        self.listen.iter().any(|range| range.contains(&port))
    }
}

/// Its line.
impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} reach={}", self.name, self.key, self.reach)?;
        if let Some(rate) = self.rate {
            write!(f, " rate={}bit/s", rate.as_bps())?;
        }
        let range = |range: &RangeInclusive<u16>| format!("{}-{}", range.start(), range.end());
        match self.listen.is_empty() {
            true => Ok(()),
            false => write!(f, " listen={}", self.listen.iter().map(range).collect::<Vec<_>>().join(",")),
        }
    }
}

impl DeviceName {
    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for DeviceName {
    type Err = BadName;

    fn from_str(text: &str) -> Result<Self, BadName> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        match (1..=32).contains(&text.len()) && text.bytes().all(is_allowed) && !text.starts_with('-') {
            true => Ok(Self(text.to_owned())),
            false => Err(BadName(crate::target::shown(text))),
        }
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> PublicKey {
        PublicKey([byte; PublicKey::LEN])
    }

    #[test]
    fn lines_survive_text_and_comments_do_not_count() {
        let text = format!(
            "# devices\n\nlaptop {}\nvan-1 {} rate=20Mbit/s listen=8080,9000-9010 reach=public,10.0.0.0/8  # the van\n",
            key(1),
            key(2)
        );
        let read = Authorized::parse(&text);
        assert_eq!(read.bad, []);
        assert_eq!(read.devices.len(), 2);
        let van = read.device(&key(2)).unwrap();
        assert_eq!(van.rate, Some(Bitrate::from_mbps(20)));
        assert_eq!(van.to_string().parse::<Device>().unwrap(), *van);
        assert!([8080, 9000, 9010].iter().all(|port| van.may_listen(*port)) && !van.may_listen(9011));
        assert_eq!(read.device(&key(3)), None);
    }

    #[test]
    fn a_line_that_is_not_understood_lets_nobody_in_and_is_named() {
        let lines = [
            format!("good {}", key(1)),
            "no-key".to_owned(),
            format!("fast {} rate=quick", key(2)),
            format!("wide {} reach=everywhere", key(3)),
            format!("odd {} may=all", key(4)),
            format!("twice {}", key(1)),
            format!("good {}", key(5)),
            format!("a/b {}", key(6)),
            format!("ports {} listen=0", key(7)),
        ];
        let read = Authorized::parse(&lines.join("\n"));
        assert_eq!(read.devices.len(), 1);
        let numbers: Vec<usize> = read.bad.iter().map(|bad| bad.number).collect();
        assert_eq!(numbers, [2, 3, 4, 5, 6, 7, 8, 9]);
        assert!(read.bad[1].to_string().starts_with("line 3: "), "{}", read.bad[1]);
    }

    #[test]
    fn a_device_is_taken_out_with_its_line_and_the_others_stay_as_they_were() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let before = format!("# mine\nlaptop {}   # at home\nvan {} broken\n", key(1), key(2));
        store.write(FILE, before.as_bytes()).unwrap();
        let device: Device = format!("new {}", key(3)).parse().unwrap();
        Authorized::append(&store, &device).unwrap();
        assert!(Authorized::remove(&store, &"van".parse().unwrap()).unwrap());
        assert!(!Authorized::remove(&store, &"va".parse().unwrap()).unwrap());
        let after = format!("# mine\nlaptop {}   # at home\n{device}\n", key(1));
        assert_eq!(store.text(FILE).unwrap(), after);
    }
}
