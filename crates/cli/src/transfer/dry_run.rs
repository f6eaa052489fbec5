//! A list of what would be sent.

use fairpath_core::ByteCount;
use fairpath_report::text::{print_line, tell};
use fairpath_transfer::{Kind, Selection, shown_path};
use serde::Serialize;

use super::Shown;
use crate::error::Incomplete;

/// The list, for programs.
#[derive(Debug, Serialize)]
struct Listed {
    files: u64,
    bytes: u64,
    entries: Vec<Listing>,
    skipped: Vec<Omission>,
}

#[derive(Debug, Serialize)]
struct Listing {
    name: String,
    kind: &'static str,
    /// None for a stream.
    size_bytes: Option<u64>,
}

#[derive(Debug, Serialize)]
struct Omission {
    path: String,
    reason: String,
}

/// Lists a selection on standard output, and what is left out of it on standard error.
pub(crate) fn dry_run(selection: &Selection, shown: Shown) -> anyhow::Result<()> {
    let (manifest, skipped) = (selection.manifest(), selection.skipped());
    if shown.json {
        let omissions = skipped.iter();
        let omission =
            |path: &_, reason: &dyn ToString| Omission { path: shown_path(path), reason: reason.to_string() };
        let listed = Listed {
            files: manifest.files(),
            bytes: manifest.bytes(),
            entries: manifest.entries().iter().map(listing).collect(),
            skipped: omissions.map(|one| omission(&one.path, &one.reason)).collect(),
        };
        print_line(&serde_json::to_string(&listed)?)?;
    } else if !shown.quiet {
        for entry in manifest.entries() {
            print_line(&match &entry.kind {
                Kind::File { size } => format!("{} ({})", entry.path, ByteCount::new(*size)),
                Kind::Stream => format!("{} (a stream)", entry.path),
                Kind::Directory => format!("{}/", entry.path),
                Kind::Link { target } => format!("{} -> {target}", entry.path),
                Kind::HardLink { to } => format!("{} (the same file as {to})", entry.path),
            })?;
        }
    }
    if !shown.quiet {
        skipped.iter().for_each(tell);
        let files = if manifest.files() == 1 { "1 file".to_owned() } else { format!("{} files", manifest.files()) };
        tell(format!("would send {files}, {}; nothing was sent", ByteCount::new(manifest.bytes())));
    }
    match skipped.iter().filter(|one| !one.reason.is_expected()).count() {
        0 => Ok(()),
        1 => Err(Incomplete("1 thing cannot be sent".into()).into()),
        count => Err(Incomplete(format!("{count} things cannot be sent")).into()),
    }
}

fn listing(entry: &fairpath_transfer::Entry) -> Listing {
    let kind = match entry.kind {
        Kind::File { .. } => "file",
        Kind::Stream => "stream",
        Kind::Directory => "directory",
        Kind::Link { .. } => "link",
        Kind::HardLink { .. } => "hard link",
    };
    Listing { name: entry.path.to_string(), kind, size_bytes: (!entry.is_stream()).then(|| entry.size()) }
}
