//! Downloads by curl: some that are waited for, and some that go on until they are stopped.

use std::io::Read as _;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How a program leaves its namespace.
#[derive(Clone, Copy)]
pub(super) enum Way {
    /// By an interface, without a proxy.
    Direct(&'static str),
    /// Through a port that speaks SOCKS5.
    Socks(SocketAddr),
}

/// No download takes longer.
const LONGEST: Duration = Duration::from_secs(180);

/// At once to download from `web` by a way, and stopped after [`LONGEST`].
fn command(namespace: &str, way: Way) -> Command {
    let mut command = Command::new("ip");
    let longest = LONGEST.as_secs().to_string();
    command.args(["netns", "exec", namespace, "curl", "-sS", "--max-time", &longest]);
    match way {
        Way::Direct(interface) => command.args(["--interface", interface, "--noproxy", "*"]),
        Way::Socks(port) => command.args(["-x", &format!("socks5h://{port}")]),
    };
    command.stdin(Stdio::null()).stderr(Stdio::piped());
    command
}

/// Downloads `bytes` in all over so many connections at once, and gives the rate in Mbit/s over what a person waits.
pub(super) fn download(namespace: &str, way: Way, web: SocketAddr, count: u64, bytes: u64) -> Result<f64, String> {
    let each = bytes / count;
    let url = format!("http://{web}/{each}?[1-{count}]");
    let mut command = command(namespace, way);
    command.args(["-Z", "--parallel-immediate", "--parallel-max", &count.to_string(), "-o", "/dev/null"]);
    let begun = Instant::now();
    let output = command.args(["-w", "%{http_code} %{size_download}\\n", &url]).output().map_err(|e| e.to_string())?;
    let elapsed = begun.elapsed();
    let said = String::from_utf8_lossy(&output.stdout);
    let whole = said.lines().filter(|line| *line == format!("200 {each}")).count() as u64;
    if !output.status.success() || whole != count {
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(format!("curl: {}, {whole} of {count} came whole: {}", output.status, why.trim()));
    }
    Ok(crate::mbps(each * count, elapsed))
}

/// Downloads for so long over so many connections at once, and gives the rate in Mbit/s. Nobody reads what comes, which
/// would take a part of the processors.
pub(super) fn download_for(
    namespace: &str,
    way: Way,
    web: SocketAddr,
    count: u64,
    time: Duration,
) -> Result<f64, String> {
    let mut command = command(namespace, way);
    command.args(["-Z", "--parallel-immediate", "--parallel-max", &count.to_string(), "-o", "/dev/null"]);
    let (seconds, url) = (time.as_secs_f64().to_string(), format!("http://{web}/1000000000000?[1-{count}]"));
    command.args(["--max-time", &seconds, "-w", "%{size_download}\\n", &url]);
    let output = command.output().map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stdout);
    let each: Vec<u64> = said.lines().filter_map(|line| line.parse().ok()).collect();
    if each.len() as u64 != count || each.contains(&0) {
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(format!("curl: {}, {each:?} bytes came: {}", output.status, why.trim()));
    }
    Ok(crate::mbps(each.iter().sum(), time))
}

/// Downloads that go on until this is dropped.
pub(super) struct Downloads {
    each: Vec<(Child, JoinHandle<()>)>,
    seen: Arc<Vec<Seen>>,
    started: Instant,
    /// Since when standing still counts, after the start.
    since: Duration,
}

/// The bytes of one of them.
#[derive(Default)]
struct Seen {
    bytes: AtomicU64,
    /// When the last bytes came, and how long the longest wait was that ended since [`Downloads::watch`]: in nanoseconds
    /// from the start.
    last: AtomicU64,
    longest: AtomicU64,
}

impl Downloads {
    pub(super) fn start(namespace: &str, way: Way, web: SocketAddr, count: usize) -> Self {
        let (seen, started) = (Arc::new((0..count).map(|_| Seen::default()).collect::<Vec<_>>()), Instant::now());
        let one = |at: usize| {
            let mut command = command(namespace, way);
            let url = format!("http://{web}/1000000000000");
            let mut child = command.args(["-N", &url]).stdout(Stdio::piped()).spawn().expect("curl is here");
            let (mut out, seen) = (child.stdout.take().expect("it is piped"), Arc::clone(&seen));
            let reader = std::thread::spawn(move || {
                let (mut block, seen) = (vec![0; 1 << 16], &seen[at]);
                while let Ok(count @ 1..) = out.read(&mut block) {
                    let now = started.elapsed().as_nanos() as u64;
                    let waited = now - seen.last.swap(now, Ordering::Relaxed);
                    seen.longest.fetch_max(waited, Ordering::Relaxed);
                    seen.bytes.fetch_add(count as u64, Ordering::Relaxed);
                }
            });
            (child, reader)
        };
        let each = (0..count).map(one).collect();
        Self { each, seen, started, since: Duration::ZERO }
    }

    /// The bytes that have come, of all.
    pub(super) fn received(&self) -> u64 {
        self.seen.iter().map(|one| one.bytes.load(Ordering::Relaxed)).sum()
    }

    /// Waits, and gives the rate meanwhile in Mbit/s.
    pub(super) fn rate_over(&self, time: Duration) -> f64 {
        let (before, begun) = (self.received(), Instant::now());
        std::thread::sleep(time);
        crate::mbps(self.received() - before, begun.elapsed())
    }

    /// From now on counts how long each stands still.
    pub(super) fn watch(&mut self) {
        self.seen.iter().for_each(|one| one.longest.store(0, Ordering::Relaxed));
        self.since = self.started.elapsed();
    }

    /// The longest that one of them has stood still since [`watch`](Self::watch), and stands still now.
    pub(super) fn longest_stillness(&self) -> Duration {
        let now = self.started.elapsed();
        let of = |one: &Seen| {
            let last = Duration::from_nanos(one.last.load(Ordering::Relaxed)).max(self.since);
            now.saturating_sub(last).max(Duration::from_nanos(one.longest.load(Ordering::Relaxed)))
        };
        self.seen.iter().map(of).max().unwrap_or_default()
    }
}

impl Drop for Downloads {
    fn drop(&mut self) {
        for (child, _) in &mut self.each {
            let _ = child.kill();
            let _ = child.wait();
        }
        for (_, reader) in self.each.drain(..) {
            let _ = reader.join();
        }
    }
}
