//! What [`super::Published`] tells its callers: counters ([`Snapshot`]), memory ([`Held`]) and refusals ([`PublishError`]).

use std::fmt;
use std::sync::Arc;

use rules::model::{Counters, Family, Hook, Rule};
use rules::revision::Refused;
use rules::save::LoadError;

use super::tally::policy_place;
use crate::program::Program;

/// Why a program was not published, or counters were not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PublishError {
    /// The rules have changed since the change was made for them.
    Stale {
        /// Number of the program that the change was made for.
        expected: u64,
        /// Number of the current program.
        current: u64,
    },
    /// A reader has been walking an old program for too long.
    Behind {
        /// The worker, counted from 0 as they registered; `None` if a caller of [`super::Published::program`] holds the
        /// program.
        worker: Option<usize>,
        /// Programs that are not reclaimed.
        programs: usize,
        /// Bytes that only those programs hold, about.
        bytes: usize,
    },
    /// A change was refused.
    Refused(Refused),
    /// A line of the text was refused.
    Load(LoadError),
    /// The caller's check did not accept the program: its reason.
    NotAccepted(String),
}

/// Counters of all workers, each as of a boundary between two of its bursts.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The program whose rules were counted. Holding on to it keeps it, and those after it, from being reclaimed.
    pub program: Arc<Program>,
    pub(super) rules: Vec<Counters>,
    pub(super) policies: Vec<Counters>,
}

/// Memory that is held for workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// Programs that were replaced and may still be in use.
    pub programs: usize,
    /// Bytes that only those programs hold, about.
    pub bytes: usize,
    /// Arrays of counters.
    pub arrays: usize,
    /// Places of rules in each of them.
    pub places: usize,
}

impl Snapshot {
    /// The counters of a rule of the program.
    #[must_use]
    pub fn rule(&self, rule: &Rule) -> Counters {
        self.rules.get(rule.slot as usize).copied().unwrap_or_default()
    }

    /// The counters of the policy of a table's built-in chain.
    #[must_use]
    pub fn policy(&self, family: Family, table: &str, hook: Hook) -> Counters {
        let place = family.tables().iter().position(|kind| kind.name == table);
        let place = place.map(|table| policy_place(family, table, hook));
        place.and_then(|place| self.policies.get(place)).copied().unwrap_or_default()
    }
}

impl fmt::Display for PublishError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stale { expected, current } => {
                write!(f, "expected program {expected} to be current, found {current}")
            }
            Self::Behind { worker: Some(worker), programs, bytes } => {
                write!(f, "worker {worker} does not move on: ")?;
                unreclaimed(f, *programs, *bytes)
            }
            Self::Behind { worker: None, programs, bytes } => {
                f.write_str("someone holds on to an old program: ")?;
                unreclaimed(f, *programs, *bytes)
            }
            Self::Refused(refused) => refused.fmt(f),
            Self::Load(error) => error.fmt(f),
            Self::NotAccepted(why) => f.write_str(why),
        }
    }
}

fn unreclaimed(f: &mut fmt::Formatter<'_>, programs: usize, bytes: usize) -> fmt::Result {
    write!(f, "{programs} programs of {bytes} bytes cannot be reclaimed")
}

impl std::error::Error for PublishError {}
