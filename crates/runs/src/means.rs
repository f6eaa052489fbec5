//! The picture of several runs: means over a parameter, or side by side.

use core::time::Duration;

use fairpath_core::Estimate;
use fairpath_figure::{Axis, Bar, BarSeries, Figure, Series};
use fairpath_scenario::{ParameterValue, units};

use crate::measured::{CLASS, ClassMeans, Point};
use crate::tables::Results;

/// Colours of the palette, in turn: lines of one picture may well be of one algorithm.
pub(crate) const COLOURS: [&str; 10] =
    ["lia", "olia", "balia", "daimd", "wvegas", "ewtcp", "epsilon", "cubic", "bbr3", "uncoupled"];

/// More groups of bars could not be told apart.
const GROUPS_MAX: usize = 12;

/// The panels: the title, what stands at the axis, and which column of the classes it is.
const PANELS: [(&str, (&str, &str), usize); 5] = [
    ("Rate, mean of a class", ("delivered", "Mbit/s"), 0),
    ("Round-trip time", ("mean", "ms"), 3),
    ("Losses", ("lost", "%"), 2),
    ("Transfers", ("completion", "ms"), 4),
    ("Frames", ("99 % within", "ms"), 5),
];

/// The picture of all points: means over a parameter, or side by side.
pub fn figure(results: &Results) -> Figure {
    let classes: Vec<Vec<ClassMeans<'_>>> = results.points.iter().map(Point::classes).collect();
    let along = axis_of(results);
    let mut figure = Figure::new("picture", &results.title);
    for (title, (label, unit), quantity) in PANELS {
        let value = |class: &ClassMeans<'_>| class.means[quantity].clone();
        if classes.iter().flatten().all(|class| value(class).is_none()) {
            continue;
        }
        let y = Axis::new(label, unit);
        debug_assert!(quantity < CLASS.len());
        figure = match &along {
            Some(along) => figure.lines(title, along.axis.clone(), y, lines(results, &classes, along, &value)),
            None => {
                let (groups, series) = bars(results, &classes, &value);
                let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
                figure.bars(title, y, &groups, series)
            }
        };
    }
    figure
}

/// A parameter along which there are lines.
struct Along {
    /// Its number.
    parameter: usize,
    axis: Axis,
    /// Where each of its values stands.
    places: Vec<f64>,
}

/// The first parameter with several values that are all numbers, or all quantities of one kind.
fn axis_of(results: &Results) -> Option<Along> {
    let several = results.parameters.iter().enumerate().filter(|(_, (_, values))| values.len() > 1);
    several.into_iter().find_map(|(parameter, (name, values))| {
        let (unit, places) = places(values)?;
        Some(Along { parameter, axis: Axis::new(name, &unit), places })
    })
}

fn places(values: &[ParameterValue]) -> Option<(String, Vec<f64>)> {
    let numbers: Option<Vec<f64>> = values.iter().map(ParameterValue::number).collect();
    if let Some(numbers) = numbers {
        return Some((String::new(), numbers));
    }
    let texts: Vec<_> = values.iter().map(ParameterValue::plain).collect();
    let split = |text: &str| {
        let end = text.find(|one: char| !one.is_ascii_digit() && one != '.').unwrap_or(text.len());
        let number: Option<f64> = text[..end].parse().ok();
        number.map(|number| (text[end..].trim().to_owned(), number))
    };
    let parts: Option<Vec<(String, f64)>> = texts.iter().map(|text| split(text.trim())).collect();
    if let Some(parts) = parts
        && parts.windows(2).all(|pair| pair[0].0 == pair[1].0)
    {
        return Some((parts[0].0.clone(), parts.into_iter().map(|(_, number)| number).collect()));
    }
    let times: Result<Vec<Duration>, _> = texts.iter().map(|text| units::time(text)).collect();
    let rates: Result<Vec<_>, _> = texts.iter().map(|text| units::rate(text)).collect();
    match (times, rates) {
        (Ok(times), _) => Some(("ms".to_owned(), times.iter().map(|time| time.as_secs_f64() * 1e3).collect())),
        (_, Ok(rates)) => Some(("Mbit/s".to_owned(), rates.iter().map(|rate| rate.as_mbps_f64()).collect())),
        _ => None,
    }
}

/// The values of the parameters that have several, but for one of them.
fn others(results: &Results, point: &Point, but: Option<usize>) -> Vec<String> {
    let all = results.parameters.iter().zip(&point.values).enumerate();
    let told = all.filter(|(at, ((_, values), _))| values.len() > 1 && Some(*at) != but);
    told.map(|(_, ((name, _), value))| format!("{name} {}", value.plain())).collect()
}

type Value<'v> = dyn Fn(&ClassMeans<'_>) -> Option<Estimate> + 'v;

/// A line in the making: its name, and its points.
type Line = (String, Vec<(f64, Estimate)>);

/// A line for each class and each combination of the other parameters.
fn lines(results: &Results, classes: &[Vec<ClassMeans<'_>>], along: &Along, value: &Value) -> Vec<Series> {
    let mut lines: Vec<Line> = Vec::new();
    for (point, classes) in results.points.iter().zip(classes) {
        let own = &point.values[along.parameter];
        let Some(at) = results.parameters[along.parameter].1.iter().position(|value| value == own) else { continue };
        let others = others(results, point, Some(along.parameter));
        for class in classes {
            let name = [class.class.to_owned()].into_iter().chain(others.clone()).collect::<Vec<_>>().join(", ");
            let known = lines.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
                lines.push((name, Vec::new()));
                lines.len() - 1
            });
            lines[known].1.extend(value(class).map(|estimate| (along.places[at], estimate)));
        }
    }
    let series = |((name, points), colour): (Line, &str)| series(&name, colour, points);
    lines.into_iter().zip(COLOURS).map(series).collect()
}

fn series(name: &str, colour: &str, mut points: Vec<(f64, Estimate)>) -> Series {
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let interval = |(x, estimate): &(f64, Estimate)| {
        estimate.half_width.map(|half| (*x, (estimate.mean - half, estimate.mean + half)))
    };
    let intervals = points.iter().filter_map(interval).collect();
    let means: Vec<(f64, f64)> = points.iter().map(|(x, estimate)| (*x, estimate.mean)).collect();
    Series::new(name, colour, means.clone()).marked("", means).intervals(intervals)
}

/// Groups of bars: of the classes where there is one point, otherwise of the points.
fn bars(results: &Results, classes: &[Vec<ClassMeans<'_>>], value: &Value) -> (Vec<String>, Vec<BarSeries>) {
    let bar = |class: &ClassMeans<'_>| Bar { ours: value(class), paper: None };
    if let [classes] = classes {
        let classes = &classes[..classes.len().min(GROUPS_MAX)];
        let groups = classes.iter().map(|class| class.class.to_owned()).collect();
        return (groups, vec![BarSeries::new("mean", COLOURS[0], classes.iter().map(bar))]);
    }
    let points = || results.points.iter().zip(classes).take(GROUPS_MAX);
    let groups = points().map(|(point, _)| others(results, point, None).join(", ")).collect();
    let mut names: Vec<&str> = Vec::new();
    for class in points().flat_map(|(_, classes)| classes) {
        if !names.contains(&class.class) {
            names.push(class.class);
        }
    }
    let series = |(name, colour): (&str, &str)| {
        let of =
            |classes: &[ClassMeans<'_>]| classes.iter().find(|class| class.class == name).map_or(Bar::default(), bar);
        BarSeries::new(name, colour, points().map(|(_, classes)| of(classes)))
    };
    (groups, names.into_iter().zip(COLOURS).map(series).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(values: &[&str]) -> Vec<ParameterValue> {
        values.iter().map(|value| ParameterValue::Text((*value).to_owned())).collect()
    }

    #[test]
    fn values_stand_on_an_axis_where_they_are_of_one_kind() {
        let numbers = ["1", "2.5"].map(|number| ParameterValue::Number(number.to_owned()));
        assert_eq!(places(&numbers), Some((String::new(), vec![1.0, 2.5])));
        assert_eq!(places(&texts(&["20ms", "80ms"])), Some(("ms".to_owned(), vec![20.0, 80.0])));
        assert_eq!(places(&texts(&["1 bdp", "2 bdp"])), Some(("bdp".to_owned(), vec![1.0, 2.0])));
        assert_eq!(places(&texts(&["20ms", "1s"])), Some(("ms".to_owned(), vec![20.0, 1000.0])));
        assert_eq!(places(&texts(&["500kbit/s", "1Mbit/s"])), Some(("Mbit/s".to_owned(), vec![0.5, 1.0])));
        assert_eq!(places(&texts(&["lia", "olia"])), None);
        assert_eq!(places(&texts(&["20ms", "1 bdp"])), None);
    }
}
