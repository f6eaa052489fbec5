//! What both ends of a transfer show: a bar or plain lines on standard error, and the summary.

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fairpath_core::{Bitrate, Bytes};
use fairpath_quic::{Coupling, EngineConfig, PathReport, PathState};
use fairpath_transfer::{Phase, Progress, ProgressSnapshot};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use crate::error::UsageError;

/// How often a bar moves.
pub(crate) const TICK: Duration = Duration::from_millis(200);
/// How often a line is written where there is no terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(2);

/// The options of the engine.
#[derive(Debug, clap::Args)]
pub(crate) struct EngineArgs {
    /// Congestion control: olia, lia, reno or cubic.
    #[arg(long, value_name = "NAME")]
    congestion: Option<String>,
    /// Whether the paths are coupled: always (fair on a shared bottleneck) or never.
    #[arg(long, value_name = "WHEN")]
    coupling: Option<String>,
    /// Which path carries the next packet: min_rtt or round_robin.
    #[arg(long, value_name = "NAME")]
    scheduler: Option<String>,
}

impl EngineArgs {
    /// The configuration, with every name checked.
    pub(crate) fn config(&self) -> Result<EngineConfig, UsageError> {
        let mut config = EngineConfig::default();
        if let Some(name) = &self.congestion {
            config.congestion.clone_from(name);
        }
        if let Some(name) = &self.scheduler {
            config.scheduler.clone_from(name);
        }
        if let Some(when) = &self.coupling {
            config.coupling = when.parse::<Coupling>().map_err(|error| UsageError(error.to_string()))?;
        }
        config.build().map_err(|error| UsageError(error.to_string()))?;
        Ok(config)
    }
}

/// An error of the transport, told as a usage error where the caller is at fault.
pub(crate) fn transport_error(error: fairpath_quic::Error) -> anyhow::Error {
    match error.is_usage() {
        true => UsageError(error.to_string()).into(),
        false => error.into(),
    }
}

/// Which way the data go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Role {
    Send,
    Receive,
}

impl Role {
    fn rate(self, path: &PathReport) -> Bitrate {
        match self {
            Self::Send => path.send_rate,
            Self::Receive => path.receive_rate,
        }
    }

    fn bytes(self, path: &PathReport) -> Bytes {
        match self {
            Self::Send => path.acked,
            Self::Receive => path.received,
        }
    }
}

/// The progress of a transfer on standard error.
pub(crate) struct View {
    role: Role,
    progress: Arc<Progress>,
    bar: ProgressBar,
    /// Plain lines instead of the bar.
    is_plain: bool,
    is_quiet: bool,
    last_line: Instant,
    /// When data began to flow, and how much was there then.
    flowing: Option<(Instant, Bytes)>,
}

impl View {
    pub(crate) fn new(role: Role, progress: Arc<Progress>, is_quiet: bool) -> Self {
        let is_plain = !std::io::stderr().is_terminal();
        let target = if is_plain || is_quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(Some(0), target);
        let style = ProgressStyle::with_template("{wide_bar} {percent:>3} % {msg}");
        bar.set_style(style.expect("a template without mistakes"));
        Self { role, progress, bar, is_plain, is_quiet, last_line: Instant::now(), flowing: None }
    }

    /// One line that stays, above the bar.
    pub(crate) fn line(&self, text: &str) {
        if !self.is_quiet {
            self.bar.suspend(|| eprintln!("{text}"));
        }
    }

    /// Shows how far the transfer is.
    pub(crate) fn tick(&mut self, paths: &[PathReport]) {
        let now = self.progress.snapshot();
        if now.phase != Phase::Transferring {
            self.flowing = None;
            return;
        }
        let (since, before) = *self.flowing.get_or_insert((Instant::now(), now.bytes_done));
        let text = self.describe(&now, paths, eta(&now, since.elapsed(), before));
        if !self.is_plain {
            self.bar.set_length(now.bytes_total.get());
            self.bar.set_position(now.bytes_done.get());
            self.bar.set_message(text);
        } else if !self.is_quiet && self.last_line.elapsed() >= LINE_INTERVAL {
            self.last_line = Instant::now();
            let percent = now.bytes_done.get() * 100 / now.bytes_total.get().max(1);
            eprintln!("{percent} % {text}");
        }
    }

    /// Removes the bar.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }

    fn describe(&self, now: &ProgressSnapshot, paths: &[PathReport], eta: Option<Duration>) -> String {
        let mut text =
            format!("{} of {}, file {} of {}", now.bytes_done, now.bytes_total, now.files_done, now.files_total);
        let works = |path: &&PathReport| matches!(path.state, PathState::Open | PathState::Suspected);
        for path in paths.iter().filter(works) {
            text += &format!(" | {} {}", path.interface, self.role.rate(path));
        }
        match eta {
            Some(eta) => text + &format!(" | {} left", clock(eta)),
            None => text,
        }
    }
}

/// The time left at the mean rate so far.
fn eta(now: &ProgressSnapshot, elapsed: Duration, before: Bytes) -> Option<Duration> {
    let rate = now.bytes_done.saturating_sub(before).per(elapsed).filter(|rate| *rate > Bitrate::ZERO)?;
    Some(now.bytes_total.saturating_sub(now.bytes_done) / rate)
}

fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{}:{:02} min", seconds / 60, seconds % 60),
        _ => format!("{}:{:02} h", seconds / 3600, seconds / 60 % 60),
    }
}

/// What a transfer did.
#[derive(Debug, Serialize)]
pub(crate) struct Summary {
    pub(crate) role: Role,
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    /// What the receiver had before.
    pub(crate) resumed_bytes: u64,
    pub(crate) seconds: f64,
    /// The mean rate of what was not there before.
    pub(crate) rate_bps: u64,
    pub(crate) paths: Vec<PathSummary>,
    /// What happened to the paths, in plain words.
    pub(crate) notices: Vec<String>,
}

/// What one interface pair carried.
#[derive(Debug, Serialize)]
pub(crate) struct PathSummary {
    interface: String,
    local: Option<String>,
    remote: String,
    bytes: u64,
    share: f64,
    lost_bytes: u64,
    opened: u32,
    state: String,
}

impl Summary {
    pub(crate) fn new(
        role: Role,
        progress: &ProgressSnapshot,
        elapsed: Duration,
        paths: &[PathReport],
        notices: Vec<String>,
    ) -> Self {
        let moved = progress.bytes_total.saturating_sub(progress.bytes_resumed);
        let all: Bytes = paths.iter().map(|path| role.bytes(path)).sum();
        let of_path = |path: &PathReport| PathSummary {
            interface: path.interface.clone(),
            local: path.local.map(|ip| ip.to_string()),
            remote: path.remote.to_string(),
            bytes: role.bytes(path).get(),
            share: role.bytes(path).as_f64() / all.as_f64().max(1.0),
            lost_bytes: path.lost.get(),
            opened: path.opened,
            state: path.state.to_string(),
        };
        Self {
            role,
            files: progress.files_total,
            bytes: progress.bytes_total.get(),
            resumed_bytes: progress.bytes_resumed.get(),
            seconds: elapsed.as_secs_f64(),
            rate_bps: moved.per(elapsed).unwrap_or_default().as_bps(),
            paths: paths.iter().map(of_path).collect(),
            notices,
        }
    }

    /// The summary for a person, on standard error; and as one line of JSON on standard output.
    pub(crate) fn show(&self, is_quiet: bool, as_json: bool) -> anyhow::Result<()> {
        if !is_quiet {
            eprint!("{}", self.text());
        }
        if as_json {
            println!("{}", serde_json::to_string(self)?);
        }
        Ok(())
    }

    fn text(&self) -> String {
        let verb = match self.role {
            Role::Send => "sent",
            Role::Receive => "received",
        };
        let files = if self.files == 1 { "1 file".to_owned() } else { format!("{} files", self.files) };
        let (bytes, rate) = (Bytes::new(self.bytes), Bitrate::from_bps(self.rate_bps));
        let mut text = format!("{verb} {files}, {bytes}, in {:.1} s ({rate})\n", self.seconds);
        if self.resumed_bytes > 0 {
            text += &format!("  {} were there before\n", Bytes::new(self.resumed_bytes));
        }
        for path in &self.paths {
            let (share, bytes) = (path.share * 100.0, Bytes::new(path.bytes));
            text += &format!("  {} to {}: {bytes} ({share:.0} %)", path.interface, path.remote);
            if self.role == Role::Send && path.lost_bytes > 0 {
                text += &format!(", {} lost and sent again", Bytes::new(path.lost_bytes));
            }
            if path.opened > 1 {
                text += &format!(", opened {} times", path.opened);
            }
            text.push('\n');
        }
        // The same thing may happen many times: say it once, with the count.
        let mut counts: Vec<(&str, u32)> = Vec::new();
        for notice in self.notices.iter().filter(|notice| !notice.ends_with("path open")) {
            match counts.iter_mut().find(|(said, _)| said == notice) {
                Some((_, count)) => *count += 1,
                None => counts.push((notice, 1)),
            }
        }
        for (notice, count) in counts {
            text += &if count == 1 { format!("  {notice}\n") } else { format!("  {notice} ({count} times)\n") };
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happened_is_told_in_order_and_once() {
        let notices = ["b: path open", "b: path closed", "a: path open again", "b: path closed"].map(str::to_owned);
        let summary = Summary {
            role: Role::Send,
            files: 1,
            bytes: 2_000,
            resumed_bytes: 500,
            seconds: 1.0,
            rate_bps: 12_000,
            paths: vec![],
            notices: notices.to_vec(),
        };
        let expected = "sent 1 file, 2000 B, in 1.0 s (12.0 kbit/s)\n  500 B were there before\n  \
            b: path closed (2 times)\n  a: path open again\n";
        assert_eq!(summary.text(), expected);
    }

    #[test]
    fn times_are_short_and_carry_their_unit() {
        assert_eq!(clock(Duration::from_secs(59)), "59 s");
        assert_eq!(clock(Duration::from_secs(61)), "1:01 min");
        assert_eq!(clock(Duration::from_secs(7260)), "2:01 h");
    }
}
