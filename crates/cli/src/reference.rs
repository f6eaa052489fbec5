//! The generated pages in `docs/reference`: the command line, exit codes and metrics, kept equal to the program.

use clap::Command;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference");

const HEAD: &str = "\
# The command line

This is the help of every subcommand, as `fairpath help COMMAND` prints it.
A test compares it with the program; `UPDATE_DOCS=1 cargo test -p fairpath-cli reference` writes it anew.

[Exit codes](exit-codes.md) have a page of their own.
`FAIRPATH_LOG=debug` logs what the program does to standard error.
";

const EXIT_CODES_HEAD: &str = "\
# Exit codes

Every command ends with one of these. With `--json` the last line of a failure has the code, too, beside a short
word for its kind that stays the same where the text changes.

| code | meaning |
|---|---|
";

const METRICS_HEAD: &str = "\
# Metrics

`fairpath stream send --metrics 127.0.0.1:9464` answers with these in the OpenMetrics format, and so does `fairpath stream recv`.

| name | type | meaning |
|---|---|---|
";

const METRICS_PROXY: &str = "
`fairpath proxy --metrics 127.0.0.1:9465` and `fairpath serve --metrics 127.0.0.1:9466` answer with these.

| name | type | meaning |
|---|---|---|
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

fn command_line() -> String {
    let mut text = HEAD.to_owned();
    for (name, mut command) in commands() {
        let help: String =
            command.render_long_help().to_string().lines().map(|line| line.trim_end().to_owned() + "\n").collect();
        text += &format!("\n## {name}\n\n```text\n{}\n```\n", help.trim_end());
    }
    text
}

fn exit_codes() -> String {
    let row = |(code, meaning): &(u8, &str)| format!("| {code} | {meaning} |\n");
    EXIT_CODES_HEAD.to_owned() + &crate::error::EXIT_CODES.iter().map(row).collect::<String>()
}

fn metrics() -> String {
    let ends = METRICS_PROXY.to_owned() + &rows(&crate::proxy_metrics::exposed());
    METRICS_HEAD.to_owned() + &rows(&crate::commands::stream::exposed_metrics()) + &ends
}

fn rows(exposed: &str) -> String {
    let mut text = String::new();
    let about = |keyword: &str| {
        let lines = exposed.lines().filter_map(|line| line.strip_prefix(keyword)?.trim().split_once(' '));
        lines.map(|(name, rest)| (name.to_owned(), rest.to_owned())).collect::<Vec<_>>()
    };
    for ((name, help), (_, kind)) in about("# HELP").into_iter().zip(about("# TYPE")) {
        let name = if kind == "counter" { name + "_total" } else { name };
        text += &format!("| `{name}` | {kind} | {} |\n", help.trim_end_matches('.'));
    }
    text
}

#[test]
fn the_reference_is_what_the_program_says() {
    for (name, now) in [("cli.md", command_line()), ("exit-codes.md", exit_codes()), ("metrics.md", metrics())] {
        let file = format!("{FOLDER}/{name}");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(&file, &now).unwrap();
        }
        let written = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(
            written == now,
            "docs/reference/{name} is not what the program says: run with UPDATE_DOCS=1 and look at the change"
        );
    }
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
