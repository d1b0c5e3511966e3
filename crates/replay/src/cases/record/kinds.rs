//! [`record`]: the kinds of packets of a capture, and the cases that show them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use dataplane::{Evaluator, FinalVerdict};
use packet::{Checksums, FlowKey, Packet, tcp, udp, visible};

use crate::batch::{Batch, StreamFrame};
use crate::cases::evaluate::conversation;
use crate::cases::{Got, PlaceName};
use crate::error::Error;
use crate::rules_file::{RulesFile, program};
use crate::source::{Numbers, Reading, Source};
use crate::spec;
use crate::spec::words::{Detail, of_packet};
use crate::spotter::Spotter;
use crate::walk::Setup;
use crate::walk::names::fit_captures;
use crate::why::Past;

/// Flows whose first packets are remembered.
const FLOWS: usize = 4096;

/// Packets of a flow remembered: as many as open a TCP connection.
const OPENING: usize = 3;

/// Kinds of packets remembered, for each case that may be written: some cannot be reproduced.
const KINDS_PER_CASE: usize = 8;

/// The cases of a capture. They own what they say.
#[derive(Debug)]
pub struct Recording {
    files: Arc<[RulesFile]>,
    pub(super) setup: Setup,
    pub(super) cases: Vec<Recorded>,
    /// How frame numbers are printed.
    pub(super) numbers: Numbers,
    /// Whether the cases are to say what decides, not the verdict alone.
    pub pins: bool,
    /// Packets seen.
    pub packets: u64,
    /// Packets whose verdict is unknown.
    pub unknown: u64,
    /// Packets that were not evaluated.
    pub skipped: u64,
    /// Kinds of packets that no SPEC reproduces.
    pub not_in_words: u64,
    /// Packets that would have made further cases.
    pub cut: u64,
    /// What was odd about the captures.
    pub warnings: Vec<String>,
}

#[derive(Debug)]
pub(super) struct Recorded {
    pub(super) frame: u64,
    /// The packet's spec, after the specs that opened its flow if it needs them; never empty.
    pub(super) specs: Vec<String>,
    /// The result of each of them.
    pub(super) got: Vec<Got>,
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
    /// Words for the rules that may have decided, where one of several did.
    either: Option<String>,
}

/// Records captures. At most `limit` cases are kept.
///
/// # Errors
/// A capture cannot be read, or none of its packets makes a case.
pub fn record(
    files: &[RulesFile],
    setup: &Setup,
    captures: &[String],
    limit: usize,
) -> Result<Recording, Error> {
    let config = &setup.config;
    fit_captures(captures, &config.host.links)?;
    let program = program(files, setup);
    let mut taking = Taking {
        recording: Recording {
            files: files.into(),
            setup: setup.clone(),
            cases: Vec::new(),
            numbers: Numbers::of(captures),
            pins: false,
            packets: 0,
            unknown: 0,
            skipped: 0,
            not_in_words: 0,
            cut: 0,
            warnings: Vec::new(),
        },
        evaluator: Evaluator::new(&program),
        kinds: HashSet::new(),
        openings: HashMap::new(),
        limit,
    };
    let mut before = Vec::new();
    let mut source = Source::new(captures, Some(Spotter::new(files, config)), Reading::default());
    let mut batch = Batch::default();
    while source.next(&mut batch)? {
        for frame in batch.frames() {
            taking.take(frame, &mut before);
        }
    }
    let mut recording = taking.recording;
    recording.packets = source.read.packets_of_each().iter().sum();
    recording.warnings = source.read.into_warnings();
    if recording.cases.is_empty() {
        return Err(Error::NothingToRecord { found: recording.found() });
    }
    Ok(recording)
}

/// A recording under way.
struct Taking<'p> {
    recording: Recording,
    evaluator: Evaluator<'p>,
    kinds: HashSet<Kind>,
    /// The specs of flows' first packets, each in few words and in all, by the key that both directions share.
    openings: HashMap<FlowKey, Vec<[String; 2]>>,
    limit: usize,
}

impl Taking<'_> {
    /// Takes in one frame; `before` is room for it as it was captured.
    fn take(&mut self, frame: StreamFrame<'_, '_>, before: &mut Vec<u8>) {
        let (Some(link), None) = (frame.link(), frame.skip()) else {
            self.recording.skipped += 1;
            return;
        };
        let arrival = frame.arrival(link, self.recording.setup.config.pair);
        // The evaluator rewrites the frame in place.
        before.clear();
        before.extend_from_slice(frame.bytes);
        let mut past = Past::noting_sides();
        let end = self.evaluator.handle(frame.bytes, &arrival, &mut past).outcome.end;
        let [input, output] = past.take_sides();
        let passing = Passing { input, output };
        let packet = Packet::parse(before, arrival.wire_len, arrival.link, Checksums::Ignore);
        match end.verdict {
            FinalVerdict::Skip(_) => {
                self.recording.skipped += 1;
                return;
            }
            FinalVerdict::Unknown => self.recording.unknown += 1,
            FinalVerdict::Accept(_) | FinalVerdict::Drop(_) | FinalVerdict::Reject(_) => {
                let got = Got::of(&end, &self.recording.files, &self.recording.setup.config.host);
                self.evaluated(frame.arrived.number, &packet, &got, &passing);
            }
        }
        self.opens(&packet, &passing);
    }

    /// A packet whose verdict is known: another case, unless there is one like it.
    fn evaluated(&mut self, frame: u64, packet: &Packet<'_>, got: &Got, passing: &Passing) {
        let Some(kind) = Kind::of(packet, got, passing) else {
            self.recording.not_in_words += 1;
            return;
        };
        if self.kinds.contains(&kind) {
            return;
        }
        let full = self.recording.cases.len() >= self.limit
            || self.kinds.len() >= self.limit.saturating_mul(KINDS_PER_CASE);
        if full {
            self.recording.cut += 1;
            return;
        }
        match self.specs(packet, got, passing) {
            Some((specs, got)) => self.recording.cases.push(Recorded { frame, specs, got }),
            None => self.recording.not_in_words += 1,
        }
        self.kinds.insert(kind);
    }

    /// The shortest specs that come to the same verdict by the same rule.
    fn specs(
        &self,
        packet: &Packet<'_>,
        got: &Got,
        passing: &Passing,
    ) -> Option<(Vec<String>, Vec<Got>)> {
        let key = FlowKey::of(packet).known()?;
        let opening = self.openings.get(&key.canonical()).map_or(&[][..], Vec::as_slice);
        let alone = Detail::ALL.map(|detail| (&[][..], 0, detail));
        let after = Detail::ALL.map(|detail| (opening, 0, detail));
        let after_all = Detail::ALL.map(|detail| (opening, 1, detail));
        alone.into_iter().chain(after).chain(after_all).find_map(|(opening, words, detail)| {
            let last = passing.spec(packet, detail)?;
            let opening = opening.iter().map(|both| both[words].clone());
            let specs: Vec<String> = opening.chain([last]).collect();
            let ends = self.recording.replays(&specs)?;
            (ends.last() == Some(got)).then_some((specs, ends))
        })
    }

    /// Remembers the first packets of a flow.
    fn opens(&mut self, packet: &Packet<'_>, passing: &Passing) {
        let Some(key) = FlowKey::of(packet).known() else { return };
        let key = key.canonical();
        let room = self.openings.len() < FLOWS;
        let Some(opening) = (match self.openings.get_mut(&key) {
            None if room => Some(self.openings.entry(key).or_default()),
            known => known,
        }) else {
            return;
        };
        if opening.len() < OPENING {
            let brief = passing.spec(packet, Detail::Brief);
            opening.extend(brief.map(|brief| {
                let whole = passing.spec(packet, Detail::Whole);
                [brief.clone(), whole.unwrap_or(brief)]
            }));
        }
    }
}

impl Recording {
    /// The results of packet specs.
    fn replays(&self, specs: &[String]) -> Option<Vec<Got>> {
        let specs = specs.iter().map(|words| spec::parse(words).ok());
        let specs: Vec<_> = specs.collect::<Option<_>>()?;
        Some(conversation(specs.iter(), &self.files, &self.setup))
    }

    /// Why packets make no case, in numbers.
    fn found(&self) -> String {
        format!(
            "{} packets: {} unknown, {} not evaluated, {} that a SPEC cannot reproduce",
            self.packets, self.unknown, self.skipped, self.not_in_words
        )
    }

    /// How many cases there are.
    #[must_use]
    pub fn case_count(&self) -> usize {
        self.cases.len()
    }
}

impl Kind {
    fn of(packet: &Packet<'_>, got: &Got, passing: &Passing) -> Option<Self> {
        let key = FlowKey::of(packet).known()?;
        let has_ports = matches!(key.protocol, tcp::PROTOCOL | udp::PROTOCOL);
        let (source, destination) = (key.source_port, key.destination_port);
        let service = (source.min(destination), source < destination);
        let words = of_packet(packet, Detail::Brief)?;
        // After `PROTOCOL SOURCE > DESTINATION` stand the flags or type.
        let message = words.splitn(5, ' ').nth(4).unwrap_or_default();
        let message = if key.protocol == tcp::PROTOCOL { flags_class(message) } else { message };
        Some(Self {
            protocol: key.protocol,
            addresses: [key.source, key.destination],
            service: if has_ports { service } else { (0, false) },
            message: message.to_owned(),
            interfaces: [passing.input.clone(), passing.output.clone()],
            verdict: got.verdict,
            place: got.by.as_ref().map(|by| by.place.clone()),
            either: got.either.clone(),
        })
    }
}

/// What a rule may make of flags: segments of a connection that stands are of one class, whether they push
/// or end it.
fn flags_class(message: &str) -> &str {
    let flags = message.split(' ').next().unwrap_or_default();
    let has = |name: &str| flags.split(',').any(|flag| flag == name);
    if has("ack") && !has("syn") && !has("rst") && message == flags { "ack" } else { message }
}

/// The interfaces that a packet passed.
struct Passing {
    input: Option<String>,
    output: Option<String>,
}

impl Passing {
    /// A packet as a SPEC, with these interfaces.
    fn spec(&self, packet: &Packet<'_>, detail: Detail) -> Option<String> {
        let mut words = String::new();
        for (key, name) in [("in", &self.input), ("out", &self.output)] {
            if let Some(name) = name {
                // No word of a SPEC.
                if name.contains(|c: char| c.is_whitespace() || visible::steers(c)) {
                    return None;
                }
                words.push_str(&format!("{key}={name} "));
            }
        }
        Some(words + &of_packet(packet, detail)?)
    }
}
