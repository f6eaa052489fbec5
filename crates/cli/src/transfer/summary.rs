//! The summary of a transfer, for people and for programs.

use std::time::Duration;

use fairpath_core::{Bitrate, ByteCount};
use fairpath_quic::{PathNotice, PathReport, Tried};
use fairpath_report::sharing::{Sharing, Together};
use fairpath_report::text::{print_line, safe, tell_part};
use fairpath_transfer::{LeftOut, Offer, ProgressSnapshot, Skipped, shown_path};
use serde::{Serialize, Serializer};

use super::Shown;
use super::offer::{contents, omissions};
use crate::attempts::FailedAttempts;
use crate::path_facts::{Books, Facts};
use crate::role::Role;
use crate::ways::{Way, in_vain};

/// From this multiple of the busiest path's share on, the others were worth their while.
const WORTH_IT: f64 = 1.05;

/// The summary of a transfer.
#[derive(Debug, Serialize)]
pub(crate) struct Summary {
    role: Role,
    files: u64,
    bytes: u64,
    /// The bytes that the receiver had before.
    resumed_bytes: u64,
    seconds: f64,
    /// The mean rate of what was not there before.
    rate_bps: u64,
    /// The files left out, with the reasons.
    skipped: Vec<SkippedSummary>,
    /// How many connections took the place of one that was lost.
    reconnections: u32,
    paths: Vec<PathSummary>,
    /// The changes of paths, in plain words.
    #[serde(serialize_with = "in_words")]
    notices: Vec<PathNotice>,
    /// The paths that were found to share a bottleneck.
    sharing: Sharing,
    /// The pairs of addresses that were tried to reach the peer.
    tried: Vec<Way>,
    #[serde(skip)]
    in_vain: Vec<String>,
    /// Attempts to connect to the receiver that failed, since it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed_attempts: Option<FailedAttempts>,
    /// The first names, at the receiver.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    names: Vec<String>,
    /// The same as words.
    #[serde(skip)]
    contents: Option<String>,
    /// Hidden names that were not taken: how many, and the first of them.
    not_taken: LeftOut,
}

/// How many of the files that were left out a person is told by name; a program is told all.
const NAMED_MAX: usize = 50;

/// One thing that was left out.
#[derive(Debug, Serialize)]
struct SkippedSummary {
    path: String,
    reason: String,
    #[serde(skip)]
    sentence: String,
}

/// The totals of one pair of interface and address.
#[derive(Debug, Serialize)]
struct PathSummary {
    #[serde(skip)]
    name: String,
    interface: String,
    local: Option<String>,
    remote: String,
    bound_by: Option<String>,
    bytes: u64,
    lost_bytes: u64,
    opened: u32,
    state: String,
    #[serde(flatten)]
    facts: Facts,
}

fn in_words<S: Serializer>(notices: &[PathNotice], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(notices.iter().map(ToString::to_string))
}

impl Summary {
    pub(crate) fn new(
        role: Role,
        progress: &ProgressSnapshot,
        elapsed: Duration,
        (paths, books): (&[PathReport], &Books),
        (notices, sharing): (Vec<PathNotice>, Sharing),
    ) -> Self {
        let moved = progress.bytes_total.saturating_sub(progress.bytes_resumed);
        Self {
            role,
            files: progress.files_total,
            bytes: progress.bytes_total.get(),
            resumed_bytes: progress.bytes_resumed.get(),
            seconds: elapsed.as_secs_f64(),
            rate_bps: moved.per(elapsed).unwrap_or_default().as_bps(),
            skipped: Vec::new(),
            reconnections: 0,
            paths: path_summaries(role, paths, elapsed, books),
            notices,
            sharing,
            tried: Vec::new(),
            in_vain: Vec::new(),
            failed_attempts: None,
            names: Vec::new(),
            contents: None,
            not_taken: LeftOut::default(),
        }
    }

    /// With what came of what the sender offered: the first files that are in place.
    pub(crate) fn with_arrived(self, offer: Option<Offer>, arrived: &[(String, ByteCount)]) -> Self {
        let offer = offer.unwrap_or_default();
        let more = self.files.saturating_sub(arrived.len() as u64);
        let contents = {
            let shown = arrived.iter().map(|(name, size)| (name.clone(), Some(*size)));
            (!arrived.is_empty()).then(|| contents(shown, more))
        };
        let names = arrived.iter().map(|(name, _)| name.clone()).collect();
        Self { names, contents, not_taken: offer.left_out, ..self }
    }

    /// With what the receiver does not take.
    pub(crate) fn with_not_taken(self, not_taken: LeftOut) -> Self {
        Self { not_taken, ..self }
    }

    /// With what the receiver counted at its door.
    pub(crate) fn with_failed_attempts(self, failed_attempts: FailedAttempts) -> Self {
        Self { failed_attempts: Some(failed_attempts), ..self }
    }

    /// With what was tried to reach the peer, beside the `paths` that there were.
    pub(crate) fn with_tried(self, tried: &[Tried], paths: &[PathReport]) -> Self {
        Self { tried: Way::all(tried), in_vain: in_vain(tried, paths), ..self }
    }

    /// Says what was left out, too.
    pub(crate) fn without<'a>(mut self, skipped: impl IntoIterator<Item = &'a Skipped>) -> Self {
        let one = |one: &Skipped| SkippedSummary {
            path: shown_path(&one.path),
            reason: one.reason.to_string(),
            sentence: one.to_string(),
        };
        self.skipped = skipped.into_iter().map(one).collect();
        self
    }

    /// With the number of connections that took the place of one that was lost.
    pub(crate) fn after(self, reconnections: u32) -> Self {
        Self { reconnections, ..self }
    }

    /// The summary for a person, on standard error; and as one line of JSON on standard output.
    pub(crate) fn show(&self, shown: Shown) -> anyhow::Result<()> {
        if !shown.quiet {
            tell_part(safe(&self.text()));
        }
        if shown.json {
            print_line(&serde_json::to_string(self)?)?;
        }
        Ok(())
    }

    fn text(&self) -> String {
        let verb = match self.role {
            Role::Send => "sent",
            Role::Receive => "received",
        };
        let files = if self.files == 1 { "1 file".to_owned() } else { format!("{} files", self.files) };
        let (bytes, rate) = (ByteCount::new(self.bytes), Bitrate::from_bps(self.rate_bps));
        let all_was_there = self.bytes > 0 && self.resumed_bytes == self.bytes;
        let mut text = match all_was_there {
            true => format!("{verb} {files}, {bytes}: all of it was there before\n"),
            false => format!("{verb} {files}, {bytes}, in {:.1} s ({rate})\n", self.seconds),
        };
        if let Some(contents) = &self.contents {
            text += &format!("  {contents}\n");
        }
        if let Some(omissions) = omissions(&self.not_taken) {
            text += &format!("  {omissions}\n");
        }
        if self.resumed_bytes > 0 && !all_was_there {
            text += &format!("  {} were there before\n", ByteCount::new(self.resumed_bytes));
        }
        for skipped in self.skipped.iter().take(NAMED_MAX) {
            text += &format!("  {}\n", skipped.sentence);
        }
        if self.skipped.len() > NAMED_MAX {
            text += &format!("  and {} more, which --json names\n", self.skipped.len() - NAMED_MAX);
        }
        match self.reconnections {
            0 => {}
            1 => text += "  the connection was lost once, and made again\n",
            times => text += &format!("  the connection was lost {times} times, and made again\n"),
        }
        if !self.paths.is_empty() {
            text += &format!("  {}\n", verdict(&self.paths, &self.sharing));
        }
        let preposition = if self.role == Role::Send { "to" } else { "from" };
        for path in &self.paths {
            text += &format!("  {} {preposition} {}: {}", path.name, path.remote, ByteCount::new(path.bytes));
            if self.role == Role::Send && path.lost_bytes > 0 {
                text += &format!(", {} lost and sent again", ByteCount::new(path.lost_bytes));
            }
            if path.opened > 1 {
                text += &format!(", opened {} times", path.opened);
            }
            let rate = Some(Bitrate::from_bps(path.facts.rate_bps)).filter(|rate| *rate > Bitrate::ZERO);
            let rate = rate.map(|rate| rate.to_string());
            for more in rate.into_iter().chain(path.facts.round_trip()).chain(path.facts.costs()) {
                text += &format!(", {more}");
            }
            text.push('\n');
            if let Some(why) = &path.facts.idle {
                text += &format!("    {why}\n");
            }
        }
        for sentence in self.in_vain.iter().cloned().chain(self.sharing.sentences()) {
            text += &format!("  {sentence}\n");
        }
        // The same thing may happen many times: say it once, with the count. That a path opened is
        // told by its being listed, and that an interface leads nowhere by what was tried in vain.
        let mut counts: Vec<(&PathNotice, u32)> = Vec::new();
        let is_told = |notice: &&PathNotice| matches!(notice, PathNotice::Opened { .. } | PathNotice::NoWay { .. });
        for notice in self.notices.iter().filter(|notice| !is_told(notice)) {
            match counts.iter_mut().find(|(said, _)| *said == notice) {
                Some((_, count)) => *count += 1,
                None => counts.push((notice, 1)),
            }
        }
        for (notice, count) in counts {
            text += &if count == 1 { format!("  {notice}\n") } else { format!("  {notice} ({count} times)\n") };
        }
        if let Some(sentence) = self.failed_attempts.and_then(|stats| stats.sentence()) {
            text += &format!("  {sentence}\n");
        }
        text
    }
}

fn path_summaries(role: Role, paths: &[PathReport], elapsed: Duration, books: &Books) -> Vec<PathSummary> {
    let of_path = |((path, name), facts): ((&PathReport, String), Facts)| PathSummary {
        name,
        interface: path.interface.clone(),
        local: path.address().map(|ip| ip.to_string()),
        remote: path.remote.to_string(),
        bound_by: path.binding.map(|binding| binding.to_string()),
        bytes: role.bytes(path).get(),
        lost_bytes: path.lost.get(),
        opened: path.opened,
        state: path.state.to_string(),
        facts,
    };
    let facts = Facts::all(role, paths, elapsed, books);
    paths.iter().zip(PathReport::names(paths)).zip(facts).map(of_path).collect()
}

/// The share of each path, and whether it paid to have several, as far as that is known. Paths that
/// share a bottleneck share its rate: together they carry no more than one of them alone.
fn verdict(paths: &[PathSummary], sharing: &Sharing) -> String {
    let Some(busiest) = paths.iter().max_by(|a, b| a.facts.share.total_cmp(&b.facts.share)) else {
        return String::new();
    };
    if paths.len() == 1 {
        return format!("1 path: {} carried everything", busiest.name);
    }
    let shares: Vec<_> = paths.iter().map(|path| format!("{} {:.0} %", path.name, path.facts.share * 100.0)).collect();
    let times = 1.0 / busiest.facts.share.max(f64::MIN_POSITIVE);
    // A path with next to no data does not count.
    let used: Vec<&str> =
        paths.iter().filter(|path| path.facts.share >= WORTH_IT - 1.0).map(|path| &*path.name).collect();
    let worth = match sharing.together(&used) {
        _ if times < WORTH_IT => format!("; nearly everything went over {}", busiest.name),
        Together::Shared(names) => {
            let names = names.join(" and ");
            format!("; {names} share a bottleneck, over which they bring no more together than one of them alone")
        }
        Together::Separate => format!("; together {times:.1} times what {} carried", busiest.name),
        Together::Unknown => String::new(),
    };
    format!("{} paths: {}{worth}", paths.len(), shares.join(", "))
}

#[cfg(test)]
mod tests {
    use fairpath_transfer::Reason;

    use super::*;
    use crate::role::tests::path;

    /// A finding about two paths alone.
    fn of_pair(first: &str, second: &str, confidence: f64, shared: bool) -> Sharing {
        let pair = fairpath_report::sharing::Pair {
            paths: [first.to_owned(), second.to_owned()],
            confidence,
            shared,
            since_seconds: 1.0,
        };
        Sharing { pairs: vec![pair], ..Sharing::default() }
    }

    fn summary(paths: &[PathReport], notices: Vec<PathNotice>) -> Summary {
        let books = Books::of(&[]);
        let paths = path_summaries(Role::Send, paths, Duration::from_secs(1), &books);
        Summary {
            role: Role::Send,
            files: 1,
            bytes: 2_000,
            resumed_bytes: 500,
            seconds: 1.0,
            rate_bps: 12_000,
            skipped: vec![],
            reconnections: 0,
            paths,
            notices,
            sharing: Sharing::default(),
            tried: Vec::new(),
            in_vain: Vec::new(),
            failed_attempts: None,
            names: Vec::new(),
            contents: None,
            not_taken: LeftOut::default(),
        }
    }

    #[test]
    fn what_happened_is_told_in_order_and_once() {
        let closed = PathNotice::Closed {
            interface: "b".into(),
            reason: "no answer for 1.0 s".into(),
            carriers: vec!["a".into()],
        };
        let notices = vec![
            PathNotice::Opened { interface: "b".into() },
            closed.clone(),
            PathNotice::Reopened { interface: "a".into() },
            closed,
        ];
        let expected = "sent 1 file, 2000 B, in 1.0 s (12.0 kbit/s)\n  500 B were there before\n  \
            b: path closed, no answer for 1.0 s; its data goes over a (2 times)\n  a: path open again\n";
        assert_eq!(summary(&[], notices).text(), expected);
    }

    #[test]
    fn no_rate_is_told_where_nothing_had_to_travel() {
        let all = Summary { resumed_bytes: 2_000, rate_bps: 0, ..summary(&[], vec![]) };
        assert_eq!(all.text(), "sent 1 file, 2000 B: all of it was there before\n");
    }

    #[test]
    fn what_was_left_out_is_named_with_the_reason() {
        let skipped = |number: usize| Skipped { path: format!("log {number}").into(), reason: Reason::Changed };
        let skipped: Vec<_> = (0..NAMED_MAX + 2).map(skipped).collect();
        let text = summary(&[], vec![]).without(&skipped).text();
        assert!(text.contains("\n  not sent: log 0 changed while it was sent\n"), "{text}");
        assert!(text.contains("log 49 ") && !text.contains("log 50 ") && text.contains("\n  and 2 more"), "{text}");
    }

    #[test]
    fn the_shares_of_the_paths_are_told_in_plain_words() {
        let peer = "192.0.2.1:9";
        let two = summary(&[path("eth0", peer, 1_220), path("wwan0", peer, 780)], vec![]).text();
        let expected = "\n  2 paths: eth0 61 %, wwan0 39 %\n  eth0 to 192.0.2.1:9: 1220 B, 9.8 kbit/s\n";
        assert!(two.contains(expected), "{two}");
        let idle = summary(&[path("eth0", peer, 1_980), path("wwan0", peer, 20)], vec![]).text();
        assert!(idle.contains("2 paths: eth0 99 %, wwan0 1 %; nearly everything went over eth0\n"), "{idle}");
        let one = summary(&[path("eth0", peer, 2_000)], vec![]).text();
        assert!(one.contains("1 path: eth0 carried everything\n"), "{one}");
    }

    #[test]
    fn several_paths_are_praised_only_where_they_are_known_to_be_separate() {
        let peer = "192.0.2.1:9";
        let of = |bytes: [u64; 2], sharing: Sharing| {
            let paths = [path("eth0", peer, bytes[0]), path("wwan0", peer, bytes[1])];
            Summary { sharing, ..summary(&paths, vec![]) }.text()
        };
        // 1 / 0.61 = 1.64
        let separate = of([1_220, 780], of_pair("eth0", "wwan0", 0.05, false));
        assert!(separate.contains("wwan0 39 %; together 1.6 times what eth0 carried\n"), "{separate}");
        let shared = of([1_000, 1_000], of_pair("wwan0", "eth0", 0.95, true));
        assert!(!shared.contains("times what"), "{shared}");
        assert!(shared.contains("wwan0 50 %; eth0 and wwan0 share a bottleneck, over which"), "{shared}");
        let unknown = of([1_000, 1_000], of_pair("eth0", "wwan0", 0.5, false));
        assert!(unknown.contains("  2 paths: eth0 50 %, wwan0 50 %\n"), "{unknown}");
    }

    #[test]
    fn paths_of_one_interface_are_told_apart_in_every_line() {
        let mut paths = [path("lo", "127.0.0.1:9", 500), path("lo", "127.0.0.1:9", 500)];
        paths[0].local = Some("127.0.1.1".parse().unwrap());
        paths[1].local = Some("127.0.2.1".parse().unwrap());
        let text = summary(&paths, vec![]).text();
        for line in ["lo/127.0.1.1 to 127.0.0.1:9: 500 B", "lo/127.0.2.1 to 127.0.0.1:9: 500 B"] {
            assert!(text.contains(line), "{text}");
        }
    }
}
