//! The pages of the guide whose commands need links, and are run in namespaces.

/// In the order in which somebody reads them: the first one sets up both ends.
pub(crate) const PROXY_PAGES: [&str; 8] = [
    "any-program",
    "what-programs-see",
    "see-and-steer",
    "ports-and-all-programs",
    "keep-it-running",
    "vehicle",
    "router",
    "vpn-and-other-proxies",
];
