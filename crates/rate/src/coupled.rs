//! The rates that coupled TCP, the algorithm of RFC 6356, has on the paths.

use core::time::Duration;

use crate::equation::simple;
use crate::packet_rate::PacketRate;

/// The rates by the formula as [Pluntke2011 §2] prints it, for paths of a loss rate and a round-trip time. It lacks the
/// cap that keeps a path from being more aggressive than a TCP of its own [RFC6356 §3].
///
/// x_r = √(2a) · (1/p_r) / (RTT_r · √(Σ 1/p_s)), with a = Σ x_r RTT_r · max(x_r / RTT_r) / (Σ x_r)²
pub fn printed(paths: &[(f64, Duration)]) -> Vec<PacketRate> {
    let inverse: f64 = paths.iter().map(|(loss, _)| 1.0 / loss).sum();
    let shape =
        |(loss, rtt): &(f64, Duration)| core::f64::consts::SQRT_2 / (loss * rtt.as_secs_f64() * libm::sqrt(inverse));
    let shapes: Vec<f64> = paths.iter().map(shape).collect();
    let rtt = |at: usize| paths[at].1.as_secs_f64();
    let windows: f64 = shapes.iter().enumerate().map(|(at, x)| x * rtt(at)).sum();
    let steepest = shapes.iter().enumerate().map(|(at, x)| x / rtt(at)).fold(0.0, f64::max);
    let sum: f64 = shapes.iter().sum();
    // Both sides of the definition of a grow alike with the rates, so it follows from their shape.
    let scale = libm::sqrt(windows * steepest / (sum * sum));
    shapes.into_iter().map(|x| PacketRate::new(scale * x)).collect()
}

/// The rates with that cap: in proportion to 1 / (p · RTT), on no path more than a TCP has, and together what a TCP has
/// on the best path.
pub fn capped(paths: &[(f64, Duration)]) -> Vec<PacketRate> {
    let tcp: Vec<f64> = paths.iter().map(|(loss, rtt)| simple(*rtt, *loss).per_second()).collect();
    let shapes: Vec<f64> = paths.iter().map(|(loss, rtt)| 1.0 / (loss * rtt.as_secs_f64())).collect();
    let mut by_cap: Vec<usize> = (0..paths.len()).collect();
    by_cap.sort_by(|a, b| (tcp[*a] / shapes[*a]).total_cmp(&(tcp[*b] / shapes[*b])));
    let mut left = tcp.iter().copied().fold(0.0, f64::max);
    let mut free: f64 = shapes.iter().sum();
    let mut rates = vec![PacketRate::ZERO; paths.len()];
    for path in by_cap {
        let rate = (left * shapes[path] / free).min(tcp[path]);
        (left, free) = (left - rate, free - shapes[path]);
        rates[path] = PacketRate::new(rate);
    }
    rates
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> [(f64, Duration); 3] {
        [(0.10, 20), (0.02, 100), (0.01, 300)].map(|(loss, rtt)| (loss, Duration::from_millis(rtt)))
    }

    fn close(rates: &[PacketRate], expected: [f64; 3], within: f64) {
        for (rate, expected) in rates.iter().zip(expected) {
            assert!((rate.per_second() - expected).abs() < within, "{rates:?} for {expected:?}");
        }
    }

    #[test]
    fn the_rates_of_the_paper_are_those_with_the_cap_and_not_those_of_its_formula() {
        close(&capped(&example()), [88.2, 88.2, 47.1], 0.05);
        close(&printed(&example()), [83.85, 83.85, 55.90], 0.005);
    }

    #[test]
    fn one_path_has_what_a_tcp_has() {
        let path = [(0.01, Duration::from_millis(50))];
        let tcp = simple(path[0].1, path[0].0).per_second();
        assert!((capped(&path)[0].per_second() - tcp).abs() < 1e-9);
        assert!((printed(&path)[0].per_second() - tcp).abs() < 1e-9);
    }
}
