//! Every layout against the reference walk: the same verdicts, counters, path and unknowns, as laid out at
//! once and as reached by changes.

use proptest::collection::vec;
use proptest::prelude::*;
use rules::eval::{Alive, Cause, Memories, Observer, RuleRef, Verdicts, walk};
use rules::layout::{Kind, Laid, Layout};
use rules::model::{Family, Ruleset};
use rules::{Outcome, Transit};

use crate::made::{Packet, Table, packets, tables};
use crate::sound::{Unknown, at_hook, ruleset, runner, unknowns};

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

    fn counted(&mut self, slot: u32, certain: bool) {
        self.0.push(Event::Counted(slot, certain));
    }

    fn policy(&mut self, table: u32, chain: u32, certain: bool, _: &Transit<'_, '_>) {
        self.0.push(Event::Policy(table, chain, certain));
    }

    fn unknown(&mut self, at: RuleRef, cause: Cause) {
        self.0.push(Event::Unknown(at, cause));
    }
}

/// A walk's verdicts, path, and what is left of the packet.
type Walked = (Verdicts, Path, String);

fn reference(rules: &Ruleset, packet: &Packet, unknown: &Unknown) -> Walked {
    at_hook(packet, unknown, |transit, entry| {
        let mut path = Path::default();
        let verdicts = walk(rules, 0, transit, entry, &mut Memories::of(rules), &mut path);
        (verdicts, path, format!("{:?} {:?}", transit.mark, transit.packet))
    })
}

fn laid(laid: &Laid, rules: &Ruleset, packet: &Packet, unknown: &Unknown) -> Walked {
    at_hook(packet, unknown, |transit, entry| {
        let mut path = Path::default();
        let verdicts = laid.walk(0, transit, entry, &mut Memories::of(rules), &mut path);
        (verdicts, path, format!("{:?} {:?}", transit.mark, transit.packet))
    })
}

/// Where a change of the rules is, as shares of what there is.
#[derive(Debug, Clone)]
struct Change {
    chain: prop::sample::Index,
    at: prop::sample::Index,
    delete: usize,
    insert: usize,
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let change =
        (any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..3_usize, 0..3_usize)
            .prop_map(|(chain, at, delete, insert)| Change { chain, at, delete, insert });
    vec(change, 0..12)
}

/// Changes both the model and a layout of it, with rules that another chain has. Chains jump to later ones
/// only, and a chain gets rules of an earlier or the same one only from behind its own: no loops come about.
fn apply(change: &Change, rules: &mut Ruleset, laid: &mut Laid) {
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
        let expected = reference(&rules, &packet, &unknown);
        for kind in Kind::ALL {
            let layout = Laid::encode(kind, &rules.tables[0], Family::Ipv4);
            prop_assert_eq!(layout.verify(), Ok(()));
            let found = laid(&layout, &rules, &packet, &unknown);
            prop_assert_eq!(&found, &expected, "{}\n{}", kind.name(), table.text());
        }
        Ok(())
    };
    runner().run(&all, test).unwrap();
}

#[test]
fn every_layout_is_changed_as_the_model_is() {
    let all = (tables(), packets(), unknowns(), changes());
    let test = |(table, packet, unknown, changes): (Table, Packet, Unknown, Vec<Change>)| {
        for kind in Kind::ALL {
            let mut rules = ruleset(&table);
            let mut layout = Laid::encode(kind, &rules.tables[0], Family::Ipv4);
            for change in &changes {
                apply(change, &mut rules, &mut layout);
                prop_assert_eq!(layout.verify(), Ok(()), "{} {:?}", kind.name(), change);
            }
            let expected = reference(&rules, &packet, &unknown);
            let found = laid(&layout, &rules, &packet, &unknown);
            prop_assert_eq!(&found, &expected, "{}\n{}", kind.name(), table.text());
        }
        Ok(())
    };
    runner().run(&all, test).unwrap();
}
