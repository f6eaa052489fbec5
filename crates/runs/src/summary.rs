//! The results of a run: flows by class, and links.

use core::time::Duration;

use fairpath_core::Estimate;
use fairpath_report::text::table;
use fairpath_scenario::Scenario;
use fairpath_sim::{FlowOutcome, LinkOutcome, Outcome, PathCount, jain_index};
use serde_json::{Value, json};

/// The classes of a scenario, in its order.
pub(crate) fn classes(scenario: &Scenario) -> Vec<&str> {
    let mut classes: Vec<&str> = Vec::new();
    for flow in &scenario.flows {
        if !classes.contains(&flow.class.as_str()) {
            classes.push(&flow.class);
        }
    }
    classes
}

pub(crate) fn mbps(flow: &FlowOutcome) -> f64 {
    flow.goodput.as_mbps_f64()
}

pub(crate) fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

pub(crate) fn mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    Estimate::of(values).map(|estimate| estimate.mean)
}

/// The quantile of times; `None` of none.
pub(crate) fn quantile(times: &[Duration], share: f64) -> Option<Duration> {
    let mut times = times.to_vec();
    times.sort();
    times.get(((times.len().saturating_sub(1)) as f64 * share).round() as usize).copied()
}

/// The sum over all paths of some flows.
pub(crate) fn total<'a>(flows: impl Iterator<Item = &'a FlowOutcome>) -> PathCount {
    let mut total = PathCount::default();
    for path in flows.flat_map(|flow| &flow.paths) {
        total.sent += path.count.sent;
        total.lost += path.count.lost;
        total.rtt_samples += path.count.rtt_samples;
        total.rtt_sum += path.count.rtt_sum;
    }
    total
}

pub(crate) fn lost_percent(count: &PathCount) -> f64 {
    if count.sent == 0 { 0.0 } else { 100.0 * count.lost as f64 / count.sent as f64 }
}

/// The tables for people.
pub fn text(scenario: &Scenario, outcome: &Outcome) -> String {
    let mut text = format!(
        "{}: {} s from second {} on, seed {}\n\n",
        scenario.title,
        outcome.measured.as_secs_f64(),
        scenario.warm_up.as_secs_f64(),
        scenario.seed
    );
    let mut rows = Vec::new();
    for class in classes(scenario) {
        let flows: Vec<&FlowOutcome> = outcome.class(class).collect();
        rows.push(class_row(class, &flows));
        let paths = flows.iter().map(|flow| flow.paths.len()).max().unwrap_or(0);
        for at in (0..paths).filter(|_| paths > 1) {
            rows.push(path_row(at, &flows));
        }
    }
    text += &table(&["flows", "number", "Mbit/s", "lowest", "highest", "Jain", "lost %", "RTT ms"], &rows);
    let transfers = transfers(scenario, outcome);
    if !transfers.is_empty() {
        text += "\n";
        text += &table(&["transfers", "begun", "ended", "mean ms", "median ms", "95 % ms"], &transfers);
    }
    let frames = frames(scenario, outcome);
    if !frames.is_empty() {
        text += "\n";
        text += &table(&["frames", "number", "median ms", "99 % ms", "worst ms"], &frames);
    }
    let busy: Vec<&LinkOutcome> =
        outcome.links.iter().filter(|link| link.dropped > 0 || link.utilisation.is_some_and(|u| u > 0.01)).collect();
    let shown = busy.iter().take(LINKS_MAX).map(|link| {
        vec![
            link.name.clone(),
            format!("{:.2}", link.rate.as_mbps_f64()),
            link.utilisation.map_or("-".into(), |share| format!("{:.1}", share * 100.0)),
            format!("{:.2}", link.drop_share() * 100.0),
            format!("{:.1}", ms(link.mean_wait)),
        ]
    });
    text += "\n";
    text += &table(&["link", "Mbit/s", "used %", "dropped %", "wait ms"], &shown.collect::<Vec<_>>());
    if busy.len() > LINKS_MAX {
        text += &format!("and {} more links; the summary has them all\n", busy.len() - LINKS_MAX);
    }
    text + "\n"
}

/// The table of links has at most so many rows.
pub(crate) const LINKS_MAX: usize = 24;

fn class_row(class: &str, flows: &[&FlowOutcome]) -> Vec<String> {
    let rates: Vec<f64> = flows.iter().map(|flow| mbps(flow)).collect();
    let count = total(flows.iter().copied());
    vec![
        class.to_owned(),
        flows.len().to_string(),
        format!("{:.3}", mean(rates.clone()).unwrap_or(0.0)),
        format!("{:.3}", rates.iter().copied().fold(f64::INFINITY, f64::min)),
        format!("{:.3}", rates.iter().copied().fold(0.0, f64::max)),
        if flows.len() > 1 { format!("{:.3}", jain_index(rates)) } else { "-".into() },
        format!("{:.2}", lost_percent(&count)),
        count.mean_rtt().map_or("-".into(), |rtt| format!("{:.1}", ms(rtt))),
    ]
}

fn path_row(at: usize, flows: &[&FlowOutcome]) -> Vec<String> {
    let paths: Vec<_> = flows.iter().filter_map(|flow| flow.paths.get(at)).collect();
    let rates: Vec<f64> = paths.iter().map(|path| path.goodput.as_mbps_f64()).collect();
    let rtt = mean(paths.iter().filter_map(|path| path.count.mean_rtt()).map(ms));
    let lost = mean(paths.iter().map(|path| lost_percent(&path.count)));
    vec![
        format!("  path {at}"),
        String::new(),
        format!("{:.3}", mean(rates.clone()).unwrap_or(0.0)),
        format!("{:.3}", rates.iter().copied().fold(f64::INFINITY, f64::min)),
        format!("{:.3}", rates.iter().copied().fold(0.0, f64::max)),
        String::new(),
        format!("{:.2}", lost.unwrap_or(0.0)),
        rtt.map_or("-".into(), |rtt| format!("{rtt:.1}")),
    ]
}

fn transfers(scenario: &Scenario, outcome: &Outcome) -> Vec<Vec<String>> {
    let row = |class: &str| {
        let times: Vec<Duration> = outcome.class(class).flat_map(|flow| flow.completions.iter().copied()).collect();
        let begun: u64 = outcome.class(class).map(|flow| flow.begun).sum();
        let show = |time: Option<Duration>| time.map_or("-".into(), |time| format!("{:.1}", ms(time)));
        (!times.is_empty()).then(|| {
            vec![
                class.to_owned(),
                begun.to_string(),
                times.len().to_string(),
                mean(times.iter().copied().map(ms)).map_or("-".into(), |mean| format!("{mean:.1}")),
                show(quantile(&times, 0.5)),
                show(quantile(&times, 0.95)),
            ]
        })
    };
    classes(scenario).into_iter().filter_map(row).collect()
}

fn frames(scenario: &Scenario, outcome: &Outcome) -> Vec<Vec<String>> {
    let row = |class: &str| {
        let times: Vec<Duration> = outcome.class(class).flat_map(|flow| flow.frame_delays.iter().copied()).collect();
        let show = |share: f64| quantile(&times, share).map_or("-".into(), |time| format!("{:.1}", ms(time)));
        (!times.is_empty()).then(|| vec![class.to_owned(), times.len().to_string(), show(0.5), show(0.99), show(1.0)])
    };
    classes(scenario).into_iter().filter_map(row).collect()
}

/// Everything, for programs.
pub fn json(scenario: &Scenario, outcome: &Outcome) -> Value {
    json!({
        "title": scenario.title,
        "seed": scenario.seed,
        "measured_seconds": outcome.measured.as_secs_f64(),
        "flows": outcome.flows.iter().map(flow_json).collect::<Vec<_>>(),
        "links": outcome.links.iter().map(link_json).collect::<Vec<_>>(),
    })
}

fn flow_json(flow: &FlowOutcome) -> Value {
    let nanos = |times: &[Duration]| times.iter().map(Duration::as_nanos).map(|ns| ns as u64).collect::<Vec<_>>();
    let path = |path: &fairpath_sim::PathOutcome| {
        json!({
            "goodput_bps": path.goodput.as_bps(),
            "delivered_bytes": path.count.delivered.get(),
            "sent_packets": path.count.sent,
            "lost_packets": path.count.lost,
            "congestion_episodes": path.count.episodes,
            "timeouts": path.count.timeouts,
            "mean_rtt_ns": path.count.mean_rtt().map(|rtt| rtt.as_nanos() as u64),
        })
    };
    json!({
        "name": flow.name,
        "class": flow.class,
        "goodput_bps": flow.goodput.as_bps(),
        "delivered_bytes": flow.delivered.get(),
        "duplicate_pieces": flow.duplicates,
        "transfers_begun": flow.begun,
        "completion_ns": nanos(&flow.completions),
        "frame_delay_ns": nanos(&flow.frame_delays),
        "paths": flow.paths.iter().map(path).collect::<Vec<_>>(),
    })
}

fn link_json(link: &LinkOutcome) -> Value {
    json!({
        "name": link.name,
        "rate_bps": link.rate.as_bps(),
        "utilisation": link.utilisation,
        "offered_packets": link.offered,
        "dropped_packets": link.dropped,
        "mean_wait_ns": link.mean_wait.as_nanos() as u64,
    })
}
