//! [`run`]: prints a page, or writes every page.

use std::io;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Command;
use clap_mangen::Man;

use super::more;
use super::sections::Sections;
use crate::screen;

/// `tamis man`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tamis man | man -l -
  tamis man ~/.local/share/man/man1")]
pub(crate) struct ManArgs {
    /// Write every page into this directory (made if it is not there) instead of printing the first
    #[arg(value_name = "DIR")]
    pub dir: Option<std::path::PathBuf>,
}

/// Prints or writes the pages of `tamis`.
pub(crate) fn run(args: &ManArgs, command: Command) -> Result<ExitCode> {
    let mut command = command.disable_help_subcommand(true);
    command.build();
    match &args.dir {
        Some(dir) => {
            let named = || dir.display().to_string();
            std::fs::create_dir_all(dir).with_context(named)?;
            write_all(&command, more::EXIT, dir).with_context(named)?;
            let page = dir.join("tamis-replay.1").display().to_string();
            screen::print(&format!("next: man {}\n", replay::shell::quote(&page)))?;
        }
        None => {
            let page = page(&command, more::EXIT)?;
            screen::write(|out| out.write_all(&page))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes the page of a command, and the pages of its own commands. A page without exit codes takes those of the
/// command above.
fn write_all(command: &Command, above: &str, dir: &Path) -> io::Result<()> {
    let exit = exit_codes(command, above);
    for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
        write_all(command, &exit, dir)?;
    }
    std::fs::write(dir.join(format!("{}.1", name(command))), page(command, above)?)
}

/// The page's name, such as tamis-ctl-apply.
pub(super) fn name(command: &Command) -> &str {
    command.get_display_name().unwrap_or_else(|| command.get_name())
}

pub(super) fn exit_codes(command: &Command, above: &str) -> String {
    let told = Sections::of(command).exit;
    let told = if told.is_empty() { more::exit(name(command)).unwrap_or(above) } else { &*told };
    told.to_owned()
}

pub(super) fn page(command: &Command, above: &str) -> io::Result<Vec<u8>> {
    let (man, mut page) = (Man::new(command.clone()), Vec::new());
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.get_subcommands().any(|command| !command.is_hide_set()) {
        man.render_subcommands_section(&mut page)?;
    }
    let mut sections = Sections::of(command);
    sections.examples.extend(more::examples(name(command)).map(str::to_owned));
    sections.exit = exit_codes(command, above);
    sections.render(more::files(name(command)), &mut page)?;
    if command.get_version().is_some() {
        man.render_version_section(&mut page)?;
    }
    Ok(page)
}
