//! Ways through a [`Topology`]: along given nodes, the shortest, several that share no link, and
//! the shortest ways of equal length of which routers pick one at random.

mod ways;

use std::collections::BTreeSet;

use rand_chacha::rand_core::RngCore;

use crate::matrix::below;
use crate::model::{LinkIndex, PathRoute};
use crate::nearest::{hint, nearest};
use crate::topology::{Node, Topology};
use ways::Ways;

/// Why there is no such way.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RouteError {
    /// No link begins or ends there.
    #[error("there is no node {name:?}{}", hint(nearest))]
    UnknownNode {
        /// The name.
        name: String,
        /// The most similar name that there is.
        nearest: Option<String>,
    },
    /// A name on the way is neither a node nor a link.
    #[error("there is no node and no link {name:?}{}", hint(nearest))]
    UnknownName {
        /// The name.
        name: String,
        /// The most similar name that there is.
        nearest: Option<String>,
    },
    /// A name on the way could be either.
    #[error("{name:?} is a node and a link; give one of them another name")]
    Ambiguous {
        /// The name.
        name: String,
    },
    /// The sender is the receiver.
    #[error("the way from {node:?} to itself needs no network")]
    SameEnds {
        /// The node.
        node: String,
    },
    /// No chain of links leads there.
    #[error("no links lead from {from:?} to {to:?}")]
    NoRoute {
        /// Where the way begins.
        from: String,
        /// Where it should end.
        to: String,
    },
    /// Two nodes that follow each other on the way are not neighbours.
    #[error("no link leads from {from:?} to {to:?}; a way names every node between its ends")]
    NotAdjacent {
        /// The node.
        from: String,
        /// The node after it.
        to: String,
    },
    /// A link on the way does not begin where the way is.
    #[error("link {link:?} goes from {link_from:?} to {link_to:?}, and the way is at {at:?}")]
    NotFromHere {
        /// The link.
        link: String,
        /// Where it begins.
        link_from: String,
        /// Where it ends.
        link_to: String,
        /// Where the way is.
        at: String,
    },
    /// Several links lead from one node to the next.
    #[error("{} links lead from {from:?} to {to:?}; name one of them instead: {}", links.len(), links.join(", "))]
    SeveralLinks {
        /// The node.
        from: String,
        /// The node after it.
        to: String,
        /// The links.
        links: Vec<String>,
    },
    /// There are fewer ways that share no link.
    #[error("{wanted} paths that share no link are wanted from {from:?} to {to:?}, and there are {found}")]
    TooFewDisjoint {
        /// Where the ways begin.
        from: String,
        /// Where they end.
        to: String,
        /// How many should be found.
        wanted: u32,
        /// How many there are.
        found: u32,
    },
}

/// Fewer links first, then less delay.
type Cost = (i64, i128);

impl Topology {
    /// The way with the fewest links, and among those the one with the least delay; then that
    /// whose links were added first. The way back is the same.
    ///
    /// # Errors
    ///
    /// Where a node is unknown or no links lead there.
    pub fn shortest(&self, from: &str, to: &str) -> Result<PathRoute, RouteError> {
        self.and_back(self.shortest_way(from, to)?, to, from)
    }

    /// A number of ways that share no link, which together have the fewest links and then the least
    /// delay; the shortest first.
    ///
    /// # Errors
    ///
    /// Where a node is unknown or there are fewer.
    pub fn disjoint(&self, from: &str, to: &str, paths: u32) -> Result<Vec<PathRoute>, RouteError> {
        if paths == 1 {
            return Ok(vec![self.shortest(from, to)?]);
        }
        let ends = self.two_nodes(from, to)?;
        // Each round adds a way through what is left; it may take links back from earlier ones.
        let mut used = vec![false; self.links().len()];
        for found in 0..paths {
            let Some(changed) = self.cheapest_change(&used, ends) else {
                return Err(match found {
                    0 => RouteError::NoRoute { from: from.to_owned(), to: to.to_owned() },
                    _ => RouteError::TooFewDisjoint { from: from.into(), to: to.into(), wanted: paths, found },
                });
            };
            for link in changed {
                used[link.0 as usize] ^= true;
            }
        }
        let mut ways: Vec<Vec<LinkIndex>> = (0..paths).map(|_| self.take_way(&mut used, ends)).collect();
        ways.sort_by_key(|way| (self.cost(way), way.clone()));
        ways.into_iter().map(|way| self.and_back(way, to, from)).collect()
    }

    /// A number of different ones of the ways with the fewest links, drawn with `generator`; all of
    /// them, in the order of their links, where there are not more.
    ///
    /// # Errors
    ///
    /// Where a node is unknown or no links lead there.
    pub fn equal_cost(
        &self,
        from: &str,
        to: &str,
        paths: u32,
        generator: &mut impl RngCore,
    ) -> Result<Vec<PathRoute>, RouteError> {
        let (from_node, to_node) = self.two_nodes(from, to)?;
        let no_route = || RouteError::NoRoute { from: from.to_owned(), to: to.to_owned() };
        let ways = Ways::find(self, from_node, to_node).ok_or_else(no_route)?;
        let count = ways.count();
        let mut numbers = Vec::new();
        if count <= u64::from(paths) {
            numbers.extend(0..count);
        } else {
            let mut drawn = BTreeSet::new();
            while numbers.len() < paths as usize {
                let number = below(generator, count);
                if drawn.insert(number) {
                    numbers.push(number);
                }
            }
        }
        numbers.into_iter().map(|number| self.and_back(ways.numbered(number), to, from)).collect()
    }

    /// How many ways with the fewest links there are; 2^64 - 1 also stands for more.
    ///
    /// # Errors
    ///
    /// Where a node is unknown.
    pub fn equal_cost_count(&self, from: &str, to: &str) -> Result<u64, RouteError> {
        let (from, to) = self.two_nodes(from, to)?;
        Ok(Ways::find(self, from, to).map_or(0, |ways| ways.count()))
    }

    /// The way from `from` to `to` over the nodes between them, or over links named instead of the
    /// nodes they lead to. A wire may be named by its name in both directions, and the ends may be
    /// named or left out.
    ///
    /// # Errors
    ///
    /// Where a name is unknown, or does not lead on.
    pub fn along<S: AsRef<str>>(&self, from: &str, to: &str, via: &[S]) -> Result<Vec<LinkIndex>, RouteError> {
        let (mut at, end) = self.two_nodes(from, to)?;
        let mut way = Vec::new();
        let begins_with_from = via.first().is_some_and(|first| first.as_ref() == from);
        for name in &via[usize::from(begins_with_from)..] {
            let link = self.step(at, name.as_ref())?;
            way.push(link);
            at = self.ends[link.0 as usize].1;
        }
        if at != end {
            way.push(self.link_between(at, end)?);
        }
        Ok(way)
    }

    /// A path of the way `forward` and the same way back, or the shortest where a link on it has no
    /// other direction. `to` is where `forward` ends.
    ///
    /// # Errors
    ///
    /// Where no links lead back.
    pub fn and_back(&self, forward: Vec<LinkIndex>, to: &str, from: &str) -> Result<PathRoute, RouteError> {
        let opposites: Option<Vec<LinkIndex>> = forward.iter().rev().map(|link| self.opposite(*link)).collect();
        if let Some(backward) = opposites {
            return Ok(PathRoute { forward, backward });
        }
        Ok(PathRoute { forward, backward: self.shortest_way(to, from)? })
    }

    fn shortest_way(&self, from: &str, to: &str) -> Result<Vec<LinkIndex>, RouteError> {
        let (from_node, to_node) = self.two_nodes(from, to)?;
        let no_route = || RouteError::NoRoute { from: from.to_owned(), to: to.to_owned() };
        Ok(Ways::find(self, from_node, to_node).ok_or_else(no_route)?.fastest())
    }

    /// The node of this name.
    pub(crate) fn known(&self, name: &str) -> Result<Node, RouteError> {
        self.node(name).ok_or_else(|| {
            let nearest = nearest(name, self.nodes().iter().map(String::as_str));
            RouteError::UnknownNode { name: name.to_owned(), nearest }
        })
    }

    fn two_nodes(&self, from: &str, to: &str) -> Result<(Node, Node), RouteError> {
        let ends = (self.known(from)?, self.known(to)?);
        if ends.0 == ends.1 {
            return Err(RouteError::SameEnds { node: from.to_owned() });
        }
        Ok(ends)
    }

    /// The link that leads from `at` to the node `name`, or is called so.
    fn step(&self, at: Node, name: &str) -> Result<LinkIndex, RouteError> {
        match (self.node(name), self.link(name)) {
            (Some(_), Some(_)) => Err(RouteError::Ambiguous { name: name.to_owned() }),
            (Some(node), None) => self.link_between(at, node),
            (None, Some(link)) => {
                let leaves = |link: &LinkIndex| self.ends[link.0 as usize].0 == at;
                Some(link).filter(leaves).or_else(|| self.opposite(link).filter(leaves)).ok_or_else(|| {
                    let described = &self.links()[link.0 as usize];
                    RouteError::NotFromHere {
                        link: name.to_owned(),
                        link_from: described.from.clone(),
                        link_to: described.to.clone(),
                        at: self.node_name(at).to_owned(),
                    }
                })
            }
            (None, None) => {
                let known = self.nodes().iter().chain(self.links().iter().map(|link| &link.name));
                let nearest = nearest(name, known.map(String::as_str));
                Err(RouteError::UnknownName { name: name.to_owned(), nearest })
            }
        }
    }

    fn link_between(&self, from: Node, to: Node) -> Result<LinkIndex, RouteError> {
        let leaving = &self.leaving[from.0 as usize];
        let there: Vec<LinkIndex> = leaving.iter().copied().filter(|link| self.ends[link.0 as usize].1 == to).collect();
        let names = || (self.node_name(from).to_owned(), self.node_name(to).to_owned());
        match there[..] {
            [link] => Ok(link),
            [] => {
                let (from, to) = names();
                Err(RouteError::NotAdjacent { from, to })
            }
            _ => {
                let (from, to) = names();
                let links = there.iter().map(|link| self.links()[link.0 as usize].name.clone()).collect();
                Err(RouteError::SeveralLinks { from, to, links })
            }
        }
    }

    /// The links of the cheapest way through what `used` leaves over. A link in use may be taken
    /// backwards, at what it costs less: it is in use no longer then. (Successive shortest paths,
    /// with the search of Bellman and Ford.)
    fn cheapest_change(&self, used: &[bool], (from, to): (Node, Node)) -> Option<Vec<LinkIndex>> {
        let mut best: Vec<Option<(Cost, Option<LinkIndex>)>> = vec![None; self.nodes().len()];
        best[from.0 as usize] = Some(((0, 0), None));
        let mut improved = true;
        while improved {
            improved = false;
            for (index, (begin, end)) in self.ends.iter().enumerate() {
                let link = LinkIndex(index as u32);
                let delay = self.delay_ns(link);
                let (tail, head, cost) =
                    if used[index] { (end, begin, (-1, -delay)) } else { (begin, end, (1, delay)) };
                let Some((before, _)) = best[tail.0 as usize] else { continue };
                let reached = (before.0 + cost.0, before.1 + cost.1);
                if best[head.0 as usize].is_none_or(|(known, _)| reached < known) {
                    best[head.0 as usize] = Some((reached, Some(link)));
                    improved = true;
                }
            }
        }
        let mut way = Vec::new();
        let mut at = to;
        while at != from {
            let link = best[at.0 as usize]?.1?;
            way.push(link);
            let (begin, end) = self.ends[link.0 as usize];
            at = if used[link.0 as usize] { end } else { begin };
        }
        way.reverse();
        Some(way)
    }

    /// Takes one way out of the links in use. They form no circle: without it they would cost less.
    fn take_way(&self, used: &mut [bool], (from, to): (Node, Node)) -> Vec<LinkIndex> {
        let mut way = Vec::new();
        let mut at = from;
        while at != to {
            let Some(link) = self.leaving[at.0 as usize].iter().copied().find(|link| used[link.0 as usize]) else {
                break;
            };
            used[link.0 as usize] = false;
            way.push(link);
            at = self.ends[link.0 as usize].1;
        }
        way
    }

    fn cost(&self, way: &[LinkIndex]) -> Cost {
        (way.len() as i64, way.iter().map(|link| self.delay_ns(*link)).sum())
    }

    pub(crate) fn delay_ns(&self, link: LinkIndex) -> i128 {
        // A duration has less than 2^94 nanoseconds.
        self.delay(link).as_nanos() as i128
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use fairpath_core::Bitrate;
    use fairpath_net::{LinkConfig, Streams};

    use super::*;
    use crate::topology::Wire;

    /// Wires given as (name, from, to, delay in ms).
    fn network(wires: &[(&str, &str, &str, u64)]) -> Topology {
        let mut network = Topology::new();
        for (name, from, to, delay) in wires {
            let config = LinkConfig::new(Bitrate::from_mbps(1)).delay(Duration::from_millis(*delay));
            network.add_wire(name, from, to, &Wire::both(config)).unwrap();
        }
        network
    }

    fn names<'a>(network: &'a Topology, way: &[LinkIndex]) -> Vec<&'a str> {
        way.iter().map(|link| network.links()[link.0 as usize].name.as_str()).collect()
    }

    #[test]
    fn fewer_links_come_before_less_delay_and_that_before_the_order_of_the_file() {
        let slow_but_straight = [("direct", "a", "b", 100), ("x1", "a", "x", 1), ("x2", "x", "b", 1)];
        let graph = network(&slow_but_straight);
        assert_eq!(names(&graph, &graph.shortest("a", "b").unwrap().forward), ["direct"]);
        let graph = network(&[("slow", "a", "b", 9), ("fast", "a", "b", 5), ("late", "a", "b", 5)]);
        let path = graph.shortest("a", "b").unwrap();
        assert_eq!((names(&graph, &path.forward), names(&graph, &path.backward)), (vec!["fast"], vec!["fast.back"]));
        assert_eq!(graph.base_rtt(&path), Duration::from_millis(10));
        let all = graph.disjoint("a", "b", 3).unwrap();
        let all: Vec<_> = all.iter().map(|path| names(&graph, &path.forward)).collect();
        assert_eq!(all, [["fast"], ["late"], ["slow"]]);
    }

    #[test]
    fn disjoint_paths_are_found_where_the_shortest_path_stands_in_the_way() {
        // The shortest path a-x-y-b uses up what both of the two disjoint ones need.
        let trap = [
            ("ax", "a", "x", 1),
            ("xy", "x", "y", 1),
            ("yb", "y", "b", 1),
            ("xm", "x", "m", 1),
            ("mn", "m", "n", 1),
            ("nb", "n", "b", 1),
            ("ap", "a", "p", 1),
            ("pq", "p", "q", 1),
            ("qy", "q", "y", 1),
        ];
        let graph = network(&trap);
        assert_eq!(names(&graph, &graph.shortest("a", "b").unwrap().forward), ["ax", "xy", "yb"]);
        let two = graph.disjoint("a", "b", 2).unwrap();
        let two: Vec<_> = two.iter().map(|path| names(&graph, &path.forward)).collect();
        assert_eq!(two, [["ax", "xm", "mn", "nb"], ["ap", "pq", "qy", "yb"]]);
        let error = graph.disjoint("a", "b", 3).unwrap_err();
        assert!(matches!(error, RouteError::TooFewDisjoint { wanted: 3, found: 2, .. }), "{error}");
    }

    #[test]
    fn a_way_is_named_by_nodes_or_by_links() {
        let graph = network(&[("wifi", "a", "b", 1), ("lte", "a", "b", 1), ("bc", "b", "c", 1)]);
        let along = |from: &str, to: &str, via: &[&str]| {
            graph.along(from, to, via).map(|way| names(&graph, &way).join(" ")).map_err(|error| error.to_string())
        };
        assert_eq!(along("a", "c", &["wifi"]).unwrap(), "wifi bc");
        assert_eq!(along("a", "c", &["lte", "c"]).unwrap(), "lte bc");
        assert_eq!(along("a", "c", &["a", "lte", "bc"]).unwrap(), "lte bc");
        assert_eq!(along("c", "a", &["b", "wifi"]).unwrap(), "bc.back wifi.back");
        assert_eq!(along("b", "c", &[]).unwrap(), "bc");
        let several = along("a", "c", &["b"]).unwrap_err();
        assert_eq!(several, "2 links lead from \"a\" to \"b\"; name one of them instead: wifi, lte");
        assert!(along("a", "c", &[]).unwrap_err().starts_with("no link leads from \"a\" to \"c\""));
        assert!(along("a", "c", &["wifj"]).unwrap_err().ends_with("(is \"wifi\" meant?)"));
        let not_from_here = along("a", "c", &["bc"]).unwrap_err();
        assert_eq!(not_from_here, "link \"bc\" goes from \"b\" to \"c\", and the way is at \"a\"");
        assert!(along("a", "a", &[]).unwrap_err().contains("to itself"));
        assert!(along("a", "d", &[]).unwrap_err().contains("no node \"d\""));
    }

    #[test]
    fn where_a_link_has_no_other_direction_the_shortest_way_leads_back() {
        let mut graph = network(&[("ab", "a", "b", 1)]);
        let config = LinkConfig::new(Bitrate::from_mbps(1));
        graph.add_link("satellite", "a", "b", config.clone()).unwrap();
        let forward = graph.along("a", "b", &["satellite"]).unwrap();
        let path = graph.and_back(forward, "b", "a").unwrap();
        assert_eq!(names(&graph, &path.backward), ["ab.back"]);
        graph.add_link("out", "a", "z", config).unwrap();
        let no_route = RouteError::NoRoute { from: "z".into(), to: "a".into() };
        assert_eq!(graph.shortest("a", "z").unwrap_err(), no_route);
    }

    #[test]
    fn equally_long_ways_are_drawn_without_repetition() {
        let mut wires = Vec::new();
        let middle: Vec<String> = (0..5).map(|number| format!("m{number}")).collect();
        for (node, back) in middle.iter().zip(["1", "2", "3", "4", "5"]) {
            wires.push((node.as_str(), "a", back, 1));
        }
        let mut graph = network(&wires);
        for node in ["1", "2", "3", "4", "5"] {
            let config = LinkConfig::new(Bitrate::from_mbps(1));
            graph.add_wire(&format!("to{node}"), node, "b", &Wire::both(config)).unwrap();
        }
        assert_eq!(graph.equal_cost_count("a", "b").unwrap(), 5);
        let draw = |seed: u64, paths: u32| {
            let mut generator = Streams::new(seed).generator("flow", "paths");
            graph.equal_cost("a", "b", paths, &mut generator).unwrap()
        };
        assert_eq!(draw(1, 3), draw(1, 3));
        assert!((2..20).any(|seed| draw(seed, 3) != draw(1, 3)));
        let distinct: BTreeSet<_> = draw(1, 4).into_iter().map(|path| path.forward).collect();
        assert_eq!(distinct.len(), 4);
        // All five where eight are wanted, in the order of their links.
        let all = draw(1, 8);
        assert_eq!(all.len(), 5);
        assert!(all.is_sorted_by_key(|path| path.forward.clone()));
    }
}
