//! [`Rules`]: the part of a run that owns its rules, its access list and its sets, and their shadow.
//!
//! Contract: any thread may use it. One change of rules is made at a time (the turn of [`Revisions`]), and one of bans or sets (the lock
//! of [`Overrides`](crate::rules::overrides), which a reload holds, too); what is acknowledged is
//! in force and, with a journal, on disk. A method that needs workers takes them as an argument: their locks come after
//! the locks of rules.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use access::list::{Change, List};
use conntrack::Listing;
use dataplane::Program;
use dataplane::publish::Published;
use rules::ipset::{EditError, Edited};
use rules::model::{Family, Ruleset};

use crate::answers::{self, Applied};
use crate::forward::clock::now;
use crate::forward::shadow::{self, Shadow};
use crate::forward::steering::Steering;
use crate::rules::journal::JournalError;
use crate::rules::revisions::{Asked, ChangeError, InForce, Peer, RevisionStatus, Revisions};
use crate::workers::owner::Workers;

/// The rules in force, and what changes them.
#[derive(Debug)]
pub(crate) struct Rules {
    published: Published,
    steering: Steering,
    /// The revisions of a run that has a configuration.
    revisions: Option<Revisions>,
}

impl Rules {
    pub(crate) fn new(
        published: Published,
        steering: Steering,
        revisions: Option<Revisions>,
    ) -> Self {
        Self { published, steering, revisions }
    }

    /// The programs that workers follow.
    pub(crate) fn published(&self) -> &Published {
        &self.published
    }

    /// Whether these rules may replace those in force while workers share connections as they do.
    ///
    /// # Errors
    /// Why not: it takes a new start.
    pub(crate) fn suits(&self, rulesets: &[Arc<Ruleset>]) -> Result<(), String> {
        self.steering.suits(rulesets)
    }

    /// Reads rules, sets and bans again whenever `asked` is raised.
    pub(crate) fn reload_by(&self, asked: Arc<AtomicBool>) {
        if let Some(revisions) = &self.revisions {
            revisions.asked_by(asked);
        }
    }

    /// Makes the changes that are due by themselves: files are to be read again, or a confirmation has not come.
    pub(crate) fn look(&self, tell: &mut impl FnMut(&str)) {
        if let Some(revisions) = &self.revisions {
            revisions.look(self.in_force(), tell);
        }
    }

    pub(crate) fn status(&self) -> Option<RevisionStatus> {
        self.revisions.as_ref().map(Revisions::status)
    }

    /// The revisions of the rules.
    ///
    /// # Errors
    /// The run has no configuration, and so no files.
    pub(crate) fn revisions(&self) -> Result<&Revisions, ChangeError> {
        self.revisions.as_ref().ok_or(ChangeError::NoConfiguration)
    }

    /// Puts a text of rules in force.
    ///
    /// # Errors
    /// The text is refused, and nothing has changed.
    pub(crate) fn apply(
        &self,
        asked: &Asked,
        text: &str,
        who: Option<Peer>,
    ) -> Result<Applied, ChangeError> {
        self.revisions()?.apply(asked, text, who, self.in_force())
    }

    /// Changes own tables, each family's by a text of changes.
    ///
    /// # Errors
    /// A text is refused: the texts before it have been put in force.
    pub(crate) fn change_own(&self, changes: &[(Family, String)]) -> Result<(), ChangeError> {
        self.revisions()?.change_own(changes, self.in_force())
    }

    /// Restores a revision, or the one before.
    ///
    /// # Errors
    /// There is no revision of that number, or it is refused.
    pub(crate) fn rollback(
        &self,
        revision: Option<u64>,
        who: Option<Peer>,
    ) -> Result<Applied, ChangeError> {
        self.revisions()?.rollback(revision, who, self.in_force())
    }

    /// Changes the access list; returns the number of ranges that are banned then.
    ///
    /// # Errors
    /// The journal does not take the changes.
    pub(crate) fn change_bans(&self, changes: &[Change]) -> Result<usize, JournalError> {
        match &self.revisions {
            Some(revisions) => revisions.change_bans(changes, &self.published),
            None => Ok(self.published.change_bans(changes)),
        }
    }

    /// Changes sets by lines of `ipset restore`.
    ///
    /// # Errors
    /// The journal does not take the changes, or a line is refused.
    pub(crate) fn change_sets(
        &self,
        text: &str,
    ) -> Result<Result<Edited, EditError>, JournalError> {
        match &self.revisions {
            Some(revisions) => revisions.change_sets(text, &self.published),
            None => Ok(self.published.change_sets(text, now())),
        }
    }

    /// The access list at this moment.
    pub(crate) fn access_list(&self) -> List {
        self.published.shared().bans().reader().at(Some(now())).clone()
    }

    /// Evaluates rules in shadow from now on, in place of an earlier shadow; see [`Shadow::new`].
    ///
    /// # Errors
    /// The rules are refused.
    pub(crate) fn shadow(
        &self,
        texts: Vec<String>,
        workers: &Workers,
    ) -> Result<(), shadow::Refused> {
        let connections = match self.published.program().tracks() {
            true => workers
                .all_connections()
                .map_err(|silent| shadow::Refused::Other(silent.to_string()))?,
            false => Vec::new(),
        };
        let listing = Listing::of_flows(connections, now());
        let complete = |rulesets: &mut Vec<Ruleset>, program: &Program| {
            if let Some(revisions) = &self.revisions {
                revisions.complete(rulesets, program);
            }
        };
        let shadow = Shadow::new(texts, listing, &self.published, &self.steering, complete)?;
        workers.set_shadow(Some(Arc::new(shadow)));
        Ok(())
    }

    /// Puts the rules in force that are evaluated in shadow, and ends the shadow: the answer is the same as of `apply`.
    ///
    /// # Errors
    /// There is no shadow, or its rules are refused.
    pub(crate) fn promote(
        &self,
        who: Option<Peer>,
        workers: &Workers,
    ) -> Result<Applied, ChangeError> {
        let shadow = workers.shadow().ok_or(ChangeError::NoShadow)?;
        let asked = Asked { name: "shadow".to_owned(), ..Asked::default() };
        let done = self.apply(&asked, &shadow.text(), who)?;
        workers.set_shadow(None);
        Ok(done)
    }

    fn in_force(&self) -> InForce<'_> {
        InForce { published: &self.published, steering: &self.steering }
    }
}

/// The answer to `shadow`.
pub(crate) fn shadow(workers: &Workers) -> answers::Shadow {
    let found = workers.shadow().map(|shadow| shadow.found());
    answers::Shadow { active: found.is_some(), found }
}
