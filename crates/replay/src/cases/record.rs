//! Writes a cases file from a capture, to start from: one case for each kind of packet, in the order of
//! first appearance.
//!
//! Packets are of one kind if they agree in protocol, addresses, the lower port and its side, flags or
//! type, interfaces, verdict and what decided. Each case is judged before it is written: what a SPEC cannot
//! reproduce (payload, options, connections, time) is left out and counted. So the file passes as written.
//!
//! Contract: constant memory in the length of the captures.

use std::collections::HashSet;
use std::fmt::Write;
use std::ops::ControlFlow;

use dataplane::{Config, Handler, Judgement, Observer, Path};
use packet::{Checksums, FlowKey, Packet, tcp, udp};
use rules::model::Family;
use rules::{Iface, eval};

use super::judge::conversation;
use super::text::one_line;
use super::{Decided, Got, PlaceName};
use crate::error::Error;
use crate::frames::{self, Frame};
use crate::rules_file::RulesFile;
use crate::spec;
use crate::spec::words::{Detail, of_packet};

/// Kinds of packets remembered, for each case that may be written: some cannot be reproduced.
const KINDS_PER_CASE: usize = 8;

/// The cases of a capture.
#[derive(Debug)]
pub struct Recording<'f> {
    files: &'f [RulesFile],
    config: &'f Config,
    cases: Vec<Recorded>,
    /// Packets seen.
    pub packets: u64,
    /// Packets whose verdict is unknown.
    pub unknown: u64,
    /// Packets that were not judged.
    pub skipped: u64,
    /// Kinds of packets that no SPEC reproduces.
    pub not_in_words: u64,
    /// Packets that would have made further cases.
    pub cut: u64,
    /// What was odd about the captures.
    pub warnings: Vec<String>,
}

#[derive(Debug)]
struct Recorded {
    frame: u64,
    spec: String,
    got: Got,
}

/// What makes two packets one kind.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Kind {
    protocol: u8,
    addresses: [std::net::IpAddr; 2],
    /// The lower port, and whether it is the source's.
    service: (u16, bool),
    /// Flags or type, and fragment.
    message: String,
    interfaces: [Option<String>; 2],
    verdict: &'static str,
    place: Option<PlaceName>,
}

/// Records captures. At most `limit` cases are kept.
///
/// # Errors
/// A capture cannot be read, or none of its packets makes a case.
pub fn record<'f>(
    files: &'f [RulesFile],
    config: &'f Config,
    captures: &[String],
    limit: usize,
) -> Result<Recording<'f>, Error> {
    let mut recording = Recording {
        files,
        config,
        cases: Vec::new(),
        packets: 0,
        unknown: 0,
        skipped: 0,
        not_in_words: 0,
        cut: 0,
        warnings: Vec::new(),
    };
    let mut handler = Handler::new(files.iter().map(|file| &file.ruleset), config);
    let mut kinds = HashSet::new();
    let mut before = Vec::new();
    let stream = frames::each(captures, |frame| {
        recording.take(frame, &mut handler, &mut kinds, (limit, &mut before));
        ControlFlow::<()>::Continue(())
    })?;
    (recording.packets, recording.warnings) = (stream.frames, stream.warnings);
    if recording.cases.is_empty() {
        return Err(Error::NothingToRecord { found: recording.found() });
    }
    Ok(recording)
}

impl Recording<'_> {
    fn take(
        &mut self,
        frame: Frame<'_>,
        handler: &mut Handler<'_>,
        kinds: &mut HashSet<Kind>,
        (limit, before): (usize, &mut Vec<u8>),
    ) {
        let Some(arrival) = frame.arrival else {
            self.skipped += 1;
            return;
        };
        // The handler rewrites the frame in place.
        before.clear();
        before.extend_from_slice(frame.bytes);
        let mut passing = Passing::default();
        let end = handler.handle(frame.bytes, &arrival, &mut passing);
        match end.judgement {
            Judgement::Unknown => self.unknown += 1,
            Judgement::Skip(_) => self.skipped += 1,
            Judgement::Accept(_) | Judgement::Drop(_) | Judgement::Reject(_) => {
                let got = Got::of(&end, self.files);
                let (link, len) = (arrival.link, arrival.wire_len);
                let packet = Packet::parse(before, len, link, Checksums::Ignore);
                self.judged((frame.number, &packet), got, passing, (kinds, limit));
            }
        }
    }

    fn judged(
        &mut self,
        (frame, packet): (u64, &Packet<'_>),
        got: Got,
        passing: Passing,
        (kinds, limit): (&mut HashSet<Kind>, usize),
    ) {
        let Some(kind) = Kind::of(packet, &got, passing) else {
            self.not_in_words += 1;
            return;
        };
        if kinds.contains(&kind) {
            return;
        }
        if self.cases.len() >= limit || kinds.len() >= limit.saturating_mul(KINDS_PER_CASE) {
            self.cut += 1;
            return;
        }
        let mut specs = Detail::ALL.into_iter().filter_map(|detail| kind.spec(packet, detail));
        match specs.find(|spec| self.reproduces(spec, &got)) {
            Some(spec) => self.cases.push(Recorded { frame, spec, got }),
            None => self.not_in_words += 1,
        }
        kinds.insert(kind);
    }

    /// Whether a packet in words meets the same end by the same rule.
    fn reproduces(&self, words: &str, got: &Got) -> bool {
        let Ok(spec) = spec::parse(words) else { return false };
        conversation([&spec].into_iter(), self.files, self.config).first() == Some(got)
    }

    /// What became of the packets that make no case.
    fn found(&self) -> String {
        format!(
            "{} packets: {} unknown, {} not judged, {} that a SPEC cannot reproduce",
            self.packets, self.unknown, self.skipped, self.not_in_words
        )
    }

    /// How many cases there are.
    #[must_use]
    pub fn case_count(&self) -> usize {
        self.cases.len()
    }

    /// The cases file. `rules` is what it is to say of its rules: their files, from where it will lie.
    #[must_use]
    pub fn toml(&self, rules: [Option<&str>; 2], captures: &[String]) -> String {
        let mut out = String::new();
        // Writing to a String cannot fail.
        let _ = self.write_heading(&mut out, captures);
        for (key, file) in ["rules", "rules6"].into_iter().zip(rules) {
            let _ = file.map(|file| writeln!(out, "{key} = {}", quoted(file)));
        }
        out.push_str(&defaults(self.config));
        for case in &self.cases {
            let _ = self.write_case(&mut out, case);
        }
        out
    }

    fn write_heading(&self, out: &mut String, captures: &[String]) -> std::fmt::Result {
        let captures = one_line(&captures.join(" "));
        writeln!(
            out,
            "# Recorded from {captures}: {} packets, {} cases.",
            self.packets,
            self.case_count()
        )?;
        let left_out = [
            (self.unknown, "packets whose verdict is unknown"),
            (self.skipped, "packets that were not judged"),
            (self.not_in_words, "kinds of packets that a SPEC cannot reproduce"),
            (self.cut, "packets beyond --limit"),
        ];
        for (count, what) in left_out.iter().filter(|(count, _)| *count > 0) {
            writeln!(out, "# Left out: {count} {what}.")?;
        }
        for warning in &self.warnings {
            writeln!(out, "# Warning: {}", one_line(warning))?;
        }
        writeln!(
            out,
            "# This is what the rules do, not what they should: keep the cases that you mean."
        )
    }

    fn write_case(&self, out: &mut String, case: &Recorded) -> std::fmt::Result {
        let Recorded { frame, spec, got } = case;
        let by = got.by.as_ref();
        let name = by.map_or_else(String::new, |by| format!(" by {}", by.place));
        writeln!(out, "\n[[case]]")?;
        writeln!(out, "name = {}", quoted(&format!("frame {frame}: {}{name}", got.verdict)))?;
        writeln!(out, "packet = {}", quoted(spec))?;
        writeln!(out, "expect = {}", quoted(got.verdict))?;
        match by {
            // A rule's text stays when rules come and go before it; its number does not.
            Some(Decided { is_rule: true, text, .. }) => {
                writeln!(out, "by_text = {}", quoted(text))
            }
            Some(by) => writeln!(out, "by = {}", quoted(&by.place.to_string())),
            None => Ok(()),
        }
    }
}

impl Kind {
    fn of(packet: &Packet<'_>, got: &Got, passing: Passing) -> Option<Self> {
        let key = FlowKey::of(packet).known()?;
        let has_ports = matches!(key.protocol, tcp::PROTOCOL | udp::PROTOCOL);
        let (source, destination) = (key.source_port, key.destination_port);
        let service = (source.min(destination), source < destination);
        let words = of_packet(packet, Detail::Brief)?;
        // Behind `PROTOCOL SOURCE > DESTINATION` stand the flags or type.
        let message = words.splitn(5, ' ').nth(4).unwrap_or_default();
        let message = if key.protocol == tcp::PROTOCOL { flags_class(message) } else { message };
        Some(Self {
            protocol: key.protocol,
            addresses: [key.source, key.destination],
            service: if has_ports { service } else { (0, false) },
            message: message.to_owned(),
            interfaces: [passing.input, passing.output],
            verdict: got.verdict,
            place: got.by.as_ref().map(|by| by.place.clone()),
        })
    }

    /// A packet of this kind as a SPEC, with its interfaces.
    fn spec(&self, packet: &Packet<'_>, detail: Detail) -> Option<String> {
        let [input, output] = &self.interfaces;
        let mut words = String::new();
        for (key, name) in [("in", input), ("out", output)] {
            if let Some(name) = name {
                words.push_str(&format!("{key}={name} "));
            }
        }
        Some(words + &of_packet(packet, detail)?)
    }
}

/// What a rule may make of flags: segments of a connection that stands are of one class, whether they push
/// or end it.
fn flags_class(message: &str) -> &str {
    let flags = message.split(' ').next().unwrap_or_default();
    let has = |name: &str| flags.split(',').any(|flag| flag == name);
    if has("ack") && !has("syn") && !has("rst") && message == flags { "ack" } else { message }
}

/// Notes the interfaces that a packet passes.
#[derive(Default)]
struct Passing {
    input: Option<String>,
    output: Option<String>,
}

impl eval::Observer for Passing {}

impl Observer for Passing {
    fn starts(&mut self, _family: Family, path: Path, input: Iface<'_>, output: Iface<'_>) {
        let name = |iface: Iface<'_>| match iface {
            Iface::Named(name) => Some(name.to_owned()),
            Iface::Absent | Iface::Unknown => None,
        };
        // On the loopback path they go without saying.
        if path != Path::Loopback {
            (self.input, self.output) = (name(input), name(output));
        }
    }
}

/// `[defaults]` for the configuration that the capture was judged with.
fn defaults(config: &Config) -> String {
    let mut lines = String::new();
    let mut key = |key: &str, value: String| lines.push_str(&format!("{key} = {value}\n"));
    let list = |members: Vec<String>| format!("[{}]", members.join(", "));
    if let Some(name) = &config.input {
        key("in", quoted(name));
    }
    if let Some(name) = &config.output {
        key("out", quoted(name));
    }
    if !config.nets.is_empty() {
        let nets = config.nets.iter().map(|(name, net)| quoted(&format!("{name}={net}")));
        key("net", list(nets.collect()));
    }
    if let Some(local) = &config.world.local {
        key("local", list(local.iter().map(|net| quoted(&net.to_string())).collect()));
    }
    if let Some(path) = config.path {
        key("path", quoted(path.name()));
    }
    if lines.is_empty() { lines } else { format!("\n[defaults]\n{lines}") }
}

/// A TOML string.
fn quoted(text: &str) -> String {
    toml::Value::from(text).to_string()
}

#[cfg(test)]
mod tests;
