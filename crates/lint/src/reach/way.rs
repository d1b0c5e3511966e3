//! A way through the host, and the packets that come by it.

use conntrack::CtState;
use rules::model::{Action, Family, Hook, Ruleset};
use rules::predicate::Field;

use super::question::{Question, in_network};
use super::{States, question};
use crate::diagram::{Region, TooLarge};
use crate::flow::target_text;
use crate::space::{Part, Space};

/// A way, of packets in some states.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Way {
    /// The hook of the filter table on it.
    pub(crate) hook: Hook,
    /// The states of the packets' connections.
    pub(crate) states: States,
}

impl Way {
    /// The hooks that packets pass on it.
    pub(super) fn hooks(self) -> &'static [Hook] {
        match self.hook {
            Hook::Input => &[Hook::Prerouting, Hook::Input],
            Hook::Output => &[Hook::Output, Hook::Postrouting],
            _ => &[Hook::Prerouting, Hook::Forward, Hook::Postrouting],
        }
    }

    /// The packets that come by it, of those that are asked about; `None` where there are none.
    pub(crate) fn packets(
        self,
        space: &mut Space,
        ruleset: &Ruleset,
        question: &Question,
    ) -> Result<Option<Region>, TooLarge> {
        let mut all = space.at_hook(self.hook)?;
        let states = match self.states {
            States::New if untracks(ruleset) => &[CtState::New, CtState::Untracked][..],
            States::New => &[CtState::New],
            States::Established => &[CtState::Established, CtState::Related],
            // Any one will do where nothing asks for it.
            States::Any => &[CtState::New],
        };
        let mut parts = vec![space.in_states(states)?, question.by_nets(space, self.hook)?];
        if let Some(network) = question.from {
            parts.push(in_network(space, Field::Source, network)?);
        }
        for (part, name) in [(Part::Input, &question.input), (Part::Output, &question.output)] {
            let has = match part {
                Part::Input => self.hook != Hook::Output,
                _ => Space::has_output(self.hook),
            };
            if let Some(name) = name.as_ref().filter(|_| has) {
                let kind = space.kind_of(name);
                parts.push(space.between(part, [kind; 2])?);
            }
        }
        let local = space.between(Part::Field(Field::Destination), loopback(space.family()))?;
        parts.push(space.diagrams.without(Region::ALL, local)?);
        parts.push(self.elsewhere(space, question)?);
        if let (Hook::Output, Some(own)) = (self.hook, question.sent_by_host(space)?) {
            parts.push(own);
        }
        for part in parts {
            all = space.diagrams.and(all, part)?;
        }
        Ok(Some(all).filter(|all| !all.is_empty()))
    }

    /// Packets that leave the host or come to it: not by `lo`, if rules know it, unless it is asked for.
    fn elsewhere(self, space: &mut Space, question: &Question) -> Result<Region, TooLarge> {
        const LO: &str = "lo";
        let is_asked = [&question.input, &question.output].into_iter().flatten().any(|it| it == LO);
        let kind = space.kind_of(LO);
        if is_asked || !space.is_one(kind) {
            return Ok(Region::ALL);
        }
        let mut all = Region::ALL;
        for part in [Part::Input, Part::Output] {
            let lo = space.between(part, [kind; 2])?;
            all = space.diagrams.without(all, lo)?;
        }
        Ok(all)
    }

    /// Those that end on this way, as they arrive.
    pub(super) fn arriving(
        self,
        space: &mut Space,
        question: &Question,
    ) -> Result<Region, TooLarge> {
        let Some(to_host) = question.to_host(space)? else { return Ok(Region::ALL) };
        match self.hook {
            Hook::Input => Ok(to_host),
            _ => space.diagrams.without(Region::ALL, to_host),
        }
    }
}

/// Rules that leave packets untracked.
fn untracks(ruleset: &Ruleset) -> bool {
    let chains = ruleset.tables.iter().flat_map(|table| &table.chains);
    chains.flat_map(|chain| &chain.rules).any(|rule| leaves_untracked(&rule.action))
}

/// Whether a target leaves packets untracked.
pub(super) fn leaves_untracked(action: &Action) -> bool {
    let Action::Target(target) = action else { return false };
    &*target.name == "NOTRACK" || &*target.name == "CT" && target_text(target).contains("--notrack")
}

/// Packets to a group, or to all on a link.
pub(super) fn is_for_many(space: &mut Space) -> Result<Region, TooLarge> {
    let groups: &[(u128, u128)] = match space.family() {
        Family::Ipv6 => &[(0xff << 120, u128::MAX)],
        _ => &[(0xe000_0000, 0xefff_ffff), (0xffff_ffff, 0xffff_ffff)],
    };
    let mut all = Region::NONE;
    for (low, high) in groups {
        let one = space.between(Part::Field(Field::Destination), [*low, *high])?;
        all = space.diagrams.or(all, one)?;
    }
    Ok(all)
}

/// Addresses of loopback, to which no packet comes from elsewhere.
fn loopback(family: Family) -> [u128; 2] {
    match family {
        Family::Ipv6 => [1, 1],
        _ => {
            let network = host::Network::parse("127.0.0.0/8");
            network.map_or([0, 0], |it| [question::number(it.addr), question::number(it.last())])
        }
    }
}
