//! The rates of the greatest value, where each packet of a path has a value of its own.
//!
//! The region of friendly rates is a polymatroid: max_S T is monotone and submodular. So taking as much as there is of
//! the most valuable path, then of the next, is exact [Edmonds1970]: O(n log n), and no more than n of the constraints
//! are ever looked at.

use crate::packet_rate::PacketRate;
use crate::region::Region;

/// Rates on the paths for probing that are always friendly: a share of what all paths may carry together, but on none
/// more than its part of what a TCP would send there.
pub fn floors(region: &Region, share: f64) -> Vec<PacketRate> {
    let (whole, paths) = (region.whole().per_second(), region.paths() as f64);
    let floor = |tcp: &PacketRate| PacketRate::new((share * whole).min(tcp.per_second() / paths));
    region.tcp().iter().map(floor).collect()
}

/// The friendly rates with the greatest sum of value · rate and no rate below its floor. Where `floors` are not
/// friendly themselves nothing is added to them. A path whose packets have no value keeps its floor.
pub fn greedy(region: &Region, values: &[f64], floors: &[PacketRate]) -> Vec<PacketRate> {
    greedy_within(region, values, floors, &vec![PacketRate::new(f64::INFINITY); floors.len()])
}

/// The same with no rate above its cap either, where the floor is not. Within bounds for each path the region still is a
/// polymatroid.
pub fn greedy_within(region: &Region, values: &[f64], floors: &[PacketRate], caps: &[PacketRate]) -> Vec<PacketRate> {
    let order = region.order();
    let mut place = vec![0; order.len()];
    order.iter().enumerate().for_each(|(at, path)| place[*path] = at);
    let mut by_value: Vec<usize> = (0..order.len()).filter(|path| values[*path] > 0.0).collect();
    by_value.sort_by(|a, b| values[*b].total_cmp(&values[*a]).then(a.cmp(b)));
    let mut left = region.left(floors);
    let mut rates = floors.to_vec();
    // From this place on some constraint over the path has nothing left.
    let mut used_up = order.len();
    for path in by_value {
        if place[path] >= used_up {
            continue;
        }
        let over = &mut left[..=place[path]];
        let (tightest, room) =
            over.iter().enumerate().fold(
                (0, f64::INFINITY),
                |(at, least), (index, left)| {
                    if *left < least { (index, *left) } else { (at, least) }
                },
            );
        let below_cap = caps[path].per_second() - rates[path].per_second();
        if below_cap > room {
            used_up = tightest;
        }
        let room = room.min(below_cap).max(0.0);
        over.iter_mut().for_each(|left| *left -= room);
        rates[path] = PacketRate::new(rates[path].per_second() + room);
    }
    rates
}
