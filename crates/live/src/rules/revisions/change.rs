//! A change of rules on its way to the workers.

use std::collections::BTreeMap;
use std::sync::Arc;

use rules::model::{Family, Rule, Ruleset};
use rules::revision::Revision;

use super::history::{Brought, History, Peer};
use super::text;
use crate::config::{OwnTable, Settings};
use crate::forward::steering::Steering;
use crate::rules::load::{RulesText, can_answer, has_addresses};
use crate::rules::own;
use dataplane::publish::{PublishError, Published};
use dataplane::{Program, Start};

/// Rules, read.
#[derive(Debug)]
pub(super) enum Rules {
    /// In place of all of their families; with these sets and this access list, or those that there are.
    Whole(Vec<Ruleset>, Option<Box<Start>>),
    /// Changes to those of a family.
    Changes(RulesText),
}

/// How a change comes about.
#[derive(Debug, Default)]
pub(super) struct Made {
    /// What errors call its text.
    pub(super) name: String,
    /// What the log says of it.
    pub(super) what: String,
    pub(super) who: Option<Peer>,
    pub(super) dry_run: bool,
    pub(super) confirm: Option<u64>,
    /// What is odd about the rules.
    pub(super) warnings: Vec<String>,
    /// Hashes of the files, where they were read for it.
    pub(super) files: Option<Vec<(Family, String)>>,
    /// Versions of an earlier revision, whose rules they are.
    pub(super) versions: Option<BTreeMap<Family, u64>>,
}

/// What a change does to rules, by numbers of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) new: usize,
    pub(super) gone: usize,
    pub(super) kept: usize,
}

impl Rules {
    /// Publishes them after program `expected`, if the program that they make is accepted.
    pub(super) fn publish(
        self,
        expected: u64,
        published: &Published,
        accept: impl FnOnce(&Program) -> Result<(), String>,
    ) -> Result<u64, PublishError> {
        match self {
            Self::Whole(rulesets, beside) => {
                let with = |program: Program| match beside.map(|beside| *beside) {
                    Some(Start { sets, bans, .. }) => program.with(sets, bans),
                    None => program,
                };
                published.replace_if(expected, rulesets, with, accept)
            }
            Self::Changes(RulesText { family, text, .. }) => {
                published.commit_text_if(expected, family, &text, accept)
            }
        }
    }

    /// What changes rules, where it does not replace them.
    pub(super) fn changes(&self) -> Option<&Arc<str>> {
        match self {
            Self::Whole(..) => None,
            Self::Changes(text) => Some(&text.text),
        }
    }

    /// Makes complete rules take over the own tables of the run from a program.
    pub(super) fn keeping(self, own: &[OwnTable], program: &Program) -> Self {
        match self {
            Self::Whole(mut rulesets, beside) => {
                own::keep(own, &mut rulesets, program);
                Self::Whole(rulesets, beside)
            }
            changes => changes,
        }
    }

    /// The same, with no rules for the families that have some and are not among these.
    pub(super) fn without_others(self, published: &Published) -> Self {
        let Self::Whole(mut rulesets, beside) = self else { return self };
        let program = published.program();
        for revision in program.revisions() {
            let (family, backend) = (revision.family(), revision.backend());
            if rulesets.iter().all(|ruleset| ruleset.family != family) {
                rulesets.push(Ruleset { family, backend, tables: Vec::new() });
            }
        }
        Self::Whole(rulesets, beside)
    }
}

/// The revisions of a program, each with the rules that are new since another one.
fn changed<'p>(
    old: &'p Program,
    new: &'p Program,
) -> impl Iterator<Item = (&'p Arc<Revision>, &'p [Arc<Rule>])> {
    new.revisions().map(|next| {
        let is_same = old.revision(next.family()).is_some_and(|before| Arc::ptr_eq(before, next));
        (next, if is_same { &[] } else { next.made() })
    })
}

impl Counted {
    /// From one program to the next.
    pub(super) fn between(old: &Program, new: &Program) -> Self {
        let mut counted = Self::default();
        for (next, made) in changed(old, new) {
            let (before, new) = (old.revision(next.family()), made.len());
            let kept = next.rule_count().saturating_sub(new);
            let had = before.map_or(0, |before| before.rule_count());
            counted.new += new;
            counted.kept += kept;
            counted.gone += had.saturating_sub(kept);
        }
        counted
    }
}

/// Refuses rules that no wire of this run can do, or that its workers cannot share as they do. Of those in force that was
/// found before, so it looks at rules that are new.
pub(super) fn fits(
    old: &Program,
    new: &Program,
    name: &str,
    settings: &Settings,
    steering: &Steering,
) -> Result<(), String> {
    let has_rules = new.revisions().filter(|revision| revision.tables().next().is_some());
    let families: Vec<Family> = has_rules.map(|revision| revision.family()).collect();
    can_answer(settings, &families).map_err(|error| error.to_string())?;
    for (revision, made) in changed(old, new) {
        let made = made.iter().map(AsRef::as_ref);
        has_addresses(settings, revision.family(), made)
            .map_err(|what| format!("{name}:{what}"))?;
    }
    steering.suits_program(new)
}

/// What the families have in a program that comes after another one, whose revision is the last of a history. `text` is
/// of changes to one family's rules, where that is what made it.
pub(super) fn brought(
    old: &Program,
    new: &Program,
    text: Option<&Arc<str>>,
    (history, own): (&History, &[OwnTable]),
) -> BTreeMap<Family, Brought> {
    let brought = |revision: &Arc<Revision>| {
        let family = revision.family();
        let is_same = old.revision(family).is_some_and(|before| Arc::ptr_eq(before, revision));
        let version = history.version(family).filter(|_| is_same).map(Brought::Version);
        let change = text.filter(|text| history.takes_change(family, text.len()));
        let change = change.map(|text| Brought::Change(Arc::clone(text)));
        let printed = || Some(Brought::Text(text::printed(revision, own)?.into()));
        Some((family, version.or(change).or_else(printed)?))
    };
    new.revisions().filter_map(brought).collect()
}

/// The complete rules of a program, of each family that has some.
pub(super) fn texts(program: &Program, own: &[OwnTable]) -> BTreeMap<Family, Brought> {
    let text = |revision: &Arc<Revision>| {
        Some((revision.family(), Brought::Text(text::printed(revision, own)?.into())))
    };
    program.revisions().filter_map(text).collect()
}
