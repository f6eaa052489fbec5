//! The output of a measurement while it runs and at its end.

use std::io::Write as _;
use std::time::Duration;

use fairpath_core::{Bitrate, ByteCount};
use fairpath_quic::{Connection, PathNotice, PathReport, Tried};
use fairpath_report::sharing::Sharing;
use fairpath_report::text::{output, table, tell};
use serde_json::{Value, json};

use super::protocol::{Direction, Total};
use crate::path_facts::{Books, Facts};
use crate::role::Role;
use crate::ways::{Way, in_vain};

/// A report in the making.
pub(super) struct Report {
    direction: Direction,
    json: bool,
    /// When the last interval ended, and what every path had carried by then.
    last: (Duration, Vec<ByteCount>),
    intervals: Vec<Value>,
    notices: Vec<String>,
    /// The latest verdict on shared bottlenecks of the data that this end sends.
    sharing: Sharing,
}

impl Report {
    pub(super) fn new(direction: Direction, json: bool) -> Self {
        Self {
            direction,
            json,
            last: (Duration::ZERO, Vec::new()),
            intervals: Vec::new(),
            notices: Vec::new(),
            sharing: Sharing::default(),
        }
    }

    /// The bytes that the path carried in the direction measured.
    fn carried(&self, path: &PathReport) -> ByteCount {
        match self.direction {
            Direction::Upload => path.acked,
            Direction::Download => path.received,
        }
    }

    /// A second is over. What is known of the bottlenecks is asked for before.
    pub(super) fn interval(&mut self, now: Duration, paths: &[PathReport]) {
        let (then, before) = std::mem::take(&mut self.last);
        let elapsed = now.saturating_sub(then);
        let carried: Vec<ByteCount> = paths.iter().map(|path| self.carried(path)).collect();
        let rate = |at: usize| {
            let earlier = before.get(at).copied().unwrap_or(ByteCount::ZERO);
            carried[at].saturating_sub(earlier).per(elapsed).unwrap_or(Bitrate::ZERO)
        };
        let rates: Vec<Bitrate> = (0..paths.len()).map(rate).collect();
        if self.json {
            let per_path: Vec<Value> = paths
                .iter()
                .zip(&rates)
                .map(|(path, rate)| json!({ "interface": path.interface, "remote": path.remote, "rate_bps": rate.as_bps() }))
                .collect();
            self.intervals.push(json!({
                "end_s": now.as_secs_f64(),
                "paths": per_path,
                "pairs": self.sharing.pairs,
            }));
        } else {
            let names = PathReport::names(paths);
            let shown: Vec<String> = names.iter().zip(&rates).map(|(name, rate)| format!("{name} {rate}")).collect();
            let total: Bitrate = rates.into_iter().sum();
            tell(format!("{:4.0} s  {total:>14}   {}", now.as_secs_f64(), shown.join(", ")));
        }
        self.last = (now, carried);
    }

    pub(super) fn notice(&mut self, notice: &PathNotice) {
        if !self.json {
            tell(format!("        {notice}"));
        }
        self.notices.push(notice.to_string());
    }

    /// Tells what was found out about the bottlenecks, where that has changed. Only who sends finds
    /// out.
    pub(super) fn sharing(&mut self, connection: &Connection) {
        if self.direction == Direction::Upload {
            let sharing = Sharing::of(connection, &PathReport::names(&connection.paths()));
            if !self.json {
                sharing.news(&self.sharing).iter().for_each(|sentence| tell(format!("        {sentence}")));
            }
            self.sharing = sharing;
        }
    }

    /// Shows the result on standard output.
    pub(super) fn finish(
        &self,
        total: Total,
        (paths, books): (&[PathReport], &Books),
        tried: &[Tried],
    ) -> anyhow::Result<()> {
        let goodput = total.bytes.per(total.elapsed).unwrap_or(Bitrate::ZERO);
        let role = if self.direction == Direction::Upload { Role::Send } else { Role::Receive };
        let facts = Facts::all(role, paths, total.elapsed, books);
        let mut out = output();
        if self.json {
            let per_path: Vec<Value> = paths
                .iter()
                .zip(&facts)
                .map(|(path, facts)| {
                    let mut told = json!({
                        "interface": path.interface,
                        "local": path.address(),
                        "remote": path.remote,
                        "bound_by": path.binding.map(|binding| binding.to_string()),
                        "state": path.state.to_string(),
                        "bytes": self.carried(path).get(),
                        "lost_bytes": path.lost.get(),
                    });
                    if let (Value::Object(told), Ok(Value::Object(facts))) = (&mut told, serde_json::to_value(facts)) {
                        told.extend(facts);
                    }
                    told
                })
                .collect();
            let result = json!({
                "goodput_bps": goodput.as_bps(),
                "received_bytes": total.bytes.get(),
                "elapsed_s": total.elapsed.as_secs_f64(),
                "direction": if self.direction == Direction::Upload { "upload" } else { "download" },
                "paths": per_path,
                "intervals": self.intervals,
                "notices": self.notices,
                "sharing": self.sharing,
                "tried": Way::all(tried),
            });
            writeln!(out, "{}", serde_json::to_string_pretty(&result)?)?;
            return Ok(());
        }
        let ms = |nanos: Option<u64>| nanos.map_or("-".into(), |nanos| format!("{:.1}", nanos as f64 / 1e6));
        let names = PathReport::names(paths);
        let row = |((path, name), facts): ((&PathReport, &String), &Facts)| {
            vec![
                name.clone(),
                path.remote.to_string(),
                format!("{:.1}", Bitrate::from_bps(facts.rate_bps).as_mbps_f64()),
                format!("{:.0}", facts.share * 100.0),
                ms(facts.round_trip_ns),
                ms(facts.queueing_delay_ns),
                path.lost.to_string(),
                facts.cost.to_string(),
                facts.health.to_owned(),
            ]
        };
        let rows: Vec<Vec<String>> = paths.iter().zip(&names).zip(&facts).map(row).collect();
        let headings = ["path", "peer", "Mbit/s", "share %", "rtt ms", "queue ms", "lost", "cost", "health"];
        write!(out, "{}", table(&headings, &rows))?;
        for (name, facts) in names.iter().zip(&facts) {
            for said in facts.idle.iter().cloned().chain(facts.costs()) {
                writeln!(out, "{name}: {said}")?;
            }
        }
        writeln!(
            out,
            "Goodput {goodput}: {} of application data in {:.1} s.\n\
             Per path whole QUIC packets are counted, without the headers of UDP and IP{}.",
            total.bytes,
            total.elapsed.as_secs_f64(),
            if self.direction == Direction::Upload { "; those that were acknowledged" } else { "" },
        )?;
        for sentence in in_vain(tried, paths).into_iter().chain(self.sharing.sentences()) {
            writeln!(out, "{sentence}")?;
        }
        Ok(())
    }
}
