//! One packet's story: every rule that it met, what decided, and which rules it nearly matched.

mod again;
mod diagram;
mod json;
mod lines;
mod past;
mod single;
mod text;

use std::sync::Arc;

use conntrack::{CtView, Direction, Edit, Flow, Proto, Side, States, Status};
use dataplane::{
    Arrival, Config, Disposition, Evaluator, FinalVerdict, Observer, Path, Program, Skip, Why,
};
use host::sighting::Sighting;
use packet::{Checksums, Link, Packet};
use rules::eval::{self, Alive, Cause, RuleRef, tests_of};
use rules::ext::Memory;
use rules::model::{Family, Hook};
use rules::nat::Translated;
use rules::{Iface, KnownFlow, Outcome, Transit};

use crate::batch::{Batch, StreamFrame};
use crate::error::Error;
use crate::logged::Loggers;
use crate::near::Misses;
use crate::recorder::{OnePacket, Recorder};
use crate::report::Report;
use crate::rules_file::{RulesFile, program};
use crate::source::{Numbers, Reading, Source, capture_of};
use crate::spec::{Spec, arrivals};
use crate::spotter::Spotter;
pub(crate) use again::paths;
pub use lines::{Judged, of_lines};
use past::{Expired, Past};
pub use single::{Single, Singles};
use text::edit_text;

/// Steps that a story tells, so that rules by the million cannot fill the memory. Past it, rules that did
/// not match are counted only; past twice as many, everything is.
const MOST_STEPS: usize = 1 << 14;

/// The story of one packet. It owns what it shows.
#[derive(Debug)]
pub struct Story {
    report: Report,
    /// The packets of the conversation before this one.
    before: Vec<Before>,
    packet: String,
    end: Disposition,
    steps: Vec<Step>,
    untold: u64,
    /// Rules that did not match for one test; `None` if nobody asks.
    misses: Option<Misses>,
    /// What its frame is, in a capture that tells.
    seen: Option<SeenAs>,
    /// Rules that may have recorded it, where it is a record of the firewall's.
    logged: Vec<String>,
}

/// What a frame is, and which other ones show its packet.
#[derive(Debug)]
struct SeenAs {
    sighting: Sighting,
    /// The frame that shows the packet leaving.
    left: Option<u64>,
}

/// A packet that came before.
#[derive(Debug)]
struct Before {
    packet: String,
    end: Disposition,
}

/// One thing that happened.
#[derive(Debug)]
enum Step {
    Starts {
        path: Path,
        input: String,
        output: String,
    },
    Enters {
        table: u32,
        hook: Hook,
    },
    Rule {
        at: RuleRef,
        outcome: Outcome,
        alive: Alive,
        refused: Option<String>,
        /// What its matches that remember packets went by.
        remarks: Vec<String>,
    },
    Policy {
        table: u32,
        chain: u32,
    },
    Ttl(Option<u8>),
    Tracked {
        state: String,
        flow: Option<FlowStory>,
    },
    /// Its states do not agree, and it is taken for this one.
    Taken {
        state: String,
    },
    Translated {
        side: Side,
        to: Translated,
    },
    /// What a helper's connection has written into the packet.
    Edited(Vec<String>),
    Rerouted {
        path: Path,
        input: String,
        output: String,
    },
    Settled {
        state: String,
    },
}

/// A connection as a packet found it.
#[derive(Debug)]
struct FlowStory {
    /// Number of the packet that began it.
    born: u64,
    /// It is this one.
    begins: bool,
    /// Its tuple, as that packet had it.
    tuple: String,
    /// The packet goes against it.
    is_reply: bool,
    /// Of one that begins, the entry of its ends that had expired before.
    expired: Option<Expired>,
    /// What tracking remembers of its protocol, with this packet.
    state: String,
}

/// Tells the story of the last packet of a conversation of packet specs; the packets before it are handled first,
/// by the same evaluator, and told in a line each. With `near`, that many near misses are kept.
#[must_use]
pub fn of_conversation(
    files: &[RulesFile],
    config: &Config,
    before: &[Spec],
    last: &Spec,
    near: Option<usize>,
) -> Story {
    let program = program(files, config);
    let mut evaluator = Evaluator::new(&program);
    let mut past = Past::default();
    let earlier: Vec<Before> = arrivals(before)
        .map(|(spec, arrival)| {
            let mut bytes = spec.frame.clone();
            let packet = shown(&mut bytes, &arrival);
            let observer = past.next(arrival.number, arrival.time);
            Before { packet, end: evaluator.handle(&mut bytes, &arrival, observer).outcome.end }
        })
        .collect();
    let time = before.iter().chain([last]).map(|spec| spec.after).sum();
    let arrival = last.arrival(before.len() as u64 + 1, time);
    let mut bytes = last.frame.clone();
    let story = tell(&mut evaluator, &files.into(), &mut bytes, &arrival, near, &mut past);
    Story { before: earlier, ..story }
}

/// Tells the story of a packet of captures, named as [`Numbers`] has it; those before it are replayed silently. With
/// `near`, that many near misses are kept.
///
/// # Errors
/// A capture cannot be read, or it has no such packet.
pub fn of_capture(
    files: &[RulesFile],
    config: &Config,
    captures: &[String],
    packet: &str,
    near: Option<usize>,
) -> Result<Story, Error> {
    let numbers = Numbers::of(captures);
    let number = numbers
        .parse(packet)
        .ok_or_else(|| Error::NoSuchPacket { number: packet.to_owned(), packets: None })?;
    let program = program(files, config);
    let mut evaluator = Evaluator::new(&program);
    let mut source = Source::new(captures, Some(Spotter::new(files, config)), Reading::default());
    let (mut batch, mut past) = (Batch::default(), Past::default());
    while source.next(&mut batch)? {
        for frame in batch.frames() {
            if frame.arrived.number == number {
                let story =
                    of_frame(frame, config.pair, &mut evaluator, &files.into(), near, &mut past);
                let report = Report { numbers, ..story.report };
                return Ok(Story { report, ..story });
            }
            if let (Some(link), None) = (frame.link(), frame.skip()) {
                let arrival = frame.arrival(link, config.pair);
                let observer = past.next(arrival.number, arrival.time);
                evaluator.handle(frame.bytes, &arrival, observer);
            }
        }
    }
    let packets = source.read.packets_of_each().get(capture_of(number)).copied();
    Err(Error::NoSuchPacket { number: packet.to_owned(), packets })
}

/// The story of a frame of a capture. `pairs` says whether what frames that left tell is used.
fn of_frame(
    frame: StreamFrame<'_, '_>,
    pairs: bool,
    evaluator: &mut Evaluator<'_>,
    files: &Arc<[RulesFile]>,
    near: Option<usize>,
    past: &mut Past,
) -> Story {
    let sighting = frame.sighting();
    let left = frame.seen.and_then(|seen| seen.left).map(|left| left.number);
    let seen = (sighting != Sighting::Unknown).then_some(SeenAs { sighting, left });
    let program = evaluator.program();
    let story = match (frame.link(), frame.skip()) {
        (None, _) => {
            let packet = format!("a frame of link type {}", frame.meta.link_type.0);
            not_walked(program, files, packet, None)
        }
        (Some(link), Some(skip)) => {
            let arrival = frame.arrival(link, pairs);
            not_walked(program, files, shown(frame.bytes, &arrival), Some(skip))
        }
        (Some(link), None) => {
            let arrival = frame.arrival(link, pairs);
            tell(evaluator, files, frame.bytes, &arrival, near, past)
        }
    };
    Story { seen, ..story }
}

/// The story of a frame that is no packet of its own, or that cannot be read.
fn not_walked(
    program: &Program,
    files: &Arc<[RulesFile]>,
    packet: String,
    skip: Option<Skip>,
) -> Story {
    Story {
        report: Report::new(Arc::clone(files), Arc::clone(program.config())),
        before: Vec::new(),
        packet,
        end: Disposition::skipped(skip.unwrap_or(Skip::LinkType)),
        steps: Vec::new(),
        untold: 0,
        misses: None,
        seen: None,
        logged: Vec::new(),
    }
}

/// A packet in a line.
fn shown(bytes: &mut [u8], arrival: &Arrival<'_>) -> String {
    Packet::parse(bytes, arrival.wire_len, arrival.link, Checksums::Ignore).to_string()
}

fn tell(
    evaluator: &mut Evaluator<'_>,
    files: &Arc<[RulesFile]>,
    bytes: &mut [u8],
    arrival: &Arrival<'_>,
    near: Option<usize>,
    past: &mut Past,
) -> Story {
    let packet = shown(bytes, arrival);
    let logged = match arrival.link {
        Link::Nflog => Loggers::of(files).of_frame(bytes).into_iter().map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    let mut recorder = Recorder::new(&**files, false);
    let misses = near.map(Misses::of_most);
    let mut teller = Teller {
        files,
        number: arrival.number,
        time: arrival.time,
        past: past.next(arrival.number, arrival.time),
        counted: recorder.packet(),
        steps: Vec::new(),
        untold: 0,
        remarks: Vec::new(),
        misses,
    };
    let end = evaluator.handle(bytes, arrival, &mut teller).outcome.end;
    let Teller { counted, steps, untold, misses, .. } = teller;
    counted.finish(&end);
    let config = Arc::clone(evaluator.program().config());
    let mut report = Report::new(Arc::clone(files), config);
    recorder.report(&mut report);
    Story { report, before: Vec::new(), packet, end, steps, untold, misses, seen: None, logged }
}

/// An observer that looks away.
pub(crate) struct Unseen;

impl eval::Observer for Unseen {}
impl Observer for Unseen {}

/// Writes down what happens.
struct Teller<'f, 'r> {
    files: &'f [RulesFile],
    /// The packet's, as connections know it.
    number: u64,
    time: Option<u64>,
    /// Of the packets before it, and of it for those after.
    past: &'f mut Past,
    counted: OnePacket<'r>,
    steps: Vec<Step>,
    untold: u64,
    /// Of the rule that is being evaluated.
    remarks: Vec<String>,
    misses: Option<Misses>,
}

impl Teller<'_, '_> {
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

impl eval::Observer for Teller<'_, '_> {
    fn rule(&mut self, at: RuleRef, outcome: Outcome, alive: Alive, transit: &Transit<'_, '_>) {
        let remarks = std::mem::take(&mut self.remarks);
        let room = self.room(outcome != Outcome::NO);
        let misses = self.misses.as_mut().filter(|_| outcome == Outcome::NO);
        if !room && misses.is_none() {
            return;
        }
        let file = self.files.iter().find(|file| file.ruleset.family == transit.family);
        let refused = file.filter(|_| outcome != Outcome::YES).and_then(|file| {
            let (table, _, rule) = file.rule(at);
            let tests = tests_of(transit.family, rule, transit);
            if let Some(misses) = misses {
                misses.add(at, (table, rule), &tests, transit);
            }
            let mut tests = tests.into_iter();
            tests.find(|test| test.outcome.is_some_and(|o| o != Outcome::YES)).map(|test| test.text)
        });
        if room {
            self.steps.push(Step::Rule { at, outcome, alive, refused, remarks });
        }
    }

    fn remembered(&mut self, _at: RuleRef, memory: &dyn Memory) {
        self.remarks.extend(memory.remark());
    }

    fn hit(&mut self, at: RuleRef, certain: bool, transit: &Transit<'_, '_>) {
        self.counted.hit(at, certain, transit);
    }

    fn policy(&mut self, table: u32, chain: u32, certain: bool, transit: &Transit<'_, '_>) {
        self.counted.policy(table, chain, certain, transit);
        self.tell(Step::Policy { table, chain });
    }

    fn unknown(&mut self, at: RuleRef, cause: Cause) {
        self.counted.unknown(at, cause);
    }
}

impl Observer for Teller<'_, '_> {
    fn starts(&mut self, family: Family, path: Path, input: Iface<'_>, output: Iface<'_>) {
        self.counted.starts(family, path, input, output);
        self.tell(Step::Starts { path, input: iface_text(input), output: iface_text(output) });
    }

    fn enters(&mut self, table: u32, hook: Hook) {
        self.tell(Step::Enters { table, hook });
    }

    fn ttl(&mut self, left: Option<u8>) {
        self.tell(Step::Ttl(left));
    }

    fn depends_on(&mut self, why: Why) {
        self.counted.depends_on(why);
    }

    fn tracked(&mut self, view: &CtView, known: KnownFlow<'_>) {
        let flow = match known {
            KnownFlow::Flow(flow) => Some(FlowStory {
                born: flow.born(),
                begins: flow.born() == self.number,
                tuple: flow.tuple(Direction::Original).to_string(),
                is_reply: view.direction == Direction::Reply,
                expired: self
                    .time
                    .filter(|_| flow.born() == self.number)
                    .and_then(|now| self.past.expired(flow.tuple(Direction::Original), now)),
                state: state_of(flow),
            }),
            KnownFlow::None | KnownFlow::Unknown => None,
        };
        self.past.tracked(view, known);
        self.tell(Step::Tracked { state: format!("{:?}", view.states).to_uppercase(), flow });
    }

    fn taken(&mut self, states: States) {
        self.tell(Step::Taken { state: format!("{states:?}").to_uppercase() });
    }

    fn translated(&mut self, side: Side, to: Translated) {
        self.tell(Step::Translated { side, to });
    }

    fn edited(&mut self, packet: &Packet<'_>, edit: &Edit) {
        self.tell(Step::Edited(edit_text(packet, edit)));
    }

    fn rerouted(&mut self, from: Path, to: Path, input: Iface<'_>, output: Iface<'_>) {
        self.counted.rerouted(from, to, input, output);
        let (input, output) = (iface_text(input), iface_text(output));
        self.tell(Step::Rerouted { path: to, input, output });
    }

    fn settled(&mut self, flow: KnownFlow<'_>) {
        self.past.settled(flow);
        if let KnownFlow::Flow(flow) = flow {
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

/// The state of a connection, as the kernel lists it, and what is known of its two sides.
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

impl Story {
    /// The packet's verdict.
    #[must_use]
    pub fn verdict(&self) -> FinalVerdict {
        self.end.verdict
    }

    /// Whether it was accepted; of one that is not known rules that accept tell more.
    fn is_accepted(&self) -> bool {
        matches!(self.end.verdict, FinalVerdict::Accept(_))
    }

    /// How deep in jumps each step is: 0 in a built-in chain.
    fn depths(&self) -> Vec<usize> {
        let mut chains: Vec<(u32, u32)> = Vec::new();
        let depth = |step: &Step| match step {
            Step::Rule { at, .. } => {
                let chain = (at.table, at.chain);
                match chains.iter().position(|one| *one == chain) {
                    Some(depth) => chains.truncate(depth + 1),
                    None => chains.push(chain),
                }
                chains.len() - 1
            }
            Step::Enters { .. } => {
                chains.clear();
                0
            }
            _ => 0,
        };
        self.steps.iter().map(depth).collect()
    }
}
