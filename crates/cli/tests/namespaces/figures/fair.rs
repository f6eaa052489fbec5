//! Sixteen downloads by curl through the proxy, both of whose paths lead over one link, beside one download by CUBIC of the
//! kernel over the same link. A second CUBIC in the bond's place says how evenly that one shares with its like, and one path
//! of ours what is not the bond's.

use std::time::{Duration, Instant};

use fairpath_emu::{QueueConfig, QueueLimit};

use super::curl::{Downloads, Way};
use super::ends::{BEHIND, Ends, SOCKS, web};
use super::{Form, Goal, Rows, link};
use crate::described::{Described, INTERFACES, far_address};

/// The rate of the link in Mbit/s, its delay one way in ms, and how long its queue is.
const LINK: (u64, u64) = (40, 20);
const QUEUES_MS: [u64; 2] = [50, 200];
const DOWNLOADS: usize = 16;

/// By so much the CUBIC is first.
const AHEAD: Duration = Duration::from_secs(2);

/// As one connection is from the one to the other.
const AS_ONE: (f64, f64) = (0.8, 1.25);

pub(super) fn rows(form: Form) -> Result<Rows, String> {
    let mut rows = Rows::default();
    for (seed, queue) in form.seeds().flat_map(|seed| QUEUES_MS.map(|queue| (seed, queue))) {
        run(&mut rows, form, seed, queue)?;
    }
    Ok(rows)
}

fn run(rows: &mut Rows, form: Form, seed: u64, queue_ms: u64) -> Result<(), String> {
    let queue = QueueConfig::DropTail(QueueLimit::Sojourn(Duration::from_millis(queue_ms)));
    let shared = link(LINK.0, LINK.1).map(|direction| direction.queue(queue.clone()));
    let described = Described::new(seed, &[shared], &[0, 0, 0])?;
    let Described { near, far, .. } = &described;
    let (ends, port) = (Ends::start(near, far, &[])?, web(far));
    let rival = || Downloads::start(near, Way::Direct(INTERFACES[2]), (far_address(2), port).into(), 1);
    let name = format!("{}/{} ms with a queue of {queue_ms} ms", LINK.0, LINK.1);

    let first = rival();
    std::thread::sleep(AHEAD);
    let second = Downloads::start(near, Way::Direct(INTERFACES[0]), (far_address(0), port).into(), 1);
    let [beside_like, like] = rates(form, &first, &second);
    rows.add(
        format!("{name}: a second CUBIC in place of the bond, in parts of the CUBIC"),
        "",
        None,
        like / beside_like,
    );
    drop((first, second));

    let first = rival();
    std::thread::sleep(AHEAD);
    let proxy = ends.proxy_over(&INTERFACES[..1]);
    let alone = Downloads::start(near, Way::Socks(SOCKS), (BEHIND, port).into(), DOWNLOADS);
    let [theirs, alone_has] = rates(form, &first, &alone);
    let what = format!("{name}: {DOWNLOADS} downloads over one path in place of the bond, in parts of the CUBIC");
    rows.add(what, "", None, alone_has / theirs);
    drop((first, alone, proxy));

    let first = rival();
    std::thread::sleep(AHEAD);
    let _proxy = ends.proxy_over(&INTERFACES[..2]);
    let bond = Downloads::start(near, Way::Socks(SOCKS), (BEHIND, port).into(), DOWNLOADS);
    let ([theirs, ours], together) = std::thread::scope(|scope| {
        let together = scope.spawn(|| part_of_looks(form, || ends.is_together()));
        (rates(form, &first, &bond), together.join().expect("it does not panic"))
    });
    rows.add(format!("{name}: {DOWNLOADS} downloads through the bond"), "Mbit/s", None, ours);
    rows.add(format!("{name}: one CUBIC beside them"), "Mbit/s", None, theirs);
    let share = format!("{name}: the bond, in parts of the CUBIC");
    rows.add(share, "", Goal::Between(AS_ONE.0, AS_ONE.1), ours / theirs);
    // Two of the kernel share by chance, too, and the second one is late.
    let as_one = format!("{name}: the bond's part, in parts of that of a second CUBIC in its place");
    rows.add(as_one, "", Goal::Between(AS_ONE.0, AS_ONE.1), (ours / theirs) / (like / beside_like));
    rows.add(
        format!("{name}: the part of the time in which the bond took its paths for one link's"),
        "",
        None,
        together,
    );
    described.assert_all_fitted();
    Ok(())
}

/// The rates of both in Mbit/s, once they have found their shares, and the bond that its paths share the link.
fn rates(form: Form, one: &Downloads, other: &Downloads) -> [f64; 2] {
    std::thread::sleep(form.choose(Duration::from_secs(8), Duration::from_secs(20)));
    std::thread::scope(|scope| {
        let one = scope.spawn(|| one.rate_over(time(form)));
        let other = other.rate_over(time(form));
        [one.join().expect("it does not panic"), other]
    })
}

fn time(form: Form) -> Duration {
    form.choose(Duration::from_secs(5), Duration::from_secs(60))
}

/// Looks while rates are measured; the part of the looks that found it so.
fn part_of_looks(form: Form, is_so: impl Fn() -> bool) -> f64 {
    std::thread::sleep(form.choose(Duration::from_secs(8), Duration::from_secs(20)));
    let (begun, mut looks, mut found) = (Instant::now(), 0_u32, 0_u32);
    while begun.elapsed() < time(form) {
        looks += 1;
        found += u32::from(is_so());
        std::thread::sleep(Duration::from_millis(500));
    }
    f64::from(found) / f64::from(looks)
}
