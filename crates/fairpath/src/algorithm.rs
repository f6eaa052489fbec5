//! The algorithms that can be chosen, by their published names.

/// A name that nothing of its kind has. The caller is at fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown {kind} '{name}'; known are {}", known.join(", "))]
#[non_exhaustive]
pub struct UnknownName {
    /// The kind: "congestion control", "scheduler", "detector", "coupling", "copies" or "playout".
    pub kind: &'static str,
    /// The name given.
    pub name: String,
    /// The names there are.
    pub known: Vec<&'static str>,
}

/// An enum whose variants have names, as algorithms have those that the engine knows them by.
macro_rules! named {
    ($(#[$about:meta])* $name:ident, $kind:literal, $($(#[$of:meta])* $variant:ident = $text:literal,)+) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$of])* $variant,)+
        }

        impl $name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name, as published where that is an algorithm's.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::UnknownName;

            fn from_str(name: &str) -> Result<Self, $crate::UnknownName> {
                Self::ALL.iter().copied().find(|one| one.name() == name).ok_or_else(|| $crate::UnknownName {
                    kind: $kind,
                    name: name.to_owned(),
                    known: Self::ALL.iter().map(|one| one.name()).collect(),
                })
            }
        }
    };
}
pub(crate) use named;

named! {
    /// How fast each path sends. Coupled ones take as much as one connection where paths share a bottleneck.
    Congestion, "congestion control",
    /// Linked increases, RFC 6356.
    Lia = "lia",
    /// Opportunistic linked increases.
    Olia = "olia",
    /// Balanced linked adaptation.
    Balia = "balia",
    /// Equally weighted TCP.
    Ewtcp = "ewtcp",
    /// Fully coupled windows.
    Coupled = "coupled",
    /// The family between uncoupled and fully coupled.
    Epsilon = "epsilon",
    /// Weighted Vegas, by delay.
    WVegas = "wvegas",
    /// Delay-aware increase and decrease.
    Daimd = "daimd",
    /// Reno on each path, uncoupled.
    Reno = "reno",
    /// CUBIC on each path, uncoupled.
    Cubic = "cubic",
    /// One flow of CUBIC for each bottleneck.
    #[default]
    CoupledCubic = "coupled_cubic",
    /// The same with short queues where nobody else fills them.
    HybridCubic = "hybrid_cubic",
    /// BBR on each path, uncoupled.
    Bbr = "bbr",
    /// BBRv3 on each path, uncoupled.
    Bbr3 = "bbr3",
    /// One flow of BBR for each bottleneck.
    CoupledBbr = "coupled_bbr",
    /// One flow of BBRv3 for each bottleneck.
    CoupledBbr3 = "coupled_bbr3",
}

named! {
    /// The choice of the path, among those with room, for the next packet.
    Scheduler, "scheduler",
    /// The one with the shortest round trip.
    MinRtt = "min_rtt",
    /// One after the other.
    RoundRobin = "round_robin",
    /// By the weights of [`PathTerms`](crate::PathTerms).
    Weighted = "weighted",
    /// The cheapest by [`PathTerms`](crate::PathTerms).
    Priority = "priority",
    /// All: every packet on each.
    Redundant = "redundant",
    /// Blocking estimation.
    Blest = "blest",
    /// Earliest completion first.
    Ecf = "ecf",
    /// Slide together, multipath.
    Stms = "stms",
    /// The one on which it arrives first.
    #[default]
    Arrival = "arrival",
    /// The one that most likely brings it in time, at the least cost; as live flows have it.
    Deadline = "deadline",
}

impl Scheduler {
    /// Whether it spares paths by the costs of [`PathTerms`](crate::PathTerms).
    pub fn goes_by_costs(self) -> bool {
        fairpath_engine::EngineConfig::goes_by_costs(self.name())
    }
}

named! {
    /// The finder of shared bottlenecks, with [`Coupling::Auto`].
    Detector, "detector",
    /// By delays that agree.
    #[default]
    Concordance = "concordance",
    /// By the trend of one-way delays.
    Trendline = "trendline",
    /// By the trend of smoothed round trips.
    TrendlineSrtt = "trendline_srtt",
    /// By trends over windows that overlap.
    TrendlineOverlapping = "trendline_overlapping",
    /// By summary statistics, RFC 8382.
    SscRfc8382 = "ssc_rfc8382",
    /// The same as first published.
    SscLcn14 = "ssc_lcn14",
    /// The same as in MPTCP-SBD.
    SscMptcpSbd = "ssc_mptcp_sbd",
    /// A variant by the same authors.
    SscAuthorVariant = "ssc_author_variant",
    /// By wavelets.
    Wavelet = "wavelet",
    /// Says always that all share one.
    Always = "always",
    /// Says always that none do.
    Never = "never",
}

named! {
    /// When paths are coupled.
    Coupling, "coupling",
    /// All, always.
    Always = "always",
    /// None, ever: each takes what a connection of its own would.
    Never = "never",
    /// Those that are found to share a bottleneck.
    #[default]
    Auto = "auto",
}

#[cfg(test)]
mod tests {
    use fairpath_engine::EngineConfig;

    use super::*;

    #[test]
    fn every_algorithm_of_the_engine_has_a_name_here_and_no_other() {
        let names = |all: &[&'static str]| all.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let ours = |all: Vec<&'static str>| names(&all);
        let of = Congestion::ALL.iter().map(|one| one.name()).collect();
        assert_eq!(ours(of), names(EngineConfig::CONGESTION));
        assert_eq!(ours(Scheduler::ALL.iter().map(|one| one.name()).collect()), names(EngineConfig::SCHEDULERS));
        assert_eq!(ours(Detector::ALL.iter().map(|one| one.name()).collect()), names(EngineConfig::DETECTORS));
        assert_eq!(ours(Coupling::ALL.iter().map(|one| one.name()).collect()), names(fairpath_engine::Coupling::NAMES));
    }

    #[test]
    fn the_defaults_are_those_of_live_connections() {
        let live = EngineConfig::live();
        assert_eq!(
            (live.congestion, live.scheduler),
            (Congestion::default().to_string(), Scheduler::default().to_string())
        );
        assert_eq!(
            (live.detector, live.coupling.to_string()),
            (Detector::default().to_string(), Coupling::default().to_string())
        );
    }

    #[test]
    fn a_name_survives_text_and_an_unknown_one_is_told_with_the_known() {
        assert_eq!("olia".parse(), Ok(Congestion::Olia));
        let error = "fastest".parse::<Scheduler>().unwrap_err().to_string();
        assert!(error.contains("unknown scheduler 'fastest'") && error.contains("min_rtt"), "{error}");
    }
}
