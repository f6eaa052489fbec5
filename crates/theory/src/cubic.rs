//! CUBIC in the deterministic model, in which a packet is lost whenever one over the loss probability have been
//! delivered, and so what its window gains for each packet that is acknowledged.
//!
//! # Source
//!
//! [RFC9438 §5.1] for the window; the gain is what balances it in the fluid model.
//!
//! # Symbols
//!
//! | source | here | unit |
//! |---|---|---|
//! | AVG_W_cubic | `window` | packets |
//! | p | `loss` | 1 |
//! | RTT | `rtt_s` | s |
//! | C, beta_cubic | `C`, `BETA` | packets/s³, 1 |
//!
//! # Deviations
//!
//! - In the Reno-friendly region the window is that of one TCP in this crate, √(2/p), where the deterministic model of
//!   [RFC9438 §4.3] has √(3/(2p)) for both: they are friends in either.

use fairpath_cc::equation::cubic::{BETA, C};

/// The mean window at this loss probability, in packets.
// [RFC9438 §5.1]
//                     ____________________      ________
//                    /  C * ( 3 + beta )       /  RTT^3
//     AVG_W_cubic = / -------------------- * / --------
//                 4/   4 * ( 1 - beta )     4/   p^3
pub fn cubic_window(loss: f64, rtt_s: f64) -> f64 {
    libm::pow(constant(), 0.25) * libm::pow(rtt_s / loss, 0.75)
}

/// The packets that an acknowledged packet adds to such a window, the larger one of both regions.
/// It balances the loss of 1 − beta of the window for each lost packet.
//     ( 1 - beta ) * w * p( w )
//
//     with p = ( C ( 3 + beta ) / ( 4 ( 1 - beta ) ) )^(1/3) * RTT / w^(4/3), or 2 / w^2
pub(crate) fn gain(window: f64, rtt_s: f64) -> f64 {
    let cubic = libm::cbrt(constant()) * rtt_s / libm::pow(window, 4.0 / 3.0);
    let reno = 2.0 / (window * window);
    cut(window) * cubic.max(reno)
}

/// The part of the window that a lost packet takes.
pub(crate) fn cut(window: f64) -> f64 {
    (1.0 - BETA) * window
}

fn constant() -> f64 {
    C * (3.0 + BETA) / (4.0 * (1.0 - BETA))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_is_that_of_the_table_in_the_rfc() {
        // [RFC9438 §5.1], round trip of 0.1 s, C = 0.4: p = 1e-4 gives 187, p = 1e-8 gives 187,000.
        for (loss, window) in [(1e-4, 187.0), (1e-8, 187_000.0)] {
            assert!((cubic_window(loss, 0.1) / window - 1.0).abs() < 0.005, "{}", cubic_window(loss, 0.1));
        }
    }

    #[test]
    fn gain_and_cut_balance_where_the_window_is() {
        // Reno's at 10 ms and 1 %: √200 = 14.14 against 1.0537 · (0.01/0.01)^0.75 · … = 1.87.
        for (loss, rtt_s, window) in [(1e-4, 0.1, cubic_window(1e-4, 0.1)), (0.01, 0.01, libm::sqrt(200.0))] {
            assert!((gain(window, rtt_s) / (loss * cut(window)) - 1.0).abs() < 1e-9);
        }
    }
}
