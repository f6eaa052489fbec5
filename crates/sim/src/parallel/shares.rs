//! The assignment of flows and links to parts.
//!
//! All parts should have as much to do, and few packets go from one to another. The result of a run does not depend
//! on it.

use core::ops::Range;

use fairpath_net::{Network, PathRoutes};

use crate::packet::Packet;

/// How far above its even share a part may be loaded with links, so that they are near their flows.
const OVERLOAD: f64 = 1.02;

/// The part of everything.
pub(super) struct Shares {
    /// The flows of each part, which stand next to each other.
    pub(super) flows: Vec<Range<usize>>,
    /// The part of each link.
    pub(super) links: Vec<usize>,
    /// The part to which each route leads.
    pub(super) routes: Vec<usize>,
}

/// Deals out to `parts`, or fewer where there are fewer flows. Flows weigh as many as they have paths; links as many
/// as routes cross them, and they go where most of these have their flow.
pub(super) fn deal(network: &Network<Packet>, routes: &[Vec<PathRoutes>], parts: usize) -> Shares {
    let parts = parts.min(routes.len()).max(1);
    let paths: usize = routes.iter().map(Vec::len).sum();
    let mut flows: Vec<Range<usize>> = Vec::with_capacity(parts);
    let mut part_of_route = Vec::with_capacity(2 * paths);
    let link_count = network.links().len();
    let mut crossings = vec![0_u64; link_count * parts];
    let (mut begin, mut dealt) = (0, 0);
    for part in 0..parts {
        let mut end = begin;
        // Something is left for each of those behind it.
        while end < routes.len() - (parts - 1 - part) && (end == begin || dealt < (part + 1) * paths / parts) {
            dealt += routes[end].len();
            for path in &routes[end] {
                for route in [path.forward, path.backward] {
                    part_of_route.push((route, part));
                    network.route(route).for_each(|link| crossings[link.index() * parts + part] += 1);
                }
            }
            end += 1;
        }
        flows.push(begin..end);
        begin = end;
    }
    let total: u64 = crossings.iter().sum();
    let most = (total as f64 / parts as f64 * OVERLOAD) as u64;
    let mut load = vec![0; parts];
    let mut links = vec![0; link_count];
    // Those that are nearest to one part choose first.
    let mut order: Vec<usize> = (0..link_count).collect();
    let crossings_of = |link: usize| &crossings[link * parts..][..parts];
    let bias = |link: &usize| {
        let of = crossings_of(*link);
        let nearest = of.iter().max().copied().unwrap_or(0);
        core::cmp::Reverse(2 * nearest - of.iter().sum::<u64>().min(2 * nearest))
    };
    order.sort_by_key(bias);
    for link in order {
        let weight: u64 = crossings_of(link).iter().sum();
        let has_room = |part: &usize| load[*part] + weight <= most;
        let near =
            (0..parts).filter(has_room).max_by_key(|part| (crossings_of(link)[*part], core::cmp::Reverse(*part)));
        let part = near.or_else(|| (0..parts).min_by_key(|part| load[*part])).unwrap_or(0);
        load[part] += weight;
        links[link] = part;
    }
    let mut ends = vec![0; part_of_route.iter().map(|(route, _)| route.index() + 1).max().unwrap_or(0)];
    part_of_route.into_iter().for_each(|(route, part)| ends[route.index()] = part);
    Shares { flows, links, routes: ends }
}
