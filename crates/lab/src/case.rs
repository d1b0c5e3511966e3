//! Cases: rules, frames, and what the kernel did with them, kept as text.
//!
//! ```text
//! # why this case is here
//! scene ip tun raw
//! rules
//! *raw
//! …
//! COMMIT
//! packet 4500… accept
//! count raw PREROUTING 1 3 180
//! ```
//!
//! A line `kernel 6.1.192` after the scene names the kernel that answered, where it is not the usual one. `count` names table, chain, rule number (the policy is one past the last rule), packets and bytes after
//! all frames. A verdict is `accept`, `drop` or `stack`.

use std::fmt::{self, Write};

use host::Kernel;
use rules::model::Counters;

use crate::evaluator::{Evaluator, Fate};
use crate::hex::{hex, unhex};
use crate::scene::Scene;

/// Rules, frames and the kernel's verdicts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// Why it is kept.
    pub why: String,
    /// Where it plays.
    pub scene: Scene,
    /// Save text.
    pub rules: String,
    /// Each frame and what the kernel did with it.
    pub frames: Vec<(Vec<u8>, Fate)>,
    /// Counters after all frames.
    pub counts: Vec<Count>,
}

/// What a rule or policy counted, in cases of both kinds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Count {
    /// Table.
    pub table: String,
    /// Chain.
    pub chain: String,
    /// The rule's place, from 1; the policy is one past the last rule.
    pub number: usize,
    /// What the kernel counted.
    pub counters: Counters,
}

impl Count {
    /// Reads the words after `count`.
    pub(crate) fn parse(words: &[&str]) -> Option<Self> {
        let &[table, chain, number, packets, bytes] = words else { return None };
        let counters = Counters { packets: packets.parse().ok()?, bytes: bytes.parse().ok()? };
        let number = number.parse().ok()?;
        Some(Self { table: table.to_owned(), chain: chain.to_owned(), number, counters })
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { table, chain, number, counters: Counters { packets, bytes } } = self;
        write!(f, "count {table} {chain} {number} {packets} {bytes}")
    }
}

impl Case {
    /// Reads a case.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let scene = text.lines().find_map(|line| line.strip_prefix("scene "))?;
        let mut case = Self {
            why: String::new(),
            scene: Scene::parse(scene)?,
            rules: String::new(),
            frames: Vec::new(),
            counts: Vec::new(),
        };
        for line in text.lines() {
            case.line(line)?;
        }
        Some(case)
    }

    fn line(&mut self, line: &str) -> Option<()> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "#" => {
                let _ = writeln!(self.why, "{rest}");
            }
            "scene" | "rules" | "" => {}
            "kernel" => self.scene.kernel = Kernel::parse(rest)?,
            "packet" => {
                let (bytes, fate) = rest.split_once(' ')?;
                let fates = [Fate::Stack, Fate::Accept, Fate::Drop];
                let fate = fates.into_iter().find(|known| known.word() == fate)?;
                self.frames.push((unhex(bytes)?, fate));
            }
            "count" => {
                self.counts.push(Count::parse(&rest.split(' ').collect::<Vec<_>>())?);
            }
            _ => {
                let _ = writeln!(self.rules, "{line}");
            }
        }
        Some(())
    }

    /// The case as text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for line in self.why.lines() {
            let _ = writeln!(text, "# {line}");
        }
        let (words, kernel) = (self.scene.words(), self.scene.kernel_line());
        let _ = write!(text, "scene {words}\n{kernel}rules\n{}", self.rules);
        for (frame, fate) in &self.frames {
            let _ = writeln!(text, "packet {} {}", hex(frame), fate.word());
        }
        for count in &self.counts {
            let _ = writeln!(text, "{count}");
        }
        text
    }

    /// Asks tamis again; what it says differently, if anything.
    pub fn replay(&self) -> Result<(), String> {
        let mut evaluator =
            Evaluator::new(self.scene, &self.rules).map_err(|error| error.to_string())?;
        for (index, (frame, expected)) in self.frames.iter().enumerate() {
            let fate = evaluator.evaluate(&mut frame.clone()).fate;
            if fate != *expected {
                return Err(format!("frame {index}: {}, not {}", fate.word(), expected.word()));
            }
        }
        let counters = evaluator.counters();
        for Count { table, chain, number, counters: expected } in &self.counts {
            let counted = counters.iter().find(|c| c.name.0 == **table && c.name.1 == *chain);
            let found = counted.and_then(|counted| counted.entries.get(number - 1));
            let Some(found) = found else {
                return Err(format!("no rule {table} {chain} {number}"));
            };
            if found != expected {
                return Err(format!("{table} {chain} {number}: {found}, not {expected}"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_reads_back_as_it_was_written() {
        let text = "# why\nscene ip tun raw\nrules\n*raw\n:PREROUTING DROP [0:0]\nCOMMIT\n\
                    packet 4500 stack\ncount raw PREROUTING 1 0 0\n";
        let case = Case::parse(text).unwrap();
        assert_eq!(case.text(), text);
        assert_eq!(case.replay(), Ok(()));
    }

    #[test]
    fn a_case_that_the_kernel_decides_otherwise_is_told() {
        let text =
            "scene ip tun raw\nrules\n*raw\n:PREROUTING DROP [0:0]\nCOMMIT\npacket 45 accept\n";
        assert_eq!(Case::parse(text).unwrap().replay(), Err("frame 0: stack, not accept".into()));
    }
}
