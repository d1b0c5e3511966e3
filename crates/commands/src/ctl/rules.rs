//! `tamis ctl apply|rollback|confirm|get|log|counters`: the rules of a run, their revisions, what they counted.

use std::fmt::Write;
use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;
use clap::builder::PossibleValuesParser;
use live::Request;
use live::answers::{
    Applied, Confirmed, Counters, Log, LoggedRevision, PolicyCounters, RevisionText, RuleCounters,
    SavedCounters,
};
use packet::visible;

use super::control::{SocketArgs, once};
use crate::screen;

/// What may be asked about rules.
#[derive(Debug, Subcommand)]
pub(crate) enum RulesCommand {
    /// The rules and policies that packets met, with their counters
    Counters {
        /// All rules with their counters, as the save tool prints them
        #[arg(long)]
        save: bool,
    },
    /// Put rules in force, in place of those of their family
    Apply(ApplyArgs),
    /// Put the rules of an earlier revision in force again
    Rollback {
        /// The revision; the one before if none is named
        #[arg(value_name = "REV")]
        revision: Option<u64>,
    },
    /// Keep a revision that waits for it (apply --confirm)
    Confirm,
    /// The rules of a revision, as the save tool prints them
    Get {
        /// The revision; the one in force if none is named
        #[arg(value_name = "REV")]
        revision: Option<u64>,
    },
    /// The revisions that are kept
    Log,
}

/// `tamis ctl apply`.
#[derive(Debug, clap::Args)]
pub(crate) struct ApplyArgs {
    /// Save text of one family or several; - is standard input
    #[arg(value_name = "FILE")]
    file: String,
    /// Family of the rules, if their text does not tell it
    #[arg(long, value_parser = PossibleValuesParser::new(["ip", "ip6", "arp", "bridge"]))]
    family: Option<String>,
    /// The text is changes to the rules in force (-A -I -R -D -F -N -X -E -P), as of iptables-restore --noflush
    #[arg(long)]
    noflush: bool,
    /// Only if this revision is in force; else the exit code is 6
    #[arg(long, value_name = "REV")]
    if_rev: Option<u64>,
    /// Say what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Go back by itself after so many seconds, unless tamis ctl confirm comes first
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    confirm: Option<u64>,
}

impl RulesCommand {
    /// Asks, and prints the answer.
    pub(super) fn run(&self, args: &SocketArgs) -> Result<ExitCode> {
        match self {
            Self::Counters { save: true } => {
                let request = Request::Counters { save: true };
                once(args, &request, |it: &SavedCounters| screen::data(&it.text).into_owned())
            }
            Self::Counters { save: false } => {
                once(args, &Request::Counters { save: false }, counted)
            }
            Self::Apply(apply) => once(args, &apply.request()?, applied),
            Self::Rollback { revision } => {
                once(args, &Request::Rollback { revision: *revision }, applied)
            }
            Self::Confirm => once(args, &Request::Confirm {}, |it: &Confirmed| {
                format!("revision {} stays\n", it.revision)
            }),
            Self::Get { revision } => {
                let request = Request::Get { revision: *revision };
                once(args, &request, |it: &RevisionText| screen::data(&it.text).into_owned())
            }
            Self::Log => once(args, &Request::Log {}, logged),
        }
    }
}

impl ApplyArgs {
    fn request(&self) -> Result<Request> {
        Ok(Request::Apply {
            text: replay::read_text(&self.file)?,
            name: visible::word(&self.file).into_owned(),
            family: self.family.clone(),
            noflush: self.noflush,
            if_rev: self.if_rev,
            dry_run: self.dry_run,
            confirm: self.confirm,
        })
    }
}

/// Seconds, with or without their unit.
fn seconds(text: &str) -> Result<u64, String> {
    let number = text.strip_suffix('s').unwrap_or(text).parse();
    let number = number.ok().filter(|seconds| (1..=3600).contains(seconds));
    number.ok_or_else(|| "expected 1 to 3600 seconds".to_owned())
}

/// What a change of rules did; its warnings go to standard error.
pub(super) fn applied(answer: &Applied) -> String {
    for warning in &answer.warnings {
        screen::tell(&format!("warning: {}", visible::word(warning)));
    }
    let Applied { revision, program, new, gone, kept, .. } = answer;
    let rules = if *new == 1 { "rule" } else { "rules" };
    let changed = format!("{new} {rules} new, {gone} gone, {kept} kept");
    if answer.dry_run {
        return format!("nothing changed; revision {revision} would have {changed}\n");
    }
    let mut text = format!("revision {revision} in force: {changed} (program {program})\n");
    match answer.goes_back_in {
        None => text += "next: tamis ctl counters, or tamis ctl rollback to go back\n",
        Some(seconds) => text += &goes_back(seconds),
    }
    if !answer.durable {
        text.push_str("after a restart it is gone: the run has no journal ([control] journal)\n");
    }
    text
}

fn goes_back(seconds: u64) -> String {
    format!("next: tamis ctl confirm, or it goes back in {seconds} s\n")
}

fn logged(answer: &Log) -> String {
    let mut text = String::from("REVISION  TIME                  BYTES  BY             WHAT\n");
    for LoggedRevision { revision, at, what, uid, pid, bytes, .. } in &answer.revisions {
        let by = match uid {
            None => "the run".to_owned(),
            Some(uid) => format!("uid {uid} pid {}", pid.unwrap_or_default()),
        };
        let (time, what) = (visible::word(at), visible::word(what));
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{revision:>8}  {time}  {bytes:>5}  {by:<13}  {what}");
    }
    text + &answer.goes_back_in.map(goes_back).unwrap_or_default()
}

fn counted(answer: &Counters) -> String {
    let line = |[family, table]: [&str; 2], [packets, bytes]: [u64; 2], what: &str| {
        let line = format!("{family} {table} {what}");
        format!("{packets:>12} {bytes:>15} {}\n", visible::word(&line))
    };
    let rules = answer.rules.iter().map(|rule| {
        let RuleCounters { family, table, chain, number, line: at, text, packets, bytes } = rule;
        let what = format!("{text}  # rule {number} of {chain}, line {at}");
        line([family, table], [*packets, *bytes], &what)
    });
    let policies = answer.policies.iter().map(|decided| {
        let PolicyCounters { family, table, chain, policy, packets, bytes } = decided;
        line([family, table], [*packets, *bytes], &format!("-P {chain} {policy}"))
    });
    rules.chain(policies).collect()
}
