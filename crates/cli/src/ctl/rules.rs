//! `tamis ctl apply|rollback|confirm|get|log|counters`: the rules of a run, their revisions, what they counted.

use std::fmt::Write;
use std::fs;
use std::io::Read;

use anyhow::{Context, Result};
use clap::Subcommand;
use clap::builder::PossibleValuesParser;
use dataplane::run::Request;
use packet::visible;
use serde_json::Value;

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
    pub(super) fn request(&self) -> Result<Request> {
        Ok(match self {
            Self::Counters { save } => Request::Counters { save: *save },
            Self::Apply(args) => args.request()?,
            Self::Rollback { revision } => Request::Rollback { revision: *revision },
            Self::Confirm => Request::Confirm {},
            Self::Get { revision } => Request::Get { revision: *revision },
            Self::Log => Request::Log {},
        })
    }

    /// The answer, for a screen.
    pub(super) fn text(&self, answer: &Value) -> String {
        match self {
            Self::Counters { save: true } | Self::Get { .. } => {
                screen::data(answer["text"].as_str().unwrap_or_default()).into_owned()
            }
            Self::Counters { save: false } => counted(answer),
            Self::Apply(_) | Self::Rollback { .. } => applied(answer),
            Self::Confirm => format!("revision {} stays\n", answer["revision"]),
            Self::Log => logged(answer),
        }
    }
}

impl ApplyArgs {
    fn request(&self) -> Result<Request> {
        let text = match &*self.file {
            "-" => {
                let mut text = String::new();
                std::io::stdin().read_to_string(&mut text).context("standard input")?;
                text
            }
            file => fs::read_to_string(file).with_context(|| file.to_owned())?,
        };
        Ok(Request::Apply {
            text,
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

fn applied(answer: &Value) -> String {
    let [new, gone, kept] = ["new", "gone", "kept"].map(|key| &answer[key]);
    let rules = if *new == 1 { "rule" } else { "rules" };
    let changed = format!("{new} {rules} new, {gone} gone, {kept} kept");
    let revision = &answer["revision"];
    if answer["dry_run"] == true {
        return format!("nothing changed; revision {revision} would have {changed}\n");
    }
    let mut text =
        format!("revision {revision} in force: {changed} (program {})\n", answer["program"]);
    // Writing to a String cannot fail.
    let _ = match &answer["goes_back_in"] {
        Value::Null => writeln!(text, "next: tamis ctl counters, or tamis ctl rollback to go back"),
        seconds => writeln!(text, "next: tamis ctl confirm, or it goes back in {seconds} s"),
    };
    if answer["durable"] == false {
        text.push_str("after a restart it is gone: the run has no journal ([control] journal)\n");
    }
    text
}

fn logged(answer: &Value) -> String {
    let mut text = String::from("REVISION  TIME                  BYTES  BY             WHAT\n");
    for revision in answer["revisions"].as_array().into_iter().flatten() {
        let time = visible::word(revision["at"].as_str().unwrap_or_default()).into_owned();
        let by = match (&revision["uid"], &revision["pid"]) {
            (Value::Null, _) => "the run".to_owned(),
            (uid, pid) => format!("uid {uid} pid {pid}"),
        };
        let what = visible::word(revision["what"].as_str().unwrap_or_default()).into_owned();
        let (number, bytes) = (&revision["revision"], &revision["bytes"]);
        let (number, bytes) = (number.to_string(), bytes.to_string());
        let _ = writeln!(text, "{number:>8}  {time}  {bytes:>5}  {by:<13}  {what}");
    }
    if let Some(seconds) = answer["goes_back_in"].as_u64() {
        let _ = writeln!(text, "next: tamis ctl confirm, or it goes back in {seconds} s");
    }
    text
}

fn counted(answer: &Value) -> String {
    let listed = |key: &str| answer[key].as_array().into_iter().flatten();
    let word = |value: &Value| visible::word(value.as_str().unwrap_or_default()).into_owned();
    let line = |counted: &Value, what: &str| {
        let (packets, bytes) = (&counted["packets"], &counted["bytes"]);
        let [family, table] = ["family", "table"].map(|key| word(&counted[key]));
        format!("{packets:>12} {bytes:>15} {family} {table} {what}\n")
    };
    let rules = listed("rules").map(|rule| {
        let [chain, text] = ["chain", "text"].map(|key| word(&rule[key]));
        let place = format!("rule {} of {chain}, line {}", rule["number"], rule["line"]);
        line(rule, &format!("{text}  # {place}"))
    });
    let policies = listed("policies").map(|policy| {
        let [chain, verdict] = ["chain", "policy"].map(|key| word(&policy[key]));
        line(policy, &format!("-P {chain} {verdict}"))
    });
    rules.chain(policies).collect()
}
