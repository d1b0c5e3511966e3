//! Makes a failing case small: packets, then rules, then their parts, then the packet's bytes.

use std::fmt::Write;
use std::io;

use super::super::netns;
use super::compare::{Difference, Session, Terms, is_compared};
use crate::generate::checksums;
use crate::generate::draft::set_checksum;
use crate::generate::mutate::network_offset;
use crate::generate::nft::Sort;
use crate::generate::nft::ruleset::NftRuleset;
use crate::hex::hex;
use packet::{Checksums, Link, Packet};

/// A case that fails.
#[derive(Debug, Clone)]
pub struct Failing {
    /// What is left of the rules.
    pub ruleset: NftRuleset,
    /// The packets; only the last makes the difference.
    pub frames: Vec<Vec<u8>>,
    /// What differs under them.
    pub difference: Difference,
}

impl Failing {
    /// The case as a reproducer: the ruleset, the packets, and what differs.
    #[must_use]
    pub fn story(&self, link: Link) -> String {
        let mut story = format!("{}\n{}", self.difference, self.ruleset.text());
        for frame in &self.frames {
            let (mut bytes, len) = (frame.clone(), frame.len());
            let packet = Packet::parse(&mut bytes, len, link, Checksums::Ignore);
            let _ = writeln!(story, "packet {} # {packet}", hex(frame));
        }
        story
    }
}

/// Shrinks until nothing more can be left out; every attempt has a namespace of its own.
pub fn shrink(terms: Terms, mut failing: Failing) -> io::Result<Failing> {
    fewer_frames(terms, &mut failing)?;
    fewer_rules(terms, &mut failing)?;
    fewer_chains(terms, &mut failing)?;
    fewer_parts(terms, &mut failing)?;
    fewer_rules(terms, &mut failing)?;
    fewer_frames(terms, &mut failing)?;
    plainer_bytes(terms, &mut failing)?;
    Ok(failing)
}

/// Takes `candidate` in place of `failing` if nft takes all of it, and it still differs in the same way.
fn accept(terms: Terms, failing: &mut Failing, mut candidate: Failing) -> io::Result<bool> {
    candidate.ruleset.drop_unread_sets();
    drop_double_counters(&mut candidate.ruleset);
    let found = netns::in_fresh(|| {
        let (mut session, refusals, refused) = Session::new(terms, candidate.ruleset.clone())?;
        match refused {
            _ if !refusals.is_empty() => Ok(None),
            Some(difference) => Ok(Some(difference)),
            None => session.batch(&candidate.frames),
        }
    });
    // What nft refuses as a whole is no smaller case.
    let Ok(Some(difference)) = found else { return Ok(false) };
    if std::mem::discriminant(&difference) != std::mem::discriminant(&failing.difference) {
        return Ok(false);
    }
    *failing = Failing { difference, ..candidate };
    Ok(true)
}

/// Leaves out counters that count what the next one does.
fn drop_double_counters(ruleset: &mut NftRuleset) {
    let chains = ruleset.tables.iter_mut().flat_map(|table| &mut table.chains);
    for rule in chains.flat_map(|chain| &mut chain.rules) {
        let mut counted = false;
        rule.parts.retain(|part| {
            let is_counter = part.sort == Sort::Counter;
            let doubled = is_counter && counted;
            counted = is_counter || counted && part.sort == Sort::Statement;
            !doubled
        });
    }
}

/// Leaves out halves, then quarters, and so on, of the packets before the last.
fn fewer_frames(terms: Terms, failing: &mut Failing) -> io::Result<()> {
    let mut chunk = failing.frames.len().saturating_sub(1);
    while chunk > 0 {
        let mut at = 0;
        while at + chunk < failing.frames.len() {
            let mut candidate = failing.clone();
            candidate.frames.drain(at..at + chunk);
            if !accept(terms, failing, candidate)? {
                at += chunk;
            }
        }
        chunk /= 2;
    }
    Ok(())
}

fn fewer_rules(terms: Terms, failing: &mut Failing) -> io::Result<()> {
    for table in 0..failing.ruleset.tables.len() {
        for chain in 0..failing.ruleset.tables[table].chains.len() {
            let mut chunk = failing.ruleset.tables[table].chains[chain].rules.len();
            while chunk > 0 {
                let mut at = 0;
                while at + chunk <= failing.ruleset.tables[table].chains[chain].rules.len() {
                    let mut candidate = failing.clone();
                    candidate.ruleset.tables[table].chains[chain].rules.drain(at..at + chunk);
                    if !accept(terms, failing, candidate)? {
                        at += chunk;
                    }
                }
                chunk /= 2;
            }
        }
    }
    Ok(())
}

fn fewer_chains(terms: Terms, failing: &mut Failing) -> io::Result<()> {
    for table in (0..failing.ruleset.tables.len()).rev() {
        let mut candidate = failing.clone();
        candidate.ruleset.tables.remove(table);
        if accept(terms, failing, candidate)? {
            continue;
        }
        for chain in (0..failing.ruleset.tables[table].chains.len()).rev() {
            let mut candidate = failing.clone();
            candidate.ruleset.tables[table].chains.remove(chain);
            accept(terms, failing, candidate)?;
        }
    }
    Ok(())
}

fn fewer_parts(terms: Terms, failing: &mut Failing) -> io::Result<()> {
    for (t, c, r) in rules(&failing.ruleset) {
        let parts = failing.ruleset.tables[t].chains[c].rules[r].parts.clone();
        for part in (0..parts.len()).rev() {
            // The last counter is what tells.
            let counters = failing.ruleset.tables[t].chains[c].rules[r].parts.iter();
            let counters = counters.filter(|part| part.sort == Sort::Counter).count();
            if parts[part].sort == Sort::Counter && counters == 1 {
                continue;
            }
            let mut candidate = failing.clone();
            candidate.ruleset.tables[t].chains[c].rules[r].parts.remove(part);
            accept(terms, failing, candidate)?;
        }
    }
    Ok(())
}

fn rules(ruleset: &NftRuleset) -> Vec<(usize, usize, usize)> {
    let mut places = Vec::new();
    for (t, table) in ruleset.tables.iter().enumerate() {
        for (c, chain) in table.chains.iter().enumerate() {
            places.extend((0..chain.rules.len()).map(|rule| (t, c, rule)));
        }
    }
    places
}

/// Zeroes bytes, as long as the case still fails.
fn plainer_bytes(terms: Terms, failing: &mut Failing) -> io::Result<()> {
    let Some(last) = failing.frames.last().cloned() else { return Ok(()) };
    for at in (0..last.len().min(64)).rev() {
        let mut candidate = failing.clone();
        let Some(frame) = candidate.frames.last_mut() else { continue };
        if std::mem::take(&mut frame[at]) == 0 {
            continue;
        }
        let at = network_offset(terms.scene(), frame);
        let bare = frame.get_mut(at..).unwrap_or_default();
        checksums::fill(bare);
        set_checksum(bare);
        if !is_compared(terms, frame) {
            continue;
        }
        accept(terms, failing, candidate)?;
    }
    Ok(())
}
