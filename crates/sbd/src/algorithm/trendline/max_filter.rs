//! Algorithm 1: what remains of a delay curve is where it does not fall.

use super::regression::Line;

/// Cuts a curve into the groups in which it does not fall.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MaxFilter {
    group: Option<Line>,
}

impl MaxFilter {
    /// Takes the next point. Where the delay falls, the group before is complete and is given back
    /// if it has at least `points_min` points: those on a queue that drains are alone and vanish.
    // [TR2018 Algorithm 1]
    pub(super) fn push(&mut self, at_ms: f64, delay: f64, points_min: u32) -> Option<Line> {
        let point = Line::new(at_ms, delay);
        match &mut self.group {
            Some(group) if delay >= group.last_delay() => {
                group.append(&point);
                None
            }
            group => group.replace(point).filter(|group| group.points() >= points_min),
        }
    }

    /// How many points the group under way has.
    pub(super) fn points(&self) -> u32 {
        self.group.map_or(0, |group| group.points())
    }

    /// The group under way, at the end of a round.
    pub(super) fn finish(&mut self, points_min: u32) -> Option<Line> {
        self.group.take().filter(|group| group.points() >= points_min)
    }
}
