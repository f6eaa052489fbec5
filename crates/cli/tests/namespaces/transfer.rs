//! A directory tree, and the two processes that carry it from one namespace to the other.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::network::{End, Network};

/// How long anything but the transfer itself may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// A directory with what is sent in `from/tree`; it disappears in the end.
pub(crate) struct Scratch {
    path: PathBuf,
    bytes: u64,
}

impl Scratch {
    /// A tree of `bytes`: a large file, a middle one, many small ones, an empty one.
    pub(crate) fn with_tree(bytes: u64) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = memory().join(format!("fairpath-namespaces-{process}-{count}"));
        let scratch = Self { path, bytes };
        let tree = scratch.path.join("from/tree");
        fs::create_dir_all(tree.join("deep/er")).unwrap();
        fs::create_dir_all(scratch.path.join("to")).unwrap();
        let (small, middle) = (bytes / 1000, bytes * 3 / 10);
        let mut rest = bytes;
        let mut add = |name: &str, length: u64| {
            fs::write(tree.join(name), noise(rest, length)).unwrap();
            rest -= length;
        };
        (0..50).for_each(|at| add(&format!("deep/er/small-{at}"), small));
        add("deep/middle", middle);
        add("empty", 0);
        add("large", bytes - 50 * small - middle);
        scratch
    }

    /// Where it is.
    pub(crate) fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// How much there is to send.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Notes how much went over an interface of one end in this month, in the state of `send` or `recv`.
    pub(crate) fn note_used(&self, command: &str, interface: &str, bytes: u64) {
        let state = self.path.join(format!("state-{command}/fairpath"));
        fs::create_dir_all(&state).unwrap();
        // A month that is still to come counts as this one.
        let counts = format!("{{\"month\":\"9999-12\",\"bytes\":{{\"{interface}\":{bytes}}}}}");
        fs::write(state.join("quota.json"), counts).unwrap();
    }

    /// Empties the receiver's directory.
    pub(crate) fn forget_what_arrived(&self) {
        let to = self.path.join("to");
        fs::remove_dir_all(&to).unwrap();
        fs::create_dir_all(&to).unwrap();
    }

    pub(crate) fn assert_arrived_identical(&self) {
        let (sent, received) = (hashes(&self.path.join("from")), hashes(&self.path.join("to")));
        assert_eq!(sent.len(), 53, "the tree is not what it was made as");
        assert_eq!(sent, received);
    }
}

/// The room that is needed in memory: two of the largest trees at a time, sent and received.
const ROOM: u64 = 2_000_000_000;

/// A directory in memory, where there is one with room. These tests measure links: a receiver syncs what it writes, and
/// a disk to which a build has just written may keep it waiting for seconds.
fn memory() -> PathBuf {
    let shared = Path::new("/dev/shm");
    match rustix::fs::statvfs(shared) {
        Ok(system) if system.f_bavail * system.f_frsize >= ROOM => shared.to_owned(),
        _ => std::env::temp_dir(),
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// The sender and the receiver at work.
pub(crate) struct Transfer {
    pub(crate) sender: Process,
    pub(crate) receiver: Process,
    since: Instant,
}

/// How a transfer ended.
pub(crate) struct Ended {
    pub(crate) sender: ExitStatus,
    pub(crate) receiver: ExitStatus,
    pub(crate) sender_said: String,
    pub(crate) receiver_said: String,
    /// From the start of the sender's process to its end: what a person waits.
    pub(crate) elapsed: Duration,
}

impl Transfer {
    pub(crate) fn start(network: &Network, scratch: &Scratch) -> Self {
        Self::start_with(network, scratch, &[])
    }

    /// With more options for the sender.
    pub(crate) fn start_with(network: &Network, scratch: &Scratch, options: &[&str]) -> Self {
        Self::start_both(network, scratch, options, &[])
    }

    /// With more options for both.
    pub(crate) fn start_both(network: &Network, scratch: &Scratch, options: &[&str], receiver: &[&str]) -> Self {
        let path = |name: &str| scratch.path.join(name).display().to_string();
        let to = path("to");
        let arguments = [&["recv", "--dir", &to], receiver].concat();
        let mut receiver = Process::start(network.name(End::Receiver), &arguments, &scratch.path);
        receiver.until("a ticket", PATIENCE, |receiver| receiver.printed().ends_with('\n'));
        let ticket = receiver.printed().trim_end().to_owned();
        let since = Instant::now();
        let tree = path("from/tree");
        let arguments = [&["send", &tree, &ticket], options].concat();
        let sender = Process::start(network.name(End::Sender), &arguments, &scratch.path);
        Self { sender, receiver, since }
    }

    /// Waits for something that happens while the transfer runs.
    pub(crate) fn until(&mut self, what: &str, mut is_so: impl FnMut() -> bool) {
        self.sender.until(what, PATIENCE, |_| is_so());
    }

    /// Waits for the end of the sender; a receiver that waits for another is stopped.
    pub(crate) fn end_sender(mut self, limit: Duration) -> Ended {
        let sender = self.sender.end(limit.saturating_sub(self.since.elapsed()));
        let elapsed = self.since.elapsed();
        if !sender.success() {
            self.receiver.signal("INT");
        }
        let receiver = self.receiver.end(PATIENCE);
        Ended { sender, receiver, sender_said: self.sender.said(), receiver_said: self.receiver.said(), elapsed }
    }

    /// Waits for the end.
    pub(crate) fn end(mut self, limit: Duration) -> Ended {
        let sender = self.sender.end(limit.saturating_sub(self.since.elapsed()));
        let elapsed = self.since.elapsed();
        let receiver = self.receiver.end(PATIENCE);
        Ended { sender, receiver, sender_said: self.sender.said(), receiver_said: self.receiver.said(), elapsed }
    }
}

impl Ended {
    pub(crate) fn assert_success(&self) {
        assert!(self.sender.success(), "{}: {}", self.sender, self.sender_said);
        assert!(self.receiver.success(), "{}: {}", self.receiver, self.receiver_said);
    }
}

/// `fairpath` in a namespace, killed when it is dropped. What it says goes to files, so that no full
/// pipe can hold it.
pub(crate) struct Process {
    /// `ip netns exec` becomes the program it starts: this is `fairpath` itself.
    child: Child,
    printed: PathBuf,
    said: PathBuf,
}

impl Process {
    /// In the namespace of this name; what it says goes to files in `directory`.
    pub(crate) fn start(namespace: &str, arguments: &[&str], directory: &Path) -> Self {
        let state = directory.join(format!("state-{}", arguments[0]));
        Self::start_with_state(namespace, arguments, directory, &state)
    }

    /// With its state in this directory.
    pub(crate) fn start_with_state(namespace: &str, arguments: &[&str], directory: &Path, state: &Path) -> Self {
        let printed = directory.join(format!("{}.out", arguments[0]));
        let said = directory.join(format!("{}.err", arguments[0]));
        let child = Command::new("ip")
            .args(["netns", "exec", namespace, env!("CARGO_BIN_EXE_fairpath")])
            .args(arguments)
            .env("XDG_STATE_HOME", state)
            .stdout(File::create(&printed).unwrap())
            .stderr(File::create(&said).unwrap())
            .spawn()
            .unwrap();
        Self { child, printed, said }
    }

    pub(crate) fn printed(&self) -> String {
        fs::read_to_string(&self.printed).unwrap()
    }

    pub(crate) fn said(&self) -> String {
        fs::read_to_string(&self.said).unwrap()
    }

    /// The memory that it has in use.
    pub(crate) fn resident_bytes(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it runs");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
    }

    /// The processor time that it has taken, in seconds.
    pub(crate) fn processor_seconds(&self) -> f64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        // Behind the name, which may have spaces. The kernel counts in hundredths.
        let fields = stat.rsplit_once(") ").expect("a name").1.split(' ');
        fields.skip(11).take(2).map(|ticks| ticks.parse::<f64>().expect("a number")).sum::<f64>() / 100.0
    }

    /// Sends the process a signal, by its name without "SIG".
    pub(crate) fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args(["-s", signal, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success(), "no such process: {}", self.child.id());
    }

    /// Waits for something that happens while the process runs.
    pub(crate) fn until(&mut self, what: &str, limit: Duration, mut is_so: impl FnMut(&Self) -> bool) {
        let deadline = Instant::now() + limit;
        while !is_so(self) {
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "ended before {what}: {}", self.said());
            assert!(Instant::now() < deadline, "not within {limit:?}: {what}: {}", self.said());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    pub(crate) fn end(&mut self, limit: Duration) -> ExitStatus {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < deadline, "has not ended: {}", self.said());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `length` bytes that no compression or accident makes equal to others: splitmix64 from `seed`.
fn noise(seed: u64, length: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0xd134_2543_de82_ef95);
    let mut words = std::iter::repeat_with(|| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    });
    let mut bytes = Vec::with_capacity(length as usize + 8);
    while (bytes.len() as u64) < length {
        bytes.extend(words.next().unwrap_or_default().to_le_bytes());
    }
    bytes.truncate(length as usize);
    bytes
}

/// The hash of every file below `root`, by its path from there.
fn hashes(root: &Path) -> BTreeMap<PathBuf, blake3::Hash> {
    let mut found = BTreeMap::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for item in fs::read_dir(directory).unwrap() {
            let path = item.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else {
                let hash = blake3::hash(&fs::read(&path).unwrap());
                found.insert(path.strip_prefix(root).unwrap().to_owned(), hash);
            }
        }
    }
    found
}
