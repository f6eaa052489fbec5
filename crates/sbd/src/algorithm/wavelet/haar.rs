//! The Haar transform and its soft threshold.

/// The factor that keeps the transform orthonormal, 1/√2.
const HALF_POWER: f64 = core::f64::consts::FRAC_1_SQRT_2;

/// The median of the absolute value of a normal variable, for one standard deviation
/// [Donoho1994].
const NORMAL_MEDIAN: f64 = 0.6745;

/// Removes the noise of a signal: the details of `levels` scales are drawn towards zero by
/// `strength` times the universal threshold. The length is a power of two.
// [Donoho1994] with n points, and the noise estimated from the finest details
//     sigma = median(|d|) / 0.6745,   threshold = sigma * sqrt(2 ln n)
pub(super) fn denoise<const N: usize>(signal: &mut [f64; N], levels: u32, strength: f64) {
    let levels = levels.min(N.ilog2());
    forward(signal, levels);
    let mut finest = [0.0; N];
    let finest = &mut finest[..N / 2];
    for (absolute, detail) in finest.iter_mut().zip(&signal[N / 2..]) {
        *absolute = detail.abs();
    }
    let middle = finest.len() / 2;
    let sigma = *finest.select_nth_unstable_by(middle, f64::total_cmp).1 / NORMAL_MEDIAN;
    let threshold = strength * sigma * libm::sqrt(2.0 * libm::log(N as f64));
    signal[N >> levels..].iter_mut().for_each(|detail| *detail = soft(*detail, threshold));
    backward(signal, levels);
}

// [Donoho1994]
//     soft(d) = sign(d) * max(|d| - threshold, 0)
fn soft(detail: f64, threshold: f64) -> f64 {
    (detail.abs() - threshold).max(0.0).copysign(detail)
}

/// The averages of the coarsest scale come first, then the details from the coarsest to the finest.
fn forward<const N: usize>(signal: &mut [f64; N], levels: u32) {
    let mut copy = [0.0; N];
    for level in 0..levels {
        let half = N >> (level + 1);
        copy[..2 * half].copy_from_slice(&signal[..2 * half]);
        for n in 0..half {
            signal[n] = (copy[2 * n] + copy[2 * n + 1]) * HALF_POWER;
            signal[half + n] = (copy[2 * n] - copy[2 * n + 1]) * HALF_POWER;
        }
    }
}

fn backward<const N: usize>(signal: &mut [f64; N], levels: u32) {
    let mut copy = [0.0; N];
    for level in (0..levels).rev() {
        let half = N >> (level + 1);
        copy[..2 * half].copy_from_slice(&signal[..2 * half]);
        for n in 0..half {
            signal[2 * n] = (copy[n] + copy[half + n]) * HALF_POWER;
            signal[2 * n + 1] = (copy[n] - copy[half + n]) * HALF_POWER;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_transform_of_four_points_is_known_and_can_be_undone() {
        // (9 + 7)/√2 = 11.31, (3 + 5)/√2 = 5.66; then (11.31 + 5.66)/√2 = 12 and 4; details
        // (9 - 7)/√2 = √2 and (3 - 5)/√2 = -√2.
        let mut signal = [9.0, 7.0, 3.0, 5.0];
        forward(&mut signal, 2);
        let root = libm::sqrt(2.0);
        for (value, expected) in signal.iter().zip([12.0, 4.0, root, -root]) {
            assert!((value - expected).abs() < 1e-12, "{signal:?}");
        }
        backward(&mut signal, 2);
        for (value, expected) in signal.iter().zip([9.0, 7.0, 3.0, 5.0]) {
            assert!((value - expected).abs() < 1e-12, "{signal:?}");
        }
    }

    #[test]
    fn noise_goes_and_a_step_stays() {
        // A step of 100 ms with ±1 ms of noise: details of √2 at the finest scale, sigma 2.1,
        // threshold 2.1 · √(2 ln 64) = 6.05.
        let clean: [f64; 64] = core::array::from_fn(|n| if n < 32 { 50.0 } else { 150.0 });
        let mut noisy = clean;
        noisy.iter_mut().enumerate().for_each(|(n, value)| *value += if n % 2 == 0 { 1.0 } else { -1.0 });
        denoise(&mut noisy, 4, 1.0);
        let furthest = noisy.iter().zip(clean).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(furthest < 1e-9, "{furthest}");
    }

    #[test]
    fn a_signal_without_noise_is_left_as_it_is() {
        let mut steps: [f64; 64] = core::array::from_fn(|n| (n / 16) as f64);
        denoise(&mut steps, 4, 1.0);
        assert!(steps.iter().enumerate().all(|(n, value)| (value - (n / 16) as f64).abs() < 1e-12));
    }
}
