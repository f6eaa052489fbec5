//! Roots of monotone functions.

/// Where the increasing function `f` passes through zero between `low` and `high`, to the last bit;
/// the nearer end if it does not.
pub(crate) fn of_increasing(f: impl Fn(f64) -> f64, mut low: f64, mut high: f64) -> f64 {
    loop {
        let middle = low + (high - low) / 2.0;
        if middle <= low || middle >= high {
            return middle;
        }
        if f(middle) < 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_is_found_to_the_last_bits() {
        let root = of_increasing(|x| x * x - 2.0, 0.0, 2.0);
        assert!((root - core::f64::consts::SQRT_2).abs() < 1e-15, "{root}");
    }

    #[test]
    fn without_a_root_it_is_the_nearer_end() {
        assert!((of_increasing(|x| x + 1.0, 0.0, 2.0) - 0.0).abs() < 1e-300);
        assert!((of_increasing(|x| x - 5.0, 0.0, 2.0) - 2.0).abs() < 1e-15);
    }
}
