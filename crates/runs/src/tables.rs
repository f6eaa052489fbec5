//! Tables of several runs: for people, for programs, and as comma-separated values.

use fairpath_core::Estimate;
use fairpath_report::text::table;
use fairpath_scenario::{ParameterValue, Sweep};
use serde_json::{Map, Value, json};

use crate::measured::{CLASS, LINK, LinkMeans, PATH, PATH_IN_CLASS, Point, Quantity};
use crate::summary::LINKS_MAX;

/// A line of a table has at most so many characters of a value of a parameter.
const VALUE_CHARS_MAX: usize = 40;

/// The runs of a file: one for each combination of the values of its parameters and each seed.
pub struct Results {
    pub(crate) title: String,
    /// The parameters with all their values.
    pub(crate) parameters: Vec<(String, Vec<ParameterValue>)>,
    pub(crate) points: Vec<Point>,
}

impl Results {
    /// The tables for people: with several points one of the flows at each, otherwise all there is.
    pub fn text(&self) -> String {
        match &self.points[..] {
            [point] if self.parameters.is_empty() => self.one_point(point),
            points => self.table_of_points(points),
        }
    }

    fn one_point(&self, point: &Point) -> String {
        let (first, last) = point.seeds();
        let mut text = format!(
            "{}: {} s from second {} on, seeds {first} to {last}; means and 95 % intervals\n\n",
            self.title,
            point.facts.measured.as_secs_f64(),
            point.facts.warm_up.as_secs_f64(),
        );
        let classes = point.classes();
        let shown = shown(classes.iter().map(|class| &class.means));
        let mut rows = Vec::new();
        for class in &classes {
            let of_class = |at: &usize| cell(&CLASS[*at], &class.means[*at]);
            let heads = [class.class.to_owned(), class.number.to_string()];
            rows.push(heads.into_iter().chain(shown.iter().map(of_class)).collect::<Vec<_>>());
            for (path, means) in class.paths.iter().enumerate().filter(|_| class.paths.len() > 1) {
                let of_path = |at: &usize| {
                    let column = PATH_IN_CLASS.iter().position(|column| column == at);
                    column.map_or(String::new(), |column| cell(&PATH[column], &means[column]))
                };
                let heads = [format!("  path {path}"), String::new()];
                rows.push(heads.into_iter().chain(shown.iter().map(of_path)).collect());
            }
        }
        text += &table(&headings(&["flows", "number"], &shown), &rows);
        let busy: Vec<_> = point.links().into_iter().filter(|link| link.is_busy()).collect();
        let row = |link: &LinkMeans<'_>| {
            let cells = LINK.iter().zip(&link.means).map(|(quantity, mean)| cell(quantity, mean));
            [link.link.to_owned()].into_iter().chain(cells).collect()
        };
        let rows: Vec<Vec<String>> = busy.iter().take(LINKS_MAX).map(row).collect();
        let heads: Vec<&str> = ["link"].into_iter().chain(LINK.iter().map(|quantity| quantity.heading)).collect();
        text += &format!("\n{}", table(&heads, &rows));
        if busy.len() > LINKS_MAX {
            text += &format!("and {} more links; the summary has them all\n", busy.len() - LINKS_MAX);
        }
        if point.seeds_change_nothing() {
            text += "\nThe seeds change nothing here: all runs are equal, so there is no interval.\n";
        }
        text + "\n"
    }

    fn table_of_points(&self, points: &[Point]) -> String {
        let classes: Vec<_> = points.iter().map(Point::classes).collect();
        let shown = shown(classes.iter().flatten().map(|class| &class.means));
        let mut rows: Vec<Vec<String>> = Vec::new();
        for (point, classes) in points.iter().zip(&classes) {
            for class in classes {
                let values = point.values.iter().map(|value| short(&value.plain()));
                let heads = values.chain([class.class.to_owned(), class.number.to_string()]);
                rows.push(heads.chain(shown.iter().map(|at| cell(&CLASS[*at], &class.means[*at]))).collect());
            }
        }
        let names = self.parameters.iter().map(|(name, _)| name.as_str());
        let heads: Vec<&str> = names.chain(["flows", "number"]).collect();
        let mut text = format!("{}: {} at {} points\n\n", self.title, self.seeds_said(), points.len());
        text += &table(&headings(&heads, &shown), &rows);
        let seeds = points.first().map_or(0, |point| point.runs.len());
        if seeds > 1 && points.iter().all(Point::seeds_change_nothing) {
            text += "\nThe seeds change nothing here: all runs of a point are equal, so there is no interval.\n";
        }
        text + "\n"
    }

    fn seeds_said(&self) -> String {
        let seeds = self.points.first().map_or((0, 0), Point::seeds);
        let same = self.points.iter().all(|point| point.seeds() == seeds);
        match (seeds, self.points.first().map_or(0, |point| point.runs.len())) {
            ((first, _), 0 | 1) if same => format!("seed {first}"),
            ((first, last), _) if same => format!("seeds {first} to {last}, means and 95 % intervals"),
            (_, 0 | 1) => "one seed".to_owned(),
            (_, seeds) => format!("{seeds} seeds, means and 95 % intervals"),
        }
    }

    /// Everything, for programs.
    pub fn json(&self) -> Value {
        let seeds = self.points.first().map_or(0, |point| point.runs.len());
        let mut whole = json!({ "title": self.title, "seeds": seeds });
        if let ([point], true) = (&self.points[..], self.parameters.is_empty()) {
            extend(&mut whole, point_json(point));
            return whole;
        }
        let values = |values: &[ParameterValue]| values.iter().map(value_json).collect::<Value>();
        let parameters: Map<String, Value> =
            self.parameters.iter().map(|(name, all)| (name.clone(), values(all))).collect();
        whole["parameters"] = parameters.into();
        let point = |point: &Point| {
            let names = self.parameters.iter().map(|(name, _)| name.clone());
            let values: Map<String, Value> = names.zip(point.values.iter().map(value_json)).collect();
            let mut whole = json!({ "values": values });
            extend(&mut whole, point_json(point));
            whole
        };
        whole["points"] = self.points.iter().map(point).collect();
        whole
    }

    /// The names of the parameters.
    pub fn parameters(&self) -> impl ExactSizeIterator<Item = &str> {
        self.parameters.iter().map(|(name, _)| name.as_str())
    }

    /// A row for each quantity of each class, path and link at each point.
    pub fn rows(&self) -> Vec<Row<'_>> {
        let mut rows = Vec::new();
        for point in &self.points {
            let mut add = |kind, name, path, quantities: &[Quantity], means: &[Option<Estimate>]| {
                for (Quantity { name: quantity, .. }, mean) in quantities.iter().zip(means) {
                    let Some(mean) = mean.clone() else { continue };
                    rows.push(Row { values: &point.values, kind, name, path, quantity, mean });
                }
            };
            for class in point.classes() {
                add("flows", class.class, None, &CLASS, &class.means);
                for (path, means) in class.paths.iter().enumerate() {
                    add("path", class.class, Some(path), &PATH, means);
                }
            }
            for link in point.links() {
                add("link", link.link, None, &LINK, &link.means);
            }
        }
        rows
    }

    /// The rows as comma-separated values.
    pub fn csv(&self) -> String {
        let mut text: String = self.parameters.iter().map(|(name, _)| quoted(name) + ",").collect();
        text += "kind,name,path,quantity,mean,half_width_95,samples\n";
        for Row { values, kind, name, path, quantity, mean } in self.rows() {
            let values: String = values.iter().map(|value| quoted(&value.plain()) + ",").collect();
            let Estimate { mean, half_width, samples, .. } = mean;
            let half = half_width.map(|half| half.to_string()).unwrap_or_default();
            let (name, path) = (quoted(name), path.map(|path| path.to_string()).unwrap_or_default());
            text += &format!("{values}{kind},{name},{path},{quantity},{mean},{half},{samples}\n");
        }
        text
    }
}

/// A quantity of a class of flows, of a path or of a link, at a point of a sweep.
pub struct Row<'a> {
    /// The values of the parameters.
    pub values: &'a [ParameterValue],
    /// `flows`, `path` or `link`.
    pub kind: &'static str,
    /// The class of the flows, or the link.
    pub name: &'a str,
    /// The path of the flows.
    pub path: Option<usize>,
    /// Its name with its unit.
    pub quantity: &'static str,
    /// The mean over the seeds, with its interval.
    pub mean: Estimate,
}

/// The columns in which anything stands.
fn shown<'a>(rows: impl Iterator<Item = &'a [Option<Estimate>; CLASS.len()]>) -> Vec<usize> {
    let rows: Vec<_> = rows.collect();
    (0..CLASS.len()).filter(|at| rows.iter().any(|row| row[*at].is_some())).collect()
}

fn headings<'h>(heads: &[&'h str], shown: &[usize]) -> Vec<&'h str> {
    heads.iter().copied().chain(shown.iter().map(|at| CLASS[*at].heading)).collect()
}

fn cell(quantity: &Quantity, mean: &Option<Estimate>) -> String {
    let digits = quantity.digits;
    match mean {
        None => "-".to_owned(),
        Some(Estimate { mean, half_width: Some(half), .. }) => format!("{mean:.digits$} ± {half:.digits$}"),
        Some(Estimate { mean, .. }) => format!("{mean:.digits$}"),
    }
}

fn short(text: &str) -> String {
    fairpath_core::printable(text, VALUE_CHARS_MAX)
}

fn extend(whole: &mut Value, more: Value) {
    if let (Value::Object(whole), Value::Object(more)) = (whole, more) {
        whole.extend(more);
    }
}

/// The values of the parameters of a file that has one for each.
pub fn values_json(sweep: &Sweep) -> Value {
    let names = sweep.parameters().map(|(name, _)| name.to_owned());
    Value::Object(names.zip(sweep.values(0).into_iter().map(value_json)).collect())
}

fn value_json(value: &ParameterValue) -> Value {
    match value {
        ParameterValue::Flag(flag) => json!(flag),
        ParameterValue::Text(text) => json!(text),
        ParameterValue::Number(text) => serde_json::from_str(text).unwrap_or_else(|_| json!(text)),
    }
}

fn point_json(point: &Point) -> Value {
    let numbers = |quantities: &[Quantity], means: &[Option<Estimate>]| -> Value {
        let entries = quantities.iter().zip(means).map(|(quantity, mean)| (quantity.name.to_owned(), json!(mean)));
        Value::Object(entries.collect())
    };
    let classes = point.classes().into_iter().map(|class| {
        let paths: Vec<Value> = class.paths.iter().map(|means| numbers(&PATH, means)).collect();
        let mut whole = json!({ "class": class.class, "number": class.number, "paths": paths });
        extend(&mut whole, numbers(&CLASS, &class.means));
        whole
    });
    let links = point.links().into_iter().map(|link| {
        let mut whole = json!({ "name": link.link });
        extend(&mut whole, numbers(&LINK, &link.means));
        whole
    });
    let runs = point.runs.iter().map(|run| json!({ "seed": run.seed, "goodput_bps": run.result.goodput_bps }));
    json!({
        "first_seed": point.seeds().0,
        "measured_seconds": point.facts.measured.as_secs_f64(),
        "seeds_change_nothing": point.seeds_change_nothing(),
        "classes": classes.collect::<Vec<_>>(),
        "links": links.collect::<Vec<_>>(),
        "runs": runs.collect::<Vec<_>>(),
    })
}

/// A text as a field of comma-separated values, as RFC 4180 has them.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}
