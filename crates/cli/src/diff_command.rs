//! `tamis diff`.

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args as ClapArgs;
use lint::{Compared, diff};
use replay::walk::{HostFolder, words};
use replay::{RulesFile, json_text};
use rules::model::Family;
use rules::save::LoadOptions;

use crate::screen;
use crate::standard_input::standard_input_once;

/// Exit code where something differs.
const DIFFERENT: u8 = 1;
/// Exit code where something may differ.
const UNKNOWN: u8 = 4;

/// `tamis diff`.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Exit codes: 0 every packet gets the same verdict, 1 some get another, 2 usage or input error, 4 not known.
Chain by chain of each table: packets are as the chain sees them, after translation of their destination.
Every region has a packet that the walks through both rulesets confirm. Packets that end inside a header are left out.
Examples:
  tamis diff old.v4 new.v4
  iptables-save | tamis diff rules.v4 - --json")]
pub(crate) struct DiffArgs {
    /// The old rules of iptables or ip6tables, - for standard input, or a host's folder
    #[arg(value_name = "OLD")]
    pub old: String,
    /// The new ones
    #[arg(value_name = "NEW")]
    pub new: String,
    /// Family of the rules [default: told from the text, else ip; of a folder, IPv4]
    #[arg(long, value_parser = words::family)]
    pub family: Option<Family>,
    /// Only this table; also the table of `iptables -S` text
    #[arg(long, value_name = "NAME")]
    pub table: Option<String>,
    /// Print JSON (tamis.diff/1)
    #[arg(long)]
    pub json: bool,
}

/// Compares.
pub(crate) fn run(args: &DiffArgs) -> Result<ExitCode> {
    standard_input_once([&args.old, &args.new])?;
    let (old, new) = (open(args, &args.old)?, open(args, &args.new)?);
    let found = match diff(&old.ruleset, &new.ruleset) {
        Ok(found) => found,
        Err(_) => bail!("{} and {}: expected rules of one family", old.file, new.file),
    };
    screen::write(|out| {
        if args.json {
            return json_text::pretty(out, &found.json());
        }
        out.write_all(screen::data(&found.text()).as_bytes())
    })?;
    Ok(match found.compared() {
        Compared::Same => ExitCode::SUCCESS,
        Compared::Different => ExitCode::from(DIFFERENT),
        Compared::Unknown => ExitCode::from(UNKNOWN),
    })
}

fn open(args: &DiffArgs, rules: &str) -> Result<RulesFile> {
    let options =
        LoadOptions { family: args.family, table: args.table.as_deref(), ..LoadOptions::default() };
    let file = match HostFolder::at(rules) {
        Some(folder) => folder.rules(&options)?.into_iter().next(),
        None => Some(RulesFile::open(rules, &options)?),
    };
    match file {
        Some(file) if file.ruleset.family.is_ip() => Ok(file),
        _ => bail!("{rules}: expected rules of iptables or ip6tables"),
    }
}
