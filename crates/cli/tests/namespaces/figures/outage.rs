//! A link that fails under sixteen downloads by curl, and comes back.

use std::time::{Duration, Instant};

use super::curl::{Downloads, Way};
use super::ends::{BEHIND, Ends, SOCKS, web};
use super::{Form, Goal, Rows, link};
use crate::described::{Described, INTERFACES};

/// Rates in Mbit/s and delays one way in ms.
const LINKS: [(u64, u64); 2] = [(300, 10), (80, 30)];
const DOWNLOADS: usize = 16;

/// How long a link is dark.
const DARK: Duration = Duration::from_secs(3);

/// The rate is judged over so long: from when on it is full, it is full for this long.
const STRETCH: Duration = Duration::from_millis(500);
const LOOK: Duration = Duration::from_millis(50);

/// A rate is full again from this part of the rate before.
const FULL: f64 = 0.9;

/// How long a connection may stand still, and how long the rate may take, by the goals.
const STILL_MS: f64 = 500.0;
const RETURN_S: f64 = 2.0;

pub(super) fn rows(form: Form) -> Result<Rows, String> {
    let mut rows = Rows::default();
    for seed in form.seeds() {
        for failing in [0, 1] {
            run(&mut rows, form, seed, failing)?;
        }
    }
    Ok(rows)
}

fn run(rows: &mut Rows, form: Form, seed: u64, failing: usize) -> Result<(), String> {
    let described = Described::new(seed, &LINKS.map(|(mbps, delay)| link(mbps, delay)), &[0, 1])?;
    let Described { near, far, .. } = &described;
    let (ends, port) = (Ends::start(near, far, &[])?, web(far));
    let _proxy = ends.proxy_over(&INTERFACES[..2]);
    let mut downloads = Downloads::start(near, Way::Socks(SOCKS), (BEHIND, port).into(), DOWNLOADS);
    std::thread::sleep(form.choose(Duration::from_secs(2), Duration::from_secs(5)));
    downloads.watch();
    let before = downloads.rate_over(form.choose(Duration::from_secs(1), Duration::from_secs(5)));
    let calm = downloads.longest_stillness();
    // Other moments in other runs: what waits for a timer is found early or late.
    downloads.watch();
    std::thread::sleep(Duration::from_millis(seed * 37 % 200));
    described.set_link_up(failing, false);
    let dark = downloads.rate_over(DARK);
    let still = downloads.longest_stillness();
    downloads.watch();
    described.set_link_up(failing, true);
    let limit = form.choose(Duration::from_secs(6), Duration::from_secs(15));
    let full = until_full(&downloads, before, limit);
    let after = downloads.longest_stillness();
    let (mbps, delay) = LINKS[failing];
    let of = |what: &str| format!("{mbps}/{delay} ms dark for {} s, {DOWNLOADS} downloads: {what}", DARK.as_secs());
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    rows.add(of("rate before"), "Mbit/s", None, before);
    rows.add(of("longest stillness before"), "ms", None, ms(calm));
    rows.add(of("rate meanwhile"), "Mbit/s", None, dark);
    rows.add(of("longest stillness of a connection"), "ms", Goal::AtMost(STILL_MS), ms(still.max(after)));
    rows.add(of("until the full rate after its return"), "s", Goal::AtMost(RETURN_S), full.as_secs_f64());
    described.assert_all_fitted();
    Ok(())
}

/// When the first stretch begins in which the rate is full again; the limit where there is none.
fn until_full(downloads: &Downloads, before: f64, limit: Duration) -> Duration {
    let begun = Instant::now();
    let mut seen = vec![(Duration::ZERO, downloads.received())];
    while begun.elapsed() < limit + STRETCH {
        std::thread::sleep(LOOK);
        let now = (begun.elapsed(), downloads.received());
        while seen.len() > 1 && now.0 - seen[1].0 >= STRETCH {
            seen.remove(0);
        }
        let (from, bytes) = seen[0];
        if now.0 - from >= STRETCH && crate::mbps(now.1 - bytes, now.0 - from) >= FULL * before {
            return from;
        }
        seen.push(now);
    }
    limit
}
