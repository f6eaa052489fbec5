//! The exponential filter in front of everything else.

/// A smoothed value; it lives on from round to round.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Smoothed {
    value: Option<f64>,
}

impl Smoothed {
    /// The smoothed value; `None` before the first.
    pub(super) fn get(&self) -> Option<f64> {
        self.value
    }

    /// Takes a value, which counts with the weight `alpha`, and gives the smoothed one.
    pub(super) fn update(&mut self, value: f64, alpha: f64) -> f64 {
        let smoothed = self.value.map_or(value, |before| smooth(before, value, alpha));
        self.value = Some(smoothed);
        smoothed
    }
}

// [TR2018 eq. 16]
//     s_k = alpha * y_k + (1 - alpha) * s_{k-1},  s_1 = y_1
fn smooth(before: f64, value: f64, alpha: f64) -> f64 {
    alpha * value + (1.0 - alpha) * before
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_followed_by_a_tenth_each_time() {
        // 100; 0.1 · 200 + 0.9 · 100 = 110; 0.1 · 200 + 0.9 · 110 = 119.
        let mut smoothed = Smoothed::default();
        let seen = [100.0, 200.0, 200.0].map(|value| smoothed.update(value, 0.1));
        assert_eq!(seen, [100.0, 110.0, 119.0]);
    }
}
