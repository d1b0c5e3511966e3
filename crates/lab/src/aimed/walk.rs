//! One packet through all tables of its way, table by table with the reference walk: the truth that `tamis diff` is held
//! to. It shares no code with the way that `diff` sends regions by.

use std::net::IpAddr;

use conntrack::{CtState, Side, has_ports};
use lint::{Fate, Sample, Walked, target_text, walked_after};
use rules::CONNTRACK;
use rules::TableKind;
use rules::eval::{By, Memories, RuleRef, Verdict};
use rules::ext::TargetUse;
use rules::model::{Action, Hook, Rule, Ruleset};
use rules::predicate::{Field, Values};
use rules::save::print_rule;

/// Walks packets through one ruleset, each as if none had come before it.
#[derive(Debug)]
pub struct Walker<'r> {
    ruleset: &'r Ruleset,
    memories: Memories,
    remembers: bool,
}

/// What became of a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// Its fate; an accepted packet's translations are beside it.
    pub fate: Fate,
    /// The targets that translated its flow.
    pub translations: Vec<String>,
    /// It is for this host, as far as it came.
    pub to_host: bool,
}

impl End {
    /// The same for the packet: what became of the flow of one that is dropped does not matter.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.fate == other.fate
            && (self.fate != Fate::Accept || self.translations == other.translations)
    }
}

/// Where a packet is.
struct Place {
    values: Values,
    to_host: bool,
    untracked: bool,
    translations: Vec<String>,
    steps: Vec<String>,
    /// Steps are asked for.
    tells: bool,
}

impl<'r> Walker<'r> {
    /// Of these rules.
    #[must_use]
    pub fn of(ruleset: &'r Ruleset) -> Self {
        let remembers =
            ruleset.rules().any(|rule| rule.matches.iter().any(|used| !used.body.repeats()));
        Self { ruleset, memories: Memories::of(ruleset), remembers }
    }

    /// The walk of one table at a hook; `None` where no such packet can be made.
    pub fn table(&mut self, table: usize, hook: Hook, values: &Values) -> Option<Walked> {
        if self.remembers {
            self.memories = Memories::of(self.ruleset);
        }
        walked_after(&mut self.memories, self.ruleset, (table, hook), values)
    }

    /// What becomes of a packet that comes in, or that the host sends; `None` where that cannot be told.
    pub fn whole(&mut self, is_sent: bool, sample: &Sample) -> Option<End> {
        self.through(is_sent, sample, false).0
    }

    /// The same in words: what each table does with it, and by what.
    pub fn told(&mut self, is_sent: bool, sample: &Sample) -> String {
        let (end, steps) = self.through(is_sent, sample, true);
        let end = match end {
            Some(End { fate, translations, .. }) if translations.is_empty() => fate.to_string(),
            Some(End { fate, translations, .. }) => format!("{fate} ({})", translations.join(", ")),
            None => "not to be told".to_owned(),
        };
        format!("{end}: {}", steps.join("; "))
    }

    fn through(
        &mut self,
        is_sent: bool,
        sample: &Sample,
        tells: bool,
    ) -> (Option<End>, Vec<String>) {
        if self.remembers {
            self.memories = Memories::of(self.ruleset);
        }
        let mut place = Place {
            values: sample.values.clone(),
            to_host: sample.to_host,
            untracked: false,
            translations: Vec::new(),
            steps: Vec::new(),
            tells,
        };
        let fate = if is_sent {
            self.along(&[Hook::Output, Hook::Postrouting], &mut place)
        } else {
            self.arriving(&mut place, &sample.values.output)
        };
        let (translations, to_host) = (place.translations, place.to_host);
        let end = fate.map(|fate| End { fate, translations, to_host });
        (end, place.steps)
    }

    fn arriving(&mut self, place: &mut Place, output: &str) -> Option<Fate> {
        place.values.output.clear();
        // A packet's time to live is given as FORWARD sees it.
        let ttl = place.values.number(Field::Ttl);
        if ttl > 0 && !place.to_host {
            place.values.set(Field::Ttl, ttl + 1);
        }
        let fate = self.along(&[Hook::Prerouting], place)?;
        if fate != Fate::Accept {
            return Some(fate);
        }
        if place.to_host {
            return self.along(&[Hook::Input], place);
        }
        output.clone_into(&mut place.values.output);
        let ttl = place.values.number(Field::Ttl);
        place.values.set(Field::Ttl, ttl.saturating_sub(1));
        self.along(&[Hook::Forward, Hook::Postrouting], place)
    }

    /// Through the tables of some hooks: what ends its way, if anything does.
    fn along(&mut self, hooks: &[Hook], place: &mut Place) -> Option<Fate> {
        for hook in hooks {
            let kinds = self.ruleset.family.tables().iter();
            let mut turns: Vec<(i32, &str)> =
                kinds.filter_map(|kind| Some((kind.priority(*hook)?, kind.name))).collect();
            turns.sort_unstable();
            for (priority, name) in turns {
                let found = self.ruleset.tables.iter().position(|table| table.name == name);
                let Some(table) = found else { continue };
                let fate = self.stage(table, *hook, priority < CONNTRACK, place)?;
                if fate != Fate::Accept {
                    return Some(fate);
                }
            }
        }
        Some(Fate::Accept)
    }

    fn stage(
        &mut self,
        table: usize,
        hook: Hook,
        is_before_tracking: bool,
        place: &mut Place,
    ) -> Option<Fate> {
        let mut values = place.values.clone();
        // Before tracking no packet has a connection, which tests of states call INVALID.
        if is_before_tracking {
            values.state = CtState::Invalid;
        } else if place.untracked {
            values.state = CtState::Untracked;
        }
        let is_nat = self.ruleset.tables[table].name == TableKind::NAT;
        if is_nat && values.state != CtState::New {
            return Some(Fate::Accept);
        }
        let walked = walked_after(&mut self.memories, self.ruleset, (table, hook), &values)?;
        if place.tells {
            place.steps.push(self.words(table, hook, &walked));
        }
        let (verdict, by) = walked.verdict?;
        let after = walked.after?;
        place.untracked |= after.untracked;
        for (field, number) in after.numbers {
            place.values.set(field, number);
        }
        match verdict {
            Verdict::Accept if is_nat => {
                let target = self.translating(&walked.hits, by);
                translate(target, hook, place).then_some(Fate::Accept)
            }
            Verdict::Accept => Some(Fate::Accept),
            Verdict::Drop => Some(Fate::Drop),
            Verdict::Reject => {
                let Some(By::Rule(at)) = by else { return None };
                Some(Fate::Reject(target_text(target_of(self.rule(at))?)))
            }
        }
    }

    /// The target of a rule of nat that a packet met and that translates.
    fn translating(&self, hits: &[RuleRef], by: Option<By>) -> Option<&'r TargetUse> {
        let last = match by {
            Some(By::Rule(at)) => Some(at),
            _ => None,
        };
        let met = hits.iter().copied().chain(last);
        met.filter_map(|at| target_of(self.rule(at))).find(|target| target.body.translates())
    }

    fn rule(&self, at: RuleRef) -> &'r Rule {
        let ruleset: &'r Ruleset = self.ruleset;
        &ruleset.tables[at.table as usize].chains[at.chain as usize].rules[at.rule as usize]
    }

    fn words(&self, table: usize, hook: Hook, walked: &Walked) -> String {
        let table = &self.ruleset.tables[table];
        let verdict = match walked.verdict {
            None => "not to be told".to_owned(),
            Some((verdict, Some(By::Rule(at) | By::HotDrop(at)))) => {
                let (chain, rule) = (&table.chains[at.chain as usize], self.rule(at));
                let text = print_rule(self.ruleset.family, table, chain, rule);
                format!("{verdict:?} by line {}: {text}", rule.line)
            }
            Some((verdict, Some(By::Policy { chain, .. }))) => {
                format!("{verdict:?} by the policy of {}", table.chains[chain as usize].name)
            }
            Some((verdict, None)) => format!("{verdict:?}"),
        };
        format!("{} {hook:?} {verdict}", table.name)
    }
}

fn target_of(rule: &Rule) -> Option<&TargetUse> {
    match &rule.action {
        Action::Target(target) => Some(target),
        _ => None,
    }
}

/// What becomes of a flow's first packet; whether that can be told. Without the host's addresses, whatever a packet is
/// sent on to is another host's.
fn translate(target: Option<&TargetUse>, hook: Hook, place: &mut Place) -> bool {
    let Some(target) = target else { return true };
    place.translations.push(target_text(target));
    if !matches!(hook, Hook::Prerouting | Hook::Output) {
        return true;
    }
    let mapping = target.body.mapping().filter(|it| it.side == Side::Destination);
    let Some(mapping) = mapping.filter(|it| !it.redirects) else { return false };
    if let Some([first, last]) = mapping.range.addresses {
        if first != last {
            return false;
        }
        let number = match first {
            IpAddr::V4(address) => u128::from(u32::from(address)),
            IpAddr::V6(address) => address.into(),
        };
        place.values.set(Field::Destination, number);
        if place.values.number(Field::DestinationType) != 0 {
            place.values.set(Field::DestinationType, UNICAST);
        }
        place.to_host = false;
    }
    let protocol = place.values.number(Field::Protocol) as u8;
    match mapping.range.ports.filter(|_| has_ports(protocol)) {
        None => true,
        Some(ports) if ports.first == ports.last && ports.base.is_none() => {
            place.values.set(Field::DestinationPort, ports.first.into());
            true
        }
        Some(_) => false,
    }
}

/// The type of another host's address.
const UNICAST: u128 = 1;
