//! The names of paths.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

/// The ends of a path, as far as its name may say them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends<'a> {
    /// The interface here.
    pub(crate) interface: &'a str,
    /// The address here.
    pub(crate) ours: Option<IpAddr>,
    /// The peer's.
    pub(crate) theirs: SocketAddr,
}

/// A name for each path, and no two alike: that of its interface, and where several paths share one, the least that
/// tells these apart: our address, the peer's, both, or a number.
pub(crate) fn names(paths: &[Ends<'_>]) -> Vec<String> {
    let ours = |at: usize| paths[at].ours.map_or(String::new(), |address| format!("/{address}"));
    let ways: [&dyn Fn(usize) -> String; 6] = [
        &|_| String::new(),
        &ours,
        &|at| format!("/{}", paths[at].theirs.ip()),
        &|at| format!("/{}", paths[at].theirs),
        &|at| format!("{}/{}", ours(at), paths[at].theirs),
        &|at| format!("#{}", at + 1),
    ];
    let name = |at: usize| {
        let alike = || (0..paths.len()).filter(|other| paths[*other].interface == paths[at].interface);
        let tells_apart = |way: &&&dyn Fn(usize) -> String| {
            let words: BTreeSet<String> = alike().map(*way).collect();
            words.len() == alike().count()
        };
        let way = ways.iter().find(tells_apart).expect("no two have the same number");
        format!("{}{}", paths[at].interface, way(at))
    };
    (0..paths.len()).map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path<'a>(interface: &'a str, ours: &str, theirs: &str) -> Ends<'a> {
        Ends { interface, ours: ours.parse().ok(), theirs: theirs.parse().unwrap() }
    }

    #[test]
    fn an_address_is_in_a_name_only_where_it_tells_apart() {
        let theirs = ["192.0.2.1:9", "192.0.2.2:9"];
        let alone = [path("eth0", "10.0.0.1", theirs[0]), path("wwan0", "10.0.0.1", theirs[0])];
        assert_eq!(names(&alone), ["eth0", "wwan0"]);
        let two_of_ours = ["10.0.0.1", "10.0.0.2"].map(|ours| path("eth0", ours, theirs[0]));
        assert_eq!(names(&two_of_ours), ["eth0/10.0.0.1", "eth0/10.0.0.2"]);
        let two_of_theirs = theirs.map(|theirs| path("eth0", "10.0.0.1", theirs));
        assert_eq!(names(&two_of_theirs), ["eth0/192.0.2.1", "eth0/192.0.2.2"]);
        assert_eq!(names(&theirs.map(|theirs| path("eth0", "", theirs))), ["eth0/192.0.2.1", "eth0/192.0.2.2"]);
        let two_ports = ["192.0.2.1:8", "192.0.2.1:9"].map(|theirs| path("eth0", "10.0.0.1", theirs));
        assert_eq!(names(&two_ports), ["eth0/192.0.2.1:8", "eth0/192.0.2.1:9"]);
        let crossed = ["10.0.0.1", "10.0.0.2"].map(|ours| theirs.map(|theirs| path("eth0", ours, theirs)));
        assert_eq!(names(&crossed.concat())[1], "eth0/10.0.0.1/192.0.2.2:9");
    }

    #[test]
    fn no_two_paths_have_the_same_name() {
        let alike = ["192.0.2.1:9", "192.0.2.2:9", "192.0.2.2:9"].map(|theirs| path("lo", "127.0.0.1", theirs));
        assert_eq!(names(&alike), ["lo#1", "lo#2", "lo#3"]);
    }
}
