//! Remedies: the window clamp, probes and BBR (slides 9 to 11).
//!
//! # Claim
//!
//! With small buffers the clamp helps with λ = 3/2 and not with 3, with large ones both do; probing improves throughput,
//! but not by much; BBR increases it about as the clamp does.
//!
//! # Topology
//!
//! ```text
//!            ┌── 30 Mbit/s, 3,000 packets ──┐
//!   sender ──┤                              ├── receiver
//!            └── 30 Mbit/s, 3,000 packets ──┘
//! ```
//!
//! # Parameters
//!
//! | parameter | value | from |
//! |---|---|---|
//! | rates, queues | 30 Mbit/s and 3,000 packets each | paper |
//! | round-trip time | 100 ms | paper |
//! | λ | 3/2 and 3 | paper |
//! | congestion control, scheduling | NewReno, uncoupled, or BBRv1; min-RTT | paper |
//! | jitter | 1 ms, without which two equal paths lock for good | assumed |
//! | send buffer | what of it is payload, 0.63 by Linux's accounting | assumed, as in an independent model |
//! | duration | 120 s, in the quick form 60 s with large buffers, measured from 20 s on | assumed |
//!
//! # Deviations
//!
//! - The curves are pictures only; beside ours stands an independent model of the same network.
//! - The slide applies the clamp at every acknowledgement. Here it is applied once in a smoothed round-trip time, as in
//!   that model: a window that was cut shows in round trips only then. At every acknowledgement small buffers gain more.
//! - A probe carries no data; the slides' carries a segment.

use fairpath_scenario::Remedies;

use super::couple::{Couple, GROWTH, NONE};
use crate::table::Source;
use crate::{Cell, Context, Experiment, Failure, Report, Table, Verdict};

pub(super) const EXPERIMENT: Experiment = Experiment::new("odd_couple/remedies", include_str!("remedies.rs"), run);

/// Payload of the send buffer in kB, and what the independent model has for none, λ = 3/2, λ = 3 and BBRv1, in Mbit/s.
const BUFFERS: [(u64, [f64; 4]); 8] = [
    (700, [36.0, 46.0, 36.0, 54.0]),
    (1_000, [42.0, 54.0, 42.0, 56.0]),
    (1_500, [50.0, 58.0, 51.0, 56.0]),
    (2_000, [52.0, 58.0, 54.0, 56.0]),
    (3_000, [54.0, 58.0, 58.0, 56.0]),
    (4_000, [55.0, 58.0, 58.0, 56.0]),
    (6_000, [56.0, 58.0, 58.0, 56.0]),
    (8_000, [58.0, 58.0, 58.0, 56.0]),
];

const fn clamp(lambda: f64) -> Remedies {
    Remedies { bloat_clamp: Some(lambda), ..NONE }
}

const PROBE: Remedies = Remedies { probe: true, ..NONE };

/// The congestion control, the remedies, the jitter in µs, and which number of the model stands beside it.
const CURES: [(&str, &str, Remedies, u64, Option<usize>); 7] = [
    ("none", "reno", NONE, 1_000, Some(0)),
    ("λ = 3/2", "reno", clamp(1.5), 1_000, Some(1)),
    ("λ = 3", "reno", clamp(3.0), 1_000, Some(2)),
    ("probe", "reno", PROBE, 1_000, None),
    ("probe, λ = 3/2", "reno", Remedies { bloat_clamp: Some(1.5), ..PROBE }, 1_000, None),
    ("probe, no jitter", "reno", PROBE, 0, None),
    ("BBRv1", "bbr", NONE, 1_000, Some(3)),
];

fn run(context: &Context) -> Result<Report, Failure> {
    let buffers = context.pick(vec![BUFFERS[0], BUFFERS[4]], BUFFERS.to_vec());
    // The quick form leaves out probes: four seeds of all would take too long.
    let all: Vec<_> = CURES.iter().filter(|cure| !cure.2.probe).collect();
    let cures = context.pick(all, CURES.iter().collect());
    // With small buffers it takes longer until the means are known.
    let seconds = |send_kb: u64| if send_kb > 1_000 { context.pick(60, 120) } else { 120 };
    let cases: Vec<Couple> = buffers
        .iter()
        .flat_map(|(send_kb, _)| {
            cures.iter().map(|(_, congestion, remedies, jitter_us, _)| Couple {
                congestion,
                remedies: *remedies,
                jitter_us: *jitter_us,
                seconds: seconds(*send_kb),
                ..Couple::plain(*send_kb)
            })
        })
        .collect();
    let seen = context.sweep(&cases, &context.seeds(context.pick(3, 5)), Couple::goodput)?;
    let mut table = Table::new(
        "throughput",
        "Two paths of 30 Mbit/s with deep queues and min-RTT, by the payload that the send buffer holds",
        &["send buffer"],
        &cures.iter().map(|(title, ..)| (*title, "Mbit/s")).collect::<Vec<_>>(),
    );
    for ((send_kb, model), runs) in buffers.iter().zip(seen.chunks(cures.len())) {
        let cells = cures.iter().zip(runs).map(|(cure, rates)| {
            let cell = Cell::of(rates.iter().copied());
            cure.4.map_or(cell.clone(), |of| cell.elsewhere(Source::Model, model[of]))
        });
        table.push(&[&name(*send_kb)], &cells.collect::<Vec<_>>());
    }
    let verdicts = verdicts(&buffers, &table);
    Ok(Report { tables: vec![table], verdicts, ..Report::default() })
}

fn name(send_kb: u64) -> String {
    format!("{send_kb} kB")
}

/// [DeliveryRate] §3.4
const BBR_ELSE: &str = "with 1 MB and less the send buffer limits the application, and by its own rule, which the model lacks, \
    BBR leaves start-up only by samples of the delivery rate that the application does not limit.";

/// More than chance gives, in Mbit/s: what a cure must add to help.
const HELPS: f64 = 1.0;

fn verdicts(buffers: &[(u64, [f64; 4])], table: &Table) -> Vec<Verdict> {
    let has = |cure: &str| table.columns.iter().any(|column| column.name == cure);
    let of = |send_kb: u64, cure: &str| table.estimate(&[&name(send_kb)], cure);
    let gain = |send_kb: u64, cure: &str| of(send_kb, cure) - of(send_kb, "none");
    let mut small = Verdict::new("small buffers", "With small buffers λ = 3/2 helps, and 3 does not.");
    let mut large = Verdict::new("large buffers", "With large buffers both help.");
    let mut probing = Verdict::new("probing", "Probing improves throughput, and less than the clamp does.");
    let mut bbr = Verdict::new("BBR", "BBR increases throughput about as the clamp with 3/2 does, within 10 %.");
    let mut model = Verdict::ours("as the model", "Each is as in an independent model, within 10 %.");
    for &(send_kb, expected) in buffers {
        let at = |what: &str| format!("{send_kb} kB: {what}");
        match send_kb {
            ..=1_000 => {
                small = small.at_least(&at("λ = 3/2 − none"), gain(send_kb, "λ = 3/2"), HELPS).at_most(
                    &at("λ = 3 − none"),
                    gain(send_kb, "λ = 3"),
                    HELPS,
                );
            }
            2_500..=5_000 => {
                for cure in ["λ = 3/2", "λ = 3"] {
                    large = large.at_least(&at(&format!("{cure} − none")), gain(send_kb, cure), HELPS);
                }
            }
            _ => {}
        }
        if send_kb <= 5_000 && has("probe") {
            probing = probing.at_least(&at("probe − none"), gain(send_kb, "probe"), 0.0).at_most(
                &at("probe − λ = 3/2"),
                of(send_kb, "probe") - of(send_kb, "λ = 3/2"),
                0.0,
            );
        }
        if has("BBRv1") {
            let ratio = of(send_kb, "BBRv1") / of(send_kb, "λ = 3/2");
            bbr = bbr.between(&at("BBR, in parts of λ = 3/2"), ratio, 0.9, 1.1);
        }
        for (title, .., which) in CURES {
            let Some(which) = which.filter(|_| has(title)) else { continue };
            let ratio = of(send_kb, title) / expected[which];
            model = model.between(&at(&format!("{title}, in parts of the model's")), ratio, 0.9, 1.1);
        }
    }
    [small, large, probing, bbr.because(BBR_ELSE), model.because(GROWTH)]
        .into_iter()
        .filter(|verdict| !verdict.checks.is_empty())
        .collect()
}
