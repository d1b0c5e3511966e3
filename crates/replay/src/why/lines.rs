//! Many packets at once: what each line of a log, a trace, a capture or a list of another program says that a packet was.
//!
//! Contract: a packet is judged by itself, as the first of its connection, but for packets of a capture, which are one
//! conversation; a packet of a trace is judged once, and so is a packet that a capture shows more than once. Lines that
//! say nothing of a packet are counted and left out, as logs have many. Memory is bounded: a line is read up to
//! [`LONGEST`], and after [`MOST`] packets, or [`BYTES`] of words about them, or [`MOST`] lines that cannot be read,
//! the rest are counted only.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::fmt::Write;
use std::io::{self, BufRead, Read};
use std::sync::Arc;

use conntrack::Mode;
use dataplane::{Evaluator, FinalVerdict, Program};
use packet::visible;
use serde_json::{Value, json};

use super::past::Past;
use super::story::{Detail, Story, of_spec};
use super::teller::tell_knowing;
use super::together::{Capture, OnePacket, Showing, Traces, Waiting};
use super::traced;
use super::witness::{self, Known};
use crate::logged::Loggers;
use crate::rules_file::{RulesFile, program};
use crate::shell;
use crate::spec::{self, Among, Lack, OfLine, Passed, SpecError};
use crate::walk::{Setup, names};

/// Bytes of a line that are read.
const LONGEST: u64 = 16 * 1024;
/// Packets that are listed one by one.
const MOST: usize = 1 << 16;
/// Most bytes of the words about them.
const BYTES: usize = 1 << 26;
/// Bytes of what is said of a line that cannot be read.
const QUOTED: usize = 200;
/// Packets that are shown in words for each decision.
const SHOWN: usize = 5;
/// Lines that could not be read which are shown.
const REFUSED: usize = 5;

/// Warnings that are kept.
const WARNINGS: usize = 16;

/// What came of all lines.
#[derive(Debug, Default)]
pub struct Judged {
    /// Lines that there were.
    lines: u64,
    told: Vec<Told>,
    /// Packets past [`MOST`] or [`BYTES`].
    untold: u64,
    /// Bytes of the words about packets.
    bytes: usize,
    /// Lines of a packet that cannot be read, and why: the first of them.
    refused: Vec<(u64, SpecError)>,
    /// How many there are.
    refusals: u64,
    verdicts: [u64; 3],
    /// Packets whose lines contradict the rules.
    contradicted: u64,
    /// Packets of a capture, and lines that show one of them again.
    captured: u64,
    again: u64,
    /// Options that tell the story of one, which is accepted or not.
    example: Option<(bool, String)>,
    /// Warnings, each once: the first of them.
    warnings: Vec<String>,
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
    /// Keys of what it depends on, which the line does not give.
    not_given: Vec<&'static str>,
}

/// Judges what each line says; `recorded` is how connections of captures are tracked, which may have begun before.
///
/// # Errors
/// The lines cannot be read.
pub fn of_lines(
    files: &[RulesFile],
    setup: &Setup,
    recorded: Mode,
    mut lines: impl BufRead,
) -> io::Result<Judged> {
    let program = program(files, setup);
    let captured = OnceCell::new();
    let mut judge = Judge {
        setup,
        loggers: Loggers::of(files),
        files: files.into(),
        program: &program,
        judged: Judged::default(),
        ends: HashMap::new(),
        traces: Traces::default(),
        capture: Capture::new(&captured, recorded),
        asked: Vec::new(),
    };
    let (mut line, mut next) = (Vec::new(), Vec::new());
    read_line(&mut lines, &mut line)?;
    while !line.is_empty() {
        judge.judged.lines += 1;
        let number = judge.judged.lines;
        read_line(&mut lines, &mut next)?;
        if is_second_of_two(&next) && is_first_of_two(&line) {
            line.truncate(line.trim_ascii_end().len());
            line.append(&mut next);
            judge.judged.lines += 1;
            read_line(&mut lines, &mut next)?;
        }
        let text = String::from_utf8_lossy(line.trim_ascii_end());
        judge.line(number, &text);
        std::mem::swap(&mut line, &mut next);
    }
    let last = judge.capture.end();
    last.iter().for_each(|packet| judge.captured(packet));
    for trace in std::mem::take(&mut judge.traces).into_packets() {
        judge.alone(trace);
    }
    judge.judged.told.sort_by_key(|told| told.line);
    Ok(judge.judged)
}

/// The judge of packets that lines describe, with its results so far.
struct Judge<'p> {
    setup: &'p Setup,
    files: Arc<[RulesFile]>,
    loggers: Loggers,
    program: &'p Program,
    judged: Judged,
    ends: HashMap<String, Arc<End>>,
    traces: Traces,
    capture: Capture<'p>,
    /// Interfaces that were held to the rules: the first of them.
    asked: Vec<(&'static str, String)>,
}

impl Judge<'_> {
    fn line(&mut self, number: u64, text: &str) {
        let read = match spec::of_line(text) {
            Ok(Some(read)) => read,
            Ok(None) => {
                if let Some((id, passed)) = Passed::of_line(text) {
                    self.traces.passes(&id, number, passed);
                }
                return;
            }
            Err(error) => return self.judged.refuse(number, error),
        };
        let OfLine { packet, spec, among } = read;
        let passed = Vec::new();
        let packet = OnePacket { line: number, text: text.to_owned(), packet, spec, passed };
        match among {
            Among::None => self.alone(packet),
            Among::Trace { id, chain } => {
                let passed = Passed::of_place(&chain).map(|passed| (number, passed));
                let packet = OnePacket { passed: passed.into_iter().collect(), ..packet };
                for packet in self.traces.take(packet, id, &chain) {
                    self.alone(packet);
                }
            }
            Among::Capture(captured) => match self.capture.take(packet, captured) {
                Showing::Again => self.judged.again += 1,
                Showing::Next(whole) => whole.iter().for_each(|packet| self.captured(packet)),
            },
        }
    }

    /// Whether the host may have seen the packet; what speaks against it is noted.
    fn fits(&mut self, OnePacket { line, text, spec, .. }: &OnePacket) -> bool {
        let is_new = |(key, name): &(&str, &str)| {
            !self.asked.iter().any(|(other, asked)| other == key && asked == name)
        };
        let new: Vec<_> = spec.typed(text).filter(is_new).collect();
        if !new.is_empty() {
            let links = &self.setup.config.host.links;
            self.judged.warn(names::warnings(new.iter().copied(), &self.files, links));
            let room = WARNINGS.saturating_sub(self.asked.len());
            self.asked.extend(new.into_iter().take(room).map(|(key, name)| (key, name.to_owned())));
        }
        let fits = spec.fit(text, &self.setup.config);
        fits.map_err(|error| self.judged.refuse(*line, error)).is_ok()
    }

    /// Judges a packet as the first of its connection.
    fn alone(&mut self, packet: OnePacket) {
        if !self.fits(&packet) {
            return;
        }
        let OnePacket { line, text, packet, spec, passed } = packet;
        let walked = |known: &Known, detail: Detail| {
            let mut evaluator = Evaluator::new(self.program);
            let arrival = known.arrival(spec.arrival(1, 0, &self.setup.config));
            let (mut bytes, mut past) = (spec.frame.clone(), Past::default());
            let (files, past) = (&self.files, &mut past);
            let (story, met) =
                tell_knowing(&mut evaluator, files, &mut bytes, &arrival, detail, past, known);
            (of_spec(story, &spec), met)
        };
        let story = match passed.is_empty() {
            true => witness::hold(&self.loggers, &spec, |known| walked(known, Detail::End)),
            false => traced::hold(&passed, |known, detail| walked(known, detail).0),
        };
        self.judged.contradicted += u64::from(story.contradiction.is_some());
        // A prefix has no place in a packet spec.
        let has_prefix = spec.logged.is_some() && !self.loggers.is_empty();
        let typed = if has_prefix { &text } else { &packet };
        let again = shell::option("packet", typed);
        self.judged.add(line, packet, &story, &mut self.ends, || again);
    }

    /// Judges a packet of a capture after those before it.
    fn captured(&mut self, waiting: &Waiting) {
        if !self.fits(&waiting.packet) {
            return;
        }
        let story = self.capture.tell(waiting, &self.files, self.setup);
        let OnePacket { line, packet, .. } = &waiting.packet;
        let (capture, config) = (&self.capture, &self.setup.config);
        self.judged.captured += 1;
        let again = || capture.as_options(*line, config);
        self.judged.add(*line, packet.clone(), &story, &mut self.ends, again);
    }
}

/// Whether it is the first line of two that `tcpdump -v` prints: what stands in the IPv4 header, and nothing more.
fn is_first_of_two(line: &[u8]) -> bool {
    if !line.trim_ascii_end().ends_with(b")") {
        return false;
    }
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    // With -e, its name stands further ahead.
    let (mut before, mut is_begun) = (&b""[..], false);
    for word in words.by_ref() {
        let is_named = matches!(before, b"IP" | b"IP6") && word.starts_with(b"(");
        if is_named || word.starts_with(b"(tos") {
            is_begun = true;
            break;
        }
        before = word;
    }
    is_begun && words.all(|word| word != b">")
}

/// Whether it is the second: `    10.0.0.1.5 > 10.0.0.2.6: …`.
fn is_second_of_two(line: &[u8]) -> bool {
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    line.starts_with(b" ") && words.nth(1) == Some(b">")
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
    /// Counts a packet; `again` are the options by which `why` tells its story.
    fn add(
        &mut self,
        line: u64,
        packet: String,
        story: &Story,
        ends: &mut HashMap<String, Arc<End>>,
        again: impl FnOnce() -> String,
    ) {
        let is_accepted =
            matches!(story.verdict(), FinalVerdict::Accept(_) | FinalVerdict::Skip(_));
        if self.example.as_ref().is_none_or(|(of_accepted, _)| *of_accepted && !is_accepted) {
            self.example = Some((is_accepted, again()));
        }
        self.verdicts[match story.verdict() {
            FinalVerdict::Accept(_) => 0,
            FinalVerdict::Drop(_) | FinalVerdict::Reject(_) => 1,
            FinalVerdict::Unknown | FinalVerdict::Skip(_) => 2,
        }] += 1;
        if self.told.len() == MOST || self.bytes > BYTES {
            self.untold += 1;
            return;
        }
        let text = story.decision();
        let is_new = !ends.contains_key(&text);
        self.bytes += packet.len() + if is_new { 2 * text.len() } else { 0 };
        let end = ends.entry(text.clone()).or_insert_with(|| {
            let line = story.report.decided_by(&story.end).map(|(line, _)| line);
            let not_given = story.lacks().into_iter().map(Lack::key).collect();
            Arc::new(End { verdict: story.verdict().word(), text, line, not_given })
        });
        self.told.push(Told { line, packet, end: Arc::clone(end) });
    }

    fn warn(&mut self, warnings: Vec<String>) {
        for warning in warnings {
            if self.warnings.len() < WARNINGS && !self.warnings.contains(&warning) {
                self.warnings.push(warning);
            }
        }
    }

    /// The warnings about these lines.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    fn refuse(&mut self, line: u64, mut error: SpecError) {
        self.refusals += 1;
        if self.refused.len() < MOST {
            if error.what.len() > QUOTED {
                error.what.truncate(error.what.floor_char_boundary(QUOTED));
                error.what.push('…');
                error.what.shrink_to_fit();
            }
            self.refused.push((line, error));
        }
    }

    /// Packets that are accepted, that are dropped or rejected, and of which neither is known.
    #[must_use]
    pub fn verdicts(&self) -> [u64; 3] {
        self.verdicts
    }

    /// Packets whose lines say what cannot be under these rules.
    #[must_use]
    pub fn contradicted(&self) -> u64 {
        self.contradicted
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
        let how = match self.captured {
            0 => "each judged by itself",
            captured if captured == packets => "each judged after those before it",
            _ => "each judged by itself, those of a capture after those before them",
        };
        writeln!(out, "{packets} packets in {} lines, {how}", self.lines)?;
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
        if self.again > 0 {
            writeln!(
                out,
                "\n{} lines show a packet again, as it left or at another device",
                self.again
            )?;
        }
        if !self.refused.is_empty() {
            writeln!(out, "\n{} lines of packets could not be read:", self.refusals)?;
        }
        for (line, error) in self.refused.iter().take(REFUSED) {
            writeln!(out, "  line {line}:{}: expected {}", error.column, error.what)?;
        }
        Ok(())
    }

    /// The options by which `why` tells the story of the first packet that is not accepted, else of the first, each with a
    /// blank before it.
    #[must_use]
    pub fn example(&self) -> Option<&str> {
        self.example.as_ref().map(|(_, options)| &**options)
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
                "not_given": told.end.not_given,
            })).collect::<Vec<_>>(),
            "captured": self.captured,
            "again": self.again,
            "contradicted": self.contradicted,
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
        let judged = of_lines(&[], &Setup::default(), Mode::Midstream, lines.as_bytes()).unwrap();
        let told = judged.json();
        assert_eq!(told["refusals"], MOST + 7);
        assert_eq!(told["refused"].as_array().unwrap().len(), MOST);
        assert!(judged.text().contains(&format!("{} lines of packets could not", MOST + 7)));
    }

    #[test]
    fn what_is_too_long_of_a_line_is_passed_over() {
        let mut lines = b"x".repeat(LONGEST as usize * 3);
        lines.extend_from_slice(b"\nping 10.0.0.1 > 10.0.0.2\n");
        let judged = of_lines(&[], &Setup::default(), Mode::Midstream, &*lines).unwrap();
        assert_eq!((judged.lines, judged.told[0].line), (2, 2));
    }
}
