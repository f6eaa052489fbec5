//! How alike two signals are.

/// The largest correlation of two signals, where one of them may be up to `lag_max` points behind.
pub(super) fn largest(a: &[f64], b: &[f64], lag_max: usize) -> f64 {
    let lag_max = lag_max.min(a.len().saturating_sub(2));
    let shifted = |lag: usize| {
        let (behind, ahead) = (lag, a.len() - lag);
        correlation(&a[..ahead], &b[behind..]).max(correlation(&a[behind..], &b[..ahead]))
    };
    (0..=lag_max).map(shifted).fold(-1.0, f64::max)
}

/// Pearson's coefficient of correlation; zero where a signal does not vary.
fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let n = a.len() as f64;
    let (mean_a, mean_b) = (a.iter().sum::<f64>() / n, b.iter().sum::<f64>() / n);
    let (mut ab, mut aa, mut bb) = (0.0, 0.0, 0.0);
    for (x, y) in a.iter().zip(b) {
        let (x, y) = (x - mean_a, y - mean_b);
        ab += x * y;
        aa += x * x;
        bb += y * y;
    }
    // The rest of a constant after rounding is no variation.
    let least = 1e-9 * n;
    if aa > least && bb > least { ab / libm::sqrt(aa * bb) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worked_correlation() {
        // Deviations -1, 0, 1 and -1, 1, 0: 1 / √(2 · 2) = 0.5
        assert!((correlation(&[1.0, 2.0, 3.0], &[1.0, 3.0, 2.0]) - 0.5).abs() < 1e-12);
        assert_eq!(correlation(&[1.0, 2.0, 3.0], &[5.0, 5.0, 5.0]), 0.0);
    }

    #[test]
    fn a_signal_that_is_behind_is_found() {
        let signal: Vec<f64> = (0..40).map(|n| f64::from(n * n % 17)).collect();
        let (a, b) = (&signal[3..], &signal[..37]);
        assert!(largest(a, b, 2) < 0.9);
        assert!((largest(a, b, 3) - 1.0).abs() < 1e-12 && (largest(b, a, 3) - 1.0).abs() < 1e-12);
    }
}
