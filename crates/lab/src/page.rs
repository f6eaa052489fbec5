//! The page over all reports: one file, nothing from elsewhere.

use std::fmt::Write as _;

use crate::paper::{Paper, State};
use crate::store_error::StoreError;
use crate::stored_report::StoredReport;
use crate::table::Table;
use crate::text::{check, claimant, parts_of};
use crate::verdict::{Claimant, Outcome, Verdict};

const STYLE: &str = include_str!("page.css");

/// The page. `unreadable` are reports that another version of the program has left behind.
pub(crate) fn html(reports: &[StoredReport], unreadable: &[&str]) -> Result<String, StoreError> {
    let mut body = String::new();
    let papers = crate::papers();
    let run: usize = reports.len();
    let all = crate::experiments().count();
    let _ = writeln!(
        body,
        "<h1>The papers, run again</h1>\n<p>{run} of {all} experiments have been run. {}</p>",
        tally(reports)
    );
    let _ = writeln!(
        body,
        "<p class=\"small\">In tables, <i>paper</i> is the number printed there, <i>draft</i> one of a draft that it \
         cites, <i>htsim</i> what another simulator gives, <i>memory</i> what nobody has checked, <i>theory</i> a \
         closed form or a fixed point, <i>ours</i> the mean over seeds with its 95&nbsp;% interval.</p>"
    );
    if !unreadable.is_empty() {
        let names = unreadable.join(", ");
        let _ =
            writeln!(body, "<p>Another version of the program has written {names}: run it again to see it here.</p>");
    }
    contents(&mut body, &papers, reports);
    for (key, paper) in &papers {
        let _ = writeln!(body, "<h2 id=\"{key}\">{}</h2>", escaped(&paper.title));
        coverage(&mut body, paper, reports);
        for name in paper.experiments() {
            if let Some(stored) = reports.iter().find(|one| one.experiment == name) {
                experiment(&mut body, stored)?;
            }
        }
    }
    Ok(format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>Fairpath: the papers, run again</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n{body}</body>\n</html>\n"
    ))
}

fn tally(reports: &[StoredReport]) -> String {
    let of = |claimant: Claimant, whose: &str| {
        let verdicts = || reports.iter().flat_map(|one| &one.report.verdicts).filter(|one| one.claimant == claimant);
        let count = |outcome| verdicts().filter(|verdict| verdict.outcome == outcome).count();
        let [holds, partly, undecided, misses] = Outcome::ALL.map(count);
        let all = verdicts().count();
        format!("Of {all} claims {whose} {holds} hold, {partly} hold partly, {undecided} are undecided, {misses} miss.")
    };
    format!("{} {}", of(Claimant::Paper, "of the papers"), of(Claimant::Ours, "of ours"))
}

fn contents(body: &mut String, papers: &[(&str, Paper)], reports: &[StoredReport]) {
    let _ = writeln!(body, "<nav>\n<ul>");
    for (key, paper) in papers {
        let _ = writeln!(body, "<li><a href=\"#{key}\">{}</a></li>", escaped(&paper.title));
        for name in paper.experiments() {
            let Some(stored) = reports.iter().find(|one| one.experiment == name) else { continue };
            let dots: String = stored.report.verdicts.iter().map(dot).collect();
            let title = escaped(&stored.description.title);
            let _ = writeln!(body, "<li class=\"inner\"><a href=\"#{name}\">{title}</a> {dots}</li>");
        }
    }
    let _ = writeln!(body, "</ul>\n</nav>");
}

/// The table of the paper's items and their states.
fn coverage(body: &mut String, paper: &Paper, reports: &[StoredReport]) {
    if paper.items.is_empty() {
        return;
    }
    let _ = writeln!(
        body,
        "<div class=\"wide\"><table>\n<tr><th>in the paper</th><th>what</th><th>state</th><th>experiment</th></tr>"
    );
    for item in &paper.items {
        let state = match item.state {
            State::Reproduced => item.state.name().to_owned(),
            _ => format!("{}: {}", item.state.name(), item.reason.as_deref().unwrap_or("no reason given")),
        };
        let link = |name: &String| match reports.iter().any(|one| one.experiment == *name) {
            true => format!("<a href=\"#{name}\">{name}</a>"),
            false => format!("{name} (not run)"),
        };
        let experiment = item.experiment.as_ref().map(link).unwrap_or_default();
        let (name, what, state) = (escaped(&item.item), escaped(&item.what), escaped(&state));
        let _ = writeln!(body, "<tr><td>{name}</td><td>{what}</td><td>{state}</td><td>{experiment}</td></tr>");
    }
    let _ = writeln!(body, "</table></div>");
}

fn experiment(body: &mut String, stored: &StoredReport) -> Result<(), StoreError> {
    let (name, about) = (&stored.experiment, &stored.description);
    let effort = if stored.effort == "full" { "" } else { " <span class=\"tag\">quick form</span>" };
    let _ = writeln!(body, "<section id=\"{name}\">\n<h3>{}{effort}</h3>", escaped(&about.title));
    let _ = writeln!(body, "<p class=\"small\"><code>fairpath lab run {name}</code></p>");
    let _ = writeln!(body, "<p><b>Claim.</b> {}</p>", prose(&about.claim));
    for one in &stored.report.verdicts {
        verdict(body, one);
    }
    for one in &stored.report.tables {
        table(body, one);
    }
    for figure in &stored.report.figures {
        let _ = writeln!(body, "<figure>{}</figure>", figure.svg()?);
    }
    for note in stored.report.remarks() {
        let _ = writeln!(body, "<p>{}</p>", prose(note));
    }
    let _ = writeln!(
        body,
        "<details><summary>Topology, parameters, deviations</summary>\n<pre>{}</pre>",
        escaped(&about.topology)
    );
    let _ = writeln!(body, "<div class=\"wide\"><table>\n<tr><th>parameter</th><th>value</th><th>from</th></tr>");
    for parameter in &about.parameters {
        let cells =
            [&parameter.name, &parameter.value, &parameter.from].map(|cell| format!("<td>{}</td>", prose(cell)));
        let _ = writeln!(body, "<tr>{}</tr>", cells.concat());
    }
    let _ = writeln!(body, "</table></div>\n<ul>");
    for deviation in &about.deviations {
        let _ = writeln!(body, "<li>{}</li>", prose(deviation));
    }
    let _ = writeln!(body, "</ul>\n</details>\n</section>");
    Ok(())
}

fn dot(verdict: &Verdict) -> String {
    let outcome = verdict.outcome.name();
    format!("<span class=\"dot {outcome}\" title=\"{outcome}: {}\"></span>", escaped(&verdict.claim))
}

fn verdict(body: &mut String, verdict: &Verdict) {
    let outcome = verdict.outcome.name();
    let _ = writeln!(
        body,
        "<div class=\"verdict {outcome}\"><b>{outcome}</b> {}{}\n<ul>",
        claimant(verdict),
        prose(&verdict.claim)
    );
    for one in &verdict.checks {
        let _ = writeln!(body, "<li>{}</li>", escaped(&check(one)));
    }
    let _ = writeln!(body, "</ul>");
    if let Some(reason) = &verdict.reason {
        let _ = writeln!(body, "<p><b>Reason.</b> {}</p>", prose(reason));
    }
    let _ = writeln!(body, "</div>");
}

fn table(body: &mut String, table: &Table) {
    let parts: Vec<_> = (0..table.columns.len()).map(|at| parts_of(table, at)).collect();
    let _ = writeln!(body, "<div class=\"wide\"><table>\n<caption>{}</caption>", escaped(&table.title));
    let _ = write!(body, "<tr>");
    for head in &table.heads {
        let _ = write!(body, "<th rowspan=\"2\">{}</th>", escaped(head));
    }
    for (column, parts) in table.columns.iter().zip(&parts).filter(|(_, parts)| !parts.is_empty()) {
        let unit = if column.unit.is_empty() { String::new() } else { format!(" [{}]", escaped(&column.unit)) };
        let _ = write!(body, "<th colspan=\"{}\">{}{unit}</th>", parts.len(), escaped(&column.name));
    }
    let _ = write!(body, "</tr>\n<tr>");
    for part in parts.iter().flatten() {
        let _ = write!(body, "<th class=\"number\">{}</th>", part.name());
    }
    let _ = writeln!(body, "</tr>");
    for (heads, cells) in &table.rows {
        let _ = write!(body, "<tr>");
        for head in heads {
            let _ = write!(body, "<td>{}</td>", escaped(head));
        }
        for (cell, parts) in cells.iter().zip(&parts) {
            for part in parts {
                let _ = write!(body, "<td class=\"number {}\">{}</td>", part.name(), part.print(cell));
            }
        }
        let _ = writeln!(body, "</tr>");
    }
    let _ = writeln!(body, "</table></div>");
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Escaped, with what stands between backticks as code.
fn prose(text: &str) -> String {
    let escaped = escaped(text);
    if escaped.matches('`').count() % 2 == 1 {
        return escaped;
    }
    let parts = escaped.split('`').enumerate();
    parts.map(|(at, part)| if at % 2 == 0 { part.to_owned() } else { format!("<code>{part}</code>") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_cannot_become_markup() {
        assert_eq!(prose("a < b & `x<y>`"), "a &lt; b &amp; <code>x&lt;y&gt;</code>");
        assert_eq!(prose("one ` alone"), "one ` alone");
    }

    #[test]
    fn a_page_without_reports_is_whole_and_loads_nothing() {
        let page = html(&[], &["daimd/table1"]).unwrap();
        assert!(page.contains("has written daimd/table1"));
        assert!(page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"));
        for outside in ["http://", "https://", "src=", "@import", "url("] {
            assert!(!page.contains(outside), "{outside}");
        }
    }
}
