//! The factors of the grid's runs, their levels, and how a run's number draws them.

/// A half of the grid. Detectors are tuned on one half and reported on the other. Every draw of a run,
/// and the seed of its simulation, begins with the name of its half. So no run of one half is a run of
/// the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Half {
    /// The parameters of our detector were chosen on these runs.
    Training,
    /// These were looked at once, when everything was fixed.
    Reporting,
}

impl Half {
    fn name(self) -> &'static str {
        match self {
            Self::Training => "tr/grid training",
            Self::Reporting => "tr/grid reporting",
        }
    }
}

/// How many paths there are, and which share a bottleneck while a route is as at the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) name: &'static str,
    /// The paths that cross a common link, by its number.
    pub(super) common: &'static [usize],
    /// Whether the common link is the bottleneck at the beginning; otherwise each path's own is.
    pub(super) shared: bool,
}

pub(super) const LAYOUTS: [Layout; 7] = [
    Layout { name: "2, shared", common: &[0, 0], shared: true },
    Layout { name: "2, separate", common: &[0, 0], shared: false },
    Layout { name: "3, 2+1", common: &[0, 0, 1], shared: true },
    Layout { name: "4, 2+2", common: &[0, 0, 1, 1], shared: true },
    Layout { name: "4, 3+1", common: &[0, 0, 0, 1], shared: true },
    Layout { name: "4, all shared", common: &[0, 0, 0, 0], shared: true },
    Layout { name: "4, all separate", common: &[0, 0, 0, 0], shared: false },
];

/// The queue of a bottleneck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Discipline {
    DropTail,
    Red,
    CoDel,
}

/// Traffic that does not react.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unresponsive {
    None,
    Constant,
    OnOff,
}

/// The levels of each factor, with their names.
const DISCIPLINES: [(&str, Discipline); 3] =
    [("drop-tail", Discipline::DropTail), ("RED", Discipline::Red), ("CoDel", Discipline::CoDel)];
const CROSS: [(&str, &str); 3] = [("Reno", "reno"), ("CUBIC", "cubic"), ("BBR", "bbr")];
const RTT_RATIOS: [(&str, u32); 5] = [("1", 1), ("2", 2), ("3", 3), ("4", 4), ("5", 5)];
/// Flows beside the session; with none there are short transfers only, and nothing fills the link.
const LOADS: [(&str, usize); 5] = [("light", 0), ("1 flow", 1), ("3 flows", 3), ("8 flows", 8), ("16 flows", 16)];
const ROUTES: [(&str, bool); 3] = [("stay", false), ("stay", false), ("change twice", true)];
const UNRESPONSIVE: [(&str, Unresponsive); 3] =
    [("none", Unresponsive::None), ("constant, 20 %", Unresponsive::Constant), ("on-off, 40 %", Unresponsive::OnOff)];
const JITTERS_MS: [(&str, u64); 3] = [("none", 0), ("2 ms", 2), ("10 ms", 10)];
const ALIKE: [(&str, bool); 2] = [("alike", true), ("unlike", false)];

/// The factors whose effect is shown, in this order.
pub(super) const NAMES: [&str; 9] =
    ["paths", "queue", "cross traffic", "RTT ratio", "load", "routes", "unresponsive traffic", "jitter", "bottlenecks"];

/// The factors of a run.
#[derive(Clone, Debug)]
pub(super) struct Factors {
    pub(super) half: Half,
    pub(super) number: u64,
    /// The level of each of [`NAMES`].
    pub(super) levels: [&'static str; NAMES.len()],
    pub(super) layout: Layout,
    pub(super) discipline: Discipline,
    /// The congestion control of the cross traffic.
    pub(super) cross: &'static str,
    /// The longest base round-trip time over the shortest.
    pub(super) rtt_ratio: u32,
    /// Flows of cross traffic on a bottleneck.
    pub(super) load: usize,
    /// Whether routes change.
    pub(super) changes: bool,
    pub(super) unresponsive: Unresponsive,
    pub(super) jitter_ms: u64,
    /// Whether all bottlenecks have one rate and one size of queue.
    pub(super) alike: bool,
}

impl Factors {
    /// Those of a run, numbered from 1.
    pub(super) fn of(half: Half, number: u64) -> Self {
        let level = |factor: usize, levels| stratified(half, NAMES[factor], number, levels);
        let layout = LAYOUTS[level(0, LAYOUTS.len())];
        let (queue, discipline) = DISCIPLINES[level(1, DISCIPLINES.len())];
        let (cross_name, cross) = CROSS[level(2, CROSS.len())];
        let (ratio_name, rtt_ratio) = RTT_RATIOS[level(3, RTT_RATIOS.len())];
        let (load_name, load) = LOADS[level(4, LOADS.len())];
        let (route_name, changes) = ROUTES[level(5, ROUTES.len())];
        let (unresponsive_name, unresponsive) = UNRESPONSIVE[level(6, UNRESPONSIVE.len())];
        let (jitter_name, jitter_ms) = JITTERS_MS[level(7, JITTERS_MS.len())];
        let (alike_name, alike) = ALIKE[level(8, ALIKE.len())];
        let levels = [
            layout.name,
            queue,
            cross_name,
            ratio_name,
            load_name,
            route_name,
            unresponsive_name,
            jitter_name,
            alike_name,
        ];
        Self {
            half,
            number,
            levels,
            layout,
            discipline,
            cross,
            rtt_ratio,
            load,
            changes,
            unresponsive,
            jitter_ms,
            alike,
        }
    }

    /// Numbers for something of this run, by what it is called.
    pub(super) fn draw(&self, what: &str) -> Draw {
        Draw::new(self.half, what, self.number)
    }
}

/// A level such that in each block of as many runs as there are levels every level comes once, in
/// an order that is drawn for each factor and each block.
fn stratified(half: Half, factor: &str, number: u64, levels: usize) -> usize {
    let (block, place) = (number / levels as u64, (number % levels as u64) as usize);
    let mut draw = Draw::new(half, factor, block);
    let mut order: Vec<usize> = (0..levels).collect();
    for last in (1..levels).rev() {
        order.swap(last, (draw.unit() * (last + 1) as f64) as usize);
    }
    order[place]
}

/// Random numbers.
#[derive(Clone, Debug)]
pub(super) struct Draw(u64);

impl Draw {
    pub(super) fn new(half: Half, what: &str, number: u64) -> Self {
        // FNV-1a over all that names it.
        let names = half.name().bytes().chain([0xff]).chain(what.bytes()).chain([0xff]).chain(number.to_le_bytes());
        Self(names.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)))
    }

    /// Numbers to draw runs with that are counted; they have nothing to do with either half.
    pub(super) fn resampling() -> Self {
        Self(1)
    }

    /// Any number.
    // [Steele2014]
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 up to but not including 1.
    pub(super) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Between two numbers, uniform in the logarithm.
    pub(super) fn log_between(&mut self, low: f64, high: f64) -> f64 {
        low * libm::pow(high / low, self.unit())
    }

    /// From an exponential distribution of this mean.
    pub(super) fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(1.0 - self.unit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_level_of_every_factor_comes_equally_often() {
        // 105 = 7 · 5 · 3: whole blocks but for the two levels of the last factor.
        let runs: Vec<Factors> = (0..105).map(|number| Factors::of(Half::Reporting, number)).collect();
        let count = |factor: usize, level: &str| runs.iter().filter(|run| run.levels[factor] == level).count();
        assert!(LAYOUTS.iter().all(|layout| count(0, layout.name) == 15));
        assert!(DISCIPLINES.iter().all(|(name, _)| count(1, name) == 35));
        assert!(LOADS.iter().all(|(name, _)| count(4, name) == 21));
        assert_eq!((count(5, "stay"), count(5, "change twice")), (70, 35));
    }

    #[test]
    fn the_halves_have_no_run_in_common() {
        let seeds = |half| (1..2000).map(move |number| Factors::of(half, number).draw("seed").next());
        let training: std::collections::BTreeSet<u64> = seeds(Half::Training).collect();
        assert!(training.len() == 1999 && seeds(Half::Reporting).all(|seed| !training.contains(&seed)));
    }
}
