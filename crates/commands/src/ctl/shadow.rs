//! `tamis ctl shadow`.

use anyhow::Result;
use clap::Args;
use live::Request;
use live::answers::{Differing, Shadow, ShadowFindings, ShadowSide};
use packet::visible;
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
                let texts = files.iter().map(|file| replay::read_text(file));
                Request::ShadowStart { texts: texts.collect::<Result<_, _>>()? }
            }
        })
    }

    /// The answer, for a screen.
    pub(super) fn text(&self, answer: &Shadow) -> String {
        let Shadow { active: true, found: Some(found) } = answer else {
            return "no rules are tried\nnext: tamis ctl shadow FILE\n".to_owned();
        };
        let found = || findings(found);
        match &*self.files {
            [] => format!("{}next: tamis ctl promote, or tamis ctl shadow off\n", found()),
            [off] if off == "off" => format!("{}these rules are tried no more\n", found()),
            _ => "tried from now on, and acting on nothing\nnext: tamis ctl shadow\n".to_owned(),
        }
    }
}

fn findings(found: &ShadowFindings) -> String {
    let ShadowFindings { packets, differ, left_out, pairs, .. } = found;
    let mut text = format!("{packets} packets evaluated by both, {differ} of them otherwise\n");
    if *left_out != 0 {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{left_out} left out under load: connections that began meanwhile may differ for that alone"
        );
    }
    for Differing { packets, in_force, shadow, example } in pairs.iter().take(SHOWN) {
        let [input, output] = [&example.input, &example.output].map(|port| visible::word(port));
        let _ = writeln!(text, "{packets:>10} packets, the first from {input} to {output}");
        let _ = writeln!(text, "           in force: {}", side(in_force));
        let _ = writeln!(text, "           shadow:   {}", side(shadow));
    }
    if pairs.len() > SHOWN {
        let _ = writeln!(text, "and {} other pairs: --json has them all", pairs.len() - SHOWN);
    }
    text
}

/// What decided, in a line.
fn side(side: &ShadowSide) -> String {
    let mut line = side.verdict.clone();
    if let Some(number @ 1..) = side.line {
        let _ = write!(line, " by line {number}");
    }
    let what = [(": ", &side.text), (": ", &side.reason), (", leaves as ", &side.leaves_as)];
    for (before, what) in what {
        line.extend(what.iter().flat_map(|what| [before, what]));
    }
    visible::word(&line).into_owned()
}
