//! What `tamis COMMAND -h` shows: the options that matter at first, on one screen. `--help` has all of them.

use clap::Command;

/// Commands with more options than a screen has lines, and the options that `-h` shows.
const SHOWN: [(&str, [&str; 10]); 4] = [
    (
        "replay",
        ["list", "vs", "fail_on", "html", "json", "packets", "filter", "rules6", "local", "nets"],
    ),
    (
        "why",
        ["packets", "near", "all", "json", "rules6", "input", "output", "local", "nets", "ipset"],
    ),
    (
        "reach",
        ["to", "from", "record", "limit", "json", "local", "input", "output", "nets", "ipset"],
    ),
    (
        "test",
        ["record", "to", "pin", "junit", "github", "json", "rules6", "input", "output", "nets"],
    ),
];

/// Shortens the `-h` of commands whose `--help` is long.
pub(crate) fn shortened(command: Command) -> Command {
    SHOWN.into_iter().fold(command, |command, (name, shown)| {
        command.mut_subcommand(name, |command| short(command, name, &shown))
    })
}

fn short(command: Command, name: &str, shown: &[&str]) -> Command {
    let all = command.get_after_help().cloned().unwrap_or_default();
    let is_shown = |id: &str| shown.contains(&id);
    command
        .mut_args(|arg| {
            let hidden = !arg.is_positional() && !is_shown(arg.get_id().as_str());
            arg.hide_short_help(hidden)
        })
        .after_help(format!("All options, exit codes and examples: tamis {name} --help"))
        .after_long_help(all)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Args;

    #[test]
    fn what_is_shown_is_there_and_what_is_not_is_in_the_long_help() {
        let plain = Args::command();
        let short = shortened(plain.clone());
        for (name, shown) in SHOWN {
            let all = plain.find_subcommand(name).unwrap();
            let mut command = short.find_subcommand(name).unwrap().clone();
            let brief = command.render_help().to_string();
            let long = command.render_long_help().to_string();
            for id in shown {
                let arg = all.get_arguments().find(|arg| arg.get_id() == id);
                let arg = arg.unwrap_or_else(|| panic!("{name} has no {id}"));
                assert!(brief.contains(&format!("--{}", arg.get_long().unwrap())), "{id}: {brief}");
            }
            for arg in all.get_arguments().filter_map(clap::Arg::get_long) {
                assert!(long.contains(&format!("--{arg}")), "{name} --{arg}");
            }
            assert!(brief.lines().count() < 50, "{brief}");
            assert!(long.contains("Exit codes"), "{long}");
        }
    }
}
