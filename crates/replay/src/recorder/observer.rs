//! [`Recorder`]: the counts of a lane, and the observer of one packet ([`OnePacket`]) that adds to them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use conntrack::{CtView, Space, States};
use dataplane::{
    Counters, Disposition, DropReason, Early, Either, FinalVerdict, Left, Midstream, Observer,
    Path, Places, Skip, Why,
};
use host::sighting::Sighting;
use pktio::LinkType;
use rules::eval::{self, By, Cause, RuleRef};
use rules::model::Family;
use rules::{Iface, KnownFlow, Transit};

use super::calls::Calls;
use super::maybes::{MaybeHit, Maybes};
use super::runs::Runs;
use crate::contradictions::Contradictions;
use crate::decider::Decider;
use crate::distinct::Distinct;
use crate::groups::CallPath;
use crate::reach::{Ends, Reach};
use crate::report::{Count, DropReasons, Report, Sightings, Skipped, VerdictCounts};
use crate::rules_file::RulesFile;

/// Every path, in the order of [`Recorder::paths`].
const PATHS: [Path; 4] = [Path::Forward, Path::Input, Path::Output, Path::Loopback];

/// Counts a replay, packet by packet.
#[derive(Debug)]
pub(crate) struct Recorder {
    /// Counters of each rules file.
    pub(super) counters: Vec<Counters>,
    pub(super) maybes: Maybes,
    pub(super) ends: Vec<Ends>,
    /// What accepted packets, for each rules file.
    pub(super) accepted: Vec<Places<Count>>,
    /// What dropped or rejected them; hot drops apart.
    pub(super) refused: Vec<Places<Count>>,
    pub(super) hot_drops: HashMap<(Family, By), Count>,
    /// Verdicts that one of several decided.
    pub(super) either: Runs<(Family, Either)>,
    pub(super) verdicts: VerdictCounts,
    pub(super) drop_reasons: DropReasons,
    pub(super) skipped: Skipped,
    pub(super) offload: u64,
    pub(super) overrun: u64,
    pub(super) midstream_flows: u64,
    pub(super) midstream_packets: u64,
    /// Packets that a strict `rp_filter` would have dropped, where it is not given.
    pub(super) assumed_rp_filter: u64,
    pub(super) early_flows: u64,
    pub(super) early_packets: u64,
    pub(super) squeezed_packets: u64,
    pub(super) contradictions: Contradictions,
    pub(super) sightings: Sightings,
    pub(super) families: Vec<Family>,
    /// What the current packet's verdict may depend on, and unknown verdicts by what they did depend on.
    pub(super) causes: Distinct<Why>,
    /// Unknown verdicts that depended on an interface.
    pub(super) lacked_interface: u64,
    /// Packets on each path.
    pub(super) paths: [u64; PATHS.len()],
    /// Packets whose interfaces were not known.
    pub(super) input_unknown: u64,
    pub(super) output_unknown: u64,
    /// Whether to note the interfaces of each packet.
    pub(super) notes_sides: bool,
    /// The hits of the current packet, if it is wanted by which jumps packets came to where they end.
    pub(super) calls: Option<Calls>,
    /// What is noted of the current packet.
    pub(super) noted: Noted,
    pub(super) stop: Option<Arc<AtomicBool>>,
}

/// What is noted of one packet.
#[derive(Debug, Default)]
pub(super) struct Noted {
    /// Index of the rules file that evaluates it.
    file: usize,
    /// The number of the packet in its capture.
    number: u64,
    /// What leaves open whether a rule that only counts was hit, and the number of the packet that this is of.
    open: Option<(u64, usize, RuleRef, Cause)>,
    /// The interfaces that it comes in and goes out by, where known and wanted.
    sides: [Option<String>; 2],
    states: Option<States>,
}

/// The observer of one packet: counts it when it is finished.
#[derive(Debug)]
#[must_use = "a packet counts once it is finished"]
pub(crate) struct OnePacket<'r>(&'r mut Recorder);

/// A packet that was counted, and what was noted of it.
pub(crate) struct Finished<'r>(&'r mut Recorder);

impl Recorder {
    /// Starts with nothing counted. `notes_sides` says whether the interfaces of each packet are wanted.
    pub(crate) fn new<'f>(
        files: impl IntoIterator<Item = &'f RulesFile, IntoIter: Clone>,
        notes_sides: bool,
    ) -> Self {
        let rulesets = files.into_iter().map(|file| &*file.ruleset);
        Self {
            counters: rulesets.clone().map(Counters::of).collect(),
            maybes: Maybes::default(),
            ends: rulesets.clone().map(Ends::of).collect(),
            accepted: rulesets.clone().map(Places::of).collect(),
            refused: rulesets.clone().map(Places::of).collect(),
            hot_drops: HashMap::new(),
            either: Runs::default(),
            verdicts: VerdictCounts::default(),
            drop_reasons: DropReasons::default(),
            skipped: Skipped::default(),
            offload: 0,
            overrun: 0,
            midstream_flows: 0,
            midstream_packets: 0,
            assumed_rp_filter: 0,
            early_flows: 0,
            early_packets: 0,
            squeezed_packets: 0,
            contradictions: Contradictions::default(),
            sightings: Sightings::default(),
            families: rulesets.map(|ruleset| ruleset.family).collect(),
            causes: Distinct::default(),
            lacked_interface: 0,
            paths: [0; PATHS.len()],
            input_unknown: 0,
            output_unknown: 0,
            notes_sides,
            calls: None,
            noted: Noted::default(),
            stop: None,
        }
    }

    /// Gives walks up that are too long to end soon, once this is true.
    pub(crate) fn stopped_by(mut self, stop: Option<Arc<AtomicBool>>) -> Self {
        self.stop = stop;
        self
    }

    /// Notes by which jumps of these rules packets came to where they end.
    pub(crate) fn noting_calls(mut self, files: Option<&[RulesFile]>) -> Self {
        let rulesets =
            |files: &[RulesFile]| Calls::of(files.iter().map(|file| Arc::clone(&file.ruleset)));
        self.calls = files.map(rulesets);
        self
    }

    /// Observes the next packet, which has this number.
    #[inline]
    pub(crate) fn packet(&mut self, number: u64) -> OnePacket<'_> {
        self.causes.clear();
        self.noted.states = None;
        self.noted.number = number;
        if let Some(calls) = &mut self.calls {
            calls.clear();
        }
        OnePacket(self)
    }

    /// Counts what a frame is.
    #[inline]
    pub(crate) fn sighted(&mut self, sighting: Sighting) {
        *self.sightings.of(sighting) += 1;
    }

    /// Counts a frame whose link type nothing here reads.
    pub(crate) fn unreadable(&mut self, link_type: LinkType) {
        *self.skipped.link_types.entry(link_type).or_default() += 1;
    }

    /// The counters of these rules alone, and which of the rules were reached.
    pub(crate) fn into_counters(self, files: &[RulesFile]) -> Vec<(Counters, Reach)> {
        let Self { counters, ends, hot_drops, causes, .. } = self;
        let unknown: Vec<Why> = causes.counted().map(|(why, _)| why).collect();
        let counted = files.iter().zip(counters.into_iter().zip(ends));
        let counted = counted.map(|(file, (counters, ends))| {
            let (hot_drops, unknown) = (hot_drops.keys().copied(), unknown.iter().copied());
            let reach = Reach::new(file, &counters, &ends, hot_drops, unknown);
            (counters, reach)
        });
        counted.collect()
    }

    /// Says in the report what was counted.
    pub(crate) fn report(self, report: &mut Report) {
        let counted = |places| decisions(&self.families, places);
        report.accepted_by = counted(&self.accepted).collect();
        report.refused_by = counted(&self.refused).chain(self.hot_drops).collect();
        report.either = self.either.counts();
        let paths = PATHS.into_iter().zip(self.paths);
        report.paths = paths.filter(|(_, packets)| *packets > 0).collect();
        report.counters = self.counters;
        report.maybes = self.maybes;
        report.ends = self.ends;
        report.verdicts = self.verdicts;
        report.drop_reasons = self.drop_reasons;
        report.skipped = self.skipped;
        report.contradictions = self.contradictions;
        report.sightings = self.sightings;
        report.offload = self.offload;
        report.overrun = self.overrun;
        report.midstream_flows = self.midstream_flows;
        report.midstream_packets = self.midstream_packets;
        report.assumed_rp_filter = self.assumed_rp_filter;
        report.early_flows = self.early_flows;
        report.early_packets = self.early_packets;
        report.squeezed_packets = self.squeezed_packets;
        report.unknown_because = self.causes.counted().collect();
        report.lacked_interface = self.lacked_interface;
        report.input_unknown = self.input_unknown;
        report.output_unknown = self.output_unknown;
    }
}

impl<'r> OnePacket<'r> {
    /// Holds its result to how it was seen leaving.
    pub(crate) fn compare(
        &mut self,
        number: u64,
        outcome: &dataplane::Outcome<'_>,
        left: Option<&Left<'_>>,
        is_own: bool,
    ) {
        self.0.contradictions.compare(number, outcome, left, is_own);
    }

    /// Counts the packet, with its result.
    #[inline]
    pub(crate) fn finish(self, end: &Disposition) -> Finished<'r> {
        self.0.count(end);
        Finished(self.0)
    }
}

impl Finished<'_> {
    /// What decided about the packet, whose result this is.
    pub(crate) fn by(&self, end: &Disposition) -> Decider {
        Decider::of(end, self.0.causes.iter().next().copied())
    }

    /// The jumps by which the packet came to what decided about it, if they are noted.
    pub(crate) fn path(&self, by: Decider) -> Option<CallPath> {
        let calls = self.0.calls.as_ref()?;
        let (family, by) = by.rules()?;
        let file = self.0.families.iter().position(|one| *one == family)?;
        Some(calls.path(file, by))
    }

    /// The interfaces that it comes in and goes out by, where known and wanted.
    pub(crate) fn take_sides(&mut self) -> [Option<String>; 2] {
        std::mem::take(&mut self.0.noted.sides)
    }

    /// The states that its connection may be in, where one is tracked.
    pub(crate) fn states(&self) -> Option<States> {
        self.0.noted.states
    }
}

impl Recorder {
    #[inline]
    fn count(&mut self, end: &Disposition) {
        let is_unusual = end.offload
            | end.overrun
            | end.assumed.rp_filter
            | (end.midstream != Midstream::No)
            | (end.early != Early::No);
        if is_unusual {
            self.count_unusual(end);
        }
        let (count, by) = match end.verdict {
            FinalVerdict::Accept(by) => (&mut self.verdicts.accept, by),
            FinalVerdict::Drop(reason) => {
                match end.either {
                    Some(_) => self.drop_reasons.either += 1,
                    None => self.drop_reasons.count(reason),
                }
                (&mut self.verdicts.drop, by_of(reason))
            }
            FinalVerdict::Reject(by) => (&mut self.verdicts.reject, Some(by)),
            FinalVerdict::Unknown => {
                self.verdicts.unknown.add(end.bytes);
                return self.unknown();
            }
            FinalVerdict::Skip(skip) => {
                self.verdicts.skip.add(end.bytes);
                return self.skipped.count(skip, end.family);
            }
        };
        count.add(end.bytes);
        match end.either {
            None => self.decided(end, by),
            Some(either) => self.decided_by_either(end, either),
        }
    }

    /// Counts what holds of few packets.
    fn count_unusual(&mut self, end: &Disposition) {
        self.offload += u64::from(end.offload);
        self.overrun += u64::from(end.overrun);
        self.midstream_flows += u64::from(end.midstream == Midstream::First);
        self.midstream_packets += u64::from(end.midstream != Midstream::No);
        self.assumed_rp_filter += u64::from(end.assumed.rp_filter);
        self.early_flows += u64::from(end.early == Early::First);
        self.early_packets += u64::from(end.early != Early::No);
    }

    fn unknown(&mut self) {
        let interface = |why: &Why| matches!(why, Why::Rule(_, _, Cause::Input | Cause::Output));
        self.lacked_interface += u64::from(self.causes.iter().any(interface));
        self.causes.count();
    }

    #[inline]
    fn decided(&mut self, end: &Disposition, by: Option<By>) {
        let (Some(family), Some(by)) = (end.family, by) else { return };
        if let By::HotDrop(_) = by {
            return self.hot_drops.entry((family, by)).or_default().add(end.bytes);
        }
        // The rules that evaluated the packet are the current ones.
        let decided = match end.verdict {
            FinalVerdict::Accept(_) => &mut self.accepted,
            _ => &mut self.refused,
        };
        if let Some(count) = decided.get_mut(self.noted.file).and_then(|places| places.at_mut(by)) {
            count.add(end.bytes);
        }
    }

    fn decided_by_either(&mut self, end: &Disposition, either: Either) {
        if let Some(family) = end.family {
            self.either.add((family, either), end.bytes);
        }
    }

    /// Counts a packet that may have hit the rule of a slot, and notes why if it is the first.
    #[cold]
    fn may_hit(&mut self, file: usize, slot: u32) {
        self.counters[file].hit_slot(slot, false, 0, None);
        let number = self.noted.number;
        if self.maybes.lacks((file, slot), number) {
            // What came first leaves it open, or the rule itself, where it only counts.
            let own = self.noted.open.filter(|(of, ..)| *of == number);
            let own = own.map(|(_, file, at, cause)| Why::Rule(self.families[file], at, cause));
            let why = self.causes.iter().next().copied().or(own);
            self.maybes.add((file, slot), MaybeHit { number, why });
        }
    }

    #[inline]
    fn note_sides(&mut self, input: Iface<'_>, output: Iface<'_>) {
        if self.notes_sides {
            self.noted.sides = [input, output].map(|side| match side {
                Iface::Named(name) => Some(name.to_owned()),
                Iface::Absent | Iface::Unknown => None,
            });
        }
    }
}

impl OnePacket<'_> {
    /// What its verdict may have depended on so far is known after all.
    pub(crate) fn forget_causes(&mut self) {
        self.0.causes.clear();
    }
}

/// What decided about packets, and about how many.
fn decisions<'r>(
    families: &'r [Family],
    decided: &'r [Places<Count>],
) -> impl Iterator<Item = ((Family, By), Count)> {
    families.iter().zip(decided).flat_map(|(family, places)| {
        let counted = places.iter().filter(|(_, count)| count.packets > 0);
        counted.map(|(by, count)| ((*family, by), count))
    })
}

impl eval::Observer for OnePacket<'_> {
    const SEES_RULES: bool = false;

    #[inline]
    fn counted(&mut self, slot: u32, certain: bool, transit: &Transit<'_, '_>) {
        let bytes = transit.packet.len() as u64;
        let file = self.0.noted.file;
        match certain {
            true => self.0.counters[file].hit_slot(slot, true, bytes, transit.time),
            false => self.0.may_hit(file, slot),
        }
        if let Some(calls) = &mut self.0.calls {
            calls.hit(file, slot, certain);
        }
    }

    #[inline]
    fn policy(&mut self, table: u32, chain: u32, certain: bool, transit: &Transit<'_, '_>) {
        let bytes = transit.packet.len() as u64;
        self.0.counters[self.0.noted.file].hit_policy(table, chain, certain, bytes, transit.time);
    }

    #[inline]
    fn off_end(&mut self, table: u32, chain: u32, certain: bool) {
        self.0.ends[self.0.noted.file].note(table, chain, certain);
    }

    fn unknown(&mut self, at: RuleRef, cause: Cause) {
        self.0.causes.add(Why::Rule(self.0.families[self.0.noted.file], at, cause));
    }

    #[cold]
    fn may_count(&mut self, at: RuleRef, cause: Cause) {
        let Noted { number, file, .. } = self.0.noted;
        self.0.noted.open = Some((number, file, at, cause));
    }

    fn stops(&self) -> bool {
        self.0.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed))
    }
}

impl Observer for OnePacket<'_> {
    #[inline]
    fn starts(&mut self, family: Family, path: Path, input: Iface<'_>, output: Iface<'_>) {
        self.0.noted.file = self.0.families.iter().position(|f| *f == family).unwrap_or(0);
        self.0.paths[path as usize] += 1;
        self.0.input_unknown += u64::from(input == Iface::Unknown);
        self.0.output_unknown += u64::from(output == Iface::Unknown);
        self.0.note_sides(input, output);
    }

    fn rerouted(&mut self, from: Path, to: Path, input: Iface<'_>, output: Iface<'_>) {
        let before = &mut self.0.paths[from as usize];
        *before = before.saturating_sub(1);
        self.0.paths[to as usize] += 1;
        self.0.note_sides(input, output);
    }

    fn tracked(&mut self, view: &CtView, _: KnownFlow<'_>) {
        self.0.noted.states = Some(view.states);
        self.0.squeezed_packets += u64::from(view.space != Space::Enough);
    }

    fn depends_on(&mut self, why: Why) {
        self.0.causes.add(why);
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
        | DropReason::Denied(_)
        | DropReason::Foreign(_) => None,
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
            // It only ever may have.
            DropReason::Foreign(_) => {}
        }
    }
}

impl Skipped {
    fn count(&mut self, skip: Skip, family: Option<Family>) {
        match skip {
            Skip::Family => {
                self.family += 1;
                *self.families.entry(family).or_default() += 1;
            }
            Skip::Second => self.second += 1,
            Skip::Lower => self.lower += 1,
            Skip::LinkType => self.link_type += 1,
            Skip::Fragment => self.fragment += 1,
            Skip::OtherHost => self.other_host += 1,
        }
    }
}

impl Sightings {
    #[inline]
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
}
