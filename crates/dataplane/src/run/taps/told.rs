//! [`Told`]: a frame as somebody is told about it, and how it stands on a line: in JSON, and for a screen.

use std::fmt::Write;
use std::sync::Arc;

use packet::{Checksums, FlowKey, Packet, visible};
use pktio::{FrameMeta, LinkType, Timestamp};
use rules::model::Family;
use serde_json::{Value, json};

use super::super::account::Reason;
use super::filter::Sight;
use super::place::{Place, Texts};
use super::record::Record;
use super::tap;

/// A frame, and its verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// Nanoseconds since the Unix epoch.
    pub time: u64,
    /// The port that it came in by.
    pub input: Arc<str>,
    /// The port that it leaves, or would leave, by.
    pub output: Arc<str>,
    /// `accept`, `drop`, `reject` or `unknown`.
    pub verdict: &'static str,
    /// Why it was dropped, if it was.
    pub reason: Option<Reason>,
    /// Number of the program whose rules decided.
    pub program: Option<u64>,
    /// In the words of a packet spec.
    pub packet: String,
    /// Bytes that it had.
    pub wire_length: u32,
    /// How its first header is to be read.
    pub link_type: LinkType,
    /// Its bytes, or the first 65,535 of them.
    pub bytes: Vec<u8>,
    flow: Option<FlowKey>,
    place: Place,
}

impl Told {
    pub(super) fn new(
        record: &Record,
        names: &[Arc<str>; 2],
        mut bytes: Vec<u8>,
        texts: &mut Texts,
    ) -> Self {
        let Record { time, reason, ref decision, link_type, wire_length, .. } = *record;
        let [input, output] = tap::directed(names, record.from.into()).map(Arc::clone);
        let meta = FrameMeta { link_type, wire_length, ..FrameMeta::default() };
        Self {
            time,
            input,
            output,
            verdict: record.verdict(),
            reason,
            program: decision.as_ref().map(|decision| decision.program.number()),
            packet: match reason {
                Some(Reason::UnknownSession | Reason::Forged | Reason::Replayed) => {
                    format!("a sealed datagram of {wire_length} bytes")
                }
                _ => packet(&mut bytes, &meta),
            },
            wire_length,
            link_type,
            flow: tap::flow(&mut bytes, &meta),
            bytes,
            place: decision.as_ref().map_or_else(Place::default, |decision| texts.place(decision)),
        }
    }

    /// Its addresses and ports, where they can be read.
    pub(in crate::run) fn flow(&self) -> Option<FlowKey> {
        self.flow
    }

    pub(super) fn sight(&self) -> Sight<'_> {
        let Self { input, output, reason, verdict, flow, .. } = self;
        Sight { input, output, reason: *reason, verdict, flow: *flow }
    }

    /// As a document, with its bytes in hexadecimal if they are wanted.
    #[must_use]
    pub fn json(&self, with_bytes: bool) -> Value {
        let Self { time, input, output, verdict, reason, program, packet, .. } = self;
        let time = Timestamp::from_nanos(i64::try_from(*time).unwrap_or(i64::MAX)).to_string();
        let mut document = json!({
            "time": time,
            "in": &**input,
            "out": &**output,
            "packet": packet,
            "length": self.wire_length,
            "verdict": verdict,
            "reason": reason.map(Reason::name),
            "program": program,
            "by": self.place.json(),
        });
        if with_bytes {
            document["link_type"] = self.link_type.0.into();
            document["frame"] = hex(&self.bytes).into();
        }
        document
    }
}

/// A frame in a line.
fn packet(bytes: &mut [u8], meta: &FrameMeta) -> String {
    let len = (meta.wire_length as usize).max(bytes.len());
    match tap::link(meta) {
        _ if bytes.is_empty() => "a frame that is gone".to_owned(),
        Some(link) => Packet::parse(bytes, len, link, Checksums::Ignore).to_string(),
        None => format!("a frame of link type {}", meta.link_type.0),
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// A document of [`Told::json`] for a screen: the time of day (UTC), the ports, the packet, its verdict and what decided.
#[must_use]
pub fn text(told: &Value) -> String {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let time = word(&told["time"]);
    // RFC 3339 with nine decimals: six tell packets of a link apart.
    let of_day = time.get(11..26).unwrap_or(&time);
    let side = |key: &str| match told[format!("{key}_peer")].as_str() {
        Some(peer) => format!("{}/{peer}", word(&told[key])),
        None => word(&told[key]),
    };
    let (input, output, packet) = (side("in"), side("out"), word(&told["packet"]));
    let line = format!("{of_day} {input} > {output}  {packet}  {}", decided(told));
    visible::word(&line).into_owned()
}

/// The verdict of a document of [`Told::json`] and what decided: `drop by rule 12 of FORWARD (line 31): -A FORWARD …`.
#[must_use]
pub fn decided(told: &Value) -> String {
    let (verdict, by) = (told["verdict"].as_str().unwrap_or_default(), &told["by"]);
    let what = by["text"].as_str().unwrap_or_default();
    let Some(chain) = by["chain"].as_str() else {
        let reason = told["reason"].as_str().unwrap_or("no rule is for it");
        let what = if what.is_empty() { String::new() } else { format!(": {what}") };
        return format!("{verdict} ({reason}){what}");
    };
    let chain = match by["table"].as_str() {
        None | Some("filter") => chain.to_owned(),
        Some(table) => format!("{table} {chain}"),
    };
    let family = by["family"].as_str().filter(|family| *family != Family::Ipv4.name());
    let line = by["line"].as_u64().map(|line| format!("line {line}"));
    let at: Vec<_> = family.map(str::to_owned).into_iter().chain(line).collect();
    let at = if at.is_empty() { String::new() } else { format!(" ({})", at.join(" ")) };
    let by = match (verdict, by["number"].as_u64()) {
        ("unknown", Some(number)) => format!("because of rule {number}"),
        (_, Some(number)) => format!("by rule {number}"),
        (_, None) => "by the policy".to_owned(),
    };
    format!("{verdict} {by} of {chain}{at}: {what}")
}
