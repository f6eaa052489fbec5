//! The figure: how much of the time separate pairs are together, and shared ones.

use super::Runs;
use super::watch::{Entry, NO_MEMORY};
use crate::{Axis, Figure, Series};

/// The detectors of each panel.
const PANELS: [(&str, &[&str]); 4] = [
    ("ours", &["concordance"]),
    ("trend lines", &["trendline", "trendline_srtt", "trendline_overlapping"]),
    ("summary statistics", &["ssc_rfc8382", "ssc_lcn14", "ssc_mptcp_sbd", "ssc_author_variant"]),
    ("wavelets", &["wavelet"]),
];

/// A panel for each kind of detector; a circle is a detector with its defaults, a curve one parameter
/// of it.
pub(super) fn figure(runs: &Runs, entries: &[Entry]) -> Figure {
    let title =
        "Separate pairs together (wrong) and shared pairs together (right), in parts of the time; circles: defaults";
    PANELS.iter().fold(Figure::new("roc", title), |figure, (panel, names)| {
        let mut series = vec![Series::new("chance", "theory", vec![(0.0, 0.0), (1.0, 1.0)]).dashed()];
        for name in *names {
            series.extend(curves(runs, entries, name));
        }
        figure.lines(panel, Axis::new("together though separate", ""), Axis::new("together where shared", ""), series)
    })
}

/// A detector's curves, one for each parameter that was swept, through the point of its defaults.
fn curves(runs: &Runs, entries: &[Entry], name: &str) -> Vec<Series> {
    let place = |at: usize| {
        let summed = runs.summed(at, |_| true);
        (summed.separate.mean(), summed.shared.mean())
    };
    let mut default = Vec::new();
    let mut swept: Vec<(&str, Vec<(f64, f64)>)> = Vec::new();
    for (at, entry) in entries.iter().enumerate().filter(|(_, entry)| entry.name == name) {
        match entry.setting.split_once(' ') {
            None => default.push(place(at)),
            // Memory is swept as the hold time is, of which none is the least.
            Some(_) if entry.setting == NO_MEMORY => {}
            Some((parameter, _)) => match swept.iter_mut().find(|(known, _)| *known == parameter) {
                Some((_, points)) => points.push(place(at)),
                None => swept.push((parameter, vec![place(at)])),
            },
        }
    }
    let short = name.strip_prefix("ssc_").or(name.strip_prefix("trendline_")).unwrap_or(name);
    let mut series = vec![Series::new(short, name, default.clone()).marked("", default.clone())];
    for (number, (parameter, mut points)) in swept.into_iter().enumerate() {
        points.extend(&default);
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let line = Series::new(parameter, name, points);
        series.push(if number == 0 { line } else { line.dashed() });
    }
    series
}
