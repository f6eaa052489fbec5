//! `fairpath completions`: what a shell needs to complete commands and options.

use std::io::Write as _;

use anyhow::Context as _;
use clap_complete::Shell;
use fairpath_report::text::output;

const EXAMPLE: &str = "\
Example:
  fairpath completions bash > ~/.local/share/bash-completion/completions/fairpath
  fairpath completions zsh > \"${fpath[1]}/_fairpath\"
  fairpath completions fish > ~/.config/fish/completions/fairpath.fish";

/// Print what a shell needs to complete commands and options
#[derive(Debug, clap::Args)]
#[command(before_help = EXAMPLE)]
pub(crate) struct Args {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    // The generator ends the program where it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::command(), "fairpath", &mut script);
    output().write_all(&script).context("cannot write to standard output")
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum as _;

    use super::*;

    #[test]
    fn every_shell_is_told_of_every_command() {
        for shell in Shell::value_variants() {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut crate::command(), "fairpath", &mut script);
            let script = String::from_utf8(script).unwrap();
            for word in ["send", "recv", "stream", "give-up-after"] {
                assert!(script.contains(word), "{shell} does not know {word}");
            }
        }
    }
}
