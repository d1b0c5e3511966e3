//! Locked counters that are matches: what the study measured with its quota match.
//!
//! Each is one more match of a rule, asked for every packet that gets so far, says yes, and counts under
//! a lock that all workers share. They are there to be measured against [`dataplane::publish::tally::Local`].
//!
//! Source: "Xtables2: Love for blobs" (Engelhardt, NFWS 2010), where quota matches stand for the counters that
//! rules would no longer have.

use std::sync::{Arc, Mutex, PoisonError};

use rules::Outcome;
use rules::Transit;
use rules::ext::{Match, MatchUse, Printer, Support};
use rules::model::{Counters, Ruleset};

/// The counters that [`add`] made, by slot, several of a rule in turn.
#[derive(Debug, Default)]
pub struct Locked {
    per_rule: usize,
    counters: Vec<Arc<Quota>>,
}

/// Packets and bytes under a lock.
#[derive(Debug, Default)]
struct Quota(Mutex<Counters>);

/// The match; the counter is allocated elsewhere, as the kernel's is.
#[derive(Debug)]
struct Counts(Arc<Quota>);

impl Match for Counts {
    fn print(&self, to: &mut Printer) {
        to.option(false, "quota", u64::MAX);
    }

    fn evaluate(&self, transit: &Transit<'_, '_>) -> Outcome {
        let mut counters = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        counters.packets += 1;
        counters.bytes += transit.packet.len() as u64;
        Outcome::YES
    }
}

/// Gives every rule this number of locked counters after its other matches. Rules that somebody else holds, too, are
/// left as they are.
pub fn add(ruleset: &mut Ruleset, per_rule: usize) -> Locked {
    let mut made = Locked { per_rule, counters: Vec::new() };
    let chains = ruleset.tables.iter_mut().flat_map(|table| &mut table.chains);
    for rule in chains.flat_map(|chain| &mut chain.rules) {
        let start = rule.slot as usize * per_rule;
        let Some(rule) = Arc::get_mut(rule) else { continue };
        let room = made.counters.len().max(start + per_rule);
        made.counters.resize_with(room, Arc::default);
        let mut matches = std::mem::take(&mut rule.matches).into_vec();
        for counter in &made.counters[start..start + per_rule] {
            let counts = Box::new(Counts(Arc::clone(counter)));
            matches.push(MatchUse::new("quota", Support::Evaluated, counts));
        }
        rule.matches = matches.into();
    }
    made
}

impl Locked {
    /// What each of a rule's counters has counted.
    pub fn rule(&self, slot: u32) -> impl Iterator<Item = Counters> {
        let start = slot as usize * self.per_rule;
        let counters = self.counters.iter().skip(start).take(self.per_rule);
        counters.map(|counter| *counter.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
