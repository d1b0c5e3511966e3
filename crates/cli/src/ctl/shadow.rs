//! `tamis ctl shadow`.

use anyhow::{Context, Result};
use clap::Args;
use dataplane::run::Request;
use packet::visible;
use serde_json::Value;
use std::fmt::Write;

/// Pairs that are shown.
const SHOWN: usize = 12;

/// `tamis ctl shadow`.
#[derive(Debug, Args)]
pub(crate) struct ShadowArgs {
    /// Rules to try beside those in force, one file for each family; `off` ends the trial; without any: what was found so
    /// far
    #[arg(value_name = "FILE|off")]
    pub files: Vec<String>,
}

impl ShadowArgs {
    pub(super) fn request(&self) -> Result<Request> {
        Ok(match &*self.files {
            [] => Request::Shadow {},
            [off] if off == "off" => Request::ShadowStop {},
            files => {
                let texts = files.iter().map(|file| {
                    std::fs::read_to_string(file).with_context(|| visible::word(file).into_owned())
                });
                Request::ShadowStart { texts: texts.collect::<Result<_>>()? }
            }
        })
    }

    /// The answer, for a screen.
    pub(super) fn text(&self, answer: &Value) -> String {
        if answer["active"] != true {
            return "no rules are tried\nnext: tamis ctl shadow FILE\n".to_owned();
        }
        match &*self.files {
            [] => found(answer),
            [off] if off == "off" => format!("{}these rules are tried no more\n", found(answer)),
            _ => "tried from now on, and acting on nothing\nnext: tamis ctl shadow\n".to_owned(),
        }
    }
}

fn found(answer: &Value) -> String {
    let (packets, differ, left_out) = (&answer["packets"], &answer["differ"], &answer["left_out"]);
    let mut text = format!("{packets} packets evaluated by both, {differ} of them otherwise\n");
    if *left_out != 0 {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{left_out} left out under load: connections that began meanwhile may differ for that alone"
        );
    }
    let pairs = answer["pairs"].as_array().map(Vec::as_slice).unwrap_or_default();
    for pair in pairs.iter().take(SHOWN) {
        let example = &pair["example"];
        let (input, output) = (word(&example["in"]), word(&example["out"]));
        let _ =
            writeln!(text, "{:>10} packets, the first from {input} to {output}", pair["packets"]);
        let _ = writeln!(text, "           in force: {}", side(&pair["in_force"]));
        let _ = writeln!(text, "           shadow:   {}", side(&pair["shadow"]));
    }
    if pairs.len() > SHOWN {
        let _ = writeln!(text, "and {} other pairs: --json has them all", pairs.len() - SHOWN);
    }
    text
}

/// What decided, in a line.
fn side(side: &Value) -> String {
    let mut text = word(&side["verdict"]);
    if side["line"].as_u64().is_some_and(|line| line > 0) {
        let _ = write!(text, " by line {}", side["line"]);
    }
    for (before, key) in [(": ", "text"), (": ", "reason"), (", leaves as ", "leaves_as")] {
        if !side[key].is_null() {
            let _ = write!(text, "{before}{}", word(&side[key]));
        }
    }
    text
}

fn word(value: &Value) -> String {
    visible::word(value.as_str().unwrap_or_default()).into_owned()
}
