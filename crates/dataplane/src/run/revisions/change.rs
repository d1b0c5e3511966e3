//! A change of rules on its way to the workers.

use std::collections::BTreeMap;
use std::sync::Arc;

use access::list::Schedule;
use rules::ipset::Sets;
use rules::model::{Family, Ruleset};
use rules::revision::Revision;

use super::super::config::Settings;
use super::super::control::{Refusal, RefusalKind};
use super::super::load::{RulesText, can_answer, has_addresses};
use super::super::steering::Steering;
use super::history::Peer;
use super::text;
use crate::program::Program;
use crate::publish::{PublishError, Published};

/// Rules, read.
#[derive(Debug)]
pub(super) enum Rules {
    /// In place of all of their families; with these sets and this access list, or those that there are.
    Whole(Vec<Ruleset>, Option<Box<Beside>>),
    /// Changes to those of a family.
    Changes(RulesText),
}

/// What is in force beside rules.
#[derive(Debug)]
pub(super) struct Beside {
    pub(super) sets: Option<Sets>,
    pub(super) bans: Option<Schedule>,
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
                    Some(Beside { sets, bans }) => program.with(sets, bans),
                    None => program,
                };
                published.replace_if(expected, rulesets, with, accept)
            }
            Self::Changes(RulesText { family, text, .. }) => {
                published.commit_text_if(expected, family, &text, accept)
            }
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

impl Counted {
    /// From one program to the next.
    pub(super) fn between(old: &Program, new: &Program) -> Self {
        let mut counted = Self::default();
        for next in new.revisions() {
            let before = old.revision(next.family());
            let is_same = before.is_some_and(|before| Arc::ptr_eq(before, next));
            let new = if is_same { 0 } else { next.made().len() };
            let kept = next.rule_count().saturating_sub(new);
            let had = before.map_or(0, |before| before.rule_count());
            counted.new += new;
            counted.kept += kept;
            counted.gone += had.saturating_sub(kept);
        }
        counted
    }
}

/// Refuses rules that no wire of this run can do, or that its workers cannot share as they do.
pub(super) fn fits(
    program: &Program,
    name: &str,
    settings: &Settings,
    steering: &Steering,
) -> Result<(), String> {
    let rulesets = program.revisions().map(|revision| Arc::new(revision.ruleset()));
    let rulesets: Vec<_> = rulesets.collect();
    let has_rules = rulesets.iter().filter(|ruleset| !ruleset.tables.is_empty());
    let families: Vec<Family> = has_rules.map(|ruleset| ruleset.family).collect();
    can_answer(settings, &families).map_err(|error| error.to_string())?;
    for ruleset in &rulesets {
        has_addresses(settings, ruleset).map_err(|what| format!("{name}:{what}"))?;
    }
    steering.suits(&rulesets)
}

/// The complete rules of a program, of each family that has some.
pub(super) fn texts(program: &Program) -> BTreeMap<Family, String> {
    let text = |revision: &Arc<Revision>| Some((revision.family(), text::printed(revision)?));
    program.revisions().filter_map(text).collect()
}

/// Why a change is refused.
pub(super) fn refused(error: &PublishError, name: &str) -> Refusal {
    match error {
        PublishError::Load(error) => {
            Refusal { kind: RefusalKind::Text, what: format!("{name}:{error}") }
        }
        PublishError::Refused(refused) => Refusal::refused(format!("{name}: {refused}")),
        error => Refusal::refused(error),
    }
}
