//! [`tell_knowing`]: evaluates one packet and writes its story down, step by step.
//!
//! Contract: memory is bounded, whatever the rules ([`MOST_STEPS`]). The story says what a replay counts: the same evaluator,
//! whose observer the [`Teller`] is; only what the segments of a superframe may have hit besides it leaves out.

use std::net::IpAddr;
use std::sync::Arc;

use conntrack::{CtView, Direction, Edit, Flow, Proto, Side, States, Status};
use dataplane::{Arrival, Evaluator, Observer, Path, Why};
use packet::{L3, Link, Packet};
use rules::eval::{self, Alive, Cause, Proof, RuleRef, Test, tests_of};
use rules::ext::Memory;
use rules::model::{Family, Hook};
use rules::nat::Translated;
use rules::{Iface, KnownFlow, Outcome, Transit};

use super::past::Past;
use super::story::{Detail, FlowStory, Step, Story, shown};
use super::text::edit_text;
use super::witness::{Known, Proofs};
use crate::logged::Loggers;
use crate::near::Misses;
use crate::recorder::{OnePacket, Recorder};
use crate::report::Report;
use crate::rules_file::RulesFile;

/// Steps that a story tells, so that rules by the million cannot fill the memory. Past it, rules that did
/// not match are counted only; past twice as many, everything is.
const MOST_STEPS: usize = 1 << 14;

/// Tells the story of a packet of which no log says anything.
pub(super) fn tell(
    evaluator: &mut Evaluator<'_>,
    files: &Arc<[RulesFile]>,
    bytes: &mut [u8],
    arrival: &Arrival<'_>,
    detail: Detail,
    past: &mut Past,
) -> Story {
    tell_knowing(evaluator, files, bytes, arrival, detail, past, &Known::default()).0
}

/// Tells the story with what is known of rules that logged the packet; also returns the rules among them that it may
/// have reached.
pub(super) fn tell_knowing(
    evaluator: &mut Evaluator<'_>,
    files: &Arc<[RulesFile]>,
    bytes: &mut [u8],
    arrival: &Arrival<'_>,
    detail: Detail,
    past: &mut Past,
    known: &Known,
) -> (Story, Vec<RuleRef>) {
    let packet = shown(bytes, arrival);
    let logged = match arrival.link {
        Link::Nflog => Loggers::of(files).of_frame(bytes).into_iter().map(str::to_owned).collect(),
        _ => Vec::new(),
    };
    let mut recorder = Recorder::new(&**files, false);
    let misses = match detail {
        Detail::Near(most) => Some(Misses::of_most(most)),
        Detail::End | Detail::Steps => None,
    };
    let mut teller = Teller {
        files,
        number: arrival.number,
        time: arrival.time,
        past: past.next(arrival.number, arrival.time),
        counted: recorder.packet(arrival.number),
        steps: Vec::new(),
        untold: 0,
        remarks: Vec::new(),
        misses,
        detail,
        known,
        met: Vec::new(),
        proofs: Proofs::default(),
        opens: false,
        settled: false,
    };
    let end = evaluator.handle(bytes, arrival, &mut teller).outcome.end;
    let Teller { counted, steps, untold, misses, met, .. } = teller;
    counted.finish(&end);
    let config = Arc::clone(evaluator.program().config());
    let mut report = Report::new(Arc::clone(files), config);
    recorder.report(&mut report);
    let (before, assumed, seen, contradiction) = (Vec::new(), Vec::new(), None, None);
    let story = Story {
        report,
        before,
        packet,
        assumed,
        end,
        steps,
        untold,
        misses,
        seen,
        logged,
        contradiction,
    };
    (story, met)
}

/// Writes down what happens.
struct Teller<'f, 'r> {
    files: &'f [RulesFile],
    /// The packet's, as connections know it.
    number: u64,
    time: Option<u64>,
    /// What is remembered of the packets before, and of this packet for later ones.
    past: &'f mut Past,
    counted: OnePacket<'r>,
    steps: Vec<Step>,
    untold: u64,
    /// Remarks about the rule that is being evaluated.
    remarks: Vec<String>,
    misses: Option<Misses>,
    detail: Detail,
    known: &'f Known,
    /// Rules that may have logged it, each time that it may have come to one.
    met: Vec<RuleRef>,
    /// What the rule that logged the packet proves about others.
    proofs: Proofs,
    /// The rule at hand hangs on what came before the packet; cleared when the walk asks.
    opens: bool,
    /// The packet reached the rule that logged it; cleared when the walk asks.
    settled: bool,
}

impl Teller<'_, '_> {
    /// Whether there is room for one more step; counts it if there is not.
    fn room(&mut self, matches: bool) -> bool {
        let most = if matches { 2 * MOST_STEPS } else { MOST_STEPS };
        let room = self.steps.len() < most;
        self.untold += u64::from(!room);
        room
    }

    /// Whether all its rules are of nft, whose tables translate where they have no chain as well.
    fn is_listed(&self) -> bool {
        self.files.iter().all(|file| file.listing.is_some())
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
        let may_have_logged = self.known.may_be(transit.family, at);
        self.opens = outcome.is_known() && self.known.hangs_on_past(self.files, at, transit);
        let outcome = if self.opens { Outcome::MAYBE } else { outcome };
        if outcome.may_match() && may_have_logged {
            self.met.push(at);
        }
        if outcome.may_match() && self.known.is_sure() {
            self.proofs.rule(self.known, self.files, at, outcome, transit);
        }
        let file = self.files.iter().find(|file| file.ruleset.family == transit.family);
        if file.is_some_and(|file| file.listing.is_some() && is_aside(file, at, outcome)) {
            return;
        }
        let room = self.room(outcome != Outcome::NO);
        let misses = self.misses.as_mut().filter(|_| outcome == Outcome::NO);
        if !room && misses.is_none() {
            return;
        }
        let is_shown = self.detail != Detail::End || may_have_logged;
        let refused = file.filter(|_| is_shown && outcome != Outcome::YES).and_then(|file| {
            let (table, _, rule) = file.rule(at);
            let tests = tests_of(transit.family, rule, transit);
            if let Some(misses) = misses {
                misses.add(at, (table, rule), &tests, transit);
            }
            refusing(tests, outcome)
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
        if self.proofs.of(at) == Proof::Nothing {
            self.counted.unknown(at, cause);
        }
    }

    fn proof(&mut self, at: RuleRef) -> Proof {
        let proof = self.proofs.of(at);
        // The rule is the last step.
        let step = self
            .steps
            .last_mut()
            .filter(|step| matches!(step, Step::Rule { at: told, .. } if *told == at));
        if let (Some(Step::Rule { outcome, alive, remarks, .. }), false) =
            (step, proof == Proof::Nothing)
        {
            *outcome = Outcome::YES;
            if proof == Proof::Came {
                *alive = Alive::Certain;
                remarks.push("it logged the packet".to_owned());
            } else {
                remarks.push("the rule that logged the packet asks the same".to_owned());
            }
        }
        if proof == Proof::Came {
            self.settled = true;
            self.counted.forget_causes();
        }
        proof
    }

    fn opens(&mut self, _at: RuleRef) -> bool {
        std::mem::take(&mut self.opens)
    }

    fn has_settled(&mut self) -> bool {
        std::mem::take(&mut self.settled)
    }
}

impl Observer for Teller<'_, '_> {
    fn starts(&mut self, family: Family, path: Path, input: Iface<'_>, output: Iface<'_>) {
        self.counted.starts(family, path, input, output);
        self.tell(Step::Starts { path, input: iface_text(input), output: iface_text(output) });
    }

    fn enters(&mut self, table: u32, chain: Option<u32>, hook: Hook) {
        self.proofs = Proofs::default();
        if chain.is_some() || !self.is_listed() {
            self.tell(Step::Enters { table, chain, hook });
        }
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

    fn follows_segments(&self) -> bool {
        // The story is that of what was captured.
        false
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

    fn leaves(&mut self, packet: &Packet<'_>) {
        let goes_out = self.steps.iter().rev().find_map(|step| match step {
            Step::Starts { path, .. } | Step::Rerouted { path, .. } => {
                Some(matches!(path, Path::Forward | Path::Output))
            }
            _ => None,
        });
        let from_itself = sender_is_receiver(packet).filter(|_| goes_out == Some(true));
        if let Some(address) = from_itself {
            self.tell(Step::Remark(format!(
                "source and destination are {address}: who has that address takes the packet for a forged one and \
                 drops it, unless its source is translated, too (MASQUERADE)"
            )));
        }
    }

    fn settled(&mut self, flow: KnownFlow<'_>) {
        self.past.settled(flow);
        if let KnownFlow::Flow(flow) = flow {
            self.tell(Step::Settled { state: state_of(flow) });
        }
    }
}

/// Whether a part of a rule has nothing to be told: it only counts, or the next part says more.
fn is_aside(file: &RulesFile, at: RuleRef, outcome: Outcome) -> bool {
    let (_, chain, rule) = file.rule(at);
    let only_counts = rule.listed.as_ref().is_some_and(|listed| listed.is_part);
    only_counts || outcome == Outcome::NO && chain.goes_on(at.rule as usize)
}

/// The text of the test for which a rule does not match, or may not: what says no for certain, if anything does; then what
/// remembers packets, as that is not asked twice.
fn refusing(tests: Vec<Test>, outcome: Outcome) -> Option<String> {
    let first = |is: fn(&Test) -> bool| tests.iter().position(is);
    let remembers = || first(|test| test.outcome.is_none());
    let no = || first(|test| test.outcome == Some(Outcome::NO)).or_else(remembers);
    let refused = if outcome == Outcome::NO { no() } else { None };
    let other = || first(|test| test.outcome.is_some_and(|outcome| outcome != Outcome::YES));
    let refused = refused.or_else(other).or_else(remembers)?;
    tests.into_iter().nth(refused).map(|test| test.text)
}

/// The address that a packet goes from and to, if that is one.
fn sender_is_receiver(packet: &Packet<'_>) -> Option<IpAddr> {
    let pair = |(from, to): (IpAddr, IpAddr)| (from == to).then_some(from);
    match packet.headers().l3 {
        L3::Ipv4 { .. } => {
            let addresses: [[u8; 4]; 2] = [packet.net(12).known()?, packet.net(16).known()?];
            pair((addresses[0].into(), addresses[1].into()))
        }
        L3::Ipv6 => {
            let addresses: [[u8; 16]; 2] = [packet.net(8).known()?, packet.net(24).known()?];
            pair((addresses[0].into(), addresses[1].into()))
        }
        _ => None,
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
