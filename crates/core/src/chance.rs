//! How likely a value is that is known by its mean and deviation only.

use core::time::Duration;

/// The largest share of times with this mean and standard deviation that exceeds `bound`: σ² / (σ² + (bound − m)²), by
/// Cantelli's inequality [Pluntke2011 §3]. It is all of them where the mean is no less than the bound.
pub fn share_above(mean: Duration, deviation: Duration, bound: Duration) -> f64 {
    let margin = bound.saturating_sub(mean).as_secs_f64();
    let variance = deviation.as_secs_f64() * deviation.as_secs_f64();
    if margin <= 0.0 { 1.0 } else { variance / (variance + margin * margin) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fifth_exceeds_the_mean_by_two_deviations_at_most() {
        let ms = Duration::from_millis;
        let above = |bound| share_above(ms(100), ms(50), ms(bound));
        // 50² / (50² + 100²)
        assert_eq!([above(200), above(100), above(20)], [0.2, 1.0, 1.0]);
        assert_eq!(share_above(ms(100), ms(0), ms(101)), 0.0);
    }
}
