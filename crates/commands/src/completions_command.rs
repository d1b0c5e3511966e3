//! `tamis completions`: what a shell needs to complete a command line, from the same definitions as the
//! help.

use std::process::ExitCode;

use anyhow::Result;
use clap::Command;
use clap_complete::{Shell, generate};

use crate::screen;

/// `tamis completions`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tamis completions bash > ~/.local/share/bash-completion/completions/tamis
  tamis completions zsh > \"${fpath[1]}/_tamis\"
  tamis completions fish > ~/.config/fish/completions/tamis.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub shell: Shell,
}

/// Prints the completions of `tamis`.
pub(crate) fn run(args: &CompletionsArgs, mut command: Command) -> Result<ExitCode> {
    let mut script = Vec::new();
    generate(args.shell, &mut command, "tamis", &mut script);
    screen::write(|out| out.write_all(&script))?;
    Ok(ExitCode::SUCCESS)
}
