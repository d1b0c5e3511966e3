//! Lines that are about one packet, or about packets of one conversation: lines of `nft monitor trace` and of tcpdump.
//!
//! Contract: a trace's packet is as it came to its first chain, with the interface for output that a later chain
//! saw. A packet of a capture meets the connections of the packets before it. A line that has the words of another line
//! shortly before, and another interface or direction, shows that packet again. Memory is bounded: [`TRACES`],
//! [`RECENT`].

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use conntrack::Mode;
use dataplane::{Config, Evaluator, Program};
use packet::{Checksums, FlowKey, Link, Packet};

use super::past::Past;
use super::story::{Detail, Story};
use super::teller::tell;
use crate::report::ct_name;
use crate::rules_file::{RulesFile, program};
use crate::shell;
use crate::spec::{Captured, Passed, Spec, Talk};
use crate::walk::Setup;
use conntrack::SECOND;

/// Traces that are under way at most, and bytes of their text and frames: beyond, the oldest are judged as they are.
const TRACES: usize = 1 << 14;
const TRACED: usize = 1 << 25;
/// Places of a trace that are kept; a packet that comes to more of them goes on.
const PLACES: usize = 1 << 8;
/// Rules and policies that a packet passed which are kept.
pub(super) const PASSED: usize = 1 << 10;
/// Packets of a capture that a line may show again.
const RECENT: usize = 64;
/// Packets of a conversation that are typed again before the last.
const TYPED: usize = 8;
/// How long a packet takes from one interface to another, at most, as far as lines tell.
const AT_ONCE: u64 = SECOND / 100;
const DAY: u64 = 24 * 3600 * SECOND;
/// The longest that a packet spec comes after another.
const YEAR: u64 = 365 * DAY;

/// A packet that a line says.
pub(super) struct OnePacket {
    pub(super) line: u64,
    pub(super) text: String,
    /// The packet in words that build it.
    pub(super) packet: String,
    pub(super) spec: Spec,
    /// What a trace says that it passed, each by its line: the first of it.
    pub(super) passed: Vec<(u64, Passed)>,
}

impl OnePacket {
    /// Bytes of what its line says, and of its frame.
    fn size(&self) -> usize {
        let passed = self.passed.iter().map(|(_, passed)| passed.size()).sum::<usize>();
        self.text.len() + self.packet.len() + self.spec.frame.len() + passed
    }

    /// Notes what it passed.
    fn passes(&mut self, line: u64, passed: Passed) {
        if self.passed.len() < PASSED {
            self.passed.push((line, passed));
        }
    }

    /// Notes the output interface of a packet that came in.
    fn goes_out(&mut self, output: &str) {
        if self.spec.input.is_some() && self.spec.output.is_none() {
            self.packet.push_str(&format!(" out={output}"));
            self.spec.output = Some(output.to_owned());
        }
    }
}

/// Packets of traces, by their ids.
#[derive(Default)]
pub(super) struct Traces {
    open: HashMap<String, Traced>,
    /// Their ids, by their first lines.
    by_age: BTreeMap<u64, String>,
    /// Bytes of what they say.
    bytes: usize,
    hasher: RandomState,
}

struct Traced {
    packet: OnePacket,
    /// Hashes of the places that it came to.
    places: HashSet<u64>,
}

impl Traces {
    /// Takes a line of a trace; gives packets that are whole: no packet comes to a place twice, and so an id stands for
    /// another one then.
    pub(super) fn take(&mut self, packet: OnePacket, id: String, place: &str) -> Vec<OnePacket> {
        let place = self.hasher.hash_one(place);
        let mut whole = Vec::new();
        let known = self.open.get_mut(&id).map(|known| (known.comes_to(place), known));
        if let Some((true, known)) = known {
            let before = known.packet.size();
            known.learn(packet);
            self.bytes += known.packet.size() - before;
        } else {
            whole.extend(self.close(&id));
            self.bytes += packet.size();
            self.by_age.insert(packet.line, id.clone());
            self.open.insert(id, Traced { packet, places: HashSet::from([place]) });
        }
        while self.open.len() > TRACES || self.bytes > TRACED {
            let Some((_, oldest)) = self.by_age.pop_first() else { break };
            whole.extend(self.close(&oldest));
        }
        whole
    }

    /// Takes what a packet of a trace passed; of a packet that is not known it is nothing.
    pub(super) fn passes(&mut self, id: &str, line: u64, passed: Passed) {
        let Some(known) = self.open.get_mut(id) else { return };
        let before = known.packet.size();
        known.packet.passes(line, passed);
        self.bytes = (self.bytes + known.packet.size()).saturating_sub(before);
    }

    /// Takes a packet out.
    fn close(&mut self, id: &str) -> Option<OnePacket> {
        let packet = self.open.remove(id)?.packet;
        self.by_age.remove(&packet.line);
        self.bytes = self.bytes.saturating_sub(packet.size());
        Some(packet)
    }

    /// Returns the packets that are under way.
    pub(super) fn into_packets(self) -> impl Iterator<Item = OnePacket> {
        let mut all: Vec<OnePacket> = self.open.into_values().map(|traced| traced.packet).collect();
        all.sort_by_key(|packet| packet.line);
        all.into_iter()
    }
}

impl Traced {
    /// Whether it was not there before, as far as that is known.
    fn comes_to(&mut self, place: u64) -> bool {
        match self.places.len() == PLACES {
            true => !self.places.contains(&place),
            false => self.places.insert(place),
        }
    }

    /// A packet that came in goes out as a later chain saw it, which may say what it passed.
    fn learn(&mut self, later: OnePacket) {
        if let Some(output) = later.spec.output {
            self.packet.goes_out(&output);
        }
        for (line, passed) in later.passed {
            self.packet.passes(line, passed);
        }
    }
}

/// The packets of a capture.
pub(super) struct Capture<'p> {
    program: &'p OnceCell<Program>,
    recorded: Mode,
    evaluator: Option<Evaluator<'p>>,
    past: Past,
    talk: Talk,
    /// Packets so far.
    number: u64,
    /// The time of the last line, as it stands there, and since the first.
    last: Option<u64>,
    now: u64,
    recent: VecDeque<Shown>,
    /// The packet of the last line, of which the next one may say how it left.
    waiting: Option<Waiting>,
}

/// A packet that was shown, and when.
pub(super) struct Waiting {
    pub(super) packet: OnePacket,
    at: u64,
    sequence: Option<[u32; 2]>,
}

/// What a line of a capture shows.
pub(super) enum Showing {
    /// A packet that another line showed.
    Again,
    /// Another packet; the one before is complete, if there is one.
    Next(Option<Box<Waiting>>),
}

/// A packet as a line showed it.
struct Shown {
    flow: Option<FlowKey>,
    /// What the line says after the addresses.
    rest: String,
    sides: [Option<String>; 2],
    at: u64,
    line: u64,
    packet: String,
}

impl<'p> Capture<'p> {
    /// Starts with nothing seen; connections are tracked as `recorded` says, under a program that is made when it is
    /// needed.
    pub(super) fn new(program: &'p OnceCell<Program>, recorded: Mode) -> Self {
        let (past, talk, recent) = (Past::default(), Talk::default(), VecDeque::new());
        let (evaluator, number, last, now, waiting) = (None, 0, None, 0, None);
        Self { program, recorded, evaluator, past, talk, number, last, now, recent, waiting }
    }

    /// Goes on to the time of a line: a second later, where it has none.
    fn advance(&mut self, time: Option<u64>) {
        let step = match (self.last, time) {
            // After midnight the clock starts at zero again; otherwise it was set back.
            (Some(last), Some(time)) if time < last => {
                match time.saturating_add(DAY).checked_sub(last) {
                    Some(step) if step < DAY / 2 => step,
                    _ => 0,
                }
            }
            (Some(last), Some(time)) => time - last,
            _ => SECOND,
        };
        self.now = self.now.saturating_add(step);
        self.last = time.or(self.last);
    }

    /// Takes a line: it may show a packet that one shortly before showed, as it left or at a device above or below.
    pub(super) fn take(&mut self, packet: OnePacket, captured: Captured) -> Showing {
        self.advance(captured.time);
        let shown = Shown::of(&packet, captured.rest, self.now);
        let is_again = self.recent.iter().any(|before| shown.shows_again(before));
        let is_of_waiting = self.recent.back().is_some_and(|before| shown.shows_again(before));
        if let (true, Some(waiting)) = (is_of_waiting, &mut self.waiting)
            && let Some(output) = &packet.spec.output
        {
            waiting.packet.goes_out(output);
            if let Some(before) = self.recent.back_mut() {
                before.packet.clone_from(&waiting.packet.packet);
            }
        }
        if is_again {
            return Showing::Again;
        }
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(shown);
        let sequence = captured.sequence;
        let whole = self.waiting.replace(Waiting { packet, at: self.now, sequence });
        Showing::Next(whole.map(Box::new))
    }

    /// The packet of the last line.
    pub(super) fn end(&mut self) -> Option<Waiting> {
        self.waiting.take()
    }

    /// The story of a packet.
    pub(super) fn tell(
        &mut self,
        Waiting { packet, at, sequence }: &Waiting,
        files: &Arc<[RulesFile]>,
        setup: &Setup,
    ) -> Story {
        let walked = self.program.get_or_init(|| {
            let mut setup = setup.clone();
            setup.config.ct.mode = self.recorded;
            program(files.iter(), &setup)
        });
        let evaluator = self.evaluator.get_or_insert_with(|| Evaluator::new(walked));
        self.number += 1;
        let arrival = packet.spec.arrival(self.number, *at, &setup.config);
        let mut bytes = self.talk.next_printed(&packet.spec, *sequence);
        tell(evaluator, files, &mut bytes, &arrival, Detail::End, &mut self.past)
    }

    /// Options that give the packet of a line, and the packets of its connection shortly before.
    pub(super) fn as_options(&self, line: u64, config: &Config) -> String {
        let Some(place) = self.recent.iter().position(|shown| shown.line == line) else {
            return String::new();
        };
        let flow = |shown: &Shown| shown.flow.map(FlowKey::canonical);
        let last = &self.recent[place];
        let same = self.recent.range(..place).rev();
        let same = same.filter(|one| one.flow.is_some() && flow(one) == flow(last));
        let mut typed: Vec<&Shown> = same.take(TYPED).collect();
        typed.reverse();
        typed.push(last);
        let mut options = String::new();
        let mut before: Option<u64> = None;
        for shown in typed {
            let after = before.map(|before| (shown.at - before).min(YEAR));
            let after = after.filter(|after| *after != SECOND);
            let after = after.map_or_else(String::new, |after| {
                format!(" after={}", after as f64 / SECOND as f64)
            });
            options.push_str(&shell::option("packet", &format!("{}{after}", shown.packet)));
            before = Some(shown.at);
        }
        if self.recorded != config.ct.mode {
            options.push_str(&shell::option("ct", ct_name(self.recorded)));
        }
        options
    }
}

impl Shown {
    fn of(OnePacket { line, packet, spec, .. }: &OnePacket, rest: String, at: u64) -> Self {
        let mut frame = spec.frame.clone();
        let len = frame.len();
        let parsed = Packet::parse(&mut frame, len, Link::Ethernet, Checksums::Ignore);
        let flow = FlowKey::of(&parsed).known();
        let sides = [spec.input.clone(), spec.output.clone()];
        Self { flow, rest, sides, at, line: *line, packet: packet.clone() }
    }

    /// Whether both are lines of one packet: it went on from one interface to another, or lies on two devices. A translated
    /// one has one of its ends still, and left at once.
    fn shows_again(&self, before: &Self) -> bool {
        let ([input, output], [came_in, left]) = (&self.sides, &before.sides);
        let ago = self.at - before.at;
        let is_like = self.rest == before.rest && !self.rest.is_empty() && ago < SECOND;
        let Some((now, then)) = self.flow.zip(before.flow).filter(|_| is_like) else {
            return false;
        };
        let goes_out = came_in.is_some() && left.is_none() && input.is_none() && output.is_some();
        let is_on_another = self.sides != before.sides
            && (input.is_some() == came_in.is_some() && output.is_some() == left.is_some());
        let has_one = now.source == then.source || now.destination == then.destination;
        match now == then {
            true => goes_out || is_on_another && (input.is_some() || output.is_some()),
            false => goes_out && has_one && ago < AT_ONCE,
        }
    }
}
