//! `tamis ctl counters`.

use anyhow::Result;
use clap::Subcommand;
use dataplane::run::Request;
use packet::visible;
use serde_json::Value;

use crate::screen;

/// What may be asked about rules.
#[derive(Debug, Subcommand)]
pub(crate) enum RulesCommand {
    /// The rules that packets matched, with their counters
    Counters {
        /// All rules with their counters, as the save tool prints them
        #[arg(long)]
        save: bool,
    },
}

impl RulesCommand {
    pub(super) fn request(&self) -> Result<Request> {
        Ok(match self {
            Self::Counters { save } => Request::Counters { save: *save },
        })
    }

    /// The answer, for a screen.
    pub(super) fn text(&self, answer: &Value) -> String {
        match self {
            Self::Counters { save: true } => {
                screen::data(answer["text"].as_str().unwrap_or_default()).into_owned()
            }
            Self::Counters { save: false } => hits(answer),
        }
    }
}

fn hits(answer: &Value) -> String {
    let rules = answer["rules"].as_array().into_iter().flatten();
    let lines = rules.map(|rule| {
        let word = |key: &str| visible::word(rule[key].as_str().unwrap_or_default()).into_owned();
        let (packets, bytes) = (&rule["packets"], &rule["bytes"]);
        format!("{packets:>12} {bytes:>15} {} {} {}\n", word("family"), word("table"), word("text"))
    });
    lines.collect()
}
