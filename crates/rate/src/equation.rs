//! TCP's rate at a loss rate and a round-trip time.

use core::time::Duration;

use crate::packet_rate::PacketRate;

/// √2 / (RTT · √p), the formula of [Pluntke2011 §2]; without bound where nothing is lost. `loss` is a share.
pub fn simple(rtt: Duration, loss: f64) -> PacketRate {
    PacketRate::new(core::f64::consts::SQRT_2 / (rtt.as_secs_f64() * libm::sqrt(loss)))
}

/// TCP's throughput as long as nothing times out, in packets: √(3/2) / (R · √p), the first term of [RFC5348 §3.1] with
/// b = 1; without bound where nothing is lost. `loss` is the loss event rate. It is 0.87 of [`simple`]: a window that
/// grows by a packet in a round trip and is halved by each loss event is on average as large as this.
pub fn without_timeouts(rtt: Duration, loss: f64) -> PacketRate {
    PacketRate::new(libm::sqrt(1.5 / loss) / rtt.as_secs_f64())
}

/// TCP's throughput with timeouts, in packets [RFC5348 §3.1], with b = 1 and t_RTO = 4 RTT as recommended there.
/// `loss` is the loss event rate; without bound where there is none.
///
/// X = 1 / (R · √(2bp/3) + t_RTO · (3 · √(3bp/8)) · p · (1 + 32p²))
pub fn tfrc(rtt: Duration, loss: f64) -> PacketRate {
    let (rtt, b) = (rtt.as_secs_f64(), 1.0);
    let timeout = 4.0 * rtt;
    let without = rtt * libm::sqrt(2.0 * b * loss / 3.0);
    let with = timeout * 3.0 * libm::sqrt(3.0 * b * loss / 8.0) * loss * (1.0 + 32.0 * loss * loss);
    PacketRate::new(1.0 / (without + with))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn without_timeouts_it_is_the_sawtooth_and_with_few_losses_that_of_tfrc() {
        // From 20 to 40 packets in 20 round trips: 30 in each, and one of 600 is lost.
        let sawtooth = without_timeouts(ms(100), 1.0 / 600.0).per_second();
        assert!((sawtooth - 300.0).abs() < 1e-9, "{sawtooth}");
        let ratio = tfrc(ms(100), 1e-5).per_second() / without_timeouts(ms(100), 1e-5).per_second();
        assert!((0.999..1.0).contains(&ratio), "{ratio}");
        assert_eq!(without_timeouts(ms(100), 0.0).per_second(), f64::INFINITY);
    }

    #[test]
    fn the_paths_of_the_paper_carry_what_its_formula_says() {
        let rates = [(0.10, 20), (0.02, 100), (0.01, 300)].map(|(loss, rtt)| simple(ms(rtt), loss).per_second());
        for (rate, expected) in rates.into_iter().zip([223.61, 100.0, 47.14]) {
            assert!((rate - expected).abs() < 0.005, "{rate} for {expected}");
        }
    }

    #[test]
    fn with_timeouts_a_tcp_sends_less_the_more_is_lost() {
        // By hand: 0.1 · √(2·0.01/3) + 0.4 · 3 · √(3·0.01/8) · 0.01 · 1.0032 = 0.008165 + 0.000737.
        let rate = tfrc(ms(100), 0.01).per_second();
        assert!((rate - 1.0 / 0.008_902).abs() < 0.02, "{rate}");
        let shares =
            [0.001, 0.01, 0.1, 0.5].map(|loss| tfrc(ms(100), loss).per_second() / simple(ms(100), loss).per_second());
        assert!(shares.windows(2).all(|pair| pair[1] < pair[0]), "{shares:?}");
        assert!(shares[3] < 0.1);
    }

    #[test]
    fn where_nothing_is_lost_there_is_no_bound() {
        assert_eq!(simple(ms(100), 0.0).per_second(), f64::INFINITY);
        assert_eq!(tfrc(ms(100), 0.0).per_second(), f64::INFINITY);
    }
}
