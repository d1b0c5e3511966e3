//! [`Report`]: the numbers of a replay, and what is made of several of them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use dataplane::counters::HitCount;
use dataplane::{Config, Counters, Disposition, Either, Path, Why};
use host::Refused;
use packet::L3Fault;
use pktio::LinkType;
use rules::Class;
use rules::eval::By;
use rules::model::Family;

use super::counts::{Count, VerdictCounts};
use super::examples::{Examples, PathOf};
use super::known;
use super::timeline::Timeline;
use crate::alone::Alone;
use crate::changes::Changes;
use crate::contradictions::Contradictions;
use crate::decider::{Decider, UNRECORDED, foreign_text};
use crate::groups::Grouping;
use crate::list::Lists;
use crate::reach::Ends;
use crate::recorder::Maybes;
use crate::rules_file::RulesFile;
use crate::select::Selection;
use crate::source::{CaptureName, Numbers};
use crate::spec::Lack;

/// What one capture held.
#[derive(Debug, Clone)]
pub struct Capture {
    /// Its name, and the interface given with it.
    pub name: CaptureName,
    /// Packets and their bytes on the wire.
    pub count: Count,
    /// Earliest time, in nanoseconds since the Unix epoch.
    pub first: Option<u64>,
    /// Latest time.
    pub last: Option<u64>,
    /// Packets that its recorder lost, where it says so.
    pub dropped: Option<u64>,
}

impl Capture {
    /// One that nothing was read of.
    pub(crate) fn new(name: CaptureName) -> Self {
        Self { name, count: Count::default(), first: None, last: None, dropped: None }
    }

    /// More packets, with the times of the first and of the last of them.
    pub(crate) fn count(&mut self, more: &Count, [first, last]: [Option<u64>; 2]) {
        self.count.merge(more);
        self.first = self.first.or(first);
        self.last = last.or(self.last);
    }
}

/// Packets dropped, by the kind of reason.
#[derive(Debug, Clone, Default)]
pub struct DropReasons {
    /// By a rule.
    pub rule: u64,
    /// By a policy.
    pub policy: u64,
    /// By a match, on the spot.
    pub hotdrop: u64,
    /// By the stack, before any hook.
    pub stack: u64,
    /// The same, by fault.
    pub stack_faults: BTreeMap<L3Fault, u64>,
    /// By routing, after PREROUTING.
    pub route: u64,
    /// The same, by what refused them.
    pub route_refusals: BTreeMap<Refused, u64>,
    /// Time to live ran out.
    pub ttl: u64,
    /// Too big for the link that they would leave by.
    pub too_big: u64,
    /// By connection tracking.
    pub conntrack: u64,
    /// Fragments for the host that make no packet.
    pub reassembly: u64,
    /// By the access list.
    pub denied: u64,
    /// By one of several of these; which one is not known.
    pub either: u64,
}

/// Packets not evaluated, by reason.
#[derive(Debug, Clone, Default)]
pub struct Skipped {
    /// No rules for their family.
    pub family: u64,
    /// The same, by family; none for frames that no family of rules sees.
    pub families: BTreeMap<Option<Family>, u64>,
    /// Second sightings of packets.
    pub second: u64,
    /// Packets at devices below the one that shows them, too.
    pub lower: u64,
    /// Link type not known.
    pub link_type: u64,
    /// The same, by link type.
    pub link_types: BTreeMap<LinkType, u64>,
    /// Fragments that waited for others.
    pub fragment: u64,
    /// Frames addressed to another host.
    pub other_host: u64,
}

/// Frames by what they are.
#[derive(Debug, Clone, Copy, Default, serde::Serialize)]
pub struct Sightings {
    /// Packets as they came in.
    pub arrival: u64,
    /// Packets of the host's own.
    pub own: u64,
    /// Packets that other frames show.
    pub second: u64,
    /// Packets at devices below the one that shows them, too.
    pub lower: u64,
    /// Frames for other hosts.
    pub other_host: u64,
    /// Frames of which nothing tells what they are.
    pub unknown: u64,
}

/// One listed packet.
#[derive(Debug, Clone)]
pub struct Listed {
    /// Its number, from 1.
    pub frame: u64,
    /// Its time in nanoseconds since the Unix epoch.
    pub time: Option<u64>,
    /// Itself in one line.
    pub packet: String,
    /// Its result.
    pub disposition: Disposition,
    /// What decides so.
    pub by: Decider,
    /// Its result under the rules of `--vs`, and what decides so.
    pub new: Option<(Disposition, Decider)>,
}

/// What `--list` asks for.
#[derive(Debug, Clone)]
pub struct Listing {
    /// Which packets, and whether rules.
    pub lists: Lists,
    /// How many are shown at most.
    pub limit: usize,
    /// How many packets there are.
    pub found: u64,
}

/// What some verdicts depend on.
pub(crate) struct UnknownReason {
    /// Index of the rules file and line, if a rule's.
    pub(crate) place: Option<(usize, u32)>,
    /// In the words of the rule.
    pub(crate) what: String,
    /// How to make it known; none where nothing that tamis reads tells it.
    pub(crate) how: Option<String>,
    /// What of it a described packet lacks.
    pub(crate) lacks: Vec<Lack>,
    /// Packets.
    pub(crate) packets: u64,
}

/// How to make known what some verdicts depend on: each way once, in order.
pub(crate) fn ways<'r>(reasons: impl Iterator<Item = &'r UnknownReason>) -> Vec<String> {
    let mut ways: Vec<String> = Vec::new();
    for how in reasons.map(UnknownReason::how_text) {
        if !ways.contains(&how) {
            ways.push(how);
        }
    }
    ways
}

impl UnknownReason {
    /// How to make it known, in a line.
    fn how_text(&self) -> String {
        match &self.how {
            Some(how) => format!("to know it, {how}"),
            None => "nothing that tamis reads tells it".to_owned(),
        }
    }
}

/// Whether captures hold what they should.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Soundness {
    /// Each holds packets and ends where its format says.
    #[default]
    Whole,
    /// One holds no packets.
    Empty,
    /// One is damaged or cut off.
    Damaged,
}

/// The result of a replay. It owns what it shows.
#[derive(Debug)]
pub struct Report {
    /// The rules that evaluated the packets, one file for each family.
    pub files: Arc<[RulesFile]>,
    /// How packets were taken to walk.
    pub config: Arc<Config>,
    /// The captures, in order.
    pub captures: Vec<Capture>,
    /// How far packets depend on each other under these rules.
    pub class: Class,
    /// Where all of them do, why.
    pub class_because: Option<String>,
    /// Why one worker evaluated all packets where the class would have let several.
    pub one_worker: Option<Alone>,
    /// Packets in all.
    pub packets: u64,
    /// Packets by verdict.
    pub verdicts: VerdictCounts,
    /// Drops by reason.
    pub drop_reasons: DropReasons,
    /// Skips by reason.
    pub skipped: Skipped,
    /// Frames by what they are.
    pub sightings: Sightings,
    /// Packets of which the captures show something else.
    pub contradictions: Contradictions,
    /// Packets that were accepted, by what decided that.
    pub accepted_by: HashMap<(Family, By), Count>,
    /// Packets that were dropped or rejected, by what decided that.
    pub refused_by: HashMap<(Family, By), Count>,
    /// Packets by what may have decided their verdict, where one of several did.
    pub either: HashMap<(Family, Either), Count>,
    /// Counters of rules and policies, one set per rules file.
    pub counters: Vec<Counters>,
    /// Why rules may have been hit.
    pub(crate) maybes: Maybes,
    /// Off the end of which chains packets fell, one set per rules file.
    pub(crate) ends: Vec<Ends>,
    /// Unknown verdicts by what they depended on.
    pub unknown_because: HashMap<Why, u64>,
    /// Unknown verdicts that depended on an interface.
    pub lacked_interface: u64,
    /// Packets on each path.
    pub paths: HashMap<Path, u64>,
    /// Packets whose input interface was not known.
    pub input_unknown: u64,
    /// Packets whose output interface was not known.
    pub output_unknown: u64,
    /// Packets whose verdict is another under the rules of `--vs`.
    pub changes: Option<Changes>,
    /// Which packets of the captures were evaluated.
    pub selection: Selection,
    /// Packets read, those that the selection left out included.
    pub frames: u64,
    /// The replay was stopped before the captures ended.
    pub interrupted: bool,
    /// Whether the captures hold what they should.
    pub soundness: Soundness,
    /// Packets that were asked for by `--list`.
    pub listed: Vec<Listed>,
    /// What was asked for by it, or is grouped.
    pub listing: Option<Listing>,
    /// Packets in groups, of each kind that was asked for.
    pub groups: Vec<Grouping>,
    /// Rows of each table of the text, if somebody says how many.
    pub rows: Option<usize>,
    /// Verdicts over time, if the page was wanted.
    pub timeline: Option<Timeline>,
    /// Packets of every kind of end, if the page was wanted.
    pub examples: Examples,
    /// What happened to those packets, by their numbers; what cannot be read twice leaves it out.
    pub(crate) paths_of: HashMap<u64, PathOf>,
    /// IPv4 packets whose total length was left to the network card.
    pub offload: u64,
    /// Packets of IPv6 that kernels take differently: their last extension header claims more bytes than there are.
    pub overrun: u64,
    /// Connections taken for established because their beginning was not captured.
    pub midstream_flows: u64,
    /// Packets of those connections.
    pub midstream_packets: u64,
    /// Packets that a strict `rp_filter` would have dropped, where it is not given.
    pub assumed_rp_filter: u64,
    /// Connections, not all of which was captured, with a verdict that depends on what their packets were taken for.
    pub early_flows: u64,
    /// Packets with such a verdict.
    pub early_packets: u64,
    /// Packets whose connection may have been evicted from a full table, or may have found no room in it.
    pub squeezed_packets: u64,
    /// Packets whose time was before an earlier one's.
    pub time_went_back: u64,
    /// Times that a frame was older than the one before it in its capture: those were put in order.
    pub backwards: u64,
    /// Captures follow each other by time, which is another order than theirs.
    pub by_time: bool,
    /// How frame numbers are printed.
    pub numbers: Numbers,
    /// What was odd about the captures.
    pub warnings: Vec<String>,
    /// Links of the host by which packets may have passed that no capture shows.
    pub unrecorded: Vec<String>,
    /// Frames are as taps saw them: packets that OUTPUT dropped are not among them.
    pub(crate) is_tapped: bool,
    /// Wall time in seconds.
    pub elapsed_s: f64,
    /// What the words of a described packet do not give.
    pub(crate) lacks: Vec<Lack>,
    /// Options to be typed again beside those that rules and configuration tell, each with a blank before it.
    pub also: String,
}

impl Report {
    pub(crate) fn new(files: Arc<[RulesFile]>, config: Arc<Config>) -> Self {
        Self {
            files,
            config,
            captures: Vec::new(),
            class: Class::Pure,
            class_because: None,
            one_worker: None,
            packets: 0,
            verdicts: VerdictCounts::default(),
            drop_reasons: DropReasons::default(),
            skipped: Skipped::default(),
            sightings: Sightings::default(),
            contradictions: Contradictions::default(),
            accepted_by: HashMap::new(),
            refused_by: HashMap::new(),
            either: HashMap::new(),
            counters: Vec::new(),
            maybes: Maybes::default(),
            ends: Vec::new(),
            unknown_because: HashMap::new(),
            lacked_interface: 0,
            paths: HashMap::new(),
            input_unknown: 0,
            output_unknown: 0,
            changes: None,
            selection: Selection::default(),
            frames: 0,
            interrupted: false,
            soundness: Soundness::Whole,
            listed: Vec::new(),
            listing: None,
            groups: Vec::new(),
            rows: None,
            timeline: None,
            examples: Examples::default(),
            paths_of: HashMap::new(),
            offload: 0,
            overrun: 0,
            midstream_flows: 0,
            midstream_packets: 0,
            assumed_rp_filter: 0,
            early_flows: 0,
            early_packets: 0,
            squeezed_packets: 0,
            time_went_back: 0,
            backwards: 0,
            by_time: false,
            numbers: Numbers::default(),
            warnings: Vec::new(),
            unrecorded: Vec::new(),
            is_tapped: false,
            elapsed_s: 0.0,
            lacks: Vec::new(),
            also: String::new(),
        }
    }

    /// Packets that went on and were not seen to, where the captures show packets leaving.
    #[must_use]
    pub fn unseen(&self) -> Option<u64> {
        let shows_leaving = self.config.pair && self.sightings.second > 0;
        Some(self.contradictions.unseen).filter(|unseen| shows_leaving && *unseen > 0)
    }

    /// Why one worker evaluated all packets: the rules ask for it, or the packets did.
    #[must_use]
    pub fn one_worker(&self) -> Option<&str> {
        self.class_because.as_deref().or(self.one_worker.map(Alone::text))
    }

    /// Packets per second of wall time.
    #[must_use]
    pub fn packets_per_s(&self) -> f64 {
        if self.elapsed_s > 0.0 { self.packets as f64 / self.elapsed_s } else { 0.0 }
    }

    /// Reasons of unknown verdicts, most packets first: line if a rule's, words, packets.
    #[must_use]
    pub fn unknown_reasons(&self) -> Vec<(Option<u32>, String, u64)> {
        let reasons = self.unknown_places().into_iter();
        reasons
            .map(|UnknownReason { place, what, packets, .. }| (place.map(|p| p.1), what, packets))
            .collect()
    }

    /// The same, with the index of the rules file beside the line.
    pub(crate) fn unknown_places(&self) -> Vec<UnknownReason> {
        let mut by_text = BTreeMap::new();
        for (why, packets) in &self.unknown_because {
            let (place, text) = self.why_text(why);
            let file = place.map(|(index, _)| &self.files[index]);
            let how = || {
                let lacks = known::lacking(why, file, &self.lacks);
                (known::to_give(&lacks).or_else(|| known::how(why, file)), lacks)
            };
            by_text.entry((place, text)).or_insert_with(|| (how(), 0_u64)).1 += packets;
        }
        let mut reasons: Vec<_> = by_text
            .into_iter()
            .map(|((place, what), ((how, lacks), packets))| UnknownReason {
                place,
                what,
                how,
                lacks,
                packets,
            })
            .collect();
        reasons.sort_by_key(|reason| std::cmp::Reverse(reason.packets));
        reasons
    }

    /// What something depends on: the index of the rules file and the line, if a rule's, and words.
    pub(super) fn why_text(&self, why: &Why) -> (Option<(usize, u32)>, String) {
        let text = match why {
            Why::NotCaptured => "header not captured".to_owned(),
            Why::Fragment => "a fragment, which connection tracking reassembles".to_owned(),
            Why::Translation => "a translation that is not known".to_owned(),
            Why::Room => "room in the table of connections (--ct-max)".to_owned(),
            Why::Tracker => "the kernel's tracker for DCCP (--kernel)".to_owned(),
            Why::Way => "whether it is for the host or goes on (--local)".to_owned(),
            Why::Unrecorded => UNRECORDED.to_owned(),
            Why::Host(missing) => format!("where it goes: {}", missing.name()),
            Why::Size => "the size of the segments of a superframe".to_owned(),
            Why::Foreign(chain) => foreign_text(&self.config.host, *chain),
            Why::Rule(family, at, cause) => match self.file_index(*family) {
                Some(index) => {
                    let file = &self.files[index];
                    let place = Some((index, file.rule(*at).2.line));
                    return (place, file.cause_text(*at, *cause));
                }
                None => "a rule".to_owned(),
            },
        };
        (None, text)
    }

    /// What decided most often, of these decisions of the report.
    #[must_use]
    pub fn top<'r>(
        &'r self,
        decisions: &HashMap<(Family, By), Count>,
    ) -> Vec<(&'r RulesFile, By, Count, HitCount)> {
        let mut top: Vec<_> = decisions
            .iter()
            .filter_map(|((family, by), count)| {
                let index = self.file_index(*family)?;
                Some((&self.files[index], *by, *count, self.tally(index, *by)))
            })
            .collect();
        top.sort_by_key(|(file, by, count, _)| {
            let index = self.file_index(file.ruleset.family);
            (std::cmp::Reverse(count.packets), file.by_line(*by), *by, index)
        });
        top
    }

    /// The tally of what decided.
    fn tally(&self, file: usize, by: By) -> HitCount {
        match by {
            By::Rule(at) | By::HotDrop(at) => self.counters[file].rule(at),
            By::Policy { table, chain } => self.counters[file].policy(table, chain),
        }
    }

    /// The rules file of a family.
    #[must_use]
    pub fn file(&self, family: Family) -> Option<&RulesFile> {
        self.files.iter().find(|file| file.ruleset.family == family)
    }

    /// The index of the rules file of a family.
    pub(crate) fn file_index(&self, family: Family) -> Option<usize> {
        self.files.iter().position(|file| file.ruleset.family == family)
    }
}
