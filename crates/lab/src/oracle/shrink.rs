//! Makes a failing case small: frames, then rules, then tests, then the packet's bytes.

use std::io;

use super::compare::{Difference, Session};
use super::netns;
use crate::generate::draft::set_checksum;
use crate::generate::packets::is_forwarded;
use crate::generate::ruleset::RulesetText;
use crate::scene::{Placement, Scene};

/// A case that fails.
#[derive(Debug, Clone)]
pub struct Failing {
    /// What is left of the rules.
    pub rules: RulesetText,
    /// The frames; only the last makes the difference.
    pub frames: Vec<Vec<u8>>,
    /// What differs under them.
    pub difference: Difference,
}

/// Shrinks until nothing more can be left out, in one namespace.
pub fn shrink(scene: Scene, mut failing: Failing) -> io::Result<Failing> {
    netns::in_fresh(|| {
        let empty = format!("*{}\nCOMMIT\n", scene.tables()[0]);
        let Ok(mut session) = Session::new(scene, &empty)? else { return Ok(failing) };
        fewer_frames(&mut session, &mut failing)?;
        fewer_rules(&mut session, &mut failing)?;
        fewer_tests(&mut session, &mut failing)?;
        fewer_rules(&mut session, &mut failing)?;
        plainer_bytes(&mut session, &mut failing)?;
        Ok(failing)
    })
}

/// Takes `candidate` in place of `failing` if it still differs; a refusal to load is not the same thing.
fn accept(session: &mut Session, failing: &mut Failing, candidate: Failing) -> io::Result<bool> {
    if session.scene().placement == Placement::Forward
        && !all_forwarded(session.scene(), &candidate)
    {
        return Ok(false);
    }
    let was_load = matches!(failing.difference, Difference::Load(_));
    let difference = match session.reload(&candidate.rules.text()) {
        Err(difference) => was_load.then_some(difference),
        Ok(()) => session.batch(&candidate.frames)?.filter(|_| !was_load),
    };
    let Some(difference) = difference else { return Ok(false) };
    *failing = Failing { difference, ..candidate };
    Ok(true)
}

/// Whether every frame routes forwards: the stack's own ways with the others are not compared.
fn all_forwarded(scene: Scene, candidate: &Failing) -> bool {
    candidate.frames.iter().all(|frame| is_forwarded(scene, &mut frame.clone()))
}

/// Leaves out halves, then quarters, and so on, of the frames before the last.
fn fewer_frames(session: &mut Session, failing: &mut Failing) -> io::Result<()> {
    let mut chunk = failing.frames.len().saturating_sub(1);
    while chunk > 0 {
        let mut at = 0;
        while at + chunk < failing.frames.len() {
            let mut candidate = failing.clone();
            candidate.frames.drain(at..at + chunk);
            if !accept(session, failing, candidate)? {
                at += chunk;
            }
        }
        chunk /= 2;
    }
    Ok(())
}

fn fewer_rules(session: &mut Session, failing: &mut Failing) -> io::Result<()> {
    for table in 0..failing.rules.tables.len() {
        for chain in 0..failing.rules.tables[table].chains.len() {
            let mut chunk = failing.rules.tables[table].chains[chain].rules.len();
            while chunk > 0 {
                let mut at = 0;
                while at + chunk <= failing.rules.tables[table].chains[chain].rules.len() {
                    let mut candidate = failing.clone();
                    candidate.rules.tables[table].chains[chain].rules.drain(at..at + chunk);
                    if !accept(session, failing, candidate)? {
                        at += chunk;
                    }
                }
                chunk /= 2;
            }
        }
        fewer_chains(session, failing, table)?;
    }
    Ok(())
}

fn fewer_chains(session: &mut Session, failing: &mut Failing, table: usize) -> io::Result<()> {
    for chain in (1..failing.rules.tables[table].chains.len()).rev() {
        let mut candidate = failing.clone();
        candidate.rules.tables[table].chains.remove(chain);
        accept(session, failing, candidate)?;
    }
    Ok(())
}

fn fewer_tests(session: &mut Session, failing: &mut Failing) -> io::Result<()> {
    let places: Vec<(usize, usize, usize, usize)> = places(&failing.rules);
    for (table, chain, rule, test) in places.into_iter().rev() {
        let mut candidate = failing.clone();
        candidate.rules.tables[table].chains[chain].rules[rule].tests.remove(test);
        accept(session, failing, candidate)?;
    }
    Ok(())
}

fn places(rules: &RulesetText) -> Vec<(usize, usize, usize, usize)> {
    let mut places = Vec::new();
    for (t, table) in rules.tables.iter().enumerate() {
        for (c, chain) in table.chains.iter().enumerate() {
            for (r, rule) in chain.rules.iter().enumerate() {
                places.extend((0..rule.tests.len()).map(|test| (t, c, r, test)));
            }
        }
    }
    places
}

/// Zeroes bytes and cuts the end off, as long as the case still fails.
fn plainer_bytes(session: &mut Session, failing: &mut Failing) -> io::Result<()> {
    let Some(last) = failing.frames.last().cloned() else { return Ok(()) };
    for at in (0..last.len().min(256)).rev() {
        let mut candidate = failing.clone();
        let Some(frame) = candidate.frames.last_mut().filter(|frame| frame.len() > at) else {
            continue;
        };
        if std::mem::take(&mut frame[at]) == 0 {
            continue;
        }
        if frame[0] >> 4 == 4 {
            set_checksum(frame);
        }
        accept(session, failing, candidate)?;
    }
    Ok(())
}
