//! `--packets`: one JSON object a line for each packet, in capture order.

use std::io::{self, Write};
use std::net::IpAddr;

use dataplane::{DropReason, FinalVerdict};
use host::sighting::Sighting;
use serde::Serialize;

use crate::evaluated::Evaluated;
use crate::groups::has_ports;
use crate::json_text;
use crate::time_text::time_text;

/// A line of `--packets`. Names that stand in the contract of the command line stay; more may be added.
#[derive(Serialize)]
struct Line<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    capture: Option<&'a str>,
    frame: u64,
    time: Option<String>,
    tuple: Option<&'a str>,
    protocol: Option<u8>,
    source: Option<IpAddr>,
    source_port: Option<u16>,
    destination: Option<IpAddr>,
    destination_port: Option<u16>,
    #[serde(rename = "in")]
    input: Option<&'a str>,
    out: Option<&'a str>,
    path: Option<&'static str>,
    verdict: &'static str,
    reason: &'static str,
    table: Option<&'a str>,
    chain: Option<&'a str>,
    number: Option<u32>,
    line: Option<u32>,
    text: &'a str,
    ctstate: Option<String>,
    sighting: &'static str,
    /// For a second sighting, the frame that showed the packet first.
    #[serde(skip_serializing_if = "Option::is_none")]
    of: Option<String>,
    new_verdict: Option<&'static str>,
    new_line: Option<u32>,
    /// Rules that may have recorded it, where it is a record of the firewall's.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    logged_by: &'a [&'a str],
}

/// Writes the line of one packet.
pub(crate) fn write(to: &mut dyn Write, evaluated: &Evaluated<'_>) -> io::Result<()> {
    let place = evaluated.place;
    let flow = evaluated.words.as_ref().and_then(|words| words.flow);
    let ports = flow.filter(|flow| has_ports(flow.protocol));
    let line = Line {
        capture: evaluated.numbers.file(evaluated.frame),
        frame: evaluated.numbers.frame(evaluated.frame),
        time: evaluated.time.map(time_text),
        tuple: evaluated.words.as_ref().map(|words| &*words.line),
        protocol: flow.map(|flow| flow.protocol),
        source: flow.map(|flow| flow.source),
        source_port: ports.map(|flow| flow.source_port),
        destination: flow.map(|flow| flow.destination),
        destination_port: ports.map(|flow| flow.destination_port),
        input: evaluated.sides[0],
        out: evaluated.sides[1],
        path: evaluated.end.path.map(dataplane::Path::name),
        verdict: evaluated.end.verdict.word(),
        reason: match evaluated.end.either {
            Some(_) => "either",
            None => reason(evaluated.end.verdict),
        },
        table: place.table,
        chain: place.chain,
        number: place.number,
        line: place.line,
        text: &place.text,
        // States that remain possible.
        ctstate: evaluated.states.map(|states| format!("{states:?}").to_uppercase()),
        sighting: evaluated.sighting.name(),
        of: match evaluated.sighting {
            Sighting::Second { of } | Sighting::Lower { of } => of,
            _ => None,
        }
        .map(|of| evaluated.numbers.show(of).to_string()),
        new_verdict: evaluated.new.map(|(end, _)| end.verdict.word()),
        logged_by: &evaluated.logged_by,
        new_line: evaluated.new.and_then(|(_, place)| place.line),
    };
    json_text::line(to, &line)
}

/// The kind of what decided, in the words of `drop_reasons`.
fn reason(verdict: FinalVerdict) -> &'static str {
    let reason = match verdict {
        FinalVerdict::Accept(None) => return "none",
        FinalVerdict::Accept(Some(by)) | FinalVerdict::Reject(by) => by.into(),
        FinalVerdict::Drop(reason) => reason,
        FinalVerdict::Unknown => return "unknown",
        FinalVerdict::Skip(_) => return "skip",
    };
    match reason {
        DropReason::Rule(_) => "rule",
        DropReason::Policy { .. } => "policy",
        DropReason::HotDrop(_) => "hotdrop",
        DropReason::Stack(_) => "stack",
        DropReason::Route(_) => "route",
        DropReason::Ttl => "ttl",
        DropReason::TooBig => "too_big",
        DropReason::Conntrack => "conntrack",
        DropReason::Reassembly => "reassembly",
        DropReason::Denied(_) => "denied",
        DropReason::Foreign(_) => "foreign",
    }
}
