//! [`Groups`]: tables of rules, one for each form, and what of them a packet finds.
//!
//! Contract: a packet finds all rules that may match it, and few others: those have to be asked. Groups are in the order of their
//! first rules, so that those are left out that have nothing before what was found.

use std::collections::HashMap;

use super::form::{Form, Masks};
use crate::layout::code::Asks;

/// What it costs to look a table up, in rules that are asked meanwhile.
const LOOKUP: usize = 2;

/// Tables of rules by their numbers.
#[derive(Debug, Default)]
pub(super) struct Groups {
    groups: Box<[Group]>,
    slots: Box<[Slot]>,
    /// Numbers of rules: of each slot in the order of the chain.
    rules: Box<[u32]>,
}

/// Rules of one form.
#[derive(Debug)]
struct Group {
    masks: Masks,
    /// The first and the last of its rules.
    first: u32,
    last: u32,
    /// Where its slots begin; their number is a power of two.
    from: usize,
    slots: usize,
}

/// Rules of one hash.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    hash: u64,
    from: u32,
    len: u32,
}

impl Groups {
    /// Makes tables of these rules, whose numbers ascend; `asks` reads a rule.
    pub(super) fn of(rules: &[u32], asks: impl Fn(u32) -> Asks, is_v6: bool) -> Self {
        let mut by_form: HashMap<Form, Vec<u32>> = HashMap::new();
        for number in rules {
            by_form.entry(Form::of(&asks(*number), is_v6)).or_default().push(*number);
        }
        let forms = joined(by_form.into_iter().collect(), &asks);
        let order = order(&forms, |(_, rules)| rules.iter().copied().min().unwrap_or(0).into());
        let (mut groups, mut slots, mut members) = (Vec::new(), Vec::new(), Vec::new());
        for (form, rules) in order.into_iter().filter_map(|at| forms.get(at)) {
            let hashed = hashed(&form.masks(), rules, &asks);
            groups.push(group(form.masks(), &hashed, &mut slots, &mut members));
        }
        Self { groups: groups.into(), slots: slots.into(), rules: members.into() }
    }

    /// What a lookup costs at most, on average, in rules that are asked meanwhile.
    pub(super) fn cost(&self) -> usize {
        let of = |group: &Group| {
            let slots = self.slots.get(group.from..group.from + group.slots).unwrap_or_default();
            let used = slots.iter().filter(|slot| slot.len > 0).count().max(1);
            let rules: usize = slots.iter().map(|slot| slot.len as usize).sum();
            LOOKUP + rules / used
        };
        self.groups.iter().map(of).sum()
    }

    /// Asks rules from number `from` on that may match, until one answers: that is the first that does.
    #[inline]
    pub(super) fn first<T>(
        &self,
        packet: &Asks,
        from: u32,
        mut ask: impl FnMut(u32) -> Option<T>,
    ) -> Option<(u32, T)> {
        let (mut end, mut found) = (u32::MAX, None);
        for group in &self.groups {
            if group.first >= end {
                break;
            }
            if group.last < from {
                continue;
            }
            let rules = self.find(group, packet, from);
            let answered = rules.iter().take_while(|rule| **rule < end);
            if let Some(answer) = answered.copied().find_map(|rule| Some((rule, ask(rule)?))) {
                (end, found) = (answer.0, Some(answer));
            }
        }
        found
    }

    /// Hands over the rules from number `from` on and before `end` that may match, in no order.
    #[inline]
    pub(super) fn each(&self, packet: &Asks, (from, end): (u32, u32), mut see: impl FnMut(u32)) {
        let groups = self.groups.iter().take_while(|group| group.first < end);
        for group in groups.filter(|group| group.last >= from) {
            let rules = self.find(group, packet, from).iter();
            rules.take_while(|rule| **rule < end).for_each(|rule| see(*rule));
        }
    }

    /// The rules of a group, from number `from` on, that a packet may match, and others of the same hash.
    #[inline]
    fn find(&self, group: &Group, packet: &Asks, from: u32) -> &[u32] {
        let hash = group.masks.hash(packet);
        let mask = group.slots - 1;
        let mut at = hash as usize & mask;
        // Half of the slots are free at least.
        while let Some(slot) = self.slots.get(group.from + at).filter(|slot| slot.len > 0) {
            if slot.hash == hash {
                let start = slot.from as usize;
                let rules = self.rules.get(start..start + slot.len as usize).unwrap_or_default();
                let passed = match group.first < from {
                    true => rules.partition_point(|rule| *rule < from),
                    false => 0,
                };
                return rules.get(passed..).unwrap_or_default();
            }
            at = (at + 1) & mask;
        }
        &[]
    }
}

/// A form and the numbers of its rules.
type Formed = (Form, Vec<u32>);

/// Rules by the hashes of what they are looked up by, of one hash in their order.
fn hashed(masks: &Masks, rules: &[u32], asks: &impl Fn(u32) -> Asks) -> Vec<(u64, u32)> {
    let mut hashed: Vec<(u64, u32)> =
        rules.iter().map(|number| (masks.hash(&asks(*number)), *number)).collect();
    hashed.sort_unstable();
    hashed
}

/// The places of forms by a number of each, the least first. All that is sorted here is of one type, so there is one sort.
fn order(forms: &[Formed], by: impl Fn(&Formed) -> u64) -> Vec<usize> {
    let mut order: Vec<(u64, u32)> =
        forms.iter().zip(0..).map(|(formed, at)| (by(formed), at)).collect();
    order.sort_unstable();
    order.into_iter().map(|(_, at)| at as usize).collect()
}

/// The number of hashes.
fn distinct(hashed: &[(u64, u32)]) -> usize {
    hashed.chunk_by(|a, b| a.0 == b.0).count()
}

/// Lays the table of a group out.
fn group(
    masks: Masks,
    hashed: &[(u64, u32)],
    slots: &mut Vec<Slot>,
    members: &mut Vec<u32>,
) -> Group {
    let from = slots.len();
    let size = (2 * distinct(hashed)).next_power_of_two();
    slots.resize(from + size, Slot::default());
    let own = &mut slots[from..];
    for same in hashed.chunk_by(|a, b| a.0 == b.0) {
        let hash = same[0].0;
        let mut at = hash as usize & (size - 1);
        while own[at].len > 0 {
            at = (at + 1) & (size - 1);
        }
        own[at] = Slot { hash, from: members.len() as u32, len: same.len() as u32 };
        members.extend(same.iter().map(|(_, number)| number));
    }
    let numbers = || hashed.iter().map(|(_, number)| *number);
    let (first, last) = (numbers().min().unwrap_or(0), numbers().max().unwrap_or(0));
    Group { masks, first, last, from, slots: size }
}

/// Joins forms of few rules to others that include them, where those rules cost less there than a lookup.
fn joined(mut forms: Vec<Formed>, asks: &impl Fn(u32) -> Asks) -> Vec<Formed> {
    let keys = |(form, rules): &Formed| distinct(&hashed(&form.masks(), rules, asks));
    let keys: Vec<usize> = forms.iter().map(keys).collect();
    let mut joined = vec![0; forms.len()];
    for at in order(&forms, |(_, rules)| rules.len() as u64) {
        let (form, few) = (forms[at].0, forms[at].1.len());
        let others = forms.iter().enumerate().filter(|(other, (wide, rules))| {
            let is_other = *other != at && !rules.is_empty() && wide.includes(&form);
            is_other && joined[*other] + few < LOOKUP * keys[*other]
        });
        let Some((to, _)) = others.max_by_key(|(_, (wide, _))| wide.weight()) else { continue };
        let rules = std::mem::take(&mut forms[at].1);
        forms[to].1.extend(rules);
        joined[to] += few;
    }
    forms.retain(|(_, rules)| !rules.is_empty());
    forms
}
