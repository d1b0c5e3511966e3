//! Conversations kept as text, with what the kernel made of every packet.
//!
//! ```text
//! # why this conversation is here
//! talk ip t0 t1
//! inside 192.0.2.0/24
//! rules
//! *filter
//! …
//! COMMIT
//! near 4500… out 4500…
//! far 4500… none
//! later 25 near 4500… out 4500…
//! count filter FORWARD 1 3 180
//! ```
//!
//! `near` and `far` name the device that a packet comes in by; after `out` stands what came out for it, fragments
//! put together; `later` lets milliseconds pass before. After a line `unknown allowed` tamis need not know every
//! verdict, nor all bytes; counters then lie between what surely hit and what may have. A line `kernel 6.1.192` names the
//! kernel that answered, where it is not the usual one. `count` names table, chain, rule number
//! (the policy is one past the last rule), packets and bytes after all packets.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use host::Kernel;
use rules::model::{Family, Ruleset};
use rules::save::{LoadOptions, load};

use super::Sent;
use super::evaluator::{Egress, StateEvaluator, agree};
use super::stage::Stage;
use crate::case::Count;
use crate::device::Device;
use crate::hex::{hex, unhex};

/// A packet, and what came out for it.
pub type Turn = (Sent, Option<Vec<u8>>);

/// Rules, a conversation and what the kernel let out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateCase {
    /// Why it is kept.
    pub why: String,
    /// Where it plays.
    pub stage: Stage,
    /// Save text.
    pub rules: String,
    /// In order, each with what came out.
    pub turns: Vec<Turn>,
    /// Counters.
    pub counts: Vec<Count>,
    /// tamis must know every verdict.
    pub strict: bool,
}

impl StateCase {
    /// Reads one; packets without `out` or `none` count as not asked about yet.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let talk = text.lines().find_map(|line| line.strip_prefix("talk "))?;
        let words: Vec<&str> = talk.split(' ').collect();
        let [family, near, far] = words.as_slice() else { return None };
        let stage = Stage::usual(Family::from_name(family)?)
            .between([Device::new(near)?, Device::new(far)?]);
        let inside = text.lines().find_map(|line| line.strip_prefix("inside "))?;
        let stage = Stage { inside: inside.split(' ').map(str::to_owned).collect(), ..stage };
        let (why, rules) = (String::new(), String::new());
        let (turns, counts) = (Vec::new(), Vec::new());
        let mut case = Self { why, stage, rules, turns, counts, strict: true };
        for line in text.lines() {
            case.line(line)?;
        }
        Some(case)
    }

    fn line(&mut self, line: &str) -> Option<()> {
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["#", why @ ..] => {
                let _ = writeln!(self.why, "{}", why.join(" "));
            }
            ["unknown", "allowed"] => self.strict = false,
            ["kernel", version] => self.stage.scene.kernel = Kernel::parse(version)?,
            ["talk" | "inside" | "rules" | "", ..] => {}
            ["later", millis, turn @ ..] => {
                self.line(&turn.join(" "))?;
                self.turns.last_mut()?.0.pause = Duration::from_millis(millis.parse().ok()?);
            }
            [place @ ("near" | "far"), bytes, end @ ..] => {
                let sent = Sent::at_once(*place == "far", unhex(bytes)?);
                let came = match end {
                    [] | ["none"] => None,
                    ["out", bytes] => Some(unhex(bytes)?),
                    _ => return None,
                };
                self.turns.push((sent, came));
            }
            ["count", count @ ..] if count.len() == 5 => self.counts.push(Count::parse(count)?),
            _ => {
                let _ = writeln!(self.rules, "{line}");
            }
        }
        Some(())
    }

    /// As [`Self::parse`] reads it.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for line in self.why.lines() {
            let _ = writeln!(text, "# {line}");
        }
        let (stage, family) = (&self.stage, self.stage.scene.family.name());
        let _ = writeln!(text, "talk {family} {} {}", stage.device(false), stage.device(true));
        let allowed = if self.strict { "" } else { "unknown allowed\n" };
        let inside = stage.inside.join(" ");
        let kernel = self.stage.scene.kernel_line();
        let _ = write!(text, "inside {inside}\n{kernel}{allowed}rules\n{}", self.rules);
        for (sent, came) in &self.turns {
            let place = if sent.from_far { "far" } else { "near" };
            let end =
                came.as_ref().map_or("none".to_owned(), |bytes| format!("out {}", hex(bytes)));
            match sent.pause.as_millis() {
                0 => {}
                millis => drop(write!(text, "later {millis} ")),
            }
            let _ = writeln!(text, "{place} {} {end}", hex(&sent.bytes));
        }
        for count in &self.counts {
            let _ = writeln!(text, "{count}");
        }
        text
    }

    /// The rules as tamis reads them.
    pub fn ruleset(&self) -> Result<Arc<Ruleset>, String> {
        let options =
            LoadOptions { family: Some(self.stage.scene.family), ..LoadOptions::default() };
        load(&self.rules, &options)
            .map(|loaded| Arc::new(loaded.ruleset))
            .map_err(|error| error.to_string())
    }

    /// Asks tamis; what it says differently, if anything.
    pub fn replay(&self) -> Result<(), String> {
        const START: u64 = 1_700_000_000_000_000_000;
        let (ruleset, config) = (self.ruleset()?, self.stage.config());
        let mut evaluator = StateEvaluator::new(&ruleset, &config);
        let mut now = START;
        for (index, (sent, came)) in self.turns.iter().enumerate() {
            now += 1000 + sent.pause.as_nanos() as u64;
            let egress = evaluator.evaluate(&self.stage, sent, now);
            let expected =
                came.as_ref().map_or(Egress::Nothing, |came| Egress::Packet(Some(came.clone())));
            if egress != expected && (self.strict || !is_open(&egress, &expected)) {
                let path = evaluator.path().join(" ");
                return Err(format!(
                    "packet {}: {egress:?} by {path}, not {expected:?}",
                    index + 1
                ));
            }
        }
        self.counts.iter().try_for_each(|count| differs(&ruleset, &evaluator, count, self.strict))
    }
}

/// What tamis leaves open may be what the kernel did.
fn is_open(egress: &Egress, expected: &Egress) -> bool {
    match egress {
        Egress::Unknown => true,
        Egress::Packet(None) => matches!(expected, Egress::Packet(_)),
        Egress::Packet(Some(_)) | Egress::Nothing => false,
    }
}

fn differs(
    ruleset: &Ruleset,
    evaluator: &StateEvaluator,
    count: &Count,
    strict: bool,
) -> Result<(), String> {
    let Count { table, chain, number, counters: kernel } = count;
    let find = || {
        let at = ruleset.tables.iter().position(|known| known.name == **table)?;
        let chains = &ruleset.tables[at].chains;
        Some((at, chains.iter().position(|known| *known.name == **chain)?))
    };
    let (at, index) = find().ok_or_else(|| format!("no chain {table} {chain}"))?;
    let hits = evaluator.hits(at, index, number - 1);
    match agree(&hits, kernel) && !(strict && hits.maybe > 0) {
        true => Ok(()),
        false => Err(format!("{table} {chain} {number}: {hits:?}, not {kernel}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# why\ntalk ip t0 t1\ninside 192.0.2.0/24\nrules\n*filter\n:FORWARD DROP [0:0]\n\
        COMMIT\nnear 45 none\nlater 7 far 46 none\ncount filter FORWARD 1 0 0\n";

    #[test]
    fn it_reads_back_as_it_was_written() {
        let case = StateCase::parse(TEXT).unwrap();
        assert_eq!(case.text(), TEXT);
        assert_eq!(case.replay(), Ok(()));
    }

    #[test]
    fn what_may_be_unknown_is_told_by_its_line() {
        let text = TEXT.replace("rules\n", "unknown allowed\nrules\n");
        let case = StateCase::parse(&text).unwrap();
        assert!(!case.strict && case.text() == text);
        assert!(StateCase::parse(&text.replace("1 0 0", "1 1 2")).unwrap().replay().is_err());
    }

    #[test]
    fn what_is_left_open_may_be_what_the_kernel_did() {
        let (sent, nothing) = (Egress::Packet(Some(vec![0x45])), Egress::Nothing);
        assert!(is_open(&Egress::Unknown, &sent) && is_open(&Egress::Unknown, &nothing));
        assert!(is_open(&Egress::Packet(None), &sent) && !is_open(&Egress::Packet(None), &nothing));
        assert!(!is_open(&nothing, &sent) && !is_open(&sent, &nothing));
    }

    #[test]
    fn what_tamis_says_otherwise_is_told() {
        let replayed = StateCase::parse(&TEXT.replace("none", "out 45")).unwrap().replay();
        assert!(replayed.unwrap_err().starts_with("packet 1: Nothing"));
        let counted = StateCase::parse(&TEXT.replace("1 0 0", "1 1 2")).unwrap().replay();
        assert!(counted.unwrap_err().starts_with("filter FORWARD 1"));
    }
}
