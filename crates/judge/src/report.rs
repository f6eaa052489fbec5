//! The answer, for people and for programs.

use core::time::Duration;

use fairpath_core::Timestamp;
use fairpath_report::text::table;
use serde_json::{Value, json};

use crate::judge::{Judgement, Pair, Span};
use crate::{Named, first, last};

/// With more pairs the table shows only those that share.
const PAIRS_SHOWN: usize = 30;
/// With more spans of evidence the table shows only the first ones.
const SPANS_SHOWN: usize = 4;

/// The series and the verdict on them.
#[derive(Clone, Debug)]
pub struct Report {
    /// The detector.
    pub detector: String,
    /// The series.
    pub series: Vec<Named>,
    /// The verdict.
    pub judgement: Judgement,
    /// Warnings about the files.
    pub warnings: Vec<String>,
}

impl Report {
    /// The zero of the times that are shown: that of the traces. Where they count from 1970 or the
    /// like, the whole second in which the first of them begins.
    pub(crate) fn origin(&self) -> Timestamp {
        let begin = self.series.iter().map(first).min().unwrap_or(Timestamp::ZERO);
        let days = begin.since(Timestamp::ZERO) > Duration::from_secs(86_400);
        if days { Timestamp::from_secs(begin.as_nanos() / 1_000_000_000) } else { Timestamp::ZERO }
    }

    pub(crate) fn seconds(&self, at: Timestamp) -> f64 {
        at.since(self.origin()).as_secs_f64()
    }

    /// The names of a group.
    fn names(&self, group: &[usize]) -> Vec<&str> {
        group.iter().map(|at| self.series[*at].name.as_str()).collect()
    }

    /// Everything, for programs.
    pub fn json(&self) -> Value {
        let series = self.series.iter().map(|one| {
            let [least, most] = range_ms(one);
            json!({
                "name": one.name,
                "format": one.kind,
                "samples": one.samples.len(),
                "begin_s": self.seconds(first(one)),
                "end_s": self.seconds(last(one)),
                "rtt_min_ms": least,
                "rtt_max_ms": most,
            })
        });
        let span = |span: &Span| json!({ "begin_s": self.seconds(span.from), "end_s": self.seconds(span.until) });
        let pairs = self.judgement.pairs.iter().map(|pair| {
            json!({
                "names": self.names(&[pair.series.0, pair.series.1]),
                "shared": pair.shared,
                "confidence": pair.confidence,
                "since_s": pair.since().map(|since| self.seconds(since)),
                "part_together": pair.part_together(),
                "common": pair.common.as_ref().map(span),
                "evidence": pair.evidence.iter().map(span).collect::<Vec<_>>(),
            })
        });
        json!({
            "detector": self.detector,
            "origin_s": self.origin().as_secs_f64(),
            "groups": self.judgement.groups.iter().map(|group| self.names(group)).collect::<Vec<_>>(),
            "pairs": pairs.collect::<Vec<_>>(),
            "series": series.collect::<Vec<_>>(),
            "warnings": self.warnings,
        })
    }

    /// The tables, for people.
    pub fn text(&self) -> String {
        let mut text = self.series_table() + "\n" + &self.pair_table() + "\n";
        if self.origin() > Timestamp::ZERO {
            text += &format!("Times are seconds since {} s of the traces' clock.\n", self.origin().as_secs_f64());
        }
        for group in &self.judgement.groups {
            text += &match self.names(group).as_slice() {
                [alone] => format!("{alone} was found to share its bottleneck with no other.\n"),
                names => format!("{} share a bottleneck.\n", names.join(" and ")),
            };
        }
        text
    }

    fn series_table(&self) -> String {
        let row = |one: &Named| {
            let [least, most] = range_ms(one);
            vec![
                one.name.clone(),
                one.kind.to_owned(),
                one.samples.len().to_string(),
                format!("{:.1}", self.seconds(first(one))),
                format!("{:.1}", self.seconds(last(one))),
                format!("{least:.1}"),
                format!("{most:.1}"),
            ]
        };
        let rows: Vec<_> = self.series.iter().map(row).collect();
        table(&["trace", "kind", "samples", "from s", "to s", "least ms", "most ms"], &rows)
    }

    fn pair_table(&self) -> String {
        let pairs = &self.judgement.pairs;
        let all = pairs.len() <= PAIRS_SHOWN;
        let shown = pairs.iter().filter(|pair| all || pair.shared).take(PAIRS_SHOWN);
        let rows: Vec<_> = shown.map(|pair| self.row(pair)).collect();
        let headings = ["first", "second", "bottleneck", "confidence", "since s", "together", "evidence s"];
        let left_out = pairs.len() - rows.len();
        let note = if left_out > 0 { format!("{left_out} more pairs: see --json\n") } else { String::new() };
        table(&headings, &rows) + &note
    }

    fn row(&self, pair: &Pair) -> Vec<String> {
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let verdict = match (pair.shared, pair.common) {
            (true, _) => "shared",
            (false, Some(_)) => "separate",
            (false, None) => "never measured together",
        };
        let span = |span: &Span| format!("{:.1}-{:.1}", self.seconds(span.from), self.seconds(span.until));
        let mut evidence: Vec<String> = pair.evidence.iter().take(SPANS_SHOWN).map(span).collect();
        if pair.evidence.len() > SPANS_SHOWN {
            evidence.push(format!("and {} more", pair.evidence.len() - SPANS_SHOWN));
        }
        vec![
            self.series[pair.series.0].name.clone(),
            self.series[pair.series.1].name.clone(),
            verdict.to_owned(),
            or_dash(pair.confidence.map(|confidence| format!("{confidence:.3}"))),
            or_dash(pair.since().map(|since| format!("{:.1}", self.seconds(since)))),
            or_dash(pair.common.map(|_| format!("{:.0} %", pair.part_together() * 100.0))),
            or_dash((!evidence.is_empty()).then(|| evidence.join(", "))),
        ]
    }
}

/// The least and the most of the round-trip times.
pub(crate) fn range_ms(series: &Named) -> [f64; 2] {
    let ms = || series.samples.iter().map(|sample| sample.rtt.as_secs_f64() * 1e3);
    [ms().fold(f64::INFINITY, f64::min), ms().fold(0.0, f64::max)]
}
