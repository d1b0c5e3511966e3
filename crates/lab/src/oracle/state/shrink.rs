//! Makes a difference small: fewer packets, fewer rules, as long as the two part.

use std::io;

use super::trial::Trial;
use crate::generate::ruleset::RulesetText;
use crate::state::Sent;
use crate::state::case::StateCase;
use crate::state::stage::Stage;

/// Times that a shrinker starts over.
const ROUNDS: usize = 3;

/// A conversation under shrinking.
struct Shrunk<'a> {
    stage: &'a Stage,
    strict: bool,
    rules: RulesetText,
    packets: Vec<Sent>,
    what: String,
}

/// Makes a difference small and tells it; `None` if the same packets do not show it again.
pub(super) fn tell(
    stage: &Stage,
    strict: bool,
    rules: RulesetText,
    packets: Vec<Sent>,
    first: &str,
) -> io::Result<Option<String>> {
    let mut shrunk = Shrunk { stage, strict, rules, packets, what: String::new() };
    let rules = shrunk.rules.clone();
    let Some((index, what)) = shrunk.attempt(&rules, &shrunk.packets)? else {
        return Ok(None);
    };
    shrunk.packets.truncate(index + 1);
    shrunk.what = what;
    for _ in 0..ROUNDS {
        shrunk.fewer_packets()?;
        shrunk.fewer_rules()?;
    }
    let why = format!("{first}\n{}\n", shrunk.what);
    let turns = shrunk.packets.into_iter().map(|sent| (sent, None)).collect();
    let (rules, counts) = (shrunk.rules.text(), Vec::new());
    Ok(Some(StateCase { why, stage: stage.clone(), rules, turns, counts, strict }.text()))
}

impl Shrunk<'_> {
    /// Where the two part now; `None` also where one refuses the rules.
    fn attempt(
        &self,
        rules: &RulesetText,
        packets: &[Sent],
    ) -> io::Result<Option<(usize, String)>> {
        let text = rules.text();
        let trial = Trial { stage: self.stage, rules: &text, strict: self.strict, batch: 1 };
        let mut packets = packets;
        let (_, parting) = trial.run(&mut packets)?;
        Ok(parting.filter(|(_, what)| !what.contains(" refuses ")))
    }

    fn fewer_packets(&mut self) -> io::Result<()> {
        let mut chunk = self.packets.len() / 2;
        while chunk > 0 {
            let mut at = 0;
            while at + chunk < self.packets.len() {
                let mut fewer = self.packets.clone();
                fewer.drain(at..at + chunk);
                match self.attempt(&self.rules, &fewer)? {
                    Some((index, found)) => {
                        fewer.truncate(index + 1);
                        (self.packets, self.what) = (fewer, found);
                    }
                    None => at += chunk,
                }
            }
            chunk /= 2;
        }
        Ok(())
    }

    fn fewer_rules(&mut self) -> io::Result<()> {
        for table in 0..self.rules.tables.len() {
            for chain in 0..self.rules.tables[table].chains.len() {
                for rule in (0..self.rules.tables[table].chains[chain].rules.len()).rev() {
                    let mut fewer = self.rules.clone();
                    fewer.tables[table].chains[chain].rules.remove(rule);
                    if let Some((index, found)) = self.attempt(&fewer, &self.packets)?
                        && index + 1 == self.packets.len()
                    {
                        (self.rules, self.what) = (fewer, found);
                    }
                }
            }
        }
        Ok(())
    }
}
