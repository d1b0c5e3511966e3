//! The answers about frames: those dropped last, and the lines of a watch; with their form on a screen.

#![expect(missing_docs, reason = "docs/control.md says what the keys mean")]

use std::fmt;

use packet::visible;
use rules::model::Family;
use serde::{Deserialize, Serialize};

/// The answer to `drops`: the frames that were dropped last, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "schema", rename = "tamis.drops/1", default)]
pub struct Drops {
    pub drops: Vec<Frame>,
}

/// The first line of the answer to `watch`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "schema", rename = "tamis.watch/1", default)]
pub struct Watching {
    pub watching: bool,
}

/// The last line of the answer to `watch`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "schema", rename = "tamis.watch/1")]
pub struct WatchEnd {
    /// What ended the watch: `count` or `run`.
    pub end: String,
    #[serde(default)]
    pub lost: u64,
}

/// A line of the answer to `watch` after the first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum WatchLine {
    /// The last line.
    End(WatchEnd),
    /// A frame.
    Frame(Box<Frame>),
}

/// A frame and its verdict.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Frame {
    /// When the frame came (RFC 3339).
    pub time: String,
    #[serde(rename = "in")]
    pub input: String,
    /// The peer that the frame came from, where that port is a tunnel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_peer: Option<String>,
    #[serde(rename = "out")]
    pub output: String,
    /// The peer that the frame was for, where that port is a tunnel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub out_peer: Option<String>,
    pub packet: String,
    pub length: u32,
    /// `accept`, `drop`, `reject` or `unknown`.
    pub verdict: String,
    /// Why the frame was dropped, if it was.
    pub reason: Option<String>,
    pub program: Option<u64>,
    pub by: Decider,
    /// Number of the link type, where bytes are wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link_type: Option<u32>,
    /// The frame's bytes in hexadecimal, where they are wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame: Option<String>,
    /// The number of frames of the watch that are missing so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
}

/// What decided about a frame, with its place as far as that is in the rules.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Decider {
    pub family: Option<String>,
    pub table: Option<String>,
    pub chain: Option<String>,
    /// Number of the rule in its chain, from 1; `None` for a policy.
    pub number: Option<u32>,
    pub line: Option<u32>,
    pub text: String,
}

/// Formats a frame for a screen: the time of day (UTC), the ports, the packet, its verdict and what decided.
impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // RFC 3339 with nine decimals: six are enough to order packets of a link.
        let of_day = self.time.get(11..26).unwrap_or(&self.time);
        let side = |port: &str, peer: &Option<String>| match peer {
            Some(peer) => format!("{port}/{peer}"),
            None => port.to_owned(),
        };
        let (input, output) =
            (side(&self.input, &self.in_peer), side(&self.output, &self.out_peer));
        let line = format!("{of_day} {input} > {output}  {}  {}", self.packet, self.decided());
        f.write_str(&visible::word(&line))
    }
}

impl Frame {
    /// The verdict and what decided: `drop by rule 12 of FORWARD (line 31): -A FORWARD …`.
    #[must_use]
    pub fn decided(&self) -> String {
        let Self { verdict, reason, by, .. } = self;
        let what = &by.text;
        let Some(chain) = &by.chain else {
            let reason = reason.as_deref().unwrap_or("no rule is for it");
            let what = if what.is_empty() { String::new() } else { format!(": {what}") };
            return format!("{verdict} ({reason}){what}");
        };
        let chain = match by.table.as_deref() {
            None | Some("filter") => chain.clone(),
            Some(table) => format!("{table} {chain}"),
        };
        let family = by.family.clone().filter(|family| *family != Family::Ipv4.name());
        let line = by.line.map(|line| format!("line {line}"));
        let at: Vec<_> = family.into_iter().chain(line).collect();
        let at = if at.is_empty() { String::new() } else { format!(" ({})", at.join(" ")) };
        let by = match (&**verdict, by.number) {
            ("unknown", Some(number)) => format!("because of rule {number}"),
            (_, Some(number)) => format!("by rule {number}"),
            (_, None) => "by the policy".to_owned(),
        };
        format!("{verdict} {by} of {chain}{at}: {what}")
    }
}
