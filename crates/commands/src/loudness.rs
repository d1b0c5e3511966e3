//! How much a command says, and in which colours: `--color`, `--quiet`, `--verbose`.

use std::io::IsTerminal;
use std::sync::OnceLock;

use clap::{Args, ColorChoice};
use replay::report::Style;

/// `--quiet` and `--verbose`.
#[derive(Debug, Args)]
#[command(next_help_heading = "What is said")]
pub(crate) struct Loudness {
    /// No report and no remarks: the exit code and what was asked for (--json, files) tell
    #[arg(short, long, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Whole lines on a terminal, too; on standard error how long it took
    #[arg(short, long)]
    pub verbose: bool,
}

static COLOUR: OnceLock<ColorChoice> = OnceLock::new();

/// Takes the word of `--color`, once for the process.
pub(crate) fn set_colour(choice: ColorChoice) {
    // The command line is read once.
    let _ = COLOUR.set(choice);
}

/// How text for people looks on a stream: colours on a terminal, unless NO_COLOR says otherwise
/// (<https://no-color.org>) or `--color` does; as wide as the terminal, and whole where there is none or all is wanted.
pub(crate) fn style(stream: &impl IsTerminal, is_whole: bool) -> Style {
    let is_terminal = stream.is_terminal();
    let permitted = || std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let colour = match COLOUR.get() {
        Some(ColorChoice::Always) => true,
        Some(ColorChoice::Never) => false,
        Some(ColorChoice::Auto) | None => is_terminal && permitted(),
    };
    Style { colour, width: columns().filter(|_| is_terminal && !is_whole) }
}

/// The columns of the terminal.
fn columns() -> Option<usize> {
    let (columns, _) = terminal_size::terminal_size()?;
    (columns.0 > 0).then_some(usize::from(columns.0))
}
