//! One download by curl, and sixteen at once, over two links, beside each of these links alone.

use super::curl::{Way, download};
use super::ends::{BEHIND, Ends, SOCKS, web};
use super::processors::Idle;
use super::{Form, Goal, Rows, link};
use crate::described::{Described, INTERFACES, far_address};

/// Two links, and the parts of both that one download and sixteen are to bring.
#[derive(Clone, Copy)]
struct Pair {
    /// Rates in Mbit/s, and delays one way in ms.
    links: [(u64, u64); 2],
    goals: [f64; 2],
}

const PAIRS: [Pair; 2] = [
    Pair { links: [(300, 10), (80, 30)], goals: [0.90, 0.95] },
    Pair { links: [(100, 25), (100, 25)], goals: [0.95, 0.95] },
];

pub(super) fn rows(form: Form) -> Result<Rows, String> {
    let mut rows = Rows::default();
    for seed in form.seeds() {
        for pair in PAIRS {
            run(&mut rows, form, seed, pair)?;
        }
    }
    Ok(rows)
}

fn run(rows: &mut Rows, form: Form, seed: u64, Pair { links, goals }: Pair) -> Result<(), String> {
    let described = Described::new(seed, &links.map(|(mbps, delay)| link(mbps, delay)), &[0, 1])?;
    let Described { near, far, .. } = &described;
    let (ends, port) = (Ends::start(near, far, &[])?, web(far));
    let behind = (BEHIND, port).into();
    // A link carries them in so many seconds.
    let bytes = |mbps: u64| mbps * 125_000 * form.choose(2, 10);
    let name = links.map(|(mbps, delay)| format!("{mbps}/{delay} ms")).join(" + ");
    let mut alone = 0.0;
    for (at, (mbps, _)) in links.into_iter().enumerate() {
        let plain = download(near, Way::Direct(INTERFACES[at]), (far_address(at), port).into(), 1, bytes(mbps))?;
        rows.add(format!("{name}: link {} alone, without a proxy", at + 1), "Mbit/s", None, plain);
        let _proxy = ends.proxy_over(&INTERFACES[at..=at]);
        let rate = download(near, Way::Socks(SOCKS), behind, 1, bytes(mbps))?;
        rows.add(format!("{name}: link {} alone", at + 1), "Mbit/s", None, rate);
        alone += rate;
    }
    let all = links.iter().map(|(mbps, _)| bytes(*mbps)).sum();
    for ((count, what), goal) in [(1, "one download"), (16, "16 at once")].into_iter().zip(goals) {
        let _proxy = ends.proxy_over(&INTERFACES[..2]);
        // In virtual time sixteen streams have all that one has. Here the processors may be what holds them back.
        let idle = Idle::begin();
        let rate = download(near, Way::Socks(SOCKS), behind, count, all)?;
        let idle = idle.cores();
        rows.add(format!("{name}: {what}"), "Mbit/s", None, rate);
        rows.add(format!("{name}: {what}, in parts of the links alone"), "", Goal::AtLeast(goal), rate / alone);
        rows.add(format!("{name}: {what}, cores of this machine that were idle meanwhile"), "", None, idle);
    }
    described.assert_all_fitted();
    Ok(())
}
