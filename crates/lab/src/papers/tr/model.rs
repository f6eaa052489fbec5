//! The fluid model of a queue that builds up: §4.1.
//!
//! Delays are in seconds, `share` is C/n, the fair share of a flow in packets in a second.

// [TR2018 §4.1 eq. 13]
//     r(t) = sqrt( d^2 + 2 (n/C) t )
/// The round-trip time so long after the queue began to build up.
pub(super) fn delay(base: f64, share: f64, time: f64) -> f64 {
    (base * base + 2.0 * time / share).sqrt()
}

// [TR2018 §4.1 eq. 14]
//     r(t) ~ d + n t / (C d)
/// Its tangent.
pub(super) fn delay_tangent(base: f64, share: f64, time: f64) -> f64 {
    base + time / (share * base)
}

// [TR2018 §4.1 eq. 15]
//     n / (C d + Q) <= k <= n / (C d)
/// The slope in ms/s at a round-trip time of `delay`. That is d if the queue is empty, d + Q/C if it is
/// full.
pub(super) fn slope_ms_per_s(delay: f64, share: f64) -> f64 {
    1e3 / (share * delay)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delay_grows_by_the_root() {
        // C/n = 50 packets in a second: 0.3² + 2 · 3.5/50 = 0.09 + 0.14 = 0.23 = 0.4796²
        assert!((delay(0.3, 50.0, 3.5) - 0.4796).abs() < 1e-4);
        // 0.3 + 3.5/(50 · 0.3) = 0.5333
        assert!((delay_tangent(0.3, 50.0, 3.5) - 0.5333).abs() < 1e-4);
    }

    #[test]
    fn the_slopes_of_table_1_are_what_its_fair_shares_give() {
        // 20 Mbit/s for 30 flows: 55.56 packets in a second each; 180 ms, and 280 with the queue.
        let share = 20e6 / 8.0 / 1500.0 / 30.0;
        assert!((slope_ms_per_s(0.18, share) - 100.0).abs() < 0.01);
        assert!((slope_ms_per_s(0.28, share) - 64.29).abs() < 0.01);
    }
}
