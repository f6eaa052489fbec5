//! `fairpath man`: the manual pages of all commands.

use std::path::PathBuf;

use anyhow::Context as _;
use fairpath_report::text::print_line;

/// Write manual pages of all commands into a directory
#[derive(Debug, clap::Args)]
#[command(before_help = "Example:\n  fairpath man ~/.local/share/man/man1\n  man fairpath-send")]
pub(crate) struct Args {
    /// Where the pages go; it is made where it is not there
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let shown = args.directory.display();
    std::fs::create_dir_all(&args.directory).with_context(|| format!("cannot make the directory {shown}"))?;
    let pages = pages()?;
    for (name, page) in &pages {
        let path = args.directory.join(name);
        std::fs::write(&path, page).with_context(|| format!("cannot write {}", path.display()))?;
    }
    print_line(&format!("{} pages in {shown}: fairpath.1 is the first", pages.len()))
}

/// The name and the text of each page.
fn pages() -> anyhow::Result<Vec<(String, Vec<u8>)>> {
    // Only a command that is built knows the whole names of those below it.
    let mut root = crate::command().disable_help_subcommand(true);
    root.build();
    let mut pages = Vec::new();
    add(&root, &mut pages).context("cannot write the manual pages")?;
    Ok(pages)
}

fn add(command: &clap::Command, pages: &mut Vec<(String, Vec<u8>)>) -> std::io::Result<()> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    // The page shows what comes after the options only: that is where examples stand in manuals.
    let examples = command.get_before_help().map(ToString::to_string).unwrap_or_default();
    let notes = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let shown =
        command.clone().before_help(None::<&str>).after_help(format!("{examples}\n\n{notes}").trim().to_owned());
    let mut page = Vec::new();
    clap_mangen::Man::new(shown).render(&mut page)?;
    pages.push((format!("{name}.1"), page));
    command.get_subcommands().try_for_each(|inner| add(inner, pages))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page_with_its_options_and_examples() {
        let pages = pages().unwrap();
        let page = |name: &str| {
            let (_, page) = pages.iter().find(|(other, _)| other == name).unwrap_or_else(|| panic!("no {name}"));
            String::from_utf8(page.clone()).unwrap()
        };
        assert!(page("fairpath.1").contains("fairpath\\-send"));
        let send = page("fairpath-send.1");
        assert!(send.contains("give\\-up\\-after") && send.contains("TICKET"), "{send}");
        assert!(page("fairpath-stream-send.1").contains("deadline"));
    }
}
