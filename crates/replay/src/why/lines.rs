//! Many packets at once: each line of a log, a trace or a list of another program that says what a packet was, judged
//! by itself, as the first of its connection.
//!
//! Contract: lines that say nothing of a packet are counted and left out, as logs have many. Memory is bounded: a line
//! is read up to [`LONGEST`], and after [`MOST`] packets, or lines that cannot be read, the rest are counted only.

use std::collections::HashMap;
use std::fmt::Write;
use std::io::{self, BufRead, Read};
use std::sync::Arc;

use dataplane::{Config, Evaluator, FinalVerdict};
use packet::visible;
use serde_json::{Value, json};

use super::{Past, Story, tell};
use crate::rules_file::{RulesFile, program};
use crate::spec::{self, SpecError};

/// Bytes of a line that are read.
const LONGEST: u64 = 16 * 1024;
/// Packets that are told one by one.
const MOST: usize = 1 << 16;
/// Packets that are shown in words for each decision.
const SHOWN: usize = 5;
/// Lines that could not be read which are shown.
const REFUSED: usize = 5;

/// What came of all lines.
#[derive(Debug, Default)]
pub struct Judged {
    /// Lines that there were.
    lines: u64,
    told: Vec<Told>,
    /// Packets past [`MOST`].
    untold: u64,
    /// Lines of a packet that cannot be read, and why: the first of them.
    refused: Vec<(u64, SpecError)>,
    /// How many there are.
    refusals: u64,
    verdicts: [u64; 3],
}

/// A packet and its end.
#[derive(Debug)]
struct Told {
    line: u64,
    /// A packet spec that builds it.
    packet: String,
    end: Arc<End>,
}

/// A decision.
#[derive(Debug)]
struct End {
    verdict: &'static str,
    /// The rule, or that there is none.
    text: String,
    line: Option<u32>,
}

/// Judges what each line says.
///
/// # Errors
/// The lines cannot be read.
pub fn of_lines(
    files: &[RulesFile],
    config: &Config,
    mut lines: impl BufRead,
) -> io::Result<Judged> {
    let (program, files) = (program(files, config), Arc::<[RulesFile]>::from(files));
    let mut judged = Judged::default();
    let mut ends = HashMap::new();
    let (mut line, mut next) = (Vec::new(), Vec::new());
    read_line(&mut lines, &mut line)?;
    while !line.is_empty() {
        judged.lines += 1;
        let number = judged.lines;
        read_line(&mut lines, &mut next)?;
        // The second line of tcpdump -v.
        if line.trim_ascii_end().ends_with(b")") && next.starts_with(b" ") {
            line.truncate(line.trim_ascii_end().len());
            line.append(&mut next);
            judged.lines += 1;
            read_line(&mut lines, &mut next)?;
        }
        let text = String::from_utf8_lossy(line.trim_ascii_end());
        match spec::of_line(&text) {
            Ok(None) => {}
            Ok(Some((packet, spec))) => {
                let mut evaluator = Evaluator::new(&program);
                let (mut bytes, arrival) = (spec.frame.clone(), spec.arrival(1, 0));
                let story =
                    tell(&mut evaluator, &files, &mut bytes, &arrival, None, &mut Past::default());
                judged.add(number, packet, &story, &mut ends);
            }
            Err(error) => judged.refuse(number, error),
        }
        std::mem::swap(&mut line, &mut next);
    }
    Ok(judged)
}

/// Reads a line with its end, and passes over what is too long of it; empty at the end of all.
fn read_line(from: &mut impl BufRead, to: &mut Vec<u8>) -> io::Result<()> {
    to.clear();
    from.by_ref().take(LONGEST).read_until(b'\n', to)?;
    if to.len() as u64 == LONGEST && !to.ends_with(b"\n") {
        from.skip_until(b'\n')?;
    }
    Ok(())
}

impl Judged {
    fn add(
        &mut self,
        line: u64,
        packet: String,
        story: &Story,
        ends: &mut HashMap<String, Arc<End>>,
    ) {
        self.verdicts[match story.verdict() {
            FinalVerdict::Accept(_) => 0,
            FinalVerdict::Drop(_) | FinalVerdict::Reject(_) => 1,
            FinalVerdict::Unknown | FinalVerdict::Skip(_) => 2,
        }] += 1;
        if self.told.len() == MOST {
            self.untold += 1;
            return;
        }
        let text = story.decision();
        let end = ends.entry(text.clone()).or_insert_with(|| {
            let line = story.report.decided_by(&story.end).map(|(line, _)| line);
            Arc::new(End { verdict: story.end.verdict.word(), text, line })
        });
        self.told.push(Told { line, packet, end: Arc::clone(end) });
    }

    fn refuse(&mut self, line: u64, error: SpecError) {
        self.refusals += 1;
        if self.refused.len() < MOST {
            self.refused.push((line, error));
        }
    }

    /// Packets that are accepted, that are dropped or rejected, and of which neither is known.
    #[must_use]
    pub fn verdicts(&self) -> [u64; 3] {
        self.verdicts
    }

    /// Packets that were found.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.verdicts.iter().sum()
    }

    /// The first line of a packet that could not be read.
    #[must_use]
    pub fn refusal(&self) -> Option<(u64, &SpecError)> {
        self.refused.first().map(|(line, error)| (*line, error))
    }

    /// Decisions in words, the most frequent first, each with packets.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = String::new();
        // Writing to a String cannot fail.
        let _ = self.write(&mut out);
        visible::text(&out).into_owned()
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        let packets = self.packets();
        writeln!(out, "{packets} packets in {} lines, each judged by itself", self.lines)?;
        let mut groups: Vec<Vec<&Told>> = Vec::new();
        let mut places = HashMap::new();
        for told in &self.told {
            let place = *places.entry(Arc::as_ptr(&told.end)).or_insert(groups.len());
            if place == groups.len() {
                groups.push(Vec::new());
            }
            groups[place].push(told);
        }
        groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
        for group in groups {
            let Some(first) = group.first() else { continue };
            writeln!(out, "\n{} x  {}", group.len(), first.end.text)?;
            for told in group.iter().take(SHOWN) {
                writeln!(out, "  line {:<5} {}", told.line, told.packet)?;
            }
            if group.len() > SHOWN {
                writeln!(out, "  and {} more", group.len() - SHOWN)?;
            }
        }
        if self.untold > 0 {
            writeln!(out, "\n{} more packets are in none of these counts", self.untold)?;
        }
        if !self.refused.is_empty() {
            writeln!(out, "\n{} lines of packets could not be read:", self.refusals)?;
        }
        for (line, error) in self.refused.iter().take(REFUSED) {
            writeln!(out, "  line {line}:{}: expected {}", error.column, error.what)?;
        }
        Ok(())
    }

    /// A packet spec of the first packet that is not accepted, else of the first.
    #[must_use]
    pub fn example(&self) -> Option<&str> {
        let dropped = self.told.iter().find(|told| told.end.verdict != "accept");
        dropped.or(self.told.first()).map(|told| &*told.packet)
    }

    /// All of it as one document, schema `tamis.why_lines/1`.
    #[must_use]
    pub fn json(&self) -> Value {
        let [accept, drop, unknown] = self.verdicts;
        json!({
            "schema": "tamis.why_lines/1",
            "lines": self.lines,
            "verdicts": { "accept": accept, "drop_or_reject": drop, "unknown": unknown },
            "packets": self.told.iter().map(|told| json!({
                "at": told.line,
                "packet": told.packet,
                "verdict": told.end.verdict,
                "line": told.end.line,
                "decision": told.end.text,
            })).collect::<Vec<_>>(),
            "untold": self.untold,
            "refusals": self.refusals,
            "refused": self.refused.iter().map(|(line, error)| json!({
                "at": line, "column": error.column, "expected": error.what,
            })).collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_cannot_be_read_are_counted_past_those_that_are_kept() {
        let lines = "IN= OUT= SRC=nobody DST=10.0.0.1 PROTO=TCP\n".repeat(MOST + 7);
        let judged = of_lines(&[], &Config::default(), lines.as_bytes()).unwrap();
        let told = judged.json();
        assert_eq!(told["refusals"], MOST + 7);
        assert_eq!(told["refused"].as_array().unwrap().len(), MOST);
        assert!(judged.text().contains(&format!("{} lines of packets could not", MOST + 7)));
    }

    #[test]
    fn what_is_too_long_of_a_line_is_passed_over() {
        let mut lines = b"x".repeat(LONGEST as usize * 3);
        lines.extend_from_slice(b"\nping 10.0.0.1 > 10.0.0.2\n");
        let judged = of_lines(&[], &Config::default(), &*lines).unwrap();
        assert_eq!((judged.lines, judged.told[0].line), (2, 2));
    }
}
