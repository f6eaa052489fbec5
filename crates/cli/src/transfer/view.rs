//! The progress of a transfer: a bar or plain lines on standard error.

use std::collections::VecDeque;
use std::io::IsTerminal;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fairpath_core::{Bitrate, ByteCount};
use fairpath_quic::{Binding, Connection, PathNotice, PathReport, PathState};
use fairpath_report::sharing::Sharing;
use fairpath_report::text::{clock, safe, tell};
use fairpath_transfer::{Phase, Progress, ProgressSnapshot};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::role::Role;

/// How often a bar moves.
pub(crate) const TICK: Duration = Duration::from_millis(200);

/// How often a line is written where there is no terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(2);

/// How long the paths are given to open before the open ones are named. Each takes two round trips.
const OPENING: Duration = Duration::from_millis(500);

/// The time left follows the rate of so long.
const RATE_OF: Duration = Duration::from_secs(10);

/// Before so many round trips have passed, paths send less than they will: windows double in each, from ten datagrams on.
const START_ROUNDS: u32 = 8;

/// When nothing has arrived for this long, no time that is left can be told.
const STALLED: Duration = Duration::from_secs(2);

/// When nothing has moved for this long, that is said, once.
const STUCK: Duration = Duration::from_secs(15);

/// The progress of a transfer on standard error.
pub(crate) struct View {
    role: Role,
    progress: Arc<Progress>,
    bar: Option<ProgressBar>,
    /// Plain lines instead of the bar.
    is_plain: bool,
    is_quiet: bool,
    last_line: Instant,
    /// How much was there at each of the last moments, since data began to flow.
    flowing: VecDeque<(Instant, ByteCount)>,
    /// When the last byte arrived, and how much was there then.
    moved: (Instant, ByteCount),
    /// When files were last read back, and how much was read then.
    examined: (Instant, ByteCount),
    /// When something last changed at all, and what was known then.
    changed: (Instant, Option<ProgressSnapshot>),
    /// Since when nothing moves, once that was said.
    stuck_since: Option<Instant>,
    /// Whether it was told that the receiver's user is asked.
    is_asking_told: bool,
    /// When this end gives up where nothing moves; it may never.
    gives_up_after: Option<Duration>,
    /// Whether a connection has taken the place of a lost one, and that was not told yet.
    is_connected_again: bool,
    /// When the peer was first seen at work.
    begun: Option<Instant>,
    /// Whether the open paths have been named.
    is_introduced: bool,
    notices: Vec<PathNotice>,
    /// The latest verdict on shared bottlenecks.
    sharing: Sharing,
}

impl View {
    pub(crate) fn new(role: Role, progress: Arc<Progress>, is_quiet: bool) -> Self {
        Self {
            role,
            progress,
            bar: None,
            is_plain: !std::io::stderr().is_terminal(),
            is_quiet,
            last_line: Instant::now(),
            flowing: VecDeque::new(),
            moved: (Instant::now(), ByteCount::ZERO),
            examined: (Instant::now(), ByteCount::ZERO),
            changed: (Instant::now(), None),
            stuck_since: None,
            is_asking_told: false,
            gives_up_after: None,
            is_connected_again: false,
            begun: None,
            is_introduced: false,
            notices: Vec::new(),
            sharing: Sharing::default(),
        }
    }

    /// One line that stays, above the bar.
    pub(crate) fn line(&self, text: &str) {
        let text = safe(text);
        match &self.bar {
            _ if self.is_quiet => {}
            Some(bar) => bar.suspend(|| tell(text)),
            None => tell(text),
        }
    }

    /// This end gives up where nothing moves for so long.
    pub(crate) fn giving_up_after(self, patience: Duration) -> Self {
        Self { gives_up_after: Some(patience).filter(|patience| !patience.is_zero()), ..self }
    }

    /// Another connection has taken the place of a lost one.
    pub(crate) fn connected_again(&mut self) {
        self.pause();
        self.is_connected_again = true;
    }

    /// A connection has ended, and the transfer may go on over another one.
    pub(crate) fn pause(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        (self.begun, self.is_introduced) = (None, false);
        self.flowing.clear();
    }

    /// Tells what happened to a path, and keeps it for the summary.
    pub(crate) fn notice(&mut self, notice: PathNotice) {
        // The paths that open at first are about to be named together.
        if self.is_introduced || !matches!(notice, PathNotice::Opened { .. }) {
            self.line(&notice.to_string());
        }
        self.notices.push(notice);
    }

    /// Tells what was found out about the bottlenecks, where that has changed.
    pub(crate) fn sharing(&mut self, connection: &Connection) {
        let sharing = Sharing::of(connection, &PathReport::names(&connection.paths()));
        sharing.news(&self.sharing).iter().for_each(|sentence| self.line(sentence));
        self.sharing = sharing;
    }

    /// Shows how far the transfer is.
    pub(crate) fn tick(&mut self, paths: &[PathReport]) {
        let now = self.progress.snapshot();
        // Before it is known what there is to do, the receiver may have another sender to serve.
        let is_early = now.phase == Phase::Preparing && now.files_total == 0 && self.begun.is_none();
        if now.phase == Phase::Waiting || is_early {
            (self.begun, self.is_introduced) = (None, false);
        } else if self.begun.get_or_insert_with(Instant::now).elapsed() >= OPENING {
            self.introduce(paths);
        }
        self.tell_asking(&now);
        self.tell_resumption(&now);
        self.tell_standstill(&now, paths);
        if now.bytes_examined != self.examined.1 {
            self.examined = (Instant::now(), now.bytes_examined);
        }
        if now.phase != Phase::Transferring {
            self.flowing.clear();
            if now.phase == Phase::Preparing && self.begun.is_some_and(|begun| begun.elapsed() >= LINE_INTERVAL) {
                self.show_comparing(&now);
            }
            return;
        }
        if self.flowing.is_empty() || now.bytes_done != self.moved.1 {
            self.moved = (Instant::now(), now.bytes_done);
        }
        self.flowing.push_back((Instant::now(), now.bytes_done));
        while self.flowing.get(1).is_some_and(|(at, _)| at.elapsed() >= RATE_OF) {
            self.flowing.pop_front();
        }
        let (since, before) = self.flowing.front().copied().unwrap_or(self.moved);
        let left = eta(&now, (since.elapsed(), before), starts_for(paths));
        let idle = match (self.moved.0.elapsed(), self.examined.0.elapsed()) {
            (idle, reading) if idle >= STALLED && reading < STALLED => Idle::Reading(now.bytes_examined),
            (idle, _) => Idle::For(idle),
        };
        let amounts = amounts(&now, left, idle);
        let rates = self.rates(paths);
        if self.is_quiet {
            return;
        }
        if !self.is_plain {
            let bar = self.bar.get_or_insert_with(|| new_bar(now.is_open));
            bar.set_length(now.bytes_total.get());
            bar.set_message(amounts);
            bar.set_prefix(rates);
            bar.set_position(now.bytes_done.get());
        } else if self.last_line.elapsed() >= LINE_INTERVAL {
            self.last_line = Instant::now();
            let percent = now.bytes_done.get() * 100 / now.bytes_total.get().max(1);
            let percent = if now.is_open { String::new() } else { format!("{percent} %, ") };
            tell(format!("{percent}{amounts}; {rates}"));
        }
    }

    /// Shows how much was read to find out what need not be sent.
    fn show_comparing(&mut self, now: &ProgressSnapshot) {
        let said = format!("comparing what is there, {} read", now.bytes_examined);
        if self.is_quiet || now.bytes_examined == ByteCount::ZERO {
        } else if !self.is_plain {
            self.bar.get_or_insert_with(|| new_bar(false)).set_message(said);
        } else if self.last_line.elapsed() >= LINE_INTERVAL {
            self.last_line = Instant::now();
            tell(said);
        }
    }

    /// Tells a sender, once, that a person at the other end decides. That one has the question before their eyes.
    fn tell_asking(&mut self, now: &ProgressSnapshot) {
        let is_asking = now.phase == Phase::Asking;
        if is_asking && !self.is_asking_told && self.role == Role::Send {
            self.line("waiting for the receiver's yes");
        }
        self.is_asking_told = is_asking;
    }

    /// Tells where a transfer goes on, once its new connection has found that out.
    fn tell_resumption(&mut self, now: &ProgressSnapshot) {
        if self.is_connected_again && matches!(now.phase, Phase::Transferring | Phase::Done) {
            self.is_connected_again = false;
            self.line(&format!("connected again, resuming at {} of {}", now.bytes_done, now.bytes_total));
        }
    }

    /// Tells that nothing moves, and that it moves again.
    fn tell_standstill(&mut self, now: &ProgressSnapshot, paths: &[PathReport]) {
        // Without a connection that is what was said last, and a person who is asked may take their time.
        if self.changed.1 != Some(*now) || matches!(now.phase, Phase::Waiting | Phase::Asking) {
            let moves =
                self.changed.1.is_some_and(|before| now.bytes_done > before.bytes_done) || now.phase == Phase::Done;
            self.changed = (Instant::now(), Some(*now));
            if moves && let Some(since) = self.stuck_since.take() {
                self.line(&format!("data flows again after {}", clock(since.elapsed())));
            }
        } else if now.phase != Phase::Done && self.stuck_since.is_none() && self.changed.0.elapsed() >= STUCK {
            self.stuck_since = Some(self.changed.0);
            let gives_up_after = self.gives_up_after.filter(|_| !now.is_patient);
            self.line(&standstill(now.phase, &PathReport::names(paths), paths, gives_up_after));
        }
    }

    /// Names the paths that are open, once.
    fn introduce(&mut self, paths: &[PathReport]) {
        if self.is_introduced || !paths.iter().any(works) {
            return;
        }
        self.is_introduced = true;
        self.line(&introduction(&PathReport::names(paths), paths));
    }

    /// The end of a transfer: removes the bar and gives what happened to its paths, and what was known
    /// of their bottlenecks.
    pub(crate) fn end(&mut self) -> (Vec<PathNotice>, Sharing) {
        self.pause();
        (self.stuck_since, self.is_connected_again) = (None, false);
        (std::mem::take(&mut self.notices), std::mem::take(&mut self.sharing))
    }

    fn rates(&self, paths: &[PathReport]) -> String {
        let names = PathReport::names(paths);
        let open = paths.iter().zip(names).filter(|(path, _)| works(path));
        let rates: Vec<_> = open.map(|(path, name)| format!("{name} {}", self.role.rate(path))).collect();
        if rates.is_empty() { "no path works".to_owned() } else { rates.join(", ") }
    }
}

fn works(path: &PathReport) -> bool {
    matches!(path.state, PathState::Open | PathState::Suspected)
}

fn new_bar(is_open: bool) -> ProgressBar {
    // Two lines: what several paths do is too long for one beside a bar. A stream has no part that is done.
    let template = if is_open { "{msg}\n{prefix}" } else { "{wide_bar} {percent:>3} %\n{msg}\n{prefix}" };
    let style = ProgressStyle::with_template(template);
    let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
    bar.set_style(style.expect("a template without mistakes"));
    bar
}

/// The open paths, and how each is tied to its interface.
fn introduction(names: &[String], paths: &[PathReport]) -> String {
    let bound = |binding: Option<Binding>| binding.map_or(String::new(), |binding| format!(" ({binding})"));
    let open = paths.iter().zip(names).filter(|(path, _)| works(path));
    let shown: Vec<_> = open.map(|(path, name)| format!("{name}{}", bound(path.binding))).collect();
    format!("paths: {}", shown.join(", "))
}

/// That nothing moves, with what is known.
fn standstill(phase: Phase, names: &[String], paths: &[PathReport], gives_up_after: Option<Duration>) -> String {
    let meanwhile = match phase {
        Phase::Preparing => " while the two ends compare what is there",
        _ => "",
    };
    let states: Vec<_> = names.iter().zip(paths).map(|(name, path)| format!("{name} {}", path.state)).collect();
    let states = if states.is_empty() { "no path is known".to_owned() } else { states.join(", ") };
    let end = gives_up_after.map(|patience| format!("; giving up in {}", clock(patience.saturating_sub(STUCK))));
    format!("no progress for {}{meanwhile}: {states}{}", clock(STUCK), end.unwrap_or_default())
}

/// Whether data come.
#[derive(Clone, Copy)]
enum Idle {
    /// The last came so long ago.
    For(Duration),
    /// None come while files are read back, so much so far.
    Reading(ByteCount),
}

/// How much is done, and how long the rest will take; or for how long nothing has come, or why.
fn amounts(now: &ProgressSnapshot, eta: Option<Duration>, idle: Idle) -> String {
    // The total of a stream is what came of it so far.
    let of = if now.is_open { String::new() } else { format!(" of {}", now.bytes_total) };
    let text = format!("{}{of}, {} of {} files", now.bytes_done, now.files_done, now.files_total);
    match (idle, eta) {
        (Idle::Reading(read), _) if now.bytes_resumed > ByteCount::ZERO => {
            text + &format!(", verifying what is there, {read} read")
        }
        (Idle::Reading(read), _) => text + &format!(", reading back what has come, {read} read"),
        (Idle::For(idle), _) if idle >= STALLED => text + &format!(", nothing new for {}", clock(idle)),
        (_, Some(eta)) => text + &format!(", {} left", clock(eta)),
        (_, None) => text,
    }
}

/// How long the paths take until they send what they can.
fn starts_for(paths: &[PathReport]) -> Duration {
    let slowest = paths.iter().filter(|path| works(path)).filter_map(PathReport::smoothed_rtt).max();
    START_ROUNDS * slowest.unwrap_or_default()
}

/// The time left at the rate since `before` was there; `None` as long as paths start, or nothing is known.
fn eta(now: &ProgressSnapshot, (elapsed, before): (Duration, ByteCount), start: Duration) -> Option<Duration> {
    if now.is_open || elapsed < start.min(RATE_OF) {
        return None;
    }
    let rate = now.bytes_done.saturating_sub(before).per(elapsed).filter(|rate| *rate > Bitrate::ZERO)?;
    Some(now.bytes_total.saturating_sub(now.bytes_done) / rate)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::role::tests::path;

    #[test]
    fn the_open_paths_are_named_with_their_binding() {
        let mut paths = ["eth0", "wwan0", "eth1"].map(|name| path(name, "192.0.2.1:9", 0));
        paths[1].binding = Some(Binding::Address);
        paths[2].state = PathState::Closed;
        let names = PathReport::names(&paths);
        assert_eq!(introduction(&names, &paths), "paths: eth0 (device), wwan0 (source address)");
    }

    /// 600 of 1,000 bytes, of which 400 were there before.
    fn halfway() -> ProgressSnapshot {
        ProgressSnapshot {
            phase: Phase::Transferring,
            bytes_total: ByteCount::new(1_000),
            bytes_done: ByteCount::new(600),
            bytes_resumed: ByteCount::new(400),
            bytes_examined: ByteCount::new(400),
            files_total: 1,
            files_done: 0,
            is_open: false,
            is_patient: false,
        }
    }

    #[test]
    fn a_stalled_transfer_promises_no_end() {
        let left = Some(Duration::from_secs(4));
        let seconds = |count| Idle::For(Duration::from_secs(count));
        assert_eq!(amounts(&halfway(), left, seconds(1)), "600 B of 1000 B, 0 of 1 files, 4 s left");
        assert_eq!(amounts(&halfway(), left, seconds(9)), "600 B of 1000 B, 0 of 1 files, nothing new for 9 s");
        let anew = ProgressSnapshot { bytes_resumed: ByteCount::ZERO, ..halfway() };
        let reading = amounts(&anew, left, Idle::Reading(ByteCount::new(300)));
        assert_eq!(reading, "600 B of 1000 B, 0 of 1 files, reading back what has come, 300 B read");
        let reading = amounts(&halfway(), left, Idle::Reading(ByteCount::new(300)));
        assert_eq!(reading, "600 B of 1000 B, 0 of 1 files, verifying what is there, 300 B read");
    }

    #[test]
    fn a_standstill_is_told_with_the_state_of_every_path_and_when_it_is_given_up() {
        let mut paths = ["eth0", "wwan0"].map(|name| path(name, "192.0.2.1:9", 0));
        paths[1].state = PathState::Suspected;
        let names = PathReport::names(&paths);
        let told = standstill(Phase::Transferring, &names, &paths, Some(Duration::from_secs(600)));
        assert_eq!(told, "no progress for 15 s: eth0 open, wwan0 suspected; giving up in 9:45 min");
        let told = standstill(Phase::Preparing, &[], &[], None);
        assert_eq!(told, "no progress for 15 s while the two ends compare what is there: no path is known");
    }

    #[test]
    fn the_time_left_follows_the_rate_of_the_last_seconds_and_is_not_told_while_paths_start() {
        let (now, bytes) = (halfway(), ByteCount::new);
        // 200 bytes in 2 s, 400 are to come: 4 s.
        let (two, none) = (Duration::from_secs(2), Duration::ZERO);
        assert_eq!(eta(&now, (two, bytes(400)), none), Some(Duration::from_secs(4)));
        assert_eq!(eta(&now, (two, bytes(600)), none), None);
        // A round trip of 700 ms: 5.6 s of doubling windows.
        let start = START_ROUNDS * Duration::from_millis(700);
        assert_eq!(eta(&now, (two, bytes(400)), start), None);
        assert!(eta(&now, (3 * two, bytes(400)), start).is_some());
    }
}
