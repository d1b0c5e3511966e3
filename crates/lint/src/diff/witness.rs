//! A packet of a region whose walks through both rulesets, table by table, say what the region says.

use conntrack::{CtState, Side, has_ports};
use rules::CONNTRACK;
use rules::eval::{By, Memories, RuleRef, Verdict};
use rules::ipset::Sets;
use rules::model::{Action, Hook, Ruleset};
use rules::nat::Ports;
use rules::predicate::{Field, Values, type_ranges};

use super::stage::{Origin, Stage};
use super::way::{stages, translates};
use crate::around::{address_of, type_name};
use crate::diagram::Region;
use crate::flow::{Fate, target_text};
use crate::packet::{spec, walked_among};
use crate::space::{Preferred, Sample, Space};

/// Packets that are tried.
const TRIED: u64 = 12;

/// The type of an address of another host.
const UNICAST: u128 = 1;

/// Where packets are looked for.
pub(super) struct Witnesses<'w> {
    pub(super) space: &'w Space,
    pub(super) rulesets: [&'w Ruleset; 2],
    pub(super) origin: Origin,
    /// Where the difference is made.
    pub(super) hook: Hook,
}

/// What becomes of a packet, table by table of its whole way, under one ruleset; `None` where that is not known.
#[must_use]
pub fn whole_walk(
    space: &Space,
    ruleset: &Ruleset,
    is_sent: bool,
    sample: &Sample,
) -> Option<Fate> {
    let origin = if is_sent { Origin::Sent } else { Origin::Arriving };
    let rulesets = [ruleset; 2];
    let witnesses = Witnesses { space, rulesets, origin, hook: Hook::Forward };
    let (fate, translations) = witnesses.walk(ruleset, sample, &mut space.sets())?;
    Some(match (fate, translations.is_empty()) {
        (Fate::Accept, false) => Fate::Translate(translations.join(", ")),
        (fate, _) => fate,
    })
}

impl Witnesses<'_> {
    /// Finds a packet, as `tamis why --packet` takes it, and the options that have to be given with it. Where it is not
    /// certain that packets of the region come to these fates, one of them may be one of several that a walk leaves open.
    pub(super) fn find(
        &self,
        region: Region,
        fates: &[Fate; 2],
        certain: bool,
    ) -> Option<(String, Vec<String>)> {
        let family = self.space.family();
        let mut sets = self.space.sets();
        (0..TRIED).find_map(|seed| {
            let preferred = match seed {
                0 => Preferred::usual(family),
                _ => Preferred::drawn(family, seed),
            };
            let sample = self.space.sample(region, &preferred)?;
            let ends: Vec<End> = self
                .rulesets
                .into_iter()
                .map(|ruleset| self.walk(ruleset, &sample, &mut sets))
                .collect::<Option<_>>()?;
            let accepts = ends.iter().all(|(fate, _)| *fate == Fate::Accept);
            let is_open = |(end, _): &End| matches!(end, Fate::OneOf(_));
            let may_be_open = !certain && !ends.iter().all(is_open);
            let shows = |(end, fate): (&End, &Fate)| match fate {
                Fate::Translate(text) => end.0 == Fate::Accept && end.1.join(", ") == *text,
                Fate::Accept => end.0 == Fate::Accept && (!accepts || end.1.is_empty()),
                Fate::OneOf(several) => match &end.0 {
                    Fate::OneOf(walked) => walked.iter().all(|one| several.contains(one)),
                    one => several.contains(one),
                },
                fate => match &end.0 {
                    Fate::OneOf(walked) => may_be_open && walked.contains(fate),
                    one => one == fate,
                },
            };
            ends.iter().zip(fates).all(shows).then_some(())?;
            self.words(&sample)
        })
    }

    fn words(&self, sample: &Sample) -> Option<(String, Vec<String>)> {
        let family = self.space.family();
        let mut values = sample.values.clone();
        let hook = match (self.origin, self.hook) {
            (Origin::Sent, _) => Hook::Output,
            (_, Hook::Prerouting) => Hook::Prerouting,
            _ if sample.to_host => Hook::Input,
            _ => Hook::Forward,
        };
        if matches!(hook, Hook::Prerouting | Hook::Input) {
            values.output.clear();
        }
        let mut given = Vec::new();
        for (address, kind) in
            [(Field::Source, Field::SourceType), (Field::Destination, Field::DestinationType)]
        {
            match type_name(values.number(kind)) {
                "" | "UNSPEC" | "UNICAST" | "MULTICAST" => {}
                "LOCAL" => {
                    given.push(format!("--local {}", address_of(family, values.number(address))));
                }
                "BROADCAST" => {
                    let address = address_of(family, values.number(address));
                    given.push(format!(
                        "--routes FILE, with the line: broadcast {address} dev any table local"
                    ));
                }
                // No option says it.
                _ => return None,
            }
        }
        given.dedup();
        Some((spec(family, hook, &values)?, given))
    }

    /// What becomes of a packet, table by table.
    fn walk(&self, ruleset: &Ruleset, sample: &Sample, sets: &mut Option<Sets>) -> Option<End> {
        let mut way = Way {
            space: self.space,
            ruleset,
            sets,
            values: sample.values.clone(),
            translations: Vec::new(),
            to_host: sample.to_host,
        };
        let first = match self.origin {
            Origin::Arriving => Hook::Prerouting,
            Origin::Sent => Hook::Output,
        };
        if self.origin == Origin::Arriving {
            way.values.output.clear();
            // Time to live is as FORWARD sees it.
            let ttl = way.values.number(Field::Ttl);
            way.values.set(Field::Ttl, ttl + u128::from(ttl > 0 && !sample.to_host));
        }
        if let Some(dead) = way.pass(&stages(self.space, first))? {
            return Some((dead, way.translations));
        }
        let mut rest = Vec::new();
        match (self.origin, way.to_host) {
            (Origin::Arriving, true) => rest.extend(stages(self.space, Hook::Input)),
            (Origin::Arriving, false) => {
                way.values.output.clone_from(&sample.values.output);
                let ttl = way.values.number(Field::Ttl);
                way.values.set(Field::Ttl, ttl.saturating_sub(1));
                rest.extend(stages(self.space, Hook::Forward));
                rest.extend(stages(self.space, Hook::Postrouting));
            }
            (Origin::Sent, _) => rest.extend(stages(self.space, Hook::Postrouting)),
        }
        let dead = way.pass(&rest)?;
        Some((dead.unwrap_or(Fate::Accept), way.translations))
    }
}

/// What became of a packet, and the targets that translated its flow.
type End = (Fate, Vec<String>);

/// A packet on its way.
struct Way<'w> {
    space: &'w Space,
    ruleset: &'w Ruleset,
    /// The host's sets, if they are known.
    sets: &'w mut Option<Sets>,
    values: Values,
    translations: Vec<String>,
    to_host: bool,
}

impl Way<'_> {
    /// Passes some stages: what stops it, if anything does; `None` where that is not known.
    fn pass(&mut self, stages: &[(i32, Stage)]) -> Option<Option<Fate>> {
        let state = self.values.state;
        let mut untracked = false;
        for (priority, stage) in stages {
            let Some(table) = self.ruleset.tables.iter().position(|it| it.name == stage.table)
            else {
                continue;
            };
            let is_raw = *priority < CONNTRACK;
            self.values.state = match (is_raw, untracked) {
                (true, _) => CtState::Invalid,
                (false, true) => CtState::Untracked,
                (false, false) => state,
            };
            if translates(*stage) && self.values.state != CtState::New {
                continue;
            }
            let mut memories = Memories::of(self.ruleset);
            let (sets, place) = (self.sets.as_mut(), (table, stage.hook));
            let walked = walked_among(&mut memories, sets, self.ruleset, place, &self.values)?;
            let Some((verdict, by)) = walked.verdict else {
                return self.stopped_somehow(&walked.possible).map(Some);
            };
            let now = walked.after?;
            untracked |= now.untracked;
            for (field, number) in now.numbers {
                self.values.set(field, number);
            }
            match verdict {
                Verdict::Accept => {
                    let hits = walked.hits.into_iter().map(By::Rule).chain(by);
                    let rules = hits.filter_map(|by| match by {
                        By::Rule(at) => Some(at),
                        _ => None,
                    });
                    if translates(*stage) && !self.translate(rules, stage.hook) {
                        return None;
                    }
                }
                Verdict::Drop => return Some(Some(Fate::Drop)),
                Verdict::Reject => return Some(Some(self.reject(by?)?)),
            }
        }
        self.values.state = if untracked { CtState::Untracked } else { state };
        Some(None)
    }

    /// The type of an address: where that is not known, any that it may have will do.
    fn kind_of(&self, address: u128) -> u128 {
        let ranges = type_ranges(self.space.host(), self.space.family());
        let range = ranges.iter().find(|range| (range.first..=range.last).contains(&address));
        match range.map(|range| range.types) {
            Some(types) if types.is_power_of_two() => types.trailing_zeros().into(),
            _ => UNICAST,
        }
    }

    fn reject(&self, by: By) -> Option<Fate> {
        let By::Rule(at) = by else { return None };
        let Action::Target(target) = self.action(at) else { return None };
        Some(Fate::Reject(target_text(target)))
    }

    /// What stops it, where something does in any case.
    fn stopped_somehow(&self, possible: &[(Verdict, Option<By>)]) -> Option<Fate> {
        let mut fates = Vec::new();
        for (verdict, by) in possible {
            fates.push(match verdict {
                Verdict::Accept => return None,
                Verdict::Drop => Fate::Drop,
                Verdict::Reject => self.reject((*by)?)?,
            });
        }
        fates.sort_unstable();
        (!fates.is_empty()).then_some(Fate::OneOf(fates))
    }

    fn action(&self, at: RuleRef) -> &Action {
        let chain = &self.ruleset.tables[at.table as usize].chains[at.chain as usize];
        &chain.rules[at.rule as usize].action
    }

    /// What a rule that it hit makes of its flow; whether that is known.
    fn translate(&mut self, mut hits: impl Iterator<Item = RuleRef>, hook: Hook) -> bool {
        let ruleset = self.ruleset;
        let found = hits.find_map(|at| {
            let chain = &ruleset.tables[at.table as usize].chains[at.chain as usize];
            match &chain.rules[at.rule as usize].action {
                Action::Target(target) if target.body.translates() => Some(target),
                _ => None,
            }
        });
        let Some(target) = found else { return true };
        self.translations.push(target_text(target));
        if !matches!(hook, Hook::Prerouting | Hook::Output) {
            return true;
        }
        let Some(mapping) = target.body.mapping().filter(|it| it.side == Side::Destination) else {
            return false;
        };
        match (mapping.range.addresses, mapping.redirects) {
            (None, false) => {}
            (Some([first, last]), _) if first == last => {
                let number = match first {
                    std::net::IpAddr::V4(v4) => u32::from(v4).into(),
                    std::net::IpAddr::V6(v6) => v6.into(),
                };
                self.values.set(Field::Destination, number);
                let kind = self.kind_of(number);
                if self.values.number(Field::DestinationType) != 0 {
                    self.values.set(Field::DestinationType, kind);
                }
                self.to_host = kind != UNICAST;
            }
            _ => return false,
        }
        let protocol = self.values.number(Field::Protocol) as u8;
        match mapping.range.ports.filter(|_| has_ports(protocol)) {
            None => true,
            Some(Ports { first, last, base: None }) if first == last => {
                self.values.set(Field::DestinationPort, first.into());
                true
            }
            Some(_) => false,
        }
    }
}
