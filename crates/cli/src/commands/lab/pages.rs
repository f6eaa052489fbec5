//! `fairpath lab pages`: reports as pages in Markdown, and what each report was made with.

use std::path::PathBuf;
use std::process::Command;

use anyhow::bail;
use fairpath_lab::{Maker, Store, WITH_CHANGES, bench_reports, write_pages};
use fairpath_report::text::print_line;

/// Make a page in Markdown of each report, with its claims, tables, pictures and command
///
/// `fairpath lab run` leaves reports in a directory. This makes a page of each, and an index over all pages. With
/// --criterion, what `cargo bench` has measured becomes reports first. A page stays where it shows more: a full form is
/// not replaced by a quick one, nor recordings by none.
#[derive(Debug, clap::Args)]
#[command(before_help = "Example:\n  fairpath lab run daimd --out target/evidence\n  \
    fairpath lab pages --from target/evidence --to docs/evidence")]
pub(super) struct Args {
    /// Where the reports are
    #[arg(long, value_name = "DIR", default_value = "lab-results")]
    from: PathBuf,
    /// Where the pages go
    #[arg(long, value_name = "DIR", default_value = "docs/evidence")]
    to: PathBuf,
    /// Where the benches left their results, a directory for each crate
    #[arg(long, value_name = "DIR")]
    criterion: Option<PathBuf>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<()> {
    if let Some(results) = &args.criterion {
        let store = Store::create(&args.from)?;
        for report in bench_reports(results, &maker()) {
            store.keep_report(&report)?;
        }
    }
    let pages = write_pages(&args.from, &args.to)?;
    if [&pages.written, &pages.richer, &pages.unreadable].iter().all(|names| names.is_empty()) {
        bail!("there is no report in {}; `fairpath lab run NAME --out DIR` leaves some", args.from.display());
    }
    print_line(&format!("{} pages in {}", pages.written.len(), args.to.display()))?;
    if !pages.richer.is_empty() {
        print_line(&format!(
            "left as they are, for they are of a full form or have recordings that were missing here: {}",
            pages.richer.join(", ")
        ))?;
    }
    match pages.unreadable.as_slice() {
        [] => Ok(()),
        some => bail!("another version of the program has written {}: run it again", some.join(", ")),
    }
}

/// This program, and the machine that it runs on.
pub(super) fn maker() -> Maker {
    Maker { commit: commit(), machine: machine() }
}

/// The commit of the working directory, where that is a repository of this program; else the version.
fn commit() -> String {
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let is_ours = std::path::Path::new("references.toml").is_file() && std::path::Path::new("crates/lab").is_dir();
    let Some(hash) = is_ours.then(|| git(&["rev-parse", "--short=12", "HEAD"])).flatten() else {
        return format!("version {}", env!("CARGO_PKG_VERSION"));
    };
    let is_changed =
        git(&["status", "--porcelain", "--untracked-files=no", "--", "crates"]).is_some_and(|one| !one.is_empty());
    if is_changed { hash + WITH_CHANGES } else { hash }
}

/// Such as `2 × Some Processor, Linux 6.18`.
fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let processors = read("/proc/cpuinfo");
    let model = processors.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    let model = model.map_or("processor", |(_, name)| name.trim()).to_owned();
    let kernel = read("/proc/sys/kernel/osrelease");
    let kernel = kernel.trim().split('-').next().unwrap_or_default().to_owned();
    format!("{cores} × {model}, {} {kernel}", std::env::consts::OS).trim_end().to_owned()
}
