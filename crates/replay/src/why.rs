//! One packet's story: every rule that it met, and what decided.

use std::fmt::Write;
use std::net::IpAddr;

use dataplane::{Arrival, Config, Disposition, Handler, Judgement, Observer, Path, Why};
use packet::{Checksums, Link, Packet};
use pktio::{Burst, CaptureReader, Port};
use rules::conntrack::{CtView, Direction, Flow, Proto, Side, Status};
use rules::eval::{self, Alive, Cause, RuleRef, tests_of};
use rules::model::{Action, Family, Hook};
use rules::nat::Translated;
use rules::{Iface, Outcome, Seen, Transit};
use serde_json::{Value, json};

use crate::error::Error;
use crate::recorder::Recorder;
use crate::report::Report;
use crate::rules_file::RulesFile;
use crate::run::link_of;
use crate::spec::Spec;
use crate::visible::visible;

/// Rules that did not match and stand in a row are counted, not listed, beyond this many.
const SHOWN_IN_A_ROW: usize = 2;

/// Steps that a story tells, so that rules by the million cannot fill the memory. Past it, rules that did
/// not match are counted only; past twice as many, everything is.
const MOST_STEPS: usize = 1 << 14;

/// The story of one packet.
#[derive(Debug)]
pub struct Story<'f> {
    report: Report<'f>,
    packet: String,
    end: Disposition,
    steps: Vec<Step>,
    untold: u64,
}

/// One thing that happened.
#[derive(Debug)]
enum Step {
    Starts { path: Path, input: String, output: String },
    Enters { table: u32, hook: Hook },
    Rule { at: RuleRef, outcome: Outcome, alive: Alive, refused: Option<String> },
    Policy { table: u32, chain: u32 },
    Ttl(Option<u8>),
    Tracked { state: String, flow: Option<FlowStory> },
    Translated { side: Side, to: Translated },
    Rerouted { path: Path, input: String, output: String },
    Settled { state: String },
}

/// A connection as a packet found it.
#[derive(Debug)]
struct FlowStory {
    /// Number of the packet that began it.
    born: u64,
    /// Its tuple, as that packet had it.
    tuple: String,
    /// The packet goes against it.
    is_reply: bool,
    /// What tracking remembers of its protocol, with this packet.
    state: String,
}

/// Tells the story of a packet in words.
#[must_use]
pub fn of_spec<'f>(files: &'f [RulesFile], config: &'f Config, spec: &Spec) -> Story<'f> {
    let arrival = Arrival {
        number: 1,
        link: Link::Ethernet,
        wire_len: spec.frame.len(),
        time: None,
        direction: pktio::Direction::Unknown,
        interface: None,
        input: spec.input.as_deref(),
        output: spec.output.as_deref(),
        mark: spec.mark,
    };
    let mut handler = Handler::new(files.iter().map(|file| &file.ruleset), config);
    tell(files, config, &mut handler, &mut spec.frame.clone(), &arrival)
}

/// Tells the story of a packet of captures; those before it are replayed silently.
///
/// # Errors
/// A capture cannot be read, or there is no such packet.
pub fn of_capture<'f>(
    files: &'f [RulesFile],
    config: &'f Config,
    captures: &[String],
    number: u64,
) -> Result<Story<'f>, Error> {
    let mut handler = Handler::new(files.iter().map(|file| &file.ruleset), config);
    let mut silent = Recorder::new(files);
    let mut burst = Burst::new();
    let (mut seen, mut now) = (0, None);
    for capture in captures {
        let mut reader = CaptureReader::open(capture)?;
        while reader.rx_burst(&mut burst)? > 0 {
            for frame in burst.iter_mut() {
                seen += 1;
                // Time never runs backwards.
                let time = frame.meta.timestamp.and_then(|t| u64::try_from(t.as_nanos()).ok());
                now = now.max(time);
                let index = frame.meta.interface as usize;
                let Some(link) = link_of(frame.meta.link_type) else {
                    if seen == number {
                        return Ok(not_read(files, config, frame.meta.link_type));
                    }
                    continue;
                };
                let arrival = Arrival {
                    number: seen,
                    link,
                    wire_len: frame.meta.wire_length as usize,
                    time: now,
                    direction: frame.meta.direction,
                    interface: reader.interfaces().get(index).and_then(|i| i.name.as_deref()),
                    input: None,
                    output: None,
                    mark: 0,
                };
                if seen == number {
                    return Ok(tell(files, config, &mut handler, frame.bytes, &arrival));
                }
                handler.handle(frame.bytes, &arrival, &mut silent);
            }
        }
    }
    Err(Error::NoSuchPacket { number, packets: seen })
}

fn not_read<'f>(files: &'f [RulesFile], config: &'f Config, link: pktio::LinkType) -> Story<'f> {
    let end = Disposition::skipped(dataplane::Skip::LinkType);
    let packet = format!("a frame of link type {}", link.0);
    Story { report: Report::new(files, config), packet, end, steps: Vec::new(), untold: 0 }
}

fn tell<'f>(
    files: &'f [RulesFile],
    config: &'f Config,
    handler: &mut Handler<'_>,
    bytes: &mut [u8],
    arrival: &Arrival<'_>,
) -> Story<'f> {
    let packet =
        Packet::parse(bytes, arrival.wire_len, arrival.link, Checksums::Ignore).to_string();
    let mut teller = Teller { files, recorder: Recorder::new(files), steps: Vec::new(), untold: 0 };
    let end = handler.handle(bytes, arrival, &mut teller);
    teller.recorder.ended(&end);
    let mut report = Report::new(files, config);
    report.take(teller.recorder);
    Story { report, packet, end, steps: teller.steps, untold: teller.untold }
}

/// Writes down what happens.
struct Teller<'f> {
    files: &'f [RulesFile],
    recorder: Recorder,
    steps: Vec<Step>,
    untold: u64,
}

impl Teller<'_> {
    /// Whether there is room for one more step; counts it if there is not.
    fn room(&mut self, matches: bool) -> bool {
        let most = if matches { 2 * MOST_STEPS } else { MOST_STEPS };
        let room = self.steps.len() < most;
        self.untold += u64::from(!room);
        room
    }

    fn tell(&mut self, step: Step) {
        if self.room(true) {
            self.steps.push(step);
        }
    }
}

impl eval::Observer for Teller<'_> {
    fn rule(&mut self, at: RuleRef, outcome: Outcome, alive: Alive, transit: &Transit<'_, '_>) {
        if !self.room(outcome != Outcome::NO) {
            return;
        }
        let file = self.files.iter().find(|file| file.ruleset.family == transit.family);
        let refused = file.filter(|_| outcome != Outcome::YES).and_then(|file| {
            let tests = tests_of(transit.family, file.rule(at).2, transit);
            let refusing =
                tests.into_iter().find(|test| test.outcome.is_some_and(|o| o != Outcome::YES));
            refusing.map(|test| test.text)
        });
        self.steps.push(Step::Rule { at, outcome, alive, refused });
    }

    fn hit(&mut self, at: RuleRef, certain: bool, transit: &Transit<'_, '_>) {
        self.recorder.hit(at, certain, transit);
    }

    fn policy(&mut self, table: u32, chain: u32, certain: bool, transit: &Transit<'_, '_>) {
        self.recorder.policy(table, chain, certain, transit);
        self.tell(Step::Policy { table, chain });
    }

    fn unknown(&mut self, at: RuleRef, cause: Cause) {
        self.recorder.unknown(at, cause);
    }
}

impl Observer for Teller<'_> {
    fn starts(&mut self, family: Family, path: Path, input: Iface<'_>, output: Iface<'_>) {
        self.recorder.starts(family, path, input, output);
        self.tell(Step::Starts { path, input: iface_text(input), output: iface_text(output) });
    }

    fn enters(&mut self, table: u32, hook: Hook) {
        self.tell(Step::Enters { table, hook });
    }

    fn ttl(&mut self, left: Option<u8>) {
        self.tell(Step::Ttl(left));
    }

    fn hangs_on(&mut self, why: Why) {
        self.recorder.hangs_on(why);
    }

    fn tracked(&mut self, view: &CtView, flow: Seen<'_>) {
        let flow = match flow {
            Seen::Flow(flow) => Some(FlowStory {
                born: flow.born(),
                tuple: flow.tuple(Direction::Original).to_string(),
                is_reply: view.direction == Direction::Reply,
                state: state_of(flow),
            }),
            Seen::None | Seen::Unknown => None,
        };
        self.tell(Step::Tracked { state: format!("{:?}", view.states).to_uppercase(), flow });
    }

    fn translated(&mut self, side: Side, to: Translated) {
        self.tell(Step::Translated { side, to });
    }

    fn rerouted(&mut self, from: Path, to: Path, input: Iface<'_>, output: Iface<'_>) {
        self.recorder.rerouted(from, to, input, output);
        let (input, output) = (iface_text(input), iface_text(output));
        self.tell(Step::Rerouted { path: to, input, output });
    }

    fn settled(&mut self, flow: Seen<'_>) {
        if let Seen::Flow(flow) = flow {
            self.tell(Step::Settled { state: state_of(flow) });
        }
    }
}

fn iface_text(iface: Iface<'_>) -> String {
    match iface {
        Iface::Named(name) => name.to_owned(),
        Iface::Absent => "none".to_owned(),
        Iface::Unknown => "unknown".to_owned(),
    }
}

/// The state of a connection, as the kernel lists it, and what became of its ends.
fn state_of(flow: &Flow) -> String {
    let mut words = match flow.proto() {
        Proto::Tcp(tcp) => vec![tcp.state.to_string()],
        _ => Vec::new(),
    };
    let names = [
        (Status::SEEN_REPLY, "answered"),
        (Status::ASSURED, "assured"),
        (Status::SRC_NAT, "source translated"),
        (Status::DST_NAT, "destination translated"),
    ];
    let status = flow.status();
    words.extend(names.iter().filter(|(bit, _)| status.contains(*bit)).map(|n| n.1.to_owned()));
    if words.is_empty() { "unanswered".to_owned() } else { words.join(", ") }
}

/// `dst now 172.17.0.4:5432`.
fn translation_text(side: Side, to: &Translated) -> String {
    let end = if side == Side::Source { "src" } else { "dst" };
    match to {
        Translated::To(IpAddr::V6(address), Some(port)) => format!("{end} now [{address}]:{port}"),
        Translated::To(address, Some(port)) => format!("{end} now {address}:{port}"),
        Translated::To(address, None) => format!("{end} now {address}"),
        Translated::Unknown => format!("{end} now not known"),
        Translated::No | Translated::Dropped => format!("{end} stays"),
    }
}

impl Story<'_> {
    /// What became of the packet.
    #[must_use]
    pub fn judgement(&self) -> Judgement {
        self.end.judgement
    }

    /// The story in words. `all` lists every rule that did not match, too.
    #[must_use]
    pub fn text(&self, all: bool) -> String {
        let mut out = String::new();
        // Writing to a String cannot fail.
        let _ = self.write_text(&mut out, all);
        visible(&out).into_owned()
    }

    fn write_text(&self, out: &mut String, all: bool) -> std::fmt::Result {
        writeln!(out, "packet  {}", self.packet)?;
        let Some(file) = self.end.family.and_then(|family| self.report.file(family)) else {
            return writeln!(out, "{}", self.conclusion());
        };
        let mut quiet = 0;
        for (index, step) in self.steps.iter().enumerate() {
            if let (Step::Rule { outcome: Outcome::NO, .. }, false) = (step, all) {
                let run = self.steps[index..]
                    .iter()
                    .take_while(|s| matches!(s, Step::Rule { outcome: Outcome::NO, .. }))
                    .count();
                if quiet > 0 || run > SHOWN_IN_A_ROW {
                    quiet += 1;
                    if run == 1 {
                        writeln!(out, "  … {quiet} rules did not match (--all lists them)")?;
                        quiet = 0;
                    }
                    continue;
                }
            }
            self.write_step(out, file, step)?;
        }
        if self.untold > 0 {
            writeln!(out, "  … {} more rules are not told", self.untold)?;
        }
        writeln!(out, "{}", self.conclusion())?;
        for (line, what, _) in self.report.unknown_reasons() {
            let line = line.map_or_else(String::new, |line| format!("L{line} "));
            writeln!(out, "  hangs on {line}{what}")?;
        }
        Ok(())
    }

    fn write_step(&self, out: &mut String, file: &RulesFile, step: &Step) -> std::fmt::Result {
        match step {
            Step::Starts { path, input, output } => {
                writeln!(out, "path    {}, in {input}, out {output}", path.name())
            }
            Step::Enters { table, hook } => {
                let table = &file.ruleset.tables[*table as usize];
                writeln!(out, "{}/{}", table.name, hook.chain_name())
            }
            Step::Rule { at, outcome, alive, refused } => {
                let (table, chain, rule) = file.rule(*at);
                let inner = if chain.base.is_some() { "" } else { "  " };
                let result = result(rule, table, *outcome, *alive, refused.as_deref());
                let place =
                    if chain.base.is_some() { String::new() } else { format!("{} ", chain.name) };
                let text = file.rule_text(*at);
                let text = text.strip_prefix(&format!("-A {} ", chain.name)).unwrap_or(&text);
                writeln!(out, "  {inner}L{:<5} {place}{text}   {result}", rule.line)
            }
            Step::Policy { table, chain } => {
                let by = eval::By::Policy { table: *table, chain: *chain };
                writeln!(out, "  {}", file.by_text(by))
            }
            Step::Ttl(Some(left)) => writeln!(out, "forward: time to live now {left}"),
            Step::Ttl(None) => writeln!(out, "forward: time to live runs out"),
            Step::Tracked { state, flow: None } => writeln!(out, "conntrack: {state}"),
            Step::Tracked { state, flow: Some(flow) } => {
                let way = if flow.is_reply { "against" } else { "part of" };
                let FlowStory { born, tuple, state: now, .. } = flow;
                writeln!(
                    out,
                    "conntrack: {state}, {way} the connection of packet {born}, {tuple}: {now}"
                )
            }
            Step::Translated { side, to } => {
                writeln!(out, "  nat: {}", translation_text(*side, to))
            }
            Step::Rerouted { path, input, output } => {
                writeln!(out, "path    {} from here on, in {input}, out {output}", path.name())
            }
            Step::Settled { state } => writeln!(out, "conntrack: leaves it {state}"),
        }
    }

    /// The last line: the verdict and what gave it.
    fn conclusion(&self) -> String {
        let word = self.end.judgement.word().to_uppercase();
        match (self.report.decided_by(&self.end), self.end.judgement) {
            (Some((0, text)), _) => format!("{word} by {text}"),
            (Some((line, text)), _) => format!("{word} by L{line} {text}"),
            (None, Judgement::Skip(skip)) => {
                format!(
                    "{word}: {}",
                    match skip {
                        dataplane::Skip::Family => "there are no rules for its family",
                        dataplane::Skip::Duplicate => "a second copy of a packet seen before",
                        dataplane::Skip::LinkType => "its link type is not known",
                    }
                )
            }
            (None, Judgement::Accept(_)) => format!("{word}: no chain is attached on its way"),
            (None, _) => word,
        }
    }

    /// The story as one document.
    #[must_use]
    pub fn json(&self) -> Value {
        let file = self.end.family.and_then(|family| self.report.file(family));
        let by = self.report.decided_by(&self.end);
        json!({
            "schema": "tamis.why/1",
            "packet": self.packet,
            "verdict": self.end.judgement.word(),
            "line": by.as_ref().map(|(line, _)| line),
            "by": by.map(|(_, text)| text),
            "unknown_because": self.report.unknown_reasons().into_iter()
                .map(|(line, what, _)| json!({ "line": line, "what": what }))
                .collect::<Vec<_>>(),
            "untold": self.untold,
            "steps": file.map(|file| {
                self.steps.iter().map(|step| step_json(file, step)).collect::<Vec<_>>()
            }),
        })
    }
}

/// What came of one rule, in a word or two.
fn result(
    rule: &rules::model::Rule,
    table: &rules::model::Table,
    outcome: Outcome,
    alive: Alive,
    refused: Option<&str>,
) -> String {
    if outcome == Outcome::NO {
        return refused.map_or_else(|| "no".to_owned(), |text| format!("no: {text}"));
    }
    let sure = match (outcome, alive) {
        (Outcome::HOT_DROP, _) => return "HOT DROP".to_owned(),
        (Outcome::HIT_DROP, _) => return "MATCH and HOT DROP".to_owned(),
        (Outcome::YES, Alive::Certain) => "MATCH".to_owned(),
        (Outcome::YES, _) => "MATCH if it gets here".to_owned(),
        _ => format!("MAYBE: {}", refused.unwrap_or("not known")),
    };
    match &rule.action {
        Action::Jump(to) | Action::Goto(to) => {
            let chain = table.chains.get(*to as usize).map_or("?", |chain| &chain.name);
            format!("{sure} -> {chain}")
        }
        _ => sure,
    }
}

fn step_json(file: &RulesFile, step: &Step) -> Value {
    match step {
        Step::Starts { path, input, output } => {
            json!({ "step": "path", "path": path.name(), "in": input, "out": output })
        }
        Step::Enters { table, hook } => {
            let table = file.ruleset.tables[*table as usize].name;
            json!({ "step": "chain", "table": table, "chain": hook.chain_name() })
        }
        Step::Rule { at, outcome, alive, refused } => {
            let (table, chain, rule) = file.rule(*at);
            json!({
                "step": "rule",
                "table": table.name,
                "chain": chain.name,
                "number": at.rule + 1,
                "line": rule.line,
                "text": file.rule_text(*at),
                "matches": format!("{outcome:?}"),
                "certain": *alive == Alive::Certain,
                "refused_by": refused,
            })
        }
        Step::Policy { table, chain } => {
            json!({ "step": "policy", "by": file.by_text(eval::By::Policy { table: *table, chain: *chain }) })
        }
        Step::Ttl(left) => json!({ "step": "ttl", "left": left }),
        Step::Tracked { state, flow } => json!({
            "step": "conntrack",
            "state": state,
            "flow": flow.as_ref().map(|flow| json!({
                "born": flow.born,
                "tuple": flow.tuple,
                "reply": flow.is_reply,
                "is": flow.state,
            })),
        }),
        Step::Translated { side, to } => {
            json!({ "step": "nat", "what": translation_text(*side, to) })
        }
        Step::Rerouted { path, input, output } => {
            json!({ "step": "path", "path": path.name(), "in": input, "out": output })
        }
        Step::Settled { state } => json!({ "step": "settled", "is": state }),
    }
}
