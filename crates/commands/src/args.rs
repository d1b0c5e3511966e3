//! The command line. Stable: scripts rely on it. What a command takes stands with the command.

use clap::{ColorChoice, Parser, Subcommand};

use crate::collect_command::CollectArgs;
use crate::completions_command::CompletionsArgs;
use crate::convert_command::ConvertArgs;
use crate::demo::DemoArgs;
use crate::diff_command::DiffArgs;
use crate::lint_command::LintArgs;
use crate::live::Live;
use crate::man_command::ManArgs;
use crate::moved::MovedArgs;
use crate::reach_command::ReachArgs;
use crate::replay_command::ReplayArgs;
use crate::test_command::TestArgs;
use crate::why_command::WhyArgs;

/// What happens to this packet under these rules, and why?
#[derive(Debug, Parser)]
#[command(name = "tamis", version, max_term_width = 100)]
pub(crate) struct Args {
    /// Colours: on a terminal unless NO_COLOR is set, always, or never
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    #[arg(hide_possible_values = true, hide_short_help = true, value_enum)]
    pub color: ColorChoice,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show a replay of built-in rules and a built-in capture
    Demo(DemoArgs),
    /// What happened to every packet of a capture
    Replay(Box<ReplayArgs>),
    /// The whole path of one packet, rule by rule
    Why(Box<WhyArgs>),
    /// Test rules against a file of cases
    Test(Box<TestArgs>),
    /// What is dead in rules, or wider than meant
    Lint(LintArgs),
    /// Which packets get another verdict under changed rules
    Diff(DiffArgs),
    /// Who can reach an address, or where packets of a network can go
    Reach(Box<ReachArgs>),
    /// Write what this host's own programs say of it into a folder, for replays elsewhere
    Collect(CollectArgs),
    /// Write rules of one family as those of another, or as JSON
    Convert(ConvertArgs),
    #[command(flatten)]
    Live(Live),
    /// Print the completions of a shell
    Completions(CompletionsArgs),
    /// Print the manual page, or write all of them
    Man(ManArgs),
    /// Moved to tamis-bench
    #[command(hide = true, disable_help_flag = true)]
    Bench(MovedArgs),
    /// Moved to tamis-bench
    #[command(hide = true, disable_help_flag = true)]
    Lab(MovedArgs),
}

impl Command {
    /// Whether the command runs until it is asked to end.
    pub(crate) fn runs_for_long(&self) -> bool {
        matches!(self, Self::Live(live) if live.runs_for_long())
    }
}
