//! [`reach`]: asks rules, way by way and state by state.

use std::collections::BTreeSet;

use conntrack::CtState;
use rules::TableKind;
use rules::eval::By;
use rules::model::{Hook, Ruleset};
use rules::predicate::Field;

use super::answer::{Closed, Judge, Judged, Reach, Reaching, States};
use super::question::Question;
use super::translation::{self, decider};
use super::way;
use crate::diagram::{Region, TooLarge};
use crate::diff::{Through, cause, sent_on_elsewhere, through};
use crate::meeting::Meeting;
use crate::packet::{spec, spec_to_route};
use crate::space::{Part, Preferred, Space};

/// Regions that are listed of one way and group of states.
const MOST_REGIONS: usize = 100;

/// Packets of a region that are judged until one is let through.
const TRIED: u64 = 8;

/// Asks rules of one family; `judge` walks packet specs along their whole way.
pub fn reach(ruleset: &Ruleset, question: &Question, judge: &mut Judge<'_>) -> Reach {
    let ways = question.ways();
    let both = ways.contains(&Hook::Input) && ways.contains(&Hook::Forward);
    let either_way = question.own.is_none() && both;
    let inputs = question.inputs(crate::space::named_in(ruleset));
    let follows_routes = inputs.is_some();
    let mut all = Reach { either_way, follows_routes, ..Reach::default() };
    for is_sent in [false, true] {
        let hooks: Vec<Hook> =
            ways.iter().copied().filter(|hook| (*hook == Hook::Output) == is_sent).collect();
        let Some(first) = hooks.first().copied() else { continue };
        let links = inputs
            .as_ref()
            .map_or_else(Vec::new, |inputs| [&inputs[..], &question.interfaces()].concat());
        let sets = question.sets.as_ref();
        let unrouted = || Space::among(&[ruleset], &question.host, sets, &links);
        let mut space = unrouted();
        if let Some(inputs) = &inputs
            && space.follow(inputs, first) == Err(TooLarge)
        {
            (all.follows_routes, all.is_unrouted) = (false, true);
            space = unrouted();
        }
        let groups = match space.is_tracked() {
            true => &[States::New, States::Established][..],
            false => &[States::Any],
        };
        let (space, all) = (&mut space, &mut all);
        let mut asking = Asking { ruleset, question, space, judge: &mut *judge, all, hooks };
        let done = groups.iter().try_for_each(|states| asking.of(is_sent, *states));
        if done == Err(TooLarge) {
            let hooks = std::mem::take(&mut asking.hooks);
            all.too_large.extend(hooks);
        }
    }
    all
}

struct Asking<'a, 'j> {
    ruleset: &'a Ruleset,
    question: &'a Question,
    space: &'a mut Space,
    judge: &'a mut Judge<'j>,
    all: &'a mut Reach,
    /// Hooks of the filter table that are asked for.
    hooks: Vec<Hook>,
}

/// What packets are let through by, to be asked by the packets.
struct Led<'t> {
    through: &'t Through,
    sent_on: Meeting,
    /// Packets that are given another source, by what gives it.
    leaving: Vec<(By, Region)>,
    by_leaving: Meeting,
    /// Targets that some packets' fate depends on, each once.
    open: BTreeSet<&'t str>,
}

/// What a listed region is about.
#[derive(Clone, Copy)]
struct About {
    hook: Hook,
    states: States,
    /// All that come.
    come: Region,
    /// Packets whose own destination is this way.
    within: Region,
    is_certain: bool,
    by: Option<By>,
    sent_on: Option<By>,
    leaves: Option<By>,
    /// Holds whatever tests say that can only be asked.
    is_told: bool,
}

impl<'t> Led<'t> {
    fn of(space: &mut Space, through: &'t Through) -> Result<Self, TooLarge> {
        let leaving = through.leaving.iter();
        let leaving = leaving.map(|(by, region)| Ok((*by, sent_on_elsewhere(space, *region)?)));
        let leaving: Vec<(By, Region)> = leaving.collect::<Result<_, TooLarge>>()?;
        let mut meeting = |all: &[(By, Region)]| {
            let regions = all.iter().map(|(_, region)| *region).collect();
            Meeting::of(&mut space.diagrams, regions)
        };
        let (sent_on, by_leaving) = (meeting(&through.sent_on), meeting(&leaving));
        let open = through.open.iter().map(|(target, _)| &**target).collect();
        Ok(Self { through, sent_on, leaving, by_leaving, open })
    }
}

impl Asking<'_, '_> {
    fn of(&mut self, is_sent: bool, states: States) -> Result<(), TooLarge> {
        let come = way::packets(self.space, self.question, is_sent, states)?;
        let asked = self.question.arriving(self.space)?;
        let through = through(self.space, self.ruleset, is_sent, come, asked)?;
        // Packets that arrive at the place in question, and packets that were sent there.
        let sent_there = self.space.diagrams.and(through.accepted, asked)?;
        let accepted = self.space.diagrams.or(through.arriving, sent_there)?;
        let all = sent_on_elsewhere(self.space, accepted)?;
        let sure = self.space.for_all_answers(all)?;
        let mut may = self.space.for_some_answers(all)?;
        for (_, region) in &through.open {
            let open = self.space.diagrams.and(*region, asked)?;
            let open = self.space.for_some_answers(open)?;
            may = self.space.diagrams.or(may, open)?;
        }
        may = self.space.diagrams.without(may, sure)?;
        let led = Led::of(self.space, &through)?;
        for (is_certain, left) in [(true, sure), (false, may)] {
            for hook in self.hooks.clone() {
                let within = self.within(come, hook)?;
                let (by, sent_on, leaves) = (None, None, None);
                let mut left = left;
                // Packets that may be let through are listed for some answers only.
                for is_told in if is_certain { &[true, false][..] } else { &[false] } {
                    let is_told = *is_told;
                    let about = About {
                        hook,
                        states,
                        come,
                        within,
                        is_certain,
                        by,
                        sent_on,
                        leaves,
                        is_told,
                    };
                    self.list(&led, (accepted, &mut left), &about)?;
                }
            }
        }
        if self.all.regions.is_empty() && self.all.stray.is_none() {
            let asked = self.space.diagrams.and(come, asked)?;
            let hook = self.hooks[0];
            self.all.stray = self.probe((hook, states), asked);
        }
        for hook in self.hooks.clone() {
            let here = |it: &Reaching| it.way == hook && it.states == states;
            if !self.all.regions.iter().any(here) {
                let within = self.within(come, hook)?;
                let asked = self.space.diagrams.and(within, asked)?;
                let probe = self.probe((hook, states), asked);
                // Nobody asks for what cannot come this way.
                self.all.closed.extend(probe.map(|probe| Closed {
                    way: hook,
                    states,
                    probe: Some(probe),
                }));
            }
        }
        if !self.all.regions.is_empty() || !self.all.closed.is_empty() {
            self.all.stray = None;
        }
        Ok(())
    }

    /// The packets, among those in question, whose own destination is this way.
    fn within(&mut self, come: Region, hook: Hook) -> Result<Region, TooLarge> {
        if hook == Hook::Output {
            return Ok(come);
        }
        let way = u128::from(hook == Hook::Forward);
        let way = self.space.range(Part::Way, way, way)?;
        let here = self.space.diagrams.and(come, way)?;
        // What routes refuse does not come, whatever mark and type of service it gets before they are asked.
        let mut routed = self.space.routed().unwrap_or(Region::ALL);
        for field in [Field::Mark, Field::Tos] {
            routed = self.space.with_any(routed, Part::Field(field))?;
        }
        let routed = self.space.for_some_answers(routed)?;
        self.space.diagrams.and(here, routed)
    }

    /// Lists packets of `left` that take a way, by what lets them through, where they are sent on to and what gives
    /// them another source.
    fn list(
        &mut self,
        led: &Led<'_>,
        (all, left): (Region, &mut Region),
        about: &About,
    ) -> Result<(), TooLarge> {
        let through = led.through;
        let deciders = through.filtered.iter().filter(|(hook, ..)| *hook == about.hook);
        for (_, by, region) in deciders {
            let here = self.space.diagrams.and(all, *region)?;
            let mut here = sent_on_elsewhere(self.space, here)?;
            let mut from = 0;
            while let Some(place) = led.sent_on.next(&mut self.space.diagrams, from, here) {
                from = place + 1;
                let (sent_on, region) = &through.sent_on[place];
                let part = self.space.diagrams.and(here, *region)?;
                here = self.space.diagrams.without(here, *region)?;
                let which = About { by: Some(*by), sent_on: Some(*sent_on), ..*about };
                self.leaving(led, &which, part, left)?;
            }
            self.leaving(led, &About { by: Some(*by), ..*about }, here, left)?;
        }
        // Where the filter has no chain, or a target on the way decides.
        let way = self.within(Region::ALL, about.hook)?;
        let mut rest = self.space.diagrams.and(*left, way)?;
        let filter = self.ruleset.table(TableKind::FILTER);
        if filter.is_some_and(|filter| filter.base_chain(about.hook).is_some()) {
            let mut open = Region::NONE;
            for (_, region) in through.open.iter().filter(|_| !about.is_certain) {
                let some = self.space.for_some_answers(*region)?;
                open = self.space.diagrams.or(open, some)?;
            }
            rest = self.space.diagrams.and(rest, open)?;
        }
        self.leaving(led, about, rest, left)
    }

    /// Lists packets of one decider by what gives them another source.
    fn leaving(
        &mut self,
        led: &Led<'_>,
        about: &About,
        mut part: Region,
        left: &mut Region,
    ) -> Result<(), TooLarge> {
        let mut from = 0;
        while let Some(place) = led.by_leaving.next(&mut self.space.diagrams, from, part) {
            from = place + 1;
            let (by, region) = led.leaving[place];
            let some = self.space.diagrams.and(part, region)?;
            part = self.space.diagrams.without(part, region)?;
            self.part(led, &About { leaves: Some(by), ..*about }, some, left)?;
        }
        self.part(led, about, part, left)
    }

    /// Lists packets of one decider, unless they were before.
    fn part(
        &mut self,
        led: &Led<'_>,
        about: &About,
        part: Region,
        left: &mut Region,
    ) -> Result<(), TooLarge> {
        if part.is_empty() || left.is_empty() {
            return Ok(());
        }
        let some = match about.is_told {
            true => self.space.for_all_answers(part)?,
            false => self.space.for_some_answers(part)?,
        };
        let some = self.space.diagrams.and(some, *left)?;
        if some.is_empty() {
            return Ok(());
        }
        *left = self.space.diagrams.without(*left, some)?;
        let mut depends: Vec<String> = Vec::new();
        if !about.is_certain || !about.is_told {
            let names = self.space.asked_in(part);
            depends.extend(names.iter().map(|name| cause(name)));
            if about.by.is_none() && !about.is_certain {
                depends.extend(led.open.iter().map(|target| (*target).to_owned()));
            }
            depends.sort_unstable();
            depends.dedup();
        }
        self.add(about, some, &depends)
    }

    fn add(&mut self, about: &About, part: Region, depends: &[String]) -> Result<(), TooLarge> {
        let (hook, states) = (about.hook, about.states);
        let of_group = |it: &&Reaching| it.way == hook && it.states == states;
        let room = MOST_REGIONS.saturating_sub(self.all.regions.iter().filter(of_group).count());
        let within = match about.sent_on {
            Some(_) => about.come,
            None => {
                let asked = self.question.arriving(self.space)?;
                self.space.diagrams.and(about.within, asked)?
            }
        };
        let [shown, within] = [self.without_ways(part)?, self.without_ways(within)?];
        let within = self.space.diagrams.or(within, shown)?;
        let pieces = self.space.pieces(shown, within, room);
        let mut left = shown;
        self.all.more |= pieces.more;
        for piece in pieces.pieces {
            let piece = self.space.widened(piece, shown, within)?;
            let inside = self.space.of_piece(&piece)?;
            let new = self.space.diagrams.and(inside, left)?;
            // Pieces before it may have all that it has.
            if new.is_empty() {
                continue;
            }
            left = self.space.diagrams.without(left, inside)?;
            let region = self.space.diagrams.and(new, part)?;
            let witness = self.witness((hook, states), region);
            let is_shown = witness.as_ref().is_some_and(|(_, judged)| judged.verdict == "accept");
            let mut depends = depends.to_vec();
            if let Some((_, judged)) = witness.as_ref().filter(|_| about.is_certain && !is_shown) {
                depends.extend(judged.because.iter().cloned());
            }
            self.all.regions.push(Reaching {
                way: hook,
                states,
                is_certain: about.is_certain && is_shown,
                piece,
                translated: about.sent_on.map(|by| translation::shown(self.ruleset, by)),
                leaves_as: about.leaves.iter().map(|by| decider(self.ruleset, *by)).collect(),
                by: about.by.map(|by| decider(self.ruleset, by)),
                depends,
                witness: witness.filter(|(_, judged)| !judged.differs),
            });
        }
        Ok(())
    }

    /// A region without what follows from its addresses: the way, and the types that the host tells.
    fn without_ways(&mut self, region: Region) -> Result<Region, TooLarge> {
        let mut region = self.space.with_any(region, Part::Way)?;
        if self.question.own.is_none() {
            return Ok(region);
        }
        if self.space.routed().is_some() {
            region = self.space.with_any(region, Part::Output)?;
        }
        let region = self.space.with_any(region, Part::Field(Field::SourceType))?;
        self.space.with_any(region, Part::Field(Field::DestinationType))
    }

    /// A packet of a region that a walk lets through, or the first that it judges.
    fn witness(&mut self, way: (Hook, States), region: Region) -> Option<(String, Judged)> {
        let mut first: Option<(String, Judged)> = None;
        let named = self.by_names(region).unwrap_or(region);
        for seed in 0..TRIED {
            let region = if seed < TRIED / 2 { named } else { region };
            let Some(words) = self.sample(way, region, seed) else { continue };
            let judged = (self.judge)(way.1, &words);
            let passes = |judged: &Judged| judged.verdict == "accept";
            if passes(&judged) && !judged.differs {
                return Some((words, judged));
            }
            // A packet that passes and is no example says more than a packet that does not pass.
            let is_better = first.as_ref().is_none_or(|(_, known)| !passes(known));
            if is_better && (first.is_none() || passes(&judged)) {
                first = Some((words, judged));
            }
        }
        first
    }

    /// Packets of a region that come in and go out by interfaces that something names, as far as it has any.
    fn by_names(&mut self, mut region: Region) -> Result<Region, TooLarge> {
        for part in [Part::Input, Part::Output] {
            for kind in self.space.named_interfaces() {
                let by = self.space.range(part, kind, kind)?;
                let some = self.space.diagrams.and(region, by)?;
                if !some.is_empty() {
                    region = some;
                    break;
                }
            }
        }
        Ok(region)
    }

    fn probe(&mut self, way: (Hook, States), region: Region) -> Option<(String, Judged)> {
        let region = self.by_names(region).unwrap_or(region);
        let words = self.sample(way, region, 0)?;
        let judged = (self.judge)(way.1, &words);
        (!judged.differs).then_some((words, judged))
    }

    fn sample(&self, (hook, states): (Hook, States), region: Region, seed: u64) -> Option<String> {
        let family = self.space.family();
        let preferred = match seed {
            0 => Preferred::usual(family),
            _ => Preferred::drawn(family, seed),
        };
        let preferred = match states {
            States::Established => {
                const ACK: u128 = 0x10;
                let preferred = preferred.with(Part::Field(Field::TcpFlags), ACK);
                preferred.with_state(CtState::Established)
            }
            States::New | States::Any => preferred,
        };
        let mut values = self.space.sample(region, &preferred)?.values;
        if hook == Hook::Input {
            values.output.clear();
        }
        self.question.name_interfaces(self.space, &mut values);
        // Routes find the way of what comes in themselves, unless one is given.
        if self.space.routed().is_some() && hook != Hook::Output && self.question.way.is_none() {
            return spec_to_route(family, hook, &values);
        }
        spec(family, hook, &values)
    }
}
