//! Counts what unknown verdicts depended on.
//!
//! Contract: a burst without an unknown verdict takes no lock. [`MOST`] causes are kept, in the words of the rule;
//! what comes after those counts as one.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use rules::Iface;
use rules::eval::{self, Cause, RuleRef};
use rules::model::{Action, Family};
use smallvec::SmallVec;

use dataplane::{Observer, Path, Program, Why};

/// Causes that are kept by name.
const MOST: usize = 256;

/// How often each cause left a verdict unknown.
#[derive(Debug, Default)]
pub(crate) struct Causes {
    counts: Mutex<BTreeMap<String, u64>>,
}

/// The causes of one burst, before they are put into the words of their rules.
pub(crate) type OfBurst = SmallVec<[(Option<Why>, u64); 8]>;

impl Causes {
    /// Adds the causes of a burst, all of whose packets went through one program.
    pub(crate) fn add(&self, of_burst: &mut OfBurst, program: &Program) {
        if of_burst.is_empty() {
            return;
        }
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        for (why, packets) in of_burst.drain(..) {
            let cause = why.map_or_else(|| "nothing named".to_owned(), |why| text(why, program));
            let is_room = counts.len() < MOST || counts.contains_key(&cause);
            *counts.entry(if is_room { cause } else { "others".to_owned() }).or_default() +=
                packets;
        }
    }

    pub(crate) fn read(&self) -> BTreeMap<String, u64> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Watches a packet for what may leave its verdict unknown: the first thing counts.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    family: Option<Family>,
    first: Option<Why>,
}

impl Seen {
    /// The first cause.
    pub(crate) fn first(&self) -> Option<Why> {
        self.first
    }

    /// Counts the packet's cause for its burst.
    pub(crate) fn count(&self, of_burst: &mut OfBurst) {
        match of_burst.iter_mut().find(|(why, _)| *why == self.first) {
            Some((_, packets)) => *packets += 1,
            None => of_burst.push((self.first, 1)),
        }
    }
}

impl eval::Observer for Seen {
    const SEES_RULES: bool = false;

    fn unknown(&mut self, at: RuleRef, cause: Cause) {
        if let Some(family) = self.family {
            self.first.get_or_insert(Why::Rule(family, at, cause));
        }
    }
}

impl Observer for Seen {
    fn starts(&mut self, family: Family, _: Path, _: Iface<'_>, _: Iface<'_>) {
        self.family = Some(family);
    }

    fn evaluates(&mut self, family: Family) {
        self.family = Some(family);
    }

    fn depends_on(&mut self, why: Why) {
        self.first.get_or_insert(why);
    }
}

/// A cause in the words of its rule.
fn text(why: Why, program: &Program) -> String {
    let Why::Rule(family, at, cause) = why else { return of_packet(why).to_owned() };
    let Some(rule) = program.rule(family, at) else { return "a rule".to_owned() };
    let what = match cause {
        Cause::Match(index) => match rule.matches.get(usize::from(index)) {
            Some(used) => format!("-m {}", used.name),
            None => "a match".to_owned(),
        },
        Cause::Target => match &rule.action {
            Action::Target(target) => format!("-j {}", target.name),
            _ => "its target".to_owned(),
        },
        Cause::Input => "-i".to_owned(),
        Cause::Output => "-o".to_owned(),
        Cause::Bytes => "bytes that are not known".to_owned(),
        Cause::Past => "what came before the packet".to_owned(),
        Cause::Steps | Cause::Patience | Cause::Stopped => "a walk that is too long".to_owned(),
    };
    match rule.line {
        0 => format!("{}: {what}", family.name()),
        line => format!("{} line {line}: {what}", family.name()),
    }
}

fn of_packet(why: Why) -> &'static str {
    match why {
        Why::Rule(..) => "a rule",
        Why::NotCaptured => "bytes that did not arrive",
        Why::Fragment => "a fragment",
        Why::Translation => "a translation",
        Why::Room => "room for a connection",
        Why::Tracker => "the tracker of its protocol",
        Why::Way | Why::Host(_) | Why::Unrecorded => "where it goes",
        Why::Size => "its size",
        Why::Foreign(_) => "another ruleset",
    }
}
