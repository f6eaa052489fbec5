//! The reference of the command line in `docs/cli.md`, kept equal to the program's help.

use clap::Command;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cli.md");

const HEAD: &str = "\
# The command line

This is the help of every subcommand, as `fairpath help COMMAND` prints it.
A test compares it with the program; `UPDATE_DOCS=1 cargo test -p fairpath-cli reference` writes it anew.

Exit codes: 0 for success, 2 for a command line that cannot be meant, 3 where some of what was
asked for was left out, 1 for every other failure.
`FAIRPATH_LOG=debug` logs what the program does to standard error.
";

/// Every command with its full name, parents first.
fn commands() -> Vec<(String, Command)> {
    fn add(name: String, command: &Command, all: &mut Vec<(String, Command)>) {
        all.push((name.clone(), command.clone()));
        for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
            add(format!("{name} {}", inner.get_name()), inner, all);
        }
    }
    let mut root = super::command();
    root.build();
    let mut all = Vec::new();
    add("fairpath".to_owned(), &root, &mut all);
    all
}

fn reference() -> String {
    let mut text = HEAD.to_owned();
    for (name, mut command) in commands() {
        let help: String =
            command.render_long_help().to_string().lines().map(|line| line.trim_end().to_owned() + "\n").collect();
        text += &format!("\n## {name}\n\n```text\n{}\n```\n", help.trim_end());
    }
    text
}

#[test]
fn the_reference_holds_the_help_of_every_subcommand() {
    let now = reference();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(FILE, &now).unwrap();
    }
    let written = std::fs::read_to_string(FILE).unwrap_or_default();
    assert!(written == now, "docs/cli.md is not what the program says: run with UPDATE_DOCS=1 and look at the change");
}

#[test]
fn every_command_has_a_summary_without_a_period_and_an_example() {
    for (name, command) in commands() {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        assert!(!about.is_empty() && !about.ends_with('.'), "`{name}`: {about:?}");
        let help = command.get_before_help().map(ToString::to_string).unwrap_or_default();
        assert!(
            ["Example", "Common use"].iter().any(|head| help.starts_with(&format!("{head}:\n  fairpath"))),
            "`{name}` shows no example: {help:?}"
        );
    }
}

#[test]
fn every_option_is_explained_without_a_period() {
    for (name, command) in commands() {
        for argument in command.get_arguments() {
            let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
            assert!(!help.is_empty() && !help.ends_with('.'), "`{name}` {}: {help:?}", argument.get_id());
        }
    }
}
