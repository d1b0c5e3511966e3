//! Every layout against the reference walk: the same verdicts, counters, path and unknowns, as laid out at
//! once and as reached by changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use rules::eval::{Alive, Cause, Memories, Observer, RuleRef, Verdicts, walk};
use rules::ext::{Effect, Printer, Support, Target, TargetUse};
use rules::model::{self, Family, Ruleset};
use rules::save::{LoadOptions, load};
use rules::{Outcome, Transit};

use super::layouts::{Kind, Laid, Layout};
use super::made::{Action, Packet, Ports, Rule, Table, ipv4, long_tables, packets, tables};
use super::sound::{Unknown, at_hook, ruleset, runner, unknowns};

/// All that a walk shows.
#[derive(Debug, Default, PartialEq)]
struct Path(Vec<Event>);

#[derive(Debug, PartialEq)]
enum Event {
    Rule(RuleRef, Outcome, Alive),
    Asked(RuleRef, usize, Outcome),
    Hit(RuleRef, bool),
    Counted(u32, bool),
    Policy(u32, u32, bool),
    OffEnd(u32, u32, bool),
    Unknown(RuleRef, Cause),
}

impl Observer for Path {
    fn rule(&mut self, at: RuleRef, outcome: Outcome, alive: Alive, _: &Transit<'_, '_>) {
        self.0.push(Event::Rule(at, outcome, alive));
    }

    fn asked(&mut self, at: RuleRef, index: usize, outcome: Outcome) {
        self.0.push(Event::Asked(at, index, outcome));
    }

    fn hit(&mut self, at: RuleRef, certain: bool, _: &Transit<'_, '_>) {
        self.0.push(Event::Hit(at, certain));
    }

    fn counted(&mut self, slot: u32, certain: bool, _: &Transit<'_, '_>) {
        self.0.push(Event::Counted(slot, certain));
    }

    fn policy(&mut self, table: u32, chain: u32, certain: bool, _: &Transit<'_, '_>) {
        self.0.push(Event::Policy(table, chain, certain));
    }

    fn off_end(&mut self, table: u32, chain: u32, certain: bool) {
        self.0.push(Event::OffEnd(table, chain, certain));
    }

    fn unknown(&mut self, at: RuleRef, cause: Cause) {
        self.0.push(Event::Unknown(at, cause));
    }
}

/// What a walk shows to those who see no rules, who are walked past most of them.
#[derive(Debug, Default, PartialEq)]
struct Counts(Vec<Event>);

impl Observer for Counts {
    const SEES_RULES: bool = false;

    fn counted(&mut self, slot: u32, certain: bool, _: &Transit<'_, '_>) {
        self.0.push(Event::Counted(slot, certain));
    }

    fn policy(&mut self, table: u32, chain: u32, certain: bool, _: &Transit<'_, '_>) {
        self.0.push(Event::Policy(table, chain, certain));
    }

    fn off_end(&mut self, table: u32, chain: u32, certain: bool) {
        self.0.push(Event::OffEnd(table, chain, certain));
    }

    fn unknown(&mut self, at: RuleRef, cause: Cause) {
        self.0.push(Event::Unknown(at, cause));
    }
}

impl Path {
    /// What of it those see who see no rules.
    fn counts(mut self) -> Counts {
        self.0
            .retain(|event| !matches!(event, Event::Rule(..) | Event::Asked(..) | Event::Hit(..)));
        Counts(self.0)
    }
}

/// How many rules of each chain, from its first one on: for certain, and at most.
type Depths = BTreeMap<u32, [u32; 2]>;

fn deepen(depths: &mut Depths, chain: u32, rules: u32, certain: bool) {
    let [sure, most] = depths.entry(chain).or_default();
    *most = rules.max(*most);
    *sure = if certain { rules.max(*sure) } else { *sure };
}

impl Path {
    /// Hits, hot drops, what is unknown and the ends of chains tell which rules were reached.
    fn tells_what_was_reached(&self, rules: &Ruleset) -> Result<(), TestCaseError> {
        let (mut told, mut reached) = (Depths::new(), Depths::new());
        let mut is_known = true;
        for event in &self.0 {
            match *event {
                Event::Rule(at, outcome, alive) if alive != Alive::Gone => {
                    let certain = alive == Alive::Certain;
                    is_known &= certain && outcome.is_known();
                    deepen(&mut reached, at.chain, at.rule + 1, certain);
                    if outcome.may_hot_drop() {
                        deepen(&mut told, at.chain, at.rule + 1, certain && outcome.is_known());
                    }
                }
                Event::Hit(at, certain) => deepen(&mut told, at.chain, at.rule + 1, certain),
                Event::Unknown(at, _) => deepen(&mut told, at.chain, at.rule + 1, false),
                Event::OffEnd(_, chain, certain) => {
                    let all = rules.tables[0].chains[chain as usize].rules.len();
                    deepen(&mut told, chain, all as u32, certain);
                }
                _ => {}
            }
        }
        for (chain, [sure, most]) in reached {
            let [told_sure, told_most] = told.get(&chain).copied().unwrap_or_default();
            prop_assert!(told_sure <= sure && most <= told_most, "chain {chain}: {:?}", self.0);
            prop_assert!(!is_known || told_sure == sure, "chain {chain}: {:?}", self.0);
        }
        Ok(())
    }
}

/// A walk's verdicts, what it showed, and what is left of the packet.
type Walked<O> = (Verdicts, O, String);

fn reference<O: Observer + Default>(
    rules: &Ruleset,
    packet: &Packet,
    unknown: &Unknown,
) -> Walked<O> {
    at_hook(packet, unknown, |transit, entry| {
        let mut seen = O::default();
        let verdicts = walk(rules, 0, transit, entry, &mut Memories::of(rules), &mut seen);
        (verdicts, seen, format!("{:?} {:?}", transit.mark, transit.packet))
    })
}

fn laid<O: Observer + Default>(
    laid: &Laid,
    rules: &Ruleset,
    packet: &Packet,
    unknown: &Unknown,
) -> Walked<O> {
    at_hook(packet, unknown, |transit, entry| {
        let mut seen = O::default();
        let verdicts = laid.walk(0, transit, entry, &mut Memories::of(rules), &mut seen);
        (verdicts, seen, format!("{:?} {:?}", transit.mark, transit.packet))
    })
}

/// A layout against the model: what those see who see all, and who see only counts.
fn compare(
    layout: &Laid,
    rules: &Ruleset,
    packet: &Packet,
    unknown: &Unknown,
) -> Result<(), TestCaseError> {
    let expected = reference::<Path>(rules, packet, unknown);
    prop_assert_eq!(&laid::<Path>(layout, rules, packet, unknown), &expected);
    let (verdicts, path, left) = expected;
    path.tells_what_was_reached(rules)?;
    let counts = (verdicts, path.counts(), left);
    prop_assert_eq!(&reference::<Counts>(rules, packet, unknown), &counts);
    prop_assert_eq!(&laid::<Counts>(layout, rules, packet, unknown), &counts);
    Ok(())
}

/// Says which rules a comparison was of.
fn told(
    compared: Result<(), TestCaseError>,
    kind: Kind,
    table: &Table,
) -> Result<(), TestCaseError> {
    compared.map_err(|why| TestCaseError::fail(format!("{}\n{}{why}", kind.name(), table.text())))
}

/// Where a change of the rules is, as shares of what there is.
#[derive(Debug, Clone)]
struct Edit {
    chain: prop::sample::Index,
    at: prop::sample::Index,
    delete: usize,
    insert: usize,
}

fn changes() -> impl Strategy<Value = Vec<Edit>> {
    let change =
        (any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..3_usize, 0..3_usize)
            .prop_map(|(chain, at, delete, insert)| Edit { chain, at, delete, insert });
    vec(change, 0..12)
}

/// Changes both the model and a layout of it, with rules that another chain has. Chains jump to later ones
/// only, and a chain gets rules of an earlier or the same one only from after its own: no loops come about.
fn apply(change: &Edit, rules: &mut Ruleset, laid: &mut Laid) {
    let chains = &mut rules.tables[0].chains;
    let index = change.chain.index(chains.len());
    let from = &chains[chains.len() - 1].rules;
    let insert: Vec<_> = from.iter().take(change.insert).cloned().collect();
    let chain = &mut chains[index].rules;
    let at = change.at.index(chain.len() + 1);
    let end = (at + change.delete).min(chain.len());
    chain.splice(at..end, insert.iter().cloned());
    laid.splice(index as u32, at, change.delete, &insert);
}

#[test]
fn every_layout_walks_as_the_reference_does() {
    let all = (tables(), packets(), unknowns());
    let test = |(table, packet, unknown): (Table, Packet, Unknown)| {
        let rules = ruleset(&table);
        for kind in Kind::ALL {
            let layout = Laid::encode(kind, &rules.tables[0], Family::Ipv4);
            prop_assert_eq!(layout.verify(), Ok(()));
            told(compare(&layout, &rules, &packet, &unknown), kind, &table)?;
        }
        Ok(())
    };
    runner().run(&all, test).unwrap();
}

#[test]
fn every_layout_is_changed_as_the_model_is() {
    let all = (tables(), packets(), unknowns(), changes());
    let test = |(table, packet, unknown, changes): (Table, Packet, Unknown, Vec<Edit>)| {
        for kind in Kind::ALL {
            let mut rules = ruleset(&table);
            let mut layout = Laid::encode(kind, &rules.tables[0], Family::Ipv4);
            for change in &changes {
                apply(change, &mut rules, &mut layout);
                prop_assert_eq!(layout.verify(), Ok(()), "{} {:?}", kind.name(), change);
            }
            told(compare(&layout, &rules, &packet, &unknown), kind, &table)?;
        }
        Ok(())
    };
    runner().run(&all, test).unwrap();
}

/// What a walk of an indexed chain shows, rules that only count in whatever order.
fn unordered((verdicts, Counts(mut events), left): Walked<Counts>) -> Walked<Counts> {
    events.sort_by_key(|event| format!("{event:?}"));
    (verdicts, Counts(events), left)
}

#[test]
fn an_index_finds_what_a_sweep_finds() {
    let some = vec((packets(), unknowns()), 4);
    let test = |(table, some): (Table, Vec<(Packet, Unknown)>)| {
        let rules = ruleset(&table);
        for kind in Kind::ALL {
            let layout = Laid::encode(kind, &rules.tables[0], Family::Ipv4).indexed();
            for (packet, unknown) in &some {
                let expected = unordered(reference::<Counts>(&rules, packet, unknown));
                // The first walk makes the index.
                for _ in 0..2 {
                    let found = unordered(laid::<Counts>(&layout, &rules, packet, unknown));
                    prop_assert_eq!(&found, &expected, "{}\n{}", kind.name(), table.text());
                }
            }
        }
        Ok(())
    };
    runner().run(&(long_tables(), some), test).unwrap();
}

/// Rules that test a protocol and its ports, and seldom anything else: what words answer at sight.
fn port_tables() -> impl Strategy<Value = Table> {
    let ports = (any::<bool>(), prop::bool::weighted(0.2), 0..5_u16, 0..2_u16);
    let mark = proptest::option::weighted(0.2, (any::<bool>(), (0..2_u32, Just(3_u32))));
    let action = prop_oneof![4 => Just(Action::None), 1 => Just(Action::Accept)];
    let rule = (any::<bool>(), ports, mark, action).prop_map(|(is_tcp, ports, mark, action)| {
        let (destination, invert, low, more) = ports;
        let protocol = Some((false, if is_tcp { 6 } else { 17 }));
        let ports = Some(Ports { destination, invert, low, high: low + more });
        Rule { protocol, ports, mark, action, ..Rule::default() }
    });
    (any::<bool>(), vec(rule, 1..12))
        .prop_map(|(drops, rules)| Table { drops, chains: vec![rules] })
}

#[test]
fn every_layout_tells_ports_as_the_match_does() {
    let known = prop_oneof![3 => Just(Unknown::default()), 1 => unknowns()];
    let all = (port_tables(), packets(), known);
    let test = |(table, packet, unknown): (Table, Packet, Unknown)| {
        let rules = ruleset(&table);
        for kind in Kind::ALL {
            let layout = Laid::encode(kind, &rules.tables[0], Family::Ipv4);
            told(compare(&layout, &rules, &packet, &unknown), kind, &table)?;
        }
        Ok(())
    };
    runner().run(&all, test).unwrap();
}

/// A target that leads where a jump or a goto does.
#[derive(Debug)]
struct Leads {
    effect: Effect,
    to: [u32; 1],
}

impl Target for Leads {
    fn print(&self, _: &mut Printer) {}

    fn apply(&self, _: &mut Transit<'_, '_>) -> Effect {
        self.effect
    }

    fn leads_to(&self) -> &[u32] {
        &self.to
    }
}

/// The ruleset with a target in the place of each jump.
fn leading(table: &Table) -> Ruleset {
    let mut rules = ruleset(table);
    let chains = rules.tables.iter_mut().flat_map(|table| &mut table.chains);
    for rule in chains.flat_map(|chain| &mut chain.rules).filter_map(Arc::get_mut) {
        let (effect, to) = match rule.action {
            model::Action::Jump(to) => (Effect::Jump(to), to),
            model::Action::Goto(to) => (Effect::Goto(to), to),
            _ => continue,
        };
        let body = Arc::new(Leads { effect, to: [to] });
        let target = TargetUse { name: "LEADS".into(), support: Support::Evaluated, body };
        rule.action = model::Action::Target(Box::new(target));
    }
    rules
}

#[test]
fn a_target_leads_to_a_chain_as_a_jump_does() {
    let all = (tables(), packets(), unknowns());
    let test = |(table, packet, unknown): (Table, Packet, Unknown)| {
        let (jumps, leads) = (ruleset(&table), leading(&table));
        let expected = reference::<Path>(&jumps, &packet, &unknown);
        prop_assert_eq!(reference::<Path>(&leads, &packet, &unknown), expected, "{}", table.text());
        for kind in Kind::ALL {
            let layout = Laid::encode(kind, &leads.tables[0], Family::Ipv4);
            told(compare(&layout, &leads, &packet, &unknown), kind, &table)?;
        }
        Ok(())
    };
    runner().run(&all, test).unwrap();
}

/// Rules of several segments, each of which some packet of these addresses and ports meets first.
fn long_rules(count: u32) -> String {
    let rule = |number: u32| {
        let (host, port) = (number % 200, number / 200);
        let (action, tests) = match number % 6 {
            0 => ("", format!("-s 10.0.{host}.0/24")),
            1 => (" -j ACCEPT", format!("-s 10.0.{host}.1 -p tcp -m tcp --dport {port}")),
            2 => (" -j DROP", format!("-d 10.0.{host}.0/28 -p udp -m udp --sport {port}")),
            3 => ("", format!("-p tcp -m tcp --dport {port}")),
            // It is asked, and does not match.
            4 => (" -j DROP", format!("-s 10.0.{host}.0/24 -m mark --mark 1")),
            _ => (" -j RETURN", format!("-s 10.0.0.0/20 -d 10.0.{host}.{port}")),
        };
        format!("-A FORWARD {tests}{action}\n")
    };
    let rules: String = (0..count).map(rule).collect();
    format!("*filter\n:FORWARD DROP [0:0]\n{rules}COMMIT\n")
}

#[test]
fn an_index_of_several_segments_finds_what_a_sweep_finds() {
    let options = LoadOptions { family: Some(Family::Ipv4), ..LoadOptions::default() };
    let rules = load(&long_rules(5_000), &options).unwrap().ruleset;
    let laid_out = |kind| Laid::encode(kind, &rules.tables[0], Family::Ipv4);
    let all = Kind::ALL.map(|kind| (laid_out(kind), laid_out(kind).indexed()));
    for number in 0..400_u32 {
        let ports = ([6, 17][number as usize % 2], 3, (number % 25) as u16);
        let (source, destination) = (number * 7 % 200 * 256 + number % 3, number * 3 % 200 * 256);
        let bytes = ipv4(source, destination, ports, (0, 28));
        let packet = Packet { bytes, input: "lan0", output: "wan0", mark: 0 };
        let known = Unknown::default();
        let walked = |of: &Laid| unordered(laid::<Counts>(of, &rules, &packet, &known));
        for (swept, indexed) in &all {
            assert_eq!(walked(indexed), walked(swept), "{number}");
        }
    }
}
