//! The pages in `docs/evidence`: one for each report, in Markdown, made of nothing but the report.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::store_error::StoreError;
use crate::stored_report::StoredReport;
use crate::table::Table;
use crate::text::{check, parts_of};
use crate::verdict::{Claimant, Outcome, Verdict};
use fairpath_figure::Figure;

/// A table of more rows is a file beside the page.
const ROWS_MAX: usize = 60;

/// A larger picture is left out: the command of the page draws it.
const PICTURE_BYTES_MAX: usize = 120_000;

/// The names of what a reader cannot be shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pages {
    /// The reports that have a page now.
    pub written: Vec<String>,
    /// The reports whose page stays as it is, since it shows more than they do.
    pub richer: Vec<String>,
    /// Files that another version of the program has written.
    pub unreadable: Vec<String>,
}

/// Makes a page in `to` of each report that is kept in `from`, and an index over all that are in `to`.
///
/// A page of a full form does not give way to a quick one, and a page with recordings does not give way to one without.
///
/// # Errors
///
/// Where something could not be written or drawn.
pub fn write_pages(from: &Path, to: &Path) -> Result<Pages, StoreError> {
    let mut pages = Pages::default();
    for (name, text) in kept(from) {
        let Ok(stored) = serde_json::from_str::<StoredReport>(&text) else {
            pages.unreadable.push(name);
            continue;
        };
        if from != to && page_shows_more(&stored, to) {
            pages.richer.push(name);
            continue;
        }
        keep(&stored, to, from == to)?;
        pages.written.push(name);
    }
    let all = kept(to).into_iter().filter_map(|(_, text)| serde_json::from_str(&text).ok()).collect::<Vec<_>>();
    write(&to.join("README.md"), &index(&all))?;
    Ok(pages)
}

/// Whether the page that is there was made of more than this report.
fn page_shows_more(stored: &StoredReport, to: &Path) -> bool {
    let there = fs::read_to_string(to.join(&stored.experiment).join("report.json"));
    let Some(there) = there.ok().and_then(|text| serde_json::from_str::<StoredReport>(&text).ok()) else {
        return false;
    };
    let is_quick_beside_full = stored.effort == "quick" && there.effort == "full";
    is_quick_beside_full || (there.report.missing.is_empty() && !stored.report.missing.is_empty())
}

/// The reports below a folder by name, in order.
fn kept(root: &Path) -> Vec<(String, String)> {
    let names = |folder: &Path| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten().filter(|entry| entry.path().is_dir());
        let mut names: Vec<_> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    };
    let mut all = Vec::new();
    for paper in names(root) {
        for name in names(&root.join(&paper)) {
            let name = format!("{paper}/{name}");
            if let Ok(text) = fs::read_to_string(root.join(&name).join("report.json")) {
                all.push((name, text));
            }
        }
    }
    all
}

/// The page of a report, its pictures, its long tables, and the report without the points of the pictures.
fn keep(stored: &StoredReport, to: &Path, is_in_place: bool) -> Result<(), StoreError> {
    let folder = to.join(&stored.experiment);
    fs::create_dir_all(&folder).map_err(|source| StoreError::Write { path: folder.clone(), source })?;
    let mut slim = stored.clone();
    slim.report.figures.retain(|figure| figure.panels.is_empty());
    for figure in stored.report.figures.iter().filter(|figure| !figure.panels.is_empty()) {
        let svg = figure.svg()?;
        if svg.len() <= PICTURE_BYTES_MAX {
            write(&folder.join(format!("{}.svg", figure.name)), &svg)?;
            slim.report.figures.push(Figure::new(&figure.name, &figure.title));
        }
    }
    for table in slim.report.tables.iter().filter(|table| table.rows.len() > ROWS_MAX) {
        write(&folder.join(format!("{}.csv", table.name)), &table.csv())?;
    }
    // A report that is there already stays as it was measured, to the last digit.
    if is_in_place {
        return write(&folder.join("README.md"), &page(&slim));
    }
    let json = serde_json::to_string_pretty(&slim).expect("a report has only text keys and finite numbers");
    write(&folder.join("report.json"), &(json + "\n"))?;
    write(&folder.join("README.md"), &page(&slim))
}

/// The page of a report.
fn page(stored: &StoredReport) -> String {
    let about = &stored.description;
    let mut text =
        format!("<!-- Made of report.json by `fairpath lab pages`; not to be edited. -->\n\n# {}\n", about.title);
    let _ = writeln!(text, "\n{}\n", about.claim);
    for verdict in &stored.report.verdicts {
        text += &claim(verdict);
    }
    for figure in &stored.report.figures {
        let _ = writeln!(text, "\n![{}]({}.svg)", figure.title, figure.name);
    }
    for one in &stored.report.tables {
        let _ = writeln!(text, "\n## {}\n", one.title);
        match one.rows.len() > ROWS_MAX {
            true => _ = writeln!(text, "{} rows: [{name}.csv]({name}.csv).", one.rows.len(), name = one.name),
            false => text += &table(one),
        }
    }
    for note in stored.report.remarks() {
        let _ = writeln!(text, "\n{note}");
    }
    text += &how(stored);
    text
}

fn claim(verdict: &Verdict) -> String {
    let whose = if verdict.claimant == Claimant::Ours { " (our own claim)" } else { "" };
    let mut text = format!("- **{}**{whose}: {}\n", outcome(verdict.outcome), verdict.claim);
    for one in &verdict.checks {
        let _ = writeln!(text, "  - {}", check(one));
    }
    if let Some(reason) = &verdict.reason {
        let _ = writeln!(text, "  - Reason: {reason}");
    }
    text
}

fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Holds => "Holds",
        Outcome::Partly => "Holds in part",
        Outcome::Undecided => "Undecided",
        Outcome::Misses => "Does not hold",
    }
}

fn table(table: &Table) -> String {
    let mut heads: Vec<String> = table.heads.clone();
    let parts: Vec<_> = (0..table.columns.len()).map(|at| parts_of(table, at)).collect();
    for (column, parts) in table.columns.iter().zip(&parts) {
        let unit = if column.unit.is_empty() { String::new() } else { format!(" [{}]", column.unit) };
        let alone = parts.len() == 1 && parts[0].name() == "ours";
        let name = |part: &crate::text::CellPart| match alone {
            true => format!("{}{unit}", column.name),
            false => format!("{}{unit}, {}", column.name, part.name()),
        };
        heads.extend(parts.iter().map(name));
    }
    let line = |cells: &[String]| {
        format!("| {} |\n", cells.iter().map(|cell| cell.replace('|', "\\|")).collect::<Vec<_>>().join(" | "))
    };
    let mut text = line(&heads) + &format!("|{}\n", "---|".repeat(heads.len()));
    for (heads, cells) in &table.rows {
        let numbers = cells.iter().zip(&parts).flat_map(|(cell, parts)| parts.iter().map(|part| part.print(cell)));
        text += &line(&heads.iter().cloned().chain(numbers).collect::<Vec<_>>());
    }
    text
}

fn how(stored: &StoredReport) -> String {
    let about = &stored.description;
    let mut text = "\n## How it was measured\n".to_owned();
    if let Some(made) = &stored.made {
        let _ = writeln!(text, "\n```\n{}\n```\n", made.command);
        let rows = [("seeds", &made.seeds), ("commit", &made.commit), ("machine", &made.machine)];
        for (what, value) in rows.iter().filter(|(_, value)| !value.is_empty()) {
            let _ = writeln!(text, "- {what}: {value}");
        }
    } else {
        let quick = if stored.effort == "quick" { " --quick" } else { "" };
        let _ = writeln!(text, "\n```\nfairpath lab run {}{quick}\n```", stored.experiment);
    }
    if !about.topology.is_empty() {
        let _ = writeln!(text, "\n```text\n{}\n```", about.topology);
    }
    if !about.parameters.is_empty() {
        let _ = writeln!(text, "\n| parameter | value | from |\n|---|---|---|");
        for parameter in &about.parameters {
            let _ = writeln!(text, "| {} | {} | {} |", parameter.name, parameter.value, parameter.from);
        }
    }
    if !about.deviations.is_empty() {
        let _ = writeln!(text, "\nDeviations:\n");
        about.deviations.iter().for_each(|one| _ = writeln!(text, "- {one}"));
    }
    text
}

fn index(all: &[StoredReport]) -> String {
    let mut text = "<!-- Made by `fairpath lab pages`; not to be edited. -->\n\n# Evidence\n\n\
        One page a question, each made by the command that stands on it. `make evidence` makes all of them again, \
        `make evidence QUICK=1` those that take minutes.\n\n\
        A claim holds where the 95 % interval of every number satisfies its inequality. It holds in part where some \
        do, or where a number is at its bound; then a reason is given. An undecided one says how many seeds would \
        decide it. Quick forms are shorter runs with fewer seeds.\n\n\
        | question | form | holds | in part | undecided | does not |\n|---|---|---|---|---|---|\n"
        .to_owned();
    for stored in all {
        let count = |outcome| match stored.report.verdicts.iter().filter(|one| one.outcome == outcome).count() {
            0 => String::new(),
            count => count.to_string(),
        };
        let [holds, partly, undecided, misses] = Outcome::ALL.map(count);
        let (name, title, form) = (&stored.experiment, &stored.description.title, &stored.effort);
        let _ = writeln!(
            text,
            "| [{name}]({name}/README.md): {title} | {form} | {holds} | {partly} | {undecided} | {misses} |"
        );
    }
    text
}

fn write(path: &Path, text: &str) -> Result<(), StoreError> {
    fs::write(path, text).map_err(|source| StoreError::Write { path: path.into(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cell, Description, Estimate, Made, Report};

    fn stored() -> StoredReport {
        let mut table = Table::new("t", "Rates", &["flow"], &[("goodput", "Mbit/s")]);
        table.row(["DAIMD"], [Cell::of([4.4, 4.6]).paper(4.4)]);
        let verdict = Verdict::ours("fast", "It is fast.").at_least("rate", Estimate::of([4.0, 4.0]).unwrap(), 5.0);
        let made = Made {
            command: "fairpath lab run some/table".into(),
            seeds: "1 to 2".into(),
            commit: "abc".into(),
            machine: "two cores".into(),
        };
        StoredReport {
            experiment: "some/table".into(),
            effort: "full".into(),
            description: Description { title: "A table".into(), claim: "It is fast.".into(), ..Description::default() },
            report: Report { tables: vec![table], verdicts: vec![verdict.because("it is slow")], ..Report::default() },
            made: Some(made),
        }
    }

    #[test]
    fn a_page_has_the_verdict_with_its_reason_the_table_and_how_to_make_it_again() {
        let text = page(&stored());
        for part in [
            "# A table\n",
            "- **Does not hold** (our own claim): It is fast.\n  - rate: 4.000 ≥ 5.000 does not hold\n  - Reason: it is slow\n",
            "| flow | goodput [Mbit/s], paper | goodput [Mbit/s], ours |\n|---|---|---|\n| DAIMD | 4.4 | 4.5 ± 1.3 |\n",
            "```\nfairpath lab run some/table\n```\n\n- seeds: 1 to 2\n- commit: abc\n- machine: two cores\n",
        ] {
            assert!(text.contains(part), "{part} is not in:\n{text}");
        }
    }

    #[test]
    fn a_page_that_shows_more_stays() {
        let root = std::env::temp_dir().join(format!("fairpath-richer-{}", std::process::id()));
        let (from, to) = (root.join("from"), root.join("to"));
        let make = |effort: &str, missing: &[&str]| {
            let mut report = stored();
            report.effort = effort.to_owned();
            report.report.missing = missing.iter().map(|&one| one.to_owned()).collect();
            keep(&report, &from, false).unwrap();
            let pages = write_pages(&from, &to).unwrap();
            assert_eq!(pages.written.len() + pages.richer.len(), 1);
            pages.written.len() == 1
        };
        let without = ["There are no recordings."];
        assert!(make("quick", &without), "the first page");
        assert!(make("quick", &[]), "recordings are there now");
        assert!(!make("quick", &without), "a page with recordings stays");
        assert!(make("full", &[]), "the full form");
        assert!(!make("quick", &[]) && !make("full", &without), "a page of the full form stays");
        assert!(make("full", &[]), "the same form again");
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn pages_made_of_pages_are_the_same() {
        let folder = std::env::temp_dir().join(format!("fairpath-evidence-{}", std::process::id()));
        keep(&stored(), &folder, false).unwrap();
        let read = || fs::read(folder.join("some/table/README.md")).unwrap();
        let before = read();
        assert_eq!(write_pages(&folder, &folder).unwrap().written, ["some/table"]);
        let index = fs::read_to_string(folder.join("README.md")).unwrap();
        assert!(index.contains("| [some/table](some/table/README.md): A table | full |  |  |  | 1 |"), "{index}");
        assert_eq!(before, read());
        fs::remove_dir_all(&folder).unwrap();
    }
}
