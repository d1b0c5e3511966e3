//! The observer of a replay: counts hits, verdicts and what unknown verdicts hang on.
//!
//! Contract: what several recorders counted adds up to what one would have counted of all packets.

use std::collections::HashMap;

use dataplane::{
    Counters, Disposition, DropReason, Early, Judgement, Left, Midstream, Observer, Path, Places,
    Skip, Why,
};
use host::sighting::Sighting;
use rules::conntrack::{CtView, States};
use rules::eval::{self, By, Cause, RuleRef};
use rules::model::Family;
use rules::{Iface, Seen, Transit};

use crate::contradictions::Contradictions;
use crate::report::{Count, DropReasons, Report, Sightings, Skipped, VerdictCounts};
use crate::rules_file::RulesFile;

/// Every path, in the order of [`Recorder::paths`].
const PATHS: [Path; 4] = [Path::Forward, Path::Input, Path::Output, Path::Loopback];

/// Counts a replay, packet by packet.
#[derive(Debug)]
pub(crate) struct Recorder {
    /// One for each rules file.
    counters: Vec<Counters>,
    /// What decided verdicts, for each rules file; hot drops apart.
    decided: Vec<Places<Count>>,
    hot_drops: HashMap<(Family, By), Count>,
    verdicts: VerdictCounts,
    drop_reasons: DropReasons,
    skipped: Skipped,
    offload: u64,
    midstream_flows: u64,
    midstream_packets: u64,
    /// Packets that a strict `rp_filter` would have dropped, where nobody said how it is.
    assumed_rp_filter: u64,
    early_flows: u64,
    early_packets: u64,
    contradictions: Contradictions,
    sightings: Sightings,
    families: Vec<Family>,
    /// Index of the rules file that judges the current packet.
    current: usize,
    /// What the current packet's verdict may hang on.
    causes: Vec<Why>,
    /// Unknown verdicts by what they hung on.
    unknown_because: HashMap<Why, u64>,
    /// Unknown verdicts that hung on an interface.
    lacked_interface: u64,
    /// Packets on each path.
    paths: [u64; PATHS.len()],
    /// Packets whose interfaces were not known.
    input_unknown: u64,
    output_unknown: u64,
    /// Whether to note the interfaces of each packet.
    notes_sides: bool,
    /// The interfaces that the current packet comes in and goes out by, where known.
    sides: [Option<String>; 2],
    /// The states that the current packet's connection may be in, where one is tracked.
    pub(crate) states: Option<States>,
}

impl Recorder {
    /// Nothing counted yet. `notes_sides` says whether the interfaces of each packet are wanted.
    pub(crate) fn new<'f>(
        files: impl IntoIterator<Item = &'f RulesFile, IntoIter: Clone>,
        notes_sides: bool,
    ) -> Self {
        let rulesets = files.into_iter().map(|file| &file.ruleset);
        Self {
            counters: rulesets.clone().map(Counters::of).collect(),
            decided: rulesets.clone().map(Places::of).collect(),
            hot_drops: HashMap::new(),
            verdicts: VerdictCounts::default(),
            drop_reasons: DropReasons::default(),
            skipped: Skipped::default(),
            offload: 0,
            midstream_flows: 0,
            midstream_packets: 0,
            assumed_rp_filter: 0,
            early_flows: 0,
            early_packets: 0,
            contradictions: Contradictions::default(),
            sightings: Sightings::default(),
            families: rulesets.map(|ruleset| ruleset.family).collect(),
            current: 0,
            causes: Vec::new(),
            unknown_because: HashMap::new(),
            lacked_interface: 0,
            paths: [0; PATHS.len()],
            input_unknown: 0,
            output_unknown: 0,
            notes_sides,
            sides: [None, None],
            states: None,
        }
    }

    /// Forgets the packet before.
    pub(crate) fn next_packet(&mut self) {
        self.causes.clear();
        self.states = None;
    }

    /// Counts what a frame is.
    pub(crate) fn sighted(&mut self, sighting: Sighting) {
        *self.sightings.of(sighting) += 1;
    }

    /// Holds what became of a packet to how it was seen leaving.
    pub(crate) fn compare(
        &mut self,
        number: u64,
        outcome: &dataplane::Outcome<'_>,
        seen: (Option<&Left<'_>>, bool),
    ) {
        self.contradictions.compare(number, outcome, seen);
    }

    /// The first thing that the verdict of the current packet may hang on.
    pub(crate) fn first_cause(&self) -> Option<Why> {
        self.causes.first().copied()
    }

    /// The interfaces of the current packet.
    pub(crate) fn take_sides(&mut self) -> [Option<String>; 2] {
        std::mem::take(&mut self.sides)
    }

    /// Takes in what became of the packet.
    pub(crate) fn ended(&mut self, end: &Disposition) {
        let slot = match end.judgement {
            Judgement::Accept(by) => {
                self.decided(end, by);
                &mut self.verdicts.accept
            }
            Judgement::Drop(reason) => {
                self.drop_reasons.count(reason);
                self.decided(end, by_of(reason));
                &mut self.verdicts.drop
            }
            Judgement::Reject(by) => {
                self.decided(end, Some(by));
                &mut self.verdicts.reject
            }
            Judgement::Unknown => {
                self.unknown();
                &mut self.verdicts.unknown
            }
            Judgement::Skip(skip) => {
                self.skipped.count(skip);
                &mut self.verdicts.skip
            }
        };
        slot.add(end.bytes);
        self.offload += u64::from(end.offload);
        self.midstream_flows += u64::from(end.midstream == Midstream::First);
        self.midstream_packets += u64::from(end.midstream != Midstream::No);
        self.assumed_rp_filter += u64::from(end.assumed.rp_filter);
        self.early_flows += u64::from(end.early == Early::First);
        self.early_packets += u64::from(end.early != Early::No);
    }

    fn unknown(&mut self) {
        let interface = |why: &Why| matches!(why, Why::Rule(_, _, Cause::Input | Cause::Output));
        self.lacked_interface += u64::from(self.causes.iter().any(interface));
        for why in self.causes.drain(..) {
            *self.unknown_because.entry(why).or_default() += 1;
        }
    }

    fn decided(&mut self, end: &Disposition, by: Option<By>) {
        let (Some(family), Some(by)) = (end.family, by) else { return };
        if let By::HotDrop(_) = by {
            return self.hot_drops.entry((family, by)).or_default().add(end.bytes);
        }
        // The rules that judged the packet are the current ones.
        if let Some(count) = self.decided.get_mut(self.current).and_then(|d| d.at_mut(by)) {
            count.add(end.bytes);
        }
    }

    /// Adds what another recorder counted.
    pub(crate) fn merge(&mut self, other: Self) {
        for (ours, theirs) in self.counters.iter_mut().zip(&other.counters) {
            ours.merge(theirs, dataplane::counters::Tally::add);
        }
        for (ours, theirs) in self.decided.iter_mut().zip(&other.decided) {
            ours.merge(theirs, Count::merge);
        }
        for (place, count) in &other.hot_drops {
            self.hot_drops.entry(*place).or_default().merge(count);
        }
        for (why, packets) in other.unknown_because {
            *self.unknown_because.entry(why).or_default() += packets;
        }
        for (ours, theirs) in self.paths.iter_mut().zip(other.paths) {
            *ours += theirs;
        }
        self.verdicts.merge(&other.verdicts);
        self.drop_reasons.merge(&other.drop_reasons);
        self.skipped.merge(&other.skipped);
        self.contradictions.merge(other.contradictions);
        self.sightings.merge(other.sightings);
        self.offload += other.offload;
        self.midstream_flows += other.midstream_flows;
        self.midstream_packets += other.midstream_packets;
        self.assumed_rp_filter += other.assumed_rp_filter;
        self.early_flows += other.early_flows;
        self.early_packets += other.early_packets;
        self.lacked_interface += other.lacked_interface;
        self.input_unknown += other.input_unknown;
        self.output_unknown += other.output_unknown;
    }

    /// The counters of the rules alone.
    pub(crate) fn into_counters(self) -> Vec<Counters> {
        self.counters
    }

    /// Says in the report what was counted.
    pub(crate) fn report(self, report: &mut Report<'_>) {
        let decided = self.families.iter().zip(&self.decided).flat_map(|(family, places)| {
            let counted = places.iter().filter(|(_, count)| count.packets > 0);
            counted.map(|(by, count)| ((*family, by), count))
        });
        report.decisions = decided.chain(self.hot_drops).collect();
        let paths = PATHS.into_iter().zip(self.paths);
        report.paths = paths.filter(|(_, packets)| *packets > 0).collect();
        report.counters = self.counters;
        report.verdicts = self.verdicts;
        report.drop_reasons = self.drop_reasons;
        report.skipped = self.skipped;
        report.contradictions = self.contradictions;
        report.sightings = self.sightings;
        report.offload = self.offload;
        report.midstream_flows = self.midstream_flows;
        report.midstream_packets = self.midstream_packets;
        report.assumed_rp_filter = self.assumed_rp_filter;
        report.early_flows = self.early_flows;
        report.early_packets = self.early_packets;
        report.unknown_because = self.unknown_because;
        report.lacked_interface = self.lacked_interface;
        report.input_unknown = self.input_unknown;
        report.output_unknown = self.output_unknown;
    }

    fn note_sides(&mut self, input: Iface<'_>, output: Iface<'_>) {
        if self.notes_sides {
            self.sides = [input, output].map(|side| match side {
                Iface::Named(name) => Some(name.to_owned()),
                Iface::Absent | Iface::Unknown => None,
            });
        }
    }

    fn cause(&mut self, why: Why) {
        if !self.causes.contains(&why) {
            self.causes.push(why);
        }
    }
}

impl eval::Observer for Recorder {
    const SEES_RULES: bool = false;

    #[inline]
    fn counted(&mut self, slot: u32, certain: bool, transit: &Transit<'_, '_>) {
        let bytes = transit.packet.len() as u64;
        self.counters[self.current].hit_slot(slot, certain, bytes, transit.time);
    }

    fn policy(&mut self, table: u32, chain: u32, certain: bool, transit: &Transit<'_, '_>) {
        let bytes = transit.packet.len() as u64;
        self.counters[self.current].hit_policy(table, chain, certain, bytes, transit.time);
    }

    fn unknown(&mut self, at: RuleRef, cause: Cause) {
        self.cause(Why::Rule(self.families[self.current], at, cause));
    }
}

impl Observer for Recorder {
    fn starts(&mut self, family: Family, path: Path, input: Iface<'_>, output: Iface<'_>) {
        self.current = self.families.iter().position(|f| *f == family).unwrap_or(0);
        self.paths[path as usize] += 1;
        self.input_unknown += u64::from(input == Iface::Unknown);
        self.output_unknown += u64::from(output == Iface::Unknown);
        self.note_sides(input, output);
    }

    fn rerouted(&mut self, from: Path, to: Path, input: Iface<'_>, output: Iface<'_>) {
        let before = &mut self.paths[from as usize];
        *before = before.saturating_sub(1);
        self.paths[to as usize] += 1;
        self.note_sides(input, output);
    }

    fn tracked(&mut self, view: &CtView, _: Seen<'_>) {
        self.states = Some(view.states);
    }

    fn hangs_on(&mut self, why: Why) {
        self.cause(why);
    }
}

fn by_of(reason: DropReason) -> Option<By> {
    match reason {
        DropReason::Rule(at) => Some(By::Rule(at)),
        DropReason::Policy { table, chain } => Some(By::Policy { table, chain }),
        DropReason::HotDrop(at) => Some(By::HotDrop(at)),
        DropReason::Stack(_)
        | DropReason::Route(_)
        | DropReason::Ttl
        | DropReason::TooBig
        | DropReason::Conntrack
        | DropReason::Reassembly
        | DropReason::Denied(_) => None,
    }
}

impl VerdictCounts {
    fn merge(&mut self, other: &Self) {
        self.accept.merge(&other.accept);
        self.drop.merge(&other.drop);
        self.reject.merge(&other.reject);
        self.unknown.merge(&other.unknown);
        self.skip.merge(&other.skip);
    }
}

impl DropReasons {
    fn count(&mut self, reason: DropReason) {
        match reason {
            DropReason::Rule(_) => self.rule += 1,
            DropReason::Policy { .. } => self.policy += 1,
            DropReason::HotDrop(_) => self.hotdrop += 1,
            DropReason::Stack(fault) => {
                self.stack += 1;
                *self.stack_faults.entry(fault).or_default() += 1;
            }
            DropReason::Route(why) => {
                self.route += 1;
                *self.route_refusals.entry(why).or_default() += 1;
            }
            DropReason::Ttl => self.ttl += 1,
            DropReason::TooBig => self.too_big += 1,
            DropReason::Conntrack => self.conntrack += 1,
            DropReason::Reassembly => self.reassembly += 1,
            DropReason::Denied(_) => self.denied += 1,
        }
    }

    fn merge(&mut self, other: &Self) {
        self.rule += other.rule;
        self.policy += other.policy;
        self.hotdrop += other.hotdrop;
        self.stack += other.stack;
        self.route += other.route;
        self.ttl += other.ttl;
        self.too_big += other.too_big;
        self.conntrack += other.conntrack;
        self.reassembly += other.reassembly;
        self.denied += other.denied;
        for (fault, packets) in &other.stack_faults {
            *self.stack_faults.entry(*fault).or_default() += packets;
        }
        for (why, packets) in &other.route_refusals {
            *self.route_refusals.entry(*why).or_default() += packets;
        }
    }
}

impl Skipped {
    fn count(&mut self, skip: Skip) {
        match skip {
            Skip::Family => self.family += 1,
            Skip::Second => self.second += 1,
            Skip::Lower => self.lower += 1,
            Skip::LinkType => self.link_type += 1,
            Skip::Fragment => self.fragment += 1,
            Skip::OtherHost => self.other_host += 1,
        }
    }

    fn merge(&mut self, other: &Self) {
        self.family += other.family;
        self.second += other.second;
        self.lower += other.lower;
        self.link_type += other.link_type;
        self.fragment += other.fragment;
        self.other_host += other.other_host;
    }
}

impl Sightings {
    fn of(&mut self, sighting: Sighting) -> &mut u64 {
        match sighting {
            Sighting::Unknown => &mut self.unknown,
            Sighting::Arrival => &mut self.arrival,
            Sighting::Own => &mut self.own,
            Sighting::Second { .. } => &mut self.second,
            Sighting::Lower { .. } => &mut self.lower,
            Sighting::OtherHost => &mut self.other_host,
        }
    }

    fn merge(&mut self, other: Self) {
        let Self { arrival, own, second, lower, other_host, unknown } = other;
        self.arrival += arrival;
        self.own += own;
        self.second += second;
        self.lower += lower;
        self.other_host += other_host;
        self.unknown += unknown;
    }
}
