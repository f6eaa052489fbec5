//! The commands that the documents show are commands of this program.

use std::path::{Path, PathBuf};

use clap::error::ErrorKind;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// README and everything below `docs`, but for the help of the program itself.
fn documents() -> Vec<PathBuf> {
    fn add(folder: &Path, all: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).expect("a folder of documents") {
            let path = entry.expect("an entry").path();
            match path.is_dir() {
                true => add(&path, all),
                false
                    if path.extension().is_some_and(|one| one == "md") && !path.ends_with("docs/reference/cli.md") =>
                {
                    all.push(path)
                }
                false => {}
            }
        }
    }
    let mut all = vec![Path::new(ROOT).join("README.md")];
    add(&Path::new(ROOT).join("docs"), &mut all);
    all
}

/// The command lines in a document, and whether each is complete: those behind a prompt are, and those in backquotes may
/// leave out what the sentence says.
fn commands(text: &str) -> Vec<(String, bool)> {
    let typed = text.lines().filter_map(|line| line.strip_prefix("$ ").or_else(|| line.strip_prefix("# ")));
    let quoted = text.lines().flat_map(|line| line.split('`').skip(1).step_by(2));
    let all = typed.map(|line| (line, true)).chain(quoted.map(|line| (line, false)));
    let ours = all.filter(|(line, _)| line.starts_with("fairpath ") && !line.contains(" help COMMAND"));
    ours.map(|(line, is_complete)| (line.to_owned(), is_complete)).collect()
}

/// The words of a command line, without a comment behind it.
fn words(line: &str) -> Vec<String> {
    let line = line.split("  #").next().unwrap_or(line);
    line.split_whitespace().map(|word| word.trim_matches('"').to_owned()).collect()
}

#[test]
fn every_command_in_the_documents_is_one() {
    let mut seen = 0;
    let mut wrong = Vec::new();
    for document in documents() {
        let text = std::fs::read_to_string(&document).expect("a document");
        for (line, is_complete) in commands(&text) {
            seen += 1;
            let Err(error) = super::command().try_get_matches_from(words(&line)) else { continue };
            let is_cut = matches!(
                error.kind(),
                ErrorKind::MissingRequiredArgument | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
            );
            if error.use_stderr() && (is_complete || !is_cut) {
                wrong.push(format!("{}: {line}\n{error}", document.display()));
            }
        }
    }
    assert!(seen > 30, "{seen} commands were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
