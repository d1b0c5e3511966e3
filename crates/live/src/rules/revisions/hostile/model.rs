//! [`Model`]: what a journal holds after what was acknowledged, as docs/control.md says it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rules::model::Family;

use super::super::history::MOST_REVISIONS;

/// Milliseconds that a confirmation may be waited for.
const MOST_WAIT: u64 = 3_600_000;

/// The rules of each family that has some, by their numbers.
pub(super) type Rules = BTreeMap<Family, Vec<u64>>;

/// What a file of rules holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum File {
    /// A rule of this number.
    Rule(u64),
    /// A chain without rules.
    Empty,
    /// No rules: a start that needs it is refused.
    Broken,
}

/// The files that a configuration names.
pub(super) type Files = BTreeMap<Family, File>;

/// Milliseconds by the machine's own clock, and by the wall's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) own: u64,
    pub(super) wall: u64,
}

/// What was acknowledged.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Model {
    /// Rules of all revisions, from the first one on.
    revisions: Vec<Arc<Rules>>,
    /// When the last one goes back, if it waits for its confirmation.
    pub(super) waits: Option<Until>,
    /// Files as they were read.
    read: Files,
    pub(super) banned: BTreeSet<u8>,
    /// Members of the set.
    pub(super) members: BTreeSet<u8>,
}

/// When a revision goes back: by the machine's clock, which counts while a run goes on, and by the wall's after that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Until {
    pub(super) own: u64,
    wall: u64,
}

impl Until {
    fn after(wait: u64, now: Moment) -> Self {
        Self { own: now.own + wait, wall: now.wall + wait }
    }
}

impl Model {
    pub(super) fn number(&self) -> u64 {
        self.revisions.len() as u64
    }

    /// The rules of a revision that is kept.
    pub(super) fn rules(&self, number: u64) -> Option<&Rules> {
        let is_kept = (self.oldest()..=self.number()).contains(&number);
        self.revisions.get(number.checked_sub(1)? as usize).filter(|_| is_kept).map(|it| &**it)
    }

    pub(super) fn oldest(&self) -> u64 {
        self.number().saturating_sub(MOST_REVISIONS as u64 - 1).max(1)
    }

    pub(super) fn in_force(&self) -> &Rules {
        self.revisions.last().expect("a run has a revision")
    }

    fn with(mut self, rules: Rules) -> Self {
        self.revisions.push(Arc::new(rules));
        self
    }

    /// After rules were put in place of those of their families.
    pub(super) fn apply(self, change: Rules, confirm: Option<u64>, now: Moment) -> Self {
        let mut rules = self.in_force().clone();
        rules.extend(change);
        let wait = |seconds: u64| Until::after((seconds * 1000).min(MOST_WAIT), now);
        Self { waits: confirm.map(wait), ..self.with(rules) }
    }

    /// After what waits was confirmed.
    pub(super) fn confirm(self) -> Self {
        Self { waits: None, ..self }
    }

    /// After going back to a revision: `None` where it is not kept, or waits itself.
    pub(super) fn rollback(self, to: Option<u64>) -> Option<Self> {
        let to = to.unwrap_or(self.number() - 1);
        let is_waiting = self.waits.is_some() && to == self.number();
        let rules = self.rules(to).filter(|_| !is_waiting)?.clone();
        Some(Self { waits: None, ..self.with(rules) })
    }

    /// After the files were read again.
    pub(super) fn reload(self, files: &Files) -> Self {
        let mut rules = self.in_force().clone();
        files.iter().for_each(|(family, file)| read(&mut rules, *family, Some(file)));
        Self { read: files.clone(), ..self.with(rules) }
    }

    /// Families whose files have changed since they were read, or are no longer named.
    fn changed(&self, files: &Files) -> Vec<Family> {
        let differs = |family: &Family| self.read.get(family) != files.get(family);
        Family::ALL.into_iter().filter(differs).collect()
    }

    /// Whether a start with these files is refused.
    pub(super) fn refuses(&self, files: &Files) -> bool {
        self.changed(files).iter().any(|family| files.get(family) == Some(&File::Broken))
    }

    /// After a start with these files. What waits goes on waiting, until the time that the journal has; files that have
    /// changed are in force for the families that do not wait, and part of what is gone back to for those that do.
    pub(super) fn start(mut self, files: &Files, now: Moment) -> Self {
        if let Some(Until { own, wall }) = &mut self.waits {
            *own = now.own + wall.saturating_sub(now.wall).min(MOST_WAIT);
        }
        let changed = self.changed(files);
        let last = self.revisions.last().map(|last| (**last).clone()).unwrap_or_default();
        let is_over = self.waits.is_some_and(|until| until.own <= now.own);
        if changed.is_empty() && !is_over && self.number() > 0 {
            return self;
        }
        let before = || self.rules(self.number() - 1).expect("the one before is kept").clone();
        let mut base = if self.waits.is_some() { before() } else { last.clone() };
        let differs = |family: &Family| last.get(family) != base.get(family);
        let waiting: Vec<Family> = Family::ALL.into_iter().filter(differs).collect();
        changed.iter().for_each(|family| read(&mut base, *family, files.get(family)));
        self.read.clone_from(files);
        match self.waits {
            Some(_) if !is_over => {
                let mut next = base.clone();
                for family in waiting {
                    next.remove(&family);
                    next.extend(last.get(&family).map(|rules| (family, rules.clone())));
                }
                self.with(base).with(next)
            }
            _ => Self { waits: None, ..self.with(base) },
        }
    }
}

/// Puts the rules of a file in place of those of its family.
fn read(rules: &mut Rules, family: Family, file: Option<&File>) {
    match file {
        Some(File::Rule(number)) => rules.insert(family, vec![*number]),
        Some(File::Empty) => rules.insert(family, Vec::new()),
        Some(File::Broken) | None => rules.remove(&family),
    };
}
