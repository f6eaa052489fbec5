//! Facts about a path that a person sees beside its bytes: its round trips and their queueing delay,
//! its health, its cost, and why it is idle.

use std::time::{Duration, Instant};

use anyhow::bail;
use fairpath_core::{Bitrate, ByteCount};
use fairpath_quic::{PathReport, PathState, PathUse};
use serde::Serialize;

use crate::path_args::Said;
use crate::quota::Meters;
use crate::role::Role;
use crate::running::Running;

/// A path with less than this share of what all carried is idle, as a person sees it.
const IDLE_SHARE: f64 = 0.05;

/// A path that sends at this share of its cap is held back by it. Not at all of it: a cap lets ten datagrams go at once and
/// then none for a while, in which what is sent arrives sooner elsewhere.
const AT_CAP: f64 = 0.5;

/// A window of which this share is in flight is what bounds a path.
const FULL: f64 = 0.8;

/// How long other paths are given to open where the only one is used up: each takes two round trips.
const OPENING: Duration = Duration::from_secs(2);

/// The terms of this run's paths, and the use of their quotas.
#[derive(Debug)]
pub(crate) struct Books {
    pub(crate) said: Vec<Said>,
    pub(crate) meters: Meters,
    /// Changes them while it runs.
    pub(crate) running: Running,
    /// Since when no path is there but one whose quota is used up.
    alone_since: Option<Instant>,
}

impl Books {
    /// Those of what was said.
    pub(crate) fn open(said: &[Said]) -> anyhow::Result<Self> {
        Ok(Self { meters: Meters::open(said)?, ..Self::of(said) })
    }

    /// The terms without quotas.
    pub(crate) fn of(said: &[Said]) -> Self {
        Self { said: said.to_vec(), meters: Meters::default(), running: Running::default(), alone_since: None }
    }

    /// Says which quotas are used up already, before anything is sent.
    pub(crate) fn announce(&mut self, tell: impl Fn(&str)) {
        self.meters.news().iter().for_each(|used_up| tell(&format!("{used_up}; it is not used")));
    }

    /// Writes down what went over metered interfaces. Their sockets close the paths of those whose quota is used up;
    /// that is told with `tell`.
    ///
    /// # Errors
    ///
    /// Where the count cannot be kept, or where none but such paths are left. Then the connections are to be closed.
    pub(crate) fn enforce(&mut self, paths: &[PathReport], tell: impl Fn(&str)) -> anyhow::Result<()> {
        self.running.show(paths);
        self.meters.count()?;
        let news = self.meters.news();
        news.iter().for_each(|used_up| tell(&format!("{used_up}; its paths are closed")));
        let in_use = || paths.iter().filter(|path| path.state != PathState::Closed);
        let used_up = in_use().find(|path| self.meters.is_used_up(path));
        let Some(path) = used_up.filter(|_| in_use().all(|path| self.meters.is_used_up(path))) else {
            self.alone_since = None;
            return Ok(());
        };
        if self.alone_since.get_or_insert_with(Instant::now).elapsed() >= OPENING {
            self.meters.allow_goodbye();
            bail!(NoPathLeft(path.interface.clone()));
        }
        Ok(())
    }
}

/// Nothing may be sent any more. The interface of the last path.
#[derive(Debug, thiserror::Error)]
#[error("the quota of {0} is used up, and no other path is there; what has arrived is kept")]
pub(crate) struct NoPathLeft(String);

/// The facts about one path.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Facts {
    /// Its mean rate over the whole run.
    pub(crate) rate_bps: u64,
    /// Its share of what all carried.
    pub(crate) share: f64,
    /// Its smoothed round-trip time; `None` where nothing was measured, or the path is closed.
    #[serde(rename = "srtt_ns")]
    pub(crate) round_trip_ns: Option<u64>,
    /// Its queueing delay: the part of the smoothed round trip above the minimum.
    pub(crate) queueing_delay_ns: Option<u64>,
    /// How it is doing, in one word.
    pub(crate) health: &'static str,
    /// Its cost, as given.
    pub(crate) cost: u32,
    /// Its cap on sending.
    pub(crate) cap_bps: Option<u64>,
    /// The use of its interface's quota in this month, and the quota.
    pub(crate) quota_used_bytes: Option<u64>,
    pub(crate) quota_bytes: Option<u64>,
    /// Why it carries little or nothing, where it does.
    pub(crate) idle: Option<String>,
}

impl Facts {
    /// The facts about each of these paths.
    pub(crate) fn all(role: Role, paths: &[PathReport], elapsed: Duration, books: &Books) -> Vec<Self> {
        let names = PathReport::names(paths);
        (0..paths.len()).map(|at| Self::of(role, paths, &names, at, elapsed, books)).collect()
    }

    fn of(role: Role, paths: &[PathReport], names: &[String], at: usize, elapsed: Duration, books: &Books) -> Self {
        let path = &paths[at];
        let said = books.said.iter().find(|said| said.is_of(path));
        let all: ByteCount = paths.iter().map(|path| role.bytes(path)).sum();
        let share = role.bytes(path).as_f64() / all.as_f64().max(1.0);
        let rtt = path.snapshot.and_then(|snapshot| snapshot.rtt);
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let quota = books.meters.of(path);
        let is_used_up = quota.is_some_and(|(used, quota)| used >= quota);
        let rate = role.bytes(path).per(elapsed).unwrap_or_default();
        Self {
            rate_bps: rate.as_bps(),
            share,
            round_trip_ns: rtt.map(|rtt| nanos(rtt.smoothed)),
            queueing_delay_ns: rtt.map(|rtt| nanos(rtt.smoothed.saturating_sub(rtt.min))),
            health: match path.state {
                _ if is_used_up => "used up",
                PathState::Open => "open",
                PathState::Opening => "opening",
                PathState::Suspected => "suspected",
                PathState::Closed => "closed",
            },
            cost: said.map_or(0, Said::cost),
            cap_bps: said.and_then(Said::cap).map(Bitrate::as_bps),
            quota_used_bytes: quota.map(|(used, _)| used.get()),
            quota_bytes: quota.map(|(_, quota)| quota.get()),
            idle: idle(role, paths, names, at, (share, rate), books),
        }
    }

    /// Its round trip, and how much of it is spent in queues, whoever fills them.
    pub(crate) fn round_trip(&self) -> Option<String> {
        let (round_trip, queue) = (self.round_trip_ns? as f64 / 1e6, self.queueing_delay_ns? as f64 / 1e6);
        Some(format!("round trip {round_trip:.1} ms, of which {queue:.1} ms in queues"))
    }

    /// Its cost, and the use of its quota.
    pub(crate) fn costs(&self) -> Option<String> {
        let quota = self.quota_used_bytes.zip(self.quota_bytes);
        let quota =
            quota.map(|(used, quota)| format!("{} of its quota of {}", ByteCount::new(used), ByteCount::new(quota)));
        let cost = (self.cost > 0).then(|| format!("cost {}", self.cost));
        let both: Vec<String> = cost.into_iter().chain(quota).collect();
        (!both.is_empty()).then(|| both.join(", "))
    }
}

/// Why the path carries little or nothing; `None` where it does its part. What a sender chooses, only the sender knows.
/// `share` and `rate` are those of the whole run.
fn idle(
    role: Role,
    paths: &[PathReport],
    names: &[String],
    at: usize,
    (share, rate): (f64, Bitrate),
    books: &Books,
) -> Option<String> {
    let path = &paths[at];
    if let Some((used, quota)) = books.meters.of(path).filter(|(used, quota)| used >= quota) {
        return Some(format!("used up: {used} of its quota of {quota} in this month"));
    }
    match path.state {
        PathState::Closed => {
            return Some(match path.path_use {
                PathUse::Shut(reason) => format!("closed: {reason}"),
                PathUse::Open | PathUse::Backup(_) => "closed: its connection is gone".into(),
            });
        }
        PathState::Opening => return Some("idle: it is still being opened".into()),
        PathState::Suspected => return Some("idle: what is sent on it is not answered".into()),
        PathState::Open => {}
    }
    if share >= IDLE_SHARE {
        return None;
    }
    if let PathUse::Backup(reason) = path.path_use {
        return Some(format!("idle: it is a backup, as {reason}"));
    }
    if role == Role::Receive {
        return None;
    }
    let said = |path: &PathReport| books.said.iter().find(|said| said.is_of(path));
    let is_backup = |path: &PathReport| said(path).is_some_and(Said::is_backup);
    if is_backup(path)
        && let Some((_, name)) =
            paths.iter().zip(names).find(|(other, _)| other.state == PathState::Open && !is_backup(other))
    {
        return Some(format!("idle: it is a backup, and {name} works"));
    }
    let cost = |path: &PathReport| said(path).map_or(0, Said::cost);
    if let Some(cap) = said(path).and_then(Said::cap)
        // Bursts make the rate of a moment far less than the cap, too.
        && rate.max(path.send_rate) >= cap.scaled(AT_CAP)
    {
        return Some(format!("idle: its cap is {cap}"));
    }
    let open = || paths.iter().zip(names).filter(|(other, _)| other.state == PathState::Open);
    if let Some((cheaper, name)) =
        open().filter(|(other, _)| cost(other) < cost(path)).min_by_key(|(other, _)| cost(other))
    {
        let (own, other) = (cost(path), cost(cheaper));
        return Some(format!("idle: it costs {own}, and {name}, which costs {other}, has room for what is sent"));
    }
    let snapshot = path.snapshot?;
    if snapshot.in_flight.as_f64() >= FULL * snapshot.window.as_f64() {
        return Some(format!("slow: it carries all that it can, {}", path.send_rate));
    }
    let round_trip = |path: &PathReport| path.smoothed_rtt().unwrap_or(Duration::MAX);
    let faster = open().filter(|(other, _)| round_trip(other) < round_trip(path));
    Some(match faster.min_by_key(|(other, _)| round_trip(other)) {
        Some((_, name)) => format!("idle: what was sent arrived sooner over {name}"),
        None => "idle: the others carry all that is sent".into(),
    })
}

#[cfg(test)]
mod tests {
    use fairpath_quic::{BackupReason, ShutReason};

    use super::*;
    use crate::path_args::tests::said;
    use crate::role::tests::path;

    fn books(texts: &[&str]) -> Books {
        Books::of(&texts.iter().map(|text| said(text)).collect::<Vec<_>>())
    }

    fn facts(paths: &[PathReport], books: &Books) -> Vec<Facts> {
        Facts::all(Role::Send, paths, Duration::from_secs(2), books)
    }

    #[test]
    fn a_path_has_its_rate_and_its_share_and_no_excuse_where_it_does_its_part() {
        let paths = [path("eth0", "192.0.2.1:9", 3_000_000), path("wwan0", "192.0.2.1:9", 1_000_000)];
        let facts = facts(&paths, &books(&["wwan0:cost=2,cap=5Mbit/s"]));
        assert_eq!((facts[0].rate_bps, facts[0].share, facts[0].cost, &facts[0].idle), (12_000_000, 0.75, 0, &None));
        assert_eq!(
            (facts[1].cost, facts[1].cap_bps, facts[1].costs().as_deref()),
            (2, Some(5_000_000), Some("cost 2"))
        );
        assert_eq!((facts[1].health, &facts[1].idle, facts[1].round_trip()), ("open", &None, None));
    }

    #[test]
    fn an_idle_path_says_why() {
        let mut paths = ["eth0", "wwan0"].map(|name| path(name, "192.0.2.1:9", 1_000));
        paths[0].acked = ByteCount::new(1_000_000);
        let why = |paths: &[PathReport], said: &[&str]| facts(paths, &books(said))[1].idle.clone().unwrap_or_default();
        let dear = why(&paths, &["wwan0:cost=2", "eth0:cost=1"]);
        assert_eq!(dear, "idle: it costs 2, and eth0, which costs 1, has room for what is sent");
        assert_eq!(why(&paths, &["wwan0:cap=8Mbit/s"]), "idle: its cap is 8.0 Mbit/s");
        assert_eq!(why(&paths, &["wwan0:backup"]), "idle: it is a backup, and eth0 works");
        // 1,000 bytes in two seconds are 4 kbit/s, whatever the last moment was like.
        let at_rest = paths.clone().map(|path| PathReport { send_rate: Bitrate::ZERO, ..path });
        assert_eq!(why(&at_rest, &["wwan0:cap=4kbit/s"]), "idle: its cap is 4.0 kbit/s");
        for (state, word) in [
            (PathState::Closed, "closed: its connection is gone"),
            (PathState::Opening, "idle: it is still being opened"),
            (PathState::Suspected, "idle: what is sent on it is not answered"),
        ] {
            paths[1].state = state;
            assert!(why(&paths, &[]).starts_with(word));
        }
        paths[1].path_use = PathUse::Shut(ShutReason::OnPurpose);
        paths[1].state = PathState::Closed;
        assert_eq!(why(&paths, &[]), "closed: it was closed on purpose");
        paths[1].path_use = PathUse::Backup(BackupReason::Declined);
        paths[1].state = PathState::Open;
        assert_eq!(why(&paths, &[]), "idle: it is a backup, as the peer keeps data off it");
    }
}
