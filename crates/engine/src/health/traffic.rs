//! Whether data is flowing.

use core::time::Duration;

use fairpath_core::Timestamp;

use crate::health_parameters::HealthParameters;

/// The traffic of the connection.
#[derive(Clone, Copy, Debug)]
pub struct Traffic {
    parameters: HealthParameters,
    /// When the datagrams were last counted, and how many there had been.
    counted: Option<(Timestamp, u64)>,
    busy_until: Option<Timestamp>,
}

impl Traffic {
    /// Nothing has moved yet.
    pub fn new(parameters: &HealthParameters) -> Self {
        Self { parameters: *parameters, counted: None, busy_until: None }
    }

    /// The open paths have carried `datagrams` so far.
    pub fn update(&mut self, datagrams: u64, now: Timestamp) {
        let (at, before) = *self.counted.get_or_insert((now, datagrams));
        if now.since(at) >= Duration::from_secs(1) {
            self.counted = Some((now, datagrams));
        }
        if datagrams.saturating_sub(before) >= self.parameters.busy_datagrams {
            self.busy_until = Some(now + self.parameters.busy_for);
        }
    }

    /// Whether data flows, or is meant to.
    pub fn is_busy(&self, now: Timestamp) -> bool {
        self.busy_until.is_some_and(|until| now < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forty_datagrams_in_a_second_are_traffic_for_ten_seconds() {
        let at = Timestamp::from_millis;
        let mut traffic = Traffic::new(&HealthParameters::default());
        (0..50).for_each(|step| traffic.update(step * 3, at(100 * step)));
        assert!(!traffic.is_busy(at(5_000)), "30 in a second");
        traffic.update(200, at(5_000));
        assert!(traffic.is_busy(at(14_999)) && !traffic.is_busy(at(15_000)));
    }
}
