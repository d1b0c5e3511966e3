//! Packets through all tables of their way, under one ruleset.

use std::collections::HashMap;

use conntrack::{CtState, States};
use rules::CONNTRACK;
use rules::model::{Hook, Ruleset};
use rules::predicate::{Field, Predicate};

use super::altered::{Alterations, Altered, Packets, Request};
use super::apart::Apart;
use super::send::Sending;
use super::stage::{Origin, Passed, Stage};
use crate::diagram::{Region, TooLarge};
use crate::space::{Part, Space};

/// What all rulesets that are compared are sent packets with.
pub(super) struct Both<'s> {
    pub(super) space: &'s mut Space,
    pub(super) alterations: &'s mut Alterations,
    pub(super) apart: &'s Apart,
}

impl Both<'_> {
    /// Sends packets through a ruleset.
    pub(super) fn pass(
        &mut self,
        ruleset: &Ruleset,
        side: usize,
        origin: Origin,
        entry: Region,
    ) -> Result<Passed, TooLarge> {
        let mut sending = Sending {
            space: self.space,
            alterations: self.alterations,
            apart: self.apart,
            ruleset,
            side,
            stage: Stage { turn: 0, table: "", hook: Hook::Prerouting },
            table: 0,
            decided: Vec::new(),
            asked: Vec::new(),
            times: HashMap::new(),
            known: HashMap::new(),
            visits: 0,
            jumps: Vec::new(),
        };
        let mut passed = Passed::default();
        let first = match origin {
            Origin::Arriving => Hook::Prerouting,
            Origin::Sent => Hook::Output,
        };
        let routed = sending.before_routing(first, entry)?;
        passed.accepted = match origin {
            Origin::Arriving => sending.after_routing(&routed)?,
            Origin::Sent => {
                let leaving = sending.routed_again(routed.clone())?;
                sending.along(&[Hook::Postrouting], leaving)?
            }
        };
        passed.routed = routed;
        (passed.decided, passed.asked) = (sending.decided, sending.asked);
        Ok(passed)
    }
}

impl Sending<'_> {
    /// Up to where routing sees packets, or to the end of OUTPUT.
    fn before_routing(&mut self, hook: Hook, entry: Region) -> Result<Vec<Packets>, TooLarge> {
        let mut raw = Altered::default();
        if hook == Hook::Prerouting {
            raw.set(self.space, Part::Output, 0);
        }
        let tracked = raw.clone();
        let invalid = self.space.state(CtState::Invalid);
        raw.set(self.space, Part::State, invalid);
        let (before, after): (Vec<_>, Vec<_>) =
            stages(self.space, hook).into_iter().partition(|(priority, _)| *priority < CONNTRACK);
        let has_raw = before.iter().any(|(_, stage)| self.ruleset.table(stage.table).is_some());
        let start = if has_raw { raw } else { tracked };
        let altered = self.alterations.number(start)?;
        let mut packets = vec![Packets { altered, region: entry }];
        for (_, stage) in before {
            packets = self.at(stage, packets)?;
        }
        if has_raw {
            packets = self.tracked(packets)?;
        }
        for (_, stage) in after {
            packets = self.at(stage, packets)?;
        }
        Ok(packets)
    }

    /// Sends packets on from routing: to the host, or to another one.
    fn after_routing(&mut self, routed: &[Packets]) -> Result<Vec<Packets>, TooLarge> {
        let (mut to_host, mut on) = (Vec::new(), Vec::new());
        let in_way = self.space.range(Part::Way, 0, 0)?;
        for packets in routed {
            let mut altered = self.alterations.get(packets.altered).clone();
            altered.restore(self.space, Part::Output);
            let packets = &match self.space.routed() {
                Some(routed) => {
                    let number = self.alterations.number(altered.clone())?;
                    let routed = self.alterations.were(self.space, number, routed)?;
                    let region = self.space.diagrams.and(packets.region, routed)?;
                    Packets { region, ..*packets }
                }
                None => *packets,
            };
            let own = self.alterations.were(self.space, packets.altered, in_way)?;
            let region = self.space.diagrams.and(packets.region, own)?;
            to_host.push(Packets { region, ..*packets });
            let region = self.space.diagrams.without(packets.region, own)?;
            if altered.has_other(self.space, Field::Ttl) {
                altered.lose(self.space, Part::Field(Field::Ttl), "the lowered time to live")?;
            }
            on.push(Packets { altered: self.alterations.number(altered)?, region });
        }
        to_host.retain(|packets| !packets.region.is_empty());
        on.retain(|packets| !packets.region.is_empty());
        let mut accepted = self.along(&[Hook::Input], to_host)?;
        accepted.extend(self.along(&[Hook::Forward, Hook::Postrouting], on)?);
        Ok(accepted)
    }

    /// Routes packets that OUTPUT changed once more, where routes are followed: they may leave through another
    /// interface, or not at all.
    fn routed_again(&mut self, packets: Vec<Packets>) -> Result<Vec<Packets>, TooLarge> {
        if self.space.routed().is_none() {
            return Ok(packets);
        }
        let looked_at = [Field::Mark, Field::Tos, Field::Source, Field::Destination];
        let mut all = Vec::new();
        for one in packets {
            let mut altered = self.alterations.get(one.altered).clone();
            if !looked_at.into_iter().any(|field| altered.has_other(self.space, field)) {
                all.push(one);
                continue;
            }
            let what = "where routes lead what OUTPUT changed";
            altered.lose(self.space, Part::Output, what)?;
            let leads = self.space.asked(what)?;
            let region = self.space.diagrams.and(one.region, leads)?;
            all.push(Packets { altered: self.alterations.number(altered)?, region });
        }
        Ok(all)
    }

    fn along(
        &mut self,
        hooks: &[Hook],
        mut packets: Vec<Packets>,
    ) -> Result<Vec<Packets>, TooLarge> {
        for hook in hooks {
            for (_, stage) in stages(self.space, *hook) {
                packets = self.at(stage, packets)?;
            }
        }
        Ok(packets)
    }

    /// Sends packets through a stage; returns the packets that go on. Chains of nat see only packets that begin a
    /// connection.
    fn at(&mut self, stage: Stage, packets: Vec<Packets>) -> Result<Vec<Packets>, TooLarge> {
        let ruleset = self.ruleset;
        let Some(table) = ruleset.tables.iter().position(|table| table.name == stage.table) else {
            return Ok(packets);
        };
        (self.stage, self.table) = (stage, table);
        if !translates(stage) {
            return self.pass(packets);
        }
        let new = self.space.of_predicate(&Predicate::State(States::of(CtState::New)))?;
        let (mut begins, mut others) = (Vec::new(), Vec::new());
        for one in packets {
            let new = self.alterations.were(self.space, one.altered, new)?;
            let region = self.space.diagrams.and(one.region, new)?;
            begins.push(Packets { region, ..one });
            let region = self.space.diagrams.without(one.region, new)?;
            others.push(Packets { region, ..one });
        }
        begins.retain(|packets| !packets.region.is_empty());
        others.retain(|packets| !packets.region.is_empty());
        others.extend(self.pass(begins)?);
        self.merged(others)
    }

    /// Tracking finds the states of connections, or does not look.
    fn tracked(&mut self, packets: Vec<Packets>) -> Result<Vec<Packets>, TooLarge> {
        let mut tracked = Vec::new();
        for one in packets {
            let mut altered = self.alterations.get(one.altered).clone();
            match altered.request.take() {
                None | Some(Request::Plain) => altered.restore(self.space, Part::State),
                Some(Request::Untracked) => {
                    let untracked = self.space.state(CtState::Untracked);
                    altered.set(self.space, Part::State, untracked);
                }
                Some(Request::Other(by)) => {
                    let what = format!("the state that {by} leads to");
                    altered.lose(self.space, Part::State, &what)?;
                }
            }
            tracked.push(Packets { altered: self.alterations.number(altered)?, ..one });
        }
        self.merged(tracked)
    }
}

pub(super) fn translates(stage: Stage) -> bool {
    stage.table == rules::TableKind::NAT
}

/// The tables at a hook by their turn, with their priority.
pub(super) fn stages(space: &Space, hook: Hook) -> Vec<(i32, Stage)> {
    let tables = space.family().tables().iter();
    let mut stages: Vec<(i32, &'static str)> =
        tables.filter_map(|table| Some((table.priority(hook)?, table.name))).collect();
    stages.sort_unstable();
    let before = match hook {
        Hook::Prerouting | Hook::Output | Hook::Brouting => 0,
        Hook::Input | Hook::Forward => 10,
        Hook::Postrouting => 20,
    };
    let stage = |(turn, (priority, table)): (u32, (i32, &'static str))| {
        (priority, Stage { turn: before + turn, table, hook })
    };
    (0..).zip(stages).map(stage).collect()
}
