//! The observer of a replay: counts hits and gathers what unknown verdicts hang on.

use std::collections::HashMap;

use dataplane::{Counters, Disposition, Judgement, Observer, Path, Why};
use rules::conntrack::{CtView, States};
use rules::eval::{self, Cause, RuleRef};
use rules::model::Family;
use rules::{Iface, Seen, Transit};

use crate::rules_file::RulesFile;

/// Counts a replay, packet by packet.
#[derive(Debug)]
pub(crate) struct Recorder {
    /// One for each rules file.
    pub(crate) counters: Vec<Counters>,
    families: Vec<Family>,
    /// Index of the rules file that judges the current packet.
    current: usize,
    /// What the current packet's verdict may hang on.
    causes: Vec<Why>,
    /// Unknown verdicts by what they hung on.
    pub(crate) unknown_because: HashMap<Why, u64>,
    /// Unknown verdicts that hung on an interface.
    pub(crate) lacked_interface: u64,
    /// Packets on each path.
    pub(crate) paths: HashMap<Path, u64>,
    /// Packets whose interfaces were not known.
    pub(crate) input_unknown: u64,
    pub(crate) output_unknown: u64,
    /// Whether to note the interfaces of each packet.
    pub(crate) notes_sides: bool,
    /// The interfaces that the current packet comes in and goes out by, where known.
    pub(crate) sides: [Option<String>; 2],
    /// The states that the current packet's connection may be in, where one is tracked.
    pub(crate) states: Option<States>,
}

impl Recorder {
    pub(crate) fn new<'f>(files: impl IntoIterator<Item = &'f RulesFile>) -> Self {
        let (counters, families) = files
            .into_iter()
            .map(|file| (Counters::of(&file.ruleset), file.ruleset.family))
            .unzip();
        Self {
            counters,
            families,
            current: 0,
            causes: Vec::new(),
            unknown_because: HashMap::new(),
            lacked_interface: 0,
            paths: HashMap::new(),
            input_unknown: 0,
            output_unknown: 0,
            notes_sides: false,
            sides: [None, None],
            states: None,
        }
    }

    /// Forgets the packet before.
    pub(crate) fn next_packet(&mut self) {
        self.causes.clear();
        self.states = None;
        if self.notes_sides {
            self.sides = [None, None];
        }
    }

    /// The first thing that the verdict of the current packet may hang on.
    pub(crate) fn first_cause(&self) -> Option<Why> {
        self.causes.first().copied()
    }

    /// Takes in what became of the packet.
    pub(crate) fn ended(&mut self, disposition: &Disposition) {
        if disposition.judgement != Judgement::Unknown {
            return;
        }
        let interface = |why: &Why| matches!(why, Why::Rule(_, _, Cause::Input | Cause::Output));
        self.lacked_interface += u64::from(self.causes.iter().any(interface));
        for why in self.causes.drain(..) {
            *self.unknown_because.entry(why).or_default() += 1;
        }
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
    fn hit(&mut self, at: RuleRef, certain: bool, transit: &Transit<'_, '_>) {
        let bytes = transit.packet.len() as u64;
        self.counters[self.current].hit_rule(at, certain, bytes, transit.time);
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
        *self.paths.entry(path).or_default() += 1;
        self.input_unknown += u64::from(input == Iface::Unknown);
        self.output_unknown += u64::from(output == Iface::Unknown);
        self.note_sides(input, output);
    }

    fn rerouted(&mut self, from: Path, to: Path, input: Iface<'_>, output: Iface<'_>) {
        if let Some(packets) = self.paths.get_mut(&from) {
            *packets = packets.saturating_sub(1);
        }
        self.paths.retain(|_, packets| *packets > 0);
        *self.paths.entry(to).or_default() += 1;
        self.note_sides(input, output);
    }

    fn tracked(&mut self, view: &CtView, _: Seen<'_>) {
        self.states = Some(view.states);
    }

    fn hangs_on(&mut self, why: Why) {
        self.cause(why);
    }
}
