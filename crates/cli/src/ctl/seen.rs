//! `tamis ctl drops`.

use clap::Subcommand;
use dataplane::run::{Request, told_text};
use serde_json::Value;

/// What may be asked about frames.
#[derive(Debug, Subcommand)]
pub(crate) enum SeenCommand {
    /// The last frames that were dropped
    Drops,
}

impl SeenCommand {
    pub(super) fn request(&self) -> Request {
        match self {
            Self::Drops => Request::Drops {},
        }
    }

    /// The answer, for a screen.
    pub(super) fn text(&self, answer: &Value) -> String {
        match self {
            Self::Drops => drops(answer),
        }
    }
}

fn drops(answer: &Value) -> String {
    let drops = answer["drops"].as_array().into_iter().flatten();
    let lines: String = drops.map(|told| told_text(told) + "\n").collect();
    match lines.is_empty() {
        true => "nothing was dropped\n".to_owned(),
        false => lines + "next: tamis watch, for frames as they are dropped\n",
    }
}
