//! The output of a stream while it runs.

use std::collections::BTreeMap;
use std::time::Instant;

use fairpath_core::{Bitrate, ByteCount};
use fairpath_quic::flows::{Counts, PathStatus, Status};
use fairpath_quic::{Connection, PathNotice};
use fairpath_report::text::{print_line, tell};
use serde_json::{Value, json};

use super::FlowArgs;
#[cfg(feature = "metrics")]
use super::metrics::{Metrics, Row};

/// Shows a line each second.
#[derive(Debug)]
pub(super) struct View {
    json: bool,
    quiet: bool,
    begun: Instant,
    last: Instant,
    /// The bytes sent on each path when the last line was shown.
    sent: Vec<(fairpath_quic::PathId, ByteCount)>,
    /// The last names of the paths, also of those that are closed.
    names: BTreeMap<fairpath_quic::PathId, String>,
    #[cfg(feature = "metrics")]
    metrics: Option<Metrics>,
}

impl View {
    /// For one end; Prometheus can ask from now on, where it is to.
    pub(super) async fn open(args: FlowArgs) -> anyhow::Result<Self> {
        #[cfg(feature = "metrics")]
        let metrics = match args.metrics {
            Some(address) => Some(Metrics::at(address).await?),
            None => None,
        };
        let now = Instant::now();
        let FlowArgs { json, quiet, .. } = args;
        Ok(Self {
            json,
            quiet,
            begun: now,
            last: now,
            sent: Vec::new(),
            names: BTreeMap::new(),
            #[cfg(feature = "metrics")]
            metrics,
        })
    }

    /// A connection is there: its paths have sent nothing yet.
    pub(super) fn connected(&mut self) {
        (self.sent, self.last) = (Vec::new(), Instant::now());
        self.names.clear();
        #[cfg(feature = "metrics")]
        self.metrics.iter_mut().for_each(Metrics::connected);
    }

    /// It is there no more.
    pub(super) fn gone(&mut self) {
        #[cfg(feature = "metrics")]
        self.metrics.iter_mut().for_each(Metrics::gone);
    }

    /// A line for people.
    pub(super) fn say(&self, line: &str) {
        if !self.quiet {
            tell(line);
        }
    }

    pub(super) fn notice(&self, notice: &PathNotice) {
        self.say(&format!("        {notice}"));
    }

    /// A second is over.
    pub(super) fn second(&mut self, connection: &Connection) -> anyhow::Result<()> {
        let Some((status, received)) = connection.flows() else { return Ok(()) };
        let now = Instant::now();
        let elapsed = now - std::mem::replace(&mut self.last, now);
        let names = self.names(connection);
        self.names.extend(names);
        let before = std::mem::take(&mut self.sent);
        let rate = |path: &PathStatus| {
            let earlier = before.iter().find(|(id, _)| *id == path.path).map_or(ByteCount::ZERO, |(_, sent)| *sent);
            path.sent.saturating_sub(earlier).per(elapsed).unwrap_or(Bitrate::ZERO)
        };
        let paths: Vec<Path> = status.paths.iter().filter_map(|path| Path::of(path, rate(path), &self.names)).collect();
        self.sent = status.paths.iter().map(|path| (path.path, path.sent)).collect();
        #[cfg(feature = "metrics")]
        if let Some(metrics) = &mut self.metrics {
            let row = |path| {
                let Path { name, status, rate }: &Path = path;
                Row { name, status, rate: *rate }
            };
            metrics.show(&status, &received, &paths.iter().map(row).collect::<Vec<Row<'_>>>());
        }
        match (self.json, self.quiet) {
            (true, _) => print_line(&self.object(&status, received, &paths).to_string()),
            (false, true) => Ok(()),
            (false, false) => {
                tell(self.line(&status, received, &paths));
                Ok(())
            }
        }
    }

    /// The names of the interfaces, by the numbers of their paths.
    fn names(&self, connection: &Connection) -> Vec<(fairpath_quic::PathId, String)> {
        let paths = connection.paths();
        let names = fairpath_quic::PathReport::names(&paths);
        let numbered = paths.iter().zip(names);
        numbered.flat_map(|(path, name)| path.numbers.iter().map(move |number| (*number, name.clone()))).collect()
    }

    fn line(&self, status: &Status, received: Counts, paths: &[Path]) -> String {
        let paths: Vec<String> = paths.iter().map(Path::words).collect();
        let mut line = format!("{:5.0} s  {}", self.begun.elapsed().as_secs_f64(), paths.join(" · "));
        if let Some(there) = status.peer.filter(|_| status.pieces > 0) {
            line +=
                &format!("  beside {:.1} %, budget {}, there: {}", 100.0 * status.beside, status.budget, words(&there));
        }
        if received != Counts::default() {
            line += &format!("  here: {}", words(&received));
        }
        if status.dropped > 0 {
            line += &format!(", {} not sent in time", status.dropped);
        }
        line
    }

    fn object(&self, status: &Status, received: Counts, paths: &[Path]) -> Value {
        let Status { packets, pieces, repair, copies, again, dropped, .. } = *status;
        json!({
            "end_s": self.begun.elapsed().as_secs_f64(),
            "deadline_ms": status.deadline.as_millis() as u64,
            "budget_bps": status.budget.as_bps(),
            "budget_variation": status.budget_variation,
            "beside_share": status.beside,
            "sent": {
                "packets": packets,
                "pieces": pieces,
                "repair": repair,
                "copies": copies,
                "again": again,
                "dropped": dropped,
            },
            "received": counted(&received),
            "received_there": status.peer.as_ref().map(counted),
            "paths": paths.iter().map(Path::object).collect::<Vec<_>>(),
        })
    }
}

/// The share in time of what an end received, and its counts.
fn words(counts: &Counts) -> String {
    let Counts { recovered, late, lost, .. } = counts;
    let on_time = counts.on_time().map_or("nothing yet".to_owned(), |share| format!("{:.2} % in time", 100.0 * share));
    format!("{on_time}, {recovered} recovered, {late} late, {lost} lost")
}

fn counted(counts: &Counts) -> Value {
    let Counts { delivered, received, recovered, late, duplicate, lost, repair } = counts;
    json!({
        "packets": delivered,
        "pieces": received,
        "recovered": recovered,
        "late": late,
        "duplicate": duplicate,
        "lost": lost,
        "repair": repair,
        "on_time_share": counts.on_time(),
    })
}

/// A path as it is shown.
struct Path {
    name: String,
    status: PathStatus,
    rate: Bitrate,
}

impl Path {
    /// `None` where the path is not known by a name yet: it is being validated.
    fn of(status: &PathStatus, rate: Bitrate, names: &BTreeMap<fairpath_quic::PathId, String>) -> Option<Self> {
        let name = names.get(&status.path)?.clone();
        Some(Self { name, status: *status, rate })
    }

    fn words(&self) -> String {
        let Self { name, status, rate } = self;
        let delay = status.delay.map_or(String::new(), |delay| format!(" {} ms", delay.as_millis()));
        let loss = if status.loss > 0.0 { format!(" {:.1} % lost", 100.0 * status.loss) } else { String::new() };
        let silent = if status.is_silent { " silent" } else { "" };
        format!("{name} {rate}{delay}{loss}{silent}")
    }

    fn object(&self) -> Value {
        let Self { name, status, rate } = self;
        json!({
            "interface": name,
            "rate_bps": rate.as_bps(),
            "allowed_bps": status.rate.as_bps(),
            "sent_bytes": status.sent.get(),
            "delay_ns": status.delay.map(|delay| delay.as_nanos() as u64),
            "delay_deviation_ns": status.delay_deviation.map(|deviation| deviation.as_nanos() as u64),
            "loss_share": status.loss,
            "silent": status.is_silent,
            "usable": status.is_usable,
        })
    }
}
